"""The options that several commands share, declared once, so that they are spelled and explained alike."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from winboot.base.errors import UsageError
from winboot.cli import completion


class Output(StrEnum):
    """How a command answers."""

    table = "table"
    json = "json"
    junit = "junit"


class Lines(StrEnum):
    """How a command answers that has no JUnit form."""

    table = "table"
    json = "json"


class Listed(StrEnum):
    """How a command answers that lists things with names."""

    table = "table"
    json = "json"
    name = "name"


InventoryFile = Annotated[
    Path,
    typer.Option(
        "--inventory",
        "-i",
        envvar="WINBOOT_INVENTORY",
        help="The inventory: which machines, how to reach them, which profile.",
    ),
]


def says_something(param: typer.CallbackParam, values: list[str] | None) -> list[str] | None:
    """`--limit "$HOSTS"` with a variable that is not set would mean every machine. Raises UsageError for a value that names
    nothing; without the option nothing is said at all."""
    for value in values or []:
        if not value.replace(",", " ").strip():
            option = param.param_type_name == "option"
            called = param.opts[0] if option else param.metavar
            raise UsageError(
                f"{called} {value!r} names nothing",
                hint="Is a variable of your shell empty?" + (" Left out, it means all." if option else ""),
            )
    return values


Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        "-l",
        metavar="PATTERN",
        callback=says_something,
        autocompletion=completion.hosts,
        help="Only these hosts or groups: names, win-*, a:!b, a:&b, ~regex, @file (repeat, or separate by commas).",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        callback=says_something,
        autocompletion=completion.steps,
        help="Only these steps and what they need (repeat, or separate by commas).",
    ),
]
Skip = Annotated[
    list[str] | None,
    typer.Option(
        "--skip",
        autocompletion=completion.steps,
        help="Not these steps, taken to be in order (repeat, or separate by commas).",
    ),
]
OutputForm = Annotated[
    Output, typer.Option("--output", "-o", help="table for people, json lines or junit for programs.")
]
LinesForm = Annotated[
    Lines, typer.Option("--output", "-o", help="table for people, json lines for programs.")
]
ListedForm = Annotated[
    Listed,
    typer.Option("--output", "-o", help="table for people, json lines for programs, name alone for pipes."),
]
ReportFile = Annotated[
    Path | None,
    typer.Option("--report", help="Also write the report here: .html, .json, .jsonl or .xml (JUnit)."),
]
Drain = Annotated[
    bool,
    typer.Option("--drain", help="Cordon and evict live nodes before changes that would disturb them."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask at the terminal.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Run and read here what profile and inventory name, though they may be somebody else's.",
    ),
]
NoRestart = Annotated[
    bool,
    typer.Option("--no-restart", help="Leave steps that need a restart of the machine, and name them."),
]
PlanPath = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Run exactly this plan of `winboot plan --out FILE`; a node that differs is left alone.",
    ),
]
TakeOver = Annotated[
    bool,
    typer.Option(
        "--take-over", help="Take a node over from a run that still holds it; that run ends as superseded."
    ),
]
Adopt = Annotated[
    bool,
    typer.Option(
        "--adopt", help="Take over a machine that another tool made a node; how it was is noted first."
    ),
]
SkipPreflight = Annotated[
    list[str] | None,
    typer.Option(
        "--skip-preflight",
        metavar="ID",
        autocompletion=completion.checks,
        help="Go on in spite of this finding of preflight (repeat, or separate by commas); the report notes it.",
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Then try whether traffic flows on the nodes that were changed, as `winboot verify` does.",
    ),
]
Workers = Annotated[int, typer.Option("--workers", min=1, max=64, help="How many nodes at a time.")]
Processes = Annotated[
    int,
    typer.Option(
        "--processes",
        min=1,
        max=64,
        help="Share the nodes among so many processes, --workers at a time in each: for hundreds of nodes.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="A line for each step that ends, in place of the live view."),
]
LogFile = Annotated[
    Path | None,
    typer.Option(
        "--log-file",
        metavar="FILE",
        help="Append the lines of --verbose to this file, whatever is on the screen.",
    ),
]


@dataclass(frozen=True, slots=True)
class View:
    """How a command shows its work: the form of its answer, lines in place of the live view, and a file for them."""

    output: Output
    verbose: bool = False
    log: Path | None = None


DEFAULT_INVENTORY = Path("inventory.yaml")


def words(values: list[str] | None) -> tuple[str, ...]:
    """`--limit a,b --limit c` as ("a", "b", "c")."""
    return tuple(word for value in values or [] for word in value.split(",") if word)


def renew_command(inventory: Path) -> str:
    """The command that renews the pinned hashes of an inventory's downloads."""
    return f"winboot init --renew -i {inventory}"
