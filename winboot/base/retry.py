"""When to try again: the one policy of transport, run and cluster, decided by the class of the error, never its text.

    session = retried(open_session, 30, Unreachable, Busy)

The pauses grow and are scattered, so that a hundred nodes that lost the same switch do not come back as one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_before_delay,
    wait_fixed,
    wait_random_exponential,
)

from winboot.base.errors import ClusterBusy, WinbootError

LONGEST_PAUSE_S: Final = 5.0
T = TypeVar("T")


def retried(
    work: Callable[[], T],
    seconds: float,
    *errors: type[WinbootError],
    when: Callable[[WinbootError], bool] | None = None,
    pause: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
    between: Callable[[WinbootError], object] = lambda error: None,
) -> T:
    """What `work` gives, tried for up to `seconds` as long as one of `errors` ends it; with none given, one that says it is
    worth retrying. `when` narrows that down. The last error is raised as it is.

    If the answer names a time (ClusterBusy.retry_after), there is no try before it.
    `pause` is a fixed pause in seconds instead of a growing one; `sleep` waits, and may raise to end it all.
    `between` receives each error that is tried again after.
    """

    def worth_it(error: BaseException) -> bool:
        if not isinstance(error, WinbootError):
            return False
        kind = isinstance(error, errors) if errors else error.worth_retrying
        return kind and (when is None or when(error))

    def tell(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        if isinstance(error, WinbootError):
            between(error)

    growing = wait_random_exponential(multiplier=0.02, max=LONGEST_PAUSE_S)
    usual = growing if pause is None else wait_fixed(pause)

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.retry_after if isinstance(error, ClusterBusy) else None
        return usual(state) if asked is None else asked + growing(state)

    attempts = Retrying(
        retry=retry_if_exception(worth_it),
        stop=stop_before_delay(seconds),
        wait=wait,
        before_sleep=tell,
        sleep=sleep,
        reraise=True,
    )
    return attempts(work)
