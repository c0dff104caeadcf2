"""Parsed scripts, kept: the same text is run many times (a look on every node, a step twice), but parsed and compiled once.

A script that winboot rendered ends with its library, the same text for every node: that is kept apart from the rest of it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from threading import Lock

from winboot.script.pieces import split
from winboot_lab.engine.blocks import Code
from winboot_lab.engine.exceptions import ParseException
from winboot_lab.engine.places import ABOVE
from winboot_lab.engine.refusal import Refusal
from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import Extent, NamedBlock, ParseErrors, ScriptBlock, Source

# Characters of text whose code is kept, libraries not counted: a script's own part costs about 3 MiB.
KEPT = 4_000_000
# Libraries that are kept, each about 20 MiB: those of two releases, or of a test that changes it.
LIBRARIES = 3

_libraries: OrderedDict[str, Code] = OrderedDict()
_codes: OrderedDict[str, Code] = OrderedDict()
_lengths: dict[str, int] = {}
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
    """Refuse a script that only the lab's parser rejects: PowerShell would accept it."""
    for error in problem.errors:
        if error.id in _NEWER:
            refusal = Refusal("construct", error.message)
            refusal.at(error.line, error.column)
            raise refusal


def compiled(text: str) -> Code:
    """The code of a script, from the cache where possible. Raises ParseException."""
    from winboot_lab.engine.blocks import Code

    with _lock:
        known = _codes.get(text)
        if known is not None:
            _codes.move_to_end(text)
            return known
    try:
        code = _in_pieces(text) or Code(parse(text))
    except ParseErrors as problem:
        refuse_newer(problem)
        first = problem.first
        raise ParseException(
            f"At line:{first.line} char:{first.column}\r\n{first.message}", first.id, "ParserError"
        ) from problem
    with _lock:
        _codes[text], _lengths[text] = code, _own(text)
        while len(_codes) > 1 and sum(_lengths.values()) > KEPT:
            del _lengths[_codes.popitem(last=False)[0]]
    return code


def _own(text: str) -> int:
    pieces = split(text)
    return len(text if pieces is None else pieces.node)


class _LibrarySource(Source):
    """The text of a library: its lines come after those of whichever script runs it."""

    def position(self, offset: int) -> tuple[int, int]:
        line, column = super().position(offset)
        return line + ABOVE.get(), column


def _in_pieces(text: str) -> Code | None:
    """The code of a script that ends with a library; None for any other text, and for one that reads otherwise as a whole."""
    from winboot_lab.engine.blocks import Code, PiecedCode

    pieces = split(text)
    if pieces is None:
        return None
    with _lock:
        library = _libraries.get(pieces.library)
    try:
        if library is None:
            library = Code(parse(pieces.library, _LibrarySource(pieces.library)))
        above = parse(pieces.node)
    except ParseErrors:
        return None
    first, second = above.end, library.tree.end
    if not _plain(above) or not _plain(library.tree) or first is None or second is None:
        return None
    with _lock:
        _libraries[pieces.library] = library
        _libraries.move_to_end(pieces.library)
        while len(_libraries) > LIBRARIES:
            _libraries.popitem(last=False)
    whole = Extent(Source(text), 0, len(text))
    end = NamedBlock(whole, "end", (*first.statements, *second.statements), (), unnamed=True)
    tree = replace(above, extent=whole, end=end)
    return PiecedCode(tree, Code(above), library, pieces.node.count("\n"))


def _plain(tree: ScriptBlock) -> bool:
    """Statements alone, perhaps with parameters: two of these one after the other are what they are as one text."""
    end = tree.end
    return (
        end is not None
        and end.unnamed
        and not end.traps
        and bool(end.statements)
        and tree.begin is tree.process is tree.dynamicparam is None
        and not tree.using
    )
