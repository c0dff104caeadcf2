"""Each row of the table in docs/exit-codes.md, by a run of the command."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest

from tests.config.scene import an_inventory
from tests.join.fakes import FakeCluster, FakeMachine, Found, a_node, completed
from tests.shape import lines_of
from winboot.base import exits
from winboot.base.errors import LoginRefused, Superseded, Unreachable, WinbootError
from winboot.base.secret import Secret
from winboot.cli import run, targets
from winboot.config.node_spec import NodeSpec
from winboot.remote.cluster.base import NodeFacts
from winboot.script.plan import make_plan
from winboot.script.steps import STEPS

PAGE: Final = Path(__file__).parents[2] / "docs" / "exit-codes.md"
INVENTORY: Final = """
groups:
  pool:
    profile: profile.yaml
    os: "2022"
    hosts:
      win-1: {address: 10.0.1.11}
      win-2: {address: 10.0.1.12}
"""
# A step that disturbs pods, and one that builds on it.
ROUGH: Final = "kubelet-config"


class Nodes(FakeCluster):
    """A cluster with a Node for each of these machines, as it comes up."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names

    def node(self, name: str) -> NodeFacts | None:
        return a_node(name=name) if name in self._names else None

    def close(self) -> None:
        """There is nothing to give back."""


class Failing(FakeMachine):
    """A machine on which every run ends with an error."""

    def __init__(self, error: WinbootError) -> None:
        super().__init__(())
        self._error = error

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Mapping[str, Secret]) -> Iterator[str]:
        self.modes.append(arguments["Mode"])
        raise self._error
        yield ""


@dataclass
class World:
    """Two machines and a cluster behind the doors of the command line."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    cluster: FakeCluster = field(default_factory=lambda: Nodes("win-1", "win-2"))
    machines: dict[str, FakeMachine] = field(default_factory=dict)
    on_connect: Callable[[], None] = lambda: None
    # How many sessions were opened.
    connections: int = 0

    def __post_init__(self) -> None:
        an_inventory(self.folder, INVENTORY)
        load = targets.load_fleet
        self.monkeypatch.setenv("WINBOOT_STATE", str(self.folder / "state"))
        self.monkeypatch.setattr(
            targets,
            "load_fleet",
            lambda *given, **named: self._complete(load(*given, **named)),
        )
        self.monkeypatch.setattr(targets, "open_transport", self._machine)
        self.monkeypatch.setattr(targets, "Clusters", lambda *given, **named: self._Clusters(self))

    def _complete(self, fleet: targets.Fleet) -> targets.Fleet:
        return replace(fleet, specs=[completed(spec) for spec in fleet.specs])

    @dataclass
    class _Clusters:
        world: World

        def __call__(self, spec: NodeSpec) -> FakeCluster:
            return self.world.cluster

        def close(self) -> None:
            """There is nothing to give back."""

    def _machine(self, spec: NodeSpec, logins: object = None) -> FakeMachine:
        name = spec.node.name
        self.connections += 1
        self.on_connect()
        if name not in self.machines:
            self.at(name)
        return self.machines[name]

    def at(self, name: str, *found: Found, **machine: Any) -> None:
        """What is found on a machine; on one that is not named nothing differs."""
        (spec,) = targets.load_targets(self.folder / "inventory.yaml", (name,))
        steps = [step.name for step in make_plan(spec, STEPS, only=(), skip=()).node_side]
        self.machines[name] = FakeMachine(steps, *found, **machine)

    def fails(self, name: str, error: WinbootError) -> None:
        """Every run on a machine ends with this error."""
        self.machines[name] = Failing(error)

    @property
    def closings(self) -> int:
        """How many sessions were closed."""
        return sum(machine.closings for machine in self.machines.values())

    def winboot(self, command: str, *words: str) -> int:
        """The command, by its exit code."""
        return run([*command.split(), "-i", str(self.folder / "inventory.yaml"), *words])


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    return World(tmp_path, monkeypatch, capsys)


GONE: Final = Unreachable("nothing answers")
REFUSED: Final = LoginRefused("no")
TAKEN: Final = Superseded("a newer run has it")


def _rough(world: World, name: str) -> None:
    world.at(name, Found(ROUGH, flags=("disturbs",)), needs_drain=ROUGH)


def _right(world: World) -> int:
    return world.winboot("join")


def _differs(world: World) -> int:
    world.at("win-1", Found("directories"))
    return world.winboot("plan")


def _needs_drain(world: World) -> int:
    _rough(world, "win-1")
    return world.winboot("join")


def _no_nodes(world: World) -> int:
    world.cluster = Nodes()
    return world.winboot("repair")


def _one_no_node(world: World) -> int:
    world.cluster = Nodes("win-1")
    return world.winboot("repair")


def _failed(world: World) -> int:
    for name in ("win-1", "win-2"):
        world.at(name, Found("directories"), fails_at="directories")
    return world.winboot("join")


def _failed_differently(world: World) -> int:
    world.fails("win-1", GONE)
    world.fails("win-2", REFUSED)
    return world.winboot("join")


def _some_failed(world: World) -> int:
    world.at("win-1", Found("directories"), fails_at="directories")
    return world.winboot("join")


def _failed_before_not_done(world: World) -> int:
    """3 stands above 2."""
    world.at("win-1", Found("directories"), fails_at="directories")
    _rough(world, "win-2")
    return world.winboot("join")


def _out_of_reach(world: World) -> int:
    world.fails("win-1", GONE)
    world.fails("win-2", GONE)
    return world.winboot("plan")


def _login_refused(world: World) -> int:
    world.fails("win-1", REFUSED)
    world.fails("win-2", REFUSED)
    return world.winboot("repair")


def _superseded(world: World) -> int:
    """75 stands above what has failed."""
    world.fails("win-1", TAKEN)
    world.fails("win-2", GONE)
    return world.winboot("join")


def _budget_used_up(world: World) -> int:
    """4 stands above what has failed."""
    world.at("win-1", Found("directories"), fails_at="directories")
    return world.winboot("join", "--canary", "1")


def _interrupted(world: World) -> int:
    """A signal stands above 75."""
    world.fails("win-2", TAKEN)
    world.at("win-1", Found("directories"), during=lambda: os.kill(os.getpid(), 2))
    return world.winboot("join", "--workers", "1")


def _terminated(world: World) -> int:
    world.at("win-1", Found("directories"), during=lambda: os.kill(os.getpid(), 15))
    return world.winboot("join", "--workers", "1")


def _hung_up(world: World) -> int:
    world.at("win-1", Found("directories"), during=lambda: os.kill(os.getpid(), 1))
    return world.winboot("join", "--workers", "1")


def _wrong_use(world: World) -> int:
    code = world.winboot("join", "--limit", "win-9")
    assert not any(machine.modes for machine in world.machines.values()), "nothing was contacted"
    return code


def _report_lost(world: World) -> int:
    _full_disk(world)
    return world.winboot("join", "--report", str(world.folder / "r.html"))


def _report_lost_and_not_done(world: World) -> int:
    """2 stands above 74."""
    _rough(world, "win-1")
    _full_disk(world)
    return world.winboot("join", "--report", str(world.folder / "r.html"))


def _full_disk(world: World) -> None:
    """The disk fills up when the first machine is connected to."""

    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    world.on_connect = lambda: world.monkeypatch.setattr(os, "fsync", fsync)


ROWS: Final[list[tuple[int, Callable[[World], int]]]] = [
    (0, _right),
    (2, _differs),
    (2, _needs_drain),
    (2, _no_nodes),
    (2, _one_no_node),
    (2, _report_lost_and_not_done),
    (1, _failed),
    (1, _failed_differently),
    (3, _some_failed),
    (3, _failed_before_not_done),
    (69, _out_of_reach),
    (77, _login_refused),
    (4, _budget_used_up),
    (75, _superseded),
    (130, _interrupted),
    (143, _terminated),
    (129, _hung_up),
    (64, _wrong_use),
    (74, _report_lost),
]


@pytest.mark.parametrize(
    ("code", "story"), ROWS, ids=[f"{code}: {story.__name__.strip('_')}" for code, story in ROWS]
)
def test_the_command_ends_with_the_code_of_the_table(
    code: int, story: Callable[[World], int], world: World
) -> None:
    assert story(world) == code


def test_each_row_of_the_page_is_seen_and_they_stand_in_the_order_of_precedence() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## ")[0]
    rows = [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)]
    named = {int(code) for code in re.findall(r"\b(\d{1,3})\b(?=[;:)]| \|)", table)} & set(range(256))

    # 64: nothing was contacted, so that nothing else applies.
    for earlier, later in pairwise(code for code in rows if code != 64):
        assert exits.foremost((earlier, later)) == earlier
    assert named == {code for code, _ in ROWS}


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ((0, 74), 74),
        ((74, 2), 2),
        ((2, 69), 69),
        ((69, 4), 4),
        ((4, 75), 75),
        ((75, 130), 130),
        ((1, 77), 1),
        ((77, 1), 77),
        ((), 0),
    ],
)
def test_what_comes_before_what(codes: tuple[int, ...], code: int) -> None:
    """A signal, 75, 4, failures, 2, 74, 0; of two failures the first."""
    assert exits.foremost(codes) == code


def test_a_repair_of_machines_that_are_no_nodes_says_so_in_every_form(world: World) -> None:
    """The review's N2: rc 0 and `no nodes`, and none of them in JSON."""
    world.cluster = Nodes("win-2")
    page = world.folder / "r.html"

    assert world.winboot("repair", "-o", "json", "--report", str(page)) == 2
    lines = lines_of(world.capsys.readouterr().out)
    nodes = {line["node"]: line for line in lines if line["kind"] == "node"}
    assert (nodes["win-1"]["outcome"], nodes["win-1"]["failure"]) == ("skipped", None)
    assert nodes["win-1"]["skipped"]["name"] == "NoNodeYet"
    assert (nodes["win-2"]["skipped"], lines[-1]["exit_code"]) == (None, 2)
    assert "win-1" not in world.machines, "it was not even connected to"
    assert "the cluster has no Node of this name" in page.read_text(encoding="utf-8")

    assert world.winboot("repair", "-o", "junit") == 2
    suites = ET.fromstring(world.capsys.readouterr().out)
    assert suites.find("./testsuite[@name='win-1']/testcase/skipped") is not None
    assert suites.find(".//error") is None

    assert world.winboot("repair") == 2
    told = world.capsys.readouterr().out
    assert "win-1: skipped: the cluster has no Node of this name" in told
    assert "next: `winboot join` makes this machine a node" in told
    assert "1 skipped" in told


def test_a_node_that_waits_for_a_drain_has_not_failed(world: World) -> None:
    """What builds on the step waits with it."""
    _rough(world, "win-1")

    assert world.winboot("join", "-o", "json") == 2
    lines = lines_of(world.capsys.readouterr().out)
    (node,) = [line for line in lines if line.get("node") == "win-1"]
    assert node["outcome"] == "blocked"
    assert {step["problem"]["id"] for step in node["steps"] if step["state"] == "blocked"} == {
        "NeedsDrain",
        "NeedsStep",
    }
