"""After a plan one byte changes: `join --plan` leaves the nodes alone that the change concerns, and names them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

import winboot
from tests.cli.test_exit_codes import Nodes, World
from tests.join.fakes import Found
from tests.matrix import first
from tests.shape import lines_of
from winboot.script import library, rendering

NAMES: Final = ("win-1", "win-2", "win-3")
INVENTORY: Final = """
groups:
  pool:
    profile: profile.yaml
    os: "2022"
    hosts:
      win-1: {address: 10.0.1.11}
      win-2: {address: 10.0.1.12, node: {labels: {rack: a}}}
  other:
    profile: other.yaml
    os: "2022"
    hosts:
      win-3: {address: 10.0.1.13}
"""
CACHES: Final = (
    library.library_files,
    library.library,
    library.functions,
    library.names_for,
    rendering._environment,
    rendering._filled,
)


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[World]:
    """Three machines of two groups, and winboot's templates as files that can be edited."""
    shutil.copytree(library.templates_root(), tmp_path / "templates")
    for module in (library, rendering):
        monkeypatch.setattr(module, "templates_root", lambda: tmp_path / "templates")
    _reread()
    world = World(tmp_path, monkeypatch, capsys, Nodes(*NAMES))
    good = (tmp_path / "profile.yaml").read_text(encoding="utf-8")
    (tmp_path / "other.yaml").write_text(good + "kubelet: {config: {maxPods: 50}}\n", encoding="utf-8")
    (tmp_path / "inventory.yaml").write_text(INVENTORY, encoding="utf-8")
    for name in NAMES:
        world.at(name, Found("directories"))
    yield world
    _reread()


def _reread() -> None:
    """Drop the cached texts, so that the files are read again."""
    for cache in CACHES:
        cache.cache_clear()


def _byte(file: str, before: str, after: str) -> Callable[[World], None]:
    """One byte of a file is another."""

    def change(world: World) -> None:
        path = world.folder / file
        old = path.read_bytes()
        new = old.replace(before.encode(), after.encode(), 1)
        assert len(new) == len(old) and sum(a != b for a, b in zip(old, new, strict=True)) == 1
        path.write_bytes(new)
        _reread()

    return change


def _on_the_machine(world: World) -> None:
    world.machines["win-2"].found[0].is_ = "x"


SETTINGS: Final = "the settings of this node changed"
# The change; the nodes that are left alone; the reason in the output; the looks at the nodes.
CASES: Final[dict[str, tuple[Callable[[World], None], tuple[str, ...], str, list[str]]]] = {
    "nothing": (lambda world: None, (), "", []),
    "the profile of a group": (_byte("other.yaml", "maxPods: 50", "maxPods: 51"), ("win-3",), SETTINGS, []),
    "the address of a host": (_byte("inventory.yaml", "10.0.1.12", "10.0.1.22"), ("win-2",), SETTINGS, []),
    "a label of a host": (_byte("inventory.yaml", "rack: a", "rack: b"), ("win-2",), SETTINGS, []),
    "a machine": (_on_the_machine, ("win-2",), "directories (thing)", ["Look"]),
    "a template": (
        _byte("templates/_script.ps1.j2", "Version 2.0", "Version 3.0"),
        NAMES,
        "its script changed",
        [],
    ),
    "the library": (_byte("templates/lib/file.ps1", "# ", "#\t"), NAMES, "winboot's library changed", []),
    "its last lines": (_byte("templates/_start.ps1", " ", "\t"), NAMES, "winboot's library changed", []),
}


def planned(world: World) -> str:
    """The path of a plan of all nodes."""
    path = str(world.folder / "plan.json")
    assert world.winboot("plan", "--out", path) == 2
    for machine in world.machines.values():
        assert machine.modes == ["Look"]
        machine.modes.clear()
    world.capsys.readouterr()
    return path


@pytest.mark.parametrize("what", first(4, CASES))
def test_nodes_that_a_changed_byte_concerns_are_left_alone_by_name(what: str, world: World) -> None:
    change, left, why, looked = CASES[what]
    plan = planned(world)
    change(world)

    assert world.winboot("join", "--plan", plan, "-o", "json") == (2 if left else 0)

    *nodes, _ = lines_of(world.capsys.readouterr().out)
    told = {node["node"]: node["skipped"]["message"] for node in nodes if node["outcome"] == "skipped"}
    assert tuple(sorted(told)) == left
    for name, message in told.items():
        assert message.startswith(f"{name}: ") and why in message and "after the plan" in message
    assert {name: machine.modes for name, machine in world.machines.items()} == {
        name: looked if name in left else ["Look", "Change"] for name in NAMES
    }


def test_a_plan_of_another_winboot_is_refused_before_any_contact(world: World) -> None:
    plan = planned(world)
    connections = world.connections
    world.monkeypatch.setattr(winboot, "__version__", winboot.__version__ + "1")

    assert world.winboot("join", "--plan", plan) == 64

    assert world.connections == connections
    assert "made this plan" in world.capsys.readouterr().err
