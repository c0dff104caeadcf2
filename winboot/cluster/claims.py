"""Who works on a node: a claim, taken by creating a Lease, or by replacing one whose holder no longer renews it.

That a holder is gone is seen by this process' own clock: the Lease has not moved for its whole duration. Clocks of
different machines are never compared (client-go's leader election does the same).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from winboot.errors import ClusterConflict

NAMESPACE: Final = "winboot-system"


@dataclass(frozen=True, slots=True)
class Claim:
    """One Lease. `version` is its resourceVersion, `transitions` how often it has changed hands."""

    node: str
    holder: str
    duration: int
    transitions: int = 0
    version: str = ""


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
    _seen: dict[str, tuple[str, float]] = field(default_factory=dict)

    def take(self, leases: Leases, node: str) -> Claim | None:
        """The claim on a node; None while somebody else holds it. Two messages about one machine are two takers."""
        there = leases.read(node)
        try:
            if there is None:
                return leases.create(Claim(node, self.holder, self.duration))
            if self._is_over(there):
                return leases.renew(
                    replace(
                        there, holder=self.holder, duration=self.duration, transitions=there.transitions + 1
                    )
                )
        except ClusterConflict:
            return None
        return None

    def _is_over(self, there: Claim) -> bool:
        version, since = self._seen.get(there.node, ("", 0.0))
        if version != there.version:
            self._seen[there.node] = (there.version, self.clock())
            return False
        return bool(self.clock() - since >= there.duration)
