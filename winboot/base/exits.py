"""The exit codes, and which of several is the command's: the one table that docs/exit-codes.md shows.

a signal (128 and its number) > 75 > 4 > failed (1, 3, or the common code: 69, 77 …) > 2 > 74 > 0
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

DONE: Final = 0
FAILED: Final = 1
# Something that was wanted was not done, though nothing failed.
NOT_DONE: Final = 2
SOME_FAILED: Final = 3
STOPPED_ITSELF: Final = 4
USAGE: Final = 64
NOT_WRITTEN: Final = 74
SUPERSEDED: Final = 75
SIGNALLED: Final = 128
INTERRUPTED: Final = 130


def of_nodes(codes: Sequence[int]) -> int:
    """The code of a command over several nodes, each of which alone would have given one of `codes`.

    Failures: 3 where others did not fail; the common code where all failed alike, else 1. No node at all: 0.
    """
    failed = [code for code in codes if _rank(code) == _FAILURE]
    first = foremost(codes)
    if first not in failed:
        return first
    if len(failed) < len(codes):
        return SOME_FAILED
    return failed[0] if len(set(failed)) == 1 else FAILED


def foremost(codes: Iterable[int]) -> int:
    """The code that comes before the others; of several failures the first. 0 without a failure."""
    return min(codes, key=_rank, default=DONE)


_FAILURE: Final = 3


def _rank(code: int) -> int:
    """The place in the row above, the foremost first."""
    if code >= SIGNALLED:
        return 0
    return {SUPERSEDED: 1, STOPPED_ITSELF: 2, NOT_DONE: 4, NOT_WRITTEN: 5, DONE: 6}.get(code, _FAILURE)
