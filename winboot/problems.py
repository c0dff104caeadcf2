"""The problems that a script on a node can name: `python -m winboot.problems > docs/problems.md`.

Read from the syntax tree of the library, where each stands with its message, so that the page cannot promise what no
script says; the next step comes from `winboot.hints`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from winboot.hints import hint_for
from winboot.powershell.parser import parse
from winboot.powershell.syntax import Command, ExpandableString, Node, StringConstant, walk
from winboot.script import library_files

_HEAD: Final = """\
# Problems

What a step can fail with, by the name it has in reports and in JSON. Written from the library by
`python -m winboot.problems`; do not edit it here. `…` stands for what was found on the machine.

| problem | says | next step |
| --- | --- | --- |
"""

# What the driver calls any other error; no call could be read.
_DRIVER: Final = {
    "ChangeFailed": "whatever the change of a step failed with",
    "LookFailed": "whatever the look of a step failed with",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One named problem with its message (a format string) and what to do next."""

    id: str
    message: str
    hint: str


def problems() -> tuple[Problem, ...]:
    """All of them by name; one that several places tell is named once."""
    found = dict(_DRIVER)
    for text in library_files().values():
        for node in walk(parse(text)):
            if isinstance(node, Command):
                for id_, message in _told(node):
                    found[id_] = found.get(id_) or message
    return tuple(Problem(id_, message, hint_for(id_, "")) for id_, message in sorted(found.items()))


def problems_page() -> str:
    """docs/problems.md."""
    return _HEAD + "".join(
        f"| `{one.id}` | {_cell(one.message)} | {_cell(one.hint)} |\n" for one in problems()
    )


def _told(command: Command) -> Iterator[tuple[str, str]]:
    """Id and message of a call that names a problem; of one that passes on what it was given, nothing."""
    match command.elements:
        case (
            StringConstant(value="Stop-Step" | "New-PreflightProblem"),
            StringConstant(value=id_),
            message,
            *_,
        ):
            yield id_, _text(message)


def _text(node: Node) -> str:
    """The text of an expression, with `…` where a value stands."""
    match node:
        case StringConstant():
            return node.value
        case ExpandableString():
            return "".join(part if isinstance(part, str) else "…" for part in node.parts)
    return ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").strip() or "—"


if __name__ == "__main__":
    print(problems_page(), end="")
