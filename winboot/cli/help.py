"""`--help` of one command: its options in groups, each with a word for its value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer import Typer

# Parameters by the title that they stand below; all others are the command's own, and stand first.
_TITLES: Final = {
    "What": "node nodes inventory limit only skip plan action",
    "How much": "workers processes max_unavailable max_failed canary deadline timeout",
    "Safety": "dry_run yes drain drain_timeout grace delete_emptydir_data force trust no_restart adopt purge take_over "
    "skip_preflight",
    "Output": "output report verbose passed log_file diff out help",
}
_TITLE_OF: Final = {name: title for title, names in _TITLES.items() for name in names.split()}
# With fewer options one list is shorter.
_MANY: Final = 8
# Names of Python's types as typer shows them, and words for a value.
_VALUES: Final = {"bool": "", "path": "FILE", "str": "TEXT", "list[str]": "TEXT"}
_TYPE: Final = re.compile(r"<([^<>]+)>")
_RANGES: Final = (
    (re.compile(r"(\d[\d.]*)<=x<=(\d[\d.]*)"), r"\1 to \2"),
    (re.compile(r"x>=(\d[\d.]*)"), r"from \1 on"),
    (re.compile(r"(\d[\d.]*)<=x"), r"from \1 on"),
)


class Grouped(TyperCommand):
    """A command whose help has its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the groups that the command has."""
        _write(self.get_params(ctx), ctx, formatter)


class GroupedApp(TyperGroup):
    """The same with commands of its own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the groups, then the commands."""
        _write(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)


class NodesOrCommand(GroupedApp):
    """The same; without one of its commands, its arguments are the names of nodes (`context.args`)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse options behind names, too, if no command of its own follows."""
        if any(word in self.commands for word in args):
            return super().parse_args(ctx, args)
        ctx.allow_interspersed_args = True
        return TyperCommand.parse_args(self, ctx, args)


def _write(params: Sequence[Any], ctx: Any, formatter: Any) -> None:
    rows: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *_TITLES)}
    for param in params:
        if (record := param.get_help_record(ctx)) is not None:
            name, text = _plain(*record)
            if param.param_type_name == "argument":
                name = name.partition(" ")[0]
            rows[_TITLE_OF.get(param.name, "Options")].append((name, text))
    if sum(map(len, rows.values())) < _MANY:
        rows = {"Options": [row for group in rows.values() for row in group]}
    for title, group in rows.items():
        if group:
            with formatter.section(title):
                formatter.write_dl(group)


def _plain(name: str, text: str) -> tuple[str, str]:
    for pattern, words in _RANGES:
        text = pattern.sub(words, text)
    return _TYPE.sub(_value, name).strip(), text


def _value(found: re.Match[str]) -> str:
    kind = found[1].removesuffix(" range")
    return "N" if kind in ("int", "float") else _VALUES.get(kind, kind)


def group_options(app: Typer) -> Typer:
    """The same app; it and each of its commands show their options in groups."""
    for command in app.registered_commands:
        command.cls = Grouped
    if not isinstance(app.info.cls, type):
        app.info.cls = GroupedApp
    return app
