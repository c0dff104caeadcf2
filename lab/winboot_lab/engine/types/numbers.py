"""The numeric types, Boolean, Math, Convert, BitConverter, Guid, Version, Random."""

from __future__ import annotations

import base64
import binascii
import math
import random
import re
import struct
import uuid
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any

from winboot_lab.engine import parsing
from winboot_lab.engine.comparison import compare, compared_by_value, ordered_by
from winboot_lab.engine.convert import (
    INTEGER_CLASSES,
    NOT_CONVERTED,
    cast,
    convert,
    converts,
    failure,
    single,
    to_bool,
)
from winboot_lab.engine.dotnet import DotNetType, Reference, dotnet, named
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
    DotNetException,
    FormatException,
    InvalidCastException,
    OverflowException,
    PSInvalidCastException,
)
from winboot_lab.engine.formatting import dotnet_text, format_guid, format_number, number_text
from winboot_lab.engine.members import adds
from winboot_lab.engine.moments import DateTime
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.text import is_american
from winboot_lab.engine.values import (
    BIG_INTEGER,
    BOOLEAN,
    BYTE,
    CHAR,
    DBNULL_VALUE,
    DECIMAL,
    DOUBLE,
    GUID,
    INT16,
    INT32,
    INT64,
    INTEGER_RANGES,
    NUMBER_CLASSES,
    SINGLE,
    STRING,
    UINT16,
    UINT32,
    UINT64,
    VERSION,
    BigInteger,
    ByteArray,
    Char,
    CodeProperty,
    EnumValue,
    Instance,
    Int16,
    Int64,
    Single,
    UInt16,
    UInt32,
    UInt64,
    Value,
    Version,
    type_of,
)

# -- every number


def _text(self: Value, spec: str = "", provider: Value = None) -> str:
    text = format_number(self, spec) if spec else number_text(self)
    return text.replace("¤", "$") if is_american(provider) else text


def _compare_number(self: Value, other: Value) -> int:
    if other is None:
        return 1
    if type(other) is not type(self):
        raise ArgumentException(f"Object must be of type {type_of(self).short_name}.")
    return compare(self, other)


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
    kind.method("CompareTo(object value)")(_compare_number)
    kind.method("Equals(object obj)")(_same_number)
    kind.method("GetTypeCode()")(lambda self: cast(kind.short_name, named("System.TypeCode")))


def _parsers(kind: DotNetType, parse: Callable[[str, int], Value]) -> None:
    """Parse and TryParse with and without styles and culture."""

    def parse_text(text: str, styles: Value = None, provider: Value = None) -> Value:
        _parse_failure(text)
        return parse(text, styles.number if isinstance(styles, EnumValue) else 0)

    def try_parse(text: str, out: Reference) -> bool:
        return _try(text, 0, out)

    def try_parse_styles(text: str, styles: Value, provider: Value, out: Reference) -> bool:
        return _try(text, styles.number, out)

    def _try(text: str | None, styles: int, out: Reference) -> bool:
        assert kind.default is not None
        try:
            out.value = parse(text or "", styles)
        except DotNetException:
            out.value = kind.default()
            return False
        return True

    kind.static_method(
        "Parse(string s)",
        "Parse(string s, System.Globalization.NumberStyles style)",
        "Parse(string s, System.Globalization.NumberStyles style, System.IFormatProvider provider)",
    )(parse_text)
    kind.static_method("Parse(string s, System.IFormatProvider provider)")(
        lambda text, provider: parse_text(text)
    )
    kind.static_method(f"TryParse(string s, out {kind.name} result)")(try_parse)
    kind.static_method(
        "TryParse(string s, System.Globalization.NumberStyles style, System.IFormatProvider provider, "
        f"out {kind.name} result)"
    )(try_parse_styles)


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


for _kind, _make in INTEGER_CLASSES.items():
    _number_members(_kind)
    _low, _high = INTEGER_RANGES[_kind]
    _kind.static_field("MaxValue", _kind.name, _make(_high))
    _kind.static_field("MinValue", _kind.name, _make(_low))
    _parsers(_kind, _integer_parser(_kind))
    _kind.method("GetHashCode()")(lambda self: int(self) if -(2**31) <= self < 2**31 else _no_hash())
    _kind.complete()


def _no_hash() -> int:
    raise Refusal("member", "GetHashCode()")


for _kind in (DOUBLE, SINGLE, DECIMAL):
    _number_members(_kind)
_parsers(DOUBLE, lambda text, styles: parsing.parse_double(text))
_parsers(SINGLE, lambda text, styles: single(parsing.parse_double(text)))
_parsers(DECIMAL, lambda text, styles: parsing.parse_decimal(text))
for _name, _number in (
    ("MaxValue", 1.7976931348623157e308),
    ("MinValue", -1.7976931348623157e308),
    ("Epsilon", 5e-324),
    ("NaN", math.nan),
    ("PositiveInfinity", math.inf),
    ("NegativeInfinity", -math.inf),
):
    DOUBLE.static_field(_name, "double", _number)
    SINGLE.static_field(
        _name,
        "float",
        Single(
            {
                "MaxValue": 3.4028234663852886e38,
                "MinValue": -3.4028234663852886e38,
                "Epsilon": 1.401298464324817e-45,
            }.get(_name, _number)
        ),
    )
for _name, _test in (
    ("IsNaN", math.isnan),
    ("IsInfinity", math.isinf),
    ("IsPositiveInfinity", lambda number: number == math.inf),
    ("IsNegativeInfinity", lambda number: number == -math.inf),
):
    DOUBLE.static_method(f"{_name}(double d)")(_test)
    SINGLE.static_method(f"{_name}(float f)")(_test)
DECIMAL.static_field("MaxValue", "decimal", Decimal(2**96 - 1))
DECIMAL.static_field("MinValue", "decimal", Decimal(1 - 2**96))
for _name, _integer in (("One", 1), ("Zero", 0), ("MinusOne", -1)):
    DECIMAL.static_field(_name, "decimal", Decimal(_integer))
DOUBLE.complete()
SINGLE.complete()
DECIMAL.refuses(
    "Add Subtract Multiply Divide Remainder Negate GetBits FromOACurrency ToOACurrency ToByte ToDouble ToInt16 "
    "ToInt32 ToInt64 ToSByte ToSingle ToUInt16 ToUInt32 ToUInt64 Compare Equals"
)


def _big(value: Value) -> BigInteger:
    return BigInteger(int(value))


_number_members(BIG_INTEGER)


@BIG_INTEGER.static_method("Parse(string value)")
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


@BIG_INTEGER.static_method("TryParse(string value, out bigint result)")
def _try_parse_big(text: str, out: Reference) -> bool:
    try:
        out.value = _parse_big(text or "")
    except FormatException:
        out.value = _big(0)
        return False
    return True


BIG_INTEGER.static_method("Add(bigint left, bigint right)")(lambda one, two: _big(int(one) + int(two)))
BIG_INTEGER.static_method("Subtract(bigint left, bigint right)")(lambda one, two: _big(int(one) - int(two)))
BIG_INTEGER.static_method("Multiply(bigint left, bigint right)")(lambda one, two: _big(int(one) * int(two)))
BIG_INTEGER.static_method("Pow(bigint value, int exponent)")(lambda value, power: _big(int(value) ** power))
BIG_INTEGER.static_method("GreatestCommonDivisor(bigint left, bigint right)")(
    lambda first, second: _big(math.gcd(int(first), int(second)))
)
BIG_INTEGER.static_method("Abs(bigint value)")(lambda value: _big(abs(int(value))))
BIG_INTEGER.static_method("Negate(bigint value)")(lambda value: _big(-int(value)))
BIG_INTEGER.static_method("Compare(bigint left, bigint right)")(
    lambda first, second: int(first > second) - int(first < second)
)
for _name, _number in (("Zero", 0), ("One", 1), ("MinusOne", -1)):
    BIG_INTEGER.static_field(_name, "bigint", BigInteger(_number))
BIG_INTEGER.prop("IsZero", "bool", lambda self: int(self) == 0)
BIG_INTEGER.prop("IsOne", "bool", lambda self: int(self) == 1)
BIG_INTEGER.prop("IsEven", "bool", lambda self: int(self) % 2 == 0)
BIG_INTEGER.prop("Sign", "int", lambda self: int(self > 0) - int(self < 0))
BIG_INTEGER.refuses("IsPowerOfTwo ModPow ToByteArray Divide DivRem Remainder Max Min Log Log10")

# -- Boolean

BOOLEAN.static_field("TrueString", "string", "True")
BOOLEAN.static_field("FalseString", "string", "False")
BOOLEAN.method("ToString()", "ToString(System.IFormatProvider provider)")(
    lambda self, provider=None: "True" if self else "False"
)
BOOLEAN.method("CompareTo(object obj)")(lambda self, other: int(self) - int(other))
BOOLEAN.method("GetTypeCode()")(lambda self: cast("Boolean", named("System.TypeCode")))


@BOOLEAN.static_method("Parse(string value)")
def _parse_bool(text: str) -> bool:
    _parse_failure(text)
    return parsing.parse_bool(text)


@BOOLEAN.static_method("TryParse(string value, out bool result)")
def _try_parse_bool(text: str, out: Reference) -> bool:
    try:
        out.value = parsing.parse_bool(text or "")
    except FormatException:
        out.value = False
        return False
    return True


BOOLEAN.complete()

# -- Math

MATH = dotnet("System.Math", kind="static", accelerators=["math"])
MATH.static_field("PI", "double", math.pi)
MATH.static_field("E", "double", math.e)
_SIGNED = ("decimal", "double", "float", "int", "long", "sbyte", "int16")
_ALL = (*_SIGNED, "byte", "uint16", "uint32", "uint64")


def _abs(value: Value) -> Value:
    if type(value) in INTEGER_CLASSES.values() and value == INTEGER_RANGES[type_of(value)][0]:
        raise OverflowException("Negating the minimum value of a twos complement number is invalid.")
    return type(value)(abs(value))


def _keep(value: Value, made: Value) -> Value:
    return made if type(made) is type(value) else type(value)(made)


for _type in _SIGNED:
    MATH.static_method(f"Abs({_type} value)")(_abs)
    MATH.static_method(f"Sign({_type} value)")(lambda value: (value > 0) - (value < 0))
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


def _logarithm(value: float, base: float | None = None) -> float:
    if value <= 0:
        return -math.inf if value == 0 else math.nan
    if base is None:
        return math.log(value)
    if base <= 0 or base == 1:
        return math.nan
    return math.log(value) / math.log(base)


MATH.static_method("Pow(double x, double y)")(_power)
MATH.static_method("Sqrt(double d)")(lambda value: math.nan if value < 0 else math.sqrt(value))
MATH.static_method("Log(double d)")(_logarithm)
MATH.static_method("Log(double a, double newBase)")(_logarithm)
MATH.static_method("Log10(double d)")(lambda value: math.log10(value) if value > 0 else _logarithm(value))


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


MATH.static_method("Exp(double d)")(_exponential)
for _name, _function in (
    ("Sin", math.sin),
    ("Cos", math.cos),
    ("Tan", math.tan),
    ("Atan", math.atan),
    ("Sinh", math.sinh),
    ("Cosh", math.cosh),
    ("Tanh", math.tanh),
):
    MATH.static_method(f"{_name}(double a)")(_function)
MATH.static_method("Atan2(double y, double x)")(math.atan2)
MATH.static_method("Asin(double d)")(lambda value: math.asin(value) if abs(value) <= 1 else math.nan)
MATH.static_method("Acos(double d)")(lambda value: math.acos(value) if abs(value) <= 1 else math.nan)
MATH.static_method("BigMul(int a, int b)")(lambda first, second: Int64(int(first) * int(second)))


def _divrem(make: type) -> Callable[[int, int, Reference], Value]:
    def divide(first: int, second: int, out: Reference) -> Value:
        from winboot_lab.engine.exceptions import DivideByZeroException

        if second == 0:
            raise DivideByZeroException
        quotient = abs(first) // abs(second)
        quotient = -quotient if (first < 0) != (second < 0) else quotient
        out.value = make(first - quotient * second)
        return make(quotient)

    return divide


MATH.static_method("DivRem(int a, int b, out int result)")(_divrem(int))
MATH.static_method("DivRem(long a, long b, out long result)")(_divrem(Int64))
MATH.static_method("IEEERemainder(double x, double y)")(lambda x, y: math.remainder(x, y) if y else math.nan)
MATH.complete()

# -- Convert

CONVERT = dotnet("System.Convert", kind="static", accelerators=["convert"])


def _needs(value: Value, name: str) -> Value:
    if value is None:
        raise ArgumentNullException(name)
    return value


def _integer_conversion(kind: DotNetType) -> Callable[[Value], Value]:
    make = INTEGER_CLASSES[kind]

    def to_integer(value: Value) -> Value:
        if value is None:
            return make(0)
        if type(value) is str:
            return make(parsing.parse_integer(value, kind))
        if type(value) is Char:
            return make(ord(value))
        return _convertible(value, kind)

    return to_integer


def _convertible(value: Value, kind: DotNetType) -> Value:
    """IConvertible: a conversion whose failure is the .NET exception itself."""
    try:
        return convert(value, kind)
    except PSInvalidCastException as cause:
        if isinstance(cause.inner, OverflowException):
            raise cause.inner from None
        source = type_of(value)
        if value is not None and type(value) in NUMBER_CLASSES:
            raise InvalidCastException(
                f"Invalid cast from '{source.short_name}' to '{kind.short_name}'."
            ) from None
        raise InvalidCastException(
            f"Unable to cast object of type '{source.name}' to type 'System.IConvertible'."
        ) from None


_FROM = (
    "object",
    "string",
    "bool",
    "char",
    "byte",
    "int16",
    "int",
    "long",
    "uint32",
    "uint64",
    "double",
    "decimal",
)
_BASES = (2, 8, 10, 16)


def _from_base(kind: DotNetType) -> Callable[[str, int], Value]:
    make = INTEGER_CLASSES[kind]
    low, high = INTEGER_RANGES[kind]

    def read(text: str, base: int) -> Value:
        if base not in _BASES:
            raise ArgumentException("Invalid Base.")
        if text is None:
            return make(0)
        if base == 10:
            return make(parsing.parse_integer(text, kind))
        digits = text.lower().removeprefix("0x") if base == 16 else text
        if not digits:
            raise ArgumentOutOfRangeException(
                "length",
                "Index was out of range. Must be non-negative and less than the size of the collection.",
            )
        try:
            number = int(digits, base)
        except ValueError:
            raise FormatException("Could not find any recognizable digits.") from None
        if number > high and number <= high - low:
            number -= high - low + 1
        if not low <= number <= high:
            raise OverflowException(parsing.too_large(kind))
        return make(number)

    return read


for _kind, _name in (
    (INT32, "ToInt32"),
    (INT64, "ToInt64"),
    (INT16, "ToInt16"),
    (BYTE, "ToByte"),
    (UINT16, "ToUInt16"),
    (UINT32, "ToUInt32"),
    (UINT64, "ToUInt64"),
    (named("sbyte"), "ToSByte"),
):
    _to = _integer_conversion(_kind)
    for _type in _FROM:
        CONVERT.static_method(f"{_name}({_type} value)")(_to)
    CONVERT.static_method(f"{_name}(string value, System.IFormatProvider provider)")(
        lambda value, p, _to=_to: _to(value)
    )
    CONVERT.static_method(f"{_name}(string value, int fromBase)")(_from_base(_kind))


def _to_double(value: Value) -> Value:
    if value is None:
        return 0.0
    return parsing.parse_double(value) if type(value) is str else _convertible(value, DOUBLE)


def _to_decimal(value: Value) -> Value:
    if value is None:
        return Decimal(0)
    return parsing.parse_decimal(value) if type(value) is str else _convertible(value, DECIMAL)


def _to_boolean(value: Value) -> bool:
    if value is None:
        return False
    if type(value) is str:
        return parsing.parse_bool(value)
    if type(value) in NUMBER_CLASSES or type(value) is bool:
        return to_bool(value)
    raise InvalidCastException(
        f"Unable to cast object of type '{type_of(value).name}' to type 'System.IConvertible'."
    )


def _to_char(value: Value) -> Value:
    if type(value) is str:
        if len(value) != 1:
            raise FormatException("String must be exactly one character long.")
        return Char(value)
    return _convertible(value, CHAR)


def _to_date(value: Value) -> Value:
    if value is None:
        return DateTime(0)
    if type(value) is str:
        return parsing.parse_date(value)
    if type(value) is DateTime:
        return value
    raise InvalidCastException(f"Invalid cast from '{type_of(value).short_name}' to 'DateTime'.")


for _name, _function in (
    ("ToDouble", _to_double),
    ("ToSingle", lambda value: single(_to_double(value))),
    ("ToDecimal", _to_decimal),
    ("ToBoolean", _to_boolean),
    ("ToChar", _to_char),
    ("ToDateTime", _to_date),
):
    for _type in ("object", "string"):
        CONVERT.static_method(f"{_name}({_type} value)")(_function)
        CONVERT.static_method(f"{_name}({_type} value, System.IFormatProvider provider)")(
            lambda value, provider, _function=_function: _function(value)
        )
    if _name == "ToChar":
        CONVERT.static_method("ToChar(int value)")(_function)

CONVERT.static_method("ToString(object value)", "ToString(object value, System.IFormatProvider provider)")(
    lambda value, provider=None: dotnet_text(value)
)
CONVERT.static_method("ToString(string value)")(lambda value: value)


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


CONVERT.static_method("FromBase64CharArray(char[] inArray, int offset, int length)")(
    lambda letters, offset, length: _from_base64("".join(letters[offset : offset + length]))
)


@CONVERT.static_method("ChangeType(object value, type conversionType)")
def _change_type(value: Value, kind: DotNetType) -> Value:
    changer = _CHANGERS.get(kind)
    if changer is not None:
        return changer(value)
    if value is None and not kind.is_value_type:
        return None
    if type_of(value) is kind:
        return value
    raise InvalidCastException(f"Invalid cast from '{type_of(value).name}' to '{kind.name}'.")


_CHANGERS: dict[DotNetType, Callable[[Value], Value]] = {
    **{kind: _integer_conversion(kind) for kind in INTEGER_CLASSES},
    DOUBLE: _to_double,
    DECIMAL: _to_decimal,
    BOOLEAN: _to_boolean,
    CHAR: _to_char,
    STRING: dotnet_text,
    SINGLE: lambda value: single(_to_double(value)),
    named("datetime"): _to_date,
}
CONVERT.static_field("DBNull", "DBNull", DBNULL_VALUE)
named("System.DBNull").static_field("Value", "System.DBNull", DBNULL_VALUE)
named("System.DBNull").method("ToString()")(lambda self: "")
CONVERT.static_method("IsDBNull(object value)")(lambda value: value is DBNULL_VALUE)
CONVERT.static_method("GetTypeCode(object value)")(
    lambda value: cast(type_of(value).short_name if value is not None else "Empty", named("System.TypeCode"))
)
CONVERT.refuses("ToBase64CharArray")

# -- BitConverter

BITS = dotnet("System.BitConverter", kind="static", accelerators=["bitconverter"])
BITS.static_field("IsLittleEndian", "bool", True)
_LAYOUTS: dict[str, tuple[str, str, type]] = {
    "int": ("<i", "ToInt32", int),
    "long": ("<q", "ToInt64", Int64),
    "int16": ("<h", "ToInt16", Int16),
    "uint32": ("<I", "ToUInt32", UInt32),
    "uint64": ("<Q", "ToUInt64", UInt64),
    "uint16": ("<H", "ToUInt16", UInt16),
    "double": ("<d", "ToDouble", float),
    "float": ("<f", "ToSingle", Single),
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
BITS.static_method("ToBoolean(byte[] value, int startIndex)")(lambda data, start: data[start] != 0)
BITS.static_method("ToChar(byte[] value, int startIndex)")(_read_bits("<H", lambda number: Char(chr(number))))


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
BITS.static_method("DoubleToInt64Bits(double value)")(
    lambda value: Int64(struct.unpack("<q", struct.pack("<d", value))[0])
)
BITS.static_method("Int64BitsToDouble(long value)")(
    lambda value: struct.unpack("<d", struct.pack("<q", value))[0]
)
BITS.complete()

# -- Guid

ordered_by(uuid.UUID, lambda value: value.fields)
compared_by_value(uuid.UUID)
adds("System.Guid", CodeProperty("Guid", str))
GUID.static_method("NewGuid()")(uuid.uuid4)
GUID.static_field("Empty", "guid", uuid.UUID(int=0))
GUID.constructor("string g")(parsing.parse_guid)


@GUID.constructor("byte[] b")
def _guid_of_bytes(data: Value) -> uuid.UUID:
    if len(_needs(data, "b")) != 16:
        raise ArgumentException("Byte array for GUID must be exactly 16 bytes long.")
    return uuid.UUID(bytes_le=bytes(data))


GUID.static_method("Parse(string input)")(parsing.parse_guid)


@GUID.static_method("TryParse(string input, out guid result)")
def _try_guid(text: str, out: Reference) -> bool:
    try:
        out.value = parsing.parse_guid(text or "")
    except FormatException:
        out.value = uuid.UUID(int=0)
        return False
    return True


GUID.method(
    "ToString()", "ToString(string format)", "ToString(string format, System.IFormatProvider provider)"
)(lambda self, spec="", provider=None: format_guid(self, spec or ""))
GUID.method("ToByteArray()")(lambda self: ByteArray(self.bytes_le))
GUID.method("CompareTo(object value)")(compare)
GUID.refuses("GetHashCode ParseExact TryParseExact")

# -- Version

for _name in ("Major", "Minor", "Build", "Revision"):
    VERSION.prop(_name, "int", lambda self, _name=_name: getattr(self, _name.lower()))
VERSION.prop("MajorRevision", "int16", lambda self: Int16(self.revision >> 16))
VERSION.prop(
    "MinorRevision", "int16", lambda self: Int16(self.revision & 0xFFFF if self.revision >= 0 else -1)
)


def _version(*parts: int) -> Version:
    if any(part < 0 for part in parts):
        raise ArgumentOutOfRangeException(
            "version", "Version's parameters must be greater than or equal to zero."
        )
    return Version(*parts)


VERSION.constructor("")(lambda: Version(0, 0))
VERSION.constructor("string version")(parsing.parse_version)
VERSION.constructor("int major, int minor")(_version)
VERSION.constructor("int major, int minor, int build")(_version)
VERSION.constructor("int major, int minor, int build, int revision")(_version)
VERSION.static_method("Parse(string input)")(parsing.parse_version)


@VERSION.static_method("TryParse(string input, out version result)")
def _try_version(text: str, out: Reference) -> bool:
    try:
        out.value = parsing.parse_version(text or "")
    except DotNetException:
        out.value = None
        return False
    return True


VERSION.method("ToString()")(str)


@VERSION.method("ToString(int fieldCount)")
def _version_text(self: Version, count: int) -> str:
    known = [part for part in self.parts if part >= 0]
    if not 0 <= count <= len(known):
        raise ArgumentException(f"Argument must be between 0 and {len(known)}.", "fieldCount")
    return ".".join(str(part) for part in known[:count])


@VERSION.method("CompareTo(object version)")
def _compare_version(self: Version, other: Value) -> int:
    if other is None:
        return 1
    if not isinstance(other, Version):
        raise ArgumentException("Object must be of type Version.")
    return (self.parts > other.parts) - (self.parts < other.parts)


VERSION.method("Equals(object obj)")(lambda self, other: isinstance(other, Version) and self == other)
VERSION.method("Clone()")(lambda self: Version(*self.parts))
VERSION.refuses("GetHashCode TryFormat")

# -- Random


class Random(Instance):
    """System.Random; without a seed it gives any numbers, with one a script would expect .NET's own sequence."""

    def __init__(self) -> None:
        self.source = random.Random()


RANDOM = dotnet("System.Random", Random, accelerators=["random"])
RANDOM.constructor("")(Random)


@RANDOM.constructor("int Seed")
def _seeded(_seed: int) -> Random:
    raise Refusal("member", "[System.Random]::new(seed)", "the sequence of a seed")


RANDOM.method("Next()")(lambda self: self.source.randrange(2**31 - 1))
RANDOM.method("Next(int maxValue)")(lambda self, most: self.source.randrange(most) if most else 0)
RANDOM.method("Next(int minValue, int maxValue)")(
    lambda self, least, most: self.source.randrange(least, most) if least < most else least
)
RANDOM.method("NextDouble()")(lambda self: self.source.random())


@RANDOM.method("void NextBytes(byte[] buffer)")
def _next_bytes(self: Random, buffer: Value) -> None:
    buffer[:] = self.source.randbytes(len(buffer))


RANDOM.complete()
