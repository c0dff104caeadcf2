"""One runspace: the global scope, the streams, `$Error`, the call stack, and what happens when a statement fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from winboot_lab.engine.dotnet import DotNetType
from winboot_lab.engine.errors import record_of
from winboot_lab.engine.exceptions import ErrorRecord, RuntimeException
from winboot_lab.engine.locations import Locations
from winboot_lab.engine.objects import Invocation
from winboot_lab.engine.values import ArrayList, EnumValue
from winboot_lab.engine.variables import Variable
from winboot_lab.language.syntax import Node
from winboot_lab.windows.door import Door

Value = Any
Emit = Callable[[Value], None]
Stream = Literal["output", "error", "warning", "verbose", "debug", "information", "progress"]

MAX_ERRORS = 256
MAX_DEPTH = 3000


def nowhere(_value: Value) -> None:
    """A sink that forgets."""


class Streams:
    """Where each stream but output goes just now. Redirections swap the whole set for a while."""

    __slots__ = ("debug", "error", "information", "progress", "verbose", "warning")

    def __init__(
        self, error: Emit, warning: Emit, verbose: Emit, debug: Emit, information: Emit, progress: Emit
    ) -> None:
        self.error = error
        self.warning = warning
        self.verbose = verbose
        self.debug = debug
        self.information = information
        self.progress = progress

    def copy(self) -> Streams:
        """The same places, to be changed one by one."""
        return Streams(self.error, self.warning, self.verbose, self.debug, self.information, self.progress)


class Trap:
    """A compiled `trap`: its types (None for all) and what runs, both in a Scope, which needs this module first."""

    __slots__ = ("body", "types")

    def __init__(self, types: Callable[[Any], Value] | None, body: Callable[[Any, Emit], None]) -> None:
        self.types = types
        self.body = body


class Activation:
    """One entry of the call stack: whose code runs and which statement it is at.

    `local` is true when the block has a scope of its own. `caught` are the errors that enclosing catch blocks are
    handling. `traps` are the trap lists in force, None where a `try` hides the outer ones.
    """

    __slots__ = ("at", "caught", "local", "name", "traps")

    def __init__(self, name: str, *, local: bool) -> None:
        self.name = name
        self.local = local
        self.at: Node | None = None
        self.caught: list[RuntimeException] = []
        self.traps: list[Sequence[Trap] | None] = []


class Collector(Protocol):
    """A call that collects what is written inside it: -ErrorVariable and its kin."""

    error_variable: ArrayList | None
    warning_variable: ArrayList | None
    information_variable: ArrayList | None


class Session:
    """The state that outlives a statement. `emit(stream, value)` is where everything ends up."""

    def __init__(
        self,
        machine: Door,
        emit: Callable[[Stream, object], None],
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.machine = machine
        self.emit = emit
        self.cancelled = cancelled
        self.shared: dict[str, Variable] = {}
        self.errors: ArrayList = ArrayList()
        self.question = True
        self.in_try = False
        self.stack: list[Activation] = [Activation("<ScriptBlock>", local=False)]
        self.streams = Streams(*(self._to(stream) for stream in _SIDE_STREAMS))
        self.namespaces: list[str] = []
        self.types: dict[str, DotNetType] = {}
        self.listening: list[Collector] = []
        self.locations: Locations  # set by the set-up, see automatic.py
        self.state: dict[str, Any] = {}

    def _to(self, stream: Stream) -> Emit:
        emit = self.emit
        return lambda value: emit(stream, value)

    # -- the machine's say before each statement ---------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Let the machine act (faults, stop), and end the run when a stop was requested."""
        self.machine.checkpoint()
        if self.cancelled():
            raise Cancelled

    # -- errors -------------------------------------------------------------------------------------------------------

    def remember(self, record: ErrorRecord) -> None:
        """Put a record in front of `$Error`, unless the same failure is already the first."""
        if self.errors:
            first = self.errors[0]
            if first is record or (isinstance(first, ErrorRecord) and first.exception is record.exception):
                return
        self.errors.insert(0, record)
        del self.errors[MAX_ERRORS:]

    def locate(self, runtime: RuntimeException, node: Node) -> ErrorRecord:
        """The record of a failure, with the place where it happened filled in."""
        record = record_of(runtime)
        if record.invocation is None:
            record.invocation = Invocation(node.extent)
        if record.script_stack_trace is None:
            record.script_stack_trace = self.stack_trace(node)
        return record

    def stack_trace(self, innermost: Node | None = None) -> str:
        """ScriptStackTrace: innermost frame first."""
        lines = []
        for frame in reversed(self.stack):
            node = innermost if innermost is not None else frame.at
            innermost = None
            if node is not None:
                lines.append(f"at {frame.name}, <No file>: line {node.extent.line}")
        return "\r\n".join(lines)


class Cancelled(Exception):
    """The caller requested the end of the run. No script sees this."""


_SIDE_STREAMS: tuple[Stream, ...] = ("error", "warning", "verbose", "debug", "information", "progress")

ACTIONS = ("SilentlyContinue", "Stop", "Continue", "Inquire", "Ignore", "Suspend")


def action_name(value: Value, default: str) -> str:
    """An ActionPreference given as text, number or enum value, as its name."""
    if isinstance(value, EnumValue):
        return str(value)
    if isinstance(value, str):
        wanted = value.strip().lower()
        for action in ACTIONS:
            if action.lower() == wanted:
                return action
    elif isinstance(value, int) and 0 <= value < len(ACTIONS):
        return ACTIONS[value]
    return default


__all__ = [
    "Activation",
    "Cancelled",
    "Emit",
    "Session",
    "Streams",
    "Trap",
    "action_name",
    "nowhere",
]
