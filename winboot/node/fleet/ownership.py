"""Which nodes a run may change: a claim on each of them, from before its first change until what became of it is known.

Claims are Leases of the cluster (namespace winboot-system); a folder of this computer takes their place where the profile
names no cluster, or where that one has no such namespace or gives no rights there. A look needs no claim, so that a node that
is right costs none. Mutex and fence on the node hold in any case.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from winboot.base.errors import ClusterError, ClusterRefused, ClusterUnreachable, Interrupted, NodeFailed
from winboot.config.node_spec import NodeSpec
from winboot.config.node_spec.digest import settings_digest
from winboot.node.fleet.budget import cause_of
from winboot.remote.cluster.claims import PROVIDER_ID, RESULT, SETTINGS_DIGEST, Claim, Claimant, Leases
from winboot.remote.cluster.sessions import DURATION, Held, Session, clock
from winboot.report.results import NodeReport

OK: Final = "ok"


class Claims(Protocol):
    """The claims on the nodes of a run. Called from any thread."""

    def take(
        self,
        spec: NodeSpec,
        *,
        by_force: bool,
        patience: float,
        poll: float,
        wait: Callable[[float], bool],
        say: Callable[[str, float], None],
    ) -> tuple[Held, bool]:
        """The claim on a node, and whether it had to be waited for: then the node may be another one by now.

        Raises NodeFailed where another run holds it for longer than `patience` seconds, Interrupted where `wait` says stop.
        """
        ...

    def give_back(self, spec: NodeSpec, held: Held, result: str, *, leave: bool = True) -> None:
        """What became of a node; without `leave` nothing is left of its claim."""
        ...

    def done(self, specs: Sequence[NodeSpec]) -> frozenset[str]:
        """The nodes that a run has ended well with, by the settings that they have now."""
        ...


# The least time between two looks at a claim that another run holds, in seconds.
_POLL_S: Final = 0.05
# How long the claims may be out of reach, in seconds; as for other calls to an API server (winboot.remote.cluster.calls).
_AWAY_S: Final = 60.0
# How the place of claims begins that a cluster keeps, or this computer for one machine.
_IN_CLUSTER: Final = "cluster "
_OF_MACHINE: Final = "machine "


@dataclass(slots=True)
class Ownership:
    """The claims of one run. May be used from any thread; `close` ends its sessions."""

    holder: str
    run: str
    # Where the claims on a node are to be, and where they are if that place cannot be had.
    leases: Callable[[NodeSpec], Leases | None]
    instead: Callable[[NodeSpec], Leases]
    duration: int = DURATION
    now: Callable[[], float] = clock
    # Which of the run's processes this is: no two sessions have one name.
    process: str = ""
    _sessions: dict[str, Session] = field(default_factory=dict)
    _places: dict[str, Leases] = field(default_factory=dict)
    _without: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(
        self,
        spec: NodeSpec,
        *,
        by_force: bool,
        patience: float,
        poll: float,
        wait: Callable[[float], bool],
        say: Callable[[str, float], None],
    ) -> tuple[Held, bool]:
        """See `Claims`."""
        began = time.monotonic()
        waited = False
        while (taken := self._tried(spec, by_force=by_force, began=began)) is None:
            waited = True
            left = patience - (time.monotonic() - began)
            holder = self._holder(spec)
            if left <= 0:
                raise NodeFailed(
                    f"{spec.node.name}: held by another run: {holder}",
                    hint="Wait for it, or use --take-over when that run is gone.",
                    node=spec.node.name,
                )
            say(
                f"held by another run ({holder}); waiting"
                if holder
                else "its claim cannot be had now; waiting",
                left,
            )
            if wait(max(poll, _POLL_S)):
                raise Interrupted(
                    f"{spec.node.name}: interrupted",
                    hint="Run the same command again; it continues where it was.",
                    node=spec.node.name,
                )
        return taken, waited

    def give_back(self, spec: NodeSpec, held: Held, result: str, *, leave: bool = True) -> None:
        """What became of a node. That it cannot be written is no harm: the claim is over with its session."""
        with suppress(ClusterError):
            held.session.give_back(held, result, leave=leave)
        with self._lock:
            # That of one machine has nothing left to renew.
            alone = [
                key
                for key, one in self._sessions.items()
                if one is held.session and key.startswith(_OF_MACHINE)
            ]
            for key in alone:
                del self._sessions[key]
        if alone:
            held.session.close()

    def done(self, specs: Sequence[NodeSpec]) -> frozenset[str]:
        """The nodes that a run has ended well with, by these settings: what they are now is for a look to say. Nothing where
        no claim can be read."""
        found: set[str] = set()
        told: dict[int, Mapping[str, Claim]] = {}
        for spec in specs:
            with suppress(ClusterError):
                place = self._place(spec)
                if id(place) not in told:
                    # A place that does not answer is asked once.
                    told[id(place)] = {}
                    told[id(place)] = {claim.node: claim for claim in place.all()}
                claim = told[id(place)].get(spec.node.name)
                if claim is not None and is_done(claim, spec):
                    found.add(spec.node.name)
        return frozenset(found)

    def close(self) -> None:
        """End all sessions."""
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            session.close()

    def _tried(self, spec: NodeSpec, *, by_force: bool, began: float) -> Held | None:
        try:
            return self._take(spec, by_force=by_force)
        except ClusterUnreachable:
            if time.monotonic() - began >= _AWAY_S:
                raise
            return None

    def _take(self, spec: NodeSpec, *, by_force: bool) -> Held | None:
        in_cluster = self._key(spec).startswith(_IN_CLUSTER)
        try:
            return self._session(spec).take(spec.node.name, notes_of(spec), by_force=by_force)
        except ClusterRefused:
            if not in_cluster:
                raise
            # Each node's thread may find it out, and all of them at the same moment.
            with self._lock:
                self._without.add(_cluster_of(spec))
            return self._session(spec).take(spec.node.name, notes_of(spec), by_force=by_force)

    def _session(self, spec: NodeSpec) -> Session:
        with self._lock:
            key = self._key(spec)
            session = self._sessions.get(key)
            if session is None:
                claimant = Claimant(self.holder, self.now, self.duration, self.run)
                session = self._sessions[key] = Session(
                    self._place_at(key, spec),
                    claimant,
                    f"{self.run}-{self.process}{next(self._numbers)}",
                    self.now,
                )
            return session

    def _place(self, spec: NodeSpec) -> Leases:
        with self._lock:
            return self._place_at(self._key(spec), spec)

    def _place_at(self, key: str, spec: NodeSpec) -> Leases:
        """The place of this key, by whoever has the lock."""
        if key not in self._places:
            cluster = self.leases(spec) if key.startswith(_IN_CLUSTER) else None
            self._places[key] = cluster if cluster is not None else self.instead(spec)
        return self._places[key]

    def _key(self, spec: NodeSpec) -> str:
        """Nodes of one cluster have their claims in one place; else each machine, by the address that it has."""
        key = _cluster_of(spec)
        return (
            f"{_OF_MACHINE}{spec.machine.address}"
            if not key or key in self._without
            else f"{_IN_CLUSTER}{key}"
        )

    def _holder(self, spec: NodeSpec) -> str:
        with suppress(ClusterError):
            claim = self._place(spec).read(spec.node.name)
            return claim.holder if claim is not None else ""
        return ""


def result_of(report: NodeReport) -> str:
    """What a claim says of how a node ended: `ok`, or `failed:` and why."""
    if report.outcome in ("ok", "changed"):
        return OK
    return f"failed:{cause_of(report) or report.outcome}"


def notes_of(spec: NodeSpec) -> dict[str, str]:
    """What a claim says of the work, beside its holder."""
    notes = {SETTINGS_DIGEST: settings_digest(spec)}
    return notes | ({PROVIDER_ID: spec.machine.provider_id} if spec.machine.provider_id else {})


def is_done(claim: Claim, spec: NodeSpec) -> bool:
    """Whether a claim says that a run has ended well with this node, by the settings that it has now."""
    return claim.notes.get(RESULT) == OK and claim.notes.get(SETTINGS_DIGEST) == settings_digest(spec)


def _cluster_of(spec: NodeSpec) -> str:
    reference = spec.cluster.kubeconfig
    return "" if reference is None else f"{reference} {spec.cluster.context or ''}"
