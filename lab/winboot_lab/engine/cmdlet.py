"""How a cmdlet written in Python runs: its stage, and the `Call` it works with.

@cmdlet("Split-Path", "Path: string[] mandatory position=0 value name ...")
def split_path(call: Call) -> None:                 # once for each pipeline object
    for path in call["Path"]: call.write(...)

@cmdlet("Sort-Object", "InputObject: psobject value ...")
class SortObject:                                   # with state: begin, process, end as needed
    def __init__(self, call: Call) -> None: ...
    def process(self) -> None: ...
    def end(self) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from winboot_lab.engine import common
from winboot_lab.engine.binder import Argument, Binding
from winboot_lab.engine.convert import to_bool
from winboot_lab.engine.errors import cmdlet_failure, cmdlet_wrapping, is_wrapped_by_cmdlets
from winboot_lab.engine.exceptions import DotNetException, ErrorRecord, RuntimeException
from winboot_lab.engine.objects import Invocation
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit
from winboot_lab.engine.signatures import CommandSpec, common_parameters, parse_signature
from winboot_lab.engine.stages import Line, Stage, input_not_bound
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.values import NOTHING, Instance, enumerate_value

Value = Any


class Call:
    """One running cmdlet: its bound parameters, its streams, its session."""

    def __init__(self, stage: CmdletStage, binding: Binding) -> None:
        self.stage = stage
        self.scope: Scope = stage.scope
        self.session = stage.session
        self.machine = stage.session.machine
        self.name = stage.command.name
        self.bound = binding.bound
        self.binding = binding
        self.common = common.CommonParameters(binding)
        self.expects_input = stage.expects_input

    # -- parameters ---------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Value:
        """The bound value of a parameter, or None."""
        return self.bound.get(name.lower())

    def get(self, name: str, default: Value = None) -> Value:
        """The bound value, or a default."""
        return self.bound.get(name.lower(), default)

    def has(self, name: str) -> bool:
        """Was it given?"""
        return name.lower() in self.bound

    def flag(self, name: str) -> bool:
        """A switch."""
        return to_bool(self.bound.get(name.lower()))

    def items(self, name: str) -> list[Value]:
        """An array parameter as a list; empty when it was not given."""
        value = self.bound.get(name.lower())
        if value is None:
            return []
        found = enumerate_value(value)
        return [value] if found is None else list(found)

    def text(self, value: Value) -> str:
        """A value as a string, in the caller's scope."""
        return to_text(value, self.scope)

    @property
    def set_name(self) -> str:
        """The chosen parameter set."""
        return self.binding.set_name

    # -- output -------------------------------------------------------------------------------------------------------

    def write(self, value: Value) -> None:
        """Write one object, whole."""
        if value is not NOTHING:
            self.stage.out(value)

    def write_each(self, value: Value) -> None:
        """Write a value, taken apart if it is a collection."""
        found = enumerate_value(value)
        if found is None:
            self.stage.out(value)
        else:
            for item in found:
                self.write(item)

    # -- errors -------------------------------------------------------------------------------------------------------

    def record(
        self,
        failure: DotNetException | str,
        id: str,
        category: str = "NotSpecified",
        target: Value = None,
    ) -> ErrorRecord:
        """An error record of this cmdlet."""
        if isinstance(failure, str):
            failure = RuntimeException(failure, id, category, target)
        made = ErrorRecord(failure, f"{id},{self.stage.command.suffix}", category, target)
        return self.own(made)

    def own(self, record: ErrorRecord) -> ErrorRecord:
        """Sign a record: it comes from this cmdlet."""
        record.activity = record.activity or self.name
        if record.invocation is None:
            record.invocation = self.stage.invocation
        return record

    def error(
        self,
        failure: DotNetException | str,
        id: str,
        category: str = "NotSpecified",
        target: Value = None,
    ) -> None:
        """Report a non-terminating error and go on (or stop, as -ErrorAction says)."""
        self.report(self.record(failure, id, category, target))

    def report(self, record: ErrorRecord) -> None:
        """Report a finished record as a non-terminating error."""
        self.stage.line.failed = True
        common.write_error(self.scope, self.own(record), self.common.error_action, self.common)

    def fail(
        self,
        failure: DotNetException | str,
        id: str,
        category: str = "NotSpecified",
        target: Value = None,
    ) -> NoReturn:
        """End the cmdlet with a terminating error."""
        raise self.failure(self.record(failure, id, category, target))

    def failure(self, record: ErrorRecord) -> RuntimeException:
        """The terminating error of a record, to be raised."""
        made = cmdlet_failure(self.own(record))
        self.common.note_failure(self.scope, made)
        return made

    # -- other streams --------------------------------------------------------------------------------------------------

    def warn(self, message: str) -> None:
        common.write_warning(self.scope, message, self.common, self.stage.command.suffix)

    def verbose(self, message: str) -> None:
        common.write_verbose(self.scope, message, self.common, self.stage.command.suffix)

    # -- asking ---------------------------------------------------------------------------------------------------------

    def should_process(self) -> bool:
        """False under -WhatIf: nothing is to be changed. -Confirm is refused: the lab has no user to answer."""
        if self.common.confirm:
            raise Refusal("parameter", f"{self.name} -Confirm")
        if self.common.what_if is not None:
            return not self.common.what_if
        return not to_bool(self.scope.get("whatifpreference", False))

    def refuse(self, what: str) -> NoReturn:
        """This use of a parameter is unknown to the lab."""
        raise Refusal("parameter", f"{self.name} {what}")


class Cmdlet(Instance):
    """A cmdlet in Python. `run` is a function called for each pipeline object, or a class with begin, process and end."""

    kind = "Cmdlet"

    def __init__(
        self,
        name: str,
        signature: str,
        run: Any,
        *,
        module: str,
        default_set: str | None = None,
        suffix: str | None = None,
        should_process: bool = False,
    ) -> None:
        self.name = name
        self.run = run
        self.module = module
        self._signature = signature
        self._default_set = default_set
        self.suffix = suffix or f"Microsoft.PowerShell.Commands.{name.replace('-', '')}Command"
        self._should_process = should_process
        self.guards: dict[str, Callable[[Value], bool]] = {}
        self._spec: CommandSpec | None = None

    @property
    def spec(self) -> CommandSpec:
        """The declared parameters, read on first use."""
        if self._spec is None:
            parameters = parse_signature(self._signature)
            parameters.extend(common_parameters(should_process=self._should_process))
            self._spec = CommandSpec(
                self.name,
                parameters,
                default_set=self._default_set,
                suffix=self.suffix,
                should_process=self._should_process,
            )
            for key, guard in self.guards.items():
                self._spec.by_name[key].guard = guard
        return self._spec


class CmdletStage(Stage):
    """A cmdlet at work."""

    def __init__(
        self,
        scope: Scope,
        command: Cmdlet,
        arguments: Sequence[Argument],
        out: Emit,
        line: Line,
        invocation: Invocation,
        *,
        expects_input: bool,
    ) -> None:
        super().__init__(scope, out, line, expects_input=expects_input)
        self.command = command
        self.suffix = command.suffix
        self.invocation = invocation
        self.binding = Binding(command.spec, scope, expects_input=expects_input)
        self.binding.command_line(arguments)
        self.call = Call(self, self.binding)
        self.out = self.call.common.wrap_output(scope, out)
        self.instance: Any = None
        self.fast = self.binding.only_input()
        self.turn: Any = None

    def begin(self) -> None:
        run = self.command.run
        if isinstance(run, type):
            self.instance = self._guard(lambda: run(self.call))
            self.turn = getattr(self.instance, "process", None)
            first = getattr(self.instance, "begin", None)
            if first is not None:
                self._guard(first)
        else:
            call = self.call
            self.turn = lambda: run(call)

    def process(self, item: Value) -> None:
        if self.fast is not None:
            self.binding.bound[self.fast] = item
        elif not self._bind_object(item):
            return
        if self.turn is not None:
            self._guard(self.turn)

    def _bind_object(self, item: Value) -> bool:
        try:
            if self.binding.pipeline_object(item):
                return True
            failure: RuntimeException = input_not_bound(self.binding, item)
        except RuntimeException as raised:
            failure = raised
        record = failure.error_record
        self.call.report(record)
        return False

    def once(self) -> None:
        if self.turn is not None:
            self._guard(self.turn)

    def end(self) -> None:
        last = getattr(self.instance, "end", None)
        if last is not None:
            self._guard(last)
        self.call.common.finish(self.scope)

    def leave(self) -> None:
        self.instance = self.turn = None
        del self.call

    def _guard(self, work: Any) -> Any:
        """Run a part of the cmdlet; a .NET failure inside it becomes the cmdlet's terminating error."""
        try:
            return work()
        except RuntimeException as failure:
            record = failure.error_record
            if record.id.endswith(self.suffix):
                if record.invocation is None:
                    record.invocation = self.invocation
                raise
            if failure.crossing is not None or not is_wrapped_by_cmdlets(failure):
                raise
            raise cmdlet_wrapping(failure, self.invocation, self.call.name, self.suffix) from failure
        except DotNetException as failure:
            record = ErrorRecord(failure, f"{failure.type_name},{self.suffix}", "NotSpecified", None)
            raise cmdlet_failure(self.call.own(record)) from failure
