"""What happened, as data: states, exit codes, and every form of the report."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from msgspec import structs
from rich.console import Console

from winboot.base.errors import Interrupted, LoginRefused, NoNodeYet, ScriptFailed, Superseded, Unreachable
from winboot.report.causes import causes
from winboot.report.data import json_lines, junit, report_of
from winboot.report.differences import difference_text
from winboot.report.events import Difference, Problem, StepDone, StepState
from winboot.report.page import html
from winboot.report.results import Failure, Need, NodeReport, Report, StepReport, collect
from winboot.report.table import print_report


def a_step(state: StepState = "ok", name: str = "kubelet", *differences: Difference) -> StepDone:
    """A step event with nothing special about it."""
    return StepDone("run", name, state, 5, differences)


def a_node(*states: StepState, failure: Failure | None = None, node: str = "win-1") -> NodeReport:
    """A node whose steps ended in these states."""
    steps = tuple(StepReport(f"step-{n}", state) for n, state in enumerate(states))
    return NodeReport(node, "10.0.0.1", "2022", steps, failure)


def a_report(*nodes: NodeReport, command: str = "join") -> Report:
    """A report over these nodes."""
    return Report(command, "r1", "2026-01-01T00:00:00+00:00", nodes)


GONE = Failure.of(Unreachable("win-1: nothing answers", hint="winboot ping"))
REFUSED = Failure.of(LoginRefused("win-1: refused", hint="check user"))
STOPPED = Failure.of(Interrupted("win-1: interrupted", hint="run it again"))
TAKEN = Failure.of(Superseded("win-1: a newer run", hint="let it finish"))
LEFT = Failure.of(NoNodeYet("win-1: left alone", hint="join"))

EXIT_CODES = [
    ("all as wanted", [a_node("ok")], 0),
    ("all changed", [a_node("changed", "ok")], 0),
    ("a plan with something to do", [a_node("would-change"), a_node("ok")], 2),
    ("one failed, one done", [a_node("failed"), a_node("ok")], 3),
    ("all failed in the steps", [a_node("failed"), a_node("failed")], 1),
    ("all out of reach", [a_node(failure=GONE), a_node(failure=GONE)], 69),
    ("all refused", [a_node(failure=REFUSED)], 77),
    ("failed for different reasons", [a_node(failure=GONE), a_node(failure=REFUSED)], 1),
    ("one blocked for want of a drain", [a_node("blocked"), a_node("ok")], 2),
    ("stopped by Ctrl-C when one was done", [a_node(failure=STOPPED), a_node("changed")], 130),
    ("one taken over by another run, one failed", [a_node(failure=TAKEN), a_node("failed")], 75),
    ("one left alone", [a_node(failure=LEFT), a_node("ok")], 2),
    ("one left alone, one failed", [a_node(failure=LEFT), a_node("failed")], 3),
    ("left alone after a step had failed", [a_node("failed", failure=LEFT)], 1),
    ("no node at all", [], 0),
]


@pytest.mark.parametrize(
    ("nodes", "code"), [row[1:] for row in EXIT_CODES], ids=[row[0] for row in EXIT_CODES]
)
def test_the_exit_code_shows_how_the_run_ended(nodes: list[NodeReport], code: int) -> None:
    """0 done, 2 changes found, 3 some failed; the common code where all failed alike."""
    assert a_report(*nodes).exit_code == code


def test_the_worst_cause_comes_first_and_what_most_nodes_share_before_others() -> None:
    nodes = [
        *(
            a_node(node=f"win-{n}", failure=structs.replace(STOPPED, message="interrupted"))
            for n in (1, 2, 3)
        ),
        a_node(node="win-4", failure=REFUSED),
        *(a_node(node=f"win-{n}", failure=structs.replace(GONE, message="nothing answers")) for n in (5, 6)),
    ]

    assert [cause.nodes for cause in causes(nodes)] == [
        ("win-5", "win-6"),
        ("win-4",),
        ("win-1", "win-2", "win-3"),
    ]


def test_a_node_that_was_interrupted_has_not_failed() -> None:
    """The user stopped it; nothing is wrong with it."""
    assert a_node("changed", failure=STOPPED).outcome == "interrupted"


def test_a_step_that_was_changed_stays_changed_when_a_later_pass_finds_it_in_order() -> None:
    """The second look of the next pass must not hide that this run changed something."""
    found = Difference("service kubelet: state", "Stopped", "Running")
    (step,) = collect([a_step("would-change", "kubelet", found), a_step("changed"), a_step("ok")])

    assert (step.state, step.differences, step.ms) == ("changed", (found,), 15)


def test_a_step_that_was_right_all_along_is_ok() -> None:
    """Passes that find nothing leave nothing."""
    assert collect([a_step(), a_step()])[0].state == "ok"


@pytest.mark.parametrize(
    ("difference", "line"),
    [
        (Difference("x", None, "1"), "+ x: 1"),
        (Difference("x", "1", None), "- x: 1"),
        (Difference("x", "1", "2"), "~ x: 1 -> 2"),
        (Difference("x", "1", "2", reboot=True, disturbs=True), "~ x: 1 -> 2  (reboots, disturbs pods)"),
        (Difference("x", "1", "2", policy=True), "~ x: 1 -> 2  (held by policy or another owner)"),
    ],
)
def test_a_difference_reads_like_a_terraform_plan(difference: Difference, line: str) -> None:
    """Plus, minus and tilde, with what the change would cost."""
    assert difference_text(difference) == line


LONG = "C:\\k\\kubelet.exe " + " ".join(f"--flag-{number}=value" for number in range(12))


def test_a_long_value_is_shown_in_full_one_side_below_the_other() -> None:
    """Two command lines that were cut at the same place looked alike."""
    text = difference_text(Difference("service kubelet: command line", LONG, f"{LONG} --v=2", disturbs=True))

    assert text.splitlines() == [
        "~ service kubelet: command line:  (disturbs pods)",
        f"    - {LONG}",
        f"    + {LONG} --v=2",
    ]


def test_a_file_is_shown_as_a_diff() -> None:
    was, will = ("\n".join(["a: 1", "b: 2", *rest, "c: 3", "d: 4", "e: 5"]) for rest in ([], ["maxPods: 60"]))

    text = difference_text(Difference("file x: content", "5 lines", "6 lines", was=was, will=will))

    assert text.splitlines() == [
        "~ file x: content: 5 lines -> 6 lines",
        *("    …", "     a: 1", "     b: 2", "    +maxPods: 60", "     c: 3", "     d: 4"),
    ]


@pytest.mark.parametrize(("lines", "shown"), [(33, 33), (200, 0)])
def test_a_new_file_is_shown_unless_it_is_a_long_script_of_winboots_own(lines: int, shown: int) -> None:
    """A bare machine's plan was half made of the PowerShell of one task. What differs is shown however long it is."""
    will = "".join(f"line {number}\n" for number in range(lines))

    added = difference_text(Difference("file x: content", None, f"{lines} lines", will=will))
    changed = difference_text(Difference("file x: content", "1 line", "many", was="", will=will))

    assert added.count("+line") == shown
    assert changed.count("+line") == lines


def test_a_plan_ends_with_what_a_join_refuses_and_costs_in_all() -> None:
    steps = (
        StepReport("windows-features", "would-change", 1, (Difference("f", None, "on", reboot=True),)),
        StepReport("names", "would-change", 1, (Difference("n", "a", "b", reboot=True),)),
        StepReport("pod-network", "would-change", 1, (Difference("p", None, "x", disrupts=True),)),
        StepReport(
            "kubelet", "would-change", 1, (Difference("k", "a", "b", disturbs=True, key="service:start"),)
        ),
        StepReport("held", "would-change", 1, (Difference("h", "a", "b", reboot=True, policy=True),)),
    )
    first = structs.replace(a_node(), steps=steps, live=True, needs=(Need("--drain", "pods run on it"),))
    report = a_report(first, structs.replace(a_node(node="win-2"), steps=steps[2:3], live=False))
    out = io.StringIO()

    print_report(report, Console(file=out, width=80, soft_wrap=True), differences=True)

    said = out.getvalue()
    assert "win-1: join refuses without --drain: pods run on it\n" in said
    assert said.count("to change") == 2, "the heading of a column, and the total"
    assert (
        "all 2 nodes: 5 steps to change, 1 restart of the machine, 2 network blips, 1 service restarted"
        in said
    )
    assert "A join refuses without <code>--drain</code>: pods run on it" in html(report)


def _full() -> Report:
    problem = Problem("NotReady", "no <network>", "look & see", "line 3")
    bad = StepReport("cni", "failed", 3, (Difference("f", None, "<b>"),), problem)
    node = NodeReport("win-1", "10.0.0.1", "2022", (bad, StepReport("x", "ok")), None, notes=("a note",))
    return a_report(node, a_node(failure=GONE, node="win-2"))


def test_json_lines_hold_everything() -> None:
    """One object a node, the run last."""
    lines = [json.loads(line) for line in json_lines(_full()).splitlines()]

    assert [line["kind"] for line in lines] == ["node", "node", "run"]
    assert lines[0]["steps"][0]["problem"]["id"] == "NotReady"
    assert lines[1]["failure"]["exit_code"] == 69
    assert lines[2]["exit_code"] == 1


def test_junit_has_failures_with_their_hints() -> None:
    """A CI shows the step as a test case of the node."""
    root = ET.fromstring(junit(_full()))

    failure = root.find("./testsuite[@name='win-1']/testcase[@name='cni']/failure")
    assert failure is not None
    assert (failure.get("type"), failure.text) == ("NotReady", "look & see")
    assert root.find("./testsuite[@name='win-2']/testcase/error") is not None


def test_junit_means_the_same_in_any_encoding() -> None:
    """Its declaration says UTF-8; standard output may be of another one."""
    node = NodeReport("n1", "10.0.0.1", "2022", (), Failure.of(ScriptFailed("漢字 ü")))

    text = junit(Report("join", "r1", "now", (node,)))

    assert text.isascii()
    error = ET.fromstring(text).find("./testsuite/testcase/error")
    assert error is not None
    assert error.get("message") == "漢字 ü"


def test_the_page_escapes_what_machines_say_and_fetches_nothing() -> None:
    """A value from a machine cannot become markup; the page works without a network."""
    page = html(_full())

    assert "no &lt;network&gt;" in page
    assert "<b>" not in page.split("</style>")[1]
    assert "http://" not in page
    assert "https://" not in page


def test_the_table_names_the_failed_step_its_cause_and_the_next_step() -> None:
    """What needs attention stands above the table."""
    console = Console(width=120, record=True, file=io.StringIO())
    print_report(_full(), console)
    text = console.export_text()

    assert "NotReady: no <network>" in text
    assert "next: look & see" in text
    assert "next: winboot ping" in text


def test_no_message_of_a_machine_looks_like_another_nodes() -> None:
    forged = "no network\nwin-2: kubelet changed\nwin-2 2022 changed yes"
    step = StepReport("kubelet", "failed", 1, (), Problem("X", forged, forged, forged))
    report = replace(
        a_report(a_node("ok")),
        nodes=(
            NodeReport("win-1", "", "2022", (step,), notes=(forged,)),
            NodeReport("win-3", "", "2022", failure=Failure("NodeFailed", forged, forged, 1)),
        ),
    )

    assert [line for line in _printed(report).splitlines() if line.startswith("win-2")] == []


def _behind_a_proxy(number: int) -> NodeReport:
    """A machine that stopped at its first step, as twelve others did."""
    problem = Problem("proxy", "the proxy http://p:3128: no such host", "Check `proxy`.")
    waits = Problem("NeedsStep", "it builds on a step that did not succeed", "Fix that step.")
    steps = (
        StepReport("download-sources", "failed", 300 + number, (), problem),
        StepReport("computer-name", "blocked", 0, (), waits),
        StepReport("artifacts", "blocked", 0, (), waits),
    )
    return NodeReport(f"win-{number}", "10.0.0.1", "2022", steps)


def _printed(report: Report) -> str:
    out = io.StringIO()
    print_report(report, Console(file=out, width=80, soft_wrap=True))
    return out.getvalue()


def test_a_cause_that_nodes_share_is_reported_once_and_what_waits_for_it_is_one_line() -> None:
    said = _printed(a_report(*map(_behind_a_proxy, range(1, 13))))

    names = ", ".join(f"win-{number}" for number in range(1, 13))
    assert said.splitlines()[:4] == [
        f"{names}: download-sources failed",
        "  proxy: the proxy http://p:3128: no such host",
        "  next: Check `proxy`.",
        f"{names}: 2 steps wait and will follow: computer-name, artifacts",
    ]
    assert (said.count("no such host"), said.count("artifacts")) == (1, 1)


def test_of_a_fleet_the_first_nodes_are_named_with_the_number_of_the_others() -> None:
    """Each of them is in the table below."""
    said = _printed(a_report(*map(_behind_a_proxy, range(1, 41))))

    assert "win-12 and 28 more: download-sources failed" in said
    assert "win-40 " in said


def test_the_same_error_of_many_machines_is_one_paragraph() -> None:
    """Their messages differ in the name of the node alone."""
    away = [Failure.of(Unreachable(f"win-{n}: nothing answers", hint="winboot ping")) for n in range(1, 4)]
    nodes = [a_node(failure=failure, node=f"win-{n}") for n, failure in enumerate(away, 1)]

    said = _printed(a_report(*nodes, a_node(failure=REFUSED, node="win-1")))

    assert "win-1, win-2, win-3: nothing answers\n  next: winboot ping\n" in said
    assert "win-1: refused\n  next: check user\n" in said


def a_wide_report() -> Report:
    """Forty nodes with long names, of which some failed, restarted and lost their connection."""
    steps = (
        StepReport("a", "ok"),
        StepReport("b", "changed"),
        StepReport("c", "failed"),
        StepReport("d", "blocked"),
    )
    return Report(
        "join",
        "r1",
        "2026-11-24T12:00:00+00:00",
        tuple(
            NodeReport(
                f"win-prod-payments-frontend-eu-{number:02}",
                "10.0.0.1",
                "2019",
                steps=steps,
                reboots=1,
                detached=1,
                reconnects=2,
                seconds=278.31,
                ready=False,
            )
            for number in range(40)
        ),
    )


@pytest.mark.parametrize("width", [80, 60, 40])
def test_on_a_narrow_terminal_columns_go_and_no_name_is_cut(width: int) -> None:
    report = a_wide_report()
    file = io.StringIO()
    print_report(report, Console(file=file, width=width, soft_wrap=True))
    lines = file.getvalue().splitlines()

    for node in report.nodes:
        assert any(line.startswith(f"{node.node} ") for line in lines)
    (head,) = [line for line in lines if line.startswith("node ")]
    assert len(head.rstrip()) <= width
    assert not any("…" in line for line in lines)


def test_in_a_pipe_every_column_is_there() -> None:
    file = io.StringIO()
    print_report(a_wide_report(), Console(file=file, width=1000, soft_wrap=True))

    (head,) = [line for line in file.getvalue().splitlines() if line.startswith("node ")]
    assert head.split() == [
        *("node", "os", "outcome", "ready", "failed", "changed", "blocked", "ok"),
        *("reboots", "detached", "reconnects", "seconds"),
    ]


def test_a_page_begins_with_the_causes_each_once_with_the_nodes_that_share_it() -> None:
    """Twelve open cards hid the one cause of all."""
    problem = Problem("DownloadFailed", "The proxy name could not be resolved", "name another proxy")
    steps = (
        StepReport("directories", "changed", 1),
        StepReport("artifacts", "failed", 1, (), problem),
        StepReport("kubelet", "blocked", 0, (), Problem("NeedsStep", "artifacts is not done")),
    )
    nodes = [structs.replace(a_node(node=f"win-{n}"), steps=steps) for n in range(1, 13)]

    page = html(a_report(*nodes))

    head = page.partition("<table>")[0]
    assert head.count("The proxy name could not be resolved") == 1
    assert all(node.node in head for node in nodes)
    assert "1 step waits and will follow: kubelet" in head
    assert "<details open" not in page
    card = page.partition('<div id="win-1">')[2]
    assert card.index("artifacts") < card.index("kubelet") < card.index("directories")


def test_a_page_shows_when_each_node_and_each_step_was_worked_on() -> None:
    """In the order of time; what was right all along takes no room."""
    steps = (
        StepReport("kubelet", "changed", 500, ended=8.0),
        StepReport("windows-features", "changed", 2000, ended=3.0),
        StepReport("dynamic-ports", "ok", 10),
    )
    nodes = (
        NodeReport("win-1", "10.0.0.1", "2022", steps, seconds=10.0),
        NodeReport("win-2", "10.0.0.2", "2022", began=10.0, seconds=30.0),
    )
    page = html(replace(a_report(*nodes), seconds=40.0))

    of_nodes, of_steps = page.split("Time of each node")[1], page.split("time of each step")[1]
    assert "margin-left:0.00%;width:25.00%" in of_nodes and "margin-left:25.00%;width:75.00%" in of_nodes
    table = of_steps.split("</table>")[0]
    assert table.index("windows-features") < table.index("kubelet") and "dynamic-ports" not in table
    assert "margin-left:10.00%;width:20.00%" in table and "margin-left:75.00%;width:5.00%" in table
    assert page.count("time of each step") == 1


def test_when_it_was_comes_back_from_json() -> None:
    node = NodeReport(
        "win-1",
        "10.0.0.1",
        "2022",
        (StepReport("kubelet", "changed", 500, ended=8.25), StepReport("hosts", "ok")),
        began=1.5,
        seconds=10.0,
    )

    assert report_of(json_lines(a_report(node))).nodes == (node,)


def test_a_report_that_was_read_back_shows_the_same_times() -> None:
    """Just below half a tenth of a second: kept as milliseconds, it is that half."""
    report = replace(a_report(structs.replace(a_node("ok"), seconds=0.0499995)), seconds=0.0499995)

    assert _text(report_of(json_lines(report))) == _text(report)


def _text(report: Report) -> str:
    out = io.StringIO()
    print_report(report, Console(file=out, width=80, soft_wrap=True))
    return out.getvalue()


def test_few_nodes_that_need_attention_are_open() -> None:
    assert "<details open" in html(_full())


def test_a_page_begins_with_what_was_asked_for() -> None:
    """The head shows version, profile and filters before the first table; user input appears as text, never as markup."""
    asked = {"inventory": "inventory.yaml", "profile": "profile.yaml (Kubernetes 1.36.4)", "limit": "<win-*>"}
    report = replace(a_report(a_node("ok")), asked=asked)

    head = html(report).partition("<table>")[0]

    assert f"winboot {report.winboot}" in head
    assert "profile <code>profile.yaml (Kubernetes 1.36.4)</code>" in head
    assert "limit <code>&lt;win-*&gt;</code>" in head
    assert report_of(json_lines(report)).asked == asked
