"""One runspace: the global scope, the streams, `$Error`, the call stack, and what happens when a statement fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from winboot_lab.engine.dotnet import DotNetType
from winboot_lab.engine.errors import as_runtime, find_handler, record_of
from winboot_lab.engine.exceptions import DotNetException, ErrorRecord, RuntimeException
from winboot_lab.engine.flow import BreakLoop, ContinueLoop
from winboot_lab.engine.objects import Invocation
from winboot_lab.engine.places import position_message
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import ComputedVariable, Scope, Variable
from winboot_lab.engine.values import ArrayList, EnumValue
from winboot_lab.language.syntax import Extent, Node

if TYPE_CHECKING:
    from winboot_lab.engine.common import CommonParameters
    from winboot_lab.engine.locations import Locations
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
    """A compiled `trap`: its types (None for all) and what runs."""

    __slots__ = ("body", "types")

    def __init__(self, types: Callable[[Scope], Value] | None, body: Callable[[Scope, Emit], None]) -> None:
        self.types = types
        self.body = body


class Activation:
    """One entry of the call stack: whose code runs and which statement it is at.

    `local` is true when the block has a scope of its own; `caught` are the errors that enclosing catch blocks are
    handling; `traps` are the trap lists in force, None where a `try` hides the outer ones.
    """

    __slots__ = ("at", "caught", "local", "name", "traps")

    def __init__(self, name: str, *, local: bool) -> None:
        self.name = name
        self.local = local
        self.at: Node | None = None
        self.caught: list[RuntimeException] = []
        self.traps: list[Sequence[Trap] | None] = []


class Blocks(Protocol):
    """Running script blocks, which the session does on behalf of code below the invoker."""

    def call(self, scope: Scope, block: Any, arguments: Sequence[Value], this: Value) -> Value:
        """As a delegate: one value, an array, or None."""

    def with_underbar(self, scope: Scope, block: Any, item: Value, arguments: Sequence[Value]) -> Value:
        """In the current scope with `$_` set."""

    def define(self, scope: Scope, name: str, value: Value) -> None:
        """As a function."""


class Session:
    """The state that outlives a statement. `emit(stream, value)` is where everything ends up."""

    blocks: ClassVar[Blocks]  # set by `invoke`, which needs this module first

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
        self.top = Scope(self, None)
        self.listening: list[CommonParameters] = []
        self.locked_aliases: set[str] = set()
        self.locations: Locations  # set by the set-up, see automatic.py
        self.state: dict[str, Any] = {}

    def _to(self, stream: Stream) -> Emit:
        emit = self.emit
        return lambda value: emit(stream, value)

    # -- automatic variables ---------------------------------------------------------------------------------------

    def computed(
        self, name: str, get: Callable[[], Value], set_: Callable[[Value], None] | None = None
    ) -> None:
        """Declare a global variable whose value is worked out when read; it is the same in every scope."""
        self.top.variables[name.lower()] = self.shared[name.lower()] = ComputedVariable(name, get, set_)

    def constant(self, name: str, value: Value, *, option: str = "Constant") -> None:
        """Declare a global variable that nobody may overwrite, in any scope."""
        made = Variable(name, value, frozenset((option, "AllScope")))
        self.top.variables[name.lower()] = self.shared[name.lower()] = made

    # -- the machine's say before each statement ---------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Let the machine act (faults, stop), and end the run when somebody asked for it."""
        self.machine.checkpoint()
        if self.cancelled():
            raise Cancelled

    # -- running blocks on behalf of library code ----------------------------------------------------------------------

    def call(self, scope: Scope, block: Any, arguments: Sequence[Value], this: Value = None) -> Value:
        """Run a script block as a delegate; see invoke.call_delegate."""
        return self.blocks.call(scope, block, arguments, this)

    def call_with_underbar(
        self, scope: Scope, block: Any, item: Value, arguments: Sequence[Value] = ()
    ) -> Value:
        """Run a script block in the current scope with `$_` set; see invoke.call_with_underbar."""
        return self.blocks.with_underbar(scope, block, item, arguments)

    def define_function(self, scope: Scope, name: str, value: Value) -> None:
        """`$function:name = …`; see invoke.define_function."""
        self.blocks.define(scope, name, value)

    # -- errors -------------------------------------------------------------------------------------------------------

    def remember(self, record: ErrorRecord) -> None:
        """Put a record in front of `$Error`, unless the same failure already stands there."""
        if self.errors:
            first = self.errors[0]
            if first is record or (isinstance(first, ErrorRecord) and first.exception is record.exception):
                return
        self.errors.insert(0, record)
        del self.errors[MAX_ERRORS:]

    def preference(self, scope: Scope, key: str, default: str) -> str:
        """A preference variable as one of ActionPreference's names.

        5.1 throws NotSupportedException where a variable that says Ignore or Suspend is looked at; Inquire asks a person.
        """
        variable = scope.find(key)
        if variable is None:
            return default
        action = action_name(variable.value, default)
        if action in ("Ignore", "Suspend", "Inquire"):
            raise Refusal("value", f"${variable.name} = '{action}'")
        return action

    def failed(self, scope: Scope, failure: DotNetException, node: Node, out: Emit) -> None:
        """A statement failed: hand the error on (raise) or report it and let the next statement run.

        This is the heart of PowerShell's error flow: inside a `try` everything travels outwards; a `trap` may take it;
        `$ErrorActionPreference` decides the rest; an uncaught `throw` always ends the script.
        """
        runtime = as_runtime(failure)
        record = self.locate(runtime, node)
        self.remember(record)
        self.question = False
        activation = self.stack[-1]
        traps = activation.traps[-1] if activation.traps else None
        if not traps and (self.in_try or runtime.settled):
            raise runtime
        action = None
        if traps:
            action = self._trap(scope, traps, runtime, record, out)
        if action is None:
            if traps and (self.in_try or runtime.settled):
                raise runtime
            action = self.preference(scope, "erroractionpreference", "Continue")
            trapped = False
        else:
            trapped = True
        runtime.settled = True
        if action == "SilentlyContinue":
            return
        if action == "Stop" or (runtime.was_thrown_from_throw_statement and not trapped):
            raise runtime
        self.streams.error(record)

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

    def _trap(
        self,
        scope: Scope,
        traps: Sequence[Trap],
        runtime: RuntimeException,
        record: ErrorRecord,
        out: Emit,
    ) -> str | None:
        """Run the trap that takes the failure; what it decided, or None when no trap takes it."""
        clauses = [None if trap.types is None else [trap.types(scope)] for trap in traps]
        found = find_handler(runtime, clauses)
        if found is None:
            return None
        number, seen = found
        before = scope.variables.get("_")
        saved = before.value if before is not None else None
        scope.put("_", seen)
        activation = self.stack[-1]
        activation.traps.append(None)
        outer, self.in_try = self.in_try, False
        try:
            traps[number].body(scope, out)
        except ContinueLoop as jump:
            if jump.label:
                raise
            return "SilentlyContinue"
        except BreakLoop as jump:
            if jump.label:
                raise
            return "Stop"
        finally:
            self.in_try = outer
            activation.traps.pop()
            if before is None:
                scope.variables.pop("_", None)
            else:
                before.value = saved
        return self.preference(scope, "erroractionpreference", "Continue") if not outer else "Stop"

    def position_message(self, extent: Extent) -> str:
        """`At line:3 char:5` with the line and the marks below it."""
        return position_message(extent)


class Cancelled(Exception):
    """Somebody outside asked the run to end. No script sees this."""


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
