"""One acting party on the machine: a PowerShell process with its user, environment, mutexes and open files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.accounts import Token
from winboot_lab.windows.call import CMDLETS, PRIMITIVES, Call
from winboot_lab.windows.door import CommandSignature, Interrupted, MachineStopped, Plain, Record, Result
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.host import Logon

if TYPE_CHECKING:
    from winboot_lab.windows.machine import Machine
    from winboot_lab.windows.processes import Process


def _drop(_content: bytes) -> None:
    """Nobody listens."""


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

    def __init__(self, machine: Machine, token: Token, logon: Logon, process: Process) -> None:
        self.machine = machine
        self.token = token
        self.logon: Logon = logon
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
            return self._run(command, parameters, input)

    def _run(self, command: str, parameters: Mapping[str, Plain], input: Sequence[Plain]) -> Result:
        if input:
            raise Refusal("command", command, "the binder hands over bound parameters, never loose input")
        primitive = PRIMITIVES.get(command)
        if primitive is not None:
            unknown = set(parameters) - primitive.parameters
            if unknown:
                raise Refusal("parameter", f"{command} {min(unknown)}")
            try:
                objects = list(primitive.function(self, **parameters))
            except Failure as failed:
                return Result(errors=[failed.problem])
            if command == "object.call":
                # Its first object is the one it was called on, as it is now.
                now = objects.pop(0)
                assert isinstance(now, Record)
                return Result(objects, refreshed=now.properties)
            return Result(objects)
        cmdlet = CMDLETS.get(command.lower())
        if cmdlet is None or not cmdlet.exists(self.machine):
            raise Refusal("command", command)
        known = {p.name for p in cmdlet.signature.parameters}
        unknown = set(parameters) - known
        if unknown:
            raise Refusal("parameter", f"{cmdlet.signature.name} -{min(unknown)}")
        call = Call(self, cmdlet.signature, parameters)
        try:
            cmdlet.function(call)
        except Failure as failed:
            call.fail(failed.problem)
        return call.result

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

    @contextmanager
    def acting(self) -> Iterator[None]:
        """A runner of a script puts this around it, so that others' waiting does not overtake its computing."""
        with self.machine.acting():
            yield

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
