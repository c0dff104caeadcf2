"""One renewal for all the nodes of a process: a claim of its own says that it lives, and the claims on its nodes name it.

So a node costs two writes, when its claim is taken and when it is given back with what became of the node, however long the
work lasts. A process that was paused longer than its session lasts looks at each of its claims when it wakes up. If
another one has taken over a claim, it is lost, and the work on it ends. The node's fence refuses what it would do
before that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from winboot.base.errors import ClusterConflict, ClusterError
from winboot.remote.cluster.claims import RESULT, SESSION, SESSIONS, Claim, Claimant, Leases

# Seconds; a controller with many threads may come to its renewal late.
DURATION: Final = 60
_BOOT_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", None)


def clock() -> float:
    """Seconds that also pass while this computer sleeps, where it says so: time.monotonic stands still on Linux then
    (clock_gettime(2))."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


@dataclass(slots=True)
class Held:
    """A claim on a node that is ours, as far as we know; it goes back to the session that gave it. `lost` is called once it is
    found to be another's."""

    claim: Claim
    session: Session = field(repr=False)
    lost: Callable[[str], None] = lambda holder: None
    # Which run has it by now, as far as that is known.
    taken_by: str | None = None

    def lose(self, holder: str) -> None:
        """It is another's now."""
        if self.taken_by is None:
            self.taken_by = holder or "another run"
            self.lost(self.taken_by)


@dataclass(slots=True)
class Session:
    """This process in one place of claims. May be used from any thread; `close` gives the session back."""

    leases: Leases
    claimant: Claimant
    id: str
    now: Callable[[], float] = clock
    # False: only `renew` renews it, and the code that made it calls that.
    by_itself: bool = True
    _claim: Claim | None = None
    _renewed: float = 0.0
    _held: dict[str, Held] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _over: threading.Event = field(default_factory=threading.Event)

    def take(
        self,
        node: str,
        notes: Mapping[str, str] | None = None,
        *,
        by_force: bool = False,
        seen: Mapping[str, Claim] | None = None,
    ) -> Held | None:
        """The claim on a node; None while another run holds it. `seen` are all claims as they were a moment ago: with
        it nothing is read."""
        self._begin()
        with self._lock:
            if node in self._held:
                return None
        notes = {**(notes or {}), SESSION: self._name}
        read = self.leases.read if seen is None else seen.get
        there = read(node)
        # Our own write whose answer was lost: this session lives, so that no other run would ever take it.
        mine = there is not None and there.holder != "" and there.notes.get(SESSION) == self._name
        claim = self.claimant.take_seen(self.leases, there, node, notes, read, by_force=by_force or mine)
        if claim is None:
            return None
        held = Held(claim, self)
        with self._lock:
            self._held[node] = held
        return held

    def drop(self, held: Held) -> None:
        """Hold it no more, without a word: it is another's, or is to be taken again."""
        with self._lock:
            self._held.pop(held.claim.node, None)

    def give_back(self, held: Held, result: str, *, leave: bool = True) -> bool:
        """Give a claim back with what became of its node; without `leave` nothing is left of it. False where it was another's.
        Raises ClusterError: it is over with the session then."""
        node = held.claim.node
        with self._lock:
            self._held.pop(node, None)
        if held.taken_by is not None:
            return False
        notes = {key: text for key, text in held.claim.notes.items() if key != SESSION} | {RESULT: result}
        try:
            held.claim = self.leases.renew(replace(held.claim, holder="", notes=notes))
            if not leave:
                self.leases.delete(node)
        except ClusterConflict:
            held.lose(self._holder_of(node))
            return False
        return True

    def renew(self) -> None:
        """Say that this process lives; after a pause that was too long, find out what it still has."""
        with self._lock:
            before, self._renewed = self._renewed, self.now()
            paused = self._renewed - before >= self.claimant.duration
            try:
                paused |= self._write()
            except ClusterError:
                # The next one may succeed; until then the time counts on.
                self._renewed = before
                return
            held = list(self._held.values()) if paused else []
        for one in held:
            with suppress(ClusterError):
                self._look_at(one)

    def close(self) -> None:
        """End the session: what it held is free at once."""
        self._over.set()
        with self._lock, suppress(ClusterError):
            if self._claim is not None:
                self._claim = None
                self.leases.delete(self._name)

    @property
    def _name(self) -> str:
        return f"{SESSIONS}{self.id}"

    def _begin(self) -> None:
        with self._lock:
            if self._claim is not None:
                return
            mine = Claim(self._name, self.claimant.holder, self.claimant.duration, run=self.claimant.run)
            try:
                self._claim = self.leases.create(mine)
            except ClusterConflict:
                # No other run has this name: it was made, and the answer was lost.
                self._claim = self.leases.read(self._name)
                if self._claim is None:
                    raise
            self._renewed = self.now()
        if self.by_itself:
            threading.Thread(target=self._loop, name=f"session-{self.id}", daemon=True).start()

    def _loop(self) -> None:
        while not self._over.wait(self.claimant.duration / 4):
            self.renew()

    def _write(self) -> bool:
        """Renew the session; whether it was gone: taken for dead by another run, or cleared away."""
        if self._claim is None:
            return False
        try:
            self._claim = self.leases.renew(self._claim)
        except ClusterConflict:
            there = self.leases.read(self._name)
            if there is None:
                self._claim = self.leases.create(replace(self._claim, version=""))
                return True
            # Our own write whose answer was lost.
            self._claim = self.leases.renew(replace(self._claim, version=there.version))
        return False

    def _look_at(self, held: Held) -> None:
        there = self.leases.read(held.claim.node)
        if there is None or there.version != held.claim.version:
            held.lose(there.holder if there is not None else "")

    def _holder_of(self, node: str) -> str:
        with suppress(ClusterError):
            there = self.leases.read(node)
            return there.holder if there is not None else ""
        return ""
