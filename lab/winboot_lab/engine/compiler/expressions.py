"""Expressions: constants, strings, operators, members, indexes, literals of arrays, hashtables and script blocks."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from winboot_lab.engine.compiler.assignments import index_as_object, key_or_place, member_name, stepping
from winboot_lab.engine.compiler.core import (
    Eval,
    Value,
    compiles_expression,
    emit,
    expression,
    refusing,
    value_of,
)
from winboot_lab.engine.compiler.statements import body_of
from winboot_lab.engine.compiler.types import type_getter
from winboot_lab.engine.convert import cast, from_nothing, to_bool
from winboot_lab.engine.dotnet import Reference
from winboot_lab.engine.exceptions import RuntimeException
from winboot_lab.engine.members import get_member, index_value, invoke_member
from winboot_lab.engine.operators import binary, is_type, unary
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.values import (
    NOTHING,
    PS_OBJECT,
    STRING,
    Array,
    BigInteger,
    Hashtable,
    Int64,
    OrderedDictionary,
    ScriptBlock,
    _Mapping,
    enumerate_value,
    plain,
)
from winboot_lab.language import syntax

# -- constants and strings


@compiles_expression(syntax.Constant)
def _constant(node: syntax.Constant) -> Eval:
    value: Value = node.value
    if node.type == "Int64":
        value = Int64(int(value))
    elif node.type == "BigInteger":
        value = BigInteger(int(value))
    elif node.type == "Double":
        value = float(value)
    elif node.type == "Decimal":
        value = Decimal(value)
    return lambda _scope: value


@compiles_expression(syntax.StringConstant)
def _string(node: syntax.StringConstant) -> Eval:
    value = node.value
    return lambda _scope: value


@compiles_expression(syntax.ExpandableString)
def _expandable(node: syntax.ExpandableString) -> Eval:
    parts = [_fixed(part) if isinstance(part, str) else _expanded(_part_value(part)) for part in node.parts]

    def run(scope: Scope) -> str:
        return "".join([part(scope) for part in parts])

    return run


def _part_value(node: syntax.Variable | syntax.SubExpression) -> Eval:
    """Strict mode 1 does not mind an undefined variable inside a string."""
    value = expression(node)
    if not isinstance(node, syntax.Variable) or node.drive is not None:
        return value
    key = node.name.lower()

    def read(scope: Scope) -> Value:
        if scope.strict == 1 and scope.find(key) is None:
            return None
        return value(scope)

    return read


def _fixed(text: str) -> Callable[[Scope], str]:
    return lambda _scope: text


def _expanded(value: Eval) -> Callable[[Scope], str]:
    return lambda scope: to_text(value(scope), scope)


# -- operators


@compiles_expression(syntax.Binary)
def _binary(node: syntax.Binary) -> Eval:
    left, right, operator = expression(node.left), expression(node.right), node.operator
    if operator == "and":
        return lambda scope: to_bool(left(scope)) and to_bool(right(scope))
    if operator == "or":
        return lambda scope: to_bool(left(scope)) or to_bool(right(scope))
    if operator == "xor":
        return lambda scope: to_bool(left(scope)) is not to_bool(right(scope))
    operate, place = binary(operator), node.operator_extent
    enumerates = operator[1:] in _ENUMERATING
    unsure = (
        operator in ("is", "isnot") and _asks_for_wrapper(node.right) and not isinstance(node.left, _BARE)
    )

    def run(scope: Scope) -> Value:
        first = left(scope)
        if first is NOTHING and not enumerates:
            first = None
        try:
            if unsure and first is not None and not is_type(first, PS_OBJECT):
                raise Refusal("operator", f"-{operator} [psobject] (whether the value came down a pipeline)")
            return operate(first, right(scope), scope)
        except Refusal as refusal:
            refusal.at(*place.position)
            raise

    return run


# These take their left side apart, and "no output" has no items: the answer is an empty list.
_ENUMERATING = frozenset(
    ("match", "notmatch", "like", "notlike", "replace", "split", "contains", "notcontains")
)

# What these give has never been in the invisible wrapper that a pipeline puts round its objects.
_BARE = (
    syntax.Constant,
    syntax.StringConstant,
    syntax.ExpandableString,
    syntax.Hashtable,
    syntax.ArrayLiteral,
    syntax.ArrayExpression,
    syntax.Binary,
    syntax.Unary,
    syntax.Convert,
    syntax.InvokeMember,
    syntax.ScriptBlockExpression,
    syntax.TypeExpression,
)
_WRAPPER = (
    "psobject",
    "pscustomobject",
    "system.management.automation.psobject",
    "management.automation.psobject",
)


def _asks_for_wrapper(node: syntax.Expression) -> bool:
    return (
        isinstance(node, syntax.TypeExpression) and not node.type.ranks and node.type.name.lower() in _WRAPPER
    )


@compiles_expression(syntax.Unary)
def _unary(node: syntax.Unary) -> Eval:
    if "++" in node.operator or "--" in node.operator:
        return stepping(node)
    child, operator = expression(node.child), node.operator
    if operator == "not":
        return lambda scope: not to_bool(child(scope))
    operate, place = unary(operator), node.extent

    def run(scope: Scope) -> Value:
        try:
            return operate(child(scope), scope)
        except Refusal as refusal:
            refusal.at(*place.position)
            raise

    return run


# -- types and casts


@compiles_expression(syntax.TypeExpression)
def _type(node: syntax.TypeExpression) -> Eval:
    return type_getter(node.type)


@compiles_expression(syntax.Convert)
def _convert(node: syntax.Convert) -> Eval:
    name = node.type.type.full.lower()
    if name == "ordered" and isinstance(node.child, syntax.Hashtable):
        return _hashtable_maker(node.child, OrderedDictionary)
    if name == "ref":
        return _reference(node)
    if name == "pscustomobject" and isinstance(node.child, syntax.Hashtable):
        return _custom_object(node.child)
    child, get = expression(node.child), type_getter(node.type.type)
    if name == "void":

        def discard(scope: Scope) -> Value:
            child(scope)
            return NOTHING

        return discard
    place = node.extent

    def run(scope: Scope) -> Value:
        kind = get(scope)
        value = child(scope)
        try:
            if value is NOTHING:
                return from_nothing(kind)
            if kind is STRING and isinstance(plain(value), list):
                return to_text(value, scope)
            return cast(value, kind)
        except Refusal as refusal:
            refusal.at(*place.position)
            raise

    return run


def _custom_object(node: syntax.Hashtable) -> Eval:
    """`[pscustomobject]@{…}` keeps the order of the literal."""
    from winboot_lab.engine.convert import custom_object

    make = _hashtable_maker(node, OrderedDictionary)
    return lambda scope: custom_object(make(scope))


def _reference(node: syntax.Convert) -> Eval:
    """`[ref]$x`: a way to read and set the variable."""
    from winboot_lab.engine.compiler.assignments import target_of

    child = node.child
    if isinstance(child, syntax.Paren):
        inner = child.pipeline.expression if isinstance(child.pipeline, syntax.Pipeline) else None
        child = inner if inner is not None else child
    if not isinstance(child, (syntax.Variable, syntax.Member, syntax.Index)):
        read_once = expression(node.child)

        def detached(scope: Scope) -> Value:
            held = [read_once(scope)]
            return Reference(lambda: held[0], lambda new: held.__setitem__(0, new))

        return detached
    read, assign = expression(child), target_of(child)
    key = child.name.lower() if isinstance(child, syntax.Variable) else ""

    def run(scope: Scope) -> Value:
        if isinstance(child, syntax.Variable) and child.scope is None and child.drive is None:
            if key == "null":  # takes any value and stays $null
                return Reference(lambda: None, lambda _new: None)
            variable = scope.find(key)
            if variable is None:
                raise RuntimeException(
                    "[ref] cannot be applied to a variable that does not exist.",
                    "NonExistingVariableReference",
                    "InvalidOperation",
                    child.name,
                )
            found = variable
            return Reference(lambda: found.value, found.set)
        return Reference(lambda: read(scope), lambda new: assign(scope, new))

    return run


# -- members and indexes


@compiles_expression(syntax.Member)
def _member(node: syntax.Member) -> Eval:
    name, place = member_name(node.member), node.extent
    target, static = expression(node.target), node.static
    key = None if isinstance(node.member, syntax.StringConstant) else expression(node.member)

    def read_key(scope: Scope) -> Value:
        """`$h.1`, `$h.$k`: in a hashtable the key keeps its type."""
        holder, wanted = target(scope), key(scope) if key is not None else None
        bare = plain(holder)
        if isinstance(bare, _Mapping) and bare.has(wanted):
            return bare.get(wanted)
        try:
            return get_member(holder, to_text(wanted, scope), scope)
        except Refusal as refusal:
            refusal.at(*place.position)
            raise

    if key is not None and not static:
        return read_key

    def read(scope: Scope) -> Value:
        try:
            return get_member(target(scope), name(scope), scope, static=static)
        except Refusal as refusal:
            refusal.at(*place.position)
            raise

    return read


@compiles_expression(syntax.InvokeMember)
def _invoke(node: syntax.InvokeMember) -> Eval:
    arguments = [expression(argument) for argument in node.arguments]
    name, place = member_name(node.member), node.extent
    target, static = expression(node.target), node.static

    def run(scope: Scope) -> Value:
        holder = target(scope)
        member = name(scope)
        given = [argument(scope) for argument in arguments]
        try:
            return invoke_member(holder, member, given, scope, static=static)
        except Refusal as refusal:
            refusal.at(*place.position)
            raise

    return run


@compiles_expression(syntax.Index)
def _index(node: syntax.Index) -> Eval:
    target, index, place = expression(node.target), expression(node.index), node.extent
    as_object = index_as_object(node)

    def run(scope: Scope) -> Value:
        holder = target(scope)
        try:
            if as_object and isinstance(holder, OrderedDictionary):
                raise key_or_place()
            return index_value(holder, index(scope), scope)
        except Refusal as refusal:
            refusal.at(*place.position)
            raise

    return run


# -- literals


@compiles_expression(syntax.ArrayLiteral)
def _array_literal(node: syntax.ArrayLiteral) -> Eval:
    elements = [expression(element) for element in node.elements]
    return lambda scope: Array([element(scope) for element in elements])


@compiles_expression(syntax.ArrayExpression)
def _array_expression(node: syntax.ArrayExpression) -> Eval:
    statements = node.body.statements
    if not statements:
        return lambda _scope: Array()
    pure = _pure_expression(node.body)
    if pure is not None:
        # No statement of its own: what it throws ends the whole expression.
        value = expression(pure)
        return lambda scope: _in_array(value(scope))
    body = body_of(node.body)

    def run(scope: Scope) -> Value:
        items: list[Value] = []
        body(scope, items.append)
        return Array(items)

    return run


def _pure_expression(body: syntax.StatementBlock) -> syntax.Expression | None:
    if body.traps or len(body.statements) != 1:
        return None
    only = body.statements[0]
    return only.expression if isinstance(only, syntax.Pipeline) else None


def _in_array(value: Value) -> Array:
    if value is NOTHING:
        return Array()
    items = enumerate_value(value)
    return Array([value]) if items is None else Array(items)


@compiles_expression(syntax.SubExpression)
def _sub_expression(node: syntax.SubExpression) -> Eval:
    if not node.body.statements:
        return lambda _scope: None
    body = body_of(node.body)

    def run(scope: Scope) -> Value:
        items: list[Value] = []
        body(scope, items.append)
        if not items:
            return NOTHING
        return items[0] if len(items) == 1 else Array(items)

    return run


@compiles_expression(syntax.Paren)
def _paren(node: syntax.Paren) -> Eval:
    if isinstance(node.pipeline, syntax.Assignment):
        from winboot_lab.engine.compiler.assignments import assigned_value

        return assigned_value(node.pipeline)
    return value_of(node.pipeline)


@compiles_expression(syntax.Hashtable)
def _hashtable(node: syntax.Hashtable) -> Eval:
    return _hashtable_maker(node, Hashtable)


def _hashtable_maker(node: syntax.Hashtable, kind: type[Hashtable] | type[OrderedDictionary]) -> Eval:
    pairs = [(expression(key), value_of(value)) for key, value in node.pairs]

    def run(scope: Scope) -> Value:
        made = kind()
        for key, value in pairs:
            name = key(scope)
            if name is None or name is NOTHING:
                raise RuntimeException(
                    "A null key is not allowed in a hash literal.", "InvalidNullKey", "InvalidOperation"
                )
            if made.has(name):
                text = to_text(name, scope)
                raise RuntimeException(
                    f"Duplicate keys '{text}' are not allowed in hash literals.",
                    "DuplicateKeyInHashLiteral",
                    "InvalidOperation",
                    text,
                )
            made.put(name, value(scope))
        return made

    return run


@compiles_expression(syntax.ScriptBlockExpression)
def _script_block(node: syntax.ScriptBlockExpression) -> Eval:
    from winboot_lab.engine.blocks import Code

    code = Code(node.body)
    text = node.extent.text[1:-1]
    return lambda _scope: ScriptBlock(text, node.body, code)


__all__ = ["emit", "enumerate_value", "refusing"]
