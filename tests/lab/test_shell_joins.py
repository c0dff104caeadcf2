"""Whole joins over SSH and over the local transport: restart and detached network step included, second run 0 changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.cli.staging import stage
from winboot_lab.console_server import ConsoleServer
from winboot_lab.shell import CONSOLE_VARIABLE
from winboot_lab.up import Lab

from tests.transport.test_shells import stand_in
from winboot import cli
from winboot.remote.transport.local import PROGRAM_VARIABLE


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    yield tmp_path


def joined(inventory: Path, report: Path, *more: str) -> dict[str, dict[str, object]]:
    """Run `winboot join` as a user would; the nodes of its report by name."""
    code = cli.run(["join", "-i", str(inventory), "--report", str(report), *more])
    rows = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert code == 0, rows
    return {row["node"]: row for row in rows if "node" in row}


def only_host(inventory: Any, name: str, path: Path) -> Path:
    """The inventory of one machine that is this computer: two of them cannot be in one."""
    groups = {
        group: {**keys, "hosts": {name: {**keys["hosts"][name], "connection": {"transport": "local"}}}}
        for group, keys in inventory["groups"].items()
        if name in keys["hosts"]
    }
    path.write_text(yaml.safe_dump({**inventory, "groups": groups}), encoding="utf-8")
    return path


@pytest.mark.matrix
def test_two_nodes_join_over_ssh_and_the_second_run_changes_nothing(state: Path) -> None:
    with Lab(nodes=2, ssh=True) as lab:
        staged = stage(lab, state)
        first = joined(staged.inventory, state / "first.jsonl")
        second = joined(staged.inventory, state / "second.jsonl")
        refused = [str(each) for node in lab.nodes.values() for each in node.refusals]

    assert refused == []
    assert {name: row["ready"] for name, row in first.items()} == dict.fromkeys(("win-1", "win-2"), True)
    assert all(row["reboots"] and row["detached"] for row in first.values())
    assert [row["outcome"] for row in second.values()] == ["ok"] * 2


@pytest.mark.matrix
def test_two_machines_join_by_the_local_transport_each_on_its_own(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROGRAM_VARIABLE, str(stand_in(state)))
    with Lab(nodes=2) as lab:
        staged = stage(lab, state)
        inventory = yaml.safe_load(staged.inventory.read_text(encoding="utf-8"))
        inventory["defaults"]["connection"] = {"poll_s": inventory["defaults"]["connection"]["poll_s"]}
        for name, node in lab.nodes.items():
            own = only_host(inventory, name, staged.inventory.with_name(f"{name}.yaml"))
            with ConsoleServer(node.machine) as console:
                monkeypatch.setenv(CONSOLE_VARIABLE, console.address)
                first = joined(own, state / f"{name}.jsonl")
                second = joined(own, state / f"{name}-again.jsonl")
            assert first[name]["ready"]
            assert first[name]["reboots"]
            assert first[name]["detached"]
            assert second[name]["outcome"] == "ok"
