"""PowerShell's conversions: what a cast, a typed parameter or a .NET argument makes of a value.

    convert(value, type)      the conversion itself; raises PSInvalidCastException
    cast(value, type)         as the cast operator: the same failure inside a RuntimeException
    to_bool, to_string        truth and text, the two conversions that the language does everywhere
    try_convert               for `-as`: answers (worked, value)

Further target types are taught with `@converts(TYPE)`: a function that gives the value or NOT_CONVERTED.

More than 800 lines: a conversion calls the others, for each element and each field.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from winboot_lab.engine import parsing
from winboot_lab.engine.dotnet import ARRAY, OBJECT, RUNTIME_TYPE, RUNTIME_TYPE_BASE, DotNetType, class_type
from winboot_lab.engine.exceptions import (
    DotNetException,
    FormatException,
    OverflowException,
    PSInvalidCastException,
    RuntimeException,
)
from winboot_lab.engine.formatting import dotnet_text, number_text
from winboot_lab.engine.moments import (
    DATE_TIME,
    DATE_TIME_OFFSET,
    TIME_SPAN,
    UTC,
    ZONE,
    DateTime,
    DateTimeOffset,
    TimeSpan,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.typenames import try_find_type, type_text
from winboot_lab.engine.values import (
    BOOLEAN,
    BYTE,
    CHAR,
    DECIMAL,
    DOUBLE,
    GUID,
    HASHTABLE,
    INT16,
    INT32,
    INT64,
    INTEGER_RANGES,
    IP_ADDRESS,
    NOTHING,
    NUMBER_CLASSES,
    ORDERED_DICTIONARY,
    PS_CUSTOM,
    PS_OBJECT,
    SBYTE,
    SCRIPT_BLOCK,
    SINGLE,
    STRING,
    SWITCH_PARAMETER,
    UINT16,
    UINT32,
    UINT64,
    URI,
    VERSION,
    VOID,
    Array,
    ArrayList,
    Byte,
    ByteArray,
    Char,
    Decorated,
    EnumValue,
    GenericList,
    Hashtable,
    Int16,
    Int64,
    IPAddress,
    NoteProperty,
    OrderedDictionary,
    PSCustomObject,
    SByte,
    Single,
    SwitchParameter,
    UInt16,
    UInt32,
    UInt64,
    Uri,
    Value,
    _Mapping,
    enumerate_value,
    plain,
    type_of,
)


class NotConverted:
    """What a converter answers when it has no rule for a value."""


NOT_CONVERTED = NotConverted()
Converter = Callable[[Value], Value]
CONVERTERS: dict[DotNetType, Converter] = {}
BY_DEFINITION: dict[DotNetType, Callable[[Value, DotNetType], Value]] = {}
"""Converters for generic types, by definition: they get the closed type as well."""


def converts(*targets: DotNetType) -> Callable[[Converter], Converter]:
    """Register the decorated function as the converter to these types."""

    def add(function: Converter) -> Converter:
        for target in targets:
            CONVERTERS[target] = function
        return function

    return add


object_maker: Callable[[DotNetType, Value], Value] | None = None
"""Makes an object of a type from a constructor argument or a hashtable of properties; set by members.py."""


# -- truth and text


def to_bool(value: Value) -> bool:
    """Is the value true? Strings by length, numbers by zero, lists by their single element or their length."""
    kind = type(value)
    if kind is bool:
        return value  # type: ignore[no-any-return]
    if value is None or value is NOTHING:
        return False
    if kind is str:
        return len(value) > 0
    if kind in NUMBER_CLASSES:
        return bool(value != 0)
    if kind is Char:
        return bool(value != "\0")
    if kind is Decorated:
        return to_bool(value.base)
    if isinstance(value, (Array, ArrayList, GenericList)):
        return _list_truth(value)
    if kind is ByteArray:
        return len(value) > 1 or (len(value) == 1 and value[0] != 0)
    if kind is SwitchParameter:
        return bool(value.present)
    if kind is EnumValue:
        return bool(value.number != 0)
    return True


def _list_truth(items: Sequence[Value]) -> bool:
    if len(items) != 1:
        return len(items) > 1
    only = items[0]
    if isinstance(only, (Array, ArrayList, GenericList, ByteArray)):
        return len(only) > 0
    return to_bool(only)


def to_string(value: Value, separator: str = " ") -> str:
    """The value as PowerShell writes it into a string; `separator` is $OFS, between the items of a list."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if value is None or value is NOTHING:
        return ""
    if kind in NUMBER_CLASSES:
        return number_text(value)
    if kind is bool:
        return "True" if value else "False"
    maker = _STRINGS.get(kind)
    if maker is not None:
        return maker(value)
    items = enumerate_value(value)
    if items is not None:
        return separator.join(element_text(item) for item in items)
    return dotnet_text(value)


def element_text(value: Value) -> str:
    """An item inside a joined list or custom object: nested lists and objects are not opened."""
    if type(value) is DotNetType:
        return type_text(value)
    return dotnet_text(value)


def custom_text(value: PSCustomObject) -> str:
    """`@{a=1; b=x}`."""
    notes = [f"{name}={element_text(item)}" for name, item in value.items()]
    return "@{" + "; ".join(notes) + "}" if notes else ""


_STRINGS: dict[type, Callable[[Any], str]] = {
    PSCustomObject: custom_text,
    DotNetType: type_text,
    Char: str,
    Decorated: lambda value: to_string(value.base),
}


# -- failures


def _text_for_message(value: Value) -> str:
    return to_string(value) if type(value) is PSCustomObject else dotnet_text(value)


def failure(value: Value, target: DotNetType, id: str, inner: DotNetException) -> PSInvalidCastException:
    """`Cannot convert value "x" to type "T". Error: "..."`."""
    return PSInvalidCastException(
        f'Cannot convert value "{_text_for_message(value)}" to type "{target.name}". Error: "{inner.message}"',
        id,
        inner,
    )


def final_failure(value: Value, target: DotNetType) -> PSInvalidCastException:
    """No conversion exists."""
    if value is None:
        if target.kind == "enum":
            return PSInvalidCastException(
                f'Cannot convert null to type "{target.name}" due to enumeration values that are not valid. '
                "Specify one of the following enumeration values and try again. The possible enumeration values are "
                f'"{",".join(target.constants)}".',
                "nullToEnumInvalidCast",
            )
        return PSInvalidCastException(
            f'Cannot convert null to type "{target.name}".', "nullToObjectInvalidCast"
        )
    return PSInvalidCastException(
        f'Cannot convert the "{_text_for_message(value)}" value of type "{type_of(value).name}" to type "{target.name}".',
        "ConvertToFinalInvalidCastException",
    )


# -- the conversion


def convert(value: Value, target: DotNetType) -> Value:
    """The value as that type. Raises PSInvalidCastException."""
    found = class_type(type(value))
    if found is target:
        return value
    if value is NOTHING:
        value = None
    if target is OBJECT or target is PS_OBJECT or target is PS_CUSTOM:
        return value
    if value is None:
        return _from_null(target)
    if type(value) is Decorated:
        return convert(value.base, target)
    source = found if found is not None else type_of(value)
    if source is target or source.is_a(target):
        return value
    return _convert_across(value, target)


def _convert_across(value: Value, target: DotNetType) -> Value:
    converter = CONVERTERS.get(target)
    if converter is not None:
        result = converter(value)
    elif target.kind == "array":
        result = _to_array(value, target)
    elif target.kind == "enum":
        result = to_enum(value, target)
    elif target.definition is not None and target.definition in BY_DEFINITION:
        result = BY_DEFINITION[target.definition](value, target)
    else:
        result = NOT_CONVERTED
    if result is NOT_CONVERTED and object_maker is not None:
        result = object_maker(target, value)
    if result is NOT_CONVERTED:
        if converter is None and target.kind in ("class", "value"):
            raise Refusal("type", target.name, f"made of a {type_of(value).name}")
        raise final_failure(value, target)
    return result


def cast(value: Value, target: DotNetType) -> Value:
    """The cast operator: as `convert`, but [pscustomobject] makes objects, and failures are RuntimeExceptions."""
    if target is PS_CUSTOM:
        bare = plain(value)
        return custom_object(bare) if isinstance(bare, (Hashtable, OrderedDictionary)) else value
    try:
        return convert(value, target)
    except PSInvalidCastException as cause:
        raise RuntimeException(cause.message, cause.id, "InvalidArgument", None, cause) from None


def from_nothing(target: DotNetType) -> Value:
    """What a cast makes of "no output" (AutomationNull): default(T), so text becomes null where $null becomes ''.

    PSConvertBinder.FallbackConvert (Binders.cs, 5.1 and 7): `Expression.Default(this.Type)`. Only [object] keeps it.
    """
    if target is OBJECT:
        return NOTHING
    if not target.is_value_type or target.name.startswith("System.Nullable`1"):
        return None
    if target in _NULL_NUMBERS or target in (BOOLEAN, CHAR, SWITCH_PARAMETER):
        assert target.default is not None
        return target.default()
    raise Refusal("operator", f"[{target.name}]", "a cast of a command without output")


def try_convert(value: Value, target: DotNetType) -> tuple[bool, Value]:
    """(True, value) when the conversion works, else (False, None)."""
    try:
        return True, cast(value, target)
    except RuntimeException:
        return False, None


def custom_object(source: _Mapping) -> PSCustomObject:
    """[pscustomobject]@{...}: one note property for each entry; PSTypeName becomes the type name."""
    made = PSCustomObject()
    for key, value in source.items():
        name = to_string(key)
        if name.lower() == "pstypename":
            made.extension.type_names = [
                to_string(value),
                "System.Management.Automation.PSCustomObject",
                "System.Object",
            ]
            continue
        if name.lower() in ("psobject", "psbase", "psadapted", "psextended", "pstypenames"):
            raise _reserved(source, name)
        if not name:
            raise _empty_name(source)
        made.extension.members[name.lower()] = NoteProperty(name, value)
    return made


_CUSTOM_NAME = "System.Management.Automation.LanguagePrimitives+InternalPSCustomObject"


def _reserved(source: Value, name: str) -> RuntimeException:
    return RuntimeException(
        f'Cannot convert value "{dotnet_text(source)}" to type "{_CUSTOM_NAME}". Error: "The member name '
        f'"{name}" is reserved."',
        "InvalidCastConstructorException",
        "InvalidArgument",
    )


def _empty_name(source: Value) -> RuntimeException:
    return RuntimeException(
        f'Cannot convert value "{dotnet_text(source)}" to type "{_CUSTOM_NAME}". Error: "Cannot process argument '
        'because the value of argument "name" is not valid. Change the value of the "name" argument and run the '
        'operation again."',
        "InvalidCastConstructorException",
        "InvalidArgument",
    )


def _from_null(target: DotNetType) -> Value:
    if target is STRING:
        return ""
    if target is BOOLEAN:
        return False
    if target in _NULL_NUMBERS or target is CHAR or target is SWITCH_PARAMETER:
        assert target.default is not None
        return target.default()
    if target.is_value_type and not target.name.startswith("System.Nullable`1"):
        raise final_failure(None, target)
    return None


_NULL_NUMBERS = frozenset((*INTEGER_RANGES, DOUBLE, SINGLE, DECIMAL))


# -- numbers

INTEGER_CLASSES: dict[DotNetType, type] = {
    INT32: int,
    INT64: Int64,
    INT16: Int16,
    SBYTE: SByte,
    BYTE: Byte,
    UINT16: UInt16,
    UINT32: UInt32,
    UINT64: UInt64,
}


def _integer_converter(target: DotNetType) -> Converter:
    make = INTEGER_CLASSES[target]
    low, high = INTEGER_RANGES[target]

    def convert_integer(value: Value) -> Value:
        kind = type(value)
        if kind is str:
            return _integer_from_text(value, target)
        if kind is float or kind is Single or kind is Decimal:
            number = _rounded(value, target)
        elif kind in NUMBER_CLASSES or kind is bool:
            number = int(value)
        elif kind is Char:
            number = ord(value)
        elif kind is EnumValue:
            number = value.number
        elif kind is SwitchParameter:
            raise final_failure(value, target)
        elif kind is DateTime:
            raise failure(
                value,
                target,
                "InvalidCastIConvertible",
                FormatException(f"Invalid cast from 'DateTime' to '{target.short_name}'."),
            )
        else:
            return NOT_CONVERTED
        if not low <= number <= high:
            raise failure(
                value, target, "InvalidCastIConvertible", OverflowException(parsing.too_large(target))
            )
        return make(number)

    return convert_integer


def _rounded(value: float | Decimal, target: DotNetType) -> int:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise failure(value, target, "InvalidCastIConvertible", OverflowException(parsing.too_large(target)))
    return round(value)


def _integer_from_text(text: str, target: DotNetType) -> Value:
    make = INTEGER_CLASSES[target]
    low, high = INTEGER_RANGES[target]
    bare = text.strip()
    if not bare:
        return make(0)
    number = parsing.scan_number(bare)
    if number is None:
        try:
            number = parsing.parse_double(bare)
        except DotNetException as cause:
            raise failure(
                text, target, "InvalidCastFromStringToInteger", FormatException(parsing.BAD_NUMBER)
            ) from cause
    if type(number) in (float, Decimal):
        number = _rounded(number, target)
    number = int(number)
    if number < low and bare.lower().startswith("0x"):
        number += high + 1 if low else high - low + 1
    if not low <= number <= high:
        raise failure(
            text,
            target,
            "InvalidCastFromStringToInteger",
            OverflowException(parsing.too_large(target)),
        )
    return make(number)


for _target in INTEGER_CLASSES:
    CONVERTERS[_target] = _integer_converter(_target)


def _to_float(value: Value, target: DotNetType) -> Value:
    kind = type(value)
    if kind is str:
        return _float_from_text(value, target)
    if kind in NUMBER_CLASSES or kind is bool:
        return float(value)
    if kind is EnumValue:
        return float(value.number)
    if kind is Char:
        raise failure(
            value,
            target,
            "InvalidCastIConvertible",
            FormatException(f"Invalid cast from 'Char' to '{target.short_name}'."),
        )
    return NOT_CONVERTED


def _float_from_text(text: str, target: DotNetType) -> float:
    bare = text.strip()
    if not bare:
        return 0.0
    try:
        return parsing.parse_double(bare)
    except DotNetException as cause:
        number = parsing.scan_number(bare)
        if number is None:
            raise failure(text, target, "InvalidCastFromStringToDoubleOrSingle", cause) from None
        return float(number)


@converts(DOUBLE)
def _to_double(value: Value) -> Value:
    return _to_float(value, DOUBLE)


@converts(SINGLE)
def to_single(value: Value) -> Value:
    """A Single: the nearest number of 32 bits."""
    number = _to_float(value, SINGLE)
    return NOT_CONVERTED if number is NOT_CONVERTED else single(number)


def single(number: float) -> Single:
    """A float rounded to 32 bits."""
    try:
        return Single(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return Single(float("inf") if number > 0 else float("-inf"))


@converts(DECIMAL)
def _to_decimal(value: Value) -> Value:
    kind = type(value)
    if kind is str:
        bare = value.strip()
        if not bare:
            return Decimal(0)
        try:
            return parsing.parse_decimal(bare)
        except DotNetException as cause:
            number = parsing.scan_number(bare)
            if number is None or abs(number) > 2**96 - 1:
                raise failure(value, DECIMAL, "InvalidCastFromStringToDecimal", cause) from None
            return decimal_of(number)
    if kind in (float, Single):
        if abs(value) > 2**96 - 1 or value != value:
            raise failure(
                value,
                DECIMAL,
                "InvalidCastIConvertible",
                OverflowException("Value was either too large or too small for a Decimal."),
            )
        return decimal_of(value)
    if kind in NUMBER_CLASSES or kind is bool:
        return Decimal(int(value))
    if kind is EnumValue:
        return Decimal(value.number)
    return NOT_CONVERTED


def decimal_of(value: Value) -> Decimal:
    """A number as Decimal; doubles by their 15 digits."""
    if type(value) is Decimal:
        return value
    if type(value) in (float, Single):
        digits = Decimal(f"{value:.15g}")
        return Decimal(format(digits, "f")) if value == int(value) else digits
    return Decimal(int(value))


@converts(CHAR)
def _to_char(value: Value) -> Value:
    kind = type(value)
    if kind is str:
        if len(value) == 1:
            return Char(value)
        raise failure(
            value,
            CHAR,
            "InvalidCastParseTargetInvocation",
            FormatException("String must be exactly one character long."),
        )
    if kind in INTEGER_KINDS:
        if 0 <= value < 2**16:
            return Char(chr(value))
        raise failure(value, CHAR, "InvalidCastIConvertible", OverflowException(parsing.too_large(CHAR)))
    if kind in (float, Single, Decimal, bool):
        raise failure(
            value,
            CHAR,
            "InvalidCastIConvertible",
            FormatException(f"Invalid cast from '{type_of(value).short_name}' to 'Char'."),
        )
    return NOT_CONVERTED


INTEGER_KINDS = frozenset(INTEGER_CLASSES.values())
"""The Python classes of integer values."""


@converts(BOOLEAN)
def _to_boolean(value: Value) -> Value:
    return to_bool(value)


@converts(STRING)
def _to_text(value: Value) -> Value:
    return to_string(value)


@converts(VOID)
def _to_void(value: Value) -> Value:
    return None


@converts(SWITCH_PARAMETER)
def _to_switch(value: Value) -> Value:
    if type(value) is bool:
        return SwitchParameter(present=value)
    if type(value) in NUMBER_CLASSES:
        return SwitchParameter(present=bool(value))
    return NOT_CONVERTED


# -- enums


def to_enum(value: Value, target: DotNetType) -> Value:
    """An enum value from a name (or its unique beginning), names with commas, a list of names, or a number."""
    kind = type(value)
    if kind is str:
        return _enum_from_text(value, target)
    if kind in INTEGER_KINDS:
        return _enum_from_number(int(value), value, target)
    if kind is EnumValue:
        return _enum_from_number(value.number, value, target)
    if kind in (float, Single, Decimal):
        return _enum_from_number(_rounded(value, target), value, target)
    items = enumerate_value(value)
    if items is None:
        return NOT_CONVERTED
    if not target.flags:
        raise final_failure(value, target)
    number = 0
    for item in items:
        part = to_enum(item, target)
        if part is NOT_CONVERTED:
            return NOT_CONVERTED
        number |= part.number
    return EnumValue(target, number)


def _enum_from_number(number: int, value: Value, target: DotNetType) -> EnumValue:
    if _is_defined(number, target):
        return EnumValue(target, number)
    raise PSInvalidCastException(
        f'Cannot convert value "{dotnet_text(value)}" to type "{target.name}" due to enumeration values that are not '
        "valid. Specify one of the following enumeration values and try again. The possible enumeration values are "
        f'"{",".join(target.constants)}".',
        "UndefinedIntegerToEnum",
    )


def _is_defined(number: int, target: DotNetType) -> bool:
    if number in target.constants.values():
        return True
    if not target.flags:
        return False
    every = 0
    for constant in target.constants.values():
        every |= constant
    return number & ~every == 0


def _enum_from_text(text: str, target: DotNetType) -> EnumValue:
    number = 0
    parts = text.split(",")
    for part in parts:
        number |= _enum_part(part.strip(), text, target)
    if len(parts) > 1 and not target.flags:
        raise _enum_failure(text, target, "EnumParseThrewAnException", "Requested value was not found.")
    return EnumValue(target, number)


def _enum_part(name: str, text: str, target: DotNetType) -> int:
    lower = name.lower()
    constants = target.constants
    for constant, number in constants.items():
        if constant.lower() == lower:
            return number
    if lower.lstrip("+-").isdigit():
        number = int(lower)
        _enum_from_number(number, text, target)
        return number
    starts = [constant for constant in constants if constant.lower().startswith(lower)] if lower else []
    if len({constants[constant] for constant in starts}) == 1:
        return constants[starts[0]]
    if starts:
        names = ", ".join(starts)
        raise _enum_failure(
            text,
            target,
            "SubstringDisambiguationEnumParseThrewAnException",
            f"Unable to process the enumerator name {name} because it is not unique. The possible matches are: "
            f"{names}",
        )
    raise _enum_failure(
        text,
        target,
        "SubstringDisambiguationEnumParseThrewAnException",
        f"Unable to match the identifier name {name} to a valid enumerator name. Specify one of the following "
        f"enumerator names and try again:\r\n{', '.join(constants)}",
    )


def _enum_failure(text: str, target: DotNetType, id: str, message: str) -> PSInvalidCastException:
    return failure(text, target, id, FormatException(message))


# -- arrays and lists


def new_array(items: Iterable[Value], element: DotNetType) -> Array | ByteArray:
    """A .NET array; byte[] in its compact form."""
    return ByteArray(items) if element is BYTE else Array(items, element)


def _to_array(value: Value, target: DotNetType) -> Value:
    element = target.element
    assert element is not None
    if target.rank != 1:
        return NOT_CONVERTED
    if element is CHAR and type(value) is str:
        return Array((Char(letter) for letter in value), CHAR)
    if element is BYTE and isinstance(value, (bytes, bytearray)):
        return ByteArray(value)
    items = enumerate_value(value)
    if items is None:
        items = (value,)
    if element is OBJECT:
        return Array(items)
    return new_array((convert(item, element) for item in items), element)


@converts(ARRAY)
def _to_plain_array(value: Value) -> Value:
    items = enumerate_value(value)
    return Array((value,) if items is None else items)


@converts(HASHTABLE)
def _to_hashtable(value: Value) -> Value:
    if isinstance(value, _Mapping):
        made = Hashtable()
        for key, item in value.items():
            made.put(key, item)
        return made
    if type(value) is PSCustomObject:
        inner = final_failure(value, HASHTABLE)
        raise failure(value, HASHTABLE, "InvalidCastConstructorException", inner)
    raise final_failure(value, HASHTABLE)


@converts(ORDERED_DICTIONARY)
def _to_ordered(value: Value) -> Value:
    if isinstance(value, Hashtable):
        made = OrderedDictionary()
        for key, item in value.items():
            made.put(key, item)
        return made
    return NOT_CONVERTED


# -- types with a Parse method


def _parses(target: DotNetType, parse: Callable[[str], Value], *, provider: bool) -> None:
    """Strings (and numbers, by way of their text) become `target` through its Parse method."""
    id_ = "InvalidCastParseTargetInvocation" + ("WithFormatProvider" if provider else "")

    def convert_text(value: Value) -> Value:
        kind = type(value)
        if kind is str:
            text = value
        elif kind in NUMBER_CLASSES or kind is Char:
            made = _from_number(value, target)
            if made is not None:
                return made
            text = number_text(value) if kind is not Char else str(value)
        else:
            return NOT_CONVERTED
        try:
            return parse(text)
        except DotNetException as cause:
            raise failure(value, target, id_, cause) from None

    CONVERTERS[target] = convert_text


def _from_number(value: Value, target: DotNetType) -> Value:
    if type(value) not in INTEGER_KINDS:
        return None
    if target is DATE_TIME:
        return DateTime(parsing.checked_ticks(int(value)))
    if target is TIME_SPAN:
        return TimeSpan(int(value))
    if target is IP_ADDRESS:
        return _ip_from_number(int(value))
    return None


def _ip_from_number(number: int) -> IPAddress:
    if not 0 <= number <= 0xFFFFFFFF:
        raise failure(
            number,
            IP_ADDRESS,
            "InvalidCastConstructorException",
            OverflowException(
                "Specified argument was out of the range of valid values.\r\nParameter name: newAddress"
            ),
        )
    return IPAddress(ipaddress.IPv4Address(number.to_bytes(4, "little")))


_parses(VERSION, parsing.parse_version, provider=False)
_parses(TIME_SPAN, parsing.parse_span, provider=True)
_parses(GUID, parsing.parse_guid, provider=True)


def _to_date(value: Value) -> Value:
    if type(value) is DateTimeOffset:
        return NOT_CONVERTED
    return _date_from_text(value)


_parses(DATE_TIME, parsing.parse_date, provider=True)
_date_from_text = CONVERTERS[DATE_TIME]
CONVERTERS[DATE_TIME] = _to_date

_parses(DATE_TIME_OFFSET, parsing.parse_date_time_offset, provider=True)
_offset_from_text = CONVERTERS[DATE_TIME_OFFSET]


@converts(DATE_TIME_OFFSET)
def _to_date_offset(value: Value) -> Value:
    return offset_of(value) if type(value) is DateTime else _offset_from_text(value)


def offset_of(moment: DateTime) -> DateTimeOffset:
    """A DateTime with the offset that its kind means."""
    return DateTimeOffset(moment.ticks, 0 if moment.kind == UTC else ZONE.get())


_parses(IP_ADDRESS, parsing.parse_ip, provider=False)
_ip_from_text = CONVERTERS[IP_ADDRESS]


@converts(IP_ADDRESS)
def _to_ip(value: Value) -> Value:
    if type(value) is ByteArray and len(value) in (4, 16):
        return IPAddress(ipaddress.ip_address(bytes(value)))
    return _ip_from_text(value)


@converts(RUNTIME_TYPE_BASE, RUNTIME_TYPE)
def _to_type(value: Value) -> Value:
    if type(value) is not str:
        return NOT_CONVERTED
    found = try_find_type(value)
    if found is None:
        raise PSInvalidCastException(
            f'Cannot convert the "{value}" value of type "System.String" to type "System.Type".',
            "InvalidCastFromStringToType",
        )
    return found


@converts(URI)
def _to_uri(value: Value) -> Value:
    if type(value) is not str:
        return NOT_CONVERTED
    try:
        return Uri.parse(value)
    except FormatException as cause:
        raise failure(value, URI, "InvalidCastFromStringToUri", cause) from None


@converts(SCRIPT_BLOCK)
def _to_script_block(value: Value) -> Value:
    return NOT_CONVERTED
