"""Room for the frames of compiled code, in one piece.

CPython keeps the frames of calls in pieces of 16 KiB: it maps one when a call passes the end of the last, and gives it
back when that call returns (Python/pystate.c, push_chunk and _PyThreadState_PopFrame). Compiled code calls across such an
end again and again: a join made 280,000 system calls for it. A frame that is larger than a piece gets one of the next
power of two, the rest of which is for the calls below it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Just above 1 MiB, so that nearly 1 MiB of the piece of 2 MiB is left. Memory that no frame reaches costs nothing.
_SLOTS: Final = 2**20 // 8 + 1


def with_room(work: Callable[[], None]) -> None:
    """Call `work` below a large frame."""
    work()


with_room.__code__ = with_room.__code__.replace(co_stacksize=_SLOTS)
