"""Pipelines and commands: arguments, redirections, and pushing objects from stage to stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from winboot_lab.engine.binder import ABSENT, Argument, ParameterMark
from winboot_lab.engine.commands import Command, Script, find_command
from winboot_lab.engine.compiler.core import (
    Eval,
    Run,
    Value,
    compiles_statement,
    emit,
    expression,
)
from winboot_lab.engine.dotnet import OBJECT
from winboot_lab.engine.exceptions import DotNetException, RuntimeException
from winboot_lab.engine.flow import StopUpstream
from winboot_lab.engine.invoke import BlockStage, code_of, make_stage
from winboot_lab.engine.objects import CommandInfo, Invocation
from winboot_lab.engine.redirection import Target, redirected
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit
from winboot_lab.engine.stages import Line, Stage
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.values import (
    NOTHING,
    Array,
    Decorated,
    ScriptBlock,
    _Mapping,
    enumerate_value,
    extension_of,
    is_enumerable,
    plain,
)
from winboot_lab.language import syntax

Prepare = Callable[[Scope], Callable[..., Stage]]
"""Evaluates the arguments now and gives what makes the stage once the place of its output is known."""


# -- pipelines


@compiles_statement(syntax.Pipeline)
def _pipeline(node: syntax.Pipeline) -> Run:
    elements = node.elements
    first = elements[0]
    if len(elements) == 1:
        return _command_expression(first) if isinstance(first, syntax.CommandExpression) else _single(first)
    source: Eval | None = None
    if isinstance(first, syntax.CommandExpression):
        source = _source(first)
        elements = elements[1:]
    prepared = [_prepare(element) for element in elements if isinstance(element, syntax.Command)]

    def run(scope: Scope, out: Emit) -> None:
        items = None if source is None else source(scope)
        makers = [prepare(scope) for prepare in prepared]
        run_line(scope, items, makers, out, has_source=source is not None)

    return run


def _source(node: syntax.CommandExpression) -> Eval:
    if not node.redirections:
        return expression(node.expression)
    run = _command_expression(node)

    def collect(scope: Scope) -> Value:
        items: list[Value] = []
        run(scope, items.append)
        return Array(items) if items else NOTHING

    return collect


def run_line(
    scope: Scope,
    items: Value,
    makers: Sequence[Callable[..., Stage]],
    out: Emit,
    *,
    has_source: bool,
) -> None:
    """Run a pipeline of more than one element."""
    line = Line(len(makers) + has_source)
    stages: list[Stage] = []
    target = out
    for number in range(len(makers) - 1, -1, -1):
        stage = makers[number](target, line, expects_input=has_source or number > 0)
        stages.insert(0, stage)
        target = stage.accept
    try:
        _push(stages, items, has_source=has_source)
    except RuntimeException as failure:
        if failure.crossing is line:
            failure.crossing = None
        raise
    finally:
        for stage in stages:
            stage.leave()
    scope.session.question = not line.failed


def _push(stages: list[Stage], items: Value, *, has_source: bool) -> None:
    first = 0
    try:
        for stage in stages:
            stage.start()
        head = stages[0]
        if has_source:
            found = enumerate_value(items)
            if found is None:
                head.accept(items)
            else:
                for item in found:
                    if item is not NOTHING:
                        head.accept(item)
        else:
            head.once()
    except StopUpstream as stop:
        first = _asker(stages, stop)
    while first < len(stages):
        try:
            stages[first].end()
        except StopUpstream as stop:
            first = max(_asker(stages, stop), first)
            if stages[first] is stop.asker:
                continue
        first += 1


def _asker(stages: list[Stage], stop: StopUpstream) -> int:
    for number, stage in enumerate(stages):
        if stage is stop.asker or getattr(stage, "inner", None) is stop.asker:
            return number
    raise stop


# -- expressions as statements


@compiles_statement(syntax.CommandExpression)
def _command_expression(node: syntax.CommandExpression) -> Run:
    if node.redirections:
        return _redirected_expression(node)
    inner = node.expression
    value = expression(inner)
    if isinstance(inner, syntax.Unary) and ("++" in inner.operator or "--" in inner.operator):

        def run_silently(scope: Scope, _out: Emit) -> None:
            value(scope)
            scope.session.question = True

        return run_silently
    keeps = isinstance(inner, (syntax.Paren, syntax.SubExpression, syntax.ArrayExpression))

    def run(scope: Scope, out: Emit) -> None:
        made = value(scope)
        if not keeps:
            scope.session.question = True
        emit(out, made)

    return run


def _redirected_expression(node: syntax.CommandExpression) -> Run:
    value = expression(node.expression)
    targets = [_target(redirection) for redirection in node.redirections]

    def run(scope: Scope, out: Emit) -> None:
        made = [target(scope) for target in targets]
        with redirected(scope, made, out) as (inner, streams):
            session = scope.session
            outer, session.streams = session.streams, streams
            try:
                emit(inner, value(scope))
            finally:
                session.streams = outer

    return run


# -- commands


def _single(node: syntax.Command) -> Run:
    prepare = _prepare(node)

    def run(scope: Scope, out: Emit) -> None:
        maker = prepare(scope)
        line = Line()
        stage = maker(out, line, expects_input=False)
        try:
            stage.start()
            stage.once()
            stage.end()
        except StopUpstream as stop:
            if stop.asker is not stage and stop.asker is not getattr(stage, "inner", None):
                raise
            stage.end()
        finally:
            stage.leave()
        scope.session.question = not line.failed

    return run


@compiles_statement(syntax.Command)
def _command(node: syntax.Command) -> Run:
    return _single(node)


def _prepare(node: syntax.Command) -> Prepare:
    first = node.elements[0]
    if isinstance(first, syntax.CommandParameter):
        raise Refusal("construct", "a parameter as a command", line=node.extent.line)
    name = first.value if isinstance(first, syntax.StringConstant) else None
    who = None if name is not None else expression(first)
    arguments = [_argument_maker(element) for element in node.elements[1:]]
    targets = [_target(redirection) for redirection in node.redirections]
    extent, dotted = node.extent, node.invocation == "."
    raw, called_like_method = node, _called_like_method(node)

    def prepare(scope: Scope) -> Callable[..., Stage]:
        called: Value = name if who is None else who(scope)
        if (
            called_like_method
            and scope.strict >= 2
            and name
            and scope.find_function(name.lower()) is not None
        ):
            raise RuntimeException(
                "The function or command was called as if it were a method. Parameters should be separated by spaces. "
                "For information about parameters, see the about_Parameters Help topic.",
                "StrictModeFunctionCallWithParens",
                "InvalidOperation",
            )
        given: list[Argument] = []
        for add in arguments:
            add(scope, given)
        made_targets = [target(scope) for target in targets]

        def make(out: Emit, line: Line, *, expects_input: bool) -> Stage:
            try:
                if made_targets:
                    return RedirectedStage(
                        scope, made_targets, out, line, lambda inner: build(inner, line, expects_input)
                    )
                return build(out, line, expects_input)
            except Refusal as refusal:
                refusal.at(*extent.position)
                raise

        def build(out: Emit, line: Line, expects_input: bool) -> Stage:
            return _stage(scope, raw, called, given, out, line, expects_input=expects_input, dotted=dotted)

        return make

    return prepare


def _called_like_method(node: syntax.Command) -> bool:
    """`F(1, 2)`: parentheses right behind the name, and nothing else."""
    if len(node.elements) != 2:
        return False
    first, second = node.elements
    return isinstance(second, syntax.Paren) and first.extent.end == second.extent.start


def _stage(
    scope: Scope,
    node: syntax.Command,
    called: Value,
    given: list[Argument],
    out: Emit,
    line: Line,
    *,
    expects_input: bool,
    dotted: bool,
) -> Stage:
    """Find out which kind of command the first word names."""
    bare = plain(called)
    if isinstance(bare, ScriptBlock):
        code, home = code_of(bare)
        return BlockStage(
            scope,
            code,
            given,
            out,
            line,
            expects_input=expects_input,
            dotted=dotted,
            home=home,
            invocation=Invocation(
                node.extent,
                Script(code, home),
                node.invocation,
                expects_input=expects_input,
                length=line.length,
            ),
        )
    command: Command
    if isinstance(bare, CommandInfo) and bare.command is not None:
        command, text = bare.command, to_text(bare.get("Name"), scope)
    else:
        if isinstance(bare, CommandInfo):
            bare = bare.get("Name")
        if bare is None or bare is NOTHING or is_enumerable(bare):
            raise bad_command(node, scope, bare)
        text = to_text(bare, scope)
        if not text.strip():
            raise bad_command(node, scope, bare)
        try:
            command = find_command(scope, text)
        except RuntimeException as failure:
            if failure.error_record.invocation is None:
                failure.error_record.invocation = Invocation(node.extent, None, text)
            raise
    return make_stage(
        scope,
        command,
        given,
        out,
        line,
        expects_input=expects_input,
        extent=node.extent,
        called=text,
        dotted=dotted,
    )


def bad_command(node: syntax.Command, scope: Scope, value: Value) -> RuntimeException:
    """`& $null`, `& ''`: nothing that could be run."""
    return RuntimeException(
        f"The expression after '{node.invocation or '&'}' in a pipeline element produced an object that was not valid. "
        "It must result in a command name, a script block, or a CommandInfo object.",
        "BadExpression",
        "InvalidOperation",
        value,
    )


# -- arguments


Add = Callable[[Scope, list[Argument]], None]


def to_bind(value: Value) -> Value:
    """An argument as a command gets it: "no output" is $null, also among the elements of an object[].

    PipelineOps.CheckAutomationNullInCommandArgument, which changes the very array it is given.
    """
    if value is NOTHING:
        return None
    if type(value) is Array and value.element is OBJECT:
        for number, item in enumerate(value):
            if item is NOTHING:
                value[number] = None
    return value


def _argument_maker(node: syntax.Node) -> Add:
    if isinstance(node, syntax.CommandParameter):
        return _named_argument(node)
    if isinstance(node, syntax.Variable) and node.splatted:
        return _splat(node)
    assert isinstance(node, syntax.Expression)
    value = expression(node)
    text = "--" if isinstance(node, syntax.StringConstant) and node.extent.text == "--" else ""
    written = node.extent.text if isinstance(node, syntax.Constant) else ""
    is_list = isinstance(node, syntax.ArrayLiteral)
    verbatim = isinstance(node, syntax.StringConstant) and node.kind == "verbatim"

    def add(scope: Scope, given: list[Argument]) -> None:
        bound = to_bind(value(scope))
        given.append(Argument(None, bound, text, written=written, is_list=is_list, verbatim=verbatim))

    return add


def _named_argument(node: syntax.CommandParameter) -> Add:
    name, text = node.name, node.extent.text
    if node.argument is None:
        return lambda _scope, given: given.append(Argument(name, ABSENT, text))
    value = expression(node.argument)
    written = node.argument.extent.text if isinstance(node.argument, syntax.Constant) else ""
    is_list = isinstance(node.argument, syntax.ArrayLiteral)
    head = f"-{name}:"

    def add(scope: Scope, given: list[Argument]) -> None:
        given.append(Argument(name, to_bind(value(scope)), head, written=written, is_list=is_list))

    return add


def _splat(node: syntax.Variable) -> Add:
    read = expression(syntax.Variable(node.extent, node.path, node.name, node.scope, node.drive))

    def add(scope: Scope, given: list[Argument]) -> None:
        value = plain(read(scope))
        if value is NOTHING:
            value = None
        if isinstance(value, _Mapping):
            for key, item in value.items():
                given.append(Argument(to_text(key, scope), item, f"-{to_text(key, scope)}", splatted=True))
            return
        items = enumerate_value(value)
        _splat_items([value] if items is None else items, scope, given)

    return add


def _splat_items(items: Iterable[Value], scope: Scope, given: list[Argument]) -> None:
    """The elements of an array; what `$args` kept as a parameter name becomes one again."""
    for item in items:
        if isinstance(item, Decorated) and isinstance(extension_of(item), ParameterMark):
            text = to_text(item.base, scope)
            given.append(Argument(text.lstrip("-").removesuffix(":"), ABSENT, text))
        else:
            given.append(Argument(None, item))


# -- redirections


def _target(node: syntax.Redirection) -> Callable[[Scope], Target]:
    stream, append, merge = node.stream, node.append, node.merge_into is not None
    if node.target is None:
        return lambda _scope: Target(stream, None, merge=merge, append=append)
    if isinstance(node.target, syntax.Variable) and node.target.name.lower() == "null":
        return lambda _scope: Target(stream, None, merge=False, append=append)
    path = expression(node.target)
    return lambda scope: Target(stream, to_text(path(scope), scope), merge=False, append=append)


class RedirectedStage(Stage):
    """A command whose streams go elsewhere while it runs; what is downstream keeps the streams it had."""

    def __init__(
        self,
        scope: Scope,
        targets: Sequence[Target],
        out: Emit,
        line: Line,
        build: Callable[[Emit], Stage],
    ) -> None:
        super().__init__(scope, out, line, expects_input=False)
        session = self.session
        self._outer = session.streams
        self._context: Any = redirected(scope, targets, self._outside(out))
        inner, self._streams = self._context.__enter__()
        self._swap()
        try:
            self.inner = build(inner)
        finally:
            session.streams = self._outer
        self.expects_input = self.inner.expects_input
        self.inner.redirects_errors = any(target.stream in (0, 2) for target in targets)

    def _outside(self, out: Emit) -> Emit:
        """Write downstream with the streams from outside in force."""
        session = self.session

        def write(value: Value) -> None:
            inside, session.streams = session.streams, self._outer
            try:
                out(value)
            finally:
                session.streams = inside

        return write

    def _swap(self) -> None:
        self._outer, self.session.streams = self.session.streams, self._streams

    def _within(self, work: Callable[[], None]) -> None:
        session = self.session
        outer, session.streams = session.streams, self._streams
        self._outer = outer
        try:
            work()
        except DotNetException:
            self._context.__exit__(None, None, None)
            raise
        finally:
            session.streams = outer

    def begin(self) -> None:
        self._within(self.inner.start)

    def process(self, item: Value) -> None:
        self._within(lambda: self.inner.accept(item))

    def once(self) -> None:
        self._within(self.inner.once)

    def end(self) -> None:
        self._within(self.inner.end)
        self._context.__exit__(None, None, None)

    def leave(self) -> None:
        self.inner.leave()
        self._context = None
        del self.inner
