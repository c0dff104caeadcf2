"""Keeps message, hook and claim alive while the work on a machine lasts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Protocol, Self

from winboot.base.errors import CloudError, ClusterConflict, ClusterError
from winboot.operations.hook.cases import Case
from winboot.operations.hook.metrics import Log
from winboot.operations.hook.pace import Pace
from winboot.remote.cluster.claims import Claim, Leases


class Held(Protocol):
    """The worker, as far as it keeps things alive."""

    log: Log
    pace: Pace

    def extend(self, case: Case, seconds: int) -> None:
        """Keep the messages of a case from being delivered again."""
        ...

    def beat(self, case: Case) -> bool:
        """Ask the cloud for more time; False where nobody waits any more."""
        ...


class Keeper:
    """All three from one timer. `lost` once another worker has the claim, `ended` once nobody waits for the machine's hook
    any more; both ask the work to end at its next step."""

    def __init__(
        self, worker: Held, case: Case, leases: Leases, claim: Claim, *, every: float, visibility: int
    ) -> None:
        """`every` is in seconds, as is `visibility`: for how long a message is kept from then on."""
        self._worker, self._case = worker, case
        self._every, self._visibility = every, visibility
        self._leases, self.claim = leases, claim
        self._over = worker.pace.stop()
        self._notes: dict[str, str] = {}
        self.lost = False
        self.ended = False

    def note(self, key: str, text: str) -> None:
        """What the claim is to say from its next renewal on."""
        self._notes = {**self._notes, key: text}

    def __enter__(self) -> Self:
        name = f"keeper-{self._case.action.instance}"
        self._thread = self._worker.pace.spawn(name, self._loop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.request()
        self._thread.join()

    def holds(self) -> bool:
        """Whether the claim is ours, asked now: renewed, nobody else can take it for its whole duration."""
        if not self.lost:
            with suppress(ClusterConflict):
                self._renew()
        return not self.lost

    def release(self) -> None:
        """Give the claim back, where it is still ours. That it cannot be is no harm: it is over after its duration."""
        try:
            if self.holds():
                self._leases.delete(self.claim.node)
        except ClusterError as error:
            self._worker.log(
                "a claim was not given back", instance=self._case.action.instance, problem=error.problem
            )

    def _loop(self) -> None:
        # At once: whoever had it before may have died long ago, and the hook's time runs.
        keeps: tuple[Callable[[], None], ...] = (self._extend, self._beat)
        while not self.lost:
            for keep in keeps:
                try:
                    keep()
                except (CloudError, ClusterError) as error:
                    self._worker.log(
                        "a heartbeat failed", instance=self._case.action.instance, problem=error.problem
                    )
            keeps = (self._renew, self._extend, self._beat)
            if self._over.wait(self._every):
                return

    def _renew(self) -> None:
        try:
            notes = {**self.claim.notes, **self._notes}
            self.claim = self._leases.renew(replace(self.claim, notes=notes))
        except ClusterConflict:
            self.lost = True
            self._case.halt.request()
            raise

    def _extend(self) -> None:
        if not self.lost:
            self._worker.extend(self._case, self._visibility)

    def _beat(self) -> None:
        if not self.lost:
            self.ended = not self._worker.beat(self._case)
