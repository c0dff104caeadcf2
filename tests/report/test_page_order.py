"""The page begins with what needs attention; charts come last, and a wait has a bar of its own."""

from __future__ import annotations

from winboot.report.events import Difference
from winboot.report.page import html, timeline
from winboot.report.results import Failure, NodeReport, Report, StepReport


def step(name: str, ended: float, seconds: float) -> StepReport:
    change = Difference(what="a file", is_=None, want="1 line")
    return StepReport(name, "changed", int(seconds * 1000), differences=(change,), ended=ended)


JOINED = NodeReport(
    "win-1",
    "10.0.1.11",
    "2022",
    (step("computer-name", 3.0, 1.0), step("containerd", 40.0, 2.0), step("kubelet", 42.5, 2.5)),
    seconds=60.0,
    pipelines=1,
)


def test_a_wait_is_a_part_of_the_time_with_its_own_bar() -> None:
    parts = [(one.name, one.begin, one.seconds) for one in timeline(JOINED)]

    assert parts == [
        ("wait before computer-name", 0.0, 2.0),
        ("computer-name", 2.0, 1.0),
        ("wait before containerd", 3.0, 35.0),
        ("containerd", 38.0, 2.0),
        ("kubelet", 40.0, 2.5),
        ("wait after the last step", 42.5, 17.5),
    ]


def test_causes_and_changes_stand_above_the_charts_and_no_column_is_all_zeros() -> None:
    failed = NodeReport(
        "win-2", "10.0.1.12", "2022", failure=Failure("Unreachable", "nothing answers", "Is it on?", 69)
    )

    page = html(Report("join", "run", "now", (JOINED, failed), 60.0))

    order = ["nothing answers", ">outcome<", "a file", "time of each step", "Time of each node"]
    assert [page.index(one) for one in order] == sorted(page.index(one) for one in order)
    assert ">changed</th>" in page and ">detached</th>" not in page
    assert "1 pipeline," in page
