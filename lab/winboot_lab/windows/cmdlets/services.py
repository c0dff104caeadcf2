"""Get-, Start-, Stop-, Restart-, Set- and New-Service, and the methods of a ServiceController."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.call import STRING, STRINGS, Call, as_text, cmdlet, parameter, switch
from winboot_lab.windows.cmdlets.shapes import enum, has_wildcard, wildcard
from winboot_lab.windows.door import InSet, Parameter, Plain, Problem, Record
from winboot_lab.windows.failure import Failure, failure
from winboot_lab.windows.scm import AUTO, DEMAND, DISABLED, STATUS_NUMBERS, Service
from winboot_lab.windows.session import Session

_MODULE = "Microsoft.PowerShell.Management"
_CONTROLLER = "System.ServiceProcess.ServiceController"
_EXCEPTION = "Microsoft.PowerShell.Commands.ServiceCommandException"
_STARTS = {0: "Boot", 1: "System", 2: "Automatic", 3: "Manual", 4: "Disabled"}
_START_NUMBERS = {"automatic": AUTO, "manual": DEMAND, "disabled": DISABLED}


def show_service(session: Session, service: Service) -> Record:
    """A ServiceController: a snapshot until Refresh()."""
    services = session.machine.services
    needed: list[Plain] = []
    for name in service.depends:
        found = services.find(name)
        if found is not None:
            needed.append(_short(found))
    dependents: list[Plain] = [_short(s) for s in services.dependents(service)]
    record = _short(service)
    runs = service.status == "Running"
    record.properties |= {
        "DependentServices": dependents,
        "ServicesDependedOn": needed,
        "RequiredServices": needed,
        "CanStop": runs,
        "CanPauseAndContinue": False,
        "CanShutdown": runs,
        "MachineName": ".",
        "ServiceType": enum("System.ServiceProcess.ServiceType", service.kind, "Win32OwnProcess"),
    }
    return record


def _short(service: Service) -> Record:
    status = enum(
        "System.ServiceProcess.ServiceControllerStatus", STATUS_NUMBERS[service.status], service.status
    )
    start = enum("System.ServiceProcess.ServiceStartMode", service.start, _STARTS[service.start])
    return Record(
        _CONTROLLER,
        {
            "Name": service.name,
            "ServiceName": service.name,
            "DisplayName": service.display,
            "Status": status,
            "StartType": start,
        },
        handle=f"service {service.name}",
        text=_CONTROLLER,
    )


def _error(call: Call, identifier: str, category: str, message: str, name: str) -> Problem:
    word = call.command.name.replace("-", "")
    return Problem(
        message,
        f"{identifier},Microsoft.PowerShell.Commands.{word}Command",
        category,
        _EXCEPTION,
        target=name,
    )


_NAMES = Parameter(
    "Name",
    STRINGS,
    ("ServiceName",),
    sets=(InSet("Default", position=0, by_value=True, by_name=True),),
)
_NAMES_NEEDED = Parameter(
    "Name",
    STRINGS,
    ("ServiceName",),
    sets=(InSet("Default", mandatory=True, position=0, by_value=True, by_name=True),),
)
_DISPLAY = Parameter("DisplayName", STRINGS, sets=(InSet("DisplayName", mandatory=True),))
_OBJECTS = Parameter(
    "InputObject",
    f"{_CONTROLLER}[]",
    sets=(InSet("InputObject", mandatory=True, position=0, by_value=True),),
)


def _chosen(call: Call) -> list[Service]:
    services = call.machine.services
    if call.has("InputObject"):
        found = [services.find(as_text(r["Name"])) for r in call.records("InputObject")]
        return [s for s in found if s is not None]
    if call.has("DisplayName"):
        return _by(call, call.texts("DisplayName"), lambda s: s.display, "display name", "DisplayName")
    if not call.has("Name"):
        return services.all()
    return _by(call, call.texts("Name"), lambda s: s.name, "service name", "Name")


def _by(call: Call, names: list[str], text: Callable[[Service], str], word: str, kind: str) -> list[Service]:
    found: list[Service] = []
    for name in names:
        fits = wildcard(name)
        matched = [s for s in call.machine.services if fits(text(s))]
        if not matched and not has_wildcard(name):
            given = "GivenName" if kind == "Name" else "GivenDisplayName"
            message = f"Cannot find any service with {word} '{name}'."
            call.fail(_error(call, f"NoServiceFoundFor{given}", "ObjectNotFound", message, name))
        found.extend(matched)
    return found


@cmdlet(
    "Get-Service",
    _MODULE,
    _NAMES,
    _DISPLAY,
    _OBJECTS,
    switch("DependentServices", aliases=("DS",)),
    switch("RequiredServices", aliases=("SDO", "ServicesDependedOn")),
    default_set="Default",
    aliases=("gsv",),
)
def get_service(call: Call) -> None:
    """Services, or those around them."""
    services = call.machine.services
    for service in sorted(_chosen(call), key=lambda s: s.name.lower()):
        if call.flag("DependentServices"):
            call.give(*(show_service(call.session, s) for s in services.dependents(service)))
        elif call.flag("RequiredServices"):
            needed = [services.find(name) for name in service.depends]
            call.give(*(show_service(call.session, s) for s in needed if s is not None))
        else:
            call.give(show_service(call.session, service))


def _start(call: Call, service: Service) -> None:
    words = f"Service '{service.display} ({service.name})' cannot be started due to the following error: "
    try:
        call.machine.services.start(service)
    except Failure as failed:
        # Already running is no error, but what is paused does not become Running by waiting for it either.
        if failed.win32 != 1056:
            message = f"Cannot start service {service.name} on computer '.'."
            # What the service control manager said is two exceptions further in.
            reason = failure("System.InvalidOperationException", message, hresult=0x80131509).problem
            problem = _error(call, "CouldNotStartService", "OpenError", words + message, service.name)
            problem = replace(problem, inner=replace(reason, inner=failed.problem))
            call.fail(problem)
            return
    if service.status == "StartPending":
        # The cmdlet waits while the start is pending, however long.
        call.machine.wait(10.0**9, call.session.alive, lambda: service.status != "StartPending")
    if service.status != "Running":
        message = f"Failed to start service '{service.display} ({service.name})'."
        call.fail(_error(call, "StartServiceFailed", "OpenError", message, service.name))


def _stop(call: Call, service: Service, *, force: bool) -> bool:
    services = call.machine.services
    words = f"service '{service.display} ({service.name})'"
    if any(s.status != "Stopped" for s in services.dependents(service)) and not force:
        message = f"Cannot stop {words} because it has dependent services. It can only be stopped if the Force flag is set."
        call.fail(_error(call, "ServiceHasDependentServices", "InvalidOperation", message, service.name))
        return False
    try:
        services.stop_with_dependents(service)
    except Failure:
        message = f"Service '{service.display} ({service.name})' cannot be stopped due to the following error: Cannot "
        message += f"stop {service.name} service on computer '.'."
        call.fail(_error(call, "CouldNotStopService", "CloseError", message, service.name))
        return False
    return True


def _pass_thru(call: Call, service: Service) -> None:
    if call.flag("PassThru"):
        call.give(show_service(call.session, service))


@cmdlet(
    "Start-Service",
    _MODULE,
    _NAMES_NEEDED,
    _DISPLAY,
    _OBJECTS,
    switch("PassThru"),
    default_set="InputObject",
    aliases=("sasv",),
    should_process=True,
)
def start_service(call: Call) -> None:
    """Start what is not running; returns when it runs or failed."""
    for service in _chosen(call):
        _start(call, service)
        _pass_thru(call, service)


@cmdlet(
    "Stop-Service",
    _MODULE,
    _NAMES_NEEDED,
    _DISPLAY,
    _OBJECTS,
    switch("Force"),
    switch("NoWait"),
    switch("PassThru"),
    default_set="InputObject",
    aliases=("spsv",),
    should_process=True,
)
def stop_service(call: Call) -> None:
    """Stop what runs; with -Force also what depends on it."""
    for service in _chosen(call):
        if service.status != "Stopped":
            _stop(call, service, force=call.flag("Force"))
        _pass_thru(call, service)


@cmdlet(
    "Restart-Service",
    _MODULE,
    _NAMES_NEEDED,
    _DISPLAY,
    _OBJECTS,
    switch("Force"),
    switch("PassThru"),
    default_set="InputObject",
    should_process=True,
)
def restart_service(call: Call) -> None:
    """Stop and start; with -Force what depends on it comes back as well."""
    for service in _chosen(call):
        running = [s for s in call.machine.services.dependents(service) if s.status == "Running"]
        if service.status != "Stopped" and not _stop(call, service, force=call.flag("Force")):
            continue
        _start(call, service)
        for other in running:
            if other.status == "Stopped":
                _start(call, other)
        _pass_thru(call, service)


_START_TYPE = parameter(
    "StartupType",
    "System.ServiceProcess.ServiceStartMode",
    words=("Automatic", "Manual", "Disabled", "Boot", "System"),
)


@cmdlet(
    "Set-Service",
    _MODULE,
    Parameter(
        "Name",
        STRING,
        ("ServiceName", "SN"),
        sets=(InSet("Name", mandatory=True, position=0, by_value=True, by_name=True),),
    ),
    Parameter("InputObject", _CONTROLLER, sets=(InSet("InputObject", by_value=True),)),
    parameter("DisplayName", aliases=("DN",)),
    parameter("Description"),
    _START_TYPE,
    parameter("Status", words=("Running", "Stopped", "Paused")),
    switch("PassThru"),
    default_set="Name",
    should_process=True,
)
def set_service(call: Call) -> None:
    """Change the settings given, then start or stop."""
    services = call.machine.services
    name = call.text("Name") or as_text(call.records("InputObject")[0]["Name"])
    service = services.find(name)
    if service is None:
        message = f"Service {name} was not found on computer '.'."
        problem = Problem(
            message,
            "InvalidOperationException,Microsoft.PowerShell.Commands.SetServiceCommand",
            "ObjectNotFound",
            "System.InvalidOperationException",
            target=name,
        )
        call.fail(problem)
        return
    start = _start_number(call) if call.has("StartupType") else None
    display = call.text("DisplayName") if call.has("DisplayName") else None
    # PowerShell 5.1 knows no delayed start: choosing a start type ends it.
    delayed = False if start is not None else None
    try:
        services.change(service, display=display, start=start, delayed=delayed)
        if call.has("Description"):
            services.describe(service, call.text("Description"))
    except Failure as failed:
        message = f"Service '{service.display} ({name})' cannot be configured due to the following error: "
        call.fail(
            _error(call, "CouldNotSetService", "PermissionDenied", message + failed.problem.message, name)
        )
        return
    match call.text("Status").lower():
        case "running" if service.status != "Running":
            _start(call, service)
        case "stopped" if service.status != "Stopped":
            _stop(call, service, force=False)
        case "paused":
            raise call.refuse("Status", "Paused")
    _pass_thru(call, service)


def _start_number(call: Call) -> int:
    word = call.text("StartupType").lower()
    if word not in _START_NUMBERS:
        raise call.refuse("StartupType", word)
    return _START_NUMBERS[word]


@cmdlet(
    "New-Service",
    _MODULE,
    parameter("Name", position=0, mandatory=True, aliases=("ServiceName",)),
    parameter("BinaryPathName", position=1, mandatory=True),
    parameter("DisplayName"),
    parameter("Description"),
    _START_TYPE,
    parameter("DependsOn", STRINGS),
    should_process=True,
)
def new_service(call: Call) -> None:
    """Define a service that runs as LocalSystem; 5.1 makes it automatic by default."""
    name = call.text("Name")
    start = _start_number(call) if call.has("StartupType") else AUTO
    try:
        service = call.machine.services.create(
            name,
            call.text("BinaryPathName"),
            display=call.text("DisplayName"),
            start=start,
            depends=call.texts("DependsOn"),
            description=call.text("Description"),
        )
    except Failure as failed:
        message = f"Service '{call.text('DisplayName', name)} ({name})' cannot be created due to the following error: "
        call.fail(
            _error(call, "CouldNotNewService", "PermissionDenied", message + failed.problem.message, name)
        )
        return
    call.give(show_service(call.session, service))


def call_service(session: Session, record: Record, member: str, arguments: list[Plain]) -> tuple[Plain, ...]:
    """The methods of a ServiceController; the first object is its new state."""
    services = session.machine.services
    name = as_text(record["Name"])
    service = services.find(name)
    if service is None:
        raise failure(
            "System.InvalidOperationException",
            f"Service {name} was not found on computer '.'.",
            hresult=0x80131509,
        )
    match member.lower(), len(arguments):
        case "refresh" | "close" | "dispose", 0:
            pass
        case "start", 0:
            _attempt(lambda: services.start(service), f"Cannot start service {name} on computer '.'.")
        case "stop", 0:
            _attempt(
                lambda: services.stop_with_dependents(service), f"Cannot stop {name} service on computer '.'."
            )
        case "waitforstatus", 1 | 2:
            wanted = as_text(arguments[0])
            seconds = _seconds(arguments[1]) if len(arguments) == 2 else 10.0**9
            if not session.machine.wait(seconds, session.alive, lambda: service.status == wanted):
                message = "Time out has expired and the operation has not been completed."
                raise failure("System.ServiceProcess.TimeoutException", message, hresult=0x80131505)
        case _:
            raise Refusal("member", f"{_CONTROLLER}.{member}()")
    return (show_service(session, service),)


def _attempt(action: Callable[[], object], message: str) -> None:
    try:
        action()
    except Failure:
        raise failure("System.InvalidOperationException", message, hresult=0x80131509) from None


def _seconds(value: Plain) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    hours, minutes, seconds = as_text(value).split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
