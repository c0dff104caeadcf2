"""`join` and `repair` at a terminal look first, ask once with no session open, and run what was shown."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.cli.terminal import at_a_terminal
from tests.cli.test_exit_codes import World
from tests.join.fakes import Found
from tests.shape import lines_of

DIRECTORIES = Found("directories", what="folder C:\\k")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    world = World(tmp_path, monkeypatch, capsys)
    world.at("win-1", DIRECTORIES)
    return world


def modes(world: World) -> dict[str, list[str]]:
    """What ran on each machine."""
    return {name: machine.modes for name, machine in world.machines.items()}


def test_yes_runs_what_was_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look for what is shown, one that finds the same, and the change; on the other machine the Node alone."""
    asked = at_a_terminal(monkeypatch, "yes\n")

    assert world.winboot("join") == 0

    assert asked == ["asked"]
    assert modes(world) == {"win-1": ["Look", "Look", "Change"], "win-2": ["Look", "Look"]}
    shown = world.capsys.readouterr()
    assert "+ folder C:\\k: there" in shown.out
    # The totals stand right above the question, once.
    assert (shown.out + shown.err).count("3 steps to change") == 1 and "Change 2 nodes? [y/N]: " in shown.err


@pytest.mark.parametrize(("answer", "code"), [("n\n", 2), ("\n", 2), ("", 2), (KeyboardInterrupt, 130)])
@pytest.mark.parametrize("command", ["join", "repair"])
def test_anything_else_changes_nothing(
    command: str, answer: str | type[BaseException], code: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No, nothing, the end of the input, Ctrl-C."""
    at_a_terminal(monkeypatch, answer)

    assert world.winboot(command) == code

    assert modes(world) == {"win-1": ["Look"], "win-2": ["Look"]}
    assert not {"mint_token", "change_node", "lift_taint"} & set(world.cluster.names)
    assert "winboot changed nothing" in world.capsys.readouterr().err


def test_no_session_is_open_while_it_asks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user may read for an hour; WinRM has few shells for each user, and a session holds the machine's lock."""
    counts: list[tuple[int, int]] = []
    at_a_terminal(monkeypatch, "n\n", lambda: counts.append((world.connections, world.closings)))

    world.winboot("join")

    ((connected, closed),) = counts
    assert connected == closed == 2


def test_a_machine_that_changes_while_it_asks_is_left_alone_and_the_others_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.at("win-2", DIRECTORIES)

    def change() -> None:
        world.machines["win-2"].found.append(Found("firewall-rules", what="a rule"))

    at_a_terminal(monkeypatch, "y\n", change)

    assert world.winboot("join") == 2

    assert modes(world) == {"win-1": ["Look", "Look", "Change"], "win-2": ["Look", "Look"]}
    said = world.capsys.readouterr().out
    assert "win-2: skipped: " in said and "firewall-rules (a rule)" in said


def test_with_nothing_to_change_there_is_no_question(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = at_a_terminal(monkeypatch, "n\n")

    assert world.winboot("join", "--limit", "win-2", "--skip", "node-labels") == 0

    assert asked == []


def test_yes_as_an_option_asks_no_question_and_looks_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = at_a_terminal(monkeypatch, "n\n")

    assert world.winboot("join", "--yes") == 0

    assert asked == []
    assert modes(world)["win-1"] == ["Look", "Change"]


def test_without_a_terminal_join_runs_as_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """`</dev/null`, or a pipe."""
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))

    assert world.winboot("join") == 0

    assert modes(world)["win-1"] == ["Look", "Change"]


def test_with_json_the_lines_alone_are_on_standard_output(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_a_terminal(monkeypatch, "y\n")

    assert world.winboot("join", "-o", "json") == 0

    said = world.capsys.readouterr()
    assert [line["kind"] for line in lines_of(said.out)] == ["node", "node", "run"]
    assert "+ folder C:\\k: there" in said.err and "[y/N]" in said.err


def test_the_report_names_what_was_approved_by_its_hash(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A yes approves what was shown, as a plan file does."""
    at_a_terminal(monkeypatch, "y\n")

    world.winboot("join", "-o", "json")

    *_, run = lines_of(world.capsys.readouterr().out)
    assert run["plan"]
    assert run["plan"] == world.machines["win-1"].facts[-1]["Plan"]
