"""DateTime, TimeSpan and DateTimeOffset, counted in ticks of 100 nanoseconds as .NET does.

Local time is the machine's: `ZONE` holds its distance from UTC while a script runs.
"""

from __future__ import annotations

import datetime as py
from contextvars import ContextVar
from dataclasses import dataclass
from typing import ClassVar

from winboot_lab.engine.dotnet import dotnet

TICKS_PER_SECOND = 10_000_000
TICKS_PER_DAY = 86_400 * TICKS_PER_SECOND
UNIX_EPOCH_TICKS = 621_355_968_000_000_000
FILE_TIME_EPOCH_TICKS = 504_911_232_000_000_000

UNSPECIFIED, UTC, LOCAL = 0, 1, 2

ZONE: ContextVar[int] = ContextVar("distance of local time from UTC, in ticks", default=0)

_EPOCH = py.datetime(1, 1, 1, tzinfo=py.UTC)


@dataclass(frozen=True, slots=True, order=True)
class TimeSpan:
    """A length of time; `ticks` may be negative."""

    ticks: int

    MIN: ClassVar[int] = -(2**63)
    MAX: ClassVar[int] = 2**63 - 1

    @classmethod
    def of(cls, delta: py.timedelta) -> TimeSpan:
        """From Python's timedelta."""
        return cls((delta.days * 86_400 + delta.seconds) * TICKS_PER_SECOND + delta.microseconds * 10)

    @classmethod
    def from_seconds(cls, seconds: float) -> TimeSpan:
        """From seconds, rounded to whole ticks."""
        return cls(round(seconds * TICKS_PER_SECOND))

    @property
    def total_seconds(self) -> float:
        return self.ticks / TICKS_PER_SECOND

    def timedelta(self) -> py.timedelta:
        """As Python's timedelta (microseconds: the last digit of the ticks is lost)."""
        return py.timedelta(microseconds=self.ticks // 10)

    def __str__(self) -> str:
        """The constant form: `[-][d.]hh:mm:ss[.fffffff]`."""
        sign = "-" if self.ticks < 0 else ""
        seconds, fraction = divmod(abs(self.ticks), TICKS_PER_SECOND)
        days, seconds = divmod(seconds, 86_400)
        text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return sign + (f"{days}." if days else "") + text + (f".{fraction:07}" if fraction else "")


@dataclass(frozen=True, slots=True)
class DateTime:
    """A point in time. `kind` is 0 unspecified, 1 UTC, 2 local; comparisons look at the ticks alone."""

    ticks: int
    kind: int = UNSPECIFIED

    @classmethod
    def of(cls, moment: py.datetime, kind: int | None = None) -> DateTime:
        """From Python's datetime; aware ones become UTC unless `kind` says otherwise."""
        if kind is None:
            kind = UNSPECIFIED if moment.tzinfo is None else UTC
        aware = moment.replace(tzinfo=py.UTC) if moment.tzinfo is None else moment.astimezone(py.UTC)
        return cls(TimeSpan.of(aware - _EPOCH).ticks, kind)

    @classmethod
    def at(
        cls,
        year: int,
        month: int = 1,
        day: int = 1,
        hour: int = 0,
        minute: int = 0,
        second: int = 0,
        millisecond: int = 0,
        kind: int = UNSPECIFIED,
    ) -> DateTime:
        """From its parts; raises ValueError when there is no such time."""
        moment = py.datetime(year, month, day, hour, minute, second, tzinfo=py.UTC)
        return cls(TimeSpan.of(moment - _EPOCH).ticks + millisecond * 10_000, kind)

    def datetime(self) -> py.datetime:
        """As Python's aware datetime in UTC, rounded down to microseconds."""
        return _EPOCH + py.timedelta(microseconds=self.ticks // 10)

    def moved(self, ticks: int) -> DateTime:
        """The same kind of time, `ticks` later."""
        return DateTime(self.ticks + ticks, self.kind)

    def to_utc(self) -> DateTime:
        """The same moment as UTC; an unspecified time is taken for local."""
        return self if self.kind == UTC else DateTime(self.ticks - ZONE.get(), UTC)

    def to_local(self) -> DateTime:
        """The same moment as local time; an unspecified time is taken for UTC."""
        return self if self.kind == LOCAL else DateTime(self.ticks + ZONE.get(), LOCAL)

    @classmethod
    def local_of(cls, moment: py.datetime) -> DateTime:
        """The local time of an aware moment."""
        return cls.of(moment, UTC).to_local()

    @property
    def date(self) -> DateTime:
        return DateTime(self.ticks - self.ticks % TICKS_PER_DAY, self.kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DateTime) and self.ticks == other.ticks

    def __lt__(self, other: DateTime) -> bool:
        return self.ticks < other.ticks

    def __hash__(self) -> int:
        return hash(self.ticks)

    def __str__(self) -> str:
        """Invariant general form: 01/02/2024 03:04:05."""
        moment = self.datetime()
        return f"{moment:%m/%d/}{moment.year:04}{moment:%H:%M:%S}"[:10] + f" {moment:%H:%M:%S}"


@dataclass(frozen=True, slots=True)
class DateTimeOffset:
    """A clock reading (`ticks`, local to the offset) with its distance from UTC."""

    ticks: int
    offset_ticks: int = 0

    @property
    def utc_ticks(self) -> int:
        return self.ticks - self.offset_ticks

    @property
    def clock(self) -> DateTime:
        """The reading without the offset, of unspecified kind."""
        return DateTime(self.ticks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DateTimeOffset) and self.utc_ticks == other.utc_ticks

    def __lt__(self, other: DateTimeOffset) -> bool:
        return self.utc_ticks < other.utc_ticks

    def __hash__(self) -> int:
        return hash(self.utc_ticks)

    def __str__(self) -> str:
        sign = "-" if self.offset_ticks < 0 else "+"
        minutes = abs(self.offset_ticks) // (60 * TICKS_PER_SECOND)
        return f"{self.clock} {sign}{minutes // 60:02}:{minutes % 60:02}"


DATE_TIME = dotnet(
    "System.DateTime", DateTime, kind="value", accelerators=["datetime"], default=lambda: DateTime(0)
)
TIME_SPAN = dotnet(
    "System.TimeSpan", TimeSpan, kind="value", accelerators=["timespan"], default=lambda: TimeSpan(0)
)
DATE_TIME_OFFSET = dotnet(
    "System.DateTimeOffset", DateTimeOffset, kind="value", default=lambda: DateTimeOffset(0)
)
