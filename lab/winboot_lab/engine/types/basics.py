"""System.Object, Enum, Array, Type: what every value answers."""

from __future__ import annotations

from collections.abc import Callable

from winboot_lab.engine.convert import convert
from winboot_lab.engine.dotnet import (
    ARRAY,
    ENUM,
    OBJECT,
    RUNTIME_TYPE_BASE,
    DotNetType,
    Method,
)
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
)
from winboot_lab.engine.formatting import dotnet_text, format_enum
from winboot_lab.engine.values import (
    Array,
    ByteArray,
    EnumValue,
    Instance,
    PSCustomObject,
    Value,
    enumerate_value,
    key_of,
    plain,
    type_of,
)


class PlainObject(Instance):
    """`[object]::new()`: nothing but identity."""

    dotnet_type = OBJECT


OBJECT.constructor()(PlainObject)
OBJECT.method("ToString()")(dotnet_text)
OBJECT.method("GetType()")(type_of)


@OBJECT.method("Equals(object obj)")
def same_object(self: Value, other: Value) -> bool:
    """.NET's Equals: value types and strings by content (and type), the rest by identity."""
    if isinstance(self, PSCustomObject):
        return False
    return bool(key_of(self) == key_of(plain(other)))


# -- enums


@ENUM.method("ToString()", "ToString(string format)")
def _enum_text(self: EnumValue, spec: str = "") -> str:
    return format_enum(self, spec)


@ENUM.method("HasFlag(Enum flag)")
def _has_flag(self: EnumValue, flag: EnumValue) -> bool:
    return self.number & flag.number == flag.number


# -- arrays
ARRAY.prop("Length", "int", len)
ARRAY.prop("Count", "int", len)


@ARRAY.method("Clone()")
def copy_array(self: Value) -> Value:
    """A shallow copy."""
    return ByteArray(self) if isinstance(self, ByteArray) else Array(self, self.element)


ARRAY.method("Contains(object value)")(
    lambda self, value: any(
        same_object(item, value) for item in enumerate_value(self) or () if item is not None
    )
)
FIXED_SIZE = "Collection was of a fixed size."


def _fixed(name: str) -> None:
    from winboot_lab.engine.exceptions import NotSupportedException

    @ARRAY.method(name)
    def refuse(*_: Value) -> Value:
        raise NotSupportedException(FIXED_SIZE)


for _signature in (
    "Add(object value)",
    "Remove(object value)",
    "RemoveAt(int index)",
    "Insert(int index, object value)",
):
    _fixed(_signature)


def index_of(items: Value, value: Value, start: int = 0, count: int | None = None) -> int:
    """The first position of an equal item, or -1."""
    every = list(enumerate_value(items) or ())
    end = len(every) if count is None else start + count
    key = key_of(value)
    return next((at for at in range(start, end) if key_of(every[at]) == key), -1)


ARRAY.method("IndexOf(object value)")(index_of)


@ARRAY.static_method("IndexOf(Array array, object value)")
def _static_index_of(array: Value, value: Value, start: int = 0, count: int | None = None) -> int:
    if array is None:
        raise ArgumentNullException("array")
    value = _to_element(array, value)
    return index_of(array, value, start, count)


def _to_element(array: Value, value: Value) -> Value:
    return value


@ARRAY.static_method("void Reverse(Array array)")
def _reverse(array: Value, index: int = 0, length: int | None = None) -> None:
    if array is None:
        raise ArgumentNullException("array")
    end = len(array) if length is None else index + length
    array[index:end] = array[index:end][::-1]


@ARRAY.static_method(
    "void Copy(Array sourceArray, int sourceIndex, Array destinationArray, int destinationIndex, int length)"
)
def _copy_range(source: Value, at: int, target: Value, to: int, length: int) -> None:
    if source is None or target is None:
        raise ArgumentNullException("sourceArray" if source is None else "destinationArray")
    if at < 0 or to < 0 or length < 0:
        raise ArgumentOutOfRangeException("length", "Non-negative number required.")
    if at + length > len(source):
        raise ArgumentException(
            "Source array was not long enough. Check srcIndex and length, and the array's lower bounds."
        )
    if to + length > len(target):
        raise ArgumentException(
            "Destination array was not long enough. Check destIndex and length, and the array's lower bounds."
        )
    if isinstance(target, ByteArray):
        target[to : to + length] = bytes(source[at : at + length])
    else:
        target[to : to + length] = [convert(item, target.element) for item in _slice(source, at, length)]


def _slice(source: Value, at: int, length: int) -> list[Value]:
    return list(enumerate_value(source) or ())[at : at + length]


def _by_predicate(name: str, choose: Callable[[list[Value], Callable[[Value], bool]], Value]) -> None:
    pass


_by_predicate("Find", lambda items, test: next((item for item in items if test(item)), None))
_by_predicate("FindAll", lambda items, test: [item for item in items if test(item)])
_by_predicate("FindIndex", lambda items, test: next((at for at, item in enumerate(items) if test(item)), -1))
_by_predicate("FindLast", lambda items, test: next((item for item in reversed(items) if test(item)), None))
_by_predicate("Exists", lambda items, test: any(test(item) for item in items))
_by_predicate("TrueForAll", lambda items, test: all(test(item) for item in items))


ARRAY.statics["resize"] = Method("Resize")


# -- types as objects

_TYPE = RUNTIME_TYPE_BASE


_TYPE.prop("Name", "string", lambda self: self.short_name)


def _full_name(kind: DotNetType) -> str:
    if not kind.arguments:
        return kind.name
    library = ", mscorlib, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089"
    inner = ",".join(f"[{_full_name(argument)}{library}]" for argument in kind.arguments)
    return f"{kind.name.partition('[')[0]}[{inner}]"


_TYPE.prop("FullName", "string", _full_name)


_TYPE.method("ToString()")(lambda self: self.name)
_TYPE.method("Equals(type o)", "Equals(object o)")(lambda self, other: self is other)


class MemberView(Instance):
    """A PropertyInfo or MethodInfo, as far as its name."""

    def __init__(self, name: str, type_name: str) -> None:
        self.name = name
        self.type_name = type_name

    @property
    def dotnet_type(self) -> DotNetType:
        from winboot_lab.engine.values import structured_type

        return structured_type(self.type_name)
