"""The PowerShell syntax tree: what `parse` gives and what the check and the lab's engine walk.

Nodes are named like those of System.Management.Automation.Language, without "Ast". They are frozen, compare
by identity (so a node can be the key of a cache) and know their place: `node.extent` has `start`, `end`,
`line`, `column` and `text`. Only Windows PowerShell 5.1 has a place here; what came later is refused by the
parser.

    ScriptBlock                   using, param block, named blocks
      ParamBlock, Parameter, Attribute, NamedArgument, TypeConstraint, TypeName
      NamedBlock                  statements of begin, process, end or dynamicparam
    StatementBlock                `{ … }` of a statement
    Statement
      FunctionDefinition, If, While, DoWhile, DoUntil, For, ForEach, Switch, Try + CatchClause, Trap, Data,
      Return, Throw, Exit, Break, Continue, Assignment, Pipeline
    Command, CommandExpression    the elements of a pipeline, with CommandParameter and Redirection
    Expression
      Binary, Unary, Convert, Attributed, ArrayLiteral, ArrayExpression, SubExpression, Paren,
      ScriptBlockExpression, Hashtable, StringConstant, ExpandableString, Constant, Variable, Member,
      InvokeMember, Index, TypeExpression

`walk(node)` yields a node and everything below it; `dump(node)` shows a tree as nested tuples, without places.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

from winboot.base.errors import ScriptError

# ----------------------------------------------------------------------------------------------------
# Places


class Source:
    """A script's text and where its lines begin. LF, CR and CRLF end a line, as in PowerShell."""

    __slots__ = ("_line_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._line_starts: list[int] | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        if self._line_starts is None:
            self._line_starts = _line_starts(self.text)
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1


def _line_starts(text: str) -> list[int]:
    starts = [0]
    if "\r" not in text:
        at = text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = text.find("\n", at + 1)
        return starts
    for at, char in enumerate(text):
        if char == "\n" or (char == "\r" and text[at + 1 : at + 2] != "\n"):
            starts.append(at + 1)
    return starts


class Extent:
    """From where to where a node reaches. Lines and columns are worked out only when asked for."""

    __slots__ = ("end", "source", "start")

    def __init__(self, source: Source, start: int, end: int) -> None:
        self.source = source
        self.start = start
        self.end = end

    @property
    def text(self) -> str:
        """The characters of the node as written."""
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        """The line of the first character, from 1."""
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        """The column of the first character, from 1."""
        return self.source.position(self.start)[1]

    @property
    def position(self) -> tuple[int, int]:
        """Line and column of the first character."""
        return self.source.position(self.start)

    @property
    def end_position(self) -> tuple[int, int]:
        """Line and column just behind the last character."""
        return self.source.position(self.end)

    def __repr__(self) -> str:
        return "{}:{}".format(*self.position)


# ----------------------------------------------------------------------------------------------------
# Errors


@dataclass(frozen=True, slots=True)
class ParseError:
    """One complaint of the parser, with PowerShell's error id and wording."""

    id: str
    message: str
    line: int
    column: int
    offset: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message} ({self.id})"


class ParseErrors(ScriptError):
    """The text is no Windows PowerShell 5.1.

    `errors` holds each complaint, in order of their place of discovery.
    """

    def __init__(self, errors: tuple[ParseError, ...]) -> None:
        super().__init__(str(errors[0]))
        self.errors = errors

    @property
    def first(self) -> ParseError:
        """The complaint PowerShell would show first."""
        return self.errors[0]


# ----------------------------------------------------------------------------------------------------
# Kinds of nodes


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Anything in the tree."""

    extent: Extent


@dataclass(frozen=True, slots=True, eq=False)
class Statement(Node):
    """Something that is run for its effect or its output."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression(Node):
    """Something that has a value."""


# ----------------------------------------------------------------------------------------------------
# Types


@dataclass(frozen=True, slots=True, eq=False)
class TypeName(Node):
    """A type as written between brackets: `int`, `Collections.Generic.Dictionary[string, int]`, `byte[]`.

    `name` is the part before any bracket. `arguments` are generic arguments. `ranks` has one number for
    each array suffix, read from left to right: `byte[]` is (1,), `int[,]` is (2,), `string[][]` is (1, 1).
    """

    name: str
    arguments: tuple[TypeName, ...] = ()
    ranks: tuple[int, ...] = ()
    assembly: str = ""

    @property
    def full(self) -> str:
        """The whole type name, spaces removed."""
        inner = f"[{','.join(argument.full for argument in self.arguments)}]" if self.arguments else ""
        return self.name + inner + "".join("[" + "," * (rank - 1) + "]" for rank in self.ranks)


@dataclass(frozen=True, slots=True, eq=False)
class TypeConstraint(Node):
    """`[int]` before a variable, a parameter, an expression (then inside Convert) or in a catch clause."""

    type: TypeName


@dataclass(frozen=True, slots=True, eq=False)
class NamedArgument(Node):
    """`Position = 1` in an attribute. `value` is None for the short form `Mandatory`, which means $true."""

    name: str
    value: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Attribute(Node):
    """`[Parameter(Mandatory)]`, `[ValidateSet('a', 'b')]`, `[CmdletBinding()]`."""

    type: TypeName
    positional: tuple[Expression, ...]
    named: tuple[NamedArgument, ...]


# ----------------------------------------------------------------------------------------------------
# Blocks


@dataclass(frozen=True, slots=True, eq=False)
class StatementBlock(Node):
    """The statements between `{` and `}` of a statement, or inside `$( )` and `@( )`. Traps are kept apart."""

    statements: tuple[Statement, ...]
    traps: tuple[Trap, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class NamedBlock(Node):
    """The statements of one phase of a script block.

    `kind` is 'begin', 'process', 'end' or 'dynamicparam'. `unnamed` is true when the script wrote no block name.
    """

    kind: Literal["begin", "process", "end", "dynamicparam"]
    statements: tuple[Statement, ...]
    traps: tuple[Trap, ...] = ()
    unnamed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Parameter(Node):
    """One declared parameter:

    attributes and type constraints as written, the variable, the default or None.
    """

    variable: Variable
    attributes: tuple[Attribute | TypeConstraint, ...]
    default: Expression | None

    @property
    def name(self) -> str:
        """The name without `$`, as written."""
        return self.variable.name

    @property
    def type(self) -> TypeName | None:
        """The innermost type constraint, or None."""
        return next((a.type for a in reversed(self.attributes) if isinstance(a, TypeConstraint)), None)


@dataclass(frozen=True, slots=True, eq=False)
class ParamBlock(Node):
    """`param(…)` with the attributes before it ([CmdletBinding()], [OutputType()])."""

    attributes: tuple[Attribute, ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Using(Node):
    """`using namespace X`, `using module X`, `using assembly X`."""

    kind: Literal["namespace", "module", "assembly"]
    name: str


@dataclass(frozen=True, slots=True)
class Requirements:
    """What the #requires lines of a script ask for."""

    version: tuple[int, ...] | None = None
    edition: str | None = None
    modules: tuple[str, ...] = ()
    shell_id: str | None = None
    run_as_administrator: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ScriptBlock(Node):
    """A script, a function's body, or what is inside `{ … }`.

    Without block names everything is in `end` (in `process` for a filter), with `unnamed` set. A block that
    was not written is None; `end` of an empty script block is a NamedBlock without statements.
    """

    params: ParamBlock | None
    dynamicparam: NamedBlock | None
    begin: NamedBlock | None
    process: NamedBlock | None
    end: NamedBlock | None
    using: tuple[Using, ...] = ()
    requirements: Requirements | None = None


# ----------------------------------------------------------------------------------------------------
# Statements


@dataclass(frozen=True, slots=True, eq=False)
class FunctionDefinition(Statement):
    """`function Name(…) { … }` and `filter`.

    `parameters` is None unless they are in parentheses after the name.
    """

    kind: Literal["function", "filter", "workflow"]
    name: str
    parameters: tuple[Parameter, ...] | None
    body: ScriptBlock


@dataclass(frozen=True, slots=True, eq=False)
class If(Statement):
    """`if (…) {…} elseif (…) {…} else {…}`; `clauses` are condition and body."""

    clauses: tuple[tuple[Statement, StatementBlock], ...]
    otherwise: StatementBlock | None


@dataclass(frozen=True, slots=True, eq=False)
class While(Statement):
    """`:label while (condition) { body }`."""

    label: str | None
    condition: Statement
    body: StatementBlock


@dataclass(frozen=True, slots=True, eq=False)
class DoWhile(Statement):
    """`do { body } while (condition)`."""

    label: str | None
    condition: Statement
    body: StatementBlock


@dataclass(frozen=True, slots=True, eq=False)
class DoUntil(Statement):
    """`do { body } until (condition)`."""

    label: str | None
    condition: Statement
    body: StatementBlock


@dataclass(frozen=True, slots=True, eq=False)
class For(Statement):
    """`for (initializer; condition; iterator) { body }`; each of the three may be None."""

    label: str | None
    initializer: Statement | None
    condition: Statement | None
    iterator: Statement | None
    body: StatementBlock


@dataclass(frozen=True, slots=True, eq=False)
class ForEach(Statement):
    """`foreach ($variable in iterable) { body }`. `flags` and `throttle_limit` belong to workflows."""

    label: str | None
    variable: Variable
    iterable: Statement
    body: StatementBlock
    flags: frozenset[str] = frozenset()
    throttle_limit: Expression | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Switch(Statement):
    """`switch -regex (condition) { test { … } default { … } }`.

    `flags` are lower-case words of 'regex', 'wildcard', 'exact', 'casesensitive', 'parallel' and 'file';
    with 'file' the condition is the path. A clause's test is an expression; a ScriptBlockExpression is run
    with `$_`.
    """

    label: str | None
    flags: frozenset[str]
    condition: Statement
    clauses: tuple[tuple[Expression, StatementBlock], ...]
    default: StatementBlock | None


@dataclass(frozen=True, slots=True, eq=False)
class CatchClause(Node):
    """`catch [A], [B] { … }`; no types means it catches everything."""

    types: tuple[TypeConstraint, ...]
    body: StatementBlock


@dataclass(frozen=True, slots=True, eq=False)
class Try(Statement):
    """`try {…} catch {…} finally {…}`."""

    body: StatementBlock
    catches: tuple[CatchClause, ...]
    finally_: StatementBlock | None


@dataclass(frozen=True, slots=True, eq=False)
class Trap(Statement):
    """`trap [Type] { … }`; it is in the `traps` of its block, wherever it was written there."""

    type: TypeConstraint | None
    body: StatementBlock


@dataclass(frozen=True, slots=True, eq=False)
class Data(Statement):
    """`data name -SupportedCommand … { … }`."""

    name: str | None
    commands: tuple[Expression, ...]
    body: StatementBlock


@dataclass(frozen=True, slots=True, eq=False)
class Return(Statement):
    """`return` with its pipeline or None."""

    value: Statement | None


@dataclass(frozen=True, slots=True, eq=False)
class Throw(Statement):
    """`throw` with its pipeline or None."""

    value: Statement | None


@dataclass(frozen=True, slots=True, eq=False)
class Exit(Statement):
    """`exit` with its pipeline or None."""

    value: Statement | None


@dataclass(frozen=True, slots=True, eq=False)
class Break(Statement):
    """`break` with its label (a StringConstant for a bare word) or None."""

    label: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Continue(Statement):
    """`continue` with its label (a StringConstant for a bare word) or None."""

    label: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Assignment(Statement):
    """`target operator value`; operator is one of = += -= *= /= %=.

    The target is a Variable, Member, Index, a Convert or Attributed around one, an ArrayLiteral of such, or
    a Paren around one. The value is any statement: a Pipeline, another Assignment, an If, a ForEach …
    """

    target: Expression
    operator: str
    value: Statement


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline(Statement):
    """One or more elements joined with `|`. Only the first may be a CommandExpression."""

    elements: tuple[Command | CommandExpression, ...]

    @property
    def expression(self) -> Expression | None:
        """The expression, when the pipeline is nothing but one without redirection."""
        if len(self.elements) == 1:
            only = self.elements[0]
            if isinstance(only, CommandExpression) and not only.redirections:
                return only.expression
        return None


@dataclass(frozen=True, slots=True, eq=False)
class CommandExpression(Statement):
    """An expression as an element of a pipeline, with its redirections."""

    expression: Expression
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CommandParameter(Node):
    """`-Name`, or `-Name:argument`. `name` has no dash and no colon. The text as written is `extent.text`."""

    name: str
    argument: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Command(Statement):
    """A command call. `elements[0]` is the command (a StringConstant for a bare word), the rest its
    arguments.

    `invocation` is '' for a plain call, '&' or '.' for the operators. Bare words are StringConstant with
    kind 'bare' or ExpandableString with kind 'bare'. After `--%` the rest of the line is one StringConstant
    of kind 'verbatim'.
    """

    invocation: Literal["", "&", "."]
    elements: tuple[Expression | CommandParameter, ...]
    redirections: tuple[Redirection, ...] = ()

    @property
    def name(self) -> str | None:
        """The command's name when it is a constant text, else None."""
        first = self.elements[0]
        return first.value if isinstance(first, StringConstant) else None


@dataclass(frozen=True, slots=True, eq=False)
class Redirection(Node):
    """`2> file`, `*>> file`, `2>&1`.

    `stream` is the number of the stream, 0 for all (`*`). A merge has `merge_into` (always 1) and no `target`.
    """

    stream: int
    target: Expression | None
    append: bool = False
    merge_into: int | None = None


# ----------------------------------------------------------------------------------------------------
# Expressions


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expression):
    """`left operator right`.

    Operators: `+ - * / % .. and or xor band bor bxor shl shr f is isnot as join, isplit csplit, ireplace creplace`
    and the comparisons `ieq ine ige igt ile ilt ilike inotlike imatch inotmatch icontains inotcontains iin inotin`
    with their case-sensitive forms in c… (`-eq` and `-ieq` are both 'ieq').
    """

    operator: str
    left: Expression
    right: Expression
    operator_extent: Extent


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expression):
    """`operator child`: - + not bnot join isplit csplit; pre++ pre-- post++ post-- (`!` is 'not')."""

    operator: str
    child: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Convert(Expression):
    """`[type] child`."""

    type: TypeConstraint
    child: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Attributed(Expression):
    """`[Attribute()] child`, only at the left of an assignment."""

    attribute: Attribute
    child: Expression


@dataclass(frozen=True, slots=True, eq=False)
class ArrayLiteral(Expression):
    """`a, b, c` and `, a`."""

    elements: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ArrayExpression(Expression):
    """`@( … )`."""

    body: StatementBlock


@dataclass(frozen=True, slots=True, eq=False)
class SubExpression(Expression):
    """`$( … )`."""

    body: StatementBlock


@dataclass(frozen=True, slots=True, eq=False)
class Paren(Expression):
    """`( … )` around one pipeline or assignment."""

    pipeline: Statement


@dataclass(frozen=True, slots=True, eq=False)
class ScriptBlockExpression(Expression):
    """`{ … }` as a value."""

    body: ScriptBlock


@dataclass(frozen=True, slots=True, eq=False)
class Hashtable(Expression):
    """`@{ key = value; … }`; a bare-word key is a StringConstant of kind 'bare', a value is a statement."""

    pairs: tuple[tuple[Expression, Statement], ...]


StringKind = Literal["single", "double", "single-here", "double-here", "bare", "verbatim"]


@dataclass(frozen=True, slots=True, eq=False)
class StringConstant(Expression):
    """A text without anything to expand; `value` has quotes and escapes already resolved."""

    value: str
    kind: StringKind


@dataclass(frozen=True, slots=True, eq=False)
class ExpandableString(Expression):
    """A text with variables or `$( … )` in it.

    `parts` are texts (escapes resolved) and Variable or SubExpression.
    """

    parts: tuple[str | Variable | SubExpression, ...]
    kind: StringKind


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Expression):
    """A number. `type` names its .NET type: Int32, Int64, Double, Decimal or BigInteger.

    `value` is an int, a float for Double, a decimal.Decimal for Decimal.
    """

    value: object
    type: Literal["Int32", "Int64", "Double", "Decimal", "BigInteger"]


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Expression):
    """`$name`, `$scope:name`, `$drive:name`, `${any name}`, `@name` (`splatted`).

    `path` is what follows the sigil, braces and escapes resolved. `scope` is 'global', 'local',
    'script', 'private' or 'using' (lower case) or None; `drive` is any other qualifier as written (`env`,
    `function`, `variable`) or None; `name` is the rest.
    """

    path: str
    name: str
    scope: str | None = None
    drive: str | None = None
    splatted: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Member(Expression):
    """`target.member` or `target::member`.

    `member` is a StringConstant for a plain name, else any expression.
    """

    target: Expression
    member: Expression
    static: bool


@dataclass(frozen=True, slots=True, eq=False)
class InvokeMember(Expression):
    """`target.member(arguments)` or `target::member(arguments)`; `.ForEach{ … }` passes one script block."""

    target: Expression
    member: Expression
    static: bool
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Index(Expression):
    """`target[index]`."""

    target: Expression
    index: Expression


@dataclass(frozen=True, slots=True, eq=False)
class TypeExpression(Expression):
    """`[type]` as a value."""

    type: TypeName


# ----------------------------------------------------------------------------------------------------
# Walking


def _nodes_in(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes_in(item)


_FIELDS: dict[type[Node], tuple[str, ...]] = {}


def _field_names(kind: type[Node]) -> tuple[str, ...]:
    names = _FIELDS.get(kind)
    if names is None:
        skipped = ("extent", "operator_extent")
        names = _FIELDS[kind] = tuple(f.name for f in fields(kind) if f.name not in skipped)
    return names


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order of the fields (nearly the order of the text)."""
    for name in _field_names(type(node)):
        yield from _nodes_in(getattr(node, name))


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def dump(value: object) -> object:
    """A tree as nested tuples of class name and fields, without places: for comparing trees in tests."""
    if isinstance(value, Node):
        kind = type(value)
        return (kind.__name__, *(dump(getattr(value, name)) for name in _field_names(kind)))
    if isinstance(value, tuple):
        return tuple(dump(item) for item in value)
    return value
