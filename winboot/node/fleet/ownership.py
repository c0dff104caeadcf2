"""Which nodes a run may change: a claim on each of them, from before its first change until what became of it is known.

Claims are Leases of the cluster (namespace winboot-system). A node has none if its profile names no cluster, or if the
cluster has no such namespace or grants no rights there. Mutex and fence on the node keep runs apart in any case. A
look needs no claim, so that a node that is right costs none.
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
    ) -> tuple[Held | None, bool]:
        """The claim on a node, None if no cluster keeps claims for it, and whether the run had to wait: then the node may have
        changed since.

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


@dataclass(slots=True)
class Ownership:
    """The claims of one run. May be used from any thread; `close` ends its sessions."""

    holder: str
    run: str
    # Where the claims on a node are; None without a cluster.
    leases: Callable[[NodeSpec], Leases | None]
    duration: int = DURATION
    now: Callable[[], float] = clock
    # Which of the run's processes this is: no two sessions have one name.
    process: str = ""
    _sessions: dict[str, Session] = field(default_factory=dict)
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
    ) -> tuple[Held | None, bool]:
        """See `Claims`."""
        began = time.monotonic()
        waited = False
        say = _once(say)
        while True:
            try:
                if (session := self._session(spec)) is None:
                    return None, waited
                held = session.take(spec.node.name, notes_of(spec), by_force=by_force)
                if held is not None:
                    return held, waited
            except ClusterRefused:
                # The threads of several nodes may find this out at the same moment.
                with self._lock:
                    self._without.add(_cluster_of(spec))
                continue
            except ClusterUnreachable:
                if time.monotonic() - began >= _AWAY_S:
                    raise
            waited = True
            self._wait(spec, patience - (time.monotonic() - began), max(poll, _POLL_S), wait, say)

    def _wait(
        self,
        spec: NodeSpec,
        left: float,
        poll: float,
        wait: Callable[[float], bool],
        say: Callable[[str, float], None],
    ) -> None:
        """Wait for another run's claim; raises NodeFailed when no time is left, Interrupted where `wait` says stop."""
        holder = self._holder(spec)
        if left <= 0:
            raise NodeFailed(
                f"{spec.node.name}: held by another run: {holder}",
                hint="Wait for that run, or use --take-over if that run no longer exists.",
                node=spec.node.name,
            )
        say(
            f"held by another run ({holder}); waiting" if holder else "its claim is not free now; waiting",
            left,
        )
        if wait(poll):
            raise Interrupted(
                f"{spec.node.name}: interrupted",
                hint="Run the same command again: it continues where it stopped.",
                node=spec.node.name,
            )

    def give_back(self, spec: NodeSpec, held: Held, result: str, *, leave: bool = True) -> None:
        """What became of a node. That it cannot be written is harmless: the claim is over with its session."""
        with suppress(ClusterError):
            held.session.give_back(held, result, leave=leave)

    def done(self, specs: Sequence[NodeSpec]) -> frozenset[str]:
        """The nodes that a run has ended well with, by these settings: what they are now is for a look to say. Nothing where
        no claim can be read."""
        found: set[str] = set()
        told: dict[str, Mapping[str, Claim]] = {}
        for spec in specs:
            cluster = self._cluster_of(spec)
            if cluster not in told:
                # If the cluster does not answer, winboot asks only once.
                told[cluster] = {}
                with suppress(ClusterError):
                    if (session := self._session(spec)) is not None:
                        told[cluster] = {claim.node: claim for claim in session.leases.all()}
            claim = told[cluster].get(spec.node.name)
            if claim is not None and is_done(claim, spec):
                found.add(spec.node.name)
        return frozenset(found)

    def close(self) -> None:
        """End all sessions."""
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            session.close()

    def _session(self, spec: NodeSpec) -> Session | None:
        """This run's session in the cluster that keeps the claims on a node; None without one."""
        with self._lock:
            key = self._cluster_of(spec)
            if key and key not in self._sessions and (leases := self.leases(spec)) is not None:
                claimant = Claimant(self.holder, self.now, self.duration, self.run)
                self._sessions[key] = Session(
                    leases, claimant, f"{self.run}-{self.process}{next(self._numbers)}", self.now
                )
            return self._sessions.get(key)

    def _cluster_of(self, spec: NodeSpec) -> str:
        """The cluster that keeps the claims on a node; empty without one."""
        key = _cluster_of(spec)
        return "" if key in self._without else key

    def _holder(self, spec: NodeSpec) -> str:
        with suppress(ClusterError):
            session = self._session(spec)
            claim = session.leases.read(spec.node.name) if session is not None else None
            return claim.holder if claim is not None else ""
        return ""


def result_of(report: NodeReport) -> str:
    """What a claim says of how a node ended: `ok`, or `failed:` and why."""
    if report.outcome in ("ok", "changed"):
        return OK
    return f"failed:{cause_of(report) or report.outcome}"


def notes_of(spec: NodeSpec) -> dict[str, str]:
    """What a claim says of the work, in addition to its holder."""
    notes = {SETTINGS_DIGEST: settings_digest(spec)}
    return notes | ({PROVIDER_ID: spec.machine.provider_id} if spec.machine.provider_id else {})


def is_done(claim: Claim, spec: NodeSpec) -> bool:
    """Whether a claim says that a run has ended well with this node, by the settings that it has now."""
    return claim.notes.get(RESULT) == OK and claim.notes.get(SETTINGS_DIGEST) == settings_digest(spec)


def _once(say: Callable[[str, float], None]) -> Callable[[str, float], None]:
    """`say`, silent while its text stays the same: winboot asks for a claim every few seconds."""
    said = ""

    def told(text: str, left: float) -> None:
        nonlocal said
        if text != said:
            said = text
            say(text, left)

    return told


def _cluster_of(spec: NodeSpec) -> str:
    reference = spec.cluster.kubeconfig
    return "" if reference is None else f"{reference} {spec.cluster.context or ''}"
