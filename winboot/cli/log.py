"""`winboot log`: what the machines said in a run, from its journals."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from winboot.base.errors import UsageError
from winboot.cli import completion
from winboot.cli.colour import tell
from winboot.cli.options import Lines, LinesForm

if TYPE_CHECKING:
    from winboot.report.archive import PastRun


def log(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            autocompletion=completion.runs,
            help="The id of a run, its beginning, or `last`.",
        ),
    ],
    node: Annotated[str, typer.Argument(metavar="NODE", help="Only this node.")] = "",
    output: LinesForm = Lines.table,
) -> None:
    """Show what happened in a run, in the order of time: each step that ended, each restart, each error."""
    from winboot.report.archive import Archive
    from winboot.report.line import json_text

    archive = Archive()
    found = archive.find(run)
    records = sorted(_records(_chosen(archive.journals(found), found, node)), key=lambda one: one[0])
    width = max((len(name) for _, name, _ in records), default=0)
    for at, name, record in records:
        if output is Lines.json:
            kind = str(record.pop("kind"))
            record.pop("version", None)
            typer.echo(json_text(kind, {"node": name, **record}), nl=False)
        elif (text := _told(record)) is not None:
            clock = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
            tell(f"{clock} {name.ljust(width)}  {text}")


def _chosen(journals: dict[str, Path], run: PastRun, node: str) -> dict[str, Path]:
    """Raises UsageError for a node that the run did not begin."""
    if not node:
        return journals
    if node not in journals:
        from winboot.config.source import nearest

        meant = nearest(node, set(journals))
        hint = f"Did you mean {meant!r}?" if meant else f"It has {', '.join(sorted(journals)) or 'none'}."
        raise UsageError(f"the run {run.run} has no journal of {node}", hint=hint)
    return {node: journals[node]}


def _records(journals: dict[str, Path]) -> Iterator[tuple[float, str, dict[str, Any]]]:
    """Each line of each journal with its time and node. The last line of a run that was killed may be half a one."""
    for name, path in journals.items():
        try:
            lines: Sequence[str] = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise UsageError(
                f"{path} cannot be read: {error.strerror}", hint="It is this user's alone."
            ) from error
        for line in lines:
            try:
                record = json.loads(line)
                yield float(record["at"]), name, record
            except (ValueError, KeyError, TypeError):
                continue


def _told(record: dict[str, Any]) -> str | None:
    """A record in words; None for what says nothing to a person."""
    from winboot.base.clean import clean
    from winboot.base.errors import WinbootError
    from winboot.cli.progress import describe
    from winboot.report.events import parse

    match record.get("kind"):
        case "pass":
            return f"winboot sends the script ({record.get('mode')})"
        case "event":
            try:
                event = parse(str(record.get("line")))
            except WinbootError as error:
                return error.problem
            return None if event is None else describe(event, everything=True)
        case "error" | "failed" | "skipped" as kind:
            return clean(f"{kind}: {record.get('name')}: {record.get('problem')}")
        case "bug":
            return "a bug in winboot itself; `-o json` has its traceback"
    return None
