"""Run one script on one lab machine: what the wsman server, detached tasks and the conformance runner call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Stream = Literal["output", "error", "warning", "verbose", "debug", "information", "progress"]
Emit = Callable[[Stream, object], None]
State = Literal["completed", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended: `failed` carries the terminating ErrorRecord as `error`; `stopped` means cancelled.

    `exit_code` is the number given to `exit`, else None. A refusal is never an `Ended`: it is raised.
    """

    state: State
    error: object | None = None
    exit_code: int | None = None


def run_script(
    machine: object,
    text: str,
    parameters: Mapping[str, object],
    *,
    emit: Emit,
    cancelled: Callable[[], bool] = lambda: False,
) -> Ended:
    """Run `text` on `machine` in a fresh runspace; every object goes to `emit(stream, value)` the moment it falls.

    Raises `Refusal` where the script asks for what the lab does not know.
    """
    raise NotImplementedError
