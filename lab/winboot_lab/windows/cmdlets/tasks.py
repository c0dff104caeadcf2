"""Scheduled tasks: Register-, Get-, Start-, Stop-, Enable-, Disable-, Unregister-ScheduledTask and the parts of one."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.accounts import SYSTEM
from winboot_lab.windows.call import INT, STRING, STRINGS, Call, as_int, as_text, cmdlet, parameter, switch
from winboot_lab.windows.cmdlets.shapes import (
    CIM,
    class_of,
    enum,
    has_wildcard,
    instance,
    not_found,
    nothing_fits,
    uint32,
    wildcard,
)
from winboot_lab.windows.door import InSet, Parameter, Plain, Problem, Record
from winboot_lab.windows.tasks import Action, Task, Trigger

_MODULE = "ScheduledTasks"
_KIND = "Microsoft.PowerShell.Cmdletization.GeneratedTypes.ScheduledTask"
_STATES = {"Unknown": 0, "Disabled": 1, "Queued": 2, "Ready": 3, "Running": 4}
_LOGONS = ("None", "Password", "S4U", "Interactive", "Group", "ServiceAccount", "InteractiveOrPassword")


# ---- the parts -----------------------------------------------------------------------------------------


@cmdlet(
    "New-ScheduledTaskAction",
    _MODULE,
    parameter("Execute", mandatory=True, position=0),
    parameter("Argument", position=1),
    parameter("WorkingDirectory", position=2),
    kind="Function",
)
def new_action(call: Call) -> None:
    """What a task executes."""
    properties: dict[str, Plain] = {
        "Id": None,
        "Execute": call.text("Execute"),
        "Arguments": call.text("Argument") if call.has("Argument") else None,
        "WorkingDirectory": call.text("WorkingDirectory") if call.has("WorkingDirectory") else None,
    }
    call.give(instance("MSFT_TaskExecAction", properties))


@cmdlet(
    "New-ScheduledTaskTrigger",
    _MODULE,
    Parameter(
        "Once",
        "System.Management.Automation.SwitchParameter",
        sets=(InSet("Once", mandatory=True, position=0),),
    ),
    Parameter("At", "System.DateTime", sets=(InSet("Once", mandatory=True),)),
    Parameter(
        "AtStartup",
        "System.Management.Automation.SwitchParameter",
        sets=(InSet("Startup", mandatory=True, position=0),),
    ),
    parameter("RandomDelay", "System.TimeSpan"),
    Parameter("RepetitionInterval", "System.TimeSpan", sets=(InSet("Once"),)),
    kind="Function",
    default_set="Once",
)
def new_trigger(call: Call) -> None:
    """When a task starts: once at a time (and again after each interval), or at startup."""
    if call.flag("AtStartup"):
        call.give(instance("MSFT_TaskBootTrigger", {"Enabled": True, "Delay": None, "StartBoundary": None}))
        return
    at = call.parameters.get("At")
    if not isinstance(at, datetime):
        raise call.refuse("At", "a date was expected")
    if at.tzinfo is not None:
        at = call.machine.local(at)
    boundary = at.strftime("%Y-%m-%dT%H:%M:%S")
    again = call.parameters.get("RepetitionInterval")
    repetition = _show_repetition(again.total_seconds() if isinstance(again, timedelta) else 0.0)
    call.give(
        instance(
            "MSFT_TaskTimeTrigger",
            {"Enabled": True, "StartBoundary": boundary, "RandomDelay": None, "Repetition": repetition},
        )
    )


@cmdlet(
    "New-ScheduledTaskPrincipal",
    _MODULE,
    Parameter("UserId", STRING, sets=(InSet("User", mandatory=True, position=0),)),
    parameter("LogonType", f"{_KIND}.LogonTypeEnum", words=_LOGONS, position=1),
    parameter("RunLevel", f"{_KIND}.RunLevelEnum", words=("Limited", "Highest"), position=2),
    parameter("Id", position=5),
    kind="Function",
    default_set="User",
)
def new_principal(call: Call) -> None:
    """The account that a task runs as."""
    logon = call.text("LogonType", "Interactive")
    level = call.text("RunLevel", "Limited")
    number = next(i for i, w in enumerate(_LOGONS) if w.lower() == logon.lower())
    highest = level.lower() == "highest"
    call.give(
        instance(
            "MSFT_TaskPrincipal2",
            {
                "Id": call.text("Id", "Author"),
                "UserId": call.text("UserId"),
                "LogonType": enum(f"{_KIND}.LogonTypeEnum", number, _LOGONS[number]),
                "RunLevel": enum(f"{_KIND}.RunLevelEnum", int(highest), "Highest" if highest else "Limited"),
                "GroupId": None,
            },
        )
    )


_INSTANCES = ("Parallel", "Queue", "IgnoreNew")


@cmdlet(
    "New-ScheduledTaskSettingsSet",
    _MODULE,
    switch("AllowStartIfOnBatteries"),
    switch("DontStopIfGoingOnBatteries"),
    switch("StartWhenAvailable"),
    switch("Hidden"),
    switch("Disable"),
    parameter("ExecutionTimeLimit", "System.TimeSpan"),
    parameter("MultipleInstances", f"{_KIND}.MultipleInstancesEnum", words=_INSTANCES),
    parameter("Priority", INT),
    parameter("Compatibility", f"{_KIND}.CompatibilityEnum", words=("At", "V1", "Vista", "Win7", "Win8")),
    kind="Function",
)
def new_settings(call: Call) -> None:
    """How a task runs. Without a limit it may run three days; zero means no limit."""
    limit = call.parameters.get("ExecutionTimeLimit")
    text = "PT72H"
    if isinstance(limit, timedelta):
        text = duration(limit)
    instances = call.text("MultipleInstances", "IgnoreNew")
    if instances.lower() != "ignorenew":
        raise call.refuse("MultipleInstances", instances)
    call.give(
        instance(
            "MSFT_TaskSettings3",
            {
                "DisallowStartIfOnBatteries": not call.flag("AllowStartIfOnBatteries"),
                "StopIfGoingOnBatteries": not call.flag("DontStopIfGoingOnBatteries"),
                "StartWhenAvailable": call.flag("StartWhenAvailable"),
                "Hidden": call.flag("Hidden"),
                "Enabled": not call.flag("Disable"),
                "ExecutionTimeLimit": text,
                "MultipleInstances": enum(f"{_KIND}.MultipleInstancesEnum", 2, "IgnoreNew"),
                "Priority": call.number("Priority", 7),
            },
        )
    )


def duration(value: timedelta) -> str:
    """A time span as XML writes it."""
    seconds = int(value.total_seconds())
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    pieces = [(hours, "H"), (minutes, "M"), (seconds, "S")]
    text = "".join(f"{number}{unit}" for number, unit in pieces if number)
    return "PT" + (text or "0S")


def seconds_of(text: str) -> float:
    """An XML duration in seconds; empty or PT0S mean no limit."""
    found = re.fullmatch(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", text or "PT0S")
    if found is None:
        raise Refusal("value", text, "a duration was expected")
    days, hours, minutes, seconds = (int(g or 0) for g in found.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds


# ---- tasks ---------------------------------------------------------------------------------------------


def show_task(call: Call, task: Task) -> Record:
    """A registered task."""
    actions: list[Plain] = [
        instance(
            "MSFT_TaskExecAction",
            {
                "Id": None,
                "Execute": a.execute,
                "Arguments": a.arguments or None,
                "WorkingDirectory": a.directory or None,
            },
        )
        for a in task.actions
    ]
    triggers: list[Plain] = [_show_trigger(t) for t in task.triggers]
    limit = duration(timedelta(seconds=task.limit_seconds))
    return instance(
        "MSFT_ScheduledTask",
        {
            "TaskName": task.name,
            "TaskPath": task.path,
            "URI": task.path + task.name,
            "Author": task.author or None,
            "Description": task.description or None,
            "State": enum(f"{_KIND}.StateEnum", _STATES[task.state], task.state),
            "Actions": actions,
            "Triggers": triggers,
            "Principal": instance(
                "MSFT_TaskPrincipal2",
                {
                    "Id": "Author",
                    "UserId": task.user,
                    "RunLevel": enum(
                        f"{_KIND}.RunLevelEnum", int(task.highest), "Highest" if task.highest else "Limited"
                    ),
                    "LogonType": enum(f"{_KIND}.LogonTypeEnum", 5, "ServiceAccount"),
                },
            ),
            "Settings": instance(
                "MSFT_TaskSettings3",
                {
                    "Enabled": task.enabled,
                    "ExecutionTimeLimit": limit,
                    "DisallowStartIfOnBatteries": not task.on_battery,
                    "StartWhenAvailable": task.start_when_available,
                    "Priority": task.priority,
                },
            ),
        },
        text=f'MSFT_ScheduledTask (TaskName = "{task.name}", TaskPath = "{task.path}")',
    )


def _show_trigger(trigger: Trigger) -> Record:
    if trigger.kind == "Startup":
        return instance("MSFT_TaskBootTrigger", {"Enabled": True, "Delay": None, "StartBoundary": None})
    boundary = trigger.at.strftime("%Y-%m-%dT%H:%M:%S") if trigger.at else None
    return instance(
        "MSFT_TaskTimeTrigger",
        {
            "Enabled": True,
            "StartBoundary": boundary,
            "Repetition": _show_repetition(trigger.interval_seconds),
        },
    )


def _show_repetition(seconds: float) -> Record:
    """Without a duration it continues without end."""
    interval = duration(timedelta(seconds=seconds)) if seconds else None
    return instance("MSFT_TaskRepetitionPattern", {"Duration": None, "Interval": interval})


def _read_trigger(record: Record) -> Trigger:
    match class_of(record):
        case "MSFT_TaskBootTrigger":
            delay = as_text(record.properties.get("Delay"))
            return Trigger("Startup", delay_seconds=seconds_of(delay) if delay else 0.0)
        case "MSFT_TaskTimeTrigger":
            at = datetime.strptime(as_text(record["StartBoundary"]), "%Y-%m-%dT%H:%M:%S")
            pattern = record.properties.get("Repetition")
            again = as_text(pattern.properties.get("Interval")) if isinstance(pattern, Record) else ""
            return Trigger("Once", at, interval_seconds=seconds_of(again) if again else 0.0)
        case other:
            raise Refusal("value", other, "a trigger the lab does not know")


def _folder(path: str) -> str:
    return "\\" if path in ("", "\\") else "\\" + path.strip("\\") + "\\"


_PARTS = ("Action", "Trigger", "Settings", "Principal")


@cmdlet(
    "New-ScheduledTask",
    _MODULE,
    parameter("Action", f"{CIM}#MSFT_TaskAction[]", 0),
    parameter("Trigger", f"{CIM}#MSFT_TaskTrigger[]", 1),
    parameter("Settings", f"{CIM}#MSFT_TaskSettings", 2),
    parameter("Principal", f"{CIM}#MSFT_TaskPrincipal", 3),
    parameter("Description", position=4),
    kind="Function",
)
def new_task(call: Call) -> None:
    """A task that is not registered; its properties may be set, the author by nothing else."""
    one: dict[str, Plain] = {name: next(iter(call.records(name)), None) for name in ("Settings", "Principal")}
    call.give(
        instance(
            "MSFT_ScheduledTask",
            {
                "Actions": list[Plain](call.records("Action")),
                "Author": None,
                "Description": call.text("Description") or None,
                "Triggers": list[Plain](call.records("Trigger")),
                **one,
            },
        )
    )


_USERS = {"system": "SYSTEM", "nt authority\\system": "SYSTEM", SYSTEM.lower(): "SYSTEM"}


@cmdlet(
    "Register-ScheduledTask",
    _MODULE,
    parameter("TaskName", position=0),
    parameter("TaskPath", position=1),
    Parameter(
        "InputObject", f"{CIM}#MSFT_ScheduledTask", sets=(InSet("Object", mandatory=True, by_value=True),)
    ),
    Parameter(
        "Action",
        f"{CIM}#MSFT_TaskAction[]",
        sets=(InSet("User", mandatory=True, position=2), InSet("Principal", mandatory=True, position=2)),
    ),
    parameter("Trigger", f"{CIM}#MSFT_TaskTrigger[]", 3),
    parameter("Settings", f"{CIM}#MSFT_TaskSettings", 4),
    Parameter("User", STRING, sets=(InSet("User", position=5),)),
    Parameter("Principal", f"{CIM}#MSFT_TaskPrincipal", sets=(InSet("Principal", position=5),)),
    parameter("RunLevel", f"{_KIND}.RunLevelEnum", words=("Limited", "Highest"), sets=("User",)),
    parameter("Description", position=8),
    switch("Force"),
    kind="Function",
    default_set="User",
)
def register_task(call: Call) -> None:
    """Take a task up; an existing one is only replaced with -Force."""
    tasks = call.machine.tasks
    name, path = call.text("TaskName"), _folder(call.text("TaskPath"))
    old = tasks.find(name, path)
    if old is not None and not call.flag("Force"):
        message = "Cannot create a file when that file already exists."
        identifier = f"HRESULT 0x800700b7,{call.command.name}"
        exception = "Microsoft.Management.Infrastructure.CimException"
        call.fail(
            Problem(
                message,
                identifier,
                "ResourceExists",
                exception,
                target="PS_ScheduledTask",
                hresult=0x800700B7,
            )
        )
        return
    task = Task(name, path, [], [])
    parts = _parts(call, task)
    for record in parts["Action"]:
        text = {k: as_text(record.properties.get(k)) for k in ("Execute", "Arguments", "WorkingDirectory")}
        task.actions.append(Action(text["Execute"], text["Arguments"], text["WorkingDirectory"]))
    task.triggers = [_read_trigger(r) for r in parts["Trigger"]]
    _take_user(call, task, parts["Principal"])
    _take_settings(task, parts["Settings"])
    if old is not None:
        tasks.unregister(old)
    tasks.register(task)
    call.give(show_task(call, task))


def _parts(call: Call, task: Task) -> dict[str, list[Record]]:
    """The parts of the task: each given by itself, or all in one object."""
    whole = next(iter(call.records("InputObject")), None)
    if whole is None:
        task.description = call.text("Description")
        return {name: call.records(name) for name in _PARTS}
    task.description = as_text(whole.properties.get("Description"))
    task.author = as_text(whole.properties.get("Author"))
    inside = {"Action": "Actions", "Trigger": "Triggers"}
    return {name: _records(whole.properties.get(inside.get(name, name))) for name in _PARTS}


def _records(value: Plain) -> list[Record]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Record)]


def _take_user(call: Call, task: Task, principals: list[Record]) -> None:
    user, highest = call.text("User"), call.text("RunLevel").lower() == "highest"
    for record in principals:
        user = as_text(record["UserId"])
        highest = as_text(record["RunLevel"]) == "Highest"
    task.highest = highest
    if user.lower() in _USERS:
        task.user = "SYSTEM"
    elif user:
        raise call.refuse("User", f"{user}: only tasks of SYSTEM run in the lab")
    else:
        task.user = call.session.token.name


def _take_settings(task: Task, settings: list[Record]) -> None:
    for record in settings:
        task.limit_seconds = seconds_of(as_text(record["ExecutionTimeLimit"]))
        task.enabled = record["Enabled"] is True
        task.on_battery = record["DisallowStartIfOnBatteries"] is False
        task.start_when_available = record["StartWhenAvailable"] is True
        task.priority = as_int(record["Priority"])


_CHOICE = (
    parameter("TaskName", STRINGS, 0, by_name=True, sets=("ByPath",)),
    parameter("TaskPath", STRINGS, 1, by_name=True, sets=("ByPath",)),
)
_INPUT = Parameter(
    "InputObject", f"{CIM}#MSFT_ScheduledTask[]", sets=(InSet("Object", mandatory=True, by_value=True),)
)


def _chosen(call: Call) -> list[Task]:
    tasks = call.machine.tasks
    if call.has("InputObject"):
        found = [
            tasks.find(as_text(r["TaskName"]), as_text(r["TaskPath"])) for r in call.records("InputObject")
        ]
        return [t for t in found if t is not None]
    every = tasks.all()
    if call.has("TaskPath"):
        tests = [wildcard(p if has_wildcard(p) else _folder(p)) for p in call.texts("TaskPath")]
        every = [t for t in every if any(fits(t.path) for fits in tests)]
    if not call.has("TaskName"):
        return every
    chosen: list[Task] = []
    for name in call.texts("TaskName"):
        fits = wildcard(name)
        matched = [t for t in every if fits(t.name)]
        if not matched and not has_wildcard(name):
            one = not_found(call, "MSFT_ScheduledTask", "TaskName", name)
            call.fail(nothing_fits(call, "MSFT_ScheduledTask") if call.has("TaskPath") else one)
        chosen.extend(matched)
    return chosen


@cmdlet("Get-ScheduledTask", _MODULE, *_CHOICE, kind="Function", default_set="ByPath")
def get_task(call: Call) -> None:
    """Registered tasks."""
    call.give(*(show_task(call, t) for t in _chosen(call)))


@cmdlet("Get-ScheduledTaskInfo", _MODULE, *_CHOICE, _INPUT, kind="Function", default_set="ByPath")
def get_task_info(call: Call) -> None:
    """When tasks ran last, and with which result."""
    for task in _chosen(call):
        never = datetime(1999, 11, 30)
        call.give(
            instance(
                "MSFT_TaskDynamicInfo",
                {
                    "TaskName": task.name,
                    "TaskPath": task.path,
                    "LastRunTime": task.last_run or never,
                    "LastTaskResult": uint32(task.last_result),
                    "NextRunTime": None,
                    "NumberOfMissedRuns": uint32(0),
                },
            )
        )


@cmdlet("Start-ScheduledTask", _MODULE, *_CHOICE, _INPUT, kind="Function", default_set="ByPath")
def start_task(call: Call) -> None:
    """Run tasks now."""
    for task in _chosen(call):
        call.machine.tasks.start(task, on_demand=True)


@cmdlet("Stop-ScheduledTask", _MODULE, *_CHOICE, _INPUT, kind="Function", default_set="ByPath")
def stop_task(call: Call) -> None:
    """End running tasks."""
    for task in _chosen(call):
        call.machine.tasks.stop(task)


@cmdlet(
    "Unregister-ScheduledTask",
    _MODULE,
    *_CHOICE,
    _INPUT,
    switch("PassThru"),
    kind="Function",
    default_set="ByPath",
    should_process=True,
    confirm_impact="High",
)
def unregister_task(call: Call) -> None:
    """Forget tasks."""
    for task in _chosen(call):
        call.machine.tasks.unregister(task)


@cmdlet("Enable-ScheduledTask", _MODULE, *_CHOICE, _INPUT, kind="Function", default_set="ByPath")
def enable_task(call: Call) -> None:
    """Let tasks run again."""
    for task in _chosen(call):
        task.enabled = True
        call.give(show_task(call, task))


@cmdlet("Disable-ScheduledTask", _MODULE, *_CHOICE, _INPUT, kind="Function", default_set="ByPath")
def disable_task(call: Call) -> None:
    """Keep tasks from running."""
    for task in _chosen(call):
        task.enabled = False
        call.give(show_task(call, task))
