"""Misfortune on demand: what is to go wrong at which request of one endpoint.

    endpoint.faults.at(7, Drop())                    the 7th request is cut off before it is read
    endpoint.faults.on("Receive", Half(), skip=1)    the second Receive gets half an answer
    endpoint.faults.on("Create", Fault(2150859173), times=3)

Requests are numbered from 1 over all connections, login requests included; `Endpoint.recount` starts again.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drop:
    """Cut the connection: before the request is looked at, or with `handled` after it has taken effect."""

    handled: bool = False


@dataclass(frozen=True, slots=True)
class Half:
    """Handle the request, send half of the answer, then cut the connection."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Do not look at the request; answer with this HTTP status and no body."""

    status: int = 503


@dataclass(frozen=True, slots=True)
class Fault:
    """Do not carry the request out; answer with this WS-Management fault."""

    code: int


@dataclass(frozen=True, slots=True)
class Silence:
    """Never answer; the connection stays open."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Answer `seconds` late."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Trickle:
    """Send the answer in pieces of `size` bytes, with a pause of `seconds` between them."""

    size: int = 1
    seconds: float = 0.01


@dataclass(frozen=True, slots=True)
class Unsealed:
    """Answer a sealed request in the clear, as a server would that cannot seal."""


Misfortune = Drop | Half | Answer | Fault | Silence | Delay | Trickle | Unsealed


@dataclass(slots=True)
class _Plan:
    action: str
    misfortune: Misfortune
    times: int
    skip: int


class Faults:
    """The plan of one endpoint. May be changed from any thread at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_number: dict[int, Misfortune] = {}
        self._by_action: list[_Plan] = []

    def at(self, number: int, misfortune: Misfortune) -> None:
        """Let this happen to the request with this number."""
        with self._lock:
            self._by_number[number] = misfortune

    def on(self, action: str, misfortune: Misfortune, *, times: int = 1, skip: int = 0) -> None:
        """Let this happen to the next `times` requests of this action (`Create`, `Receive`, …), after `skip` more."""
        with self._lock:
            self._by_action.append(_Plan(action, misfortune, times, skip))

    def clear(self) -> None:
        """Forget all plans."""
        with self._lock:
            self._by_number.clear()
            self._by_action.clear()

    def take_number(self, number: int) -> Misfortune | None:
        """What is to happen to this request; returned once."""
        with self._lock:
            return self._by_number.pop(number, None)

    def take_action(self, action: str) -> Misfortune | None:
        """What is to happen to this request of `action`; counts as one of the times."""
        with self._lock:
            for plan in self._by_action:
                if plan.action != action:
                    continue
                if plan.skip:
                    plan.skip -= 1
                    continue
                plan.times -= 1
                if not plan.times:
                    self._by_action.remove(plan)
                return plan.misfortune
        return None
