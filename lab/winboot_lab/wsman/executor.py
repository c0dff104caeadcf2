"""What the endpoint asks of a runner of scripts, and the values that pass between the two.

The executor gets text and parameters and emits values; it knows nothing of HTTP or PSRP. The endpoint knows
nothing of PowerShell.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

Stream = Literal["output", "error", "warning", "verbose", "debug", "information", "progress"]
Emit = Callable[[Stream, object], None]


@dataclass(frozen=True, slots=True)
class SecureText:
    """A SecureString parameter, decrypted. Not a str, so that no caller prints it by accident."""

    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Position:
    """Where in the script something happened; `message` is PowerShell's four-line PositionMessage."""

    line: int = 0
    column: int = 0
    text: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """A PowerShell error as it goes over the wire. `exception` names the exception's types, the most
    derived first.
    """

    message: str
    error_id: str = "RuntimeException"
    category: int = 0
    category_name: str = "NotSpecified"
    activity: str = ""
    reason: str = "RuntimeException"
    target_name: str = ""
    target_type: str = ""
    exception: tuple[str, ...] = (
        "System.Management.Automation.RuntimeException",
        "System.SystemException",
        "System.Exception",
        "System.Object",
    )
    hresult: int = -2146233087
    position: Position = Position()
    stack: str = ""
    details: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """One progress record."""

    activity: str
    status: str = " "
    percent: int = -1
    completed: bool = False
    activity_id: int = 0
    parent_id: int = -1


@dataclass(frozen=True, slots=True)
class Information:
    """One record of the information stream (Write-Information, Write-Host)."""

    message: str
    source: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended. `failed` has the terminating error; `stopped` means that it received a stop."""

    state: Literal["completed", "failed", "stopped"] = "completed"
    error: ErrorRecord | None = None


class Stop:
    """Whether a script must stop: ask by calling it, or wait for it by `then`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._told: list[Callable[[], None]] = []

    def __call__(self) -> bool:
        return self._set

    def set(self, submit: Callable[[Callable[[], None]], object]) -> None:
        """Record that the script must stop. Each listener runs by way of `submit`."""
        with self._lock:
            told, self._told = ([], self._told) if self._set else (self._told, [])
            self._set = True
        for act in told:
            submit(act)

    def then(self, act: Callable[[], None]) -> None:
        """Do `act` when the script must stop; at once if it must already."""
        with self._lock:
            waiting = not self._set
            if waiting:
                self._told.append(act)
        if not waiting:
            act()


class Executor(Protocol):
    """Runs scripts, each in a thread of its own."""

    def run(self, script: str, parameters: Mapping[str, object], emit: Emit, cancelled: Stop) -> Ended:
        """Run `script` to its end. `emit` may be called from this thread only.

        Values for `output`: None, bool, int, float, str, bytes, list and dict of these; `error`:
        ErrorRecord; `progress`: Progress; `information`: Information; the other streams: str. `cancelled`
        turns true when the script must stop; return soon then. An exception ends the pipeline as failed
        and is kept in `Endpoint.crashes`.
        """
        ...
