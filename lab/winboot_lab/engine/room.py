"""Room for the frames of compiled code, in one piece.

CPython keeps the frames of calls in pieces of 16 KiB. It maps a piece when a call passes the end of the last one, and frees
it when that call returns (Python/pystate.c, push_chunk and _PyThreadState_PopFrame). Compiled code calls across such an
end again and again: a join made 280,000 system calls for it. A frame that is larger than a piece gets one of the next
power of two, the rest of which is for the calls below it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

# Just above 1 MiB, so that nearly 1 MiB of the piece of 2 MiB is left. Memory that no frame reaches costs nothing.
_SLOTS: Final = 2**20 // 8 + 1

# Compiled code nests Python calls. The limit is of the whole process and C code obeys it, too. With 25,000, so many brackets
# in one another end msgspec's decoder, and the process, with a segmentation fault (CPython 3.11, a stack of 8 MiB).
_DEEPEST: Final = 20_000


class _Scripts:
    """How many scripts run, and the limit that was there before the first."""

    lock = threading.Lock()
    running = 0
    usual = 0


@contextmanager
def deep_calls() -> Iterator[None]:
    """Let Python call as deep as a script needs, while one runs."""
    with _Scripts.lock:
        if not _Scripts.running:
            _Scripts.usual = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_DEEPEST, _Scripts.usual))
        _Scripts.running += 1
    try:
        yield
    finally:
        with _Scripts.lock:
            _Scripts.running -= 1
            if not _Scripts.running:
                sys.setrecursionlimit(_Scripts.usual)


def with_room(work: Callable[[], None]) -> None:
    """Call `work` below a large frame."""
    work()


with_room.__code__ = with_room.__code__.replace(co_stacksize=_SLOTS)
