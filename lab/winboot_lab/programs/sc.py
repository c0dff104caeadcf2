"""sc.exe: services by command line, with the grammar of the real one: `name=`, a space, the value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from winboot_lab.programs.base import Run, windows_text
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Exit
from winboot_lab.windows.scm import (
    AUTO,
    BOOT,
    DEMAND,
    DISABLED,
    STATUS_NUMBERS,
    SYSTEM,
    FailureActions,
    Service,
)
from winboot_lab.windows.session import Computer

BAD_LINE: Final = 1639  # ERROR_INVALID_COMMAND_LINE
_STARTS: Final = {
    "boot": (BOOT, False),
    "system": (SYSTEM, False),
    "auto": (AUTO, False),
    "demand": (DEMAND, False),
    "disabled": (DISABLED, False),
    "delayed-auto": (AUTO, True),
}
_START_WORDS: Final = {
    BOOT: "BOOT_START",
    SYSTEM: "SYSTEM_START",
    AUTO: "AUTO_START",
    DEMAND: "DEMAND_START",
    DISABLED: "DISABLED",
}
_STATE_WORDS: Final = {
    "Stopped": "STOPPED",
    "StartPending": "START_PENDING",
    "StopPending": "STOP_PENDING",
    "Running": "RUNNING",
    "Paused": "PAUSED",
}
_ACTIONS: Final = {"": 0, "restart": 1, "reboot": 2, "run": 3}
_ACTION_WORDS: Final = {0: "", 1: "RESTART", 2: "REBOOT", 3: "RUN PROCESS"}
_CONFIG_OPTIONS: Final = {
    "type",
    "start",
    "error",
    "binpath",
    "group",
    "tag",
    "depend",
    "obj",
    "displayname",
    "password",
}
_FAILURE_OPTIONS: Final = {"reset", "reboot", "command", "actions"}


class BadLine(Exception):
    """The command line is not sc's: it prints its help and ends with 1639."""


class Sc:
    """sc.exe."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One invocation. The exit code is the Win32 error, 0 when it went well."""
        run = Run(machine, process, argv, env, stdin)
        verb = argv[1].lower() if len(argv) > 1 else ""
        actions: dict[str, tuple[str, Callable[[Run, list[str]], bytes]]] = {
            "create": ("CreateService", _create),
            "config": ("OpenService", _config),
            "delete": ("DeleteService", _delete),
            "description": ("ChangeServiceConfig2", _describe),
            "failure": ("ChangeServiceConfig2", _failure),
            "failureflag": ("ChangeServiceConfig2", _failure_flag),
            "start": ("StartService", _start),
            "stop": ("ControlService", _stop),
            "query": ("EnumQueryServicesStatus:OpenService", _query),
            "queryex": ("EnumQueryServicesStatus:OpenService", _query),
            "qc": ("OpenService", _show_config),
            "qfailure": ("OpenService", _show_failure),
            "qfailureflag": ("OpenService", _show_failure_flag),
            "qdescription": ("OpenService", _show_description),
        }
        if verb not in actions:
            if verb.startswith("\\\\") or verb:
                raise run.refuse(verb)
            return Exit(BAD_LINE, windows_text("DESCRIPTION:"))
        call, action = actions[verb]
        try:
            return Exit(0, action(run, argv[2:]))
        except BadLine:
            return Exit(
                BAD_LINE,
                windows_text("DESCRIPTION:", f"        sc {verb} [service name] <option1> <option2>..."),
            )
        except Failure as e:
            code = e.win32 or 1
            return Exit(code, windows_text(f"[SC] {call} FAILED {code}:", "", f"{e.problem.message}.", ""))


def _options(words: list[str], known: set[str]) -> dict[str, str]:
    """`binPath= value` pairs. The name ends with the equals sign, the value is the next word."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name = word[:-1].lower()
        if not word.endswith("=") or name not in known or not rest:
            raise BadLine
        found[name] = rest.pop(0)
    return found


def _service(run: Run, words: list[str]) -> Service:
    if not words:
        raise BadLine
    return run.machine.services.need(words[0])


def _depends(text: str | None) -> list[str] | None:
    return None if text is None else [part for part in text.split("/") if part]


def _start_type(text: str | None) -> tuple[int | None, bool | None]:
    if text is None:
        return None, None
    if text.lower() not in _STARTS:
        raise BadLine
    return _STARTS[text.lower()]


def _create(run: Run, words: list[str]) -> bytes:
    if not words:
        raise BadLine
    options = _options(words[1:], _CONFIG_OPTIONS)
    if "binpath" not in options:
        raise BadLine
    start, delayed = _start_type(options.get("start"))
    run.machine.services.create(
        words[0],
        options["binpath"],
        display=options.get("displayname", ""),
        start=DEMAND if start is None else start,
        delayed=bool(delayed),
        depends=_depends(options.get("depend")),
        account=options.get("obj", "LocalSystem"),
    )
    return windows_text("[SC] CreateService SUCCESS")


def _config(run: Run, words: list[str]) -> bytes:
    service = _service(run, words)
    options = _options(words[1:], _CONFIG_OPTIONS)
    start, delayed = _start_type(options.get("start"))
    run.machine.services.change(
        service,
        image_path=options.get("binpath"),
        display=options.get("displayname"),
        start=start,
        delayed=delayed,
        depends=_depends(options.get("depend")),
        account=options.get("obj"),
        password=options.get("password"),
    )
    return windows_text("[SC] ChangeServiceConfig SUCCESS")


def _delete(run: Run, words: list[str]) -> bytes:
    run.machine.services.delete(_service(run, words))
    return windows_text("[SC] DeleteService SUCCESS")


def _describe(run: Run, words: list[str]) -> bytes:
    run.machine.services.describe(_service(run, words), words[1] if len(words) > 1 else "")
    return windows_text("[SC] ChangeServiceConfig2 SUCCESS")


def _failure(run: Run, words: list[str]) -> bytes:
    service = _service(run, words)
    options = _options(words[1:], _FAILURE_OPTIONS)
    if ("reset" in options) != ("actions" in options):
        raise BadLine  # the two go together
    if "reset" in options:
        run.machine.services.set_recovery(service, _parse_actions(options["reset"], options["actions"]))
    for name, value in (("reboot", "RebootMessage"), ("command", "FailureCommand")):
        if name in options:
            run.machine.registry.set(service.key, value, "String", options[name])
    return windows_text("[SC] ChangeServiceConfig2 SUCCESS")


def _parse_actions(reset: str, actions: str) -> FailureActions:
    """`restart/10000/restart/30000`: kind and milliseconds in turn."""
    seconds = 0xFFFFFFFF if reset.upper() == "INFINITE" else _number(reset)
    parts = actions.split("/") if actions else []
    if len(parts) % 2 and parts[-1] == "":
        parts.pop()
    if len(parts) % 2:
        raise BadLine
    found = []
    for kind, delay in zip(parts[::2], parts[1::2], strict=True):
        if kind.lower() not in _ACTIONS:
            raise BadLine
        found.append((_ACTIONS[kind.lower()], _number(delay)))
    return FailureActions(seconds, tuple(found))


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadLine from None


def _failure_flag(run: Run, words: list[str]) -> bytes:
    service = _service(run, words)
    if len(words) != 2 or words[1] not in ("0", "1"):
        raise BadLine
    run.machine.services.set_recovery_flag(service, words[1] == "1")
    return windows_text("[SC] ChangeServiceConfig2 SUCCESS")


def _start(run: Run, words: list[str]) -> bytes:
    service = _service(run, words)
    run.machine.services.start(service, words[1:])
    return windows_text(*_status_lines(service, extended=True))


def _stop(run: Run, words: list[str]) -> bytes:
    service = _service(run, words)
    run.machine.services.stop(service)
    return windows_text(*_status_lines(service, extended=False))


def _query(run: Run, words: list[str]) -> bytes:
    if not words:
        raise run.refuse("query of all services")
    return windows_text(*_status_lines(_service(run, words), extended=run.argv[1].lower() == "queryex"))


def _status_lines(service: Service, *, extended: bool) -> list[str]:
    number, word = STATUS_NUMBERS[service.status], _STATE_WORDS[service.status]
    code = service.exit_code
    lines = [
        "",
        f"SERVICE_NAME: {service.name} ",
        f"        TYPE               : {service.kind:x}  WIN32_OWN_PROCESS  ",
        f"        STATE              : {number}  {word} ",
        f"        WIN32_EXIT_CODE    : {code}  (0x{code:x})",
        f"        SERVICE_EXIT_CODE  : {service.specific_code}  (0x{service.specific_code:x})",
        "        CHECKPOINT         : 0x0",
        "        WAIT_HINT          : 0x0",
    ]
    return (
        [*lines, f"        PID                : {service.pid}", "        FLAGS              : "]
        if extended
        else lines
    )


def _show_config(run: Run, words: list[str]) -> bytes:
    service = _service(run, words)
    start = _START_WORDS[service.start] + ("  (DELAYED)" if service.delayed else "")
    depends = service.depends or [""]
    return windows_text(
        "[SC] QueryServiceConfig SUCCESS",
        "",
        f"SERVICE_NAME: {service.name}",
        f"        TYPE               : {service.kind:x}  WIN32_OWN_PROCESS ",
        f"        START_TYPE         : {service.start}   {start}",
        "        ERROR_CONTROL      : 1   NORMAL",
        f"        BINARY_PATH_NAME   : {service.image_path}",
        "        LOAD_ORDER_GROUP   : ",
        "        TAG                : 0",
        f"        DISPLAY_NAME       : {service.display}",
        f"        DEPENDENCIES       : {depends[0]}",
        *(f"                           : {d}" for d in depends[1:]),
        f"        SERVICE_START_NAME : {service.account}",
    )


def _show_failure(run: Run, words: list[str]) -> bytes:
    service = _service(run, words)
    recovery = run.machine.services.recovery(service)
    reset = "INFINITE" if recovery.reset_seconds == 0xFFFFFFFF else str(recovery.reset_seconds)
    lines = [
        "[SC] QueryServiceConfig2 SUCCESS",
        "",
        f"SERVICE_NAME: {service.name}",
        f"        RESET_PERIOD (in seconds)    : {reset}",
        "        REBOOT_MESSAGE               : ",
        "        COMMAND_LINE                 : ",
    ]
    head = "        FAILURE_ACTIONS              : "
    for kind, delay in recovery.actions:
        lines.append(f"{head}{_ACTION_WORDS[kind]} -- Delay = {delay} milliseconds.")
        head = " " * len(head)
    return windows_text(*lines)


def _show_failure_flag(run: Run, words: list[str]) -> bytes:
    service = _service(run, words)
    on = run.machine.registry.number(service.key, "FailureActionsOnNonCrashFailures")
    return windows_text(
        "[SC] QueryServiceConfig2 SUCCESS",
        "",
        f"SERVICE_NAME: {service.name}",
        f"FAILURE_ACTIONS_ON_NONCRASH_FAILURES: {'TRUE' if on else 'FALSE'}",
    )


def _show_description(run: Run, words: list[str]) -> bytes:
    service = _service(run, words)
    text = run.machine.registry.text(service.key, "Description")
    return windows_text(
        "[SC] QueryServiceConfig2 SUCCESS", "", f"SERVICE_NAME: {service.name}", f"DESCRIPTION:  {text}"
    )
