"""Conversions: what a cast makes of a value, and how it fails."""

from __future__ import annotations

import pytest
import winboot_lab.engine.types  # noqa: F401 - declares the types that casts name
from winboot_lab.engine.convert import cast, to_bool, to_string, try_convert
from winboot_lab.engine.exceptions import PSInvalidCastException, RuntimeException
from winboot_lab.engine.typenames import find_type
from winboot_lab.engine.values import (
    Array,
    Byte,
    ByteArray,
    Char,
    Decimal,
    EnumValue,
    Hashtable,
    Int64,
    OrderedDictionary,
    PSCustomObject,
    UInt32,
    enum_value,
    type_of,
)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("int", "5", 5),
        ("int", " 7 ", 7),
        ("int", "", 0),
        ("int", "0x10", 16),
        ("int", "1kb", 1024),
        ("int", "1,000", 1000),
        ("int", 2.5, 2),
        ("int", 3.5, 4),
        ("int", True, 1),
        ("int", Char("A"), 65),
        ("int", None, 0),
        ("long", "0xFFFFFFFF", Int64(-1)),
        ("uint32", "0xFFFFFFFF", UInt32(4294967295)),
        ("byte", "255", Byte(255)),
        ("double", "1,000.5", 1000.5),
        ("decimal", "1.10", Decimal("1.10")),
        ("char", 65, Char("A")),
        ("bool", "False", True),
        ("string", None, ""),
    ],
)
def test_scalars_become_what_powershell_makes_of_them(name: str, value: object, expected: object) -> None:
    made = cast(value, find_type(name))

    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "error_id"),
    [
        ("int", "x", "InvalidCastFromStringToInteger"),
        ("int", "9999999999", "InvalidCastFromStringToInteger"),
        ("int", 1e10, "InvalidCastIConvertible"),
        ("byte", 256, "InvalidCastIConvertible"),
        ("int", Array([5]), "ConvertToFinalInvalidCastException"),
        ("datetime", None, "nullToObjectInvalidCast"),
        ("version", "1", "InvalidCastParseTargetInvocation"),
        ("timespan", "x", "InvalidCastParseTargetInvocationWithFormatProvider"),
        ("DayOfWeek", "Noday", "SubstringDisambiguationEnumParseThrewAnException"),
        ("DayOfWeek", 99, "UndefinedIntegerToEnum"),
        ("scriptblock", "1", "ConvertToFinalInvalidCastException"),
    ],
)
def test_a_failed_cast_carries_powershells_error_id(name: str, value: object, error_id: str) -> None:
    with pytest.raises(RuntimeException) as caught:
        cast(value, find_type(name))

    assert caught.value.id == error_id
    assert isinstance(caught.value.inner, PSInvalidCastException)


def test_arrays_convert_their_elements() -> None:
    made = cast(Array(["1", "2", 3.6]), find_type("int[]"))

    assert list(made) == [1, 2, 4]
    assert type_of(made).name == "System.Int32[]"


def test_a_scalar_becomes_an_array_of_one() -> None:
    assert list(cast("7", find_type("int[]"))) == [7]


def test_bytes_are_kept_compact() -> None:
    assert isinstance(cast(Array([1, 255]), find_type("byte[]")), ByteArray)


def test_a_text_becomes_characters() -> None:
    assert list(cast("ab", find_type("char[]"))) == [Char("a"), Char("b")]


def test_enums_take_unique_beginnings_lists_and_numbers() -> None:
    day = find_type("DayOfWeek")

    assert cast("mon", day) == EnumValue(day, 1)
    assert cast(5, day) == EnumValue(day, 5)
    assert str(cast(Array(["ReadOnly", "Hidden"]), find_type("IO.FileAttributes"))) == "ReadOnly, Hidden"


def test_a_hashtable_becomes_a_custom_object_in_its_order() -> None:
    made = cast(OrderedDictionary.of({"b": 1, "a": 2}), find_type("pscustomobject"))

    assert [name for name, _ in made.items()] == ["b", "a"]


def test_an_array_is_left_alone_by_the_custom_object_cast() -> None:
    items = Array([Hashtable(), Hashtable()])

    assert cast(items, find_type("pscustomobject")) is items


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, False),
        ("", False),
        ("0", True),
        (0.0, False),
        (Array([]), False),
        (Array([0]), False),
        (Array([0, 0]), True),
        (Array([Array([])]), False),
        (Array([Array([0])]), True),
        (Hashtable(), True),
    ],
)
def test_truth_follows_length_and_the_single_element(value: object, expected: bool) -> None:
    assert to_bool(value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.50, "1.5"),
        (1 / 3, "0.333333333333333"),
        (1e20, "1E+20"),
        (0.00001, "1E-05"),
        (Decimal("2.50"), "2.50"),
        (True, "True"),
        (Array([1, None, "x"]), "1  x"),
        (PSCustomObject.of({"a": 1, "b": PSCustomObject.of({"c": 2})}), "@{a=1; b=}"),
        (Hashtable(), "System.Collections.Hashtable"),
    ],
)
def test_text_is_written_as_in_a_string(value: object, expected: str) -> None:
    assert to_string(value) == expected


def test_as_answers_nothing_where_a_cast_would_fail() -> None:
    assert try_convert("x", find_type("int")) == (False, None)
    assert try_convert("5", find_type("int")) == (True, 5)


def test_flags_enums_show_their_parts_smallest_first() -> None:
    assert str(enum_value("System.Security.AccessControl.FileSystemRights", 0x1201BF)) == (
        "Write, ReadAndExecute, Synchronize"
    )
