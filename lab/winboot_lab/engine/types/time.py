"""System.DateTime, TimeSpan, DateTimeOffset, Stopwatch, TimeZoneInfo: members. Now comes from the machine's clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from winboot_lab.engine import parsing
from winboot_lab.engine.door import ask_one
from winboot_lab.engine.dotnet import Runtime, dotnet, named
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentOutOfRangeException,
    OverflowException,
)
from winboot_lab.engine.formatting import format_date, format_span
from winboot_lab.engine.members import adds
from winboot_lab.engine.moments import (
    DATE_TIME,
    DATE_TIME_OFFSET,
    LOCAL,
    TICKS_PER_DAY,
    TICKS_PER_SECOND,
    TIME_SPAN,
    UTC,
    DateTime,
    DateTimeOffset,
    TimeSpan,
)
from winboot_lab.engine.types.text import is_american
from winboot_lab.engine.values import (
    ICOMPARABLE,
    IFORMATTABLE,
    CodeProperty,
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


DATE_TIME.prop("Ticks", "long", lambda self: Int64(self.ticks))
DATE_TIME.prop("Kind", "DateTimeKind", lambda self: enum_value("System.DateTimeKind", self.kind))


def _date(*parts: int) -> DateTime:
    try:
        return DateTime.at(*parts)
    except ValueError:
        raise ArgumentOutOfRangeException(
            None, "Year, Month, and Day parameters describe an un-representable DateTime."
        ) from None


DATE_TIME.constructor("int year, int month, int day")(_date)
DATE_TIME.constructor("int year, int month, int day, int hour, int minute, int second, int millisecond")(
    _date
)


@DATE_TIME.constructor("int year, int month, int day, int hour, int minute, int second, DateTimeKind kind")
def _date_of_kind(*parts: Value) -> DateTime:
    return DateTime(_date(*parts[:-1]).ticks, parts[-1].number)


DATE_TIME.static_field("MinValue", "datetime", DateTime(0))
DATE_TIME.static_prop("Now", "datetime", now, effect=True)
DATE_TIME.static_prop("UtcNow", "datetime", lambda runtime: now(runtime, UTC), effect=True)
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
DATE_TIME.method("Add(timespan value)")(
    lambda self, span: DateTime(parsing.checked_ticks(self.ticks + span.ticks), self.kind)
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
adds(
    "System.DateTime",
    CodeProperty("DateTime", lambda self: f"{format_date(self, 'D')} {format_date(self, 'T')}"),
)


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


TIME_SPAN.static_field("Zero", "timespan", TimeSpan(0))
TIME_SPAN.method("Add(timespan ts)")(lambda self, other: TimeSpan(self.ticks + other.ticks))
TIME_SPAN.method("ToString()")(str)
TIME_SPAN.method("ToString(string format)", "ToString(string format, System.IFormatProvider formatProvider)")(
    lambda self, spec, provider=None: format_span(self, spec or "")
)

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
WATCH.prop("Elapsed", "timespan", lambda runtime, self: self.elapsed(runtime), effect=True)
WATCH.prop(
    "ElapsedMilliseconds",
    "long",
    lambda runtime, self: Int64(self.elapsed(runtime).ticks // 10_000),
    effect=True,
)
WATCH.method("void Start()", effect=True)(lambda runtime, self: self.start(runtime))


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
