"""`upgrade`, `rollback` and `remove` at a terminal and without one; what a rolled-back node does to the commands after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.terminal import at_a_terminal
from tests.cli.test_exit_codes import Nodes, World
from tests.join.fakes import Found, a_node
from winboot.operations import upgrade as story
from winboot.remote.cluster.base import NodeFacts

PROGRAM: Final = Found("artifacts", what="file kubelet.exe: sha256", flags=("disturbs",))


def versions(kubernetes: str) -> dict[str, Any]:
    """One set of versions, as a machine notes it."""
    artifact = {"name": "kubernetes", "version": kubernetes, "archive": "0" * 64}
    return {"artifacts": [artifact], "ready": True, "at": "2026-03-02T08:00:00Z", "by": "me@laptop"}


class Untold(Nodes):
    """Nodes that do not report their versions yet: no node waits for others."""

    def node(self, name: str) -> NodeFacts | None:
        found = super().node(name)
        return None if found is None else replace(found, kubelet_version="")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    monkeypatch.setattr(story, "_prove", lambda *_: None)
    return World(tmp_path, monkeypatch, capsys, Untold("win-1"))


COMMANDS: Final = {
    "upgrade": ("upgrade -l win-1", "Change 1 node? [y/N]: "),
    "rollback": ("rollback win-1", "Change 1 node? [y/N]: "),
    "remove": ("remove -l win-1", "Remove 1 node? [y/N]: "),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_at_the_terminal_changes_nothing(
    command: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each looks, shows, and asks once."""
    world.at("win-1", PROGRAM, says={"versions": {"before": versions("1.35.9")}})
    asked = at_a_terminal(monkeypatch, "n\n")
    words, question = COMMANDS[command]

    assert world.winboot(words) == 2

    assert asked == ["asked"]
    assert set(world.machines["win-1"].modes) == {"Look"}
    assert "cordon" not in world.cluster.names
    said = world.capsys.readouterr()
    assert "kubelet.exe" in said.out
    assert question in said.err and "winboot changed nothing" in said.err


@pytest.mark.parametrize("command", ["upgrade", "rollback"])
def test_yes_drains_and_changes_what_was_shown(
    command: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.at("win-1", PROGRAM, says={"versions": {"before": versions("1.35.9")}})
    at_a_terminal(monkeypatch, "y\n")

    assert world.winboot(COMMANDS[command][0]) == 0

    machine = world.machines["win-1"]
    assert machine.modes[-1] == "Change"
    assert (machine.facts[-1]["Drained"], machine.facts[-1]["Versions"]) == (
        True,
        "release" if command == "upgrade" else "hold",
    )
    assert {"cordon", "drain"} <= set(world.cluster.names)


def test_removing_without_a_terminal_and_without_yes_is_refused_before_any_contact(world: World) -> None:
    assert (world.winboot("remove"), world.connections) == (64, 0)


def test_a_node_that_was_rolled_back_is_named_and_all_the_rest_of_it_is_done(world: World) -> None:
    """Its versions stay; what else differs is changed."""
    held = {"versions": {"now": versions("1.35.9"), "held": versions("1.35.9")}}
    world.at("win-1", Found("firewall-rules"), says=held)

    assert world.winboot("plan -l win-1") == 2
    planned = world.capsys.readouterr().out
    assert world.winboot("join -l win-1") == 2
    joined = world.capsys.readouterr().out

    for said in (planned, joined):
        assert "the node was rolled back to kubernetes 1.35.9 at 2026-03-02T08:00:00Z by me@laptop" in said
    machine = world.machines["win-1"]
    assert [one["Versions"] for one in machine.facts] == ["", "hold", "", "hold", "hold"]
    assert machine.found == [], "the rule is there now"


def test_where_no_version_before_is_noted_a_rollback_leaves_the_node_alone(world: World) -> None:
    world.at("win-1", says={"versions": {"now": versions("1.36.5")}})

    assert world.winboot("rollback win-1") == 2

    assert "the machine has no record" in world.capsys.readouterr().out
    assert world.machines["win-1"].modes == ["Look"]


def test_an_upgrade_that_stopped_half_way_goes_back_to_what_it_came_from(world: World) -> None:
    note = {"now": versions("1.35.9"), "next": versions("1.36.5"), "before": versions("1.34.2")}
    world.at("win-1", PROGRAM, says={"versions": note})

    assert world.winboot("rollback win-1 -o json") == 0

    assert "the node stays at Kubernetes 1.35.9" in world.capsys.readouterr().out


def test_a_version_that_never_becomes_ready_is_named_and_the_next_node_keeps_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Untold("win-1", "win-2")
    world.cluster = both
    for name in ("win-1", "win-2"):
        world.at(name, PROGRAM, says={"versions": {"before": versions("1.35.9")}})
    cordoned = replace(a_node(name="win-1"), ready=False, reason="KubeletNotReady", message="no sandbox")
    monkeypatch.setattr(both, "node", lambda name: cordoned if "drain" in both.names else a_node(name=name))
    monkeypatch.setattr(both, "wait_ready", lambda *_, **__: cordoned)

    assert world.winboot("upgrade --yes") == 4

    said = world.capsys.readouterr().out
    assert "not Ready after 300 s: KubeletNotReady: no sandbox" in said
    assert "win-2: skipped: not started: win-1 failed" in said
    assert "Change" not in world.machines["win-2"].modes
