"""Get-Process, Stop-Process, Wait-Process, and the methods of a Process object."""

from __future__ import annotations

from functools import partial

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.call import INT, STRINGS, Call, as_int, cmdlet, parameter, switch
from winboot_lab.windows.cmdlets.shapes import enum, has_wildcard, wildcard
from winboot_lab.windows.door import InSet, Parameter, Plain, Problem, Record
from winboot_lab.windows.failure import failure
from winboot_lab.windows.processes import PRIORITIES, Process
from winboot_lab.windows.session import Session

_MODULE = "Microsoft.PowerShell.Management"
_PROCESS = "System.Diagnostics.Process"
_EXCEPTION = "Microsoft.PowerShell.Commands.ProcessCommandException"
_CLASSES = {
    "Idle": 64,
    "BelowNormal": 16384,
    "Normal": 32,
    "AboveNormal": 32768,
    "High": 128,
    "RealTime": 256,
}


def show_process(session: Session, process: Process) -> Record:
    """A Process object."""
    path = process.path if process.path[1:2] == ":" else None
    priority = enum("System.Diagnostics.ProcessPriorityClass", _CLASSES[process.priority], process.priority)
    return Record(
        _PROCESS,
        {
            "Id": process.pid,
            "Name": process.name,
            "ProcessName": process.name,
            "Path": path,
            "StartTime": session.machine.local(process.started),
            "HasExited": not process.running,
            "ExitCode": process.exit_code,
            "SessionId": process.session,
            "PriorityClass": priority,
            "BasePriority": PRIORITIES[process.priority],
            "Responding": True,
        },
        handle=f"process {process.pid}",
        text=f"{_PROCESS} ({process.name})",
    )


def _error(call: Call, identifier: str, message: str, target: Plain) -> Problem:
    word = call.command.name.replace("-", "")
    identifier = f"{identifier},Microsoft.PowerShell.Commands.{word}Command"
    return Problem(message, identifier, "ObjectNotFound", _EXCEPTION, target=target)


def _chosen(call: Call) -> list[Process]:
    processes = call.machine.processes
    if call.has("InputObject"):
        found = [processes.get(as_int(r["Id"])) for r in call.records("InputObject")]
        return [p for p in found if p is not None]
    if call.has("Id"):
        chosen: list[Process] = []
        for pid in call.numbers("Id"):
            process = processes.get(pid)
            if process is None:
                message = f"Cannot find a process with the process identifier {pid}."
                call.fail(_error(call, "NoProcessFoundForGivenId", message, pid))
            else:
                chosen.append(process)
        return chosen
    if not call.has("Name"):
        return processes.all()
    return _by_name(call)


def _by_name(call: Call) -> list[Process]:
    found: list[Process] = []
    for name in call.texts("Name"):
        fits = wildcard(name)
        matched = [p for p in call.machine.processes.all() if fits(p.name)]
        if not matched and not has_wildcard(name):
            message = f'Cannot find a process with the name "{name}". Verify the process name and call the cmdlet again.'
            call.fail(_error(call, "NoProcessFoundForGivenName", message, name))
        found.extend(matched)
    return found


@cmdlet(
    "Get-Process",
    _MODULE,
    Parameter("Name", STRINGS, ("ProcessName",), sets=(InSet("Name", position=0, by_name=True),)),
    Parameter("Id", f"{INT}[]", ("PID",), sets=(InSet("Id", mandatory=True, by_name=True),)),
    Parameter("InputObject", f"{_PROCESS}[]", sets=(InSet("InputObject", mandatory=True, by_value=True),)),
    default_set="Name",
    aliases=("gps", "ps"),
)
def get_process(call: Call) -> None:
    """Running processes."""
    call.give(*(show_process(call.session, p) for p in sorted(_chosen(call), key=lambda p: p.name.lower())))


@cmdlet(
    "Stop-Process",
    _MODULE,
    Parameter("Id", f"{INT}[]", sets=(InSet("Id", mandatory=True, position=0, by_name=True),)),
    Parameter("Name", STRINGS, ("ProcessName",), sets=(InSet("Name", mandatory=True, by_name=True),)),
    Parameter(
        "InputObject",
        f"{_PROCESS}[]",
        sets=(InSet("InputObject", mandatory=True, position=0, by_value=True),),
    ),
    switch("Force"),
    switch("PassThru"),
    default_set="Id",
    aliases=("kill", "spps"),
    should_process=True,
)
def stop_process(call: Call) -> None:
    """End processes at once."""
    for process in _chosen(call):
        call.machine.processes.kill(process.pid)
        if call.flag("PassThru"):
            call.give(show_process(call.session, process))


@cmdlet(
    "Wait-Process",
    _MODULE,
    Parameter("Id", f"{INT}[]", ("PID",), sets=(InSet("Id", mandatory=True, by_name=True),)),
    Parameter(
        "Name", STRINGS, ("ProcessName",), sets=(InSet("Name", mandatory=True, position=0, by_name=True),)
    ),
    Parameter("InputObject", f"{_PROCESS}[]", sets=(InSet("InputObject", mandatory=True, by_value=True),)),
    parameter("Timeout", INT, aliases=("TimeoutSec",)),
    default_set="Name",
)
def wait_process(call: Call) -> None:
    """Wait until processes have ended."""
    seconds = float(call.number("Timeout")) if call.has("Timeout") else 10.0**9
    for process in _chosen(call):
        if not call.machine.wait(seconds, call.session.alive, partial(_ended, process)):
            word = "ProcessNotTerminated,Microsoft.PowerShell.Commands.WaitProcessCommand"
            message = f'This command stopped operation of "{process.name} ({process.pid})" because process '
            message += f'"{process.name} ({process.pid})" is not stopped in the specified time-out.'
            call.fail(Problem(message, word, "CloseError", "System.TimeoutException", target=process.name))


def _ended(process: Process) -> bool:
    return not process.running


def call_process(session: Session, record: Record, member: str, arguments: list[Plain]) -> tuple[Plain, ...]:
    """The methods of a Process; the first object is its new state."""
    processes = session.machine.processes
    pid = as_int(record["Id"])
    process = processes.get(pid)
    properties = dict(record.properties)
    answer: tuple[Plain, ...] = ()
    match member.lower(), len(arguments):
        case "kill", 0:
            if process is None:
                message = "Cannot process request because the process has exited."
                raise failure("System.InvalidOperationException", message, hresult=0x80131509)
            processes.kill(pid)
        case "waitforexit", 0 | 1:
            seconds = as_int(arguments[0]) / 1000 if arguments else 10.0**9
            ended = session.machine.wait(seconds, session.alive, lambda: processes.get(pid) is None)
            answer = (ended or processes.get(pid) is None,) if arguments else ()
        case "refresh" | "dispose" | "close", 0:
            pass
        case _:
            raise Refusal("member", f"{_PROCESS}.{member}()")
    properties["HasExited"] = processes.get(pid) is None
    properties["ExitCode"] = processes.exit_code(pid)
    return (Record(_PROCESS, properties, record.handle, record.text), *answer)
