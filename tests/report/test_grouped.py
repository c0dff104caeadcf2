"""A plan of many nodes: equal differences once, the node's own values by their names, a new node in one line a step."""

from __future__ import annotations

import io

import pytest
from msgspec import structs
from rich.console import Console

from winboot.report.events import Difference
from winboot.report.grouped import found_lines
from winboot.report.results import NodeReport, Report, StepReport
from winboot.report.table import print_report

WILL = "".join(f"line {number}\n" for number in range(30))


def a_node(number: int, *extra: StepReport, live: bool | None = True) -> NodeReport:
    """A node whose kubelet configuration names it and its address."""
    name, address = f"win-{number}", f"10.0.1.{number}"
    own = Difference(
        f"file C:\\k\\{name}.yaml: content", None, "30 lines", was="", will=f"{WILL}{name} {address}\n"
    )
    steps = (
        StepReport("kubelet-config", "would-change", differences=(own,)),
        StepReport(
            "names", "would-change", differences=(Difference("computer name", "X", f"{name}", reboot=True),)
        ),
        *extra,
    )
    return NodeReport(name, address, "2022", steps, live=live)


def plan(*nodes: NodeReport, texts: bool = False, width: int = 80) -> list[str]:
    out = io.StringIO()
    report = Report("plan", "r1", "2026-01-01T00:00:00+00:00", nodes)
    print_report(report, Console(file=out, width=width), differences=True, texts=texts)
    return out.getvalue().splitlines()


def test_equal_differences_of_many_nodes_are_one_paragraph_with_names_in_their_place() -> None:
    """win-1 is no part of win-12's name."""
    told = plan(*(a_node(number) for number in range(1, 13)))

    assert told[:5] == [
        "all 12 nodes:",
        "  kubelet-config",
        "    + file C:\\k\\<node>.yaml: content: 30 lines  (+31 -0 lines)",
        "  names",
        "    ~ computer name: X -> <node>  (reboots)",
    ]
    (total,) = [line for line in told if "to change," in line]
    assert total.startswith("all 12 nodes: 24 steps to change, 12 restarts of machines, 12 nodes whose")


def test_what_only_some_nodes_have_stands_below_their_names() -> None:
    found = StepReport("kubelet", "would-change", differences=(Difference("flag", "1", "2"),))
    told = plan(a_node(1, found), a_node(2), a_node(3, found))

    at = told.index("win-1, win-3:")
    assert told[at : at + 3] == ["win-1, win-3:", "  kubelet", "    ~ flag: 1 -> 2"]


def test_boot_scripts_of_many_nodes_are_one_paragraph() -> None:
    """Each node's has another hash and another length; a task's command that differs otherwise stands alone."""

    def boot(number: int, more: str = "") -> StepReport:
        old, new = (f"C:\\winboot\\boot-{digit}{number:015x}.ps1" for digit in "ab")
        file = Difference(f"file {new}: content", None, f"{900 + number} lines, sha256 {number:012x}")
        task = Difference("task boot: command", f"-File {old}", f"-File {new}{more}")
        return StepReport("postboot-task", "would-change", differences=(file, task))

    told = plan(a_node(1, boot(1)), a_node(2, boot(2)), a_node(3, boot(3, " -Wait")))

    at = told.index("win-1, win-2:")
    assert told[at : at + 6] == [
        "win-1, win-2:",
        "  postboot-task",
        "    + file C:\\winboot\\boot-<hash>.ps1: content: the node's script",
        "    ~ task boot: command:",
        "        - -File C:\\winboot\\boot-<old>.ps1",
        "        + -File C:\\winboot\\boot-<new>.ps1",
    ]
    assert any(line.startswith("win-3:") for line in told)
    assert "boot-b000000000000001.ps1" in "".join(plan(a_node(1, boot(1)), width=200))


@pytest.mark.parametrize(("texts", "lines"), [(False, 0), (True, 30)])
def test_the_text_of_a_file_is_shown_on_request(texts: bool, lines: int) -> None:
    assert sum("+line " in line for line in plan(a_node(1), texts=texts)) == lines


def test_a_node_alone_has_its_own_values() -> None:
    assert "    ~ computer name: X -> win-1  (reboots)" in plan(a_node(1))


def test_a_new_node_has_one_line_for_each_step_within_80_columns() -> None:
    many = StepReport(
        "directories",
        "would-change",
        differences=tuple(Difference(f"folder C:\\k\\{number}", None, "there") for number in range(40)),
    )
    told = plan(*(a_node(number, many, live=False) for number in range(1, 41)))

    assert told[0] == "all 40 nodes:"
    assert told[2].startswith("  ~ names (reboots): computer name")
    assert told[3].startswith("  + directories: folder C:\\k\\0, ")
    assert len(told) <= 100
    assert max(map(len, told)) <= 80


def test_marks_and_what_a_change_costs_have_colours_on_a_terminal_only() -> None:
    (_, _, line, *_) = found_lines([structs.replace(a_node(1), steps=a_node(1).steps[1:])], 80, texts=False)
    colours = []
    for terminal, environment in ((True, {}), (True, {"NO_COLOR": "1"}), (False, {})):
        out = io.StringIO()
        console = Console(
            file=out, force_terminal=terminal, width=80, _environ={"TERM": "xterm", **environment}
        )
        console.print(line)
        colours.append("\x1b[33m" in out.getvalue())

    assert colours == [True, False, False]
