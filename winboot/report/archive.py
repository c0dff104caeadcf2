"""Runs to look back on: the report of each, kept next to its journals.

    $WINBOOT_STATE/runs/RUN/_run.jsonl      one line: what ran, when, and how it ended
    $WINBOOT_STATE/runs/RUN/_report.jsonl   the report, as `--report FILE.jsonl` writes it
    $WINBOOT_STATE/runs/RUN/NODE.jsonl      the journal of a node, whose name has no underscore

The oldest runs go when there are more than KEPT (or WINBOOT_KEEP_RUNS); one of the last day never does.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from msgspec import structs

from winboot.base.errors import UsageError
from winboot.base.foreign import converted, ready
from winboot.base.private import own_folder, replace_privately
from winboot.base.state import state_folder
from winboot.report.data import json_lines, report_of
from winboot.report.line import Count, Line, json_line, says
from winboot.report.results import Report

KEPT: Final = 200
KEEP_VARIABLE: Final = "WINBOOT_KEEP_RUNS"
_A_DAY_S: Final = 24 * 3600.0
_RUN: Final = "_run.jsonl"
_REPORT: Final = "_report.jsonl"
_ID: Final = re.compile("[0-9a-f]{12}")


class PastRun(Line, frozen=True, tag="past"):
    """An earlier run."""

    where = "`runs`"
    run: Annotated[str, says("the run's id, which `log` and `report` take")]
    command: Annotated[str, says("the command")]
    started: Annotated[str, says("ISO 8601, UTC")]
    seconds: Annotated[float, says("wall time")]
    ended: Annotated[bool, says("false while the run works, and after winboot was killed")]
    exit_code: Annotated[Count, says("the exit code from the nodes' results")]
    changed: Annotated[Count, says("how many steps were changed, over all nodes")]
    outcomes: Annotated[Mapping[str, Count], says("the number of nodes by outcome")]
    nodes: Annotated[tuple[str, ...], says("their names")]
    ready: Annotated[Count, says("how many Nodes were Ready at the end")]
    by: Annotated[str, says("the user who ran it")]

    @property
    def failed(self) -> int:
        """How many nodes failed; those that were interrupted, or are at work in a run that has not ended, did not."""
        return self.outcomes.get("failed", 0)


ready(PastRun)


def past(report: Report, *, ended: bool) -> PastRun:
    """A report in one line."""
    return PastRun(
        report.run,
        report.command,
        report.started,
        round(report.seconds, 3),
        ended,
        report.exit_code,
        report.changed,
        Counter(node.outcome for node in report.nodes),
        tuple(node.node for node in report.nodes),
        sum(bool(node.ready) for node in report.nodes),
        report.by,
    )


class Archive:
    """The folder with all runs of this user. Raises ForeignFolder if it may be another user's."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else state_folder("runs")

    def keep(self, report: Report, *, ended: bool) -> None:
        """Put the report next to the journals of its run. Raises OSError and ForeignFolder."""
        folder = own_folder(self.folder / report.run)
        replace_privately(folder / _REPORT, json_lines(report))
        replace_privately(folder / _RUN, json_line(past(report, ended=ended)))

    def runs(self) -> list[PastRun]:
        """The newest first. Other files, and those that cannot be read, are left out."""
        found = [run for folder in self._folders() if (run := _read(folder)) is not None]
        return sorted(found, key=lambda run: (_moment(run.started), run.run), reverse=True)

    def find(self, word: str) -> PastRun:
        """The run whose id begins with the word; `last` is the newest. Raises UsageError."""
        runs = self.runs()
        if not runs:
            raise UsageError(f"there are no runs in {self.folder}", hint="`winboot plan` makes a run.")
        if word == "last":
            return runs[0]
        found = [run for run in runs if word and run.run.startswith(word)]
        if len(found) == 1:
            return found[0]
        what = "no run's id begins so" if not found else f"{len(found)} runs' ids begin so"
        raise UsageError(f"{word}: {what}", hint="`winboot runs` lists them; `last` is the newest.")

    def report(self, run: PastRun) -> Report:
        """The whole report of a run. Raises UsageError where it cannot be read any more."""
        try:
            return report_of((self.folder / run.run / _REPORT).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(
                f"the report of {run.run} cannot be read ({type(error).__name__})",
                hint=f"`winboot log {run.run}` shows the machines' output.",
            ) from error

    def journals(self, run: PastRun) -> dict[str, Path]:
        """The journal of each node that was begun."""
        found = sorted((self.folder / run.run).glob("*.jsonl"))
        return {path.stem: path for path in found if not path.name.startswith("_")}

    def prune(self) -> int:
        """Delete the oldest runs; gives how many went. Raises OSError."""
        old = sorted(self._folders(), key=lambda folder: folder.stat().st_mtime)
        over = old[: max(0, len(old) - _most())]
        gone = 0
        for folder in over:
            if time.time() - folder.stat().st_mtime > _A_DAY_S and _only_ours(folder):
                for file in folder.iterdir():
                    file.unlink()
                folder.rmdir()
                gone += 1
        return gone

    def _folders(self) -> Iterator[Path]:
        if self.folder.is_dir():
            yield from (
                one for one in self.folder.iterdir() if _ID.fullmatch(one.name) and not one.is_symlink()
            )


def _most() -> int:
    """How many runs are kept. Raises UsageError where the variable is not a number."""
    said = os.environ.get(KEEP_VARIABLE, "")
    if not said:
        return KEPT
    if not said.isascii() or not said.isdigit():
        raise UsageError(f"{KEEP_VARIABLE}={said}: not a number of runs", hint=f"Write a number: {KEPT}.")
    return int(said)


def _only_ours(folder: Path) -> bool:
    return all(file.suffix == ".jsonl" or file.name.endswith(".part") for file in folder.iterdir())


def _read(folder: Path) -> PastRun | None:
    try:
        found = converted(json.loads((folder / _RUN).read_text(encoding="utf-8")), PastRun)
    except (OSError, ValueError, RecursionError):
        return None
    return structs.replace(found, run=folder.name)


def _moment(started: str) -> datetime:
    """When; the beginning of time where it is not a time."""
    try:
        found = datetime.fromisoformat(started)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
