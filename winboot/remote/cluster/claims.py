"""Which run works on a node: a claim, taken by creating it, or by replacing one whose holder no longer renews it.

A claim is a Lease of the cluster. A run that works on many nodes renews one session (`sessions`) instead of each
claim: a claim that names a session is over when that one is.

That a holder is gone is seen by this process' own clock: the claim has not moved for its whole duration. Clocks of
different machines are never compared (client-go's leader election does the same).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

from winboot.base.errors import ClusterConflict

NAMESPACE: Final = "winboot-system"
# What a Lease says of the work in addition to its holder; nothing is decided by it.
PROVIDER_ID: Final = "winboot.io/provider-id"
PLAN_DIGEST: Final = "winboot.io/plan-digest"
# The settings that a node was worked on by (winboot.config.node_spec.digest).
SETTINGS_DIGEST: Final = "winboot.io/settings-digest"
# The step that ended last, as of the last renewal.
STEP: Final = "winboot.io/step"
# `ok`, or `failed:` and the class of the error or of the step's problem; missing while the work lasts.
RESULT: Final = "winboot.io/result"
# The claim whose renewals count for this one.
SESSION: Final = "winboot.io/session"
# What a session is kept as, next to the claims on nodes; no node has a slash in its name.
SESSIONS: Final = "session/"


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim. `version` changes with each write, `transitions` says how often it has changed hands. `run` is the
    holder's run, `notes` are annotations, and `acquired` is None until the store has written it. Without a `holder`
    it was given back, and shows what became of the node. `taken_over`: from a holder (of `former_run`) that may be
    paused, and not dead."""

    node: str
    holder: str
    duration: int
    transitions: int = 0
    version: str = ""
    run: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    acquired: datetime | None = None
    taken_over: bool = False
    former_run: str = ""


class Leases(Protocol):
    """The claims that are kept in one place. Raises ClusterConflict where another run was quicker, ClusterRefused
    where there is no such place, or it is not for this user."""

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
        """Give it back, and leave nothing of it."""
        ...

    def all(self) -> Sequence[Claim]:
        """Every claim, sessions among them."""
        ...


@dataclass(slots=True)
class Claimant:
    """One worker's way to claims. It remembers since when a foreign claim has not moved, by its own clock."""

    holder: str
    clock: Callable[[], float]
    duration: int = 90
    run: str = ""
    _seen: dict[str, tuple[str, float]] = field(default_factory=dict)

    def take(
        self,
        leases: Leases,
        node: str,
        notes: Mapping[str, str] | None = None,
        *,
        by_force: bool = False,
    ) -> Claim | None:
        """The claim on a node; None while another run holds it. Two messages about one machine are two takers.

        What the former holder noted of its work goes with it. `by_force` takes it over from any holder.
        """
        return self.take_seen(leases, leases.read(node), node, notes, leases.read, by_force=by_force)

    def take_seen(
        self,
        leases: Leases,
        there: Claim | None,
        node: str,
        notes: Mapping[str, str] | None,
        read: Callable[[str], Claim | None],
        *,
        by_force: bool = False,
    ) -> Claim | None:
        """The same for a claim that was read already; `read` gives the session that it names."""
        mine = Claim(node, self.holder, self.duration, run=self.run, notes=notes or {})
        try:
            if there is None:
                return leases.create(mine)
            mine = replace(mine, transitions=there.transitions, version=there.version)
            if not there.holder:
                return leases.renew(mine)
            over = self.is_over(there, read)
            if over or by_force:
                taken = leases.renew(replace(mine, transitions=there.transitions + 1))
                if over and SESSION in there.notes:
                    # So that the other nodes of a process that is gone need not be watched again, one by one.
                    leases.delete(there.notes[SESSION])
                return replace(taken, taken_over=True, former_run=there.run)
        except ClusterConflict:
            return None
        return None

    def watch(self, there: Claim) -> None:
        """Note that it is as it is now: it may be over later."""
        self._stands_still(there)

    def is_over(self, there: Claim, read: Callable[[str], Claim | None]) -> bool:
        """Whether its holder is gone: what is renewed for it has not moved for its whole duration, or is no more."""
        session = there.notes.get(SESSION, "")
        renewed = read(session) if session else there
        return renewed is None or self._stands_still(renewed)

    def _stands_still(self, there: Claim) -> bool:
        version, since = self._seen.get(there.node, ("", 0.0))
        if version != there.version:
            self._seen[there.node] = (there.version, self.clock())
            return False
        return bool(self.clock() - since >= there.duration)
