"""Words of Ansible, kubectl and Terraform lead to winboot's word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.test_exit_codes import World
from tests.every import assert_none_wrong
from winboot import __version__
from winboot.cli import run
from winboot.cli.commands import COMMANDS, help_text

REFUSED = [
    (["verify", "--dry-run"], "winboot plan"),
    (["join", "--check"], "winboot plan"),
    (["upgrade", "--version", "1.37.0"], "kubernetes.version"),
    (["delete", "win-1"], "winboot remove"),
    (["destroy"], "winboot remove"),
    (["get", "nodes"], "winboot status"),
    (["logs"], "winboot log"),
    (["apply"], "winboot join"),
    (["completion", "bash"], "--install-completion"),
    (["report", "last", "-o", "html"], "--report FILE.html"),
]


@pytest.mark.parametrize(("typed", "answer"), REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_an_error_names_winboots_word(
    typed: list[str], answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(typed) == 64
    told = capsys.readouterr().err
    assert answer in told.partition("next: ")[2]


@pytest.mark.parametrize("typed", ["--drian", "--dr", "--diff"])
def test_a_typo_never_suggests_to_drain(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["join", typed]) == 64
    assert "--drain" not in capsys.readouterr().err


def test_version_and_help_are_commands_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version"]) == run(["help"]) == 0
    assert capsys.readouterr().out == f"winboot {__version__}\n{help_text()}\n"
    assert run(["help", "runs"]) == 0
    assert "winboot runs" in capsys.readouterr().out


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    return World(tmp_path, monkeypatch, capsys)


TAKE_NODES = (
    "plan",
    "join --yes",
    "repair --yes",
    "upgrade --yes",
    "rollback --yes",
    "remove --yes",
    "preflight",
    "ping",
    "verify",
    "status",
    "render",
    "csr list",
    "doctor",
    "inventory",
    "manifests rbac",
)


@pytest.mark.parametrize("command", TAKE_NODES)
def test_a_command_takes_names_of_nodes_as_arguments(world: World, command: str) -> None:
    assert world.winboot(*command.split(), "win-9") == 64
    assert "win-9" in world.capsys.readouterr().err
    assert world.connections == 0


def test_names_and_limit_together_are_refused(world: World) -> None:
    assert world.winboot("plan", "win-1", "--limit", "win-2") == 64
    assert "both choose nodes" in world.capsys.readouterr().err


@pytest.mark.parametrize("command", ["join", "repair"])
def test_a_dry_run_shows_what_plan_shows_and_changes_nothing(world: World, command: str) -> None:
    planned = world.winboot("plan", "win-1")
    shown = world.capsys.readouterr().out

    dry = world.winboot(command, "win-1", "--dry-run")

    assert dry == planned
    assert without_times(world.capsys.readouterr().out, command) == without_times(shown, "plan")


def without_times(text: str, command: str) -> list[str]:
    return [
        " ".join(word for word in line.split() if "." not in word)
        for line in text.replace(command, "").split("\n")
    ]


CHANGES = (
    "join",
    "repair",
    "upgrade",
    "rollback",
    "remove",
    "csr",
    "host add",
    "inventory import",
    "hook serve",
    "hook voucher",
    "hook approve",
    "init",
)


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run([*command.split(), "--help"]) == 0
    return capsys.readouterr().out


def test_a_command_that_changes_something_has_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert [one for one in CHANGES if "--dry-run" not in help_of(one, capsys)] == []


def test_host_add_shows_the_lines_that_it_would_write(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    file = world.folder / "inventory.yaml"
    before = file.read_text()

    assert run(["host", "add", "win-9", "10.0.1.19", "-i", str(file), "--dry-run"]) == 0

    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("+") and "win-9" in line]
    assert file.read_text() == before


def test_the_help_of_a_command_groups_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["join", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options:", "What:", "How much:", "Safety:", "Output:"]
    safety = lines[lines.index("Safety:") : lines.index("Output:")]
    assert any("--drain" in line for line in safety)


def test_no_help_names_a_type_of_python_or_is_wider_than_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    commands = (*(one.name for one in COMMANDS), "lab up", "hook serve", "fleet render")

    assert_none_wrong(
        {
            command: [
                line
                for line in help_of(command, capsys).splitlines()
                if len(line) > 80 or re.search(r"<\w+>|list\[|<=x|int range|float range", line)
            ]
            for command in commands
        }
    )
