"""The problems that a script on a node can name: `python -m winboot.problems > docs/problems.md`.

Read from the syntax tree of the library, where each stands with its message and its hint, so that the page cannot
promise what no script says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from winboot.powershell.parser import parse
from winboot.powershell.syntax import (
    Binary,
    Command,
    CommandExpression,
    CommandParameter,
    Node,
    Paren,
    Pipeline,
    StringConstant,
    walk,
)
from winboot.script import library_files

_HEAD: Final = """\
# Problems

What a step can fail with, by the name it has in reports and in JSON. Written from the library by
`python -m winboot.problems`; do not edit it here. `{0}` and its kin stand for what was found on the machine.

| problem | says | next step |
| --- | --- | --- |
"""

# Named by the driver itself, without a call that could be read.
_DRIVER: Final = (
    ("ChangeFailed", "whatever the change of a step failed with", "Read message and position."),
    ("LookFailed", "whatever the look of a step failed with", "Read message and position."),
    ("NeedsDrain", "this would disturb a live node", "Run again with --drain."),
    ("NeedsStep", "it builds on a step that did not succeed", "Mend that step first."),
    (
        "PendingReboot",
        "it goes on after the restart that other steps asked for",
        "Nothing: the run goes on by itself.",
    ),
    ("SecretMissing", "the change needs a secret that was not sent", "Check the references in the profile."),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One named problem with its message (a format string) and what to do next."""

    id: str
    message: str
    hint: str


def problems() -> tuple[Problem, ...]:
    """All of them by name; one that several places tell is named once."""
    found = {id_: Problem(id_, message, hint) for id_, message, hint in _DRIVER}
    for text in library_files().values():
        for node in walk(parse(text)):
            if isinstance(node, Command):
                for problem in _told(node):
                    found.setdefault(problem.id, problem)
    return tuple(sorted(found.values(), key=lambda problem: problem.id))


def problems_page() -> str:
    """docs/problems.md."""
    return _HEAD + "".join(
        f"| `{one.id}` | {_cell(one.message)} | {_cell(one.hint)} |\n" for one in problems()
    )


def _told(command: Command) -> Iterator[Problem]:
    elements = list(command.elements)
    if not elements or _text(elements[0]) not in ("Stop-Step", "New-PreflightProblem"):
        return
    given = {
        element.name.lower(): _text(value)
        for element, value in pairwise(elements[1:])
        if isinstance(element, CommandParameter)
    }
    if given.get("id"):
        yield Problem(given["id"], given.get("message", ""), given.get("hint", ""))


def _text(node: Node) -> str:
    """The fixed text of an expression: of a format its format string, of a sum its fixed parts."""
    match node:
        case StringConstant():
            return node.value
        case Paren(pipeline=Pipeline(elements=(CommandExpression(expression=inner),))):
            return _text(inner)
        case Binary(operator="f"):
            return _text(node.left)
        case Binary(operator="+"):
            return _text(node.left) + _text(node.right)
    return ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").strip() or "—"


if __name__ == "__main__":
    print(problems_page(), end="")
