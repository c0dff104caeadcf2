"""Get-WinEvent, Get-EventLog, New-EventLog, Write-EventLog."""

from __future__ import annotations

from datetime import datetime

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.call import INT, STRINGS, Call, as_int, as_text, cmdlet, parameter, switch
from winboot_lab.windows.cmdlets.shapes import enum
from winboot_lab.windows.door import InSet, Parameter, Plain, Problem, Record
from winboot_lab.windows.eventlog import LEVELS, Event
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.primitives.system import show_event

_DIAGNOSTICS = "Microsoft.PowerShell.Diagnostics"
_MANAGEMENT = "Microsoft.PowerShell.Management"
_KEYS = ("logname", "providername", "id", "level", "starttime", "endtime")


def _no_match(call: Call) -> Problem:
    message = "No events were found that match the specified selection criteria."
    identifier = "NoMatchingEventsFound,Microsoft.PowerShell.Commands.GetWinEventCommand"
    return Problem(message, identifier, "ObjectNotFound", "System.Exception")


def _no_log(call: Call, log: str) -> Problem:
    message = f'There is not an event log on the localhost computer that matches "{log}".'
    identifier = "NoMatchingLogsFound,Microsoft.PowerShell.Commands.GetWinEventCommand"
    return Problem(message, identifier, "ObjectNotFound", "System.Exception", target=log)


@cmdlet(
    "Get-WinEvent",
    _DIAGNOSTICS,
    Parameter("LogName", STRINGS, sets=(InSet("GetLogSet", position=0, by_value=True, by_name=True),)),
    Parameter(
        "ProviderName", STRINGS, sets=(InSet("GetProviderSet", mandatory=True, position=0, by_name=True),)
    ),
    Parameter(
        "FilterHashtable",
        "System.Collections.Hashtable[]",
        sets=(InSet("HashQuerySet", mandatory=True, position=0),),
    ),
    parameter("MaxEvents", "System.Int64"),
    switch("Oldest"),
    default_set="GetLogSet",
)
def get_win_event(call: Call) -> None:
    """Entries, newest first."""
    wanted: dict[str, Plain] = {}
    tables = call.parameters.get("FilterHashtable")
    if tables is not None:
        wanted = _one_table(tables)
    for name in ("LogName", "ProviderName"):
        if call.has(name):
            wanted[name.lower()] = [*call.texts(name)]
    found = _find(call, wanted)
    if found is None:
        return
    if call.flag("Oldest"):
        found.reverse()
    if call.has("MaxEvents"):
        found = found[: call.number("MaxEvents")]
    if not found:
        call.fail(_no_match(call))
    call.give(*(show_event(call.session, e) for e in found))


def _one_table(tables: Plain) -> dict[str, Plain]:
    if isinstance(tables, list):
        if len(tables) != 1:
            raise Refusal("parameter", "Get-WinEvent -FilterHashtable", "more than one table")
        tables = tables[0]
    if not isinstance(tables, dict):
        raise Refusal("parameter", "Get-WinEvent -FilterHashtable", "a hashtable was expected")
    for key in tables:
        if key.lower() not in _KEYS:
            raise Refusal("parameter", f"Get-WinEvent -FilterHashtable {key}")
    return {k.lower(): v for k, v in tables.items()}


def _listed(value: Plain) -> list[Plain]:
    return value if isinstance(value, list) else [value]


def _find(call: Call, wanted: dict[str, Plain]) -> list[Event] | None:
    logs = call.machine.events.logs
    names = [as_text(n) for n in _listed(wanted.get("logname"))] if "logname" in wanted else list(logs)
    found: list[Event] = []
    for name in names:
        if name.lower() not in logs:
            call.fail(_no_log(call, name))
            return None
        found.extend(call.machine.events.query(name))
    # In one log the newest is the record with the highest number, whatever the clock said. Source ("records are numbered
    # sequentially"; oldest number and count give the newest: learn.microsoft.com, Event Log Records).
    if len(names) > 1:
        found.sort(key=lambda e: e.time, reverse=True)
    if "providername" in wanted:
        providers = [as_text(p).lower() for p in _listed(wanted["providername"])]
        found = [e for e in found if e.provider.lower() in providers]
    if "id" in wanted:
        ids = [as_int(i) for i in _listed(wanted["id"])]
        found = [e for e in found if e.id in ids]
    if "level" in wanted:
        levels = [as_int(n) for n in _listed(wanted["level"])]
        found = [e for e in found if LEVELS[e.level] in levels]
    first, last = wanted.get("starttime"), wanted.get("endtime")
    if isinstance(first, datetime):
        found = [e for e in found if _local(call, e.time) >= _local(call, first)]
    if isinstance(last, datetime):
        found = [e for e in found if _local(call, e.time) <= _local(call, last)]
    return found


def _local(call: Call, when: datetime) -> datetime:
    return when if when.tzinfo is None else call.machine.local(when)


@cmdlet(
    "Get-EventLog",
    _MANAGEMENT,
    parameter("LogName", position=0, mandatory=True, aliases=("LN",)),
    parameter("InstanceId", "System.Int64[]", 1),
    parameter("Source", STRINGS, aliases=("ABO",)),
    parameter("Newest", INT),
    parameter("EntryType", STRINGS, aliases=("ET",)),
)
def get_event_log(call: Call) -> None:
    """Entries of a classic log, newest first."""
    found = call.machine.events.query(call.text("LogName"))
    if call.has("Source"):
        sources = [s.lower() for s in call.texts("Source")]
        found = [e for e in found if e.provider.lower() in sources]
    if call.has("InstanceId"):
        found = [e for e in found if e.id in call.numbers("InstanceId")]
    if call.has("EntryType"):
        kinds = [k.lower() for k in call.texts("EntryType")]
        found = [e for e in found if e.level.lower() in kinds]
    if not found:
        identifier = "GetEventLogNoEntriesFound,Microsoft.PowerShell.Commands.GetEventLogCommand"
        call.fail(Problem("No matches found", identifier, "ObjectNotFound", "System.ArgumentException"))
    for event in found[: call.number("Newest", len(found))]:
        call.give(
            Record(
                "System.Diagnostics.EventLogEntry",
                {
                    "Index": event.record_id,
                    "EventID": event.id,
                    "InstanceId": event.id,
                    "Source": event.provider,
                    "EntryType": enum(
                        "System.Diagnostics.EventLogEntryType", LEVELS[event.level], event.level
                    ),
                    "Message": event.message,
                    "TimeGenerated": call.machine.local(event.time),
                    "TimeWritten": call.machine.local(event.time),
                },
            )
        )


@cmdlet(
    "New-EventLog",
    _MANAGEMENT,
    parameter("LogName", position=0, mandatory=True, aliases=("LN",)),
    parameter("Source", STRINGS, 1, mandatory=True, aliases=("SRC",)),
    should_process=True,
)
def new_event_log(call: Call) -> None:
    """Register sources, with a new log if need be."""
    for source in call.texts("Source"):
        try:
            call.machine.events.create_source(source, call.text("LogName"))
        except Failure:
            message = f'The "{source}" source is already registered on the "localhost" computer.'
            identifier = "EventLogSourceExists,Microsoft.PowerShell.Commands.NewEventLogCommand"
            exception = "System.InvalidOperationException"
            call.fail(Problem(message, identifier, "InvalidOperation", exception, target=source))


@cmdlet(
    "Write-EventLog",
    _MANAGEMENT,
    parameter("LogName", position=0, mandatory=True, aliases=("LN",)),
    parameter("Source", position=1, mandatory=True, aliases=("SRC",)),
    parameter("EventId", INT, 2, mandatory=True, aliases=("ID", "EID")),
    parameter("EntryType", position=3, aliases=("ET",), words=("Error", "Warning", "Information")),
    parameter("Message", position=4, mandatory=True, aliases=("MSG",)),
    parameter("Category", "System.Int16"),
)
def write_event_log(call: Call) -> None:
    """Write through a registered source."""
    source = call.text("Source")
    log = call.machine.events.log_of(source)
    if log is None:
        message = f'The source name "{source}" does not exist on computer "localhost".'
        identifier = "Source does not exist,Microsoft.PowerShell.Commands.WriteEventLogCommand"
        call.fail(
            Problem(
                message, identifier, "InvalidOperation", "System.InvalidOperationException", target=source
            )
        )
        return
    kind = call.text("EntryType", "Information").capitalize()
    call.machine.events.write(log, source, call.number("EventId"), call.text("Message"), kind)
