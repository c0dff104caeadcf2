"""Text from values: ToString, .NET format strings (`N2`, `yyyy-MM-dd`, `{0,-5:X4}`), all by the invariant culture.

Doubles follow .NET Framework: 15 significant digits, halves rounded away from zero in the decimal text.
"""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from winboot_lab.engine.exceptions import FormatException
from winboot_lab.engine.moments import (
    LOCAL,
    TICKS_PER_SECOND,
    UTC,
    ZONE,
    DateTime,
    DateTimeOffset,
    TimeSpan,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    INT64,
    INTEGER_RANGES,
    NOTHING,
    NUMBER_CLASSES,
    Array,
    ByteArray,
    Decorated,
    DotNetException,
    DotNetType,
    EnumValue,
    ErrorRecord,
    PSCustomObject,
    ScriptBlock,
    Single,
    Structured,
    Uri,
    Value,
    Version,
    type_of,
)

_WIDE = Context(prec=400, rounding=ROUND_HALF_UP)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


# -- numbers


def number_text(value: Value) -> str:
    """The general form of a number: what ToString() without a format gives."""
    kind = type(value)
    if kind is float:
        return double_text(value, 15)
    if kind is Single:
        return double_text(value, 7)
    if kind is Decimal:
        return format(value, "f")
    return int.__repr__(value)


def double_text(value: float, digits: int) -> str:
    """A float with at most that many significant digits, in scientific form from 1E+15 and below 1E-05."""
    special = _special(value)
    if special is not None:
        return special
    if value == 0:
        return "0"
    return _general(Decimal(f"{value:.{digits - 1}e}"), digits, "E")


def _special(value: float) -> str | None:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return None


def _general(number: Decimal, digits: int, letter: str) -> str:
    number = Context(prec=digits, rounding=ROUND_HALF_UP).plus(number)
    exponent = number.adjusted()
    if number == 0:
        return "0"
    if -5 < exponent < digits:
        text = format(number, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa = format(number.scaleb(-exponent, _WIDE), "f")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}{letter}{'+' if exponent >= 0 else '-'}{abs(exponent):02}"


def _as_decimal(value: Value) -> Decimal:
    kind = type(value)
    if kind is float:
        return Decimal(f"{value:.14e}")
    if kind is Single:
        return Decimal(f"{value:.6e}")
    return value if kind is Decimal else Decimal(int(value))


def _fixed(number: Decimal, places: int, *, grouped: bool) -> str:
    rounded = number.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=_WIDE)
    text = format(abs(rounded), ",f" if grouped else "f")
    return ("-" if rounded < 0 else "") + text


_STANDARD = re.compile(r"([A-Za-z])(\d{0,2})")


def format_number(value: Value, spec: str) -> str:
    """A number by a standard (`N2`) or custom (`#,##0.00`) format; raises FormatException."""
    kind = type(value)
    if kind in (float, Single):
        special = _special(value)
        if special is not None:
            return special
    match = _STANDARD.fullmatch(spec)
    if match is None:
        return _custom_number(_as_decimal(value), spec)
    letter, given = match.group(1), match.group(2)
    places = int(given) if given else None
    maker = _STANDARD_FORMATS.get(letter.upper())
    if maker is None:
        raise FormatException("Format specifier was invalid.")
    return maker(value, letter, places)


def _is_float(value: Value) -> bool:
    return type(value) in (float, Single)


def _is_integer(value: Value) -> bool:
    return not _is_float(value) and type(value) is not Decimal


def _format_d(value: Value, _letter: str, places: int | None) -> str:
    if not _is_integer(value):
        raise FormatException("Format specifier was invalid.")
    digits = str(abs(int(value))).rjust(places or 0, "0")
    return ("-" if value < 0 else "") + digits


def _format_x(value: Value, letter: str, places: int | None) -> str:
    if not _is_integer(value):
        raise FormatException("Format specifier was invalid.")
    number = int(value)
    if number < 0:
        low, _ = INTEGER_RANGES.get(type_of(value), INTEGER_RANGES[INT64])
        number += -2 * low
    return format(number, letter).rjust(places or 0, "0")


def _format_g(value: Value, letter: str, places: int | None) -> str:
    if not places:
        text = number_text(value)
        return text.replace("E", letter.lower()) if letter == "g" else text
    marker = "E" if letter == "G" else "e"
    return _general(_as_decimal(value), places, marker)


def _format_e(value: Value, letter: str, places: int | None) -> str:
    places = 6 if places is None else places
    number = _as_decimal(value)
    if number == 0:
        return f"{0:.{places}f}{letter}+000"
    number = Context(prec=places + 1, rounding=ROUND_HALF_UP).plus(number)
    exponent = number.adjusted()
    mantissa = _fixed(number.scaleb(-exponent, _WIDE), places, grouped=False)
    return f"{mantissa}{letter}{'+' if exponent >= 0 else '-'}{abs(exponent):03}"


def _as_single(value: float) -> float:
    """The nearest value that 32 bits hold."""
    nearest: float = struct.unpack("f", struct.pack("f", value))[0]
    return nearest


def _format_r(value: Value, _letter: str, _places: int | None) -> str:
    if type(value) is float:
        short = double_text(value, 15)
        return short if float(short) == value else double_text(value, 17)
    if type(value) is Single:
        short = double_text(value, 7)
        return short if _as_single(float(short)) == value else double_text(value, 9)
    raise FormatException("Format specifier was invalid.")


def _format_c(value: Value, _letter: str, places: int | None) -> str:
    text = _fixed(abs(_as_decimal(value)), 2 if places is None else places, grouped=True)
    return f"(\u00a4{text})" if value < 0 else f"\u00a4{text}"


_STANDARD_FORMATS: dict[str, Callable[[Value, str, int | None], str]] = {
    "D": _format_d,
    "X": _format_x,
    "G": _format_g,
    "E": _format_e,
    "R": _format_r,
    "C": _format_c,
    "N": lambda value, _, places: _fixed(_as_decimal(value), 2 if places is None else places, grouped=True),
    "F": lambda value, _, places: _fixed(_as_decimal(value), 2 if places is None else places, grouped=False),
    "P": lambda value, _, places: (
        _fixed(_as_decimal(value) * 100, 2 if places is None else places, grouped=True) + " %"
    ),
}

_CUSTOM_TOKEN = re.compile(r"'[^']*'?|\"[^\"]*\"?|\\.|[eE][+-]?0+|.", re.DOTALL)


def _custom_number(number: Decimal, spec: str) -> str:
    sections = _split_sections(spec)
    chosen, negative = sections[0], number < 0
    if negative and len(sections) > 1 and sections[1]:
        chosen, number, negative = sections[1], -number, False
    elif number == 0 and len(sections) > 2:
        chosen = sections[2]
    text, is_zero = _custom_section(abs(number), chosen)
    if is_zero and number != 0 and len(sections) > 2:
        text, _ = _custom_section(Decimal(0), sections[2])
        return text
    return ("-" if negative and not is_zero else "") + text


def _split_sections(spec: str) -> list[str]:
    sections = [""]
    for token in _CUSTOM_TOKEN.findall(spec):
        if token == ";":
            sections.append("")
        else:
            sections[-1] += token
    return sections


def _custom_section(number: Decimal, spec: str) -> tuple[str, bool]:
    tokens: list[str] = _CUSTOM_TOKEN.findall(spec)
    if any(len(token) > 1 and token[0] in "eE" for token in tokens):
        raise Refusal("value", spec, "custom number format with exponent")
    point = tokens.index(".") if "." in tokens else len(tokens)
    digits_before = [index for index, token in enumerate(tokens[:point]) if token in ("0", "#")]
    grouped = False
    for index in range(point):
        if tokens[index] == ",":
            if digits_before and digits_before[0] < index < digits_before[-1]:
                grouped = True
            elif digits_before and index > digits_before[-1]:
                number /= 1000
    number *= 100 ** tokens.count("%") * 1000 ** tokens.count("\u2030")
    decimals = [token for token in tokens[point:] if token in ("0", "#")]
    rounded = number.quantize(Decimal(1).scaleb(-len(decimals)), rounding=ROUND_HALF_UP, context=_WIDE)
    whole, _, fraction = format(rounded, "f").partition(".")
    least = len(digits_before) - next(
        (place for place, index in enumerate(digits_before) if tokens[index] == "0"), len(digits_before)
    )
    whole = whole.lstrip("0").rjust(least, "0")
    fraction = _trim_fraction(fraction, decimals)
    shown = _place_digits(tokens, point, whole, fraction, grouped=grouped)
    return shown, rounded == 0


def _trim_fraction(fraction: str, decimals: list[str]) -> str:
    keep = max((place + 1 for place, token in enumerate(decimals) if token == "0"), default=0)
    return fraction[:keep] + fraction[keep:].rstrip("0")


def _place_digits(tokens: list[str], point: int, whole: str, fraction: str, *, grouped: bool) -> str:
    digit_tokens = sum(1 for token in tokens[:point] if token in ("0", "#"))
    left = len(whole)
    out: list[str] = []
    seen = 0

    def put_whole(count: int) -> None:
        nonlocal left
        for _ in range(count):
            out.append(whole[len(whole) - left])
            left -= 1
            if grouped and left and left % 3 == 0:
                out.append(",")

    for token in tokens[:point]:
        if token in ("0", "#"):
            seen += 1
            remaining_after = digit_tokens - seen
            put_whole(max(0, left - remaining_after))
        elif token != ",":
            out.append(_literal(token))
    if digit_tokens == 0 and left:
        put_whole(left)
    if point < len(tokens):
        if fraction:
            out.append(".")
        rest = iter(fraction)
        for token in tokens[point + 1 :]:
            if token in ("0", "#"):
                out.append(next(rest, ""))
            elif token not in (".", ","):
                out.append(_literal(token))
    return "".join(out)


def _literal(token: str) -> str:
    if token[0] in "'\"" and len(token) > 1:
        return token[1:-1] if token[-1] == token[0] else token[1:]
    return token[1:] if token[0] == "\\" and len(token) > 1 else token


# -- dates and times

_DATE_STANDARD = {
    "d": "MM/dd/yyyy",
    "D": "dddd, dd MMMM yyyy",
    "f": "dddd, dd MMMM yyyy HH:mm",
    "F": "dddd, dd MMMM yyyy HH:mm:ss",
    "g": "MM/dd/yyyy HH:mm",
    "G": "MM/dd/yyyy HH:mm:ss",
    "m": "MMMM dd",
    "M": "MMMM dd",
    "o": "yyyy-MM-ddTHH:mm:ss.fffffffK",
    "O": "yyyy-MM-ddTHH:mm:ss.fffffffK",
    "r": "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
    "R": "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
    "s": "yyyy-MM-ddTHH:mm:ss",
    "t": "HH:mm",
    "T": "HH:mm:ss",
    "u": "yyyy-MM-dd HH:mm:ss'Z'",
    "U": "dddd, dd MMMM yyyy HH:mm:ss",
    "y": "yyyy MMMM",
    "Y": "yyyy MMMM",
}
_DATE_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|\\.|%.|d+|f+|F+|g+|h+|H+|K|m+|M+|s+|t+|y+|z+|.", re.DOTALL)


def format_date(value: DateTime | DateTimeOffset, spec: str) -> str:
    """A DateTime or DateTimeOffset by a standard or custom format."""
    moment = value if isinstance(value, DateTime) else value.clock
    offset = value.offset_ticks if isinstance(value, DateTimeOffset) else None
    if len(spec) == 1:
        if spec not in _DATE_STANDARD or (offset is not None and spec == "U"):
            raise FormatException("Input string was not in a correct format.")
        if spec in "rRu" and offset is not None:
            moment, offset = DateTime(moment.ticks - offset), 0
        spec = _DATE_STANDARD[spec]
    return "".join(_date_token(token, moment, offset) for token in _DATE_TOKEN.findall(spec))


def _date_token(token: str, moment: DateTime, offset: int | None) -> str:
    letter = token[0]
    if letter == "%" and len(token) == 2:
        return _date_token(token[1], moment, offset)
    if letter in "'\"\\" and len(token) > 1:
        return token[1:] if letter == "\\" else token[1:-1]
    maker = _DATE_PARTS.get(letter)
    if maker is not None:
        return maker(moment, len(token))
    if letter == "K":
        return _kind_suffix(moment, offset)
    if letter == "z":
        if offset is None:
            offset = 0 if moment.kind == UTC else ZONE.get()
        return _offset_text(offset, len(token))
    return token


def _offset_text(offset: int, width: int) -> str:
    minutes = abs(offset) // (60 * TICKS_PER_SECOND)
    sign = "-" if offset < 0 else "+"
    if width == 1:
        return f"{sign}{minutes // 60}"
    return f"{sign}{minutes // 60:02}" + (f":{minutes % 60:02}" if width > 2 else "")


def _kind_suffix(moment: DateTime, offset: int | None) -> str:
    if offset is not None:
        return _offset_text(offset, 3)
    if moment.kind == LOCAL:
        return _offset_text(ZONE.get(), 3)
    return "Z" if moment.kind == UTC else ""


def _padded(number: int, width: int) -> str:
    return str(number) if width == 1 else f"{number:02}"


def _day_part(moment: DateTime, width: int) -> str:
    day = moment.datetime()
    if width <= 2:
        return _padded(day.day, width)
    name = DAYS[day.weekday()]
    return name[:3] if width == 3 else name


def _month_part(moment: DateTime, width: int) -> str:
    month = moment.datetime().month
    if width <= 2:
        return _padded(month, width)
    return MONTHS[month - 1][:3] if width == 3 else MONTHS[month - 1]


def _year_part(moment: DateTime, width: int) -> str:
    year = moment.datetime().year
    if width <= 2:
        return _padded(year % 100, width)
    return f"{year:0{width}}"


def _fraction_part(moment: DateTime, width: int) -> str:
    if width > 7:
        raise FormatException("Input string was not in a correct format.")
    return f"{moment.ticks % TICKS_PER_SECOND:07}"[:width]


_DATE_PARTS: dict[str, Callable[[DateTime, int], str]] = {
    "d": _day_part,
    "M": _month_part,
    "y": _year_part,
    "f": _fraction_part,
    "F": lambda moment, width: _fraction_part(moment, width).rstrip("0"),
    "g": lambda moment, width: "A.D.",
    "h": lambda moment, width: _padded((moment.datetime().hour + 11) % 12 + 1, width),
    "H": lambda moment, width: _padded(moment.datetime().hour, width),
    "m": lambda moment, width: _padded(moment.datetime().minute, width),
    "s": lambda moment, width: _padded(moment.datetime().second, width),
    "t": lambda moment, width: ("AM" if moment.datetime().hour < 12 else "PM")[: 1 if width == 1 else 2],
}

_SPAN_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|\\.|%.|d+|h+|m+|s+|f+|F+|.", re.DOTALL)


def format_span(value: TimeSpan, spec: str) -> str:
    """A TimeSpan by a standard (`c`, `g`, `G`) or custom format."""
    if spec in ("", "c", "t", "T"):
        return str(value)
    seconds, fraction = divmod(abs(value.ticks), TICKS_PER_SECOND)
    days, seconds = divmod(seconds, 86_400)
    parts = {"d": days, "h": seconds // 3600, "m": seconds // 60 % 60, "s": seconds % 60}
    sign = "-" if value.ticks < 0 else ""
    if spec == "g":
        text = (f"{days}:" if days else "") + f"{parts['h']}:{parts['m']:02}:{parts['s']:02}"
        return sign + text + (f".{fraction:07}".rstrip("0") if fraction else "")
    if spec == "G":
        return f"{sign}{days}:{parts['h']:02}:{parts['m']:02}:{parts['s']:02}.{fraction:07}"
    if len(spec) == 1:
        raise FormatException("Input string was not in a correct format.")
    return "".join(_span_token(token, parts, fraction) for token in _SPAN_TOKEN.findall(spec))


def _span_token(token: str, parts: dict[str, int], fraction: int) -> str:
    letter = token[0]
    if letter == "%" and len(token) == 2:
        return _span_token(token[1], parts, fraction)
    if letter in "'\"\\" and len(token) > 1:
        return token[1:] if letter == "\\" else token[1:-1]
    if letter in parts:
        if letter != "d" and len(token) > 2:
            raise FormatException("Input string was not in a correct format.")
        return f"{parts[letter]:0{len(token)}}"
    if letter in "fF":
        digits = f"{fraction:07}"[: len(token)]
        return digits if letter == "f" else digits.rstrip("0")
    raise FormatException("Input string was not in a correct format.")


# -- anything


def format_guid(value: uuid.UUID, spec: str) -> str:
    """A Guid by N, D, B, P (X is refused)."""
    match spec.upper():
        case "" | "D":
            return str(value)
        case "N":
            return value.hex
        case "B":
            return "{" + str(value) + "}"
        case "P":
            return "(" + str(value) + ")"
        case "X":
            raise Refusal("value", "X", "Guid format")
    raise FormatException('Format String can be only "D", "d", "N", "n", "P", "p", "B", "b", "X" or "x".')


def format_enum(value: EnumValue, spec: str) -> str:
    """An enum value by G, F, D or X."""
    match spec.upper():
        case "" | "G" | "F":
            return str(value)
        case "D":
            return str(value.number)
        case "X":
            return f"{value.number & 0xFFFFFFFF:08X}"
    raise FormatException('Format String can be only "G", "g", "X", "x", "F", "f", "D" or "d".')


def format_value(value: Value, spec: str) -> str:
    """IFormattable.ToString(spec): values that know no formats ignore it."""
    if not spec:
        return dotnet_text(value)
    kind = type(value)
    if kind in NUMBER_CLASSES:
        return format_number(value, spec)
    maker = _FORMATTERS.get(kind)
    if maker is not None:
        return maker(value, spec)
    if kind is Decorated:
        return format_value(value.base, spec)
    return dotnet_text(value)


_FORMATTERS: dict[type, Callable[[Any, str], str]] = {
    DateTime: format_date,
    DateTimeOffset: format_date,
    TimeSpan: format_span,
    uuid.UUID: format_guid,
    EnumValue: format_enum,
}


def dotnet_text(value: Value) -> str:
    """.NET's ToString() without arguments ('' for $null)."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    maker = _TEXTS.get(kind)
    if maker is not None:
        return maker(value)
    if value is None or value is NOTHING:
        return ""
    if isinstance(value, DotNetException):
        return exception_text(value)
    if kind is Decorated:
        return dotnet_text(value.base)
    if kind in _TYPE_NAMED or not _writes_itself(kind) or isinstance(value, (list, bytearray)):
        return type_of(value).name
    return str(value)


def _writes_itself(kind: type) -> bool:
    return any("__str__" in step.__dict__ for step in kind.__mro__[:-1])


def exception_text(failure: DotNetException) -> str:
    """Exception.ToString(): type, message, inner exceptions."""
    text = type_of(failure).name + (f": {failure.message}" if failure.message else "")
    if failure.inner is not None:
        text += f" ---> {exception_text(failure.inner)}\r\n   --- End of inner exception stack trace ---"
    return text


def _structured_text(value: Structured) -> str:
    shown = value.properties.get("#text")
    return dotnet_text(shown.value) if shown is not None else value.type_name.partition("#")[0]


_TEXTS: dict[type, Callable[[Any], str]] = {
    **dict.fromkeys(NUMBER_CLASSES, number_text),
    bool: lambda value: "True" if value else "False",
    PSCustomObject: lambda value: "",
    EnumValue: str,
    DateTime: str,
    TimeSpan: str,
    DateTimeOffset: str,
    Version: str,
    uuid.UUID: str,
    DotNetType: lambda value: value.name,
    ErrorRecord: str,
    ScriptBlock: str,
    Structured: _structured_text,
    Uri: str,
}
_TYPE_NAMED = frozenset((Array, ByteArray))


# -- composite format strings

_ITEM = re.compile(r"\{\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?(?::((?:[^{}]|\{\{|\}\})*))?\}")
BAD_FORMAT = "Input string was not in a correct format."
BAD_INDEX = (
    "Index (zero based) must be greater than or equal to zero and less than the size of the argument list."
)


def format_string(template: str, arguments: Sequence[Value]) -> str:
    """String.Format: `{0,-8:N2}` items filled in; raises FormatException."""
    out: list[str] = []
    position = 0
    while position < len(template):
        letter = template[position]
        if letter not in "{}":
            end = position + 1
            while end < len(template) and template[end] not in "{}":
                end += 1
            out.append(template[position:end])
            position = end
        elif template[position : position + 2] == letter * 2:
            out.append(letter)
            position += 2
        else:
            match = _ITEM.match(template, position)
            if match is None:
                raise FormatException(BAD_FORMAT)
            out.append(_format_item(match, arguments))
            position = match.end()
    return "".join(out)


def _format_item(match: re.Match[str], arguments: Sequence[Value]) -> str:
    index = int(match.group(1))
    if index >= len(arguments):
        raise FormatException(BAD_INDEX)
    value = arguments[index]
    spec = (match.group(3) or "").replace("{{", "{").replace("}}", "}")
    text = "" if value is None else format_value(value, spec)
    width = int(match.group(2) or 0)
    return text.ljust(-width) if width < 0 else text.rjust(width)
