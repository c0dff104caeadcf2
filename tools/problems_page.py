"""docs/problems.md: what can fail, by name, with its next step."""

from __future__ import annotations

from typing import Final

from winboot.script.problems import NEXT_STEPS, meaning, problems

_HEAD: Final = """\
# Problems

    winboot explain NeedsDrain     # one problem by its name

Steps fail with these problems; reports and JSON have the same names. `…` replaces a value of the machine.
`make golden` writes this page from the library.

| problem | message | next step |
| --- | --- | --- |
"""

_FAILURES: Final = """
## A whole node, or the command

If work on a whole node ends, the report gives a name of this table as the reason. If all nodes failed alike, the command
exits with the code of that row ([exit-codes.md](exit-codes.md)).

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
