"""nssm.exe: a service that keeps any program running, and the commands that set it up. Its own output is UTF-16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from winboot_lab.programs.base import Daemon, Run, log_file, nowhere, start
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.scm import AUTO, DEMAND, DISABLED, Service
from winboot_lab.windows.session import Computer

THROTTLE_MS: Final = 1500
_NUMBERS: Final = frozenset(
    [
        "AppNoConsole",
        "AppStopMethodSkip",
        "AppStopMethodConsole",
        "AppStopMethodWindow",
        "AppStopMethodThreads",
        "AppThrottle",
        "AppRestartDelay",
        "AppRotateFiles",
        "AppRotateOnline",
        "AppRotateSeconds",
        "AppRotateBytes",
        "AppRotateBytesHigh",
        "AppRotateDelay",
        "AppStdinShareMode",
        "AppStdinCreationDisposition",
        "AppStdoutShareMode",
        "AppStdoutCreationDisposition",
        "AppStdoutFlagsAndAttributes",
        "AppStderrShareMode",
        "AppStderrCreationDisposition",
        "AppStderrFlagsAndAttributes",
        "AppTimestampLog",
    ]
)
_TEXTS: Final = frozenset(
    ["Application", "AppParameters", "AppDirectory", "AppStdin", "AppStdout", "AppStderr"]
)
_LISTS: Final = frozenset(["AppEnvironment", "AppEnvironmentExtra"])
_PRIORITIES: Final = {
    "REALTIME_PRIORITY_CLASS": (0x100, "RealTime"),
    "HIGH_PRIORITY_CLASS": (0x80, "High"),
    "ABOVE_NORMAL_PRIORITY_CLASS": (0x8000, "AboveNormal"),
    "NORMAL_PRIORITY_CLASS": (0x20, "Normal"),
    "BELOW_NORMAL_PRIORITY_CLASS": (0x4000, "BelowNormal"),
    "IDLE_PRIORITY_CLASS": (0x40, "Idle"),
}
_STARTS: Final = {
    "SERVICE_AUTO_START": (AUTO, False),
    "SERVICE_DELAYED_AUTO_START": (AUTO, True),
    "SERVICE_DEMAND_START": (DEMAND, False),
    "SERVICE_DISABLED": (DISABLED, False),
}


class NssmProgram:
    """The program: started without words by the control manager it is the service, else a command."""

    def is_service(self, argv: list[str]) -> bool:
        """Its service has no arguments."""
        return len(argv) == 1

    def serve(self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]) -> Nssm:
        """The running service."""
        return Nssm(Run(machine, process, argv, env))

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One command."""
        run = Run(machine, process, argv, env, stdin)
        try:
            return Exit(0, _utf16(_command(run, argv[1:])))
        except Failure as e:
            return Exit(3, _utf16(f"{e.problem.message}."))
        except _Unknown as e:
            return Exit(1, _utf16(str(e)))


class _Unknown(Exception):
    """nssm does not know the command or parameter."""


def _utf16(text: str) -> bytes:
    return (text + "\r\n").encode("utf-16-le") if text else b""


# Commands


def _command(run: Run, words: list[str]) -> str:
    match words:
        case ["version" | "--version"]:
            return f"NSSM {run.version} 64-bit"
        case ["install", name, application, *rest]:
            return _install(run, name, application, rest)
        case ["remove", name, "confirm"]:
            run.machine.services.delete(run.machine.services.need(name))
            return f'Service "{name}" removed successfully!'
        case ["set", name, parameter, *values] if values:
            _set(run, run.machine.services.need(name), parameter, values)
            return f'Set parameter "{parameter}" for service "{name}".'
        case ["get", name, parameter, *_]:
            return _get(run, run.machine.services.need(name), parameter)
        case ["reset", name, parameter, *_]:
            run.machine.registry.forget(_key(run.machine.services.need(name)), parameter)
            return f'Reset parameter "{parameter}" for service "{name}" to its default.'
        case ["start" | "stop" | "restart" | "status" as verb, name]:
            return _control(run, verb, run.machine.services.need(name))
    raise run.refuse(" ".join(words[:1]) or "without a command")


def _key(service: Service) -> str:
    return service.key + "\\Parameters"


def _install(run: Run, name: str, application: str, rest: list[str]) -> str:
    machine = run.machine
    own = run.process.path
    service = machine.services.create(name, f'"{own}"' if " " in own else own, display=name, start=AUTO)
    key = _key(service)
    machine.registry.create(key)
    machine.registry.set(key, "Application", "ExpandString", application)
    machine.registry.set(key, "AppParameters", "ExpandString", _joined(rest))
    machine.registry.set(key, "AppDirectory", "ExpandString", application.rpartition("\\")[0])
    machine.registry.create(key + "\\AppExit")
    machine.registry.set(key + "\\AppExit", "", "String", "Restart")
    return f'Service "{name}" installed successfully!'


def _joined(words: list[str]) -> str:
    # The real one puts blanks between the words and quotes none; lab/tests/lab_wine holds it.
    return " ".join(words)


def _set(run: Run, service: Service, parameter: str, values: list[str]) -> None:
    machine, key = run.machine, _key(service)
    services = machine.services
    spelled = {p.lower(): p for p in (*_NUMBERS, *_TEXTS, *_LISTS)}.get(parameter.lower(), parameter)
    match spelled.lower():
        case "start":
            if values[0].upper() not in _STARTS:
                raise _Unknown(f'Invalid startup type "{values[0]}"')
            start_type, delayed = _STARTS[values[0].upper()]
            services.change(service, start=start_type, delayed=delayed)
        case "displayname":
            services.change(service, display=values[0])
        case "description":
            services.describe(service, values[0])
        case "objectname":
            services.change(service, account=values[0], password=values[1] if len(values) > 1 else None)
        case "dependonservice":
            services.change(service, depends=[v for v in values if v])
        case "imagepath":
            services.change(service, image_path=values[0])
        case "apppriority":
            if values[0].upper() not in _PRIORITIES:
                raise _Unknown(f'Invalid priority "{values[0]}"')
            machine.registry.set(key, "AppPriority", "DWord", _PRIORITIES[values[0].upper()][0])
        case "appexit":
            which, action = (values[0], values[1]) if len(values) > 1 else ("Default", values[0])
            machine.registry.set(key + "\\AppExit", "" if which == "Default" else which, "String", action)
        case _ if spelled in _NUMBERS:
            machine.registry.set(key, spelled, "DWord", int(values[0]))
        case _ if spelled in _LISTS:
            machine.registry.set(key, spelled, "MultiString", values)
        case _ if spelled in _TEXTS:
            machine.registry.set(key, spelled, "ExpandString", _joined(values))
        case _:
            raise _Unknown(f'Invalid parameter "{parameter}"')


def _get(run: Run, service: Service, parameter: str) -> str:
    value = run.machine.registry.value(_key(service), parameter)
    if value is None:
        native: dict[str, Any] = {
            "displayname": service.display,
            "objectname": service.account,
            "imagepath": service.image_path,
            "dependonservice": "\r\n".join(service.depends),
        }
        return str(native.get(parameter.lower(), ""))
    return "\r\n".join(value.data) if isinstance(value.data, list) else str(value.data)


def _control(run: Run, verb: str, service: Service) -> str:
    services = run.machine.services
    if verb in ("stop", "restart") and service.status != "Stopped":
        services.stop(service)
    if verb in ("start", "restart"):
        services.start(service)
    words = {"Running": "SERVICE_RUNNING", "Stopped": "SERVICE_STOPPED", "Paused": "SERVICE_PAUSED"}
    state = words.get(service.status, "SERVICE_START_PENDING")
    return (
        state
        if verb == "status"
        else f"{service.name}: {verb.upper()}: The operation completed successfully."
    )


# The service


class Nssm(Daemon):
    """Keeps one program running. A program that dies at once is throttled: the service shows itself paused."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        found = next((s for s in self.machine.services.all() if s.process is self.process), None)
        self._service = found
        self._key = _key(found) if found is not None else ""
        self._child: Process | None = None
        self._died: Died | None = None
        self._started = 0.0
        self._again: float | None = None
        self._quick = 0

    def on_start(self) -> Died | None:
        """Start the application."""
        if self._service is None or not self.machine.registry.text(self._key, "Application"):
            return Died(1, 1)
        return self._start()

    def _number(self, name: str, default: int) -> int:
        found = self.machine.registry.value(self._key, name)
        return found.data if found is not None and isinstance(found.data, int) else default

    def _text(self, name: str) -> str:
        return self.machine.registry.expand(self.machine.registry.text(self._key, name), dict(self.run.env))

    def _environment(self) -> dict[str, str]:
        registry = self.machine.registry
        replaced = registry.strings(self._key, "AppEnvironment")
        found = {} if replaced else dict(self.run.env)
        for line in (*replaced, *registry.strings(self._key, "AppEnvironmentExtra")):
            name, equals, value = line.partition("=")
            if equals:
                for same in [k for k in found if k.lower() == name.lower()]:
                    del found[same]
                found[name] = value
        return found

    def _start(self) -> Died | None:
        application = self._text("Application")
        line = f'"{application}" {self._text("AppParameters")}'.rstrip()
        directory = self._text("AppDirectory") or application.rpartition("\\")[0]
        out = self._text("AppStderr") or self._text("AppStdout")
        priority = self._number("AppPriority", 0x20)
        self._started, self._died, self._again = self.machine.time.seconds, None, None
        try:
            self._child = start(
                self.machine,
                line,
                parent=self.process,
                env=self._environment(),
                directory=directory,
                sink=log_file(self.machine, out) if out else nowhere,
                ended=self._ended,
                priority=next((n for v, n in _PRIORITIES.values() if v == priority), "Normal"),
            )
        except Failure as e:
            name = self._service.name if self._service is not None else ""
            message = (
                f"Failed to start service {name}.  Program {application} couldn't be launched.\r\n"
                f"CreateProcess() failed:\r\n{e.problem.message}"
            )
            self.machine.events.write("Application", "nssm", 1008, message)
            return Died(1, e.win32 or 1)
        return None

    def _ended(self, died: Died) -> None:
        self._died = died

    def on_tick(self) -> Died | None:
        """Start the application again when its time has come."""
        if self._died is not None and self._again is None:
            return self._decide(self._died)
        if self._again is not None and self.machine.time.seconds >= self._again:
            if self._service is not None:
                self.machine.services.resume(self._service)
            return self._start()
        return None

    def _decide(self, died: Died) -> Died | None:
        registry = self.machine.registry
        action = registry.text(self._key + "\\AppExit", str(died.code)) or registry.text(
            self._key + "\\AppExit", ""
        )
        if action.lower() == "exit":
            return Died(died.code, 0)
        if action.lower() == "suicide":
            return Died(died.code)
        if action.lower() == "ignore":
            self._died = None
            return None
        delay = self._number("AppRestartDelay", 0) / 1000
        if (self.machine.time.seconds - self._started) * 1000 < self._number("AppThrottle", THROTTLE_MS):
            self._quick += 1
            delay = max(delay, min(2.0 ** (self._quick - 1), 256.0))
            if self._service is not None:
                self.machine.services.pause(self._service)
        else:
            self._quick = 0
        self._again = self.machine.time.seconds + delay
        return None

    def on_stop(self) -> None:
        """Stop the application first: by a Ctrl-C, unless bit 1 of AppStopMethodSkip is set.

        kill_console of NSSM's process.cpp sends it to process group 0, which is every process on the console. What the
        application started without a process group is on that console, and ends when it has no handler: containerd
        starts its shims so (getSysProcAttr of containerd's pkg/shim/util_windows.go returns nil).
        """
        if self._child is not None and self._child.running:
            self._child.ended.clear()
            if not self._number("AppStopMethodSkip", 0) & 1:
                self._ctrl_c(self._child)
            self.machine.processes.stop(self._child)

    def _ctrl_c(self, above: Process) -> None:
        for process in self.machine.processes.all():
            if process.parent == above.pid:
                self._ctrl_c(process)
                self.machine.processes.stop(process)
