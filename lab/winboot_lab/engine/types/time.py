"""System.DateTime, TimeSpan, DateTimeOffset, Stopwatch, TimeZoneInfo: members. Now comes from the machine's clock."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from typing import Any

from winboot_lab.engine import parsing
from winboot_lab.engine.convert import offset_of
from winboot_lab.engine.door import ask_one
from winboot_lab.engine.dotnet import Reference, Runtime, dotnet, named
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
    DotNetException,
    FormatException,
    OverflowException,
)
from winboot_lab.engine.formatting import format_date, format_span
from winboot_lab.engine.members import adds
from winboot_lab.engine.moments import (
    DATE_TIME,
    DATE_TIME_OFFSET,
    FILE_TIME_EPOCH_TICKS,
    LOCAL,
    MAX_TICKS,
    TICKS_PER_DAY,
    TICKS_PER_SECOND,
    TIME_SPAN,
    UNIX_EPOCH_TICKS,
    UNSPECIFIED,
    UTC,
    ZONE,
    DateTime,
    DateTimeOffset,
    TimeSpan,
)
from winboot_lab.engine.types.text import is_american
from winboot_lab.engine.values import (
    ICOMPARABLE,
    IFORMATTABLE,
    CodeProperty,
    EnumValue,
    Instance,
    Int64,
    Value,
    enum_value,
)

for _kind in (DATE_TIME, DATE_TIME_OFFSET, TIME_SPAN):
    _kind.base = named("System.ValueType")
    _kind.interfaces = (ICOMPARABLE, IFORMATTABLE)


def zone_ticks(machine: Any) -> int:
    """How far the machine's local time is from UTC."""
    return int(machine.invoke("clock.zone", {}).objects[0]["offset_minutes"]) * 60 * TICKS_PER_SECOND


def now(runtime: Runtime, kind: int = LOCAL) -> DateTime:
    """The machine's time."""
    moment = DateTime.of(ask_one(runtime, "clock.now", utc=True), UTC)
    return moment if kind == UTC else moment.to_local()


# -- DateTime


def _python(self: DateTime) -> Value:
    return self.datetime()


for _name, _get in (
    ("Year", lambda self: _python(self).year),
    ("Month", lambda self: _python(self).month),
    ("Day", lambda self: _python(self).day),
    ("Hour", lambda self: _python(self).hour),
    ("Minute", lambda self: _python(self).minute),
    ("Second", lambda self: _python(self).second),
    ("Millisecond", lambda self: self.ticks // 10_000 % 1000),
    ("DayOfYear", lambda self: _python(self).timetuple().tm_yday),
):
    DATE_TIME.prop(_name, "int", _get)
    DATE_TIME_OFFSET.prop(_name, "int", lambda self, _get=_get: _get(self.clock))
DATE_TIME.prop("Ticks", "long", lambda self: Int64(self.ticks))
DATE_TIME.prop("Date", "datetime", lambda self: self.date)
DATE_TIME.prop("TimeOfDay", "timespan", lambda self: self.time_of_day)
DATE_TIME.prop("Kind", "DateTimeKind", lambda self: enum_value("System.DateTimeKind", self.kind))


def _day_of_week(self: DateTime) -> EnumValue:
    return enum_value("System.DayOfWeek", (self.ticks // TICKS_PER_DAY + 1) % 7)


DATE_TIME.prop("DayOfWeek", "DayOfWeek", _day_of_week)


def _date(*parts: int) -> DateTime:
    try:
        return DateTime.at(*parts)
    except ValueError:
        raise ArgumentOutOfRangeException(
            None, "Year, Month, and Day parameters describe an un-representable DateTime."
        ) from None


DATE_TIME.constructor("long ticks")(lambda ticks: DateTime(parsing.checked_ticks(ticks)))
DATE_TIME.constructor("long ticks, DateTimeKind kind")(lambda ticks, kind: DateTime(ticks, kind.number))
DATE_TIME.constructor("int year, int month, int day")(_date)
DATE_TIME.constructor("int year, int month, int day, int hour, int minute, int second")(_date)
DATE_TIME.constructor("int year, int month, int day, int hour, int minute, int second, int millisecond")(
    _date
)


@DATE_TIME.constructor("int year, int month, int day, int hour, int minute, int second, DateTimeKind kind")
def _date_of_kind(*parts: Value) -> DateTime:
    return DateTime(_date(*parts[:-1]).ticks, parts[-1].number)


@DATE_TIME.constructor(
    "int year, int month, int day, int hour, int minute, int second, int millisecond, DateTimeKind kind"
)
def _date_of_kind_ms(*parts: Value) -> DateTime:
    return DateTime(_date(*parts[:-1]).ticks, parts[-1].number)


DATE_TIME.static_field("MinValue", "datetime", DateTime(0))
DATE_TIME.static_field("MaxValue", "datetime", DateTime(MAX_TICKS))
DATE_TIME.static_prop("Now", "datetime", now, effect=True)
DATE_TIME.static_prop("UtcNow", "datetime", lambda runtime: now(runtime, UTC), effect=True)
DATE_TIME.static_prop("Today", "datetime", lambda runtime: now(runtime).date, effect=True)
_UNITS = (
    ("Days", TICKS_PER_DAY),
    ("Hours", 3600 * TICKS_PER_SECOND),
    ("Minutes", 60 * TICKS_PER_SECOND),
    ("Seconds", TICKS_PER_SECOND),
    ("Milliseconds", 10_000),
)


def _adder(ticks: int) -> Callable[[DateTime, float], DateTime]:
    def add(self: DateTime, amount: float) -> DateTime:
        # .NET Framework rounds what it adds to whole milliseconds, halves away from zero.
        whole = int(amount * (ticks // 10_000) + (0.5 if amount >= 0 else -0.5)) * 10_000
        return DateTime(parsing.checked_ticks(self.ticks + whole), self.kind)

    return add


for _unit, _ticks in _UNITS:
    DATE_TIME.method(f"Add{_unit}(double value)")(_adder(_ticks))
DATE_TIME.method("AddTicks(long value)")(
    lambda self, ticks: DateTime(parsing.checked_ticks(self.ticks + ticks), self.kind)
)
DATE_TIME.method("Add(timespan value)")(
    lambda self, span: DateTime(parsing.checked_ticks(self.ticks + span.ticks), self.kind)
)


@DATE_TIME.method("AddMonths(int months)")
def _add_months(self: DateTime, months: int) -> DateTime:
    moment = _python(self)
    total = moment.year * 12 + moment.month - 1 + months
    year, month = divmod(total, 12)
    if not 1 <= year <= 9999:
        raise ArgumentOutOfRangeException(
            "months", "The added or subtracted value results in an un-representable DateTime."
        )
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return DateTime(DateTime.at(year, month + 1, day).ticks + self.ticks % TICKS_PER_DAY, self.kind)


DATE_TIME.method("AddYears(int value)")(lambda self, years: _add_months(self, years * 12))
DATE_TIME.method("Subtract(datetime value)")(lambda self, other: TimeSpan(self.ticks - other.ticks))
DATE_TIME.method("Subtract(timespan value)")(
    lambda self, span: DateTime(parsing.checked_ticks(self.ticks - span.ticks), self.kind)
)


_AMERICAN = {
    "d": "M/d/yyyy",
    "D": "dddd, MMMM d, yyyy",
    "t": "h:mm tt",
    "T": "h:mm:ss tt",
    "f": "dddd, MMMM d, yyyy h:mm tt",
    "F": "dddd, MMMM d, yyyy h:mm:ss tt",
    "g": "M/d/yyyy h:mm tt",
    "G": "M/d/yyyy h:mm:ss tt",
    "M": "MMMM d",
    "m": "MMMM d",
    "Y": "MMMM yyyy",
    "y": "MMMM yyyy",
}
"""What the standard formats mean to the culture en-US."""


def _text(self: DateTime | DateTimeOffset, spec: str | None = None, provider: Value = None) -> str:
    if is_american(provider):
        offset = " zzz" if isinstance(self, DateTimeOffset) and not spec else ""
        return format_date(self, _AMERICAN.get(spec or "G", spec or "") + offset)
    return format_date(self, spec) if spec else str(self)


for _kind in (DATE_TIME, DATE_TIME_OFFSET):
    _kind.method("ToString()")(_text)
    _kind.method("ToString(string format)")(_text)
    _kind.method("ToString(System.IFormatProvider provider)")(
        lambda self, provider: _text(self, None, provider)
    )
    _kind.method("ToString(string format, System.IFormatProvider provider)")(_text)
DATE_TIME.method("ToUniversalTime()")(lambda self: self.to_utc())
DATE_TIME.method("ToLocalTime()")(lambda self: self.to_local())
DATE_TIME.method("ToShortDateString()")(lambda self: format_date(self, "d"))
adds(
    "System.DateTime",
    CodeProperty("DateTime", lambda self: f"{format_date(self, 'D')} {format_date(self, 'T')}"),
)
DATE_TIME.method("ToLongDateString()")(lambda self: format_date(self, "D"))
DATE_TIME.method("ToShortTimeString()")(lambda self: format_date(self, "t"))
DATE_TIME.method("ToLongTimeString()")(lambda self: format_date(self, "T"))
DATE_TIME.method("ToFileTime()")(lambda self: Int64(self.to_utc().ticks - FILE_TIME_EPOCH_TICKS))


@DATE_TIME.method("ToFileTimeUtc()")
def _file_time_utc(self: DateTime) -> Int64:
    moment = self.to_utc() if self.kind == LOCAL else self
    return Int64(moment.ticks - FILE_TIME_EPOCH_TICKS)


def _binary(self: DateTime) -> Int64:
    number = self.ticks | (self.kind << 62)
    return Int64(number - 2**64 if number >= 2**63 else number)


DATE_TIME.method("ToBinary()")(_binary)


@DATE_TIME.method("CompareTo(object value)")
@TIME_SPAN.method("CompareTo(object value)")
def _compare_to(self: DateTime | TimeSpan, other: Value) -> int:
    if other is None:
        return 1
    if type(other) is not type(self):
        raise ArgumentException(f"Object must be of type {type(self).__name__}.")
    return (self.ticks > other.ticks) - (self.ticks < other.ticks)


DATE_TIME.method("IsDaylightSavingTime()")(lambda self: False)
DATE_TIME.static_method("DaysInMonth(int year, int month)")(
    lambda year, month: calendar.monthrange(year, month)[1]
)
DATE_TIME.static_method("IsLeapYear(int year)")(calendar.isleap)
DATE_TIME.static_method("Compare(datetime t1, datetime t2)")(
    lambda a, b: (a.ticks > b.ticks) - (a.ticks < b.ticks)
)
DATE_TIME.static_method("SpecifyKind(datetime value, DateTimeKind kind)")(
    lambda value, kind: DateTime(value.ticks, kind.number)
)
DATE_TIME.static_method("FromFileTime(long fileTime)")(
    lambda time: DateTime(time + FILE_TIME_EPOCH_TICKS, UTC).to_local()
)
DATE_TIME.static_method("FromFileTimeUtc(long fileTime)")(
    lambda time: DateTime(time + FILE_TIME_EPOCH_TICKS, UTC)
)


@DATE_TIME.static_method("FromBinary(long dateData)")
def _from_binary(number: int) -> DateTime:
    bits = number & 0xFFFFFFFFFFFFFFFF
    return DateTime(bits & (2**62 - 1), {0: UNSPECIFIED, 1: UTC}.get(bits >> 62, LOCAL))


def _needs(text: str | None) -> str:
    if text is None:
        raise ArgumentNullException("s", "String reference not set to an instance of a String.")
    return text


@DATE_TIME.static_method("Parse(string s)", "Parse(string s, System.IFormatProvider provider)")
def _parse(text: str, _provider: Value = None) -> DateTime:
    return parsing.parse_date(_needs(text))


DATE_TIME.static_method(
    "Parse(string s, System.IFormatProvider provider, System.Globalization.DateTimeStyles styles)"
)(lambda text, provider, styles: parsing.parse_date(_needs(text), styles.number))


def _exact(text: str, specs: list[str], styles: int) -> DateTime:
    for spec in specs:
        try:
            moment, offset = parsing.parse_date_exact(text, spec)
        except FormatException:
            continue
        if spec in ("r", "R", "u") and not styles:
            return DateTime(moment.ticks, UNSPECIFIED)
        return parsing.apply_styles(moment, offset, styles)
    raise FormatException(parsing.BAD_DATE)


DATE_TIME.static_method("ParseExact(string s, string format, System.IFormatProvider provider)")(
    lambda text, spec, provider: _exact(_needs(text), [spec], 0)
)
DATE_TIME.static_method(
    "ParseExact(string s, string format, System.IFormatProvider provider, System.Globalization.DateTimeStyles style)"
)(lambda text, spec, provider, styles: _exact(_needs(text), [spec], styles.number))
DATE_TIME.static_method(
    "ParseExact(string s, string[] formats, System.IFormatProvider provider, System.Globalization.DateTimeStyles style)"
)(lambda text, specs, provider, styles: _exact(_needs(text), list(specs), styles.number))


def _try(make: Callable[[], Value], out: Reference, default: Value) -> bool:
    try:
        out.value = make()
    except DotNetException:
        out.value = default
        return False
    return True


DATE_TIME.static_method("TryParse(string s, out datetime result)")(
    lambda text, out: _try(lambda: parsing.parse_date(_needs(text)), out, DateTime(0))
)
DATE_TIME.static_method(
    "TryParse(string s, System.IFormatProvider provider, System.Globalization.DateTimeStyles styles, out datetime result)"
)(
    lambda text, provider, styles, out: _try(
        lambda: parsing.parse_date(_needs(text), styles.number), out, DateTime(0)
    )
)
DATE_TIME.static_method(
    "TryParseExact(string s, string format, System.IFormatProvider provider, System.Globalization.DateTimeStyles style, "
    "out datetime result)"
)(
    lambda text, spec, provider, styles, out: _try(
        lambda: _exact(_needs(text), [spec], styles.number), out, DateTime(0)
    )
)
DATE_TIME.static_method(
    "TryParseExact(string s, string[] formats, System.IFormatProvider provider, "
    "System.Globalization.DateTimeStyles style, out datetime result)"
)(
    lambda text, specs, provider, styles, out: _try(
        lambda: _exact(_needs(text), list(specs), styles.number), out, DateTime(0)
    )
)
DATE_TIME.refuses("GetDateTimeFormats GetTypeCode ToOADate FromOADate GetHashCode")

# -- TimeSpan

for _name, _size, _wrap in (
    ("Days", TICKS_PER_DAY, None),
    ("Hours", 3600 * TICKS_PER_SECOND, 24),
    ("Minutes", 60 * TICKS_PER_SECOND, 60),
    ("Seconds", TICKS_PER_SECOND, 60),
    ("Milliseconds", 10_000, 1000),
):

    def _part(self: TimeSpan, size: int = _size, wrap: int | None = _wrap) -> int:
        count = abs(self.ticks) // size
        count = count % wrap if wrap else count
        return -count if self.ticks < 0 else count

    TIME_SPAN.prop(_name, "int", _part)
    TIME_SPAN.prop(f"Total{_name}", "double", lambda self, size=_size: self.ticks / size)

    def _from(value: float, size: int = _size) -> TimeSpan:
        # .NET Framework keeps whole milliseconds here.
        milliseconds = value * (size / 10_000)
        if milliseconds != milliseconds:
            raise ArgumentException("TimeSpan does not accept floating point Not-a-Number values.")
        whole = int(milliseconds + (0.5 if value >= 0 else -0.5))
        if abs(whole) > TimeSpan.MAX // 10_000:
            raise OverflowException("TimeSpan overflowed because the duration is too long.")
        return TimeSpan(whole * 10_000)

    TIME_SPAN.static_method(f"From{_name}(double value)")(_from)
TIME_SPAN.prop("Ticks", "long", lambda self: Int64(self.ticks))


@TIME_SPAN.constructor("int hours, int minutes, int seconds")
def _span(hours: int, minutes: int, seconds: int) -> TimeSpan:
    return TimeSpan((hours * 3600 + minutes * 60 + seconds) * TICKS_PER_SECOND)


@TIME_SPAN.constructor("int days, int hours, int minutes, int seconds")
@TIME_SPAN.constructor("int days, int hours, int minutes, int seconds, int milliseconds")
def _long_span(days: int, hours: int, minutes: int, seconds: int, milliseconds: int = 0) -> TimeSpan:
    return TimeSpan(days * TICKS_PER_DAY + _span(hours, minutes, seconds).ticks + milliseconds * 10_000)


TIME_SPAN.constructor("long ticks")(lambda ticks: TimeSpan(int(ticks)))
TIME_SPAN.static_field("Zero", "timespan", TimeSpan(0))
TIME_SPAN.static_field("MaxValue", "timespan", TimeSpan(TimeSpan.MAX))
TIME_SPAN.static_field("MinValue", "timespan", TimeSpan(TimeSpan.MIN))
for _name, _count in (
    ("TicksPerDay", TICKS_PER_DAY),
    ("TicksPerHour", 3600 * TICKS_PER_SECOND),
    ("TicksPerMinute", 60 * TICKS_PER_SECOND),
    ("TicksPerSecond", TICKS_PER_SECOND),
    ("TicksPerMillisecond", 10_000),
):
    TIME_SPAN.static_field(_name, "long", Int64(_count))
TIME_SPAN.static_method("FromTicks(long value)")(lambda ticks: TimeSpan(int(ticks)))
TIME_SPAN.method("Add(timespan ts)")(lambda self, other: TimeSpan(self.ticks + other.ticks))
TIME_SPAN.method("Subtract(timespan ts)")(lambda self, other: TimeSpan(self.ticks - other.ticks))
TIME_SPAN.method("Negate()")(lambda self: TimeSpan(-self.ticks))
TIME_SPAN.method("Duration()")(lambda self: TimeSpan(abs(self.ticks)))
TIME_SPAN.static_method("Compare(timespan t1, timespan t2)")(
    lambda a, b: (a.ticks > b.ticks) - (a.ticks < b.ticks)
)
TIME_SPAN.method("ToString()")(str)
TIME_SPAN.method("ToString(string format)", "ToString(string format, System.IFormatProvider formatProvider)")(
    lambda self, spec, provider=None: format_span(self, spec or "")
)
TIME_SPAN.static_method("Parse(string s)", "Parse(string s, System.IFormatProvider provider)")(
    lambda text, provider=None: parsing.parse_span(_needs(text))
)
TIME_SPAN.static_method("TryParse(string s, out timespan result)")(
    lambda text, out: _try(lambda: parsing.parse_span(_needs(text)), out, TimeSpan(0))
)
TIME_SPAN.refuses("ParseExact TryParseExact GetHashCode")

# -- DateTimeOffset

_OFFSET = DATE_TIME_OFFSET
_OFFSET.prop("Ticks", "long", lambda self: Int64(self.ticks))
_OFFSET.prop("UtcTicks", "long", lambda self: Int64(self.utc_ticks))
_OFFSET.prop("Offset", "timespan", lambda self: TimeSpan(self.offset_ticks))
_OFFSET.prop("DateTime", "datetime", lambda self: self.clock)
_OFFSET.prop("UtcDateTime", "datetime", lambda self: DateTime(self.utc_ticks, UTC))
_OFFSET.prop("LocalDateTime", "datetime", lambda self: DateTime(self.utc_ticks, UTC).to_local())
_OFFSET.prop("Date", "datetime", lambda self: self.clock.date)
_OFFSET.prop("TimeOfDay", "timespan", lambda self: self.clock.time_of_day)
_OFFSET.prop("DayOfWeek", "DayOfWeek", lambda self: _day_of_week(self.clock))
_OFFSET.constructor("datetime dateTime")(offset_of)


@_OFFSET.constructor("datetime dateTime, timespan offset")
def _with_offset(moment: DateTime, offset: TimeSpan) -> DateTimeOffset:
    if moment.kind == UTC and offset.ticks:
        raise ArgumentException("The UTC Offset for Utc DateTime instances must be 0.", "offset")
    return DateTimeOffset(moment.ticks, offset.ticks)


@_OFFSET.constructor("long ticks, timespan offset")
def _ticks_with_offset(ticks: int, offset: TimeSpan) -> DateTimeOffset:
    return DateTimeOffset(int(ticks), offset.ticks)


@_OFFSET.constructor("int year, int month, int day, int hour, int minute, int second, timespan offset")
def _parts_with_offset(*parts: Value) -> DateTimeOffset:
    return DateTimeOffset(_date(*parts[:-1]).ticks, parts[-1].ticks)


_OFFSET.static_prop("Now", "DateTimeOffset", lambda runtime: offset_of(now(runtime)), effect=True)
_OFFSET.static_prop("UtcNow", "DateTimeOffset", lambda runtime: offset_of(now(runtime, UTC)), effect=True)
_OFFSET.static_field("MinValue", "DateTimeOffset", DateTimeOffset(0))
_OFFSET.static_field("MaxValue", "DateTimeOffset", DateTimeOffset(MAX_TICKS))
_OFFSET.static_method("FromUnixTimeSeconds(long seconds)")(
    lambda seconds: DateTimeOffset(UNIX_EPOCH_TICKS + int(seconds) * TICKS_PER_SECOND)
)
_OFFSET.static_method("FromUnixTimeMilliseconds(long milliseconds)")(
    lambda milliseconds: DateTimeOffset(UNIX_EPOCH_TICKS + int(milliseconds) * 10_000)
)
_OFFSET.method("ToUnixTimeSeconds()")(
    lambda self: Int64((self.utc_ticks - UNIX_EPOCH_TICKS) // TICKS_PER_SECOND)
)
_OFFSET.method("ToUnixTimeMilliseconds()")(lambda self: Int64((self.utc_ticks - UNIX_EPOCH_TICKS) // 10_000))
_OFFSET.method("ToUniversalTime()")(lambda self: DateTimeOffset(self.utc_ticks, 0))
_OFFSET.method("ToLocalTime()")(lambda self: DateTimeOffset(self.utc_ticks + ZONE.get(), ZONE.get()))
_OFFSET.method("ToOffset(timespan offset)")(
    lambda self, offset: DateTimeOffset(self.utc_ticks + offset.ticks, offset.ticks)
)
_OFFSET.method("EqualsExact(DateTimeOffset other)")(
    lambda self, other: self.ticks == other.ticks and self.offset_ticks == other.offset_ticks
)
_OFFSET.method("CompareTo(DateTimeOffset other)")(
    lambda self, other: (self.utc_ticks > other.utc_ticks) - (self.utc_ticks < other.utc_ticks)
)


def _moved(self: DateTimeOffset, moment: DateTime) -> DateTimeOffset:
    return DateTimeOffset(moment.ticks, self.offset_ticks)


for _unit, _ticks in _UNITS:
    _add = _adder(_ticks)
    _OFFSET.method(f"Add{_unit}(double value)")(
        lambda self, value, _add=_add: _moved(self, _add(self.clock, value))
    )
_OFFSET.method("AddTicks(long value)")(
    lambda self, ticks: DateTimeOffset(self.ticks + ticks, self.offset_ticks)
)
_OFFSET.method("AddMonths(int months)")(lambda self, months: _moved(self, _add_months(self.clock, months)))
_OFFSET.method("AddYears(int years)")(lambda self, years: _moved(self, _add_months(self.clock, years * 12)))
_OFFSET.method("Add(timespan value)")(
    lambda self, span: DateTimeOffset(self.ticks + span.ticks, self.offset_ticks)
)
_OFFSET.method("Subtract(DateTimeOffset value)")(
    lambda self, other: TimeSpan(self.utc_ticks - other.utc_ticks)
)
_OFFSET.method("Subtract(timespan value)")(
    lambda self, span: DateTimeOffset(self.ticks - span.ticks, self.offset_ticks)
)
_OFFSET.static_method("Parse(string input)", "Parse(string input, System.IFormatProvider provider)")(
    lambda text, provider=None: parsing.parse_date_time_offset(_needs(text))
)
_OFFSET.static_method(
    "Parse(string input, System.IFormatProvider provider, System.Globalization.DateTimeStyles styles)"
)(lambda text, provider, styles: parsing.parse_date_time_offset(_needs(text), styles.number))
_OFFSET.static_method("TryParse(string input, out DateTimeOffset result)")(
    lambda text, out: _try(lambda: parsing.parse_date_time_offset(_needs(text)), out, DateTimeOffset(0))
)


@_OFFSET.static_method("ParseExact(string input, string format, System.IFormatProvider formatProvider)")
def _offset_exact(text: str, spec: str, _provider: Value) -> DateTimeOffset:
    moment, offset = parsing.parse_date_exact(_needs(text), spec)
    return DateTimeOffset(moment.ticks, ZONE.get() if offset is None else offset)


_OFFSET.refuses("ToFileTime FromFileTime TryParseExact Compare GetHashCode")

# -- Stopwatch


class Stopwatch(Instance):
    """System.Diagnostics.Stopwatch on the machine's monotonic clock."""

    def __init__(self) -> None:
        self.gathered = 0.0
        self.started: float | None = None

    def elapsed(self, runtime: Runtime) -> TimeSpan:
        running = 0.0 if self.started is None else ask_one(runtime, "clock.ticks") - self.started
        return TimeSpan.from_seconds(self.gathered + running)

    def start(self, runtime: Runtime) -> None:
        if self.started is None:
            self.started = ask_one(runtime, "clock.ticks")

    def stop(self, runtime: Runtime) -> None:
        if self.started is not None:
            self.gathered += ask_one(runtime, "clock.ticks") - self.started
            self.started = None


WATCH = dotnet("System.Diagnostics.Stopwatch", Stopwatch)
WATCH.constructor("")(Stopwatch)
WATCH.static_field("Frequency", "long", Int64(TICKS_PER_SECOND))
WATCH.static_field("IsHighResolution", "bool", True)
WATCH.prop("IsRunning", "bool", lambda self: self.started is not None)
WATCH.prop("Elapsed", "timespan", lambda runtime, self: self.elapsed(runtime), effect=True)
WATCH.prop(
    "ElapsedMilliseconds",
    "long",
    lambda runtime, self: Int64(self.elapsed(runtime).ticks // 10_000),
    effect=True,
)
WATCH.prop("ElapsedTicks", "long", lambda runtime, self: Int64(self.elapsed(runtime).ticks), effect=True)
WATCH.method("void Start()", effect=True)(lambda runtime, self: self.start(runtime))
WATCH.method("void Stop()", effect=True)(lambda runtime, self: self.stop(runtime))


@WATCH.method("void Reset()")
def _reset(self: Stopwatch) -> None:
    self.gathered, self.started = 0.0, None


@WATCH.method("void Restart()", effect=True)
def _restart(runtime: Runtime, self: Stopwatch) -> None:
    _reset(self)
    self.start(runtime)


@WATCH.static_method("StartNew()", effect=True)
def _start_new(runtime: Runtime) -> Stopwatch:
    made = Stopwatch()
    made.start(runtime)
    return made


@WATCH.static_method("GetTimestamp()", effect=True)
def _timestamp(runtime: Runtime) -> Int64:
    return Int64(int(ask_one(runtime, "clock.ticks") * TICKS_PER_SECOND))


WATCH.complete()

# -- TimeZoneInfo


class TimeZone(Instance):
    """System.TimeZoneInfo: the machine's zone (`local`), which has no daylight saving time, or UTC."""

    def __init__(self, *, local: bool) -> None:
        self.local = local

    @property
    def offset(self) -> int:
        return ZONE.get() if self.local else 0


ZONE_TYPE = dotnet("System.TimeZoneInfo", TimeZone)
for _name, _local in (("Local", True), ("Utc", False)):
    ZONE_TYPE.static_field(_name, "System.TimeZoneInfo", TimeZone(local=_local))


def _zone_id(runtime: Runtime, self: TimeZone) -> str:
    return str(ask_one(runtime, "clock.zone")["id"]) if self.local else "UTC"


ZONE_TYPE.prop("Id", "string", _zone_id, effect=True)
ZONE_TYPE.prop("BaseUtcOffset", "timespan", lambda self: TimeSpan(self.offset))
ZONE_TYPE.prop("SupportsDaylightSavingTime", "bool", lambda self: False)
ZONE_TYPE.method("GetUtcOffset(datetime dateTime)")(lambda self, moment: TimeSpan(self.offset))
ZONE_TYPE.static_method("ConvertTimeToUtc(datetime dateTime)")(lambda moment: moment.to_utc())
ZONE_TYPE.refuses(
    "DisplayName DaylightName StandardName IsDaylightSavingTime FindSystemTimeZoneById ConvertTime "
    "ConvertTimeBySystemTimeZoneId "
    "ConvertTimeFromUtc GetSystemTimeZones ClearCachedData GetAdjustmentRules HasSameRules ToSerializedString"
)
