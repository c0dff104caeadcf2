"""docs/problems.md: what can fail, by name, with its next step."""

from __future__ import annotations

from typing import Final

from winboot.script.problems import NEXT_STEPS, meaning, problems

_HEAD: Final = """\
# Problems

What a step can fail with, by the name it has in reports and in JSON. Written from the library by
`make golden`; do not edit it here. `…` is what was found on the machine.

| problem | says | next step |
| --- | --- | --- |
"""

_FAILURES: Final = """
## A whole node, or the command

What a report shows as the reason for which nothing more was done on a node. The exit code is the command's when all
nodes failed alike ([exit-codes.md](exit-codes.md)).

| name | means | exit code | next step |
| --- | --- | --- | --- |
"""


def problems_page() -> str:
    """docs/problems.md."""
    steps = "".join(f"| `{one.id}` | {_cell(one.message)} | {_cell(one.hint)} |\n" for one in problems())
    nodes = "".join(
        f"| `{one.__name__}` | {_cell(meaning(one))} | {one.exit_code} | {_cell(NEXT_STEPS[one])} |\n"
        for one in NEXT_STEPS
    )
    return _HEAD + steps + _FAILURES + nodes


def _cell(text: str) -> str:
    return text.replace("|", "\\|").strip() or "—"
