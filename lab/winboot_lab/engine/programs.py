"""Parsed scripts, kept: the same text is run many times (a look on every node, a step twice), but parsed and compiled once."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from winboot.powershell.parser import parse
from winboot.powershell.syntax import ParseErrors, ScriptBlock
from winboot_lab.engine.exceptions import ParseException
from winboot_lab.engine.refusal import Refusal

if TYPE_CHECKING:
    from winboot_lab.engine.blocks import Code

# Characters of text whose code is kept: some dozens of whole scripts, each of which costs about 20 MiB.
KEPT = 4_000_000

_codes: OrderedDict[str, Code] = OrderedDict()
_lock = Lock()


_NEWER = frozenset(
    (
        "NewerNumberNotSupported",
        "NewerEscapeNotSupported",
        "CleanBlockNotSupported",
        "TypeDefinitionNotSupported",
    )
)


def refuse_newer(problem: ParseErrors) -> None:
    """What only our parser objects to is no error of PowerShell's: the lab does not know it."""
    for error in problem.errors:
        if error.id in _NEWER:
            refusal = Refusal("construct", error.message)
            refusal.at(error.line, error.column)
            raise refusal


def parse_script(text: str) -> ScriptBlock:
    """The tree of a script; a script that does not parse raises PowerShell's ParseException."""
    return compiled(text).tree


def compiled(text: str) -> Code:
    """The code of a script, from the cache where possible. Raises ParseException."""
    from winboot_lab.engine.blocks import Code

    with _lock:
        known = _codes.get(text)
        if known is not None:
            _codes.move_to_end(text)
            return known
    try:
        code = Code(parse(text))
    except ParseErrors as problem:
        refuse_newer(problem)
        first = problem.first
        raise ParseException(
            f"At line:{first.line} char:{first.column}\r\n{first.message}", first.id, "ParserError"
        ) from problem
    with _lock:
        _codes[text] = code
        while len(_codes) > 1 and sum(map(len, _codes)) > KEPT:
            _codes.popitem(last=False)
    return code
