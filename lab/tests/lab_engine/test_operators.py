"""Operators: the left operand decides."""

from __future__ import annotations

import math

import pytest
import winboot_lab.engine.types  # noqa: F401 - declares the types that operators name
from winboot_lab.engine.exceptions import RuntimeException
from winboot_lab.engine.moments import DateTime, TimeSpan
from winboot_lab.engine.operators import binary, step, unary
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    Array,
    Byte,
    Char,
    Decimal,
    Hashtable,
    Int64,
    OrderedDictionary,
    PSCustomObject,
    UInt32,
    UInt64,
    Value,
    Version,
    enum_value,
    type_of,
)

from lab_engine.runtime import BareRuntime


def operate(left: Value, operator: str, right: Value) -> Value:
    return binary(operator)(left, right, None)


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        (2147483647, "+", 1, 2147483648.0),
        (Int64(2**63 - 1), "+", 1, float(2**63)),
        (Byte(200), "+", Byte(100), 300),
        (UInt32(2**32 - 1), "+", UInt32(1), 4294967296.0),
        (UInt64(1), "+", 1, UInt64(2)),
        (1, "+", "2.5", 3.5),
        ("1", "+", 2, "12"),
        (Char("a"), "+", 1, "a1"),
        (1, "+", Char("A"), 66),
        (True, "+", 1, 2),
        (7, "/", 2, 3.5),
        (6, "/", 2, 3),
        (-7, "%", 3, -1),
        (7.5, "%", 2, 1.5),
        (Decimal(1), "/", 4, Decimal("0.25")),
        ("ab", "*", 3, "ababab"),
        (None, "+", 5, 5),
        ("5", "-", "2", 3),
        (Byte(192), "shl", 24, Byte(0)),
        (1, "shl", 32, 1),
        (-8, "shr", 1, -4),
        ("7", "band", 3, 3),
        (7.6, "band", 15, UInt64(8)),
        (-1, "band", 255, 255),
    ],
)
def test_numbers_keep_the_type_that_powershell_gives_them(
    left: Value, operator: str, right: Value, expected: Value
) -> None:
    made = operate(left, operator, right)

    assert made == expected
    assert type(made) is type(expected)


def test_division_by_zero_is_caught_by_its_inner_type() -> None:
    with pytest.raises(RuntimeException) as caught:
        operate(1, "/", 0)

    assert type_of(caught.value.inner).name == "System.DivideByZeroException"


def test_doubles_divide_by_zero_without_an_error() -> None:
    assert operate(1.0, "/", 0) == math.inf


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        (1, "ieq", "1.0", True),
        ("1.0", "ieq", 1, False),
        (1, "ieq", "abc", False),
        ("a", "ieq", "A", True),
        ("a", "ceq", "A", False),
        (None, "ieq", None, True),
        (None, "ieq", 0, False),
        (None, "ilt", 0, True),
        (None, "ilt", -1, False),
        ("10", "ilt", 9, True),
        (True, "ieq", "False", True),
        (1, "ieq", Array([1]), False),
        (enum_value("System.DayOfWeek", "Monday"), "ieq", "monday", True),
        (Version(1, 10), "igt", "1.9", True),
        ("a1", "ilike", "a[0-9]", True),
        ("b", "ilike", "[!a]", False),
        (2, "iin", Array([1, 2]), True),
        (Array(["a"]), "icontains", "A", True),
        (Array([Array([1])]), "icontains", 1, False),
    ],
)
def test_comparisons_convert_the_right_operand(
    left: Value, operator: str, right: Value, expected: bool
) -> None:
    assert operate(left, operator, right) is expected


def test_a_list_on_the_left_is_filtered() -> None:
    assert list(operate(Array([1, 5, 9]), "igt", 4)) == [5, 9]


def test_a_comparison_that_cannot_convert_is_an_error() -> None:
    with pytest.raises(RuntimeException) as caught:
        operate(1, "ilt", "abc")

    assert caught.value.id == "InvalidCastFromStringToInteger"


def test_a_match_sets_matches_and_a_failed_one_keeps_them() -> None:
    runtime = BareRuntime()

    assert binary("imatch")("user=bob", "user=(?<name>\\w+)", runtime) is True
    assert binary("imatch")("zzz", "user=", runtime) is False
    assert runtime.get("matches").get("name") == "bob"


def test_groups_without_a_part_in_the_match_are_no_keys() -> None:
    runtime = BareRuntime()
    binary("imatch")("ab", "(a)(x)?(b)", runtime)

    assert not runtime.get("matches").has(2)


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("2020-01", Array(["(\\d+)-(\\d+)", "$2/$1"]), "01/2020"),
        ("abc", Array(["b", "$$"]), "a$c"),
        ("abc", Array(["b", "$1"]), "a$1c"),
        ("abc", "b", "ac"),
    ],
)
def test_replacements_know_dollar_forms(text: str, arguments: Value, expected: str) -> None:
    assert operate(text, "ireplace", arguments) == expected


def test_split_keeps_what_parentheses_capture() -> None:
    assert list(operate("a1b2c", "isplit", "(\\d)")) == ["a", "1", "b", "2", "c"]


def test_split_stops_at_the_wanted_number_of_pieces() -> None:
    assert list(operate("k=v=w", "isplit", Array(["=", 2]))) == ["k", "v=w"]


def test_join_does_not_open_what_is_nested() -> None:
    assert operate(Array([1, Array([2]), PSCustomObject.of({"a": 1})]), "join", ";") == "1;System.Object[];"


def test_the_format_operator_spreads_arrays() -> None:
    assert operate("{1}-{0:D3}", "f", Array([7, "x"])) == "x-007"


def test_adding_hashtables_keeps_the_left_kind() -> None:
    made = operate(OrderedDictionary.of({"a": 1}), "+", Hashtable.of({"b": 2}))

    assert type(made) is OrderedDictionary
    assert made.keys() == ["a", "b"]


def test_dates_and_spans_add_up() -> None:
    day = DateTime.at(2024, 1, 2)

    assert operate(day, "+", TimeSpan(10)) == day.moved(10)
    assert operate(day, "-", DateTime.at(2024, 1, 1)).total_seconds == 86_400


def test_plus_plus_needs_a_number() -> None:
    with pytest.raises(RuntimeException) as caught:
        step("5", 1)

    assert caught.value.id == "OperatorRequiresNumber"


def test_ranges_go_both_ways() -> None:
    assert list(operate(0, "..", -1)) == [0, -1]


def test_a_minus_reads_text_as_a_number() -> None:
    assert unary("-")("0x10", None) == -16


@pytest.mark.parametrize("letter", ["\0", "\u00ad", "\u200b", "\ufeff"])
@pytest.mark.parametrize("operator", ["ieq", "ceq"])
def test_a_character_without_width_counts_for_nothing_in_equality(letter, operator):
    assert operate("a" + letter, operator, "a") is True
    assert operate("a", operator, letter + "a" + letter) is True
    assert operate("a" + letter, operator, "b") is False
    assert operate(Array(["x", "a" + letter]), operator, "a") == Array(["a" + letter])


def test_other_characters_without_width_are_refused_without_a_recording_of_windows():
    with pytest.raises(Refusal, match="characters without width"):
        operate("a\u200d", "ceq", "a")
    assert operate("a\u200d", "ceq", "b") is False


def test_line_ends_and_blanks_count():
    assert operate("a\r\n", "ceq", "a\n") is False
    assert operate("a ", "ceq", "a") is False
