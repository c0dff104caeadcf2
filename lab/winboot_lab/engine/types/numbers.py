"""The numeric types, Boolean, Math, Convert, BitConverter, Guid, Version, Random."""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
import uuid
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any

from winboot_lab.engine import parsing
from winboot_lab.engine.comparison import compared_by_value, ordered_by
from winboot_lab.engine.convert import (
    INTEGER_CLASSES,
    NOT_CONVERTED,
    converts,
    failure,
    single,
)
from winboot_lab.engine.dotnet import DotNetType, Reference, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
    DotNetException,
    FormatException,
    OverflowException,
)
from winboot_lab.engine.formatting import dotnet_text, format_guid, format_number, number_text
from winboot_lab.engine.members import adds
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.text import is_american
from winboot_lab.engine.values import (
    BIG_INTEGER,
    BYTE,
    DECIMAL,
    DOUBLE,
    GUID,
    INT16,
    INT32,
    INT64,
    INTEGER_RANGES,
    NUMBER_CLASSES,
    SINGLE,
    VERSION,
    BigInteger,
    ByteArray,
    Char,
    CodeProperty,
    EnumValue,
    Int64,
    UInt32,
    Value,
    Version,
    type_of,
)

# -- every number


def _text(self: Value, spec: str = "", provider: Value = None) -> str:
    text = format_number(self, spec) if spec else number_text(self)
    return text.replace("¤", "$") if is_american(provider) else text


def _same_number(self: Value, other: Value) -> bool:
    return type(self) is type(other) and bool(self == other)


def _parse_failure(text: str | None) -> None:
    if text is None:
        raise ArgumentNullException("String", "String reference not set to an instance of a String.")


def _number_members(kind: DotNetType) -> None:
    kind.method("ToString()")(_text)
    kind.method("ToString(string format)")(lambda self, spec: _text(self, spec or ""))
    kind.method("ToString(System.IFormatProvider provider)")(lambda self, provider: _text(self))
    kind.method("ToString(string format, System.IFormatProvider provider)")(
        lambda self, spec, provider: _text(self, spec or "", provider)
    )
    kind.method("Equals(object obj)")(_same_number)


def _parsers(kind: DotNetType, parse: Callable[[str, int], Value]) -> None:
    """Parse and TryParse with and without styles and culture."""

    def try_parse(text: str, out: Reference) -> bool:
        return _try(text, 0, out)

    def _try(text: str | None, styles: int, out: Reference) -> bool:
        assert kind.default is not None
        try:
            out.value = parse(text or "", styles)
        except DotNetException:
            out.value = kind.default()
            return False
        return True

    kind.static_method(f"TryParse(string s, out {kind.name} result)")(try_parse)


_HEX_STYLE, _THOUSANDS_STYLE, _POINT_STYLE = 512, 64, 32


def _integer_parser(kind: DotNetType) -> Callable[[str, int], Value]:
    def parse(text: str, styles: int) -> Value:
        if styles & _HEX_STYLE:
            return INTEGER_CLASSES[kind](parsing.parse_integer(text, kind, base=16))
        if styles & _THOUSANDS_STYLE:
            text = text.replace(",", "")
        if styles & _POINT_STYLE:
            raise Refusal("value", "NumberStyles", "an integer with a decimal point")
        return INTEGER_CLASSES[kind](parsing.parse_integer(text, kind))

    return parse


for _kind in INTEGER_CLASSES:
    _number_members(_kind)
    _parsers(_kind, _integer_parser(_kind))


for _kind in (DOUBLE, SINGLE, DECIMAL):
    _number_members(_kind)
_parsers(DOUBLE, lambda text, styles: parsing.parse_double(text))
_parsers(SINGLE, lambda text, styles: single(parsing.parse_double(text)))
_parsers(DECIMAL, lambda text, styles: parsing.parse_decimal(text))


def _big(value: Value) -> BigInteger:
    return BigInteger(int(value))


_number_members(BIG_INTEGER)


def _parse_big(text: str) -> BigInteger:
    _parse_failure(text)
    if re.fullmatch(r"\s*[+-]?\d+\s*", text, re.ASCII) is None:
        raise FormatException("The value could not be parsed.")
    return BigInteger(int(text))


@converts(BIG_INTEGER)
def _to_big(value: Value) -> Value:
    """From any number as its operators do (a fraction is cut off), from text as Parse does."""
    if isinstance(value, str) and not isinstance(value, Char):
        try:
            return _parse_big(value)
        except FormatException as cause:
            raise failure(value, BIG_INTEGER, "InvalidCastParseTargetInvocation", cause) from None
    if type(value) in NUMBER_CLASSES:
        if isinstance(value, float) and not math.isfinite(value):
            raise Refusal("operator", "[bigint] of a number that is not finite")
        return _big(value)
    return NOT_CONVERTED


# -- Math

MATH = dotnet("System.Math", kind="static", accelerators=["math"])
_SIGNED = ("decimal", "double", "float", "int", "long", "sbyte", "int16")
_ALL = (*_SIGNED, "byte", "uint16", "uint32", "uint64")


def _abs(value: Value) -> Value:
    if type(value) in INTEGER_CLASSES.values() and value == INTEGER_RANGES[type_of(value)][0]:
        raise OverflowException("Negating the minimum value of a twos complement number is invalid.")
    return type(value)(abs(value))


for _type in _SIGNED:
    MATH.static_method(f"Abs({_type} value)")(_abs)
for _type in _ALL:
    MATH.static_method(f"Max({_type} val1, {_type} val2)")(
        lambda first, second: math.nan if first != first or second != second else max(first, second)
    )
    MATH.static_method(f"Min({_type} val1, {_type} val2)")(
        lambda first, second: math.nan if first != first or second != second else min(first, second)
    )


def _whole_double(name: str, change: Callable[[float], int], rounding: str) -> None:
    MATH.static_method(f"{name}(decimal d)")(lambda value: value.to_integral_value(rounding))

    @MATH.static_method(f"{name}(double d)")
    def of_double(value: float) -> float:
        if not math.isfinite(value) or abs(value) >= 2**53:
            return value
        return math.copysign(float(change(value)), value)


_whole_double("Floor", math.floor, ROUND_FLOOR)
_whole_double("Ceiling", math.ceil, ROUND_CEILING)
_whole_double("Truncate", math.trunc, ROUND_DOWN)


def _round(value: Value, digits: int = 0, mode: EnumValue | None = None) -> Value:
    limit = 28 if type(value) is Decimal else 15
    if not 0 <= digits <= limit:
        raise ArgumentOutOfRangeException(
            "digits", f"Rounding digits must be between 0 and {limit}, inclusive."
        )
    away = mode is not None and mode.number == 1
    if type(value) is Decimal:
        exponent = value.as_tuple().exponent
        if isinstance(exponent, int) and -exponent <= digits:
            return value  # it has no digits to lose, and gets none
        step = Decimal(1).scaleb(-digits)
        return value.quantize(step, rounding=ROUND_HALF_UP if away else ROUND_HALF_EVEN)
    return _round_double(value, digits, away=away)


def _round_double(value: float, digits: int, *, away: bool) -> float:
    if not math.isfinite(value) or abs(value) >= 1e16:
        return value
    scaled = value * 10.0**digits
    if away:
        fraction, whole = math.modf(abs(scaled))
        whole += fraction >= 0.5
    else:
        whole = round(abs(scaled))
    return math.copysign(whole / 10.0**digits, value)


MATH.static_method("Round(double a)")(_round)
MATH.static_method("Round(double value, int digits)")(_round)
MATH.static_method("Round(double value, MidpointRounding mode)")(lambda value, mode: _round(value, 0, mode))
MATH.static_method("Round(double value, int digits, MidpointRounding mode)")(_round)
MATH.static_method("Round(decimal d)")(_round)
MATH.static_method("Round(decimal d, int decimals)")(_round)
MATH.static_method("Round(decimal d, MidpointRounding mode)")(lambda value, mode: _round(value, 0, mode))
MATH.static_method("Round(decimal d, int decimals, MidpointRounding mode)")(_round)


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf if base > 0 or exponent % 2 == 0 else -math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


MATH.static_method("Pow(double x, double y)")(_power)


# -- Convert

CONVERT = dotnet("System.Convert", kind="static", accelerators=["convert"])


def _needs(value: Value, name: str) -> Value:
    if value is None:
        raise ArgumentNullException(name)
    return value


_BASES = (2, 8, 10, 16)


CONVERT.static_method("ToString(object value)", "ToString(object value, System.IFormatProvider provider)")(
    lambda value, provider=None: dotnet_text(value)
)


def _in_base(kind: DotNetType) -> Callable[[int, int], str]:
    low, high = INTEGER_RANGES[kind]

    def write(value: int, base: int) -> str:
        if base not in _BASES:
            raise ArgumentException("Invalid Base.")
        number = int(value)
        if base == 10:
            return str(number)
        if number < 0:
            number += high - low + 1
        return format(number, {2: "b", 8: "o", 16: "x"}[base])

    return write


for _kind in (BYTE, INT16, INT32, INT64):
    CONVERT.static_method(f"ToString({_kind.name} value, int toBase)")(_in_base(_kind))


def to_base64(data: Value, options: EnumValue | None = None) -> str:
    """Convert.ToBase64String."""
    text = base64.b64encode(bytes(_needs(data, "inArray"))).decode()
    if options is not None and options.number & 1:
        text = "\r\n".join(text[at : at + 76] for at in range(0, len(text), 76))
    return text


CONVERT.static_method("ToBase64String(byte[] inArray)")(to_base64)
CONVERT.static_method("ToBase64String(byte[] inArray, Base64FormattingOptions options)")(to_base64)
CONVERT.static_method("ToBase64String(byte[] inArray, int offset, int length)")(
    lambda data, offset, length: to_base64(data[offset : offset + length])
)


@CONVERT.static_method("FromBase64String(string s)")
def _from_base64(text: str) -> ByteArray:
    compact = "".join(_needs(text, "s").split())
    try:
        if len(compact) % 4:
            raise binascii.Error
        return ByteArray(base64.b64decode(compact, validate=True))
    except (binascii.Error, ValueError):
        message = (
            "Invalid length for a Base-64 char array or string."
            if len(compact) % 4
            else "The input is not a valid Base-64 string as it contains a non-base 64 character, more than two padding "
            "characters, or an illegal character among the padding characters. "
        )
        raise FormatException(message) from None


# -- BitConverter

BITS = dotnet("System.BitConverter", kind="static", accelerators=["bitconverter"])
_LAYOUTS: dict[str, tuple[str, str, type]] = {
    "int": ("<i", "ToInt32", int),
    "long": ("<q", "ToInt64", Int64),
    "uint32": ("<I", "ToUInt32", UInt32),
}


def _read_bits(layout: str, make: Callable[[Any], Value]) -> Callable[[Value, int], Value]:
    size = struct.calcsize(layout)

    def read(data: Value, start: int) -> Value:
        _needs(data, "value")
        if not 0 <= start < len(data):
            raise ArgumentOutOfRangeException(
                "startIndex",
                "Index was out of range. Must be non-negative and less than the size of the collection.",
            )
        if start + size > len(data):
            raise ArgumentException(
                "Destination array is not long enough to copy all the items in the collection. Check array index and "
                "length."
            )
        return make(struct.unpack_from(layout, bytes(data), start)[0])

    return read


def _write_bits(layout: str) -> Callable[[Value], ByteArray]:
    return lambda value: ByteArray(struct.pack(layout, value))


for _type, (_layout, _name, _python) in _LAYOUTS.items():
    BITS.static_method(f"{_name}(byte[] value, int startIndex)")(_read_bits(_layout, _python))
    BITS.static_method(f"GetBytes({_type} value)")(_write_bits(_layout))
BITS.static_method("GetBytes(bool value)")(lambda value: ByteArray([int(value)]))
BITS.static_method("GetBytes(char value)")(lambda value: ByteArray(struct.pack("<H", ord(value))))


def _dashed(data: Value, start: int = 0, length: int | None = None) -> str:
    _needs(data, "value")
    end = len(data) if length is None else start + length
    if end > len(data):
        raise ArgumentException(
            "Destination array is not long enough to copy all the items in the collection. Check array index and length."
        )
    return "-".join(f"{number:02X}" for number in bytes(data)[start:end])


BITS.static_method(
    "ToString(byte[] value)",
    "ToString(byte[] value, int startIndex)",
    "ToString(byte[] value, int startIndex, int length)",
)(_dashed)

# -- Guid

ordered_by(uuid.UUID, lambda value: value.fields)
compared_by_value(uuid.UUID)
adds("System.Guid", CodeProperty("Guid", str))
GUID.static_method("NewGuid()")(uuid.uuid4)
GUID.constructor("string g")(parsing.parse_guid)


@GUID.constructor("byte[] b")
def _guid_of_bytes(data: Value) -> uuid.UUID:
    if len(_needs(data, "b")) != 16:
        raise ArgumentException("Byte array for GUID must be exactly 16 bytes long.")
    return uuid.UUID(bytes_le=bytes(data))


GUID.method(
    "ToString()", "ToString(string format)", "ToString(string format, System.IFormatProvider provider)"
)(lambda self, spec="", provider=None: format_guid(self, spec or ""))

# -- Version

for _name in ("Major", "Minor", "Build", "Revision"):
    VERSION.prop(_name, "int", lambda self, _name=_name: getattr(self, _name.lower()))


VERSION.method("ToString()")(str)


@VERSION.method("ToString(int fieldCount)")
def _version_text(self: Version, count: int) -> str:
    known = [part for part in self.parts if part >= 0]
    if not 0 <= count <= len(known):
        raise ArgumentException(f"Argument must be between 0 and {len(known)}.", "fieldCount")
    return ".".join(str(part) for part in known[:count])


VERSION.method("Equals(object obj)")(lambda self, other: isinstance(other, Version) and self == other)
VERSION.method("Clone()")(lambda self: Version(*self.parts))
