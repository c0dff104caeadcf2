"""When to try again: decided by the class of the error, never by its text.

    for attempt in again(30, Unreachable, Busy):
        with attempt:
            ...

The pauses grow and are scattered, so that a hundred nodes that lost the same switch do not come back as one.
"""

from __future__ import annotations

from tenacity import Retrying, retry_if_exception, stop_before_delay, wait_random_exponential

from winboot.errors import WinbootError

LONGEST_PAUSE_S = 5.0


def again(seconds: float, *errors: type[WinbootError]) -> Retrying:
    """Attempts for up to `seconds`, as long as one of `errors` (or, with none given, an error that says it is
    worth retrying) ends them. The last error is raised as it is.
    """

    def worth_it(error: BaseException) -> bool:
        if errors:
            return isinstance(error, errors)
        return isinstance(error, WinbootError) and error.worth_retrying

    return Retrying(
        retry=retry_if_exception(worth_it),
        stop=stop_before_delay(seconds),
        wait=wait_random_exponential(multiplier=0.02, max=LONGEST_PAUSE_S),
        reraise=True,
    )
