"""How control leaves a statement other than by its end: the jumps of the language, as Python exceptions.

None of them is a .NET exception, so no `catch` or `trap` of the script sees them; Python's `finally` clauses carry the
script's `finally` blocks.
"""

from __future__ import annotations


class Jump(Exception):
    """Control goes elsewhere."""


class LoopJump(Jump):
    """`break` or `continue`; `label` is lower case, or '' for the innermost loop."""

    def __init__(self, label: str = "") -> None:
        super().__init__(label)
        self.label = label


class BreakLoop(LoopJump):
    """Leave the loop (or switch) of that label."""


class ContinueLoop(LoopJump):
    """Go on with the next turn of the loop of that label."""


class ReturnFromBlock(Jump):
    """`return`: the value is already written, the script block is left."""


class ExitScript(Jump):
    """`exit`: the script ends with that code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class StopUpstream(Jump):
    """A command downstream (Select-Object -First) has seen enough; `asker` is its processor."""

    def __init__(self, asker: object) -> None:
        super().__init__()
        self.asker = asker
