"""Where answers go: the console for people, standard output for programs, files for both."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import typer
from rich.console import Console

from winboot.cli.options import Output
from winboot.cli.progress import Board, Lines, Quiet
from winboot.errors import UsageError
from winboot.report import EXIT_FAILED, Report
from winboot.report.data import json_lines, junit
from winboot.report.page import html
from winboot.report.table import print_report
from winboot.run import Listener


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


_FORMS = {".html": html, ".htm": html, ".json": json_lines, ".jsonl": json_lines, ".xml": junit}


def check_report_path(path: Path | None) -> None:
    """Refuse a report file that could not be written at the end, or whose form its name does not tell, before any
    work is done.
    """
    if path is None:
        return
    if path.suffix.lower() not in _FORMS:
        raise UsageError(
            f"--report {path}: unknown report format {path.suffix!r}",
            hint="Use .html, .json, .jsonl or .xml.",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"--report {path} cannot be written: {error.strerror}", hint="Name another file.")


def save(report: Report, path: Path | None) -> bool:
    """Write the report file, if one is wanted: whole or not at all, readable by its owner alone.

    False where it could not be written, which is said on standard error: the report has been shown, and what was done
    is done.
    """
    if path is None:
        return True
    text = _FORMS[path.suffix.lower()](report)
    part = path.with_name(f".{path.name}.part")
    try:
        descriptor = os.open(path.parent / part.name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        typer.secho(f"winboot: the report {path} was not written: {error.strerror}", err=True, fg="red")
        typer.echo(
            "next: the work itself is done as shown; `winboot plan --report FILE` writes a new one", err=True
        )
        return False
    return True


def save_exit(saved: bool, code: int) -> int:
    """The exit code of the command: a report that was asked for and is not there is a failure, and the least one."""
    return code if saved or code else EXIT_FAILED
