"""What the lab says where it does not know PowerShell's answer.

The lab agrees with PowerShell or it refuses by name. A refusal is not a PowerShell error: no `try`, `trap` or `-ErrorAction`
of the script sees it. It ends the run, and names what is missing and where the script asked for it.
"""

from __future__ import annotations

from typing import Literal

from winboot_lab.language.dialect import PAGE

Kind = Literal[
    "construct", "command", "parameter", "member", "type", "operator", "program", "primitive", "value"
]


class Refusal(Exception):
    """The lab does not know this `kind` of thing, called `name`; `line` and `column` are 1-based, 0 until known.

    The code that raises it need not know the place: the evaluator adds the place of the innermost expression or command
    on the way out, with `at`.
    """

    def __init__(self, kind: Kind, name: str, detail: str = "", *, line: int = 0, column: int = 0) -> None:
        super().__init__(kind, name, detail)
        self.kind: Kind = kind
        self.name = name
        self.detail = detail
        self.line = line
        self.column = column

    def at(self, line: int, column: int) -> Refusal:
        """Fill in the place, unless an inner place is already known; gives the refusal back, to be raised again."""
        if not self.line:
            self.line, self.column = line, column
        return self

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        detail = f" ({self.detail})" if self.detail else ""
        page = (
            f"; {PAGE} lists what it knows" if self.kind in ("command", "member", "parameter", "type") else ""
        )
        return f"{place}the lab does not know the {self.kind} {self.name!r}{detail}{page}"
