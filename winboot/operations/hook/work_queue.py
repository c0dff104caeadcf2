"""All work items of one process: a copy of a message joins the item that is there, and every transition passes here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from winboot.base.errors import InternalError
from winboot.operations.hook.item import ENDED, TRANSITIONS, Next, State, WorkItem
from winboot.operations.hook.metrics import Log, Metrics
from winboot.remote.cloud.base import HookAction


@dataclass(slots=True)
class WorkQueue:
    """May be used from any thread."""

    log: Log
    metrics: Metrics
    clock: Callable[[], float]
    _items: dict[tuple[str, str, str], WorkItem] = field(default_factory=dict)
    # By machine: why it will not stay, and until when that counts. A launch message may come after the notice.
    _endings: dict[str, tuple[str, float]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def add(self, item: WorkItem) -> bool:
        """Hold it; False where it is a copy of one that is held, which has its message from now on."""
        with self._lock:
            held = self._items.get(_key(item.action))
            if held is not None:
                held.messages |= item.messages
                return False
            why, until = self._endings.get(item.action.instance, ("", 0.0))
            item.ending = why if item.action.kind == "launch" and self.clock() < until else ""
            self._items[_key(item.action)] = item
        self._count(item, "new", "waiting", "received")
        return True

    def take(self, item: WorkItem, state: State | None = None, reason: str = "") -> bool:
        """Work on one that is at rest, in this state where one is given; False where another thread does."""
        with self._lock:
            if item.busy or item.state in ENDED:
                return False
            item.busy = True
            if state is not None:
                self.move(item, state, reason)
            return True

    def move(self, item: WorkItem, state: State, reason: str, outcome: str = "") -> None:
        """Change its state. Raises InternalError where the table has no such transition."""
        with self._lock:
            before = item.state
            item.reason = reason
            if state == before:
                return
            if state not in TRANSITIONS[before]:
                raise InternalError(f"a work item goes from {before} to {state}: {reason}")
            item.state = state
            if state in ENDED and self._items.get(_key(item.action)) is item:
                del self._items[_key(item.action)]
        self._count(item, before, state, reason, outcome)

    def put_back(self, item: WorkItem, after: Next) -> None:
        """End the work on it, for now or for good."""
        with self._lock:
            self.move(item, after.state, after.reason, after.outcome)
            item.due = self.clock() + after.later
            item.busy = False
        if after.state in ENDED:
            worked = after.outcome in ("continue", "abandon") and item.begun is not None
            self.metrics.ended(item.action.kind, after.outcome, self.clock() - item.since if worked else None)

    def give_back(self, item: WorkItem) -> None:
        """Leave it to the queue: this worker stops."""
        self.put_back(item, Next("failed", "left in the queue: this worker stops", outcome="left"))

    def end_launch(self, instance: str, why: str, lasts: float = 0.0) -> None:
        """Let a join of this machine end at its next step; also one whose message comes within `lasts` seconds."""
        with self._lock:
            now = self.clock()
            if lasts:
                self._endings = {key: one for key, one in self._endings.items() if one[1] > now}
                self._endings[instance] = (why, now + lasts)
        for item in self._of(instance, "launch"):
            item.ending = item.ending or why
            item.halt.request()
            item.due = 0.0

    def at_rest(self) -> list[WorkItem]:
        """Those that no thread works on, the oldest first."""
        return sorted((one for one in self.items() if not one.busy), key=lambda one: one.since)

    def to_beat(self) -> list[WorkItem]:
        """Those that nothing else keeps alive and whose heartbeat is due: at rest, and notices, which have no claim."""
        now = self.clock()
        return [
            one
            for one in self.items()
            if one.beat_due <= now and (not one.busy or one.action.kind not in ("launch", "terminate"))
        ]

    def busy(self) -> int:
        """How many a thread works on."""
        return sum(one.busy for one in self.items())

    def joining(self) -> int:
        """How many joins go on."""
        return sum(one.state == "joining" for one in self.items())

    def items(self) -> list[WorkItem]:
        """All, in the order of their messages."""
        with self._lock:
            return list(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def _of(self, instance: str, kind: str) -> Iterator[WorkItem]:
        for one in self.items():
            if one.action.instance == instance and one.action.kind == kind:
                yield one

    def _count(self, item: WorkItem, before: str, after: State, reason: str, outcome: str = "") -> None:
        self.metrics.transition(item.action.kind, before, after)
        about = {"machine": item.action.instance, "group": item.action.group, "kind": item.action.kind}
        states = {"from": before, "to": after} | ({"outcome": outcome} if outcome else {})
        self.log("transition", **about, **states, reason=reason)


def _key(action: HookAction) -> tuple[str, str, str]:
    return action.kind, action.instance, action.token
