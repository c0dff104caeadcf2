"""Shells, their pipelines, and the output that waits to be received.

Everything here lives in the farm's event loop, except the executors: each pipeline runs in a thread and hands
its records over, already written as CLIXML.
"""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor as Threads
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from psrpcore.types import RemoteStreamOptions

from winboot_lab.wsman import clixml, soap
from winboot_lab.wsman.executor import Ended, ErrorRecord, Executor, Information, Progress, Stop, Stream
from winboot_lab.wsman.psrp import FRAGMENT, BrokenMessage, MessageType, Pool, Run, Say

# Recorded: an answer never holds more than four full fragments.
_LARGEST_ANSWER: Final = 4 * FRAGMENT
_STATES: Final = {"completed": 4, "failed": 5, "stopped": 3}
_FIRST_USE: Final = Progress("Preparing modules for first use.", completed=True)
# The type's name, the message, and the option that asks for the place of its records.
_INFORMATIONAL: Final[Mapping[Stream, tuple[str, MessageType, RemoteStreamOptions]]] = {
    "warning": (
        "Warning",
        MessageType.WARNING_RECORD,
        RemoteStreamOptions.AddInvocationInfoToWarningRecord,
    ),
    "verbose": (
        "Verbose",
        MessageType.VERBOSE_RECORD,
        RemoteStreamOptions.AddInvocationInfoToVerboseRecord,
    ),
    "debug": ("Debug", MessageType.DEBUG_RECORD, RemoteStreamOptions.AddInvocationInfoToDebugRecord),
}
STOPPED: Final = ErrorRecord(
    "The pipeline has been stopped.",
    error_id="PipelineStopped",
    category=14,
    category_name="OperationStopped",
    reason="PipelineStoppedException",
    exception=(
        "System.Management.Automation.PipelineStoppedException",
        "System.Management.Automation.RuntimeException",
        "System.SystemException",
        "System.Exception",
        "System.Object",
    ),
)


@dataclass(frozen=True, slots=True)
class Batch:
    """The output that goes into one answer, as base64; `done` with the last."""

    fragments: tuple[str, ...]
    done: bool


class Output:
    """Fragments waiting for a Receive, of a pool or of one command.

    A Receive that comes twice (same MessageID) gets the same answer twice, so a client that lost an answer
    asks again. Once there is output, up to `gather_s` seconds go by for more to come with it (Windows'
    BufferMode Block), less when the end is known.
    """

    def __init__(self, gather_s: float) -> None:
        self._gather_s = gather_s
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._aborted = False
        self._turn = 0
        self._last: tuple[str, Batch] | None = None

    def push(self, fragments: Iterator[bytes], *, apart: bool = False) -> None:
        """Add a message. An `apart` one starts a new answer."""
        for fragment in fragments:
            self._waiting.append((fragment, apart))
            apart = False
        self._news.set()

    def end(self) -> None:
        """There will be no more."""
        self._ended = True
        self._news.set()

    def abort(self) -> None:
        """Each waiter waits in vain."""
        self._aborted = True
        self._news.set()

    async def take(self, message_id: str, timeout_s: float) -> Batch:
        """The output for one Receive, waiting for it up to `timeout_s`. Raises soap.Fault when none comes."""
        if self._last is not None and self._last[0] == message_id:
            return self._last[1]
        self._turn += 1
        turn = self._turn
        self._news.set()  # an older Receive that still waits sees that it has been replaced
        try:
            async with asyncio.timeout(timeout_s):
                while not self._waiting and not self._ended:
                    await self._more(turn)
        except TimeoutError:
            raise soap.Fault(soap.OPERATION_TIMEOUT) from None
        with suppress(TimeoutError):
            async with asyncio.timeout(self._gather_s):
                while not self._ended:
                    await self._more(turn)
        batch = self._collect()
        self._last = (message_id, batch)
        return batch

    async def _more(self, turn: int) -> None:
        """Wait for news. Raises soap.Fault when it is not for this Receive."""
        self._news.clear()
        await self._news.wait()
        if self._aborted or turn != self._turn:
            # A newer Receive has taken over, or there is nothing to wait for any more.
            self._news.set()
            raise soap.Fault(soap.OPERATION_ABORTED)

    def _collect(self) -> Batch:
        taken: list[str] = []
        size = 0
        while self._waiting:
            fragment, apart = self._waiting[0]
            if taken and (apart or size + len(fragment) > _LARGEST_ANSWER):
                break
            self._waiting.popleft()
            taken.append(base64.b64encode(fragment).decode())
            size += len(fragment)
        return Batch(tuple(taken), done=self._ended and not self._waiting)


@dataclass(slots=True)
class Command:
    """One pipeline."""

    id: uuid.UUID
    output: Output
    running: asyncio.Task[None] | None = None
    stop: Stop = field(default_factory=Stop)


class Shell:
    """One runspace pool and its pipelines."""

    def __init__(
        self,
        shell_id: str,
        owner: str,
        executor: Executor,
        threads: Threads,
        *,
        ps_version: str,
        computer_name: str,
        crashed: Callable[[BaseException], None],
        max_commands: int,
        gather_s: float,
    ) -> None:
        self.id = shell_id
        self.owner = owner
        self.connected = True
        self.output = Output(0.0)
        self.commands: dict[uuid.UUID, Command] = {}
        self._pool = Pool(ps_version)
        self._executor = executor
        self._threads = threads
        self._computer_name = computer_name
        self._crashed = crashed
        self._max_commands = max_commands
        self._gather_s = gather_s
        self._created = time.monotonic()
        self._used = False

    def open(self, data: bytes) -> None:
        """Read the creationXml. Raises BrokenMessage."""
        self._carry_out(self._pool.receive(data), None)

    def connect(self, data: bytes) -> bytes:
        """Read a new client's connectXml; gives the fragments for the answer. Raises BrokenMessage."""
        answers = [each for each in self._pool.receive(data) if isinstance(each, Say)]
        self.connected = True
        return b"".join(fragment for say in answers for fragment in self._pool.fragments(say))

    def send(self, data: bytes, command_id: uuid.UUID | None) -> None:
        """Read more fragments for the pool or a pipeline. Raises BrokenMessage or soap.Fault."""
        command = self.command(command_id) if command_id is not None else None
        self._carry_out(self._pool.receive(data, command_id), command)

    def create_command(self, command_id: uuid.UUID, data: bytes) -> None:
        """A new pipeline, whose script may still be incomplete. Raises BrokenMessage or soap.Fault."""
        if command_id in self.commands:
            raise soap.Fault(soap.INVALID_REQUEST, "The command id is in use.")
        if len(self.commands) >= self._max_commands:
            raise soap.Fault(soap.TOO_MANY_OPERATIONS)
        command = self.commands[command_id] = Command(command_id, Output(self._gather_s))
        self._pool.expect(command_id)
        try:
            self._carry_out(self._pool.receive(data, command_id), command)
        except BrokenMessage:
            del self.commands[command_id]
            self._pool.forget(command_id)
            raise

    def command(self, command_id: uuid.UUID) -> Command:
        """The pipeline with this id. Raises soap.Fault."""
        if command_id not in self.commands:
            raise soap.Fault(soap.NO_SUCH_SHELL)
        return self.commands[command_id]

    def signal(self, command_id: uuid.UUID, code: str) -> None:
        """Stop a pipeline; `terminate` also forgets it. Raises soap.Fault."""
        command = self.command(command_id)
        self._stop(command)
        if code.casefold() == soap.TERMINATE:
            del self.commands[command_id]
            self._pool.forget(command_id)
            command.output.abort()

    def kill(self) -> None:
        """End all pipelines; nothing of them arrives any more."""
        for command in self.commands.values():
            self._stop(command)
            command.output.abort()
        self.commands.clear()
        self.output.abort()

    def describe(self, resource: str, client: str, idle_timeout: str) -> dict[str, str]:
        """The fields of rsp:Shell, in Windows' order."""
        age = f"P0DT0H0M{int(time.monotonic() - self._created)}S"
        return {
            "ShellId": self.id,
            "ResourceUri": resource,
            "Owner": self.owner,
            "ClientIP": client,
            "ProcessId": "4242",
            "IdleTimeOut": idle_timeout,
            "InputStreams": "stdin pr",
            "OutputStreams": "stdout",
            "MaxIdleTimeOut": "PT2147483.647S",
            "Locale": "en-US",
            "DataLocale": "en-US",
            "CompressionMode": "NoCompression",
            "ProfileLoaded": "Yes",
            "Encoding": "UTF8",
            "BufferMode": "Block",
            "State": "Connected" if self.connected else "Disconnected",
            "ShellRunTime": age,
            "ShellInactivity": "P0DT0H0M0S",
        }

    def _carry_out(self, tasks: list[Say | Run], command: Command | None) -> None:
        for task in tasks:
            if isinstance(task, Say):
                self.output.push(self._pool.fragments(task), apart=task.apart)
            elif command is None:
                raise BrokenMessage("a pipeline without a command")
            else:
                command.running = asyncio.get_running_loop().create_task(self._run(command, task))

    async def _run(self, command: Command, run: Run) -> None:
        """Run a script to its end, in a thread, and say how it ended."""
        loop = asyncio.get_running_loop()

        def emit(stream: Stream, value: object) -> None:
            say = self._record(stream, value, run)
            loop.call_soon_threadsafe(self._push, command, say)

        def work() -> Ended:
            return self._executor.run(run.script, run.parameters, emit, command.stop)

        if not self._used:
            self._used = True
            self._push(command, Say(MessageType.PROGRESS_RECORD, clixml.progress_record(_FIRST_USE)))
        if run.problem is not None:
            ended = Ended("failed", ErrorRecord(run.problem, error_id="LabRefusal"))
        else:
            future = asyncio.wrap_future(self._threads.submit(work))
            await asyncio.wait([future])
            crash = future.exception()
            if crash is None:
                ended = future.result()
            else:
                self._crashed(crash)
                ended = Ended("failed", ErrorRecord(f"{type(crash).__name__}: {crash}", error_id="LabCrash"))
        error = STOPPED if ended.state == "stopped" else ended.error
        state = clixml.pipeline_state(_STATES[ended.state], error, run.script)
        self._push(command, Say(MessageType.PIPELINE_STATE, state))
        command.output.end()

    def _stop(self, command: Command) -> None:
        # By a thread: the callback may wait for locks, and this is the loop that all machines share.
        command.stop.set(self._threads.submit)

    def _push(self, command: Command, say: Say) -> None:
        if self.commands.get(command.id) is command:
            command.output.push(self._pool.fragments(say, command.id))

    def _record(self, stream: Stream, value: object, run: Run) -> Say:
        match stream, value:
            case "output", _:
                return Say(MessageType.PIPELINE_OUTPUT, clixml.output(value))
            case "error", ErrorRecord():
                return Say(MessageType.ERROR_RECORD, clixml.error_record(value, run.script))
            case "progress", Progress():
                return Say(MessageType.PROGRESS_RECORD, clixml.progress_record(value))
            case "information", Information():
                when = datetime.now(UTC).isoformat()
                xml = clixml.information_record(value, self._computer_name, self.owner, when)
                return Say(MessageType.INFORMATION_RECORD, xml)
            case (("warning" | "verbose" | "debug"), str()):
                name, kind, option = _INFORMATIONAL[stream]
                place = bool(int(option) & run.places)
                return Say(kind, clixml.informational_record(name, value, run.script, place=place))
        raise TypeError(f"a {type(value).__name__} cannot go to the stream {stream}")
