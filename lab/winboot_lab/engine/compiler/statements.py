"""Statements: blocks with their error handling, conditions, loops, switch, try, trap, and the ways out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from winboot_lab.engine.compiler.core import (
    Eval,
    Run,
    Value,
    compiles_statement,
    emit,
    expression,
    refusing,
    statement,
    value_of,
)
from winboot_lab.engine.compiler.types import resolve_type
from winboot_lab.engine.convert import to_bool
from winboot_lab.engine.errors import as_runtime, find_handler, record_of
from winboot_lab.engine.exceptions import (
    DotNetException,
    ErrorRecord,
    InvalidOperationException,
    RuntimeException,
)
from winboot_lab.engine.flow import BreakLoop, ContinueLoop, ExitScript, Jump, ReturnFromBlock
from winboot_lab.engine.operators import wildcard_match
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit, Trap
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.traps import failed
from winboot_lab.engine.values import (
    NOTHING,
    Array,
    ArrayList,
    Enumerator,
    GenericList,
    ScriptBlock,
    enumerate_value,
    fold,
    plain,
)
from winboot_lab.language import syntax

# -- blocks


def block(
    statements: Sequence[syntax.Statement],
    traps: Sequence[syntax.Trap] = (),
    *,
    last: Run | None = None,
) -> Run:
    """The statements of a block, each with its own error handling, under the traps of the block.

    `last` replaces the code of the last statement.
    """
    code = [(node, statement(node)) for node in statements]
    if last is not None:
        code[-1] = (statements[-1], last)
    if not traps:
        return _plain_block(code)
    compiled = [_trap(node) for node in traps]
    inner = _plain_block(code)

    def run(scope: Scope, out: Emit) -> None:
        activation = scope.session.stack[-1]
        activation.traps.append(compiled)
        try:
            inner(scope, out)
        finally:
            activation.traps.pop()

    return run


def _plain_block(code: list[tuple[syntax.Statement, Run]]) -> Run:
    if len(code) == 1:
        node, only = code[0]

        def run_one(scope: Scope, out: Emit) -> None:
            session = scope.session
            session.stack[-1].at = node
            session.checkpoint()
            try:
                only(scope, out)
            except DotNetException as failure:
                failed(scope, failure, node, out)
            except Refusal as refusal:
                refusal.at(*node.extent.position)
                raise

        return run_one

    def run(scope: Scope, out: Emit) -> None:
        session = scope.session
        activation = session.stack[-1]
        for node, one in code:
            activation.at = node
            session.checkpoint()
            try:
                one(scope, out)
            except DotNetException as failure:
                failed(scope, failure, node, out)
            except Refusal as refusal:
                refusal.at(*node.extent.position)
                raise

    return run


def body_of(node: syntax.StatementBlock) -> Run:
    """The code of `{ … }`."""
    return block(node.statements, node.traps)


def _trap(node: syntax.Trap) -> Trap:
    types = None
    if node.type is not None:
        name = node.type.type

        def types(scope: Scope) -> Value:
            return resolve_type(scope, name)

    return Trap(types, body_of(node.body))


@compiles_statement(syntax.StatementBlock)
def _statement_block(node: syntax.StatementBlock) -> Run:
    return body_of(node)


# -- if


@compiles_statement(syntax.If)
def _if(node: syntax.If) -> Run:
    clauses = [(value_of(condition), body_of(body)) for condition, body in node.clauses]
    otherwise = None if node.otherwise is None else body_of(node.otherwise)

    def run(scope: Scope, out: Emit) -> None:
        for condition, body in clauses:
            if to_bool(condition(scope)):
                body(scope, out)
                return
        if otherwise is not None:
            otherwise(scope, out)

    return run


# -- loops


def _label(text: str | None) -> str:
    return "" if text is None else text.lower()


def _mine(jump: BreakLoop | ContinueLoop, label: str) -> bool:
    return not jump.label or jump.label == label


def _turn(body: Run, label: str) -> Callable[[Scope, Emit], bool]:
    """One turn of a loop: False when the loop is to end."""

    def run(scope: Scope, out: Emit) -> bool:
        try:
            body(scope, out)
        except ContinueLoop as jump:
            if not _mine(jump, label):
                raise
        except BreakLoop as jump:
            if not _mine(jump, label):
                raise
            return False
        return True

    return run


@compiles_statement(syntax.While)
def _while(node: syntax.While) -> Run:
    condition, turn = value_of(node.condition), _turn(body_of(node.body), _label(node.label))

    def run(scope: Scope, out: Emit) -> None:
        checkpoint = scope.session.checkpoint
        while to_bool(condition(scope)) and turn(scope, out):
            checkpoint()

    return run


def _do(node: syntax.DoWhile | syntax.DoUntil, *, until: bool) -> Run:
    condition, turn = value_of(node.condition), _turn(body_of(node.body), _label(node.label))

    def run(scope: Scope, out: Emit) -> None:
        checkpoint = scope.session.checkpoint
        while turn(scope, out) and to_bool(condition(scope)) is not until:
            checkpoint()

    return run


@compiles_statement(syntax.DoWhile)
def _do_while(node: syntax.DoWhile) -> Run:
    return _do(node, until=False)


@compiles_statement(syntax.DoUntil)
def _do_until(node: syntax.DoUntil) -> Run:
    return _do(node, until=True)


@compiles_statement(syntax.For)
def _for(node: syntax.For) -> Run:
    first = None if node.initializer is None else statement(node.initializer)
    condition = None if node.condition is None else value_of(node.condition)
    after = None if node.iterator is None else statement(node.iterator)
    turn = _turn(body_of(node.body), _label(node.label))

    def run(scope: Scope, out: Emit) -> None:
        checkpoint = scope.session.checkpoint
        if first is not None:
            first(scope, _discard)
        while condition is None or to_bool(condition(scope)):
            if not turn(scope, out):
                return
            checkpoint()
            if after is not None:
                after(scope, _discard)

    return run


def _discard(_value: Value) -> None:
    """The header of a `for` loop writes nothing."""


def turns_of(value: Value) -> Iterator[Value]:
    """What `foreach` goes through: nothing for $null, the items of a collection, or the value itself."""
    if value is None:
        return iter(())
    items = enumerate_value(value)
    if items is None:
        return iter((value,))
    bare = plain(value)
    if type(bare) in (GenericList, ArrayList):
        return _watched(bare)
    return iter(items)


def _turns(node: syntax.Statement) -> Callable[[Scope], Iterator[Value]]:
    """What `foreach` goes through: an expression's items, but the very objects that a command wrote.

    `foreach ($i in f)` has one turn where f returns `, $array` (Compiler.cs, CaptureAstContext.Enumerable).
    """
    if isinstance(node, syntax.Assignment) or getattr(node, "expression", None) is not None:
        value = value_of(node)
        return lambda scope: turns_of(value(scope))
    run = statement(node)

    def collect(scope: Scope) -> Iterator[Value]:
        items: list[Value] = []
        run(scope, items.append)
        return iter(items)

    return collect


def _watched(items: list[Value]) -> Iterator[Value]:
    """A list that complains when it changes under the loop."""
    length = len(items)
    for item in items:
        yield item
        if len(items) != length:
            raise InvalidOperationException("Collection was modified; enumeration operation may not execute.")


@compiles_statement(syntax.ForEach)
def _foreach(node: syntax.ForEach) -> Run:
    from winboot_lab.engine.compiler.assignments import target_of

    if node.flags or node.throttle_limit is not None:
        refuse = refusing(node, "foreach -parallel")
        return lambda scope, _out: refuse(scope)
    source, assign = _turns(node.iterable), target_of(node.variable)
    turn = _turn(body_of(node.body), _label(node.label))
    explicit = "$foreach" in node.body.extent.text.lower()

    def run(scope: Scope, out: Emit) -> None:
        turns = source(scope)
        if explicit:
            turns = _exposed(scope, "foreach", turns)
        checkpoint = scope.session.checkpoint
        for item in turns:
            assign(scope, item)
            if not turn(scope, out):
                return
            checkpoint()

    return run


def _exposed(scope: Scope, name: str, items: Iterator[Value]) -> Iterator[Value]:
    """The items through an enumerator that the script can see and move as `$foreach` or `$switch`."""
    enumerator = Enumerator(list(items))
    before = scope.variables.get(name)
    scope.put(name, enumerator)
    try:
        yield from enumerator
    finally:
        if before is None:
            scope.variables.pop(name, None)


# -- switch


Test = Callable[[Scope, Value], bool]


@compiles_statement(syntax.Switch)
def _switch(node: syntax.Switch) -> Run:
    if "parallel" in node.flags:
        refuse = refusing(node, "switch -parallel")
        return lambda scope, _out: refuse(scope)
    source, label = value_of(node.condition), _label(node.label)
    clauses = [(_switch_test(test, node.flags), body_of(body)) for test, body in node.clauses]
    default = None if node.default is None else body_of(node.default)
    explicit = "$switch" in node.extent.text.lower()
    from_file = "file" in node.flags

    def one(scope: Scope, item: Value, out: Emit) -> None:
        hit = False
        current = scope.put("_", item)
        for test, body in clauses:
            # A body may give `$_` another value; the later clauses test that value.
            if test(scope, current.value):
                hit = True
                body(scope, out)
        if not hit and default is not None:
            default(scope, out)

    def run(scope: Scope, out: Emit) -> None:
        value = source(scope)
        if from_file:
            value = _lines_to_switch(scope, value)
        items = enumerate_value(value)
        turns = iter((value,)) if items is None else iter(items)
        if explicit:
            turns = _exposed(scope, "switch", turns)
        before = scope.variables.get("_")
        saved = before.value if before is not None else None
        try:
            for item in turns:
                try:
                    one(scope, item, out)
                except ContinueLoop as jump:
                    if not _mine(jump, label):
                        raise
        except BreakLoop as jump:
            if not _mine(jump, label):
                raise
        finally:
            if before is None:
                scope.variables.pop("_", None)
            else:
                before.value = saved

    return run


def _lines_to_switch(scope: Scope, path: Value) -> Array:
    """The lines of the one file that `switch -File` names."""
    from winboot_lab.engine.locations import FILES
    from winboot_lab.engine.providers import expand, missing, shown_path
    from winboot_lab.engine.types.files import file_lines

    text = to_text(path, scope)
    if not text:
        raise RuntimeException(
            "The path is null or an empty string.", "InvalidFilenameOption", "InvalidOperation"
        )
    found = expand(scope, text, literal=False)
    if found is None:
        raise missing(shown_path(scope, text, literal=False))
    if len(found) != 1 or found[0].provider != FILES:
        raise Refusal("construct", "switch -File", f"{text}, which does not name one file")
    return file_lines(scope, found[0].path)


def _switch_test(node: syntax.Expression, flags: frozenset[str]) -> Test:
    """How a clause decides; a script block always tests `$_`, with any flags."""
    if isinstance(node, syntax.ScriptBlockExpression):
        condition = block_value(node.body)
        return lambda scope, _item: to_bool(condition(scope))
    wanted = expression(node)
    exact = "casesensitive" in flags
    if "regex" in flags:
        return _regex_test(wanted, exact=exact)
    if "wildcard" in flags:

        def by_wildcard(scope: Scope, item: Value) -> bool:
            return wildcard_match(to_text(wanted(scope), scope), to_text(item, scope), case=exact)

        return by_wildcard

    def by_value(scope: Scope, item: Value) -> bool:
        test = wanted(scope)
        if isinstance(test, ScriptBlock):
            return to_bool(scope.call_with_underbar(test, item))
        # An exact clause compares texts, whatever the types: `02` is not 2.
        mine, theirs = to_text(item, scope), to_text(test, scope)
        return mine == theirs if exact else fold(mine) == fold(theirs)

    return by_value


def _regex_test(wanted: Eval, *, exact: bool) -> Test:
    from winboot_lab.engine.operators import match

    def by_regex(scope: Scope, item: Value) -> bool:
        return to_bool(match(to_text(item, scope), wanted(scope), scope, case=exact))

    return by_regex


def block_value(node: syntax.ScriptBlock) -> Eval:
    """The output of a script block's statements, run in the enclosing scope (switch conditions)."""
    if node.params is not None or node.begin is not None or node.process is not None or node.end is None:
        return refusing(node, "a switch condition with named blocks")
    if node.end.traps:
        return refusing(node, "a trap in a switch condition")
    code = [statement(one) for one in node.end.statements]

    def run(scope: Scope, out: Emit) -> None:
        # Without error handling of its own: a failing condition ends the whole switch.
        for one in code:
            one(scope, out)

    return collected(run)


def collected(run: Run) -> Eval:
    """The output of code as one value."""

    def collect(scope: Scope) -> Value:
        items: list[Value] = []
        with suppress(ReturnFromBlock):
            run(scope, items.append)
        return NOTHING if not items else items[0] if len(items) == 1 else Array(items)

    return collect


# -- try


@compiles_statement(syntax.Try)
def _try(node: syntax.Try) -> Run:
    guarded = _catching(node) if node.catches else _guarded(body_of(node.body))
    if node.finally_ is None:
        return guarded
    last = body_of(node.finally_)

    def run(scope: Scope, out: Emit) -> None:
        # Not Python's finally: a refusal or the machine's end must not run more of the script.
        try:
            guarded(scope, out)
        except (DotNetException, Jump):
            last(scope, out)
            raise
        last(scope, out)

    return run


def _guarded(body: Run) -> Run:
    """A body whose errors travel outwards instead of being reported where they happen."""

    def run(scope: Scope, out: Emit) -> None:
        session = scope.session
        activation = session.stack[-1]
        outer, session.in_try = session.in_try, True
        activation.traps.append(None)
        try:
            body(scope, out)
        finally:
            session.in_try = outer
            activation.traps.pop()

    return run


def _catching(node: syntax.Try) -> Run:
    body = _guarded(body_of(node.body))
    clauses = [
        ([constraint.type for constraint in clause.types] if clause.types else None, body_of(clause.body))
        for clause in node.catches
    ]

    def run(scope: Scope, out: Emit) -> None:
        try:
            body(scope, out)
            return
        except DotNetException as raised:
            failure = as_runtime(raised)
        kinds = [
            None if names is None else [resolve_type(scope, name) for name in names] for names, _ in clauses
        ]
        found = find_handler(failure, kinds)
        if found is None:
            raise failure
        number, record = found
        _handle(scope, out, failure, record, clauses[number][1])

    return run


def _handle(scope: Scope, out: Emit, failure: RuntimeException, record: ErrorRecord, body: Run) -> None:
    """Run a catch block with the record as `$_`, and put the old `$_` back afterwards."""
    activation = scope.session.stack[-1]
    failure.settled = False
    before = scope.variables.get("_")
    saved = before.value if before is not None else None
    scope.put("_", record)
    activation.caught.append(failure)
    try:
        body(scope, out)
    finally:
        activation.caught.pop()
        if before is None:
            scope.variables.pop("_", None)
        else:
            before.value = saved


# -- leaving


@compiles_statement(syntax.Return)
def _return(node: syntax.Return) -> Run:
    give = returned(node)

    def run(scope: Scope, out: Emit) -> None:
        give(scope, out)
        raise ReturnFromBlock

    return run


def returned(node: syntax.Return) -> Run:
    """What a `return` writes, without the jump."""
    if node.value is None:
        return lambda _scope, _out: None
    if isinstance(node.value, syntax.Pipeline) and node.value.expression is not None:
        value = expression(node.value.expression)
        return lambda scope, out: emit(out, value(scope))
    return statement(node.value)


def _jump_label(node: syntax.Expression | None) -> Eval:
    if node is None:
        return lambda _scope: ""
    label = expression(node)
    return lambda scope: to_text(label(scope), scope).lower()


@compiles_statement(syntax.Break)
def _break(node: syntax.Break) -> Run:
    label = _jump_label(node.label)

    def run(scope: Scope, _out: Emit) -> None:
        raise BreakLoop(label(scope))

    return run


@compiles_statement(syntax.Continue)
def _continue(node: syntax.Continue) -> Run:
    label = _jump_label(node.label)

    def run(scope: Scope, _out: Emit) -> None:
        raise ContinueLoop(label(scope))

    return run


@compiles_statement(syntax.Exit)
def _exit(node: syntax.Exit) -> Run:
    value = None if node.value is None else value_of(node.value)

    def run(scope: Scope, _out: Emit) -> None:
        code = 0 if value is None else value(scope)
        raise ExitScript(code if type(code) is int else 0)

    return run


@compiles_statement(syntax.Throw)
def _throw(node: syntax.Throw) -> Run:
    value = None if node.value is None else value_of(node.value)

    def run(scope: Scope, _out: Emit) -> None:
        if value is None:
            caught = scope.session.stack[-1].caught
            if caught:
                raise _again(caught[-1])
            raise thrown("ScriptHalted", scope, nothing=True)
        raise thrown(value(scope), scope)

    return run


def _again(failure: RuntimeException) -> RuntimeException:
    failure.was_thrown_from_throw_statement = True
    return failure


def thrown(value: Value, scope: Scope, *, nothing: bool = False) -> RuntimeException:
    """The exception that `throw value` raises: an exception or record as it is, anything else as its text."""
    bare = plain(value)
    if isinstance(bare, ErrorRecord):
        made = RuntimeException(str(bare), bare.id, bare.category, bare.target, bare.exception)
        if isinstance(bare.exception, RuntimeException) and bare.exception.record is bare:
            made = bare.exception
        made.record = bare
    elif isinstance(bare, RuntimeException):
        made = bare
    elif isinstance(bare, DotNetException):
        made = RuntimeException(bare.message, bare.message, "OperationStopped", None, bare)
        record = ErrorRecord(bare, bare.message, "OperationStopped", None)
        made.record = record
    else:
        if value is None or value is NOTHING:
            text = "ScriptHalted"
        else:
            text = to_text(value, scope)
        target = None if nothing or value is NOTHING else value
        made = RuntimeException(text, text, "OperationStopped", target)
    record_of(made)
    made.was_thrown_from_throw_statement = True
    return made


# -- the rest


@compiles_statement(syntax.Data)
def _data(node: syntax.Data) -> Run:
    body, name = body_of(node.body), node.name

    def run(scope: Scope, out: Emit) -> None:
        if name is None:
            body(scope, out)
            return
        items: list[Value] = []
        body(scope, items.append)
        value = NOTHING if not items else items[0] if len(items) == 1 else Array(items)
        scope.assign(name.lower(), name, value)

    return run
