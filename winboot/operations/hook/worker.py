"""One process of the hook: a work queue with named states (`item.py`).

    receive      cloud messages to work items
    heartbeat    keeps messages, hooks and claims alive
    scheduler    which item next, with bounded workers
    launch, termination, notices    the work

A worker that is killed anywhere leaves the messages in the queue: they are delivered again, to this worker or another one,
and the work continues where it was. Two workers never work on one machine: the claim (a Lease) keeps them apart, and the
fence on the node refuses one that was paused and wakes up.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from winboot.base.errors import WinbootError
from winboot.operations.hook.heartbeat import Heartbeat, extend
from winboot.operations.hook.receive import Receiver
from winboot.operations.hook.scheduler import Scheduler
from winboot.operations.hook.shared import Shared

# A metadata service may take two minutes for its first answer.
_STUCK_S = 300.0


@dataclass(slots=True, kw_only=True)
class Worker(Shared):
    """One process. `run` returns when it is to stop and holds nothing any more, or after `settings.idle`."""

    scheduler: Scheduler = field(init=False)
    receiver: Receiver = field(init=False)

    def __post_init__(self) -> None:
        Shared.__post_init__(self)
        self.scheduler = Scheduler(self)
        self.receiver = Receiver(self, self.scheduler)

    @property
    def healthy(self) -> bool:
        """Whether receiver and scheduler have gone round in the last five minutes."""
        now = self.pace.now()
        return all(now - one.looked < _STUCK_S for one in (self.receiver, self.scheduler))

    @property
    def ready(self) -> bool:
        """Whether it is healthy and the last request for messages was answered."""
        return self.healthy and self.receiver.receives

    def run(self) -> None:
        """Receive until `stop` is requested; then finish what is worked on and give back what waits. Raises what
        `Receiver.run` raises."""
        self.log("started", holder=self.claimant.holder)
        self.receiver.limits.check_all()
        over = self.pace.stop()
        beats = Heartbeat(self)
        beside = [
            self.pace.spawn(f"heartbeat-{share}", partial(beats.run, share, over))
            for share in range(self.settings.minders)
        ]
        beside.append(self.pace.spawn("scheduler", partial(self.scheduler.run, over)))
        try:
            self.receiver.run()
        finally:
            self._give_back()
            while self.items.busy():
                self.pace.stop().wait(min(self.settings.look, 0.2))
            over.request()
            for one in beside:
                one.join()
        self.log("stopped")

    def _give_back(self) -> None:
        """Let another worker receive at once what waits here."""
        for item in self.items.at_rest():
            if self.items.take(item):
                with suppress(WinbootError):
                    extend(self, item, 0)
                self.items.give_back(item)
