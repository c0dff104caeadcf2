"""A work item: one thing to do for one machine, in a named state.

    waiting    received, or put back: something else must happen first (the reason says what)
    booting    the machine does not answer yet
    queued     the machine answers; the item waits for a free worker
    joining    a worker joins the machine
    draining   a worker drains the machine's Node
    done       finished; its messages are deleted, or none of this cluster's business
    failed     answered with ABANDON, or left to the queue, which delivers it again

`TRANSITIONS` is the only table of what may follow what. `WorkQueue.move` is the only place that changes a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from winboot.node.run import Stop
from winboot.operations.hook.work import Outcome, Target
from winboot.remote.cloud.base import HookAction, Message

State = Literal["waiting", "booting", "queued", "joining", "draining", "done", "failed"]
TRANSITIONS: Final[Mapping[State, frozenset[State]]] = {
    "waiting": frozenset({"booting", "queued", "draining", "done", "failed"}),
    "booting": frozenset({"waiting", "queued", "done", "failed"}),
    "queued": frozenset({"waiting", "booting", "joining", "done", "failed"}),
    "joining": frozenset({"waiting", "booting", "done", "failed"}),
    "draining": frozenset({"waiting", "done", "failed"}),
    "done": frozenset(),
    "failed": frozenset(),
}
ENDED: Final = frozenset({"done", "failed"})


@dataclass(frozen=True, slots=True)
class Next:
    """What one piece of work leads to: the next state and why, tried again after `later` seconds. `outcome` is a word for the
    metrics where the item ends."""

    state: State
    reason: str
    later: float = 0.0
    outcome: str = ""


@dataclass(slots=True)
class WorkItem:
    """One thing to do. Times are seconds of the worker's clock.

    `busy` while a thread works on it; `due` is when the scheduler looks at it again, `beat_due` when its next heartbeat is.
    `ours` once the machine is known to be ours: another cluster's machine gets no heartbeat. `halt` asks a join to end at its
    next step; `ending` is why a machine that starts will not stay. `begun` is when its first join or drain began,
    `last` how its last join ended. `looks` is how often the cloud did not list it, `errors` how often in a row it
    failed.
    """

    action: HookAction
    messages: dict[str, Message]
    since: float
    halt: Stop
    state: State = "waiting"
    reason: str = "received"
    busy: bool = False
    due: float = 0.0
    beat_due: float = 0.0
    ours: bool = False
    guarded: bool = False
    target: Target | None = None
    ending: str = ""
    begun: float | None = None
    last: Outcome | None = None
    looks: int = 0
    errors: int = 0

    @property
    def deliveries(self) -> int:
        """How often it was tried: by the queue, or here."""
        return max(self.looks + 1, *(one.received for one in self.messages.values()))

    @property
    def answers(self) -> bool:
        """Whether its machine answered at the last look."""
        return self.state in ("queued", "joining")

    @property
    def node(self) -> str:
        """The Node's name, where it is known."""
        return self.target.spec.node.name if self.target is not None else ""

    def about(self) -> dict[str, str]:
        """The fields of a log line about it."""
        action = self.action
        event = {"event": action.token} if action.token else {}
        return {"kind": action.kind, "instance": action.instance, "group": action.group, **event}
