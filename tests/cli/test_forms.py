"""`-o json` has fields, `-o yaml` is there wherever `-o json` is, and both say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.test_exit_codes import World
from tests.shape import lines_of
from winboot.cli import run
from winboot.cli.commands import COMMANDS


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    return World(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("command", ["render --limit win-1", "runs", "report last", "log last", "check"])
def test_yaml_documents_hold_what_the_json_lines_hold(world: World, command: str) -> None:
    world.winboot("plan")
    world.capsys.readouterr()
    words = command.split()
    file = [str(world.folder / "inventory.yaml")] if command == "check" else []
    inventory = ["-i", str(world.folder / "inventory.yaml")] if command.startswith("render") else []

    code = run([*words, *file, *inventory, "-o", "json"])
    lines = world.capsys.readouterr().out
    assert run([*words, *file, *inventory, "-o", "yaml"]) == code

    assert list(yaml.safe_load_all(world.capsys.readouterr().out)) == lines_of(lines) != []


def test_yaml_is_a_form_wherever_json_is(capsys: pytest.CaptureFixture[str]) -> None:
    helps = {}
    for command in COMMANDS:
        run([command.name, "--help"])
        helps[command.name] = " ".join(capsys.readouterr().out.split())
    with_json = [name for name, shown in helps.items() if "|json" in shown]
    with_yaml = [
        name
        for name, shown in helps.items()
        if "yaml" in shown.partition("|json")[2][:12] or "yaml|json" in shown
    ]

    assert with_yaml == with_json != []


def test_render_gives_script_hashes_and_files_as_fields(world: World) -> None:
    assert world.winboot("render", "--limit", "win-1", "-o", "json") == 0

    (line,) = lines_of(world.capsys.readouterr().out)
    assert line["kind"] == "rendered" and line["node"] == "win-1"
    assert "kubelet" in line["text"]
    assert any(one["path"].endswith("config.yaml") for one in line["files"])


def test_status_has_the_last_run_in_fields(world: World) -> None:
    world.winboot("plan")
    world.capsys.readouterr()

    world.winboot("status", "-o", "json")

    last = [json.loads(line)["last_run"] for line in world.capsys.readouterr().out.splitlines()]
    assert {one["command"] for one in last} == {"plan"}
    assert all(set(one) == {"run", "command", "started", "outcome"} for one in last)
