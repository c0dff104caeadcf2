"""Running the command behind a name: stages of a pipeline, script blocks, delegates.

A `Stage` is one running command. Objects are pushed: a stage writes to `out`, which is the next stage's `accept`, so begin,
process and end interleave as in PowerShell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from winboot_lab.engine import common
from winboot_lab.engine.attributes import keep_rules
from winboot_lab.engine.binder import ABSENT, Argument, Binding, ParameterMark
from winboot_lab.engine.blocks import Code
from winboot_lab.engine.cmdlet import Cmdlet, CmdletStage
from winboot_lab.engine.commands import (
    Application,
    Bound,
    Command,
    Function,
    MachineCommand,
    ScriptFile,
)
from winboot_lab.engine.convert import convert, try_convert
from winboot_lab.engine.errors import as_runtime
from winboot_lab.engine.exceptions import (
    DotNetException,
    RuntimeException,
    ScriptCallDepthException,
    ScriptRequiresException,
)
from winboot_lab.engine.flow import ExitScript, ReturnFromBlock
from winboot_lab.engine.machine_commands import MachineStage
from winboot_lab.engine.native import NativeStage, read_script
from winboot_lab.engine.objects import BoundParameters, Invocation, ScriptCmdlet
from winboot_lab.engine.programs import compiled
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import MAX_DEPTH, Activation, Emit, Session
from winboot_lab.engine.signatures import ParameterSpec
from winboot_lab.engine.stages import Line, Stage, input_not_bound, run_stage
from winboot_lab.engine.values import (
    NOTHING,
    Array,
    Decorated,
    Enumerator,
    ScriptBlock,
    plain,
)
from winboot_lab.engine.variables import Variable
from winboot_lab.language.syntax import Extent

Value = Any


# -- script blocks and functions


def code_of(block: ScriptBlock) -> tuple[Code, Scope | None]:
    """The code behind a script block value, and the scope a closure lives in."""
    bound = block.bound
    if isinstance(bound, Code):
        return bound, None
    if isinstance(bound, Bound):
        return bound.code, bound.home
    code = compiled(block.text)
    block.tree = code.tree
    block.bound = code
    return code, None


def _kept_to_rules(scope: Scope, parameter: ParameterSpec, value: Value) -> Value:
    """A new value for the variable of a parameter. Few are ever set again: the rules are put together only then."""
    rules = keep_rules(scope, parameter.name, parameter.types[::-1], parameter.validators, converts=True)
    return rules(value)


class BlockStage(Stage):
    """A function or script block at work."""

    def __init__(
        self,
        scope: Scope,
        code: Code,
        arguments: Sequence[Argument],
        out: Emit,
        line: Line,
        *,
        expects_input: bool = False,
        dotted: bool = False,
        home: Scope | None = None,
        script: bool = False,
        invocation: Invocation | None = None,
        this: Value = NOTHING,
    ) -> None:
        super().__init__(scope, out, line, expects_input=expects_input)
        self.code = code
        self.dotted = dotted
        self.activation = Activation(code.display, local=not dotted)
        if dotted:
            self.own = scope
        else:
            self.own = Scope(self.session, home if home is not None else scope)
            if script:
                self.own.script = self.own
        self.invocation = invocation
        self.collected: list[Value] = []
        self.this = this
        self.is_file = script
        self.common: common.CommonParameters | None = None
        self.restore: list[Callable[[], None]] = []
        self._bind(arguments)

    # -- binding --------------------------------------------------------------------------------------------------

    def _bind(self, arguments: Sequence[Argument]) -> None:
        code, own = self.code, self.own
        prepare_script(self.session, code)
        if len(self.session.stack) > MAX_DEPTH:
            raise ScriptCallDepthException("The script failed due to call depth overflow.")
        binding = None
        if code.parameters or code.advanced:
            spec = code.spec(self.scope)
            if code.tree.dynamicparam is not None:
                raise Refusal("construct", "dynamicparam")
            binding = Binding(spec, self.scope, expects_input=self.expects_input)
            binding.command_line(arguments)
            rest = binding.rest
        else:
            rest = []
            for argument in arguments:
                rest.extend(loose(argument))
        self.binding = binding
        if self.dotted:
            self._set_for_dotted(rest)
        else:
            own.put("args", Array(rest))
        if self.invocation is not None:
            own.put("MyInvocation", self.invocation)
        if self.this is not NOTHING:
            own.put("this", self.this)
        if binding is None:
            own.put("PSBoundParameters", BoundParameters())
            return
        self._set_parameters(binding)

    def _set_for_dotted(self, rest: list[Value]) -> None:
        """A dot-sourced block shares the scope: its `$args` last only as long as it runs."""
        before = self.own.variables.get("args")
        saved = before.value if before is not None else NOTHING
        self.own.put("args", Array(rest))

        def restore() -> None:
            if saved is NOTHING:
                self.own.variables.pop("args", None)
            else:
                self.own.put("args", saved)

        self.restore.append(restore)

    def _set_parameters(self, binding: Binding) -> None:
        own, spec = self.own, binding.spec
        self.reported = BoundParameters()
        for parameter in spec.parameters:
            key = parameter.key
            if key in binding.given:
                self.reported.put(parameter.name, binding.given[key])
        own.put("PSBoundParameters", self.reported)
        if self.invocation is not None:
            self.invocation.bound = self.reported
        if spec.advanced:
            self.common = common.CommonParameters(binding)
            self.common.set_preferences(own)
            own.put("PSCmdlet", ScriptCmdlet())
        for parameter in spec.parameters:
            key = parameter.key
            if key in binding.bound and not parameter.common:
                self._set(parameter, binding.bound[key])
        self.activation.at = None
        self._default_parameters(binding)

    def _default_parameters(self, binding: Binding) -> None:
        missing = [
            parameter
            for parameter in binding.spec.parameters
            if parameter.key not in binding.bound and not parameter.common
        ]
        for parameter in missing:
            if parameter.default is None:
                self._set(parameter, empty_value(parameter))
        self.session.stack.append(self.activation)
        try:
            for parameter in missing:
                if parameter.default is not None:
                    value = parameter.default(self.own)
                    self._set(parameter, binding_default(binding, parameter, value))
        finally:
            self.session.stack.pop()

    def _set(self, parameter: ParameterSpec, value: Value) -> None:
        key = parameter.key
        variable = self.own.variables[key] = Variable(parameter.name, value)
        if parameter.typed or parameter.validators:
            variable.convert = partial(_kept_to_rules, self.own, parameter)

    # -- running ------------------------------------------------------------------------------------------------------

    def run_phase(self, kind: str) -> None:
        """Run one named block; `return` leaves only that block."""
        phase = self.code.phase(kind)
        if phase is None:
            return
        session = self.session
        session.stack.append(self.activation)
        listens = self.common is not None and self.common.listens
        if listens:
            assert self.common is not None
            session.listening.append(self.common)
        try:
            phase(self.own, self.out)
        except ReturnFromBlock:
            pass
        except ExitScript as ended:
            if not self.is_file:
                raise
            # `exit` in a script file ends that file; the caller continues.
            self.own.top.put("LASTEXITCODE", ended.code)
            self.line.failed = ended.code != 0
        except DotNetException as failure:
            raise self._noted(failure) from None
        finally:
            session.stack.pop()
            if listens:
                session.listening.pop()

    def _noted(self, failure: DotNetException) -> RuntimeException:
        runtime = as_runtime(failure)
        if self.common is not None:
            self.common.note_failure(self.own, runtime)
        return runtime

    def begin(self) -> None:
        if self.common is not None:
            self.out = self.common.wrap_output(self.scope, self.out)
        if self.code.tree.begin is not None:
            if self.code.uses_input:
                self.own.put("input", Enumerator([]))
            self.run_phase("begin")

    def process(self, item: Value) -> None:
        binding = self.binding
        if binding is not None and binding.spec.advanced and not self._bind_object(binding, item):
            return
        if self.code.has_process:
            self.own.put("_", item)
            if self.code.uses_input:
                self.own.put("input", Enumerator([item]))
            self.run_phase("process")
        elif self.code.uses_input or binding is None or not binding.spec.advanced:
            self.collected.append(item)

    def _bind_object(self, binding: Binding, item: Value) -> bool:
        previous = set(binding.bound)
        try:
            done = binding.pipeline_object(item)
        except RuntimeException as failure:
            self._report_binding(failure)
            return False
        if not done:
            self._report_binding(input_not_bound(binding, item))
            return False
        for parameter in binding.spec.parameters:
            key = parameter.key
            if parameter.common:
                continue
            if key in binding.bound:
                self._set(parameter, binding.bound[key])
                self.reported.put(parameter.name, binding.bound[key])
            elif key in previous:
                self.reported.drop(parameter.name)
                value = empty_value(parameter) if parameter.default is None else parameter.default(self.own)
                self._set(parameter, binding_default(binding, parameter, value))
        return True

    def _report_binding(self, failure: RuntimeException) -> None:
        record = failure.error_record
        if record.invocation is None:
            record.invocation = self.invocation
        self.line.failed = True
        action = self.common.error_action if self.common is not None else None
        common.write_error(self.scope, record, action, self.common)

    def once(self) -> None:
        if self.code.has_process:
            self.run_phase("process")

    def end(self) -> None:
        code = self.code
        try:
            if code.tree.end is not None:
                if code.uses_input:
                    self.own.put("input", Enumerator(self.collected))
                if self.expects_input and not self.dotted:
                    self.own.put("_", None)
                self.run_phase("end")
        finally:
            for restore in self.restore:
                restore()
            if self.common is not None:
                self.common.finish(self.scope)

    def leave(self) -> None:
        self.restore.clear()
        if not self.dotted:
            self.own.leave()


def prepare_script(session: Session, code: Code) -> None:
    """What stands at the head of a script: `using namespace`, #requires."""
    for using in code.tree.using:
        if using.kind != "namespace":
            raise Refusal("construct", f"using {using.kind} {using.name}").at(*using.extent.position)
        if using.name not in session.namespaces:
            session.namespaces.append(using.name)
    wanted = code.tree.requirements
    if wanted is None:
        return
    if wanted.modules:
        raise Refusal("construct", f"#requires -Modules {', '.join(wanted.modules)}")
    if (wanted.version or (1,)) > (5, 1) or (wanted.edition or "Desktop").lower() != "desktop":
        raise ScriptRequiresException(
            'The script cannot be run because it contained a "#requires" statement that asks for another version of '
            "Windows PowerShell than this one.",
            "ScriptRequiresUnmatchedPSVersion",
            "ResourceUnavailable",
        )


def loose(argument: Argument) -> list[Value]:
    """An argument as it lands in `$args`."""
    found: list[Value] = []
    if argument.name is not None:
        found.append(Decorated(argument.text or f"-{argument.name}", ParameterMark()))
    if argument.value is not ABSENT:
        found.append(None if argument.value is NOTHING else argument.value)
    return found


def empty_value(parameter: ParameterSpec) -> Value:
    """What an unbound parameter without default holds: what $null becomes in its type, else $null."""
    if not parameter.typed:
        return None
    worked, value = try_convert(None, parameter.type)
    return value if worked else None


def binding_default(binding: Binding, parameter: ParameterSpec, value: Value) -> Value:
    """A default value, converted to the parameter's type but not validated."""
    if value is NOTHING:
        value = None
    if not parameter.typed:
        return value
    for kind in parameter.types:
        value = convert(value, kind)
    return value


# -- making a stage for a command


def make_stage(
    scope: Scope,
    command: Command,
    arguments: Sequence[Argument],
    out: Emit,
    line: Line,
    *,
    expects_input: bool,
    extent: Extent | None = None,
    called: str = "",
    dotted: bool = False,
) -> Stage:
    """The stage that runs a command with these arguments."""
    invocation = Invocation(extent, command, called, expects_input=expects_input, length=line.length)
    try:
        if isinstance(command, Function):
            return BlockStage(
                scope,
                command.code,
                arguments,
                out,
                line,
                expects_input=expects_input,
                dotted=dotted,
                home=command.home,
                invocation=invocation,
            )
        if isinstance(command, Cmdlet):
            return CmdletStage(scope, command, arguments, out, line, invocation, expects_input=expects_input)
        if isinstance(command, MachineCommand):
            return MachineStage(scope, command, arguments, out, line, invocation, expects_input=expects_input)
        if isinstance(command, ScriptFile):
            return _script_file_stage(
                scope, command, arguments, out, line, invocation, expects_input=expects_input, dotted=dotted
            )
        if isinstance(command, Application):
            if command.path.lower().endswith((".cmd", ".bat")):
                raise Refusal("program", command.path, "a batch file")
            return NativeStage(scope, command, arguments, out, line, expects_input=expects_input)
    except RuntimeException as failure:
        if failure.error_record.invocation is None:
            failure.error_record.invocation = invocation
        raise
    raise Refusal("command", str(command))


def _script_file_stage(
    scope: Scope,
    command: ScriptFile,
    arguments: Sequence[Argument],
    out: Emit,
    line: Line,
    invocation: Invocation,
    *,
    expects_input: bool,
    dotted: bool,
) -> Stage:
    code = compiled(read_script(scope, command.path)).named(command.name)
    stage = BlockStage(
        scope,
        code,
        arguments,
        out,
        line,
        expects_input=expects_input,
        dotted=dotted,
        script=True,
        invocation=invocation,
    )
    stage.own.put("PSCommandPath", command.path)
    stage.own.put("PSScriptRoot", command.path.rpartition("\\")[0])
    return stage


# -- calling blocks from Python


def positional(values: Iterable[Value]) -> list[Argument]:
    """Plain values as arguments."""
    return [Argument(value=value) for value in values]


def call_block(
    scope: Scope,
    block: ScriptBlock,
    arguments: Sequence[Value] = (),
    *,
    out: Emit,
    this: Value = NOTHING,
) -> None:
    """Run a script block with positional arguments; its output goes to `out`."""
    code, home = code_of(block)
    stage = BlockStage(scope, code, positional(arguments), out, Line(), home=home, this=this)
    run_stage(stage)


def call_delegate(
    scope: Scope, block: ScriptBlock, arguments: Sequence[Value], this: Value = NOTHING
) -> Value:
    """A script block as a delegate or script member: one value, an array, or None."""
    items: list[Value] = []
    call_block(scope, block, arguments, out=items.append, this=this)
    if not items:
        return None
    return items[0] if len(items) == 1 else Array(items)


class Inline:
    """A script block run again and again in the current scope with `$_` set: ForEach-Object, Where-Object, `e = { … }`."""

    def __init__(self, scope: Scope, block: ScriptBlock) -> None:
        self.code, home = code_of(block)
        self.scope = scope if home is None else Scope(scope.session, home)
        self.session = scope.session
        self.activation = Activation("<ScriptBlock>", local=False)
        tree = self.code.tree
        if tree.begin is not None or tree.process is not None or tree.dynamicparam is not None:
            self.phase = None
        else:
            self.phase = self.code.phase("end")
        self.simple = not self.code.parameters and not self.code.advanced and self.phase is not None
        self.empty = tree.end is not None and not tree.end.statements and tree.process is None

    def run(self, item: Value, out: Emit, arguments: Sequence[Value] = ()) -> None:
        """One turn with this `$_`."""
        if self.empty and not self.code.parameters:
            return
        if self.simple and not arguments:
            assert self.phase is not None
            session = self.session
            self.scope.put("_", item)
            session.stack.append(self.activation)
            try:
                self.phase(self.scope, out)
            except ReturnFromBlock:
                pass
            finally:
                session.stack.pop()
            return
        self.scope.put("_", item)
        stage = BlockStage(self.scope, self.code, positional(arguments), out, Line(), dotted=True)
        run_stage(stage)

    def value(self, item: Value, arguments: Sequence[Value] = ()) -> Value:
        """One turn's output as a value."""
        items: list[Value] = []
        self.run(item, items.append, arguments)
        if not items:
            return NOTHING
        return items[0] if len(items) == 1 else Array(items)


class Underbar:
    """Keeps `$_` of a scope and puts it back."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        before = scope.variables.get("_")
        self.had = before is not None
        self.saved = before.value if before is not None else None

    def restore(self) -> None:
        """`$_` as it was."""
        if self.had:
            self.scope.put("_", self.saved)
        else:
            self.scope.variables.pop("_", None)


def call_with_underbar(
    scope: Scope, block: ScriptBlock, item: Value, arguments: Sequence[Value] = ()
) -> Value:
    """What a script block answers for `$_`, run in the current scope."""
    keep = Underbar(scope)
    try:
        return Inline(scope, block).value(item, arguments)
    finally:
        keep.restore()


def define_function(scope: Scope, name: str, value: Value) -> None:
    """`$function:name = …`, `Set-Item function:name`."""
    if type(plain(value)) is str:
        value = ScriptBlock(plain(value))
    if not isinstance(value, ScriptBlock):
        raise Refusal("value", f"function:{name}", "something other than a script block")
    code, home = code_of(value)
    made = Code(code.tree, name=name)
    scope.functions[name.lower()] = Function(name, made, home)


class _Blocks:
    """What a scope runs script blocks with."""

    def call(self, scope: Scope, block: Any, arguments: Sequence[Value], this: Value) -> Value:
        return call_delegate(scope, block, arguments, this)

    def with_underbar(self, scope: Scope, block: Any, item: Value, arguments: Sequence[Value]) -> Value:
        return call_with_underbar(scope, block, item, arguments)

    def define(self, scope: Scope, name: str, value: Value) -> None:
        define_function(scope, name, value)


Scope.blocks = _Blocks()
