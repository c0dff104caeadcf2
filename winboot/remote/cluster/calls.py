"""Calls that may be made twice: tried again, to a deadline, while the API server cannot answer.

Everything that winboot asks may be repeated: reads, reviews, deletions by name, patches that carry the version they
have seen, and the creation of an object with its own name.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from winboot.base.errors import ClusterBusy, ClusterError, ClusterUnreachable, WinbootError
from winboot.base.retry import retried
from winboot.remote.cluster.base import Wait
from winboot.remote.cluster.failures import translated
from winboot.remote.cluster.proxies import Proxy

T = TypeVar("T")


def sleep(seconds: float) -> bool:
    """A wait that no caller cuts short."""
    time.sleep(seconds)
    return False


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the API server may be away, in seconds.

    `first` holds until it has answered once: winboot is to report a wrong address soon. `later`: it is being
    restarted, as in an upgrade of the control plane, or has too much to do.
    """

    first: float = 5.0
    later: float = 60.0


PATIENCE: Final = Patience()


class Calls:
    """The calls to one API server. Used by any number of threads."""

    def __init__(self, server: str, *, patience: Patience, wait: Wait, proxy: Proxy | None = None) -> None:
        self._server = server
        self._proxy = proxy
        self._patience = patience
        self._wait = wait
        self._answered = False

    def __call__(self, doing: str, ask: Callable[[], T]) -> T:
        """What `ask` gives, tried again while the server cannot answer. `doing` says what it is, for people.

        Raises ClusterError; where the wait is cut short, after one more try.
        """
        start, stopped = time.monotonic(), False

        def helps(error: WinbootError) -> bool:
            here = self._answered or isinstance(error, ClusterBusy)
            return not stopped and (here or time.monotonic() - start < self._patience.first)

        def pause(seconds: float) -> None:
            nonlocal stopped
            stopped = self._wait(seconds)

        return retried(
            lambda: self.once(doing, ask), self._patience.later, ClusterUnreachable, when=helps, sleep=pause
        )

    def once(self, doing: str, ask: Callable[[], T]) -> T:
        """The same, asked once: for a caller that asks again anyway."""
        try:
            with translated(doing, self._server, self._proxy):
                answer = ask()
        except ClusterUnreachable:
            raise
        except ClusterError:
            self._answered = True
            raise
        self._answered = True
        return answer
