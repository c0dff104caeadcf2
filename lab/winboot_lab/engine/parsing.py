"""Values from text, as .NET's Parse methods and PowerShell's number scanner read it, by the invariant culture.

Every reader raises a .NET exception (FormatException, OverflowException ...) for text it does not accept.
"""

from __future__ import annotations

import ipaddress
import re
import uuid
from decimal import Decimal, InvalidOperation

from winboot_lab.engine.door import ask_one
from winboot_lab.engine.dotnet import RUNTIME
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentOutOfRangeException,
    DotNetException,
    FormatException,
    OverflowException,
)
from winboot_lab.engine.formatting import DAYS, MONTHS
from winboot_lab.engine.moments import (
    LOCAL,
    TICKS_PER_DAY,
    TICKS_PER_SECOND,
    UNSPECIFIED,
    UTC,
    ZONE,
    DateTime,
    DateTimeOffset,
    TimeSpan,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import INTEGER_RANGES, DotNetType, Int64, IPAddress, Value, Version

BAD_NUMBER = "Input string was not in a correct format."

# -- numbers

_MULTIPLIERS = {"kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40, "pb": 2**50}
_HEX = re.compile(r"([+-]?)0x([0-9a-f]*)(l?)(kb|mb|gb|tb|pb)?", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?)(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?([dl]?)(kb|mb|gb|tb|pb)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?(\d[\d,]*(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_MAX_DECIMAL = 2**96 - 1


def scan_number(text: str) -> Value:
    """A number written as in PowerShell source (`0x1F`, `1.5kb`, `10l`, `1e3`), or None for other text."""
    text = text.strip()
    match = _HEX.fullmatch(text)
    if match is not None:
        return _scan_hex(match)
    match = _NUMBER.fullmatch(text)
    return None if match is None else _scan_decimal(match)


def _scan_hex(match: re.Match[str]) -> Value:
    sign, digits, suffix, unit = match.groups()
    number = int(digits or "0", 16)
    if not suffix and number < 2**32:
        number -= 2**32 if number >= 2**31 and len(digits) == 8 else 0
    elif 2**63 <= number < 2**64:
        number -= 2**64
    elif number >= 2**64:
        return None
    number *= _MULTIPLIERS[unit.lower()] if unit else 1
    number = -number if sign == "-" else number
    return Int64(number) if suffix else sized_integer(number)


def _scan_decimal(match: re.Match[str]) -> Value:
    sign, digits, point, exponent, suffix, unit = match.groups()
    factor = _MULTIPLIERS[unit.lower()] if unit else 1
    factor = -factor if sign == "-" else factor
    if suffix in ("d", "D"):
        return Decimal(digits + (exponent or "")) * factor
    if suffix in ("l", "L"):
        number = int(Decimal(digits + (exponent or ""))) * factor
        return Int64(number) if -(2**63) <= number < 2**63 else None
    if point is None and exponent is None and digits.isdigit():
        return sized_integer(int(digits) * factor)
    return float(digits + (exponent or "")) * factor


def sized_integer(number: int) -> Value:
    """The smallest of Int32, Int64, Decimal and Double that holds a whole number."""
    if -(2**31) <= number < 2**31:
        return number
    if -(2**63) <= number < 2**63:
        return Int64(number)
    return Decimal(number) if abs(number) <= _MAX_DECIMAL else float(number)


def parse_double(text: str) -> float:
    """Double.Parse with AllowThousands."""
    bare = text.strip()
    if _THOUSANDS.fullmatch(bare) is not None:
        number = float(bare.replace(",", ""))
        if abs(number) == float("inf"):
            raise OverflowException("Value was either too large or too small for a Double.")
        return number
    special = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.get(bare)
    if special is None:
        raise FormatException(BAD_NUMBER)
    return special


def parse_decimal(text: str) -> Decimal:
    """Decimal.Parse (thousands separators yes, exponent no)."""
    bare = text.strip()
    match = _THOUSANDS.fullmatch(bare)
    if match is None or match.group(3):
        raise FormatException(BAD_NUMBER)
    try:
        number = Decimal(bare.replace(",", ""))
    except InvalidOperation:
        raise FormatException(BAD_NUMBER) from None
    if abs(number) > _MAX_DECIMAL:
        raise OverflowException("Value was either too large or too small for a Decimal.")
    return number


def parse_integer(text: str, kind: DotNetType, *, base: int = 10) -> int:
    """Int32.Parse and its kin: sign and surrounding white space only (hexadecimal: base 16, digits only)."""
    bare = text.strip(" \t\n\v\f\r")
    pattern = r"[+-]?\d+" if base == 10 else r"[0-9a-fA-F]+"
    if not bare.isascii() or re.fullmatch(pattern, bare) is None:
        raise FormatException(BAD_NUMBER)
    low, high = INTEGER_RANGES[kind]
    number = int(bare, base)
    if base == 16 and number > high and number <= high - low:
        number -= high - low + 1
    if not low <= number <= high:
        raise OverflowException(too_large(kind))
    return number


_ARTICLES = {
    "System.SByte": "a signed byte",
    "System.Byte": "an unsigned byte",
    "System.Int16": "an Int16",
    "System.Int32": "an Int32",
    "System.Int64": "an Int64",
    "System.Char": "a character",
}


def too_large(kind: DotNetType) -> str:
    """The text of the overflow exception for a target type."""
    return f"Value was either too large or too small for {_ARTICLES.get(kind.name, 'a ' + kind.short_name)}."


# -- versions, addresses, guids


def parse_version(text: str) -> Version:
    """Version.Parse."""
    pieces = text.split(".")
    if not 2 <= len(pieces) <= 4:
        raise ArgumentException("Version string portion was too short or too long.", "input")
    numbers = []
    for piece in pieces:
        bare = piece.strip()
        if re.fullmatch(r"[+-]?\d+", bare, re.ASCII) is None:
            raise FormatException(BAD_NUMBER)
        number = int(bare)
        if number < 0:
            raise ArgumentOutOfRangeException(
                "input", "Version's parameters must be greater than or equal to zero."
            )
        if number > 2**31 - 1:
            raise OverflowException("Value was either too large or too small for an Int32.")
        numbers.append(number)
    return Version(*numbers)


def parse_ip(text: str) -> IPAddress:
    """IPAddress.Parse: IPv6, and IPv4 with one to four parts, decimal, octal or hexadecimal."""
    bare = text
    if ":" in bare:
        bare = bare.removeprefix("[")
        address, _, scope = bare.removesuffix("]").partition("%")
        try:
            return IPAddress(ipaddress.IPv6Address(address), int(scope) if scope.isdigit() else 0)
        except ValueError:
            raise FormatException("An invalid IP address was specified.") from None
    numbers = [_address_part(part) for part in bare.split(".")]
    if len(numbers) > 4 or any(number > 255 for number in numbers[:-1]):
        raise FormatException("An invalid IP address was specified.")
    room = 4 - (len(numbers) - 1)
    if numbers[-1] >= 256**room:
        raise FormatException("An invalid IP address was specified.")
    total = numbers[-1]
    for place, number in enumerate(numbers[:-1]):
        total += number << (24 - 8 * place)
    return IPAddress(ipaddress.IPv4Address(total))


def _address_part(part: str) -> int:
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", part):
        return int(part, 16)
    if re.fullmatch(r"0[0-7]+", part):
        return int(part, 8)
    if re.fullmatch(r"[0-9]+", part):
        return int(part)
    raise FormatException("An invalid IP address was specified.")


_GUID = re.compile(
    r"\{?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\}?|\([0-9a-f-]{36}\)|[0-9a-f]{32}", re.IGNORECASE
)


def parse_guid(text: str) -> uuid.UUID:
    """Guid.Parse."""
    bare = text.strip()
    if _GUID.fullmatch(bare) is None or bare.startswith("{") != bare.endswith("}"):
        raise FormatException("Unrecognized Guid format.")
    return uuid.UUID(bare.strip("{}()").replace("-", ""))


# -- spans

_SPAN = re.compile(r"(-?)(?:(\d+)(?:\.(?=\d+:)))?(\d+):(\d+)(?::(\d+)(?:\.(\d{1,7}))?)?")
BAD_SPAN = "String was not recognized as a valid TimeSpan."
SPAN_RANGE = (
    "The TimeSpan could not be parsed because at least one of the numeric components is out of range or "
    "contains too many digits."
)


def parse_span(text: str) -> TimeSpan:
    """TimeSpan.Parse: `[-][d.]hh:mm[:ss[.fffffff]]` or whole days."""
    bare = text.strip()
    if re.fullmatch(r"-?\d+", bare):
        return TimeSpan(_in_range(int(bare) * TICKS_PER_DAY))
    match = _SPAN.fullmatch(bare)
    if match is None:
        if re.fullmatch(r"-?\d+:\d+:\d+:\d+(\.\d+)?", bare):
            days, _, rest = bare.lstrip("-").partition(":")
            return parse_span(("-" if bare.startswith("-") else "") + f"{days}.{rest}")
        raise FormatException(BAD_SPAN)
    sign, days, hours, minutes, seconds, fraction = match.groups()
    if int(hours) > 23 or int(minutes) > 59 or int(seconds or 0) > 59:
        raise OverflowException(SPAN_RANGE)
    total = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)
    ticks = int(days or 0) * TICKS_PER_DAY + total * TICKS_PER_SECOND + int((fraction or "0").ljust(7, "0"))
    return TimeSpan(_in_range(-ticks if sign else ticks))


def _in_range(ticks: int) -> int:
    if not TimeSpan.MIN <= ticks <= TimeSpan.MAX:
        raise OverflowException(SPAN_RANGE)
    return ticks


# -- dates

_TIME = (
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:[.,](?P<fraction>\d+))?)?)?"
    r"\s*(?P<half>[AaPp][Mm]?)?"
)
_ZONE = r"(?P<zone>[Zz]|GMT|UTC|[+-]\d{1,2}(?::?\d{2})?)?"
_WEEKDAY = r"(?:(?P<weekday>[A-Za-z]{3,9})\.?,?\s+)?"
_DATE_FORMS = tuple(
    re.compile(_WEEKDAY + form + r"(?:(?:[Tt]|\s+)" + _TIME + r")?\s*" + _ZONE)
    for form in (
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})",
        r"(?P<month>\d{1,2})[-/.](?P<day>\d{1,2})[-/.](?P<year>\d{4}|\d{2})",
        r"(?P<day>\d{1,2})[ -](?P<name>[A-Za-z]{3,9})[ -,]\s*(?P<year>\d{4}|\d{2})",
        r"(?P<name>[A-Za-z]{3,9})[ -](?P<day>\d{1,2}),?[ -](?P<year>\d{4})",
        r"(?P<name>[A-Za-z]{3,9}),?[ -](?P<year>\d{4})",
        r"(?P<year>\d{4})[-/](?P<month>\d{1,2})",
    )
)
_WORD = re.compile(r"[A-Za-z]+")
_KNOWN_WORDS = frozenset(
    [name.lower() for name in (*DAYS, *MONTHS)]
    + [name[:3].lower() for name in (*DAYS, *MONTHS)]
    + ["t", "z", "am", "pm", "a", "p", "gmt", "utc"]
)
BAD_DATE = "String was not recognized as a valid DateTime."


def parse_date_offset(text: str) -> tuple[DateTime, int | None]:
    """The clock reading in a text and its UTC offset in ticks (None without one). Raises FormatException."""
    bare = text.strip()
    for form in _DATE_FORMS:
        match = form.fullmatch(bare)
        if match is not None:
            return _date_from(match)
    word = next((w for w in _WORD.finditer(bare) if w.group().lower() not in _KNOWN_WORDS), None)
    if word is not None:
        raise FormatException(
            "The string was not recognized as a valid DateTime. There is an unknown word starting at index "
            f"{word.start()}."
        )
    if re.fullmatch(_TIME, bare) and ":" in bare:
        return parse_date_offset(f"{_today(text)} {bare}")
    if not bare or bare.isdigit():
        raise FormatException(BAD_DATE)
    raise Refusal("value", text, "text as a date")


def _today(text: str) -> str:
    """The machine's date: what a time without a date belongs to."""
    runtime = RUNTIME.get()
    if runtime is None:
        raise Refusal("value", text, "a time without a date, outside a script")
    moment = DateTime.of(ask_one(runtime, "clock.now", utc=True), UTC).to_local()
    return f"{moment.datetime():%Y-%m-%d}"


def _date_from(match: re.Match[str]) -> tuple[DateTime, int | None]:
    part = match.groupdict()
    month = _month_number(part["name"]) if part.get("name") else int(part["month"])
    year = int(part["year"])
    if len(part["year"]) == 2:
        year += 2000 if year < 50 else 1900
    hour = _hour(part)
    fraction = round(float("0." + (part["fraction"] or "0")) * TICKS_PER_SECOND)
    try:
        moment = DateTime.at(
            year, month, int(part.get("day") or 1), hour, int(part["minute"] or 0), int(part["second"] or 0)
        )
    except ValueError:
        raise FormatException(BAD_DATE) from None
    if part["weekday"] and not DAYS[moment.datetime().weekday()].lower().startswith(
        part["weekday"][:3].lower()
    ):
        raise FormatException(
            "String was not recognized as a valid DateTime because the day of week was incorrect."
        )
    return moment.moved(fraction), _zone_ticks(part["zone"])


def _hour(part: dict[str, str | None]) -> int:
    hour = int(part["hour"] or 0)
    if part["hour"] and part["minute"] is None and not part["half"]:
        raise FormatException(BAD_DATE)
    half = (part["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise FormatException(BAD_DATE)
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    return hour


def _month_number(name: str) -> int:
    lower = name.lower()
    for number, month in enumerate(MONTHS, 1):
        if lower in (month.lower(), month[:3].lower()):
            return number
    raise FormatException(BAD_DATE)


def _zone_ticks(zone: str | None) -> int | None:
    if not zone:
        return None
    if zone.upper() in ("Z", "GMT", "UTC"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0") if len(zone) > 3 else zone[1:].rjust(2, "0") + "00"
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-minutes if zone[0] == "-" else minutes) * 60 * TICKS_PER_SECOND


ASSUME_UNIVERSAL, ADJUST_TO_UNIVERSAL, ASSUME_LOCAL, ROUNDTRIP = 64, 16, 32, 128


def parse_date(text: str, styles: int = 0) -> DateTime:
    """DateTime.Parse: text with an offset becomes local time."""
    return apply_styles(*parse_date_offset(text), styles)


def apply_styles(moment: DateTime, offset: int | None, styles: int) -> DateTime:
    """What DateTimeStyles make of a reading and its offset."""
    if offset is None:
        if not styles & (ASSUME_UNIVERSAL | ASSUME_LOCAL):
            return DateTime(moment.ticks, UNSPECIFIED)
        given = DateTime(moment.ticks, UTC if styles & ASSUME_UNIVERSAL else LOCAL)
        return given.to_utc() if styles & ADJUST_TO_UNIVERSAL else given.to_local()
    utc = DateTime(moment.ticks - offset, UTC)
    stays = styles & ADJUST_TO_UNIVERSAL or (styles & ROUNDTRIP and offset == 0)
    return utc if stays else utc.to_local()


def parse_date_time_offset(text: str, styles: int = 0) -> DateTimeOffset:
    """DateTimeOffset.Parse: without an offset in the text it is the machine's."""
    moment, offset = parse_date_offset(text)
    if offset is None:
        offset = 0 if styles & ASSUME_UNIVERSAL else ZONE.get()
    if styles & ADJUST_TO_UNIVERSAL:
        return DateTimeOffset(moment.ticks - offset, 0)
    return DateTimeOffset(moment.ticks, offset)


_EXACT_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|\\.|%.|d+|f+|F+|h+|H+|K|m+|M+|s+|t+|y+|z+|.", re.DOTALL)
_EXACT_PARTS = {
    "yyyy": r"(?P<year>\d{4})",
    "yy": r"(?P<year>\d{2})",
    "MM": r"(?P<month>\d{2})",
    "M": r"(?P<month>\d{1,2})",
    "MMM": r"(?P<name>[A-Za-z]{3})",
    "MMMM": r"(?P<name>[A-Za-z]+)",
    "dd": r"(?P<day>\d{2})",
    "d": r"(?P<day>\d{1,2})",
    "ddd": r"(?P<weekday>[A-Za-z]{3})",
    "dddd": r"(?P<weekday>[A-Za-z]+)",
    "HH": r"(?P<hour>\d{2})",
    "H": r"(?P<hour>\d{1,2})",
    "hh": r"(?P<hour>\d{2})",
    "h": r"(?P<hour>\d{1,2})",
    "mm": r"(?P<minute>\d{2})",
    "m": r"(?P<minute>\d{1,2})",
    "ss": r"(?P<second>\d{2})",
    "s": r"(?P<second>\d{1,2})",
    "tt": r"(?P<half>[AaPp][Mm])",
    "t": r"(?P<half>[AaPp])",
    "K": r"(?P<zone>[Zz]|[+-]\d{2}:\d{2})?",
    "z": r"(?P<zone>[+-]\d{1,2})",
    "zz": r"(?P<zone>[+-]\d{2})",
    "zzz": r"(?P<zone>[+-]\d{2}:\d{2})",
}
_EXACT_STANDARD = {
    "o": "yyyy-MM-ddTHH:mm:ss.fffffffK",
    "O": "yyyy-MM-ddTHH:mm:ss.fffffffK",
    "s": "yyyy-MM-ddTHH:mm:ss",
    "u": "yyyy-MM-dd HH:mm:ss'Z'",
    "r": "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
    "R": "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
    "d": "MM/dd/yyyy",
    "t": "HH:mm",
    "T": "HH:mm:ss",
    "g": "MM/dd/yyyy HH:mm",
    "G": "MM/dd/yyyy HH:mm:ss",
}


def parse_date_exact(text: str, spec: str) -> tuple[DateTime, int | None]:
    """DateTime.ParseExact by one format: the reading and its offset."""
    if len(spec) == 1:
        if spec not in _EXACT_STANDARD:
            raise Refusal("value", spec, "standard format for ParseExact")
        spec = _EXACT_STANDARD[spec]
    pattern = ""
    for token in _EXACT_TOKEN.findall(spec):
        if token[0] in "fF" and token.strip("fF") == "":
            count = len(token)
            pattern += (
                rf"(?P<fraction>\d{{{count}}})" if token[0] == "f" else rf"(?P<fraction>\d{{0,{count}}})"
            )
        elif token in _EXACT_PARTS:
            pattern += _EXACT_PARTS[token]
        elif token[0] in "'\"" and len(token) > 1:
            pattern += re.escape(token[1:-1])
        else:
            pattern += re.escape(token.removeprefix("\\"))
    try:
        match = re.fullmatch(pattern, text)
    except re.error:
        raise Refusal("value", spec, "date format with a repeated part") from None
    if match is None:
        raise FormatException(BAD_DATE)
    found = match.groupdict()
    keys = ("year", "month", "day", "name", "weekday", "hour", "minute", "second", "fraction", "half", "zone")
    part: dict[str, str | None] = {key: found.get(key) for key in keys}
    return _exact_date(part)


def _exact_date(part: dict[str, str | None]) -> tuple[DateTime, int | None]:
    if part["year"] is None and (part["month"] or part["name"] or part["day"] or part["hour"]):
        raise Refusal("value", "ParseExact", "a format without a year means this year")
    year = int(part["year"] or 1)
    if part["year"] and len(part["year"]) == 2:
        year += 2000 if year < 50 else 1900
    month = _month_number(part["name"]) if part["name"] else int(part["month"] or 1)
    half = (part["half"] or "").lower()
    hour = int(part["hour"] or 0)
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    try:
        moment = DateTime.at(
            year, month, int(part["day"] or 1), hour, int(part["minute"] or 0), int(part["second"] or 0)
        )
    except ValueError:
        raise FormatException(BAD_DATE) from None
    ticks = int((part["fraction"] or "0").ljust(7, "0"))
    return moment.moved(ticks), _zone_ticks(part["zone"])


def checked_ticks(ticks: int) -> int:
    """Ticks that a DateTime can hold; raises ArgumentOutOfRangeException."""
    if not 0 <= ticks <= 3_155_378_975_999_999_999:
        failure: DotNetException = ArgumentOutOfRangeException(
            "value", "The added or subtracted value results in an un-representable DateTime."
        )
        raise failure
    return ticks
