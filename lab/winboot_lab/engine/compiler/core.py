"""The shape of compiled code, and the table that says how each kind of node is compiled.

A script is turned into Python closures once and run many times. An expression becomes `Eval`: given the scope, it answers a
value. A statement becomes `Run`: given the scope and where its output goes, it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Emit
from winboot_lab.engine.values import NOTHING, Array, enumerate_value
from winboot_lab.language import syntax
from winboot_lab.language.syntax import Node

Value = Any
Eval = Callable[[Scope], Value]
Run = Callable[[Scope, Emit], None]

_N = TypeVar("_N", bound=Node)
_EXPRESSIONS: dict[type[Node], Callable[[Any], Eval]] = {}
_STATEMENTS: dict[type[Node], Callable[[Any], Run]] = {}


def compiles_expression(kind: type[_N]) -> Callable[[Callable[[_N], Eval]], Callable[[_N], Eval]]:
    """Declare how a kind of expression is compiled."""

    def declare(function: Callable[[_N], Eval]) -> Callable[[_N], Eval]:
        _EXPRESSIONS[kind] = function
        return function

    return declare


def compiles_statement(kind: type[_N]) -> Callable[[Callable[[_N], Run]], Callable[[_N], Run]]:
    """Declare how a kind of statement is compiled."""

    def declare(function: Callable[[_N], Run]) -> Callable[[_N], Run]:
        _STATEMENTS[kind] = function
        return function

    return declare


def expression(node: Node) -> Eval:
    """Compile an expression."""
    how = _EXPRESSIONS.get(type(node))
    if how is None:
        return refusing(node)
    return how(node)


def statement(node: Node) -> Run:
    """Compile a statement; an expression in a statement's place counts as one."""
    how = _STATEMENTS.get(type(node))
    if how is None:
        refuse = refusing(node)
        return lambda scope, _out: refuse(scope)
    return how(node)


def refusing(node: Node, what: str = "") -> Eval:
    """Code that refuses when it is reached: a script may hold what it never runs."""
    line, column = node.extent.position
    name = what or type(node).__name__

    def run(_scope: Scope) -> Value:
        raise Refusal("construct", name, line=line, column=column)

    return run


def value_of(node: syntax.Statement) -> Eval:
    """What a statement is worth where a value is wanted: its expression's value, or its output collected."""
    if isinstance(node, syntax.Pipeline):
        inner = node.expression
        if inner is not None:
            return expression(inner)
    if isinstance(node, syntax.Assignment):
        return expression(node)
    if isinstance(node, syntax.CommandExpression) and not node.redirections:
        return expression(node.expression)
    run = statement(node)

    def collect(scope: Scope) -> Value:
        items: list[Value] = []
        run(scope, items.append)
        return unwrap(items)

    return collect


def unwrap(items: list[Value]) -> Value:
    """Collected output as one value: nothing, the only object, or an array."""
    if not items:
        return NOTHING
    return items[0] if len(items) == 1 else Array(items)


def emit(out: Emit, value: Value) -> None:
    """Write a value to the output, taken apart as the pipeline does."""
    items = enumerate_value(value)
    if items is None:
        out(value)
    else:
        for item in items:
            if item is not NOTHING:  # an element without a value: a pipe takes no "no output"
                out(item)
