"""A report file is whole at any moment, its owner's alone, and its loss hides nothing of what was done."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from winboot.base.errors import ReportNotWritten, UsageError
from winboot.cli.options import Output, View
from winboot.cli.output import Reporting, progress
from winboot.node.run import Stop
from winboot.report.events import RebootWanted
from winboot.report.file import ReportFile
from winboot.report.finding import Finding
from winboot.report.journal import Journal
from winboot.report.results import NodeReport, Report

REPORT = Report("join", "r1", "now", (NodeReport("n1", "10.0.0.1", "2022"),))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o277])
def test_what_we_write_is_its_owners_alone_whatever_the_umask(mask: int, tmp_path: Path) -> None:
    former = os.umask(mask)
    try:
        ReportFile(tmp_path / "reports" / "r.html").save(REPORT)
        Journal(tmp_path / "state" / "runs" / "r1" / "n1.jsonl").close()
    finally:
        os.umask(former)

    folders = [tmp_path / "reports", *(tmp_path / "state" / one for one in ("", "runs", "runs/r1"))]
    assert [mode(one) for one in folders] == [0o700] * 4
    assert [mode(folders[0] / "r.html"), mode(folders[-1] / "n1.jsonl")] == [0o600] * 2


@pytest.mark.parametrize("name", ["r.html", "r.jsonl", "r.xml"])
def test_a_file_that_others_could_read_is_replaced_by_one_that_they_cannot(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("of before")
    path.chmod(0o666)

    ReportFile(path).save(REPORT)

    assert mode(path) == 0o600
    assert "n1" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_the_place_of_the_part_file_is_not_followed(tmp_path: Path) -> None:
    """In a folder that others may write to, a link could make winboot overwrite any file of its user."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".r.html.part").symlink_to(victim)

    ReportFile(tmp_path / "r.html").save(REPORT)

    assert victim.read_text() == "mine"


def _full(monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_full_disk_leaves_the_report_of_before_and_has_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is replaced as a whole, or not at all; no other file is left in the folder."""
    file = ReportFile(tmp_path / "r.jsonl")
    file.save(REPORT)
    before = file.path.read_text()
    _full(monkeypatch)

    with pytest.raises(ReportNotWritten, match=r"r\.jsonl was not written: the disk is full"):
        file.save(REPORT)

    assert file.path.read_text() == before
    assert list(tmp_path.iterdir()) == [file.path]


def test_a_full_disk_has_its_own_code_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once it was `wrong use`, 64, although every node was done."""
    reporting, stop = Reporting(tmp_path / "r.html"), Stop()
    assert reporting.end(REPORT, stop) == 0
    _full(monkeypatch)

    assert reporting.end(REPORT, stop) == 74
    said = capsys.readouterr().err
    assert "the disk is full" in said
    assert "The work on the nodes is done as shown" in said
    stop.request(15)
    assert reporting.end(REPORT, stop) == 143


def test_a_file_that_cannot_be_written_is_refused_before_any_work_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").write_text("")

    for path in (tmp_path / "folder.html", tmp_path / "file" / "r.html", Path("/proc/r.html")):
        with pytest.raises(UsageError, match="cannot be written"):
            ReportFile(path)
    (tmp_path / "r.html").write_text("of before")
    ReportFile(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == "of before"


class Turns:
    """A report that has more nodes each time."""

    def __init__(self) -> None:
        self.nodes = 0

    def current(self) -> Report:
        return Report("join", "r1", "now", REPORT.nodes * self.nodes)


def _await(condition: Callable[[], bool]) -> None:
    """Until it is so; a test that hangs here is ended by pytest's own bound."""
    pause = threading.Event()
    while not condition():
        pause.wait(0.01)


def test_the_file_follows_the_nodes_as_they_end(tmp_path: Path) -> None:
    """The file of a killed run has every result so far."""
    file, turns = ReportFile(tmp_path / "r.jsonl"), Turns()

    def nodes() -> int:
        if not file.path.exists():
            return -1
        lines = [json.loads(line) for line in file.path.read_text().splitlines()]
        assert lines[-1]["kind"] == "run"
        return len(lines) - 1

    with file.kept():
        for number in (0, 1, 3):
            turns.nodes = number
            file.keep(turns.current)
            _await(lambda number=number: nodes() == number)  # type: ignore[misc]


def a_run(count: int) -> Report:
    return Report(
        "join", "r1", "now", tuple(NodeReport(f"n{one}", "10.0.0.1", "2022") for one in range(count))
    )


def test_json_lines_follow_the_nodes_as_they_end(capfd: pytest.CaptureFixture[str]) -> None:
    """Each node once, in the order in which they end; those that were left, the findings and the run at the end."""
    reporting, report, seen = Reporting(None, Output.json), a_run(3), ""

    def told() -> list[str]:
        nonlocal seen
        seen += capfd.readouterr().out
        return [data.get("node", data["kind"]) for data in map(json.loads, seen.splitlines())]

    with reporting.kept() as keep:
        keep(lambda: report)
        for index, expected in ((1, ["n1"]), (0, ["n1", "n0"])):
            keep(lambda: report, report.nodes[index])
            _await(lambda expected=expected: told() == expected)  # type: ignore[misc]
    found = (Finding("bootstrap", "warning", "it may not", "Bind it."),)
    assert reporting.end(replace(report, preflight=found), Stop()) == 0

    assert told() == ["n1", "n0", "n2", "preflight", "run"]


class Gone(io.StringIO):
    """The pipe to a reader that has seen enough."""

    def flush(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def test_a_reader_that_has_gone_ends_no_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is met when all is done, and the file of --report is written."""
    monkeypatch.setattr(sys, "stdout", Gone())
    reporting, report = Reporting(tmp_path / "r.jsonl", Output.json), a_run(2)

    with reporting.kept() as keep:
        for node in report.nodes:
            keep(lambda: report, node)
    assert reporting.end(report, Stop()) == 0

    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 3


def test_the_file_of_the_report_is_announced_once_it_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "reports" / "r.html"

    assert Reporting(page, Output.json).end(a_run(1), Stop()) == 0

    assert page.is_file()
    assert capsys.readouterr().err == f"written: {page}\n"


class Dead(io.StringIO):
    """A terminal that was closed, or a file on a disk that is full."""

    def write(self, text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")

    def isatty(self) -> bool:
        return True


def test_a_terminal_that_was_closed_fails_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Dead())

    for force in (False, True):
        monkeypatch.setattr(Dead, "isatty", lambda self, answer=force: answer)
        with progress(View(Output.table), ["n1"]) as listener:
            listener.say("n1", "connecting")
            listener.event("n1", RebootWanted("r1", ("computer-name",)))


def test_a_report_that_standard_output_does_not_take_has_its_own_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Dead())

    assert Reporting(None, Output.json).end(REPORT, Stop()) == 74
    assert "not written to standard output: Input/output error" in capsys.readouterr().err


def test_the_last_report_is_never_replaced_by_an_earlier_one(tmp_path: Path) -> None:
    """A thread that is still rendering when the run ends writes nothing any more."""
    file = ReportFile(tmp_path / "r.jsonl")
    rendering, go_on = threading.Event(), threading.Event()

    def slow() -> Report:
        rendering.set()
        go_on.wait()
        return Report("join", "r1", "now", ())

    with file.kept():
        file.keep(slow)
        rendering.wait()
        file.end()
        file.save(REPORT)
        go_on.set()

    assert '"node": "n1"' in file.path.read_text()
