"""The half of the parser that reads expressions, types and attributes.

Precedence, from loose to tight: -and -or -xor · -band -bor -bxor · comparisons · + - · * / % · -f · .. ·
comma · unary operators and casts · member access. The rules, and the complaints and skipped tokens after
a mistake, follow Windows PowerShell, so that the first complaint is on the same line.

More than 800 lines: each rule of the grammar calls the others.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, Literal, Self, TypeVar

from winboot_lab.language.syntax import (
    ArrayExpression,
    ArrayLiteral,
    Attribute,
    Attributed,
    Binary,
    Constant,
    Convert,
    ExpandableString,
    Expression,
    Extent,
    Hashtable,
    Index,
    InvokeMember,
    Member,
    NamedArgument,
    Node,
    Paren,
    Pipeline,
    ScriptBlock,
    ScriptBlockExpression,
    Source,
    Statement,
    StatementBlock,
    StringConstant,
    StringKind,
    SubExpression,
    Trap,
    TypeConstraint,
    TypeExpression,
    TypeName,
    Unary,
    Variable,
)
from winboot_lab.language.tokens import (
    COMMAND,
    EXPRESSION,
    OPERAND,
    PRECEDENCE,
    UNARY_DASH,
    Piece,
    Scanner,
    SubExpressionPiece,
)

_SCOPES: Final = frozenset(["global", "local", "script", "private", "using", "workflow"])
_BINARY_SIGNS: Final = frozenset(["+", "-", "*", "/", "%", ".."])
_UNARY_SIGNS: Final = {"!": "not", "+": "+", "-": "-", "++": "pre++", "--": "pre--", ",": ","}
_LINE_ENDS: Final = ("nl", ";")


_Noted = TypeVar("_Noted", bound=Node)


class _Unquoted(Source):
    """The code of a `$( … )` in which doubled quotes were undone; places are those of the outer text."""

    __slots__ = ("_offsets", "_outer")

    def __init__(self, text: str, outer: Source, offsets: list[int]) -> None:
        super().__init__(text)
        self._outer = outer
        self._offsets = offsets

    def position(self, offset: int) -> tuple[int, int]:
        return self._outer.position(self._offsets[min(offset, len(self._offsets) - 1)])


class ExpressionParser(Scanner):
    """Reads expressions; the statements inside them are read by the parser built on it."""

    __slots__ = ("noted", "permitted")

    def __init__(self, source: Source, text: str | None = None) -> None:
        super().__init__(source, text)
        self.noted: list[Node] = []
        """Nodes that `semantics` looks at when all is read."""
        self.permitted: set[Variable] = set()
        """Splatted variables that are where they may be."""

    # -- what the parsers of pipelines, statements and scripts give -------------------------------------

    @abstractmethod
    def pipeline(self) -> Statement | None: ...

    @abstractmethod
    def statement(self) -> Statement | None: ...

    @abstractmethod
    def statement_list(self) -> tuple[list[Statement], list[Trap]]: ...

    @abstractmethod
    def script_block(self, opened_at: int | None, is_filter: bool) -> ScriptBlock: ...

    @abstractmethod
    def single_argument(self) -> Expression | None: ...

    # -- small helpers ---------------------------------------------------------------------------------

    def note(self, node: _Noted) -> _Noted:
        """Have a finished node looked at once everything is read."""
        self.noted.append(node)
        return node

    def extent(self, start: int, end: int) -> Extent:
        return Extent(self.source, start, end)

    def hole(self, offset: int) -> StringConstant:
        """A placeholder for a missing expression; the parser has complained, so no script runs it."""
        return StringConstant(self.extent(offset, offset), "", "bare")

    def hole_statement(self, start: int, end: int) -> Pipeline:
        """Stands for a statement that could not be read."""
        return Pipeline(self.extent(start, end), ())

    def before_token(self) -> int:
        """The place just before the token last peeked at, as PowerShell counts it."""
        return self.size if self.kind == "eof" else max(self.start - 1, 0)

    def token_place(self) -> int:
        """The place of the token last peeked at; the end of the text counts one further."""
        return self.size + 1 if self.kind == "eof" else self.start

    def sync(self, consume: bool, *kinds: str) -> None:
        """After a mistake, go on to one of these tokens (brackets on the way are counted)."""
        depth = {")": 0, "}": 0, "]": 0}
        opening = {"(": ")", "@(": ")", "$(": ")", "{": "}", "@{": "}", "[": "]"}
        while True:
            kind = self.peek(EXPRESSION)
            if kind == "eof":
                return
            if kind in kinds and not any(depth.values()):
                if consume:
                    self.take()
                return
            if kind in opening:
                depth[opening[kind]] += 1
            elif kind in depth:
                if depth[kind] == 0:
                    return
                depth[kind] -= 1
            self.take()

    # -- operators -------------------------------------------------------------------------------------

    def expression(self, comma: bool = True) -> Expression | None:
        """An expression, or None (and nothing stepped over) when none begins here.

        Without `comma` a comma separates expressions instead of making an array.
        """
        left = self._array_literal(comma)
        if left is None:
            return None
        kind = self.peek(EXPRESSION)
        if kind != "op" and kind not in _BINARY_SIGNS:
            if kind == "param":
                self._stray_parameter()
            return left
        return self._binary(left, comma)

    def _stray_parameter(self) -> None:
        self.report("UnexpectedToken", self.start, self.token_text())
        self.take()

    def _binary_operator(self) -> tuple[str, int] | None:
        """The operator at the position and its precedence, or None."""
        kind = self.peek(EXPRESSION)
        if kind == "op":
            name: str = self.value
            precedence = PRECEDENCE.get(name)
            return None if precedence is None else (name, precedence)
        return (kind, PRECEDENCE[kind]) if kind in _BINARY_SIGNS else None

    def _binary(self, first: Expression, comma: bool) -> Expression:
        operands = [first]
        operators: list[tuple[str, int, Extent]] = []
        while True:
            found = self._binary_operator()
            while operators and (found is None or found[1] <= operators[-1][1]):
                self._reduce(operands, operators)
            if found is None:
                break
            written = self.token_text()
            end = self.end
            operators.append((*found, self.extent(self.start, end)))
            self.take()
            self.skip_newlines()
            right = self._array_literal(comma)
            if right is None:
                self.report("ExpectedValueExpression", end, written)
                right = self.hole(end)
            operands.append(right)
        if self.kind == "param":
            self._stray_parameter()
        return operands[0]

    def _reduce(self, operands: list[Expression], operators: list[tuple[str, int, Extent]]) -> None:
        name, _, place = operators.pop()
        right = operands.pop()
        left = operands.pop()
        extent = self.extent(left.extent.start, right.extent.end)
        operands.append(Binary(extent, name, left, right, place))

    def _array_literal(self, comma: bool) -> Expression | None:
        first = self.unary(comma)
        if not comma or first is None or self.peek(EXPRESSION) != ",":
            return first
        elements = [first]
        while self.peek(EXPRESSION) == ",":
            end = self.take()
            self.skip_newlines()
            element = self.unary(comma)
            if element is None:
                self.report("MissingExpressionAfterToken", end, ",")
                elements.append(self.hole(end))
                break
            elements.append(element)
        return ArrayLiteral(self.extent(first.extent.start, elements[-1].extent.end), tuple(elements))

    def unary(self, comma: bool) -> Expression | None:
        """An operand: a value with what precedes it (operators, casts) and `++` or `--` behind it."""
        kind = self.peek(OPERAND)
        if kind == "[":
            expression = self._cast_or_type(comma)
        elif kind in _UNARY_SIGNS or (kind == "op" and self.value in UNARY_DASH):
            if kind == "," and not comma:
                return None
            return self._unary_operator(kind, comma)
        else:
            expression = self.primary(EXPRESSION)
        return None if expression is None else self._postfix(expression)

    def _postfix(self, expression: Expression) -> Expression:
        kind = self.peek(EXPRESSION)
        if kind == "++" or kind == "--":
            extent = self.extent(expression.extent.start, self.take())
            return self.note(Unary(extent, "post" + kind, expression))
        return expression

    def _unary_operator(self, kind: str, comma: bool) -> Expression:
        name = self.value if kind == "op" else _UNARY_SIGNS[kind]
        start, written = self.start, self.token_text()
        end = self.take()
        self.skip_newlines()
        child = self.unary(comma)
        if child is None:
            self.report("MissingExpressionAfterOperator", end, written)
            return self.hole(start)
        extent = self.extent(start, child.extent.end)
        result = ArrayLiteral(extent, (child,)) if kind == "," else Unary(extent, name, child)
        if kind == "++" or kind == "--":
            self.note(result)
        return self._postfix(result)

    # -- values ----------------------------------------------------------------------------------------

    def primary(self, mode: int, members: bool = True) -> Expression | None:
        """A value and the member accesses behind it; None when none begins here."""
        kind = self.peek(OPERAND if mode == EXPRESSION else mode)
        if kind == "var" or kind == "splat":
            expression: Expression = self._variable_node(kind == "splat")
        elif kind == "str" or kind == "here":
            expression = self._string_node(kind)
        elif kind == "num":
            value, type_name = self.value
            expression = Constant(self.extent(self.start, self.take()), value, type_name)
        elif kind == "xstr" or kind == "xhere":
            expression = self._expandable_node(self.value, self._string_kind(kind))
        elif kind == "(":
            expression = self._parenthesized()
        elif kind == "$(" or kind == "@(":
            expression = self._statements_in_parentheses(kind)
        elif kind == "@{":
            expression = self._hashtable()
        elif kind == "{":
            expression = self.script_block_expression()
        else:
            return None
        return self._members(expression, mode) if members else expression

    def _variable_node(self, splatted: bool) -> Variable:
        path: str = self.value
        start = self.start
        node = self.variable(start, self.take(), path, splatted)
        return self.note(node) if splatted else node

    def variable(self, start: int, end: int, path: str, splatted: bool = False) -> Variable:
        """The node for a variable's path."""
        extent = self.extent(start, end)
        qualifier, colon, name = path.partition(":")
        if not colon:
            return Variable(extent, path, path, None, None, splatted)
        if qualifier.lower() in _SCOPES:
            return Variable(extent, path, name, qualifier.lower(), None, splatted)
        return Variable(extent, path, name, None, qualifier, splatted)

    def _string_kind(self, kind: str) -> StringKind:
        quote_at = self.start + 1 if kind in ("here", "xhere") else self.start
        single = self.text[quote_at] in "'\u2018\u2019\u201a\u201b"
        if kind in ("here", "xhere"):
            return "single-here" if single else "double-here"
        return "single" if single else "double"

    def _string_node(self, kind: str) -> StringConstant:
        value: str = self.value
        string_kind = self._string_kind(kind)
        start = self.start
        return StringConstant(self.extent(start, self.take()), value, string_kind)

    def _expandable_node(self, pieces: list[Piece], kind: StringKind) -> ExpandableString:
        start = self.start
        extent = self.extent(start, self.take())
        return ExpandableString(extent, self.expand(pieces), kind)

    def expand(self, pieces: list[Piece]) -> tuple[str | Variable | SubExpression, ...]:
        """Texts joined, variables and sub-expressions parsed."""
        parts: list[str | Variable | SubExpression] = []
        texts: list[str] = []
        for piece in pieces:
            if isinstance(piece, str):
                texts.append(piece)
                continue
            if texts:
                parts.append("".join(texts))
                texts.clear()
            if isinstance(piece, SubExpressionPiece):
                parts.append(self._nested(piece))
            else:
                parts.append(self.variable(piece.start, piece.end, piece.path))
        if texts:
            parts.append("".join(texts))
        return tuple(parts)

    def _nested(self, piece: SubExpressionPiece) -> SubExpression:
        """Parse the code of `$( … )` in a text as if the script ended behind it."""
        inner = self._inner_parser(piece)
        inner.errors = self.errors
        inner._reported = self._reported
        inner.noted = self.noted
        inner.permitted = self.permitted
        start = inner.pos
        expression = inner.primary(EXPRESSION, members=False)
        if isinstance(expression, SubExpression):
            return expression
        return SubExpression(self.extent(start, start), StatementBlock(self.extent(start, start), ()))

    def _inner_parser(self, piece: SubExpressionPiece) -> Self:
        if not piece.dropped:
            inner = type(self)(self.source, self.text[: piece.end])
            inner.pos = piece.start
            return inner
        dropped = set(piece.dropped)
        offsets = [at for at in range(piece.start, piece.end + 2) if at not in dropped]
        text = "".join(self.text[at] for at in offsets if at < piece.end)
        return type(self)(_Unquoted(text, self.source, offsets))

    def _parenthesized(self) -> Expression:
        start = self.start
        opened = self.take()
        self.skip_newlines()
        inner = self.pipeline()
        if inner is None:
            self.report("ExpectedExpression", opened)
            inner = self.hole_statement(opened, opened)
        self.skip_newlines()
        if self.peek(COMMAND) == ")":
            end = self.take()
        else:
            end = inner.extent.end
            self.report("MissingEndParenthesisInExpression", end)
        return Paren(self.extent(start, end), inner)

    def _statements_in_parentheses(self, kind: str) -> Expression:
        start = self.start
        opened = self.take()
        statements, traps = self.statement_list()
        self.skip_newlines()
        inner_end = statements[-1].extent.end if statements else opened
        if self.peek(COMMAND) == ")":
            end = self.take()
        else:
            self.report("MissingEndParenthesisInSubexpression", self.token_place())
            end = inner_end
        block = StatementBlock(self.extent(opened, inner_end), tuple(statements), tuple(traps))
        extent = self.extent(start, end)
        return SubExpression(extent, block) if kind == "$(" else ArrayExpression(extent, block)

    def script_block_expression(self) -> ScriptBlockExpression:
        """`{ … }` as a value; the brace was peeked at."""
        start = self.start
        self.take()
        body = self.script_block(start, False)
        return ScriptBlockExpression(body.extent, body)

    # -- hash tables -----------------------------------------------------------------------------------

    def _hashtable(self) -> Expression:
        start = self.start
        opened = self.take()
        self.skip_newlines()
        pairs: list[tuple[Expression, Statement]] = []
        while True:
            pair = self._pair()
            if pair is None:
                break
            pairs.append(pair)
            if self.peek(COMMAND) not in _LINE_ENDS:
                break
            self.skip_terminators()
        if self.peek(COMMAND) == "}":
            end = self.take()
        else:
            self.report("MissingEndCurlyBrace", opened)
            end = self.pos
        return self.note(Hashtable(self.extent(start, end), tuple(pairs)))

    def _pair(self) -> tuple[Expression, Statement] | None:
        key = self.label_or_key()
        if key is None:
            return None
        if self.peek(EXPRESSION) != "assign" or self.token_text() != "=":
            end = key.extent.end
            self.report("MissingEqualsInHashLiteral", end)
            self.sync(False, "}", ";", "nl")
            return key, self.hole_statement(end, end)
        end = self.take()
        self.skip_newlines()
        value = self.statement()
        if value is None:
            self.report("MissingStatementInHashLiteral", end)
            value = self.hole_statement(end, end)
        return key, value

    def label_or_key(self) -> Expression | None:
        """A key of a hash table or the label of break and continue: a plain name or an operand."""
        name = self.simple_name()
        if name is not None:
            return StringConstant(self.extent(name[1], name[2]), name[0], "bare")
        if self.peek(EXPRESSION) in _LINE_ENDS:
            return None
        return self.unary(comma=False)

    # -- members ---------------------------------------------------------------------------------------

    def _members(self, expression: Expression, mode: int) -> Expression:
        """Whatever is glued to a value: `.name`, `::name`, `.name(…)`, `[index]`."""
        while True:
            operator = self._member_operator(mode)
            if operator is None:
                return expression
            if operator == "[":
                expression = self._index(expression)
            else:
                expression = self._member(expression, operator, mode)

    def _member_operator(self, mode: int, bracket: bool = True) -> Literal[".", "::", "["] | None:
        """Step over `.`, `::` or `[` glued to the value (block comments may come between)."""
        text = self.text
        at = self.pos
        while text.startswith("<#", at):
            closed = text.find("#>", at + 2)
            if closed < 0:
                return None
            at = closed + 2
        char = text[at]
        if char == "[" and bracket:
            self.pos = at + 1
            return "["
        if char == "." and text[at + 1] != ".":
            following = text[at + 1]
            if mode == COMMAND and (following.isspace() or following == "\0"):
                return None
            self.pos = at + 1
            return "."
        if char == ":" and text[at + 1] == ":":
            following = text[at + 2]
            if mode == COMMAND and (following.isspace() or following == "\0"):
                return None
            self.pos = at + 2
            return "::"
        return None

    def _member(self, target: Expression, operator: str, mode: int) -> Expression:
        operator_end = self.pos
        self.skip_newlines()
        start = target.extent.start
        static = operator == "::"
        member = self._member_name(mode)
        if member is None:
            self.report("MissingPropertyName", operator_end)
            member = self.single_argument() or self.hole(operator_end)
            return Member(self.extent(start, member.extent.end), target, member, static)
        char = self.text[self.pos]
        if char == "(":
            self.pos += 1
            arguments, end = self._arguments(self.pos)
            return InvokeMember(self.extent(start, end), target, member, static, arguments)
        if char == "{":
            self.peek(EXPRESSION)
            block = self.script_block_expression()
            return InvokeMember(self.extent(start, block.extent.end), target, member, static, (block,))
        return Member(self.extent(start, member.extent.end), target, member, static)

    def _member_name(self, mode: int) -> Expression | None:
        name = self.simple_name()
        if name is not None:
            return StringConstant(self.extent(name[1], name[2]), name[0], "bare")
        kind = self.peek(mode)
        if kind in _UNARY_SIGNS or kind == "[" or (kind == "op" and self.value in UNARY_DASH):
            return self.unary(comma=True)
        return self.primary(mode, members=False)

    def _arguments(self, opened: int) -> tuple[tuple[Expression, ...], int]:
        """The arguments of a method call up to the closing parenthesis, and where that ended."""
        arguments: list[Expression] = []
        comma_end: int | None = None
        complained = False
        while True:
            self.skip_newlines()
            argument = self.expression(comma=False)
            if argument is None:
                if comma_end is not None:
                    self.report("MissingExpressionAfterToken", comma_end, ",")
                    complained = True
                break
            arguments.append(argument)
            self.skip_newlines()
            if self.peek(EXPRESSION) != ",":
                break
            comma_end = self.take()
        self.skip_newlines()
        if self.peek(EXPRESSION) == ")":
            return tuple(arguments), self.take()
        end = arguments[-1].extent.end if arguments else opened
        if not complained:
            self.report("MissingEndParenthesisInMethodCall", end)
        return tuple(arguments), end

    def _index(self, target: Expression) -> Expression:
        opened = self.pos
        self.skip_newlines()
        index = self.expression()
        if index is None:
            self.report("MissingArrayIndexExpression", opened)
            index = self.hole(opened)
            missing = True
        else:
            missing = False
        self.skip_newlines()
        if self.peek(EXPRESSION) == "]":
            end = self.take()
        else:
            end = index.extent.end
            if not missing:
                self.report("MissingEndSquareBracket", end)
        return Index(self.extent(target.extent.start, end), target, index)

    # -- casts, attributes, types ----------------------------------------------------------------------

    def _cast_or_type(self, comma: bool) -> Expression | None:
        attributes = self.attribute_list(in_expression=True)
        if not attributes:
            return None
        last = attributes[-1]
        if isinstance(last, Attribute):
            expression = self._attributed(last, comma)
        else:
            expression = self._after_type(last, comma)
        for attribute in reversed(attributes[:-1]):
            extent = self.extent(attribute.extent.start, expression.extent.end)
            if isinstance(attribute, TypeConstraint):
                expression = self._convert(extent, attribute, expression)
            else:
                expression = self.note(Attributed(extent, attribute, expression))
        return expression

    def _convert(self, extent: Extent, constraint: TypeConstraint, child: Expression) -> Convert:
        node = Convert(extent, constraint, child)
        return self.note(node) if constraint.type.name.lower() == "ordered" else node

    def _attributed(self, attribute: Attribute, comma: bool) -> Expression:
        self.skip_newlines()
        child = self.unary(comma)
        if child is None:
            self.report("UnexpectedAttribute", attribute.extent.start, attribute.type.full)
            return self.hole(attribute.extent.start)
        extent = self.extent(attribute.extent.start, child.extent.end)
        return self.note(Attributed(extent, attribute, child))

    def _after_type(self, constraint: TypeConstraint, comma: bool) -> Expression:
        start = constraint.extent.start
        literal = TypeExpression(constraint.extent, constraint.type)
        operator = self._member_operator(EXPRESSION, bracket=False)
        if operator is not None:
            return self._members(self._member(literal, operator, EXPRESSION), EXPRESSION)
        if self.peek(EXPRESSION) not in ("nl", ","):
            child = self.unary(comma)
            if child is not None:
                return self._convert(self.extent(start, child.extent.end), constraint, child)
        return literal

    def attribute_list(self, in_expression: bool) -> list[Attribute | TypeConstraint]:
        """The attributes and types in brackets at the position; may be empty."""
        found: list[Attribute | TypeConstraint] = []
        while True:
            attribute = self.attribute()
            if attribute is None:
                return found
            found.append(attribute)
            if not in_expression or isinstance(attribute, Attribute):
                self.skip_newlines()

    def attribute(self) -> Attribute | TypeConstraint | None:
        """One `[…]`, or None (and nothing stepped over)."""
        restore = self.pos
        if self.peek(EXPRESSION) != "[":
            self.pos = restore
            return None
        start = self.start
        opened = self.take()
        self.skip_newlines()
        type_name = self.type_spec()
        if type_name is None:
            self.report("MissingTypename", opened)
            self.pos = restore
            return None
        if self.peek(EXPRESSION) == "(":
            return self._attribute_arguments(start, type_name)
        if self.kind == "]":
            return TypeConstraint(self.extent(start, self.take()), type_name)
        self.report("EndSquareBracketExpectedAtEndOfAttribute", self.before_token())
        return TypeConstraint(self.extent(start, type_name.extent.end), type_name)

    def _attribute_arguments(self, start: int, type_name: TypeName) -> Attribute:
        last = self.take()
        positional: list[Expression] = []
        named: list[NamedArgument] = []
        seen: set[str] = set()
        comma_end: int | None = None
        while True:
            self.skip_newlines()
            name = self.simple_name()
            if name is not None:
                argument = self._named_argument(name)
                if name[0] in seen:
                    self.report("DuplicateNamedArgument", name[1], name[0])
                seen.add(name[0])
                named.append(argument)
                last = argument.extent.end if argument.value is not None else last
            else:
                value = self.expression(comma=False)
                if value is not None:
                    positional.append(value)
                    last = value.extent.end
                elif comma_end is not None:
                    self.report("MissingExpressionAfterToken", comma_end, ",")
            self.skip_newlines()
            if self.peek(EXPRESSION) != ",":
                break
            last = comma_end = self.take()
        end = self._attribute_end(last)
        return self.note(Attribute(self.extent(start, end), type_name, tuple(positional), tuple(named)))

    def _named_argument(self, name: tuple[str, int, int]) -> NamedArgument:
        if self.peek(EXPRESSION) != "assign" or self.token_text() != "=":
            return NamedArgument(self.extent(name[1], name[2]), name[0], None)
        end = self.take()
        self.skip_newlines()
        value = self.expression(comma=False)
        if value is None:
            self.report("MissingExpressionInNamedArgument", end)
            value = self.hole(end)
            self.sync(True, ",", ")", "]", "nl")
        return NamedArgument(self.extent(name[1], value.extent.end), name[0], value)

    def _attribute_end(self, last: int) -> int:
        """The `)]` behind the arguments."""
        self.skip_newlines()
        closed = self.peek(EXPRESSION) == ")"
        if closed:
            last = self.take()
        else:
            self.report("MissingEndParenthesisInExpression", last)
        self.skip_newlines()
        if self.peek(EXPRESSION) == "]":
            return self.take()
        if closed:
            self.report("EndSquareBracketExpectedAtEndOfAttribute", last)
        return last

    def type_spec(self) -> TypeName | None:
        """A type's name with generic arguments, array ranks and assembly; None when no name is there."""
        name = self.type_name()
        return None if name is None else self._rest_of_type(name, bare=False)

    def _rest_of_type(self, name: tuple[str, int, int], bare: bool) -> TypeName:
        """What follows a type's name. A `bare` generic argument has no brackets, so no assembly either."""
        text, start, end = name
        arguments: tuple[TypeName, ...] = ()
        ranks: tuple[int, ...] = ()
        if self.peek(EXPRESSION) == "[":
            opened = self.take()
            self.skip_newlines()
            kind = self.peek(EXPRESSION)
            if kind == "id" or kind == "[":
                arguments = self._generic_arguments()
                if self.peek(EXPRESSION) == "[":
                    self.take()
                    ranks = self._ranks()
            elif kind in ("]", ","):
                ranks = self._ranks()
            else:
                self._bad_type_argument(opened)
            end = self.pos
        assembly = ""
        if not bare and self.peek(EXPRESSION) == ",":
            comma_end = self.take()
            assembly = self._assembly()
            if not assembly:
                self.report("MissingAssemblyNameSpecification", comma_end)
            end = self.pos
        return TypeName(self.extent(start, end), text, arguments, ranks, assembly)

    def _bad_type_argument(self, opened: int) -> None:
        if self.kind == "eof":
            self.report("MissingTypename", opened)
            return
        self.report("UnexpectedToken", self.start, self.token_text())
        self.sync(True, "]")

    def _ranks(self) -> tuple[int, ...]:
        """The array suffixes; the first bracket was stepped over."""
        ranks: list[int] = []
        while True:
            commas = 0
            last = self.pos
            while self.peek(EXPRESSION) == ",":
                commas += 1
                last = self.take()
            if self.kind == "]":
                self.take()
            elif commas:
                self.report("EndSquareBracketExpectedAtEndOfAttribute", last)
            elif self.kind == "eof":
                self.report("EndSquareBracketExpectedAtEndOfAttribute", self.before_token())
            else:
                self._bad_type_argument(last)
            ranks.append(commas + 1)
            if self.peek(EXPRESSION) != "[":
                return tuple(ranks)
            self.take()

    def _generic_arguments(self) -> tuple[TypeName, ...]:
        arguments = [self._generic_argument()]
        while True:
            self.skip_newlines()
            if self.peek(EXPRESSION) != ",":
                break
            comma_end = self.take()
            self.skip_newlines()
            if self.peek(EXPRESSION) in ("id", "["):
                arguments.append(self._generic_argument())
            else:
                self.report("MissingTypename", comma_end)
        if self.kind == "]":
            self.take()
        else:
            self.report("EndSquareBracketExpectedAtEndOfAttribute", self.before_token())
        return tuple(arguments)

    def _generic_argument(self) -> TypeName:
        """One generic argument, in brackets of its own or without."""
        bracketed = self.kind == "["
        if bracketed:
            self.take()
        name = self.type_name()
        if name is None:
            self.peek(EXPRESSION)
            self.report("MissingTypename", self.token_place())
            return TypeName(self.extent(self.pos, self.pos), ":ErrorTypeName:")
        argument = self._rest_of_type(name, bare=not bracketed)
        if bracketed:
            if self.peek(EXPRESSION) == "]":
                self.take()
            else:
                self.report("EndSquareBracketExpectedAtEndOfType", self.before_token())
        return argument

    def _assembly(self) -> str:
        """Everything up to the closing bracket."""
        end = self.pos
        while self.text[end] not in "]\r\n\0":
            end += 1
        spec = self.text[self.pos : end].strip()
        self.pos = end
        return spec
