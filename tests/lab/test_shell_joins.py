"""Whole joins over SSH and over the local transport: restart and detached network step included, second run 0 changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

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


@pytest.mark.check
def test_two_machines_join_by_the_local_transport_each_on_its_own(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROGRAM_VARIABLE, str(stand_in(state)))
    with Lab(nodes=2) as lab:
        staged = stage(lab, state)
        inventory = yaml.safe_load(staged.inventory.read_text(encoding="utf-8"))
        hosts = [host for group in inventory["groups"].values() for host in group["hosts"].values()]
        for number, host in enumerate(hosts, 1):
            # Two machines cannot be one; what their address is does not matter here.
            host |= {"address": f"127.0.0.{number}", "connection": {"transport": "local"}}
        inventory["defaults"]["connection"] = {"poll_s": inventory["defaults"]["connection"]["poll_s"]}
        staged.inventory.write_text(yaml.safe_dump(inventory), encoding="utf-8")
        for name, node in lab.nodes.items():
            with ConsoleServer(node.machine) as console:
                monkeypatch.setenv(CONSOLE_VARIABLE, console.address)
                first = joined(staged.inventory, state / f"{name}.jsonl", "--limit", name)
                second = joined(staged.inventory, state / f"{name}-again.jsonl", "--limit", name)
            assert first[name]["ready"]
            assert first[name]["reboots"]
            assert first[name]["detached"]
            assert second[name]["outcome"] == "ok"
