"""Get-Date and New-TimeSpan."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import cmdlet
from winboot_lab.engine.door import ask_one
from winboot_lab.engine.dotnet import enum_type
from winboot_lab.engine.exceptions import ArgumentOutOfRangeException
from winboot_lab.engine.formatting import format_date
from winboot_lab.engine.moments import LOCAL, TICKS_PER_DAY, TICKS_PER_SECOND, DateTime
from winboot_lab.engine.values import Decorated, NoteProperty, enum_value

Value = Any

HINT = "Microsoft.PowerShell.Commands.DisplayHintType"
enum_type(HINT, {"Date": 0, "Time": 1, "DateTime": 2})

_NAMED = {
    "filedate": "yyyyMMdd",
    "filedateuniversal": "yyyyMMddZ",
    "filedatetime": "yyyyMMddTHHmmssffff",
    "filedatetimeuniversal": "yyyyMMddTHHmmssffffZ",
}

# UFormat letters and the .NET format that says the same.
_UNIX = {
    "Y": "yyyy",
    "y": "yy",
    "m": "MM",
    "d": "dd",
    "H": "HH",
    "I": "hh",
    "M": "mm",
    "S": "ss",
    "B": "MMMM",
    "b": "MMM",
    "A": "dddd",
    "a": "ddd",
    "p": "tt",
    "T": "HH:mm:ss",
    "R": "HH:mm",
    "D": "MM/dd/yy",
}


def now(call: Call) -> DateTime:
    """The machine's local time."""
    return DateTime.of(ask_one(call.scope, "clock.now"), LOCAL)


@cmdlet(
    "Get-Date",
    """
    Date: datetime position=0 value name alias=LastWriteTime
    Year: int range=1,9999
    Month: int range=1,12
    Day: int range=1,31
    Hour: int range=0,23
    Minute: int range=0,59
    Second: int range=0,59
    Millisecond: int range=0,999
    UFormat: string set=UFormat
    Format: string set=net
    """,
    default_set="net",
)
def get_date(call: Call) -> None:
    """A point in time as an object, or as text when a format is given."""
    given: DateTime | None = call["Date"]
    moment = _with_parts(call, now(call) if given is None else given)
    if call.has("Format"):
        call.write(_formatted(call, moment, call["Format"]))
    elif call.has("UFormat"):
        call.write(_unix(call, moment, call["UFormat"]))
    else:
        made = Decorated(moment)
        made.extension.add(NoteProperty("DisplayHint", enum_value(HINT, "DateTime")))
        call.write(made)


def _with_parts(call: Call, moment: DateTime) -> DateTime:
    """The time with the parts that were given put in."""
    if not any(
        call.has(name) for name in ("Year", "Month", "Day", "Hour", "Minute", "Second", "Millisecond")
    ):
        return moment
    old = moment.datetime()
    below = moment.ticks % TICKS_PER_SECOND % 10_000
    try:
        made = DateTime.at(
            call.get("Year", old.year),
            call.get("Month", old.month),
            call.get("Day", old.day),
            call.get("Hour", old.hour),
            call.get("Minute", old.minute),
            call.get("Second", old.second),
            call.get("Millisecond", old.microsecond // 1000),
            moment.kind,
        )
    except ValueError:
        raise ArgumentOutOfRangeException(
            None, "Year, Month, and Day parameters describe an un-representable DateTime."
        ) from None
    return made.moved(below)


def _formatted(call: Call, moment: DateTime, spec: str) -> str:
    named = _NAMED.get(spec.lower())
    if named is not None:
        if spec.lower().endswith("universal"):
            moment = moment.to_utc()
        return format_date(moment, named.replace("T", "'T'").replace("Z", "'Z'"))
    if len(spec) == 1 and spec not in "oOrRsu":
        call.refuse(f"-Format {spec}, which depends on the culture")
    return format_date(moment, spec)


def _unix(call: Call, moment: DateTime, spec: str) -> str:
    out: list[str] = []
    letters = iter(spec.removeprefix("+"))
    for letter in letters:
        if letter != "%":
            out.append(letter)
            continue
        code = next(letters, "")
        if code == "j":
            first = DateTime.at(moment.datetime().year)
            out.append(f"{(moment.ticks - first.ticks) // TICKS_PER_DAY + 1:03}")
        elif code == "%":
            out.append("%")
        elif code in _UNIX:
            out.append(format_date(moment, _UNIX[code]))
        else:
            call.refuse(f"-UFormat %{code}")
    return "".join(out)
