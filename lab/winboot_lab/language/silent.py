"""Functions that can end without output, and where that is taken for a text.

A command without output gives AutomationNull. Bound to a parameter it acts like $null. In a cast (`[string](F)`), as an
argument of a .NET method (`[regex]::Match((F), …)`) and as the target of one it is null, where authors expect ''.
Source: Binders.cs of 5.1 and 7, PSConvertBinder.FallbackConvert and CastOrConvertMethodArgument.

    silent_functions(tree)     the names of the functions that can end without output
    unguarded_uses(tree)       each cast, argument or target that such a call, or a variable filled by one, is used in

What is computed: every path through a function's body, by statements. A value read from a property, an element or a variable
of the caller counts as output, a local variable as what it was filled with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from winboot_lab.language.syntax import (
    ArrayExpression,
    Assignment,
    Binary,
    Break,
    Command,
    CommandExpression,
    Continue,
    Convert,
    DoUntil,
    DoWhile,
    Exit,
    Expression,
    ForEach,
    FunctionDefinition,
    If,
    InvokeMember,
    Node,
    Paren,
    Pipeline,
    Return,
    ScriptBlock,
    Statement,
    StatementBlock,
    StringConstant,
    SubExpression,
    Switch,
    Throw,
    Try,
    Unary,
    Variable,
    children,
    walk,
)

# Cmdlets that write one object at least, or end with an error.
_SPEAKS: Final = frozenset(["join-path", "get-date", "new-object", "convertto-securestring", "get-random"])
# Methods without a result, and those whose list may be empty.
_EMPTY: Final = frozenset(
    """
    add addrange clear close copyto dispose flush insert matches moveto remove removeat reverse sort toarray write
    writebyte writeline getfiles getdirectories getsubkeynames getvaluenames
    """.split()  # noqa: SIM905 - a list of words
)
# Casts in which null and $null end alike: default(T) is what $null becomes.
_HARMLESS: Final = frozenset(
    """
    void bool switch object array psobject hashtable byte int int32 int64 long uint32 uint64 double decimal
    """.split()  # noqa: SIM905 - a list of words
)
_LISTS_FILTER: Final = frozenset(["match", "notmatch", "like", "notlike", "replace", "split"])


@dataclass(frozen=True, slots=True)
class Use:
    """A place where null arrives instead of a text. `function` is the one that can end without output."""

    node: Node
    function: str
    how: str


def functions_of(tree: Node) -> dict[str, FunctionDefinition]:
    """The functions that a script defines, by lower-case name."""
    return {node.name.lower(): node for node in walk(tree) if isinstance(node, FunctionDefinition)}


def silent_functions(tree: Node) -> frozenset[str]:
    """The names, as written, of the functions that can end without output."""
    functions = functions_of(tree)
    return frozenset(functions[key].name for key in _silent(functions))


def _silent(functions: Mapping[str, FunctionDefinition]) -> frozenset[str]:
    """What a function writes may be what another one writes: looked at again until nothing changes."""
    found: frozenset[str] = frozenset()
    while True:
        now = frozenset(
            key for key, one in functions.items() if _Paths(functions, found, one).can_be_silent()
        )
        if now == found:
            return found
        found = now


# ----------------------------------------------------------------------------------------------------
# Paths through a function


@dataclass(frozen=True, slots=True)
class _Flow:
    """`falls`: is something written on every path that reaches the end (None: no path does)?

    `leaves`: can a path leave the function before it wrote anything?
    """

    falls: bool | None
    leaves: bool = False


class _Paths:
    """One function: what it writes on each path."""

    def __init__(
        self,
        functions: Mapping[str, FunctionDefinition],
        silent: frozenset[str],
        function: FunctionDefinition,
    ) -> None:
        self.functions = functions
        self.silent = silent
        self.function = function
        self.filled = _assignments(function.body)
        parameters = function.parameters or (function.body.params.parameters if function.body.params else ())
        self.typed = {one.name.lower() for one in parameters if one.type is not None and not one.type.ranks}

    def can_be_silent(self) -> bool:
        body = self.function.body
        if body.end is None or (body.process is not None and not body.end.statements):
            return True
        flow = self.sequence(body.end.statements)
        return flow.leaves or flow.falls is False

    def sequence(self, statements: Sequence[Statement]) -> _Flow:
        written = leaves = False
        for one in statements:
            flow = self.statement(one)
            leaves |= flow.leaves and not written
            if flow.falls is None:
                return _Flow(None, leaves)
            written |= flow.falls
        return _Flow(written, leaves)

    def block(self, node: StatementBlock | None) -> _Flow:
        return _Flow(False) if node is None else self.sequence(node.statements)

    def statement(self, node: Statement) -> _Flow:
        match node:
            case Return(value=None):
                return _Flow(None, True)
            case Return(value=Statement() as value):
                return _Flow(None, not self.writes(value))
            case Throw() | Exit():
                return _Flow(None)
            case Break() | Continue():
                return _Flow(None, True)
            case If():
                return self._either(
                    [*(body for _, body in node.clauses), node.otherwise], open_=node.otherwise is None
                )
            case Switch():
                return self._either([*(body for _, body in node.clauses), node.default], open_=True)
            case Try():
                flow = self._either([node.body, *(one.body for one in node.catches)], open_=False)
                last = self.block(node.finally_)
                return _Flow(None if flow.falls is None else flow.falls or bool(last.falls), flow.leaves)
            case DoWhile() | DoUntil():
                return self.block(node.body)
            case ForEach():
                return _Flow(False, self.block(node.body).leaves)
        body = getattr(node, "body", None)
        if isinstance(body, StatementBlock):
            return _Flow(False, self.block(body).leaves)
        if self._never_returns(node):
            return _Flow(None)
        return _Flow(self.writes(node))

    def _either(self, blocks: Sequence[StatementBlock | None], *, open_: bool) -> _Flow:
        flows = [self.block(one) for one in blocks if one is not None]
        falling = [flow.falls for flow in flows if flow.falls is not None]
        leaves = any(flow.leaves for flow in flows)
        if open_:
            return _Flow(False, leaves)
        return _Flow(all(falling) if falling else None, leaves)

    def _never_returns(self, node: Statement) -> bool:
        """A call of a function that ends in `throw`."""
        command = _only_command(node)
        called = self.functions.get((command.name or "").lower()) if command is not None else None
        if called is None or called is self.function or called.body.end is None:
            return False
        statements = called.body.end.statements
        return bool(statements) and isinstance(statements[-1], Throw)

    # -- does it write something for sure?

    def writes(self, node: Statement) -> bool:
        if isinstance(node, Assignment):
            return False
        if isinstance(node, CommandExpression):
            return self.gives(node.expression)
        if isinstance(node, Pipeline):
            last = node.elements[-1]
            if isinstance(last, CommandExpression):
                return self.gives(last.expression)
            return len(node.elements) == 1 and self._command_writes(last)
        if isinstance(node, Command):
            return self._command_writes(node)
        flow = self.statement(node)
        return flow.falls is not False and not flow.leaves

    def _command_writes(self, node: Command) -> bool:
        name = (node.name or "").lower()
        if name in self.functions:
            return name not in self.silent
        return name in _SPEAKS

    def gives(self, node: Expression) -> bool:
        match node:
            case Convert():
                return not node.type.type.ranks and node.type.type.full.lower() != "void"
            case Paren():
                return not isinstance(node.pipeline, Assignment) and self.writes(node.pipeline)
            case SubExpression() | ArrayExpression():
                return bool(self.block(node.body).falls)
            case Unary():
                return "++" not in node.operator and "--" not in node.operator
            case Binary():
                filters = node.operator[1:] in _LISTS_FILTER
                return self.gives(node.left) if filters else True
            case Variable():
                return self._variable_gives(node)
            case InvokeMember(member=StringConstant(value=name)):
                return name.lower() not in _EMPTY
        return True

    def _variable_gives(self, node: Variable) -> bool:
        key = node.name.lower()
        if key in self.typed or key not in self.filled:
            return True
        return all(value is not None and self.writes(value) for value in self.filled[key])


def _assignments(body: ScriptBlock) -> dict[str, list[Statement | None]]:
    """What each plain local variable is filled with by `=`; None for a loop's variable."""
    found: dict[str, list[Statement | None]] = {}
    for node in walk(body):
        if (
            isinstance(node, Assignment)
            and isinstance(node.target, Variable)
            and node.target.scope is None
            and node.target.drive is None
            and node.operator == "="
        ):
            found.setdefault(node.target.name.lower(), []).append(node.value)
    return found


def _only_command(node: Node) -> Command | None:
    """The command that a statement or an expression in parentheses consists of."""
    if isinstance(node, Paren):
        return _only_command(node.pipeline)
    if isinstance(node, Pipeline) and len(node.elements) == 1:
        first = node.elements[0]
        if isinstance(first, CommandExpression):
            return _only_command(first.expression) if isinstance(first.expression, Paren) else None
        return first
    return node if isinstance(node, Command) else None


# ----------------------------------------------------------------------------------------------------
# Uses


@dataclass(frozen=True, slots=True)
class Callables:
    """The functions that a text may call, by lower-case name, and those of them that can end without output."""

    functions: Mapping[str, FunctionDefinition]
    silent: frozenset[str]

    @classmethod
    def of(cls, tree: Node) -> Callables:
        """Those that a script defines."""
        functions = functions_of(tree)
        return cls(functions, _silent(functions))


def unguarded_uses(tree: Node, known: Callables | None = None) -> Iterator[Use]:
    """Casts, .NET arguments and targets in which "no output" arrives as null, and no look at $null comes first.

    `known` are the functions of another text, for a `tree` that defines none.
    """
    found = known or Callables.of(tree)
    bodies = () if known is not None else (one.body for one in found.functions.values())
    for root in (tree, *bodies):
        yield from _Uses(found.functions, found.silent, root).found()


class _Uses:
    """One function (or the script itself, without its functions)."""

    def __init__(
        self, functions: Mapping[str, FunctionDefinition], silent: frozenset[str], root: Node
    ) -> None:
        self.functions = functions
        self.silent = silent
        self.root = root
        self.parents: dict[Node, Node] = {}
        for node in self._nodes(root):
            for child in children(node):
                self.parents[child] = node
        self.filled: dict[str, str] = {}
        for node in self._nodes(root):
            if isinstance(node, Assignment) and isinstance(node.target, Variable) and node.operator == "=":
                command = _only_command(node.value)
                name = self._silent_name(command)
                if name:
                    self.filled[node.target.name.lower()] = name

    def _nodes(self, node: Node) -> Iterator[Node]:
        yield node
        for child in children(node):
            if not isinstance(child, FunctionDefinition):
                yield from self._nodes(child)

    def _silent_name(self, command: Command | None) -> str:
        name = (command.name or "").lower() if command is not None else ""
        return self.functions[name].name if name in self.silent else ""

    def found(self) -> Iterator[Use]:
        for node in self._nodes(self.root):
            if isinstance(node, Convert):
                target = node.type.type
                if target.ranks or target.full.lower() not in _HARMLESS:
                    yield from self._use(node.child, f"the cast [{target.full}]")
            elif isinstance(node, InvokeMember):
                name = node.member.value if isinstance(node.member, StringConstant) else "…"
                for argument in node.arguments:
                    yield from self._use(argument, f"an argument of .{name}()")
                if not node.static:
                    yield from self._use(node.target, f"the target of .{name}()")

    def _use(self, node: Expression, how: str) -> Iterator[Use]:
        name = self._silent_name(_only_command(node)) if isinstance(node, Paren) else ""
        if name:
            yield Use(node, name, how)
        elif isinstance(node, Variable) and node.scope is None and node.drive is None:
            filled = self.filled.get(node.name.lower())
            if filled and not self._guarded(node):
                yield Use(node, filled, how)

    def _guarded(self, node: Variable) -> bool:
        """Does a condition ask for the variable before this place, around it or in front of it?"""
        key, inner = node.name.lower(), node
        outer: Node | None = self.parents.get(node)
        here: Node = inner
        while outer is not None:
            tested = isinstance(outer, Binary) and outer.operator in ("and", "or") and here is outer.right
            if tested and isinstance(outer, Binary) and _names(outer.left, key):
                return True
            if isinstance(outer, If):
                tests = [test for test, _ in outer.clauses]
                # A use within a test is guarded by the tests before it, not by itself.
                if any(
                    _names(test, key) for test in (tests[: tests.index(here)] if here in tests else tests)
                ):
                    return True
            statements = getattr(outer, "statements", None)
            if statements is not None and here in statements:
                for before in statements[: statements.index(here)]:
                    if isinstance(before, If) and any(
                        _names(test, key) and _gives_up_or_fills(body, key) for test, body in before.clauses
                    ):
                        return True
            here, outer = outer, self.parents.get(outer)
        return False


def _names(node: Node, key: str) -> bool:
    return any(isinstance(one, Variable) and one.name.lower() == key for one in walk(node))


def _gives_up_or_fills(body: StatementBlock, key: str) -> bool:
    """`{ return }`, `{ throw … }`, `{ $x = … }`: behind it the variable holds something."""
    for one in walk(body):
        if isinstance(one, (Return, Throw, Continue, Break, Exit)):
            return True
        if (
            isinstance(one, Assignment)
            and isinstance(one.target, Variable)
            and one.target.name.lower() == key
        ):
            return True
    last = body.statements[-1] if body.statements else None
    command = _only_command(last) if last is not None else None
    return command is not None and (command.name or "").lower() == "stop-step"
