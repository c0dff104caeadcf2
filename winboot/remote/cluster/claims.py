"""Who works on a node: a claim, taken by creating a Lease, or by replacing one whose holder no longer renews it.

That a holder is gone is seen by this process' own clock: the Lease has not moved for its whole duration. Clocks of
different machines are never compared (client-go's leader election does the same).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

from winboot.base.errors import ClusterConflict

NAMESPACE: Final = "winboot-system"
# What a Lease says of the work beside its holder; nothing is decided by it.
PROVIDER_ID: Final = "winboot.io/provider-id"
PLAN_DIGEST: Final = "winboot.io/plan-digest"
# The step that ended last, as of the last renewal.
STEP: Final = "winboot.io/step"
# `ok`, or `failed:` and the class of the error or of the step's problem; missing while the work lasts.
RESULT: Final = "winboot.io/result"


@dataclass(frozen=True, slots=True)
class Claim:
    """One Lease. `version` is its resourceVersion, `transitions` how often it has changed hands, `run` the holder's run
    and `notes` its annotations; `acquired` is None until the store has written it."""

    node: str
    holder: str
    duration: int
    transitions: int = 0
    version: str = ""
    run: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    acquired: datetime | None = None


class Leases(Protocol):
    """The claims of one cluster. Raises ClusterConflict where somebody else was quicker."""

    def read(self, node: str) -> Claim | None:
        """The claim on a node, or None."""
        ...

    def create(self, claim: Claim) -> Claim:
        """Make it; ClusterConflict where there is one."""
        ...

    def renew(self, claim: Claim) -> Claim:
        """Write it over the version it has; ClusterConflict where that is no longer the last."""
        ...

    def delete(self, node: str) -> None:
        """Give it back."""
        ...


@dataclass(slots=True)
class Claimant:
    """One worker's way to claims. It remembers since when a foreign claim has not moved, by its own clock."""

    holder: str
    clock: Callable[[], float]
    duration: int = 90
    run: str = ""
    _seen: dict[str, tuple[str, float]] = field(default_factory=dict)

    def take(self, leases: Leases, node: str, notes: Mapping[str, str] | None = None) -> Claim | None:
        """The claim on a node; None while somebody else holds it. Two messages about one machine are two takers.

        What the former holder noted of its work goes with it.
        """
        there = leases.read(node)
        mine = Claim(node, self.holder, self.duration, run=self.run, notes=notes or {})
        try:
            if there is None:
                return leases.create(mine)
            if self._is_over(there):
                return leases.renew(replace(mine, transitions=there.transitions + 1, version=there.version))
        except ClusterConflict:
            return None
        return None

    def _is_over(self, there: Claim) -> bool:
        version, since = self._seen.get(there.node, ("", 0.0))
        if version != there.version:
            self._seen[there.node] = (there.version, self.clock())
            return False
        return bool(self.clock() - since >= there.duration)
