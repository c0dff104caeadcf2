"""Members: properties, methods, overloads, indexes, and what is refused."""

from __future__ import annotations

import contextlib
import random

import pytest
import winboot_lab.engine.types  # noqa: F401 - declares the members
from winboot_lab.engine import dotnet
from winboot_lab.engine.exceptions import (
    DotNetException,
    MethodException,
    RuntimeException,
)
from winboot_lab.engine.members import (
    get_member,
    index_value,
    invoke_member,
    new_object,
    set_index,
    set_member,
)
from winboot_lab.engine.moments import DateTime, TimeSpan
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.typenames import find_type
from winboot_lab.engine.values import (
    NOTHING,
    STRING,
    Array,
    ArrayList,
    Byte,
    ByteArray,
    Char,
    Decimal,
    GenericList,
    Hashtable,
    Int64,
    OrderedDictionary,
    PSCustomObject,
    Reference,
    ScriptBlock,
    Value,
    Version,
    type_of,
)

from lab_engine.runtime import BareRuntime

RUNTIME = BareRuntime()
STRICT = BareRuntime(strict=2)


def call(target: Value, name: str, *arguments: Value) -> Value:
    return invoke_member(target, name, list(arguments), RUNTIME)


def static(type_name: str, name: str, *arguments: Value) -> Value:
    return invoke_member(find_type(type_name), name, list(arguments), RUNTIME, static=True)


def test_a_missing_property_is_null_and_an_error_under_strict_mode() -> None:
    item = PSCustomObject.of({"a": 1})

    assert get_member(item, "zz", RUNTIME) is None
    with pytest.raises(RuntimeException) as caught:
        get_member(item, "zz", STRICT)
    assert caught.value.id == "PropertyNotFoundStrict"


def test_a_key_hides_the_property_of_its_name_but_not_from_psbase() -> None:
    table = Hashtable.of({"Count": 5, "a": 1})

    assert get_member(table, "count", RUNTIME) == 5
    assert get_member(get_member(table, "psbase", RUNTIME), "Count", RUNTIME) == 2


def test_members_of_a_list_are_asked_of_its_items() -> None:
    items = Array([PSCustomObject.of({"n": 1}), PSCustomObject.of({"n": 2})])

    assert list(get_member(items, "n", RUNTIME)) == [1, 2]
    assert list(call(Array(["a", "b"]), "ToUpper")) == ["A", "B"]


def test_an_undeclared_member_is_refused() -> None:
    with pytest.raises(Refusal, match="ToOADate"):
        call(DateTime(0), "ToOADate")


@pytest.mark.parametrize(
    ("type_name", "name", "arguments", "expected"),
    [
        ("math", "Max", (1, 2.5), 2),
        ("math", "Max", ("3", 10), 10),
        ("math", "Abs", ("-4",), 4.0),
        ("math", "Floor", (5,), Decimal(5)),
        ("math", "Round", (2.5,), 2.0),
        ("string", "Join", (",", Array([1, 2])), "1,2"),
        ("string", "Join", (",", "a", "b", "c"), "a,b,c"),
    ],
)
def test_the_first_argument_weighs_most_in_the_choice(
    type_name: str, name: str, arguments: tuple[Value, ...], expected: Value
) -> None:
    made = static(type_name, name, *arguments)

    assert made == expected
    assert type(made) is type(expected)


def test_an_argument_that_does_not_convert_is_named() -> None:
    with pytest.raises(MethodException, match='Cannot convert argument "startIndex"') as caught:
        call("abc", "Substring", "x")
    assert caught.value.id == "MethodArgumentConversionInvalidCastArgument"


def test_a_method_without_result_gives_nothing_at_all() -> None:
    assert call(ArrayList([1]), "Clear") is NOTHING


def test_out_parameters_fill_their_variable() -> None:
    box: list[Value] = [None]
    reference = Reference(lambda: box[0], lambda value: box.__setitem__(0, value))

    assert static("int", "TryParse", "42", reference) is True
    assert box == [42]


def test_a_typed_list_converts_what_is_added() -> None:
    numbers = new_object(find_type("Collections.Generic.List[int]"), [], RUNTIME)
    call(numbers, "Add", "5")

    assert list(numbers) == [5]


def test_setting_a_property_that_is_not_there_fails_by_kind_of_object() -> None:
    with pytest.raises(DotNetException) as custom:
        set_member(PSCustomObject(), "b", 1, RUNTIME)
    with pytest.raises(DotNetException) as null:
        set_member(None, "b", 1, RUNTIME)

    assert getattr(custom.value, "id", "") == "ExceptionWhenSetting"
    assert getattr(null.value, "id", "") == "PropertyNotFound"


def test_a_length_is_read_only() -> None:
    with pytest.raises(RuntimeException, match=r"'Length' is a ReadOnly property\."):
        set_member("abc", "Length", 5, RUNTIME)


def test_indexes_count_from_the_end_and_beyond_it_is_null() -> None:
    items = Array([1, 2, 3])

    assert index_value(items, -1, RUNTIME) == 3
    assert index_value(items, 9, RUNTIME) is None
    assert list(index_value(items, Array([0, 2]), RUNTIME)) == [1, 3]


def test_bytes_and_characters_come_out_boxed() -> None:
    assert type(index_value(ByteArray(b"\x05"), 0, RUNTIME)) is Byte
    assert type(index_value("abc", 1, RUNTIME)) is Char


def test_an_ordered_dictionary_takes_positions_and_keys() -> None:
    table = OrderedDictionary.of({"z": "first", "a": "second"})

    assert index_value(table, 1, RUNTIME) == "second"
    assert index_value(table, "z", RUNTIME) == "first"


def test_a_typed_array_refuses_what_does_not_convert() -> None:
    with pytest.raises(RuntimeException):
        set_index(Array([1], find_type("int")), 0, "x", RUNTIME)


def test_texts_count_utf16_units() -> None:
    assert get_member("\U0001f600", "Length", RUNTIME) == 2


def test_a_dictionary_that_changes_under_its_enumeration_complains() -> None:
    table = Hashtable.of({"a": 1, "b": 2})
    keys = iter(get_member(table, "Keys", RUNTIME))
    next(keys)
    table.put("a", 0)

    with pytest.raises(DotNetException, match="Collection was modified"):
        next(keys)


def test_no_member_crashes_whatever_it_is_given() -> None:
    """Each call ends in a value, a .NET exception or a refusal: never in a Python error."""
    chance = random.Random(5)
    pool: list[Value] = [
        None,
        "",
        "a,b",
        "5",
        "C:\\x\\y.txt",
        "[",
        0,
        -1,
        2147483647,
        Int64(-(2**63)),
        1.5,
        float("nan"),
        True,
        Char("a"),
        Array([1, "x"]),
        ByteArray(b"\x01\xff"),
        Hashtable.of({"a": 1}),
        PSCustomObject.of({"a": 1}),
        DateTime(638_000_000_000_000_000),
        TimeSpan(-5),
        Version(1, 2),
        GenericList(["a"], STRING),
        find_type("int"),
        ScriptBlock("1"),
    ]
    evaluator_needed = ("Invoke", "GetNewClosure")
    for kind in {id(one): one for one in dotnet._BY_NAME.values()}.values():
        for member in list(kind.statics.values()):
            if not isinstance(member, dotnet.Method) or member.name == "Sleep":
                continue
            for overload in member.overloads:
                for _ in range(3):
                    given = [chance.choice(pool) for _ in overload.slots]
                    _attempt(kind, member.name, given, static=True)
    for value in pool[1:]:
        for member in list(type_of(value).all_members()):
            if isinstance(member, dotnet.Method) and member.name not in evaluator_needed:
                for overload in member.overloads:
                    given = [chance.choice(pool) for _ in overload.slots]
                    _attempt(value, member.name, given, static=False)


def _attempt(target: Value, name: str, arguments: list[Value], *, static: bool) -> None:
    with contextlib.suppress(DotNetException, Refusal):
        invoke_member(target, name, arguments, RUNTIME, static=static)
