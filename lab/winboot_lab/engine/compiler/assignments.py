"""Assignments: to variables (typed and validated ones too), members, elements, several at once; and the compound forms."""

from __future__ import annotations

from collections.abc import Callable

from winboot_lab.engine.attributes import variable_rules
from winboot_lab.engine.compiler.core import (
    Eval,
    Run,
    Value,
    compiles_expression,
    compiles_statement,
    expression,
    value_of,
)
from winboot_lab.engine.compiler.types import type_getter
from winboot_lab.engine.compiler.variables import (
    Assign,
    assign_variable,
    local_variable,
    read_variable,
    variable_key,
)
from winboot_lab.engine.dotnet import Reference
from winboot_lab.engine.errors import undefined_variable
from winboot_lab.engine.members import get_member, index_value, set_index, set_member
from winboot_lab.engine.operators import binary, step
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.values import NOTHING, Array, OrderedDictionary, enumerate_value, plain
from winboot_lab.engine.variables import Variable
from winboot_lab.language import syntax


def target_of(node: syntax.Expression) -> Assign:
    """Code that puts a value where the left side of an assignment says."""
    match node:
        case syntax.Variable():
            return assign_variable(node)
        case syntax.Convert() | syntax.Attributed():
            return _typed_target(node)
        case syntax.Member():
            return _member_target(node)
        case syntax.Index():
            return _index_target(node)
        case syntax.ArrayLiteral():
            return _many_targets(node)
        case syntax.Paren():
            inner = node.pipeline.expression if isinstance(node.pipeline, syntax.Pipeline) else None
            if inner is not None:
                return target_of(inner)
    name = type(node).__name__
    position = node.extent.position

    def refuse(_scope: Scope, _value: Value) -> None:
        raise Refusal("construct", f"assignment to {name}", line=position[0], column=position[1])

    return refuse


def _typed_target(node: syntax.Convert | syntax.Attributed) -> Assign:
    """`[int]$x = …`, `[ValidateSet('a')]$x = …`: the rule stays with the variable."""
    rules: list[syntax.Attribute | syntax.TypeConstraint] = []
    inner: syntax.Expression = node
    while isinstance(inner, (syntax.Convert, syntax.Attributed)):
        rules.append(inner.type if isinstance(inner, syntax.Convert) else inner.attribute)
        inner = inner.child
    if not isinstance(inner, syntax.Variable):
        if all(isinstance(rule, syntax.TypeConstraint) for rule in rules):
            return _converted_target(rules, target_of(inner))
        raise Refusal(
            "construct", "an attribute on a member", line=node.extent.line, column=node.extent.column
        )
    variable = inner
    key, name = variable_key(variable), variable.name
    if any(isinstance(rule, syntax.TypeConstraint) and rule.type.full.lower() == "ref" for rule in rules):
        return _reference_target(variable)

    def assign(scope: Scope, value: Value) -> None:
        place = scope if variable.scope is None else scope.named(variable.scope)
        made = place.variables.get(key)
        if made is not None and made.locked:
            made.set(value)
        convert = variable_rules(scope, name, rules, first=True)
        converted = convert(value)
        if made is None:
            made = place.variables[key] = Variable(name)
        made.convert = variable_rules(scope, name, rules, first=False)
        made.value = converted

    return assign


def _reference_target(variable: syntax.Variable) -> Assign:
    """`[ref]$x = 5`: the variable holds a reference to the value."""
    assign = assign_variable(variable)

    def assign_reference(scope: Scope, value: Value) -> None:
        held = [value]
        assign(scope, Reference(lambda: held[0], lambda new: held.__setitem__(0, new)))

    return assign_reference


def _converted_target(rules: list[syntax.Attribute | syntax.TypeConstraint], assign: Assign) -> Assign:
    from winboot_lab.engine.convert import cast, from_nothing

    types = [type_getter(rule.type) for rule in rules]

    def convert_and_assign(scope: Scope, value: Value) -> None:
        for get in reversed(types):
            kind = get(scope)
            value = from_nothing(kind) if value is NOTHING else cast(value, kind)
        assign(scope, value)

    return convert_and_assign


def member_name(node: syntax.Expression) -> Callable[[Scope], str]:
    """The name of a member: fixed, or worked out."""
    if isinstance(node, syntax.StringConstant):
        fixed = node.value
        return lambda _scope: fixed
    name = expression(node)
    return lambda scope: to_text(name(scope), scope)


def _member_target(node: syntax.Member) -> Assign:
    target, name, static, place = expression(node.target), member_name(node.member), node.static, node.extent

    def assign(scope: Scope, value: Value) -> None:
        holder = target(scope)
        try:
            set_member(holder, name(scope), value, scope, static=static)
        except Refusal as refusal:
            refusal.at(*place.position)
            raise

    return assign


def index_as_object(node: syntax.Index) -> bool:
    """Is the index cast to [object]? To an ordered dictionary a number is then a key and not a place."""
    index = node.index
    return isinstance(index, syntax.Convert) and index.type.type.name.lower() in ("object", "system.object")


def key_or_place() -> Refusal:
    """A number that may be a key or a place."""
    return Refusal("operator", "[ ] (an ordered dictionary with an [object] for an index)")


def _index_target(node: syntax.Index) -> Assign:
    target, index, place = expression(node.target), expression(node.index), node.extent
    as_object = index_as_object(node)

    def assign(scope: Scope, value: Value) -> None:
        holder = target(scope)
        try:
            if as_object and isinstance(holder, OrderedDictionary):
                raise key_or_place()
            set_index(holder, index(scope), value, scope)
        except Refusal as refusal:
            refusal.at(*place.position)
            raise

    return assign


def _many_targets(node: syntax.ArrayLiteral) -> Assign:
    """`$a, $b = …`: one each, the last takes what is left."""
    targets = [target_of(element) for element in node.elements]

    def assign(scope: Scope, value: Value) -> None:
        bare = plain(value)
        items = list(bare) if isinstance(bare, list) else None
        if items is None:
            found = enumerate_value(value)
            items = [value] if found is None else list(found)
        last = len(targets) - 1
        for number, target in enumerate(targets):
            if number < last or len(items) <= number + 1:
                target(scope, items[number] if number < len(items) else None)
            else:
                target(scope, Array(items[number:]))

    return assign


# -- the statement


@compiles_statement(syntax.Assignment)
def _assignment(node: syntax.Assignment) -> Run:
    give = assigned_value(node)

    def run(scope: Scope, _out: Emit) -> None:
        give(scope)

    return run


@compiles_expression(syntax.Assignment)
def assigned_value(node: syntax.Assignment) -> Eval:
    """Code that assigns and answers the value now assigned."""
    value = value_of(node.value)
    if isinstance(node.value, syntax.Assignment):
        value = assigned_value(node.value)
    resets = _is_expression(node.value)
    if node.operator == "=":
        assign = target_of(node.target)

        def run(scope: Scope) -> Value:
            given = value(scope)
            assign(scope, given)
            if resets:
                scope.session.question = True
            return given

        return run
    change = _compound(node.target, node.operator[:-1], value)

    def run_compound(scope: Scope) -> Value:
        made = change(scope)
        if resets:
            scope.session.question = True
        return made

    return run_compound


def _is_expression(node: syntax.Statement) -> bool:
    inner = node.expression if isinstance(node, syntax.Pipeline) else None
    # An expression in parentheses keeps its own `$?`.
    return inner is not None and not isinstance(
        inner, (syntax.Paren, syntax.SubExpression, syntax.ArrayExpression)
    )


def _compound(node: syntax.Expression, operator: str, value: Eval) -> Eval:
    operate = binary(operator)
    match node:
        case syntax.Variable():
            read, assign = _compound_read(node), target_of(node)

            def on_variable(scope: Scope) -> Value:
                before = read(scope)
                made = operate(before, value(scope), scope)
                assign(scope, made)
                return made

            return on_variable
        case syntax.Convert() | syntax.Attributed():
            inner: syntax.Expression = node
            while isinstance(inner, (syntax.Convert, syntax.Attributed)):
                inner = inner.child
            read_inner, assign_typed = expression(inner), target_of(node)

            def on_typed(scope: Scope) -> Value:
                made = operate(read_inner(scope), value(scope), scope)
                assign_typed(scope, made)
                return made

            return on_typed
        case syntax.Member():
            return _change_member(node, lambda before, scope: operate(before, value(scope), scope))
        case syntax.Index():
            return _change_index(node, lambda before, scope: operate(before, value(scope), scope))
        case syntax.Paren():
            inner_node = node.pipeline.expression if isinstance(node.pipeline, syntax.Pipeline) else None
            if inner_node is not None:
                return _compound(inner_node, operator, value)
    position = node.extent.position

    def refuse(_scope: Scope) -> Value:
        raise Refusal(
            "construct", f"{operator}= to {type(node).__name__}", line=position[0], column=position[1]
        )

    return refuse


def _compound_read(node: syntax.Variable) -> Eval:
    if node.scope is not None or node.drive is not None:
        return read_variable(node)
    key, path = variable_key(node), node.path

    def read(scope: Scope) -> Value:
        variable = local_variable(scope, key)
        if variable is not None:
            return variable.value
        if scope.strict and scope.find(key) is None:
            raise undefined_variable(path)
        return None

    return read


Change = Callable[[Value, Scope], Value]


def _change_member(node: syntax.Member, change: Change, *, before_too: bool = False) -> Eval:
    target, name, static, place = expression(node.target), member_name(node.member), node.static, node.extent

    def run(scope: Scope) -> Value:
        holder, member = target(scope), name(scope)
        try:
            before = get_member(holder, member, scope, static=static)
            made = change(before, scope)
            set_member(holder, member, made, scope, static=static)
        except Refusal as refusal:
            refusal.at(*place.position)
            raise
        return before if before_too else made

    return run


def _change_index(node: syntax.Index, change: Change, *, before_too: bool = False) -> Eval:
    target, index = expression(node.target), expression(node.index)

    def run(scope: Scope) -> Value:
        holder, key = target(scope), index(scope)
        before = index_value(holder, key, scope)
        made = change(before, scope)
        set_index(holder, key, made, scope)
        return before if before_too else made

    return run


def stepping(node: syntax.Unary) -> Eval:
    """`$i++`, `--$i` and their kin."""
    by, after = (1 if "++" in node.operator else -1), node.operator.startswith("post")

    def change(before: Value, _scope: Scope) -> Value:
        return step(before, by)

    match node.child:
        case syntax.Variable():
            read, assign = read_variable(node.child), target_of(node.child)

            def on_variable(scope: Scope) -> Value:
                before = read(scope)
                made = step(before, by)
                assign(scope, made)
                if after:
                    return 0 if before is None else before
                return made

            return on_variable
        case syntax.Member():
            return _change_member(node.child, change, before_too=after)
        case syntax.Index():
            return _change_index(node.child, change, before_too=after)
        case syntax.Paren():
            inner = node.child.pipeline
            if isinstance(inner, syntax.Pipeline) and inner.expression is not None:
                return stepping(syntax.Unary(node.extent, node.operator, inner.expression))
    position, value = node.extent.position, expression(node.child)

    def refuse(scope: Scope) -> Value:
        value(scope)
        raise Refusal("construct", node.operator, line=position[0], column=position[1])

    return refuse
