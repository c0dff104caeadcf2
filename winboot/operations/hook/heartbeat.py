"""Keeps messages, hooks and claims alive: those of items at rest in rounds, those of an item at work from its own thread."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self
from zlib import crc32

from winboot.base.errors import CloudError, ClusterConflict, ClusterError, WinbootError
from winboot.node.run import Stop
from winboot.operations.hook.item import WorkItem
from winboot.operations.hook.shared import Shared
from winboot.remote.cluster.claims import Claim, Leases


def extend(shared: Shared, item: WorkItem, seconds: int) -> None:
    """Keep an item's messages from being delivered again for so long."""
    for message in list(item.messages.values()):
        shared.queue.extend(message, seconds)


def beat(shared: Shared, item: WorkItem) -> bool:
    """Ask the cloud for more time; False where its hook no longer waits, which ends a join."""
    if item.action.kind not in ("launch", "terminate") or shared.queue.heartbeat(item.action):
        return True
    if item.action.kind == "launch":
        item.halt.request()
    return False


def guard(shared: Shared, item: WorkItem) -> None:
    """Keep the cloud's own repairs and scale-in away from a machine that boots, waits, or is joined."""
    if not item.guarded:
        shared.queue.begin(item.action)
        item.guarded = True


class Heartbeat:
    """The rounds over items at rest, and over notices, which have no claim."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def run(self, share: int, over: Stop) -> None:
        """Keep this share of the items alive, until `over`."""
        settings = self._shared.settings
        while not over.requested:
            for item in self._shared.items.to_beat():
                if crc32(item.action.instance.encode()) % settings.minders == share:
                    self._keep(item)
            over.wait(settings.look)

    def _keep(self, item: WorkItem) -> None:
        shared = self._shared
        item.beat_due = shared.pace.now() + shared.settings.heartbeat
        try:
            extend(shared, item, shared.settings.visibility)
            if not item.ours:
                # Known within a second; then it is kept at once.
                return
            if item.action.kind == "launch":
                guard(shared, item)
            if not item.busy and not beat(shared, item):
                item.due = 0.0
        except WinbootError as error:
            shared.log("a heartbeat failed", instance=item.action.instance, problem=error.problem)


class Owner:
    """Owns a machine by its claim while a worker works on it, and keeps claim, message and hook alive from one timer.

    `lost` once another worker owns the machine; that asks the work to end at its next step.
    """

    def __init__(self, shared: Shared, item: WorkItem, leases: Leases, claim: Claim) -> None:
        self._shared, self._item = shared, item
        self._leases, self.claim = leases, claim
        self._over = shared.pace.stop()
        self._notes: dict[str, str] = {}
        self.lost = False

    def note(self, key: str, text: str) -> None:
        """Write this annotation with the claim's next renewal."""
        self._notes = {**self._notes, key: text}

    def __enter__(self) -> Self:
        self._thread = self._shared.pace.spawn(f"owner-{self._item.action.instance}", self._loop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.request()
        self._thread.join()

    def holds(self) -> bool:
        """Whether the claim is ours, asked now: renewed, no other worker can take it for its whole duration."""
        if not self.lost:
            with suppress(ClusterConflict):
                self._renew()
        return not self.lost

    def release(self) -> None:
        """Give the claim back, where it is still ours. A failure does no harm: the claim expires."""
        try:
            if self.holds():
                self._leases.delete(self.claim.node)
        except ClusterError as error:
            self._complain("a claim was not given back", error)

    def _loop(self) -> None:
        # At once: the former owner may have died long ago, and the hook's time runs.
        keeps: tuple[Callable[[], None], ...] = (self._extend, self._beat)
        while not self.lost:
            for keep in keeps:
                try:
                    keep()
                except (CloudError, ClusterError) as error:
                    self._complain("a heartbeat failed", error)
            keeps = (self._renew, self._extend, self._beat)
            if self._over.wait(self._shared.settings.heartbeat):
                return

    def _renew(self) -> None:
        try:
            notes = {**self.claim.notes, **self._notes}
            self.claim = self._leases.renew(replace(self.claim, notes=notes))
        except ClusterConflict:
            self.lost = True
            self._item.halt.request()
            raise

    def _extend(self) -> None:
        if not self.lost:
            extend(self._shared, self._item, self._shared.settings.visibility)

    def _beat(self) -> None:
        if not self.lost:
            beat(self._shared, self._item)

    def _complain(self, message: str, error: WinbootError) -> None:
        self._shared.log(message, instance=self._item.action.instance, problem=error.problem)
