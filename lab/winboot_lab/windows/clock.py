"""The lab's time: shared by all machines of one lab, faster than real time where everybody waits.

Lab time runs with real time, and jumps ahead while actors wait: waiting a lab second costs `scale` real seconds. While
actors compute it runs as fast as each of them does. Forty machines on two processors, or a computer that is busy with
something else must not use up the minute that a script gives a program.
A script that computes is not overtaken by another that polls on the same machine (time waits for it).
Other machines hardly overtake it (time slows down). So a poll loop with a limit means what it says.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

Work = Callable[[], None]

START = datetime(2026, 3, 2, 8, 0, 0, tzinfo=UTC)

# How long (real seconds) a waiter holds lab time back for busy actors before it jumps anyway. A busy actor may
# itself be waiting for something outside the lab, which must not stop time.
PATIENCE = 2.0
# While this process computes, an actor that is busy does so too, however slowly on a loaded machine: patience is renewed,
# but not for longer than this (real seconds).
LONGEST_PATIENCE = 60.0
# The share of a processor above which an actor computes; a waiter that only looks takes less.
COMPUTES = 0.05

# How fast lab time runs at least while an actor is busy: that actor may wait for something outside the lab.
SLOWEST = 0.02

# Real seconds over which it is averaged how long an actor takes.
AVERAGED = 0.5

# Seconds of its own that an actor on another machine computes in a lab second at least: real seconds, as often as it takes
# longer than alone. A waiter that paid real seconds ran the time of forty machines away from each of them.
SLOW = 0.05


@dataclass(eq=False, slots=True)
class Waiter:
    """One thread that waits until `target`; when it wakes, its place (None: it is no actor) is busy again."""

    target: float
    place: object | None
    woken: bool = False
    thread: int = field(default_factory=threading.get_ident)


class Patience:
    """How long one waiter holds lab time back for an actor that is busy, from the moment that it finds it so.

    `clock` gives real seconds, `computed` the seconds that this process has computed.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        computed: Callable[[], float] = time.process_time,
    ) -> None:
        self._clock, self._computed_until_now = clock, computed
        self._began: float | None = None
        self._renewed = self._computed = 0.0

    def lasts(self, *, busy: bool) -> bool:
        """Whether to hold time back now. An actor that is not busy any more, if only for a moment, ends the patience with
        it; the next one gets its own."""
        if not busy:
            self._began = None
            return False
        now = self._clock()
        if self._began is None:
            self._began = now
            self._renew(now)
        elif now - self._renewed >= PATIENCE and now - self._began < LONGEST_PATIENCE and self._computes(now):
            self._renew(now)
        return now - self._renewed < PATIENCE

    def _renew(self, now: float) -> None:
        self._renewed, self._computed = now, self._computed_until_now()

    def _computes(self, now: float) -> bool:
        return self._computed_until_now() - self._computed >= COMPUTES * (now - self._renewed)


class LabTime:
    """Seconds since the lab began. `scale` 0 makes waiting free; `real` False stops time between waits; `held` keeps it at real
    time: no wait lets it jump ahead, and no actor that computes slows it down.

    `clock` gives real seconds, `computed` the seconds that this process has computed.
    """

    def __init__(
        self,
        *,
        scale: float = 0.01,
        real: bool = True,
        held: bool = False,
        start: datetime = START,
        clock: Callable[[], float] = time.monotonic,
        computed: Callable[[], float] = time.process_time,
    ) -> None:
        self.scale = 1.0 if held else scale
        self.start = start
        self._real, self._held = real, held
        self._clock, self._computed = clock, computed
        # What has run of itself so far, and until when that is counted.
        self._run = 0.0
        self._counted, self._computed_until = clock(), computed()
        self._counting = threading.Lock()
        # Real seconds of late in which an actor was busy, and what one actor computed in them.
        self._lately = (0.0, 0.0)
        self._stretch = 1.0
        self._ahead = 0.0
        self._lock = threading.Lock()
        self._busy: Counter[object] = Counter()
        self._mine = threading.local()
        self._waiters: list[Waiter] = []

    @property
    def seconds(self) -> float:
        """Lab seconds since the lab began; never goes back."""
        if self._real:
            self._count()
        return self._run + self._ahead

    def has_come(self, seconds: float) -> bool:
        """Whether it is so late already: what every statement of a script asks. Lab time does not run faster than real time, so
        mostly one clock is enough to say no; the operating system reports how much was computed."""
        if self._real and self._run + self._ahead + (self._clock() - self._counted) < seconds:
            return False
        return self.seconds >= seconds

    @property
    def stretch(self) -> float:
        """How many times as long as alone an actor takes to compute at present: 1 to 1 / SLOWEST."""
        self._count()
        return self._stretch

    def _count(self) -> None:
        """Note what has passed since the last time: whenever an actor asks, and before an actor comes or goes."""
        with self._counting:
            now, computed = self._clock(), self._computed()
            passed, share = now - self._counted, computed - self._computed_until
            self._counted, self._computed_until = now, computed
            actors = sum(self._busy.values())
            slowed = actors > 0 and not self._held
            own = min(passed, max(share / actors, passed * SLOWEST)) if slowed else passed
            if self._real:
                self._run += own
            if actors > 0:
                self._average(passed, own)

    def _average(self, passed: float, own: float) -> None:
        self._lately = (self._lately[0] + passed, self._lately[1] + own)
        if self._lately[0] >= AVERAGED:
            self._stretch = max(self._lately[0] / max(self._lately[1], self._lately[0] * SLOWEST), 1.0)
            self._lately = (self._lately[0] / 2, self._lately[1] / 2)

    def datetime(self) -> datetime:
        """The true lab time (a machine's own clock may be skewed)."""
        return self.start + timedelta(seconds=self.seconds)

    @property
    def busy(self) -> bool:
        """Whether some actor computes right now, wherever."""
        return any(self._busy.values())

    def busy_at(self, place: object) -> bool:
        """Whether some actor computes at this place (a machine)."""
        return self._busy[place] > 0

    def advance_to(self, seconds: float) -> None:
        """Jump ahead, unless time is already there; an actor that waited for less counts as busy from now on."""
        with self._lock:
            missing = seconds - self.seconds
            if missing > 0 and not self._held:
                self._ahead += missing
            for waiter in self._waiters:
                if waiter.target <= seconds and not waiter.woken:
                    self._wake(waiter)

    def next_wake(self, at_most: float) -> float:
        """The first moment, not after `at_most`, at which some waiter wakes."""
        with self._lock:
            return min((w.target for w in self._waiters if not w.woken), default=at_most)

    @contextmanager
    def acting(self, place: object) -> Iterator[None]:
        """Within this block this thread computes at `place`. An actor that already acts stays what it is."""
        if self._place() is not None:
            yield
            return
        self.hand_over(place)
        with self.taken_over(place):
            yield

    def hand_over(self, place: object) -> None:
        """A new actor is on its way (a thread about to start): `place` is busy until its `taken_over` ends."""
        self._change(place, 1)

    @contextmanager
    def taken_over(self, place: object) -> Iterator[None]:
        """In the new actor's thread: from here on it acts for itself."""
        self._mine.place = place
        try:
            yield
        finally:
            self._mine.place = None
            self._change(place, -1)

    def _place(self) -> object | None:
        place: object | None = getattr(self._mine, "place", None)
        return place

    @contextmanager
    def waiting(self, target: float) -> Iterator[None]:
        """Within this block this thread waits for `target`, and is not busy."""
        waiter = Waiter(target, self._place())
        self._count()
        with self._lock:
            self._waiters.append(waiter)
            if waiter.place is not None:
                self._busy[waiter.place] -= 1
        try:
            yield
        finally:
            with self._lock:
                self._waiters.remove(waiter)
                if not waiter.woken:
                    self._wake(waiter)

    def hold(self) -> None:
        """Block every change here until `release`, while a copy of the process is made."""
        self._counting.acquire()
        self._lock.acquire()

    def release(self) -> None:
        """The copy is made."""
        self._lock.release()
        self._counting.release()

    def forget_others(self) -> None:
        """In a copy of the process, while held: only this thread acts and waits."""
        me, place = threading.get_ident(), self._place()
        self._waiters = [one for one in self._waiters if one.thread == me]
        asleep = any(one.place is not None and not one.woken for one in self._waiters)
        self._busy = Counter() if place is None or asleep else Counter({place: 1})

    def _wake(self, waiter: Waiter) -> None:
        waiter.woken = True
        if waiter.place is not None:
            self._busy[waiter.place] += 1

    def _change(self, place: object, by: int) -> None:
        self._count()
        with self._lock:
            self._busy[place] += by


@dataclass(eq=False, slots=True)
class Timer:
    """One piece of due work."""

    seconds: float
    number: int
    work: Work
    lasting: bool


class Timers:
    """Work that falls due at a lab time. `lasting` work survives a reboot (the end of the reboot itself)."""

    def __init__(self) -> None:
        # The first comes first: every statement of a script asks for it.
        self._due: list[Timer] = []
        self._number = 0

    def at(self, seconds: float, work: Work, *, lasting: bool = False) -> Timer:
        """Do `work` at lab time `seconds`; `cancel` the timer to forget it."""
        self._number += 1
        timer = Timer(seconds, self._number, work, lasting)
        bisect.insort(self._due, timer, key=lambda t: (t.seconds, t.number))
        return timer

    def next(self) -> float | None:
        """When the first work falls due."""
        return self._due[0].seconds if self._due else None

    def take(self, now: float) -> Timer | None:
        """The first work that is due, taken out; None when nothing is."""
        if not self._due or self._due[0].seconds > now:
            return None
        return self._due.pop(0)

    def cancel(self, timer: Timer) -> None:
        """Forget the work, if it was not done yet."""
        if timer in self._due:
            self._due.remove(timer)

    def forget_all(self) -> None:
        """A reboot: only lasting work stays."""
        self._due = [t for t in self._due if t.lasting]
