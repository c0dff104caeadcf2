"""Values cannot leave their quotes."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import (
    ArrayExpression,
    ArrayLiteral,
    Command,
    Constant,
    Convert,
    Expression,
    Hashtable,
    Paren,
    Pipeline,
    Statement,
    StringConstant,
    Unary,
    Variable,
)

from winboot.base.secret import Secret
from winboot.script.literals import literal

TRICKY = st.text(alphabet="'\u2018\u2019\u201a\u201b\"“”„`$(){}@#-–—\n\r\t\0 \\a;|&<>%é😀\u2028")
TEXTS = st.one_of(st.text(), TRICKY)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXTS, inner, max_size=4).filter(lambda d: len({k.lower() for k in d}) == len(d))
    ),
    max_leaves=12,
)


def value_of(node: Expression | Statement) -> object:
    """What the literal's tree stands for, as Python."""
    match node:
        case Pipeline():
            assert node.expression is not None
            return value_of(node.expression)
        case StringConstant() | Constant():
            return node.value
        case Variable():
            return {"null": None, "true": True, "false": False}[node.name]
        case Paren():
            return value_of(node.pipeline)
        case Unary(operator="-"):
            inner = value_of(node.child)
            assert isinstance(inner, int | float)
            return -inner
        case Convert():
            return value_of(node.child)
        case ArrayExpression():
            if not node.body.statements:
                return []
            (statement,) = node.body.statements
            assert isinstance(statement, Pipeline)
            inner_node = statement.expression
            if isinstance(inner_node, ArrayLiteral):
                return [value_of(element) for element in inner_node.elements]
            inner = value_of(statement)
            # One value in @( ): an array would be unrolled here.
            assert not isinstance(inner_node, ArrayExpression)
            return [inner]
        case Hashtable():
            return {value_of(key): value_of(value) for key, value in node.pairs}
    raise AssertionError(f"unexpected {node}")


def read_back(text: str) -> object:
    """The value of a script that is nothing but a literal."""
    tree = parse(text)
    assert tree.end is not None
    (statement,) = tree.end.statements
    return value_of(statement)


def argument_of(text: str) -> object:
    """The value of a literal that stands as the argument of a command."""
    tree = parse(f"Use-Value -This {text} -That 1")
    assert tree.end is not None
    (statement,) = tree.end.statements
    assert isinstance(statement, Pipeline)
    command = statement.elements[0]
    assert isinstance(command, Command)
    assert len(command.elements) == 5
    argument = command.elements[2]
    assert isinstance(argument, Expression)
    return value_of(argument)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "$null"),
        (True, "$true"),
        (False, "$false"),
        (0, "0"),
        (-5, "(-5)"),
        (2**40, "1099511627776"),
        (1.5, "1.5"),
        (-0.25, "(-0.25)"),
        ("", "''"),
        ("it's", "'it''s'"),
        ("it\u2019s", "'it\u2019\u2019s'"),
        ("$(rm)", "'$(rm)'"),
        ([], "@()"),
        (["a"], "@('a')"),
        ([["a", "b"]], "@(, @('a', 'b'))"),
        ((1, [2]), "@(1, @(2))"),
        ({}, "@{}"),
        ({"a b": [1]}, "@{ 'a b' = @(1) }"),
        (OrderedDict(z=1), "([ordered]@{ 'z' = 1 })"),
    ],
)
def test_plain_data_has_one_spelling(value: object, text: str) -> None:
    assert literal(value) == text


def test_a_secret_is_refused() -> None:
    with pytest.raises(TypeError, match="never a part"):
        literal({"token": Secret("abc")})


@pytest.mark.parametrize("value", [object(), {1}, b"bytes", 1j, {1: "x"}, {None: 1}])
def test_what_is_not_plain_data_is_refused_by_name(value: object) -> None:
    with pytest.raises(TypeError):
        literal(value)


@pytest.mark.parametrize("value", [2**63, float("nan"), float("inf"), {"a": 1, "A": 2}, "\ud800"])
def test_what_would_not_come_back_is_refused(value: object) -> None:
    with pytest.raises(ValueError):
        literal(value)


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_any_text_comes_back_unchanged(text: str) -> None:
    assert read_back(literal(text)) == text


@given(PLAIN)
@settings(max_examples=60, deadline=None)
def test_any_plain_data_comes_back_unchanged_as_statement_and_as_argument(value: object) -> None:
    text = literal(value)
    assert read_back(text) == value
    assert argument_of(text) == value


@pytest.mark.nightly
@given(TEXTS)
@settings(max_examples=10_000, deadline=None)
def test_any_text_comes_back_unchanged_ten_thousand_times(text: str) -> None:
    assert read_back(literal(text)) == text


@pytest.mark.nightly
@given(PLAIN)
@settings(max_examples=10_000, deadline=None)
def test_any_plain_data_comes_back_unchanged_ten_thousand_times(value: object) -> None:
    text = literal(value)
    assert read_back(text) == value
    assert argument_of(text) == value
