"""One Windows Server machine: the subjects of its state, its sessions, its time, and how it goes down and up.

Everything happens under one lock (`machine.lock`), which waiting lets go of. Registry and files are the truth where
Windows keeps its truth there; what only lives until the next boot is in the subjects' volatile parts.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from time import monotonic
from typing import Literal, TypeVar

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows import cmdlets, primitives
from winboot_lab.windows.accounts import SYSTEM_TOKEN, Accounts, Token
from winboot_lab.windows.boot import Boot
from winboot_lab.windows.call import CMDLETS
from winboot_lab.windows.clock import SLOW, LabTime, Patience, Timer, Timers
from winboot_lab.windows.defender import Defender
from winboot_lab.windows.door import Clock, CommandSignature, MachineStopped, Plain, Result
from winboot_lab.windows.eventlog import EventLog
from winboot_lab.windows.faults import Faults
from winboot_lab.windows.features import Features
from winboot_lab.windows.files import Files
from winboot_lab.windows.firewall import Firewall
from winboot_lab.windows.forking import take_part
from winboot_lab.windows.hardware import RELEASES, Hardware, Release
from winboot_lab.windows.hns import Hns
from winboot_lab.windows.install import install
from winboot_lab.windows.mutexes import Mutexes
from winboot_lab.windows.network import Network
from winboot_lab.windows.processes import Processes
from winboot_lab.windows.programs_api import Programs
from winboot_lab.windows.registry import Registry
from winboot_lab.windows.scm import ServiceControl
from winboot_lab.windows.session import Logon, Session
from winboot_lab.windows.snapshot import Tree, plain, without_chance
from winboot_lab.windows.sockets import Sockets, World
from winboot_lab.windows.tasks import Tasks

# Importing these two packages fills the tables of cmdlets and primitives.
_REGISTERED = (cmdlets, primitives)

T = TypeVar("T")

Signal = Literal["down", "up", "network-lost", "network-back"]

# Runs PowerShell for a scheduled task: a session of the task's user and the argument words of powershell.exe.
RunPowerShell = Callable[[Session, list[str]], int]


def _no_powershell(session: Session, arguments: list[str]) -> int:
    raise NotImplementedError("the lab has set no machine.run_powershell")


class Machine:
    """A Windows Server 2019, 2022 or 2025 as it comes from the installation, and everything done to it since."""

    def __init__(
        self,
        name: str = "WIN-1",
        *,
        release: Literal["2019", "2022", "2025"] | Release = "2022",
        address: str = "10.0.0.21",
        prefix_length: int = 24,
        gateway: str = "10.0.0.1",
        dns: Sequence[str] = ("10.0.0.2",),
        dhcp: bool = False,
        time: LabTime | None = None,
        world: World | None = None,
        programs: Programs | None = None,
        hardware: Hardware | None = None,
    ) -> None:
        self.lock = threading.Condition(threading.RLock())
        self.label = name
        self.release: Release = RELEASES[release] if isinstance(release, str) else release
        self.hardware = hardware or Hardware.named(name)
        self.time = time or LabTime()
        self.skew = 0.0
        self.zone_minutes = 0
        self.timers = Timers()
        self.running = True
        self.boot_count = 1
        self.booted_at = self.time.seconds
        self.run_powershell: RunPowerShell = _no_powershell
        self.programs = programs or Programs()
        self.world = world or World()
        self._watchers: list[Callable[[Signal], None]] = []
        self._console: Session | None = None
        # What the lab did not know where no script is there to be ended: in tasks, services and timers.
        self.refusals: list[Refusal] = []
        # Ports that remote management listens on; an endpoint of the lab on loopback has ports of its own.
        self.management_ports = [5985]
        # What was written to the serial port COM1, line by line; None where the machine has no such port.
        self.serial: list[str] | None = []
        self._living = threading.Event()
        self._commands: tuple[int, dict[str, CommandSignature]] = (-1, {})

        self.accounts = Accounts(self.hardware.machine_sid)
        self.faults = Faults(self)
        self.registry = Registry(self)
        self.files = Files(self)
        self.events = EventLog(self)
        self.processes = Processes(self)
        self.services = ServiceControl(self)
        self.features = Features(self)
        self.network = Network(self)
        self.firewall = Firewall(self)
        self.hns = Hns(self)
        self.tasks = Tasks(self)
        self.defender = Defender(self)
        self.mutexes = Mutexes(self)
        self.sockets = Sockets(self)
        self.power = Boot(self)
        with self.lock:
            install(self, name)
            self.network.plug_in(address, prefix_length, gateway, list(dns), dhcp=dhcp)
            self.power.come_up()
        self.world.machines.append(self)
        take_part(self)

    # ---- acting on the machine -------------------------------------------------------------------------

    def session(
        self,
        user: str = "Administrator",
        *,
        logon: Logon = "network",
        token: Token | None = None,
        host: str = "",
    ) -> Session:
        """Log on and start a PowerShell process; `user` SYSTEM or a local account; `host` the process image."""
        with self.lock:
            if token is None:
                token = SYSTEM_TOKEN if user.upper() == "SYSTEM" else self.accounts.token(user)
            image = host or (
                r"C:\Windows\System32\wsmprovhost.exe"
                if logon == "network"
                else r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe"
            )
            process = self.processes.logon_process(image, token)
            return Session(self, token, logon, process)

    @property
    def console(self) -> Session:
        """A SYSTEM session that opens again after each boot; the machine itself acts through it."""
        if self._console is None or self._console.boot != self.boot_count:
            self._console = self.session("SYSTEM", logon="console")
        return self._console

    @property
    def commands(self) -> Mapping[str, CommandSignature]:
        """The cmdlets there are now, by lower-case name."""
        # Only features bring cmdlets, so the table is made once for each set of services.
        stamp = self.services.changes
        if self._commands[0] != stamp:
            self._commands = (stamp, {key: c.signature for key, c in CMDLETS.items() if c.exists(self)})
        return self._commands[1]

    @property
    def clock(self) -> Clock:
        """The console's clock."""
        return self.console.clock

    def invoke(self, command: str, parameters: Mapping[str, Plain], input: Sequence[Plain] = ()) -> Result:
        """Run a cmdlet or primitive as SYSTEM on the console."""
        return self.console.invoke(command, parameters, input)

    def checkpoint(self) -> None:
        """The console's checkpoint."""
        self.console.checkpoint()

    @contextmanager
    def acting(self) -> Iterator[None]:
        """A runner of a script puts this around it; see clock.py."""
        with self.time.acting(self):
            yield

    # ---- names -----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The active computer name."""
        return self.power.active_name

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

    def settle(self, seconds: float) -> None:
        """Let lab time pass without an actor: timers fire, services tick, reboots end."""
        self.wait(seconds, across_boots=True)

    def live(self, *, pace: float = 0.05) -> None:
        """Go on by itself, on a thread, until `power_off` or `rest`: services tick and reboots end without an actor.

        A running machine lives at `pace` (real seconds for a lab second), so that many of them leave the processor
        to working actors. One that is down comes up as fast as the lab's time allows.
        """
        self._living.set()
        threading.Thread(target=self._live, args=(pace,), name=f"machine {self.label}", daemon=True).start()

    def rest(self) -> None:
        """End `live`."""
        self._living.clear()
        self.wake()

    def _live(self, pace: float) -> None:
        while self._living.is_set():
            self.wait(
                1.0,
                until=lambda: not self._living.is_set(),
                pace=pace if self.running else 0.0,
                across_boots=True,
            )

    # ---- signals ---------------------------------------------------------------------------------------

    def watch(self, told: Callable[[Signal], None]) -> None:
        """Call back when the machine goes down or up, or loses its network for a moment (endpoints drop sessions)."""
        self._watchers.append(told)

    def signal(self, what: Signal) -> None:
        """Tell the watchers."""
        for told in self._watchers:
            told(what)
        self.wake()

    def reachable(self, port: int | None = None) -> bool:
        """Whether a client on the network reaches the machine (and `port`, through its firewall)."""
        with self.lock:
            return (
                self.running
                and self.network.reachable()
                and (port is None or self.firewall.lets_in("TCP", port))
            )

    # ---- down and up -----------------------------------------------------------------------------------

    def reboot(self, *, seconds: float | None = None) -> None:
        """Go down now; come up after `seconds` of lab time (the hardware's usual time when None)."""
        with self.lock:
            self.power.restart(self.hardware.boot_seconds if seconds is None else seconds)

    def manage_at(self, *ports: int) -> None:
        """Let remote management listen on other ports, now and after each boot."""
        with self.lock:
            self.management_ports = list(ports)
            self.power.open_management()

    def power_off(self) -> None:
        """Go down at once, as if the plug was pulled."""
        with self.lock:
            self.power.go_down(clean=False)

    def power_on(self) -> None:
        """Come up after `power_off`."""
        with self.lock:
            if not self.running:
                self.power.come_up()

    # ---- the tree --------------------------------------------------------------------------------------

    def snapshot(self) -> Tree:
        """The whole state as one tree of dicts, lists and scalars."""
        with self.lock:
            parts: dict[str, object] = {
                "machine": {
                    "name": self.name,
                    "build": self.build,
                    "running": self.running,
                    "skew": self.skew,
                },
                "files": self.files.tree(),
                "registry": self.registry.tree(),
                "services": self.services.tree(),
                "processes": self.processes.tree(),
                "features": self.features.tree(),
                "network": self.network.tree(),
                "firewall": self.firewall.tree(),
                "hns": self.hns.tree(),
                "tasks": self.tasks.tree(),
                "defender": self.defender.tree(),
                "events": self.events.tree(),
                "certificates": self.sockets.certificates,
            }
            return {key: plain(value) for key, value in parts.items()}

    def digest(self) -> str:
        """A hash of the snapshot without ids, times and logs: equal when two states mean the same."""
        text = json.dumps(without_chance(self.snapshot()), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
