"""What is asked for and not yet done: a case for each machine and kind, however many copies of its message there are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from winboot.node.run import Stop
from winboot.operations.hook.work import Outcome, Target
from winboot.remote.cloud.base import HookAction, Letter


@dataclass(slots=True)
class Case:
    """One thing to be done. Times are by the worker's clock.

    `halt` asks the work on it to end at its next step: the machine goes, or another worker has it. `doomed` says why a
    machine that starts will not stay. `begun` is when its first join began, `looks` how often nothing was found, `errors`
    how often in a row it failed.
    """

    action: HookAction
    letters: dict[str, Letter]
    since: float
    halt: Stop
    due: float
    kept: float = 0.0
    waits: bool = True
    # Whether the work on it is a join, of which so many may go on at a time.
    joins: bool = False
    guarded: bool = False
    # Whether it is known to be ours: another cluster's machine gets no heartbeat either.
    ours: bool = False
    target: Target | None = None
    answering: bool = False
    why: str = ""
    # How the last try to join it ended.
    last: Outcome | None = None
    doomed: str = ""
    begun: float | None = None
    looks: int = 0
    errors: int = 0

    @property
    def letter(self) -> Letter:
        """The message that came last."""
        return next(reversed(self.letters.values()))

    @property
    def deliveries(self) -> int:
        """How often it was tried: by the queue, or here."""
        return max(self.looks + 1, *(one.received for one in self.letters.values()))

    def about(self) -> dict[str, str]:
        """What a line of the log says of it."""
        action = self.action
        event = {"event": action.token} if action.token else {}
        return {"kind": action.kind, "instance": action.instance, "group": action.group, **event}


@dataclass(slots=True)
class Cases:
    """All that a worker holds. May be used from any thread."""

    _all: dict[tuple[str, str, str], Case] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, case: Case) -> bool:
        """Hold it; False where it is a copy of one that is held, which has its message from now on."""
        with self._lock:
            held = self._all.get(_key(case.action))
            if held is None:
                self._all[_key(case.action)] = case
                return True
            held.letters |= case.letters
            return False

    def end(self, case: Case) -> None:
        """Hold it no longer."""
        with self._lock:
            if self._all.get(_key(case.action)) is case:
                del self._all[_key(case.action)]

    def claim(self, case: Case) -> bool:
        """Take one that waits to work on it; False where somebody else has."""
        with self._lock:
            taken, case.waits = case.waits, False
            return taken

    def waiting(self, wanted: Callable[[Case], bool] = lambda case: True) -> list[Case]:
        """Those that wait, the oldest first."""
        return sorted(
            (one for one in self._snapshot() if one.waits and wanted(one)), key=lambda one: one.since
        )

    def to_mind(self, now: float) -> list[Case]:
        """Those that nobody else keeps alive and that are due: what waits, and notices, which have no claim."""
        return [
            one
            for one in self._snapshot()
            if one.kept <= now and (one.waits or one.action.kind not in ("launch", "terminate"))
        ]

    def working(self) -> int:
        """How many are being worked on."""
        return sum(not one.waits for one in self._snapshot())

    def joining(self) -> int:
        """How many joins go on."""
        return sum(one.joins and not one.waits for one in self._snapshot())

    def of(self, instance: str, kind: str) -> Iterator[Case]:
        """Those about one machine."""
        for one in self._snapshot():
            if one.action.instance == instance and one.action.kind == kind:
                yield one

    def __len__(self) -> int:
        return len(self._all)

    def _snapshot(self) -> list[Case]:
        with self._lock:
            return list(self._all.values())


def _key(action: HookAction) -> tuple[str, str, str]:
    return action.kind, action.instance, action.token
