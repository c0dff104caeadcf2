"""What imports what: no circle, in the tool or in the lab, not even one that an import inside a function hides."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import grimp
import pytest

# What the lab may import from the tool: literals, the two pieces of a script, events, the data about versions, errors. Its
# command line uses the tool as a user does, and may import all of it.
LAB_MAY_IMPORT: Final = (
    "winboot.script.literals",
    "winboot.script.pieces",
    "winboot.report.events",
    "winboot.config.compat",
    "winboot.base.errors",
)
LAB_COMMANDS: Final = "winboot_lab.cli"


def circles(graph: grimp.ImportGraph) -> list[list[str]]:
    """The sets of modules that import each other, directly or through others (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    found: list[list[str]] = []

    def enter(module: str) -> Iterator[str]:
        number[module] = lowest[module] = len(number)
        open_.append(module)
        return iter(sorted(graph.find_modules_directly_imported_by(module)))

    def leave(module: str) -> None:
        if lowest[module] != number[module]:
            return
        at = open_.index(module)
        if len(open_) - at > 1:
            found.append(sorted(open_[at:]))
        del open_[at:]

    for start in sorted(graph.modules):
        way = [] if start in number else [(start, enter(start))]
        while way:
            module, rest = way[-1]
            for imported in rest:
                if imported not in number:
                    way.append((imported, enter(imported)))
                    break
                if imported in open_:
                    lowest[module] = min(lowest[module], number[imported])
            else:
                way.pop()
                leave(module)
                if way:
                    lowest[way[-1][0]] = min(lowest[way[-1][0]], lowest[module])
    return found


def test_no_module_imports_itself_by_way_of_others():
    """Imports for types count: a reader follows them. (That no package imports to the left: the contracts of import-linter.)"""
    graph = grimp.build_graph("winboot", "winboot_lab", exclude_type_checking_imports=False, cache_dir=None)

    assert circles(graph) == []


def test_the_real_engine_imports_what_declares_its_types():
    """`--engine pwsh` imports it before anything else of the lab's engine."""
    subprocess.run([sys.executable, "-c", "import winboot_lab.pwsh.run"], check=True, timeout=60)


def test_a_circle_is_found_wherever_it_begins():
    graph = grimp.ImportGraph()
    for importer, imported in ("ab", "bc", "cb", "cd", "de", "ed", "da"):
        graph.add_import(importer=importer, imported=imported)
    assert circles(graph) == [["a", "b", "c", "d", "e"]]

    graph.remove_import(importer="d", imported="a")
    assert sorted(circles(graph)) == [["b", "c"], ["d", "e"]]


def within(module: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is one of these, or below one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def holes(graph: grimp.ImportGraph) -> list[tuple[str, str]]:
    """Imports through the wall between tool and lab, in either direction: importer and imported."""
    imports = [
        (one, other)
        for one in sorted(graph.modules)
        for other in graph.find_modules_directly_imported_by(one)
    ]
    tool, lab = ("winboot",), ("winboot_lab",)
    return [
        (one, other)
        for one, other in imports
        if (within(one, tool) and within(other, lab))
        or (
            within(one, lab)
            and not within(one, (LAB_COMMANDS,))
            and within(other, tool)
            and not within(other, LAB_MAY_IMPORT)
        )
    ]


def test_the_lab_imports_what_is_allowed_of_the_tool_and_the_tool_nothing_of_the_lab():
    graph = grimp.build_graph("winboot", "winboot_lab", cache_dir=None)

    assert holes(graph) == []
    assert [one for one in (*LAB_MAY_IMPORT, LAB_COMMANDS) if one not in graph.modules] == []


@pytest.mark.parametrize(
    ("one", "other", "hole"),
    [
        ("winboot_lab.mirror", "winboot.base.retry", True),
        ("winboot_lab.mirror", "winboot.a_package_that_comes_later", True),
        ("winboot_lab.mirror", "winboot", True),
        ("winboot_lab.engine.run", "winboot.report.events_of_others", True),
        ("winboot.cli.lab", "winboot_lab.cli", True),
        ("winboot_lab.cli.demo", "winboot.operations.join", False),
        ("winboot_lab.programs.kubelet", "winboot.config.compat.flags", False),
        ("winboot_lab.mirror", "winboot_lab.up", False),
    ],
)
def test_a_hole_in_the_wall_is_found(one: str, other: str, hole: bool):
    graph = grimp.ImportGraph()
    graph.add_import(importer=one, imported=other)

    assert holes(graph) == ([(one, other)] if hole else [])
