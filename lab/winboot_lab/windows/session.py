"""The machine as its users see it, and one acting party on it: a PowerShell process with its user and handles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.accounts import SYSTEM_TOKEN, Token
from winboot_lab.windows.boot import Boot
from winboot_lab.windows.door import Clock, CommandSignature, Interrupted, MachineStopped, Plain, Result
from winboot_lab.windows.host import Logon
from winboot_lab.windows.parts import Parts
from winboot_lab.windows.processes import Process


def _drop(_content: bytes) -> None:
    """Drop the output: the session has no listener."""


@dataclass(slots=True)
class StandardStreams:
    """Standard input, known in whole when the process starts, and where the two outputs go.

    `output` and `error` are called while the machine is locked: they must not wait for anybody.
    """

    input: bytes = b""
    output: Callable[[bytes], None] = _drop
    error: Callable[[bytes], None] = _drop

    def read(self, count: int) -> bytes:
        """The next bytes of the input, at most `count`."""
        piece, self.input = self.input[:count], self.input[count:]
        return piece


# Runs PowerShell for a scheduled task: a session of the task's user and the argument words of powershell.exe.
RunPowerShell = Callable[["Session", list[str]], int]


class Computer(Parts):
    """A machine as its sessions, cmdlets and programs see it."""

    power: Boot
    run_powershell: RunPowerShell
    _console: Session | None = None

    @property
    def commands(self) -> Mapping[str, CommandSignature]:
        """The cmdlets there are now, by lower-case name."""
        raise NotImplementedError

    def dispatch(self, session: Session, command: str, parameters: Mapping[str, Plain]) -> Result:
        """Run a cmdlet or primitive for a session."""
        raise NotImplementedError

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
            return Session(self, token, process)

    @property
    def console(self) -> Session:
        """A SYSTEM session that opens again after each boot; the machine itself acts through it."""
        if self._console is None or self._console.boot != self.boot_count:
            self._console = self.session("SYSTEM", logon="console")
        return self._console

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

    def acting(self) -> AbstractContextManager[None]:
        """A runner of a script puts this around it; see clock.py."""
        return self.time.acting(self)


class SessionClock:
    """The machine's clock as one session sees it: sleeping ends when the session or the machine does."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.scale = session.machine.time.scale

    def now(self) -> datetime:
        """The machine's UTC time."""
        return self._session.machine.now()

    def ticks(self) -> float:
        """Lab seconds since boot."""
        return self._session.machine.uptime()

    def sleep(self, seconds: float) -> None:
        """Wait; raises MachineStopped or Interrupted as `checkpoint` does."""
        self._session.wait(seconds)


class Session:
    """A logon with one process. Closing it ends the process, closes its files and abandons its mutexes."""

    def __init__(self, machine: Computer, token: Token, process: Process) -> None:
        self.machine = machine
        self.token = token
        self.process = process
        self.environment = process.environment
        self.boot = machine.boot_count
        self.children: list[int] = []
        self.standard = StandardStreams()
        self.clock = SessionClock(self)
        # One that may last without end: time does not pass because it sleeps.
        self.resident = False
        # SeTakeOwnership and SeRestorePrivilege.
        self.privileged = False
        self._interrupted = False
        self._closed = False

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self.process.pid

    @property
    def commands(self) -> Mapping[str, CommandSignature]:
        """The cmdlets the machine has now, by lower-case name (features bring some)."""
        return self.machine.commands

    def invoke(self, command: str, parameters: Mapping[str, Plain], input: Sequence[Plain] = ()) -> Result:
        """Run one cmdlet or primitive; see door.py."""
        with self.machine.lock:
            self.alive()
            self.machine.faults.before(self, command, parameters)
            self.alive()
            if input:
                raise Refusal("command", command, "the binder hands over bound parameters, never loose input")
            return self.machine.dispatch(self, command, parameters)

    def checkpoint(self) -> None:
        """Due work of the machine, then faults, then whether this session is still there."""
        machine = self.machine
        # Before every statement: `with` would ask a Condition, which asks its lock.
        machine.lock.acquire()
        try:
            self.alive()
            # Without due work and faults nothing has happened since the look above.
            worked = machine.run_due()
            struck = machine.faults.statement()
            if worked or struck:
                self.alive()
        finally:
            machine.lock.release()

    def alive(self) -> None:
        """Raise when the machine went down or the session was closed."""
        if self.boot != self.machine.boot_count or not self.machine.running:
            raise MachineStopped(self.machine.name)
        if self._interrupted or self._closed or self.machine.processes.get(self.process.pid) is None:
            raise Interrupted(self.machine.name)

    def wait(self, seconds: float) -> None:
        """Let lab time pass for this session."""
        self.machine.wait(seconds, self.alive, passive=self.resident)

    def acting(self) -> AbstractContextManager[None]:
        """A runner of a script puts this around it, so that others' waiting does not overtake its computing."""
        return self.machine.acting()

    def powershell(self, arguments: list[str]) -> int:
        """Run PowerShell with the argument words of powershell.exe; the exit code."""
        return self.machine.run_powershell(self, arguments)

    def interrupt(self) -> None:
        """Stop the actor here at the next checkpoint, or in its sleep."""
        with self.machine.lock:
            self._interrupted = True
            self.machine.wake()

    def close(self) -> None:
        """End the process of the session and what hangs on it. Closing twice is fine."""
        with self.machine.lock:
            if self._closed:
                return
            self._closed = True
            if self.boot == self.machine.boot_count:
                for pid in self.children:
                    self.machine.processes.kill(pid)
                self.machine.processes.kill(self.process.pid)
            self.machine.wake()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
