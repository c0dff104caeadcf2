"""The options that several commands share, declared once, so that they are spelled and explained alike."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from winboot.base.errors import UsageError
from winboot.cli import completion

if TYPE_CHECKING:
    from winboot.operations.join import Options


class Output(StrEnum):
    """How a command answers."""

    table = "table"
    json = "json"
    yaml = "yaml"
    junit = "junit"


class Lines(StrEnum):
    """How a command answers that has no JUnit form."""

    table = "table"
    json = "json"
    yaml = "yaml"


class Listed(StrEnum):
    """How a command answers that lists things with names."""

    table = "table"
    json = "json"
    yaml = "yaml"
    name = "name"


InventoryFile = Annotated[
    Path,
    typer.Option(
        "--inventory",
        "-i",
        envvar="WINBOOT_INVENTORY",
        help="The inventory: the machines, their connections and their profiles.",
    ),
]


def says_something(param: typer.CallbackParam, values: list[str] | None) -> list[str] | None:
    """`--limit "$HOSTS"` with a variable that is not set would mean every machine. Raises UsageError for a value that names
    nothing; without the option it prints nothing at all."""
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
Nodes = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NODE",
        callback=says_something,
        autocompletion=completion.hosts,
        help="Only these nodes; also groups and patterns, as for --limit.",
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
        help="Skip these steps and assume that they need no change (repeat, or separate by commas).",
    ),
]


def lines_as(context: typer.Context, form: StrEnum) -> StrEnum:
    """The form that the command writes: for yaml its JSON lines, each of which becomes a document."""
    if form.value != "yaml":
        return form
    from winboot.cli.yaml_lines import YamlLines

    sys.stdout = documents = YamlLines(sys.stdout)
    context.call_on_close(documents.leave)
    return type(form)("json")


OutputForm = Annotated[
    Output,
    typer.Option(
        "--output",
        "-o",
        callback=lines_as,
        help="table for people; json lines, yaml documents or junit for programs.",
    ),
]
LinesForm = Annotated[
    Lines,
    typer.Option(
        "--output",
        "-o",
        callback=lines_as,
        help="table for people; json lines or yaml documents for programs.",
    ),
]
ListedForm = Annotated[
    Listed,
    typer.Option(
        "--output",
        "-o",
        callback=lines_as,
        help="table for people; json lines or yaml documents for programs; name alone for pipes.",
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option("--report", help="Also write the report here: .html, .json, .jsonl or .xml (JUnit)."),
]
Drain = Annotated[
    bool,
    typer.Option("--drain", help="Cordon and evict live nodes before changes that would disturb them."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change or be written; change nothing.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask at the terminal.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Run and read here what profile and inventory name, even if another user may write these files.",
    ),
]
NoRestart = Annotated[
    bool,
    typer.Option("--no-restart", help="Skip and list steps that need a restart of the machine."),
]
PlanPath = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Run exactly this plan of `winboot plan --out FILE`; skip a node that changed after the plan.",
    ),
]
TakeOver = Annotated[
    bool,
    typer.Option("--take-over", help="Take a node over from another run, which then ends as superseded."),
]
Adopt = Annotated[
    bool,
    typer.Option(
        "--adopt", help="Take over a machine that another tool made a node; record its previous state first."
    ),
]
Purge = Annotated[
    bool,
    typer.Option(
        "--purge", help="Delete Docker's images on an adopted node; an undo does not restore the images."
    ),
]
SkipPreflight = Annotated[
    list[str] | None,
    typer.Option(
        "--skip-preflight",
        metavar="ID",
        autocompletion=completion.checks,
        help="Continue despite this preflight finding (repeat, or separate by commas); the report lists it.",
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Then verify traffic on the changed nodes, as `winboot verify` does.",
    ),
]
Workers = Annotated[int, typer.Option("--workers", min=1, max=64, help="Number of nodes at a time.")]
Processes = Annotated[
    int,
    typer.Option(
        "--processes",
        min=1,
        max=64,
        help="Share the nodes among this many processes, --workers at a time in each: for hundreds of nodes.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Print a line for each finished step instead of the live view."),
]
Passed = Annotated[bool, typer.Option("--verbose", "-v", help="Also show passed checks and unchanged steps.")]
LogFile = Annotated[
    Path | None,
    typer.Option(
        "--log-file",
        metavar="FILE",
        help="Append the lines of --verbose to this file, also without --verbose.",
    ),
]


DEFAULT_INVENTORY = Path("inventory.yaml")


@dataclass(frozen=True)
class Machines:
    """Which machines a command works on."""

    nodes: Nodes = None
    inventory: InventoryFile = DEFAULT_INVENTORY
    limit: Limit = None
    trust: Trust = False

    @property
    def chosen(self) -> tuple[str, ...]:
        """The patterns that choose the hosts; empty means all. Raises UsageError for names and --limit together."""
        return chosen(self.nodes, self.limit)


@dataclass(frozen=True)
class View:
    """How a command shows its work: the form of its answer, lines in place of the live view, and files for both."""

    output: OutputForm = Output.table
    report: ReportFile = None
    verbose: Verbose = False
    log_file: LogFile = None


@dataclass(frozen=True)
class Checked:
    """What preflight depends on."""

    drain: Drain = False
    skip_preflight: SkipPreflight = None
    workers: Workers = 32

    def options(self, **others: Any) -> Options:
        """The options of a run; `others` are those that no option of this class gives."""
        from winboot.operations.join import Options

        skipped = words(self.skip_preflight)
        return Options(drain=self.drain, skip_preflight=skipped, workers=self.workers, **others)


@dataclass(frozen=True)
class Looked(Checked):
    """What a look at nodes depends on."""

    only: Only = None
    skip: Skip = None
    adopt: Adopt = False
    purge: Purge = False

    def options(self, **others: Any) -> Options:
        """See `Checked`."""
        chosen = {
            "only": words(self.only),
            "skip": words(self.skip),
            "adopt": self.adopt,
            "purge": self.purge,
        }
        return super().options(**chosen, **others)


@dataclass(frozen=True)
class Changed(Looked):
    """What a change of nodes depends on."""

    take_over: TakeOver = False
    processes: Processes = 1
    plan: PlanPath = None
    no_restart: NoRestart = False
    verify: Verify = False

    def options(self, **others: Any) -> Options:
        """See `Checked`."""
        return super().options(take_over=self.take_over, restart=not self.no_restart, **others)


def expanded(*, without: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give Typer a command with dataclasses among its parameters: each of their fields is an option, except those named in
    `without`, which keep their defaults. Typer reads the options from the signature."""

    def of(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        groups = {name: _options_of(kind, without) for name, kind in hints.items() if is_dataclass(kind)}
        own = [
            one.replace(annotation=hints[one.name], kind=one.KEYWORD_ONLY)
            for one in inspect.signature(function).parameters.values()
        ]

        @functools.wraps(function)
        def command(**values: Any) -> None:
            made = {
                name: hints[name](**{one.name: values.pop(one.name) for one in options})
                for name, options in groups.items()
            }
            function(**made, **values)

        shown = [option for one in own for option in groups.get(one.name, [one])]
        command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return command

    return of


def _options_of(kind: Any, without: tuple[str, ...]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name]
        )
        for one in fields(kind)
        if one.name not in without
    ]


def chosen(nodes: Sequence[str] | None, limit: Sequence[str] | None) -> tuple[str, ...]:
    """The patterns of NODE arguments or of --limit; empty means all. Raises UsageError for both together."""
    if nodes and limit:
        raise UsageError(f"{' '.join(nodes)} and --limit both choose nodes", hint="Use one of the two.")
    return words(nodes or limit)


def words(values: Sequence[str] | None) -> tuple[str, ...]:
    """`--limit a,b --limit c` as ("a", "b", "c")."""
    return tuple(word for value in values or [] for word in value.split(",") if word)


def renew_command(inventory: Path) -> str:
    """The command that renews the pinned hashes of an inventory's downloads."""
    return f"winboot init --renew -i {inventory}"
