"""The operators on numbers: + - * / %, bits, shifts, ranges. Int32 overflows to Double, the left operand decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import ROUND_DOWN, Context, Decimal, InvalidOperation

from winboot_lab.engine import parsing
from winboot_lab.engine.convert import (
    INTEGER_CLASSES,
    cast,
    decimal_of,
    failure,
    new_array,
    to_string,
)
from winboot_lab.engine.dotnet import DotNetType, Runtime
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentOutOfRangeException,
    DivideByZeroException,
    DotNetException,
    FormatException,
    InvalidCastException,
    MethodException,
    OverflowException,
    RuntimeException,
)
from winboot_lab.engine.moments import TIME_SPAN, DateTime, DateTimeOffset, TimeSpan
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    DECIMAL,
    INT32,
    INT64,
    INTEGER_RANGES,
    NOTHING,
    NUMBER_CLASSES,
    PS_CUSTOM_OBJECT,
    PS_OBJECT,
    UINT32,
    UINT64,
    Array,
    BigInteger,
    Byte,
    ByteArray,
    Char,
    Decorated,
    EnumValue,
    Hashtable,
    Int16,
    Int64,
    OrderedDictionary,
    SByte,
    Single,
    UInt16,
    UInt32,
    UInt64,
    Value,
    enumerate_value,
    type_of,
)

_DECIMALS = Context(prec=29)
_ORDER: dict[type, int] = {
    bool: 3,
    Char: 4,
    SByte: 5,
    Byte: 6,
    Int16: 7,
    UInt16: 8,
    int: 9,
    UInt32: 10,
    Int64: 11,
    UInt64: 12,
    Single: 13,
    float: 14,
    Decimal: 15,
}
"""The order of .NET's type codes: the higher of two operands decides how they are computed."""
_INT32, _UINT32, _INT64, _UINT64, _DECIMAL = 9, 10, 11, 12, 15
_NAMES = {"+": "Addition", "-": "Subtraction", "*": "Multiply", "/": "Division", "%": "Modulus"}


def text_of(value: Value, runtime: Runtime | None) -> str:
    """The value as text, list items separated by $OFS."""
    if type(value) is str:
        return value
    if runtime is None:
        return to_string(value)
    separator = runtime.get("ofs", " ")
    return to_string(value, separator if type(separator) is str else to_string(separator))


def bare(value: Value) -> Value:
    """The value without wrapper; "no output" is $null."""
    if type(value) is Decorated:
        return value.base
    return None if value is NOTHING else value


# -- errors


def no_operator(kind: DotNetType, operator: str) -> RuntimeException:
    """The operands have no such operator."""
    name = PS_OBJECT.name if kind is PS_CUSTOM_OBJECT else kind.name
    return RuntimeException(
        f"Method invocation failed because [{name}] does not contain a method named 'op_{_NAMES[operator]}'.",
        "MethodNotFound",
        "InvalidOperation",
    )


def _undefined(left: Value, operator: str, right: Value) -> RuntimeException:
    return RuntimeException(
        f"The operation '[{type_of(left).name}] {operator} [{type_of(right).name}]' is not defined.",
        "NotADefinedOperationForType",
        "InvalidOperation",
    )


def _divided_by_zero() -> RuntimeException:
    cause = DivideByZeroException()
    return RuntimeException(cause.message, "RuntimeException", "NotSpecified", None, cause)


# -- operands


def text_number(text: str) -> Value:
    """A string operand as a number; raises the cast error to Int32."""
    if not text.strip():
        return 0
    number = parsing.scan_number(text)
    if number is not None:
        return number
    try:
        return parsing.parse_double(text)
    except DotNetException:
        raise_bad_integer(text)
        raise


def raise_bad_integer(text: str) -> None:
    """Raise `Cannot convert value "x" to type "System.Int32"`."""
    cause = failure(text, INT32, "InvalidCastFromStringToInteger", FormatException(parsing.BAD_NUMBER))
    raise RuntimeException(cause.message, cause.id, "InvalidArgument", None, cause)


def _operand(value: Value) -> Value:
    """A number for arithmetic: $null is 0, strings are read; None when the value is no number."""
    kind = type(value)
    if kind in _ORDER or kind is BigInteger:
        return value
    if value is None:
        return 0
    if kind is str:
        return text_number(value)
    return None


def _whole(value: Value) -> int:
    return ord(value) if type(value) is Char else int(value)


def _numeric(left: Value, operator: str, right: Value) -> Value:
    """Two numbers, computed in the type that the higher of both asks for."""
    if type(left) is BigInteger or type(right) is BigInteger:
        return BigInteger(_integer_result(operator, _whole(left), _whole(right)))
    order = max(_ORDER[type(left)], _ORDER[type(right)])
    if order <= _INT32:
        return _in_integers(left, operator, right, INT32)
    if order == _UINT32:
        return _in_unsigned(left, operator, right, UINT32)
    if order == _INT64:
        return _in_integers(left, operator, right, INT64)
    if order == _UINT64:
        return _in_unsigned(left, operator, right, UINT64)
    if order == _DECIMAL:
        return _in_decimals(left, operator, right)
    return _in_doubles(_float(left), operator, _float(right))


def _float(value: Value) -> float:
    return float(ord(value)) if type(value) is Char else float(value)


def _in_unsigned(left: Value, operator: str, right: Value, kind: DotNetType) -> Value:
    if _whole(left) < 0 or _whole(right) < 0:
        return _in_doubles(_float(left), operator, _float(right))
    return _in_integers(left, operator, right, kind)


def _in_integers(left: Value, operator: str, right: Value, kind: DotNetType) -> Value:
    first, second = _whole(left), _whole(right)
    if operator == "/":
        if second == 0:
            raise _divided_by_zero()
        if first % second:
            return first / second
    result = _integer_result(operator, first, second)
    low, high = INTEGER_RANGES[kind]
    return INTEGER_CLASSES[kind](result) if low <= result <= high else float(result)


def _integer_result(operator: str, first: int, second: int) -> int:
    if operator == "+":
        return first + second
    if operator == "-":
        return first - second
    if operator == "*":
        return first * second
    if second == 0:
        raise _divided_by_zero()
    quotient = abs(first) // abs(second)
    if (first < 0) != (second < 0):
        quotient = -quotient
    return quotient if operator == "/" else first - second * quotient


def _in_doubles(first: float, operator: str, second: float) -> float:
    try:
        match operator:
            case "+":
                return first + second
            case "-":
                return first - second
            case "*":
                return first * second
            case "/":
                return _divide_doubles(first, second)
        return math.fmod(first, second) if second and math.isfinite(first) else math.nan
    except OverflowError:
        return math.copysign(math.inf, first) * math.copysign(1, second)


def _divide_doubles(first: float, second: float) -> float:
    if second:
        return first / second
    if first == 0 or math.isnan(first):
        return math.nan
    return math.copysign(math.inf, first) * math.copysign(1, second)


def _in_decimals(left: Value, operator: str, right: Value) -> Decimal:
    first, second = _as_decimal(left), _as_decimal(right)
    if operator in "/%" and not second:
        raise _divided_by_zero()
    try:
        result = _decimal_result(first, operator, second)
    except InvalidOperation:
        result = Decimal("Infinity")
    if not result.is_finite() or abs(result) > 2**96 - 1:
        cause = OverflowException("Value was either too large or too small for a Decimal.")
        raise RuntimeException(cause.message, "RuntimeException", "NotSpecified", None, cause)
    return _fit_decimal(result)


def _decimal_result(first: Decimal, operator: str, second: Decimal) -> Decimal:
    match operator:
        case "+":
            return _DECIMALS.add(first, second)
        case "-":
            return _DECIMALS.subtract(first, second)
        case "*":
            return _DECIMALS.multiply(first, second)
        case "/":
            return _DECIMALS.divide(first, second)
    quotient = (first / second).to_integral_value(ROUND_DOWN)
    return first - quotient * second


def _fit_decimal(number: Decimal) -> Decimal:
    """At most 28 places after the point and 96 bits, as System.Decimal holds them."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent > 0:
        return number.quantize(Decimal(1))
    while exponent < 0 and (exponent < -28 or abs(int(number.scaleb(-exponent))) > 2**96 - 1):
        exponent += 1
        number = number.quantize(Decimal(1).scaleb(exponent))
    return number


def _as_decimal(value: Value) -> Decimal:
    if type(value) in (float, Single):
        made = cast(value, DECIMAL)
        assert isinstance(made, Decimal)
        return made
    return decimal_of(ord(value) if type(value) is Char else value)


# -- the five operators


def add(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
    """`left + right`: numbers, text, lists, dictionaries, times."""
    if type(left) is int and type(right) is int:
        result = left + right
        return result if -2147483648 <= result <= 2147483647 else float(result)
    if right is NOTHING and enumerate_value(left) is not None:
        return _joined(enumerate_value(left) or (), NOTHING)  # "no output" adds no item
    left, right = bare(left), bare(right)
    kind = type(left)
    if kind is str or kind is Char:
        return str(left) + text_of(right, runtime)
    if left is None:
        return right
    adder = _ADDERS.get(kind)
    if adder is not None:
        return adder(left, right)
    items = enumerate_value(left)
    if items is not None:
        return _joined(items, right)
    return _arithmetic(left, "+", right)


def _joined(items: Iterable[Value], right: Value) -> Array:
    more = enumerate_value(right)
    return Array([*items, right] if more is None else [*items, *more])


def _add_tables(left: Value, right: Value) -> Value:
    if not isinstance(right, (Hashtable, OrderedDictionary)):
        raise RuntimeException(
            "A hash table can only be added to another hash table.",
            "AddHashTableToNonHashTable",
            "InvalidOperation",
        )
    made = Hashtable(ignore_case=left.ignore_case) if type(left) is Hashtable else OrderedDictionary()
    for key, value in left.items():
        made.put(key, value)
    for key, value in right.items():
        if made.has(key):
            known = next(
                k for k, _ in made.items() if made.has(k) and to_string(k).lower() == to_string(key).lower()
            )
            raise ArgumentException(
                f"Item has already been added. Key in dictionary: '{to_string(known)}'  "
                f"Key being added: '{to_string(key)}'"
            )
        made.put(key, value)
    return made


def _span(value: Value, operator: str, left: Value) -> TimeSpan:
    if type(value) is TimeSpan:
        return value
    try:
        made = cast(value, TIME_SPAN)
    except RuntimeException:
        raise no_operator(type_of(left), operator) from None
    assert isinstance(made, TimeSpan)
    return made


def _add_to_date(left: DateTime, right: Value) -> Value:
    if isinstance(right, float) and not math.isfinite(right):
        raise Refusal("operator", "+", "an infinite number added to a date")
    ticks = int(right) if type(right) in NUMBER_CLASSES else _span(right, "+", left).ticks
    return DateTime(parsing.checked_ticks(left.ticks + ticks), left.kind)


def _add_to_span(left: TimeSpan, right: Value) -> Value:
    return TimeSpan(left.ticks + _span(right, "+", left).ticks)


def _add_to_offset(left: DateTimeOffset, right: Value) -> Value:
    return DateTimeOffset(left.ticks + _span(right, "+", left).ticks, left.offset_ticks)


def _add_to_enum(left: EnumValue, right: Value) -> Value:
    if type(right) in NUMBER_CLASSES and type(right) not in (float, Decimal, Single):
        return EnumValue(left.dotnet_type, left.number + int(right))
    raise no_operator(left.dotnet_type, "+")


_ADDERS: dict[type, Callable[[Value, Value], Value]] = {
    Hashtable: _add_tables,
    OrderedDictionary: _add_tables,
    DateTime: _add_to_date,
    TimeSpan: _add_to_span,
    DateTimeOffset: _add_to_offset,
    EnumValue: _add_to_enum,
}


def _arithmetic(left: Value, operator: str, right: Value) -> Value:
    first = _operand(left)
    if first is None:
        raise no_operator(type_of(left), operator)
    second = _operand(right)
    if second is None:
        if type(right) is EnumValue:
            second = right.number
        else:
            raise no_operator(type_of(right), operator)
    return _numeric(first, operator, second)


def subtract(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
    """`left - right`."""
    if type(left) is int and type(right) is int:
        result = left - right
        return result if -2147483648 <= result <= 2147483647 else float(result)
    left, right = bare(left), bare(right)
    subtracter = _SUBTRACTERS.get(type(left))
    if subtracter is not None:
        return subtracter(left, right)
    return _arithmetic(left, "-", right)


def _subtract_from_date(left: DateTime, right: Value) -> Value:
    if type(right) is DateTime:
        return TimeSpan(left.ticks - right.ticks)
    if type(right) is str:
        raise MethodException(
            'Multiple ambiguous overloads found for "op_Subtraction" and the argument count: "2".',
            "MethodCountCouldNotFindBest",
            "NotSpecified",
        )
    return DateTime(parsing.checked_ticks(left.ticks - _span(right, "-", left).ticks), left.kind)


def _subtract_from_offset(left: DateTimeOffset, right: Value) -> Value:
    if type(right) is DateTimeOffset:
        return TimeSpan(left.utc_ticks - right.utc_ticks)
    if type(right) is DateTime:
        return TimeSpan(left.utc_ticks - right.ticks)
    return DateTimeOffset(left.ticks - _span(right, "-", left).ticks, left.offset_ticks)


def _subtract_from_span(left: TimeSpan, right: Value) -> Value:
    return TimeSpan(left.ticks - _span(right, "-", left).ticks)


def _subtract_from_enum(left: EnumValue, right: Value) -> Value:
    if type(right) is EnumValue and right.dotnet_type is left.dotnet_type:
        return left.number - right.number
    if type(right) is int:
        return EnumValue(left.dotnet_type, left.number - right)
    raise no_operator(left.dotnet_type, "-")


_SUBTRACTERS: dict[type, Callable[[Value, Value], Value]] = {
    DateTime: _subtract_from_date,
    DateTimeOffset: _subtract_from_offset,
    TimeSpan: _subtract_from_span,
    EnumValue: _subtract_from_enum,
}


def multiply(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
    """`left * right`: numbers, a text repeated, a list repeated."""
    left, right = bare(left), bare(right)
    kind = type(left)
    if kind is str:
        return left * _times(right)
    if kind in _ORDER and kind not in (bool, Char):
        return _arithmetic(left, "*", right)
    if left is None:
        return None
    items = enumerate_value(left)
    if items is not None:
        element = getattr(left, "element", None) if isinstance(left, (Array, ByteArray)) else None
        repeated = list(items) * int(cast(right, UINT32))
        return Array(repeated) if element is None else new_array(repeated, element)
    if kind in (bool, Char):
        raise _undefined(left, "*", right)
    return _arithmetic(left, "*", right)


def _times(right: Value) -> int:
    count = cast(right, INT32)
    assert isinstance(count, int)
    if count < 0:
        raise ArgumentOutOfRangeException("times")
    return count


def divide(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
    """`left / right`: exact integer quotients stay integers."""
    return _arithmetic(bare(left), "/", bare(right))


def modulo(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
    """`left % right`: the sign is the left operand's."""
    return _arithmetic(bare(left), "%", bare(right))


def negate(value: Value) -> Value:
    """`-value`."""
    value = bare(value)
    if type(value) is float or type(value) is Decimal:
        return -value
    if type(value) is TimeSpan:
        return TimeSpan(-value.ticks)
    return _arithmetic(0, "-", value)


def identity(value: Value) -> Value:
    """`+value`."""
    value = bare(value)
    return value if type(value) in (float, Decimal) else _arithmetic(0, "+", value)


def step(before: Value, by: int) -> Value:
    """`++` and `--`: numbers only; $null counts as 0."""
    if type(before) is int:
        return add(before, by)
    value = bare(before)
    if value is None:
        return by
    if type(value) not in NUMBER_CLASSES:
        sign = "++" if by > 0 else "--"
        raise RuntimeException(
            f"The '{sign}' operator works only on numbers. The operand is a '{type_of(value).name}'.",
            "OperatorRequiresNumber",
            "InvalidOperation",
        )
    return _arithmetic(value, "+", by)


# -- bits


def _bits_operand(value: Value) -> Value:
    number = _operand(value)
    if number is None:
        if type(value) is EnumValue:
            return value.number
        return cast(value, INT32)
    if type(number) in (float, Single, Decimal):
        if not math.isfinite(number):
            raise Refusal("operator", "bitwise", "an infinite number")
        whole = round(number)
        if 0 <= whole < 2**64:
            return UInt64(whole)
        if -(2**63) <= whole < 0:
            return Int64(whole)
        raise Refusal("operator", "bitwise", "a number beyond 64 bits")
    return number


def bitwise(function: Callable[[int, int], int]) -> Callable[[Value, Value, Runtime | None], Value]:
    """-band, -bor, -bxor from the operation on integers."""

    def operate(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
        left, right = bare(left), bare(right)
        if type(left) is EnumValue or type(right) is EnumValue:
            return _enum_bits(left, right, function)
        first, second = _bits_operand(left), _bits_operand(right)
        order = max(_ORDER[type(first)], _ORDER[type(second)], _INT32)
        a, b = _whole(first), _whole(second)
        if order == _UINT32 and (a < 0 or b < 0):
            order = _INT64
        kind = {_INT32: INT32, _UINT32: UINT32, _INT64: INT64, _UINT64: UINT64}[order]
        low, high = INTEGER_RANGES[kind]
        result = function(a, b) & (high - low)
        return INTEGER_CLASSES[kind](result - (high - low + 1) if result > high else result)

    return operate


def _enum_bits(left: Value, right: Value, function: Callable[[int, int], int]) -> Value:
    kind: DotNetType = left.dotnet_type if type(left) is EnumValue else right.dotnet_type
    return EnumValue(kind, function(_enum_number(left, kind), _enum_number(right, kind)))


def _enum_number(value: Value, kind: DotNetType) -> int:
    if type(value) is EnumValue:
        return int(value.number)
    if type(value) is str:
        made = cast(value, kind)
        return int(made.number)
    return _whole(_bits_operand(value))


def complement(value: Value) -> Value:
    """-bnot."""
    value = bare(value)
    if type(value) is EnumValue:
        return EnumValue(value.dotnet_type, ~value.number)
    number = _bits_operand(value)
    whole = _whole(number)
    kind = type(number)
    if kind is UInt32:
        return UInt32(whole ^ 0xFFFFFFFF)
    if kind is UInt64:
        return UInt64(whole ^ 0xFFFFFFFFFFFFFFFF)
    return Int64(~whole) if kind is Int64 else ~whole


def shift(left: Value, right: Value, *, to_left: bool) -> Value:
    """-shl and -shr: the result keeps the left operand's type, the count wraps."""
    number = _operand(bare(left))
    if number is None:
        number = cast(bare(left), INT32)
    if type(number) in (float, Single, Decimal):
        number = cast(number, INT32 if -(2**31) <= number < 2**31 else INT64)
    count = cast(bare(right), INT32)
    kind = type_of(number) if type(number) in INTEGER_RANGE_CLASSES else INT32
    low, high = INTEGER_RANGES[kind]
    count &= 63 if high - low > 2**32 else 31
    whole = _whole(number)
    result = whole << count if to_left else whole >> count
    result &= high - low
    return INTEGER_CLASSES[kind](result - (high - low + 1) if result > high else result)


INTEGER_RANGE_CLASSES = frozenset(INTEGER_CLASSES.values())


# -- ranges


def number_range(left: Value, right: Value, runtime: Runtime | None = None) -> Array:
    """`left..right`: whole numbers up or down."""
    for end in (left, right):
        if enumerate_value(end) is not None:
            raise InvalidCastException(
                f"Unable to cast object of type '{type_of(end).name}' to type 'System.IConvertible'."
            )
    first, last = cast(bare(left), INT32), cast(bare(right), INT32)
    return Array(range(first, last + 1) if first <= last else range(first, last - 1, -1))
