"""Where answers go: the console for people, standard output for programs, files for both."""

from __future__ import annotations

import errno
import os
import queue
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Final, TextIO

import typer
from rich.console import Console

from winboot.base import exits
from winboot.base.errors import ForeignFolder, ReportNotWritten, UsageError
from winboot.base.private import open_to_append
from winboot.cli.board import Board
from winboot.cli.colour import room, say, tell
from winboot.cli.options import Output, View
from winboot.cli.progress import Both, Lines, ProgressConsole, Quiet
from winboot.node.fleet import Keep
from winboot.node.run import Listener, Stop
from winboot.report.archive import Archive
from winboot.report.data import junit, node_line, run_line
from winboot.report.file import ReportFile
from winboot.report.flows import FlowReport, flow_lines, flows_junit, one_document, print_flows
from winboot.report.line import json_line
from winboot.report.results import NodeReport, Report
from winboot.report.table import print_report

# Columns of a pipe: no winboot table is wider.
_WIDE: Final = 1000
# Between two columns.
_GAP: Final = "  "


class _Output(Console):
    """Standard output. rich would end the process where its reader has gone, whatever there is left to do."""

    def on_broken_pipe(self) -> None:
        """Let the caller know."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console(*, stderr: bool = False) -> Console:
    """Standard output; rich turns colours off by itself where they do not belong (pipes, NO_COLOR). A pipe or a file is as
    wide as what is written to it."""
    made = _Output(soft_wrap=True, highlight=False, stderr=stderr)
    if not made.is_terminal:
        made.width = _WIDE
    return made


@contextmanager
def progress(wanted: View | Output, nodes: Sequence[str]) -> Iterator[Listener]:
    """A live board on a terminal, plain lines elsewhere, on standard error; nothing for programs' output. With `verbose` every
    step has its line, on a terminal, too; `log_file` gets these lines in any case. A form alone is a view without
    either.

    Raises UsageError where the log cannot be written.
    """
    view = wanted if isinstance(wanted, View) else View(wanted)
    errors = ProgressConsole()
    with ExitStack() as open_until_the_end:
        listeners: list[Listener] = []
        if view.log_file is not None:
            listeners.append(_log(view.log_file, open_until_the_end))
        if view.output is not Output.table:
            listeners.append(Quiet())
        elif errors.is_terminal and not view.verbose:
            listeners.append(open_until_the_end.enter_context(Board(errors, nodes)))
        else:
            listeners.append(Lines(errors, everything=view.verbose))
        yield Both(listeners)
    if errors.lost:
        # What is still said there must not end the command either.
        sys.stderr = _nowhere()


def _log(path: Path, open_until_the_end: ExitStack) -> Listener:
    try:
        file = os.fdopen(open_to_append(path), "a", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(
            f"--log-file {path}: {error.strerror}", hint="Give a file that you can write."
        ) from error
    return Lines(ProgressConsole(open_until_the_end.enter_context(file)), everything=True)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - open until the process ends


def show(report: Report, form: Output, *, differences: bool = False, texts: bool = False) -> None:
    """Print the report in the form asked for; `texts`: differences in full."""
    if form is Output.json:
        _Streamed().rest(report)
    elif form is Output.junit:
        sys.stdout.write(junit(report))
    else:
        print_report(report, console(), differences=differences, texts=texts)


def archive(report: Report, *, ended: bool) -> None:
    """Keep the report for `winboot runs`. Where that cannot be done, a line says so, and the work continues."""
    try:
        archived = Archive()
        archived.keep(report, ended=ended)
        if ended:
            archived.prune()
    except (OSError, ForeignFolder) as error:
        if ended:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            typer.echo(f"warning: winboot could not keep the report of this run: {why}", err=True)


def age(moment: str) -> str:
    """How long ago an ISO moment was, in its largest unit as kubectl writes it: 12s, 5m, 3h, 2d."""
    seconds = max(0, int((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def columns(rows: Sequence[Mapping[str, str]]) -> None:
    """Print rows below their keys. On a terminal that is too narrow the cells of wide columns take several lines, wrapped at
    words; a pipe gets a line for each row. No value is cut."""
    if not rows:
        return
    _in_columns([{key: key.upper() for key in rows[0]}, *rows])


def listed(rows: Sequence[tuple[str, str]]) -> None:
    """Print names, and next to each its text, in the same way."""
    _in_columns([{"name": name, "text": text} for name, text in rows])


def _in_columns(table: Sequence[Mapping[str, str]]) -> None:
    widths = _widths(table, room())
    for row in table:
        cells = [_lines(row[key], width) for key, width in widths.items()]
        for line in zip_longest(*cells, fillvalue=""):
            padded = (cell.ljust(width) for cell, width in zip(line, widths.values(), strict=True))
            typer.echo(_GAP.join(padded).rstrip())


def _lines(cell: str, width: int) -> list[str]:
    return textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) or [""]


def _widths(table: Sequence[Mapping[str, str]], room: int | None) -> dict[str, int]:
    """What each column needs; where there is less room, the widest ones are narrowed, down to their longest word."""
    widths = {key: max(len(row[key]) for row in table) for key in table[0]}
    least = {key: max(len(word) for row in table for word in (row[key].split() or [""])) for key in widths}
    over = sum(widths.values()) + len(_GAP) * (len(widths) - 1) - (room or sys.maxsize)
    for _ in range(over):
        widest = max(widths, key=lambda key: (widths[key] > least[key], widths[key]))
        widths[widest] = max(widths[widest] - 1, least[widest])
    return widths


def show_flows(report: FlowReport, form: Output, *, passed: bool = False) -> None:
    """Print what became of the flows in the form asked for; for people with those that `passed`, or their number."""
    if form is Output.json:
        sys.stdout.writelines(flow_lines(report))
    elif form is Output.junit:
        sys.stdout.write(flows_junit(report))
    else:
        print_flows(report, console(), passed=passed)
    sys.stdout.flush()


class _Streamed:
    """JSON lines on standard output: a node's when it has ended, the others when the run has.

    A thread writes them: a slow reader (a pager) must not keep the nodes waiting.
    """

    def __init__(self) -> None:
        self._ended: queue.SimpleQueue[NodeReport | None] = queue.SimpleQueue()
        self._written: set[str] = set()
        self._thread = threading.Thread(target=self._follow, name="json-lines", daemon=True)

    def start(self) -> None:
        """From now on nodes are written as they end."""
        self._thread.start()

    def node(self, report: NodeReport) -> None:
        """A node has ended. Called from the nodes' threads, which wait for nothing."""
        self._ended.put(report)

    def rest(self, report: Report) -> None:
        """Write what was not written yet, the line of the run last."""
        if self._thread.ident is not None:
            self._ended.put(None)
            self._thread.join()
        for node in report.nodes:
            self._write(node)
        sys.stdout.writelines([*map(json_line, report.preflight), run_line(report)])
        sys.stdout.flush()

    def _follow(self) -> None:
        while (node := self._ended.get()) is not None:
            # A reader that has gone, or a full disk: `rest` meets it again.
            with suppress(OSError):
                self._write(node)
                sys.stdout.flush()

    def _write(self, node: NodeReport) -> None:
        if node.node not in self._written:
            # Before it is written: what cannot be flushed stays in the stream's buffer.
            self._written.add(node.node)
            sys.stdout.write(node_line(node))


class Reporting:
    """What becomes of a command's report: standard output in the form asked for, the file of `--report`, if one is wanted,
    and the exit code.
    """

    def __init__(self, path: Path | None, form: Output = Output.table, *, passed: bool = False) -> None:
        """With `passed`, flows that passed are printed, too. Raises UsageError where the file could not be written, before any
        work is done."""
        self._file = None if path is None else ReportFile(path)
        self._form = form
        self._passed = passed
        self._streamed = _Streamed()
        self._begun = False

    @contextmanager
    def kept(self) -> Iterator[Keep]:
        """Report each node that ends, in the file and in the JSON lines, until the block ends."""
        if self._form is Output.json:
            self._streamed.start()
        with self._file.kept() if self._file is not None else nullcontext():
            yield self._keep

    def _keep(self, current: Callable[[], Report], ended: NodeReport | None = None) -> None:
        if not self._begun:
            # For `winboot runs`, should this run be killed. Nodes are not begun yet.
            self._begun = True
            archive(current(), ended=False)
        if self._file is not None:
            self._file.keep(current)
        if ended is not None and self._form is Output.json:
            self._streamed.node(ended)

    def end(
        self,
        report: Report,
        stop: Stop,
        *,
        differences: bool = False,
        texts: bool = False,
        flows: FlowReport | None = None,
    ) -> int:
        """Write the file, print the report and what became of `flows`, and give the exit code of the command.

        What cannot be written is named on standard error and hides no other code: the work is done. A reader of standard
        output that has gone has seen enough.
        """
        archive(report, ended=True)
        saved = self._tried(lambda: self._save(report))
        codes = (
            stop.exit_code if stop.requested else exits.DONE,
            report.exit_code,
            flows.exit_code if flows is not None else exits.DONE,
            saved,
            self._tried(lambda: self._show(report, differences, texts, flows)),
        )
        if self._file is not None and not saved:
            typer.echo(f"written: {self._file.path}", err=True)
        return exits.foremost(codes)

    def _tried(self, write: Callable[[], None]) -> int:
        try:
            write()
        except ReportNotWritten as error:
            say(f"winboot: {error.problem}", "red", err=True)
            tell(f"next: {error.hint}", err=True)
            return error.exit_code
        return 0

    def _save(self, report: Report) -> None:
        if self._file is not None:
            self._file.save(report)

    def _show(self, report: Report, differences: bool, texts: bool, flows: FlowReport | None) -> None:
        """Print the report, or what was not printed of it while the run lasted."""
        try:
            if self._form is Output.json:
                self._streamed.rest(report)
            elif self._form is Output.junit and flows is not None:
                sys.stdout.write(one_document(junit(report), flows_junit(flows)))
            else:
                show(report, self._form, differences=differences, texts=texts)
            if flows is not None and self._form is not Output.junit:
                show_flows(flows, self._form, passed=self._passed)
            sys.stdout.flush()
        except OSError as error:
            # Python would flush it once more when it ends, and make that the exit code.
            sys.stdout = _nowhere()
            if not isinstance(error, BrokenPipeError):
                raise ReportNotWritten(
                    f"the report was not written to standard output: {error.strerror}",
                    hint="`winboot plan` shows the nodes' present state.",
                ) from error
