"""What every part of a machine knows of it: its time, lock, hardware, names, accounts and registry, and its events.

The parts stand above this module and below the machine, which puts them together.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from time import monotonic
from typing import Literal, Protocol, TypeVar

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.accounts import Accounts, Token
from winboot_lab.windows.clock import SLOW, LabTime, Patience, Timer, Timers
from winboot_lab.windows.door import MachineStopped
from winboot_lab.windows.hardware import Hardware, Release
from winboot_lab.windows.registry import ACTIVE_NAME, Registry

T = TypeVar("T")

Signal = Literal["down", "up", "network-lost", "network-back"]
Logon = Literal["network", "batch", "service", "console"]


class Actor(Protocol):
    """A logon with a process, as the parts see it; see session.py."""

    token: Token
    environment: dict[str, str]
    resident: bool

    @property
    def pid(self) -> int:
        """The id of its process."""

    def alive(self) -> None:
        """Raise when the machine went down or the session was closed."""

    def wait(self, seconds: float) -> None:
        """Let lab time pass for it."""

    def powershell(self, arguments: list[str]) -> int:
        """Run PowerShell with the argument words of powershell.exe; the exit code."""

    def interrupt(self) -> None:
        """Stop it at its next statement, or in its sleep."""

    def close(self) -> None:
        """End its process and what hangs on it."""


class Host:
    """The machine below its parts."""

    def __init__(self, label: str, release: Release, hardware: Hardware, time: LabTime) -> None:
        self.lock = threading.Condition(threading.RLock())
        self.label = label
        self.release = release
        self.hardware = hardware
        self.time = time
        self.skew = 0.0
        self.zone_minutes = 0
        self.timers = Timers()
        self.running = True
        self.boot_count = 1
        self.booted_at = self.time.seconds
        self._watchers: list[Callable[[Signal], None]] = []
        # What the lab did not know where no script is there to be ended: in tasks, services and timers.
        self.refusals: list[Refusal] = []
        self.accounts = Accounts(hardware.machine_sid)
        self.registry = Registry()

    def session(self, user: str, *, logon: Logon) -> Actor:
        """Log on and start a PowerShell process."""
        raise NotImplementedError

    def reboot(self, *, seconds: float | None = None) -> None:
        """Go down now; come up after `seconds` of lab time (the hardware's usual time when None)."""
        raise NotImplementedError

    # ---- names -----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The active computer name."""
        return self.registry.text(ACTIVE_NAME, "ComputerName", self.label.upper())

    @property
    def build(self) -> int:
        """17763, 20348 or 26100."""
        return self.release.build

    # ---- time ------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """UTC by the machine's own clock, skew included."""
        return self.time.datetime() + timedelta(seconds=self.skew)

    def local(self, utc: datetime) -> datetime:
        """A UTC time as the machine's naive local time."""
        return (utc + timedelta(minutes=self.zone_minutes)).replace(tzinfo=None)

    def uptime(self) -> float:
        """Lab seconds since boot."""
        return self.time.seconds - self.booted_at

    def after(self, seconds: float, work: Callable[[], None], *, lasting: bool = False) -> Timer:
        """Do `work` under the lock when `seconds` of lab time have passed."""
        return self.timers.at(self.time.seconds + seconds, work, lasting=lasting)

    def run_due(self) -> bool:
        """Do what has fallen due; whether there was anything."""
        first = self.timers.next()
        if first is None or not self.time.has_come(first):
            return False
        worked = False
        with self.lock:
            while (timer := self.timers.take(self.time.seconds)) is not None:
                worked = True
                try:
                    timer.work()
                except Refusal as refusal:
                    self.refusals.append(refusal)
                except MachineStopped:
                    # The machine went down while the work waited; what it was about is gone.
                    continue
        return worked

    def wait(
        self,
        seconds: float,
        alive: Callable[[], None] = lambda: None,
        until: Callable[[], bool] = lambda: False,
        *,
        pace: float = 0.0,
        across_boots: bool = False,
        passive: bool = False,
    ) -> bool:
        """Let lab time pass, doing due work; ends early, with True, when `until` holds. `alive` may raise.

        Raises MachineStopped when the machine goes down meanwhile, unless `across_boots`. `pace`: real seconds that
        a lab second costs at least. `passive`: others' waiting lets time pass, this one does not.
        """
        with self.lock:
            target, boot = self.time.seconds + seconds, self.boot_count
            patience = Patience()
            with self.time.waiting(target):
                while True:
                    self.run_due()
                    alive()
                    if not across_boots and (self.boot_count != boot or not self.running):
                        raise MachineStopped(self.name)
                    if until():
                        return True
                    now = self.time.seconds
                    if now >= target:
                        return False
                    if patience.lasts(busy=self.time.busy_at(self)):
                        self.lock.wait(0.002)
                    elif passive:
                        self.lock.wait(0.05)
                    else:
                        self._pass(now, target, pace)
                        # A passive waiter has time to continue now.
                        self.lock.notify_all()

    def _pass(self, now: float, target: float, pace: float) -> None:
        # One step of a wait: to the next thing that happens, but never so far that others cannot break in.
        due = self.timers.next()
        step = min(target, self.time.next_wake(target))
        if due is not None:
            step = min(step, max(due, now))
        cost = max(self.time.scale, pace, SLOW * self.time.stretch if self.time.busy else 0.0)
        if cost > 0:
            step = min(step, now + 0.02 / cost)
            began = monotonic()
            self.lock.wait(max(step - now, 0) * cost)
            # Another waiter may have ended this wait early: no more passes than was paid for.
            step = min(step, now + (monotonic() - began) / cost)
        self.time.advance_to(step)

    def outside(self, work: Callable[[], T]) -> T:
        """Do real input and output without holding the lock: others act on the machine meanwhile, and lab time does not wait
        for it."""
        helper = ThreadPoolExecutor(1)
        try:
            with self.lock, self.time.waiting(math.inf):
                future = helper.submit(work)
                future.add_done_callback(lambda _: self.wake())
                self.lock.wait_for(future.done, timeout=120)
                return future.result()
        finally:
            # Not waited for: it may be about to wake the others, for which it needs the lock that our caller holds.
            helper.shutdown(wait=False)

    def wake(self) -> None:
        """Something changed: each waiter looks again."""
        with self.lock:
            self.lock.notify_all()

    # ---- signals ---------------------------------------------------------------------------------------

    def watch(self, told: Callable[[Signal], None]) -> None:
        """Call back when the machine goes down or up, or loses its network for a moment (endpoints drop sessions)."""
        self._watchers.append(told)

    def signal(self, what: Signal) -> None:
        """Tell the watchers."""
        for told in self._watchers:
            told(what)
        self.wake()
