"""Where answers go: the console for people, standard output for programs, files for both."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console

from winboot.cli.options import Output
from winboot.cli.progress import Board, Lines, Quiet
from winboot.errors import ReportNotWritten
from winboot.fleet import Keep
from winboot.report import Report
from winboot.report.data import json_lines, junit
from winboot.report.file import ReportFile
from winboot.report.table import print_report
from winboot.run import Listener, Stop


def console() -> Console:
    """Standard output; rich turns colours off by itself where they do not belong (pipes, NO_COLOR)."""
    return Console(soft_wrap=True, highlight=False)


@contextmanager
def progress(form: Output, nodes: Sequence[str]) -> Iterator[Listener]:
    """A live board on a terminal, plain lines elsewhere, on standard error; nothing for programs' output."""
    errors = Console(stderr=True, highlight=False)
    if form is not Output.table:
        yield Quiet()
    elif errors.is_terminal:
        with Board(errors, nodes) as board:
            yield board
    else:
        yield Lines(errors)


def show(report: Report, form: Output, *, differences: bool = False) -> None:
    """Print the report in the form asked for."""
    if form is Output.json:
        sys.stdout.write(json_lines(report))
    elif form is Output.junit:
        sys.stdout.write(junit(report))
    else:
        print_report(report, console(), differences=differences)


class Reporting:
    """What becomes of a command's report: the file of `--report`, if one is wanted, and the exit code."""

    def __init__(self, path: Path | None) -> None:
        """Raises UsageError where the file could not be written, before any work is done."""
        self._file = None if path is None else ReportFile(path)

    @contextmanager
    def kept(self) -> Iterator[Keep]:
        """While this lasts, what is given is told of each node that ends, and the file is written."""
        if self._file is None:
            yield lambda current: None
            return
        with self._file.kept():
            yield self._file.keep

    def exit_code(self, report: Report, stop: Stop) -> int:
        """Write the last report; the exit code of the command. That the file is missing is said on standard error and hides
        no other code: what was done was shown, and is done.
        """
        missing = 0
        try:
            if self._file is not None:
                self._file.save(report)
        except ReportNotWritten as error:
            typer.secho(f"winboot: {error.problem}", err=True, fg="red")
            typer.echo(f"next: {error.hint}", err=True)
            missing = error.exit_code
        return stop.exit_code if stop.requested else report.exit_code or missing
