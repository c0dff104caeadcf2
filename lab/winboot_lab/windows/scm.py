"""The service control manager: services as the registry defines them and as they run.

The manager loads its own copy of most settings at boot and changes copy and registry together; a raw registry edit of
those is seen after the next boot. What it reads at each start or failure (Environment, recovery actions) is live.
The machine's environment is taken once, at boot.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.accounts import LOCAL_SERVICE, NETWORK_SERVICE, SYSTEM_TOKEN, Token
from winboot_lab.windows.eventlog import EventLog
from winboot_lab.windows.failure import Failure, win32_failure
from winboot_lab.windows.faults import Faults
from winboot_lab.windows.host import Host
from winboot_lab.windows.processes import Process, Processes
from winboot_lab.windows.programs_api import Died
from winboot_lab.windows.registry import SERVICES, Kind
from winboot_lab.windows.snapshot import Tree

Status = Literal["Stopped", "StartPending", "StopPending", "Running", "Paused"]
STATUS_NUMBERS: dict[Status, int] = {
    "Stopped": 1,
    "StartPending": 2,
    "StopPending": 3,
    "Running": 4,
    "Paused": 7,
}

BOOT, SYSTEM, AUTO, DEMAND, DISABLED = range(5)
DELAY_OF_DELAYED = 120.0
_START_TIMEOUT = 30.0

MESSAGES = {
    2: "The system cannot find the file specified",
    5: "Access is denied",
    87: "The parameter is incorrect",
    193: "%1 is not a valid Win32 application",
    1051: "A stop control has been sent to a service that other running services are dependent on",
    1052: "The requested control is not valid for this service",
    1053: "The service did not respond to the start or control request in a timely fashion",
    1056: "An instance of the service is already running",
    1057: "The account name is invalid or does not exist, or the password is invalid for the account name specified",
    1058: "The service cannot be started, either because it is disabled or because it has no enabled devices "
    "associated with it",
    1059: "Circular service dependency was specified",
    1060: "The specified service does not exist as an installed service",
    1061: "The service cannot accept control messages at this time",
    1062: "The service has not been started",
    1067: "The process terminated unexpectedly",
    1068: "The dependency service or group failed to start",
    1069: "The service did not start due to a logon failure",
    1072: "The specified service has been marked for deletion",
    1073: "The specified service already exists",
    1075: "The dependency service does not exist or has been marked for deletion",
    1077: "No attempts to start the service have been made since the last boot",
    1078: "The name is already in use as either a service name or a service display name",
}


def service_failure(code: int) -> Failure:
    """A service error as Win32Exception carries it."""
    return win32_failure(code, MESSAGES[code])


@dataclass(eq=False, slots=True)
class Service:
    """One service: the manager's copy of its settings, and how it runs."""

    name: str
    display: str
    image_path: str
    start: int = DEMAND
    delayed: bool = False
    depends: list[str] = field(default_factory=list)
    account: str = "LocalSystem"
    kind: int = 0x10
    status: Status = "Stopped"
    exit_code: int = 1077
    specific_code: int = 0
    process: Process | None = None
    deleted: bool = False
    # Handles other programs keep on the service: a deleted service stays, marked, until they close.
    held_by: set[str] = field(default_factory=set)
    failures: int = 0
    last_failure: float = 0.0
    builtin: bool = False

    @property
    def key(self) -> str:
        """Its registry key."""
        return f"{SERVICES}\\{self.name}"

    @property
    def pid(self) -> int:
        """The process it runs in, 0 when it does not run."""
        return self.process.pid if self.process is not None and self.process.running else 0


@dataclass(frozen=True, slots=True)
class FailureActions:
    """What the manager does when a service fails: (kind, delay in ms); 1 restarts, 2 reboots, 3 runs a command."""

    reset_seconds: int
    actions: tuple[tuple[int, int], ...]

    def packed(self) -> bytes:
        """As the registry's FailureActions holds it."""
        head = struct.pack("<5I", self.reset_seconds & 0xFFFFFFFF, 0, 0, len(self.actions), 0x14)
        return head + b"".join(struct.pack("<2I", kind, delay) for kind, delay in self.actions)


def unpack_failure_actions(raw: bytes) -> FailureActions:
    """Read FailureActions; damaged or missing bytes mean no actions."""
    if len(raw) < 20:
        return FailureActions(0, ())
    reset, _, _, count, _ = struct.unpack_from("<5I", raw)
    count = min(count, (len(raw) - 20) // 8)
    actions = tuple(struct.unpack_from("<2I", raw, 20 + 8 * i) for i in range(count))
    return FailureActions(reset, tuple((a[0], a[1]) for a in actions))


class ServiceControl:
    """All services of the machine."""

    def __init__(self, machine: Host, events: EventLog, processes: Processes, faults: Faults) -> None:
        self._machine, self._events, self._processes, self._faults = machine, events, processes, faults
        # What happens once the service of a name (in lower case) has stopped.
        self.stopped: dict[str, Callable[[], None]] = {}
        self._services: dict[str, Service] = {}
        self.environment: dict[str, str] = {}
        # Grows with every service that comes or goes.
        self.changes = 0
        # What could not be started in this boot, while the automatic services are being started.
        self._given_up: set[str] = set()
        # Services of Windows itself: they run without a program of the lab behind them.
        self.in_box: set[str] = set()

    # ---- looking ---------------------------------------------------------------------------------------

    def all(self) -> list[Service]:
        """Every service the manager knows, by name."""
        return [self._services[k] for k in sorted(self._services)]

    def find(self, name: str) -> Service | None:
        """A service by its name."""
        return self._services.get(name.lower())

    def need(self, name: str) -> Service:
        """A service, or error 1060."""
        found = self.find(name)
        if found is None:
            raise service_failure(1060)
        return found

    def running(self, name: str) -> bool:
        """Whether there is such a service and it runs."""
        found = self.find(name)
        return found is not None and found.status == "Running"

    def dependents(self, service: Service) -> list[Service]:
        """Services that name this one in their dependencies, directly or not; what would be started last comes first
        (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-enumdependentservicesw, lpServices)."""
        return self._start_order(self._above(service))[::-1]

    def _above(self, service: Service) -> list[Service]:
        found: list[Service] = []
        for other in self.all():
            if any(d.lower() == service.name.lower() for d in other.depends):
                found.append(other)
                found.extend(s for s in self._above(other) if s not in found)
        return found

    # ---- defining --------------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        image_path: str,
        *,
        display: str = "",
        start: int = DEMAND,
        delayed: bool = False,
        depends: list[str] | None = None,
        account: str = "LocalSystem",
        description: str = "",
        kind: int = 0x10,
        builtin: bool = False,
    ) -> Service:
        """CreateService: writes the key and takes the service up."""
        old = self.find(name)
        if old is not None:
            raise service_failure(1072 if old.deleted else 1073)
        if any(s.display.lower() == (display or name).lower() for s in self._services.values()):
            raise service_failure(1078)
        service = Service(
            name, display or name, image_path, start, delayed, list(depends or []), account, kind
        )
        service.builtin = builtin
        if builtin:
            self.in_box.add(name.lower())
        self._check_account(account)
        self._services[name.lower()] = service
        self.changes += 1
        self._store(service)
        if description:
            self._put(service, "Description", "String", description)
        if not builtin:
            message = f"A service was installed in the system.\r\n\r\nService Name:  {name}"
            self._events.write("System", "Service Control Manager", 7045, message)
        return service

    def change(
        self,
        service: Service,
        *,
        image_path: str | None = None,
        display: str | None = None,
        start: int | None = None,
        delayed: bool | None = None,
        depends: list[str] | None = None,
        account: str | None = None,
        password: str | None = None,
    ) -> None:
        """ChangeServiceConfig: what is None stays."""
        if service.deleted:
            raise service_failure(1072)
        if account is not None:
            self._check_account(account, password)
            service.account = account
        service.image_path = service.image_path if image_path is None else image_path
        service.display = service.display if display is None else display
        service.start = service.start if start is None else start
        service.delayed = service.delayed if delayed is None else delayed
        if depends is not None:
            if any(d.lower() == service.name.lower() for d in depends):
                raise service_failure(1059)
            service.depends = list(depends)
        self._store(service)

    def describe(self, service: Service, text: str) -> None:
        """ChangeServiceConfig2 with the description; an empty one goes."""
        if text:
            self._put(service, "Description", "String", text)
        else:
            self._machine.registry.forget(service.key, "Description")

    def set_recovery(self, service: Service, actions: FailureActions) -> None:
        """ChangeServiceConfig2 with the failure actions."""
        self._put(service, "FailureActions", "Binary", actions.packed())

    def set_recovery_flag(self, service: Service, on: bool) -> None:
        """Whether a stop with an error counts as a failure too."""
        self._put(service, "FailureActionsOnNonCrashFailures", "DWord", int(on))

    def recovery(self, service: Service) -> FailureActions:
        """The failure actions as the registry has them now."""
        return unpack_failure_actions(self._machine.registry.binary(service.key, "FailureActions"))

    def delete(self, service: Service) -> None:
        """DeleteService: it goes when it is stopped and no process holds it; until then it is marked."""
        if service.deleted:
            raise service_failure(1072)
        service.deleted = True
        self._put(service, "DeleteFlag", "DWord", 1)
        self._finish_delete(service)

    def _finish_delete(self, service: Service) -> None:
        if service.deleted and service.status == "Stopped" and not service.held_by:
            self._services.pop(service.name.lower(), None)
            self.changes += 1
            self._machine.registry.wipe(service.key)

    def release(self, service: Service, holder: str) -> None:
        """A program that held the service closes its handle."""
        service.held_by.discard(holder)
        self._finish_delete(service)

    def _store(self, service: Service) -> None:
        registry = self._machine.registry
        self._put(service, "Type", "DWord", service.kind)
        self._put(service, "Start", "DWord", service.start)
        self._put(service, "ErrorControl", "DWord", 1)
        self._put(service, "ImagePath", "ExpandString", service.image_path)
        self._put(service, "DisplayName", "String", service.display)
        self._put(service, "ObjectName", "String", service.account)
        if service.depends:
            self._put(service, "DependOnService", "MultiString", list(service.depends))
        else:
            registry.forget(service.key, "DependOnService")
        if service.delayed:
            self._put(service, "DelayedAutostart", "DWord", 1)
        elif registry.value(service.key, "DelayedAutostart") is not None:
            self._put(service, "DelayedAutostart", "DWord", 0)

    def _put(self, service: Service, name: str, kind: Kind, data: str | int | bytes | list[str]) -> None:
        self._machine.registry.set(service.key, name, kind, data)

    def _check_account(self, account: str, password: str | None = None) -> None:
        if account.lower() in ("localsystem", "nt authority\\system"):
            return
        sid = self._machine.accounts.sid(account, self._machine.name)
        if sid is None:
            raise service_failure(1057)
        user = self._machine.accounts.users.get(account.rpartition("\\")[2].lower())
        if user is not None and password is not None and user.password != password:
            raise service_failure(1057)

    # ---- starting --------------------------------------------------------------------------------------

    def start(self, service: Service, arguments: list[str] | None = None) -> None:
        """StartService, with what the service depends on; returns when it runs or has stopped again."""
        if service.deleted:
            raise service_failure(1072)
        if service.status != "Stopped":
            raise service_failure(1056)
        if service.start == DISABLED:
            raise service_failure(1058)
        try:
            self._start_dependencies(service)
        except Failure as failed:
            # `sc query` shows it as WIN32_EXIT_CODE : 1068 (0x42c).
            service.exit_code = failed.win32
            raise
        token = self._logon(service)
        service.status = "StartPending"
        try:
            self._launch(service, token, arguments or [])
        except BaseException:
            service.status = "Stopped"
            raise

    def _start_dependencies(self, service: Service) -> None:
        for name in service.depends:
            needed = self.find(name)
            if needed is None or needed.deleted:
                raise service_failure(1075)
            if needed.status == "StartPending":
                self._wait_started(needed)
            if needed.status == "Running":
                continue
            try:
                if needed.name.lower() in self._given_up:
                    raise service_failure(1068)
                if needed.status == "Stopped":
                    self.start(needed)
            except Failure as failed:
                self._event(
                    7001,
                    f"The {service.display} service depends on the {needed.display} service which "
                    f"failed to start because of the following error: \r\n{failed.problem.message}.",
                )
                raise service_failure(1068) from failed
            if not self.running(name):
                self._event(
                    7001,
                    f"The {service.display} service depends on the {needed.display} service which "
                    "failed to start.",
                )
                raise service_failure(1068)

    def _wait_started(self, service: Service) -> None:
        self._machine.wait(10.0**9, until=lambda: service.status != "StartPending")

    def _logon(self, service: Service) -> Token:
        account = service.account.lower()
        if account in ("localsystem", "nt authority\\system", ""):
            return SYSTEM_TOKEN
        sid = self._machine.accounts.sid(service.account, self._machine.name)
        if sid is None:
            raise self._start_error(service, 1069)
        if sid in (LOCAL_SERVICE, NETWORK_SERVICE):
            return Token(self._machine.accounts.name(sid, "") or sid, sid, ("S-1-1-0", "S-1-5-11", "S-1-5-6"))
        return self._machine.accounts.token(service.account.rpartition("\\")[2])

    def _launch(self, service: Service, token: Token, arguments: list[str]) -> None:
        machine = self._machine
        command_line = machine.registry.expand(service.image_path, self.environment)
        if service.builtin:
            service.process = self._host(service, command_line)
            self._runs(service)
            return
        try:
            process = self._processes.spawn(
                command_line,
                token=token,
                environment=self._environment(service, token),
                parent=self._own_pid(),
            )
        except Failure as failed:
            raise self._start_error(service, failed.win32) from failed
        if not self._processes.program(process).is_service() or self._faults.silent(service.name):
            # It never calls the dispatcher: the manager waits, gives up, and ends the process.
            machine.wait(_START_TIMEOUT)
            self._processes.kill(process.pid)
            raise self._start_error(service, 1053)
        service.process = process
        process.ended.append(lambda died: self._ended(service, process, died))
        self._faults.starting(service.name, process)
        if process.running:
            self._processes.serve(process)
        pending = self._faults.pending(service.name)
        if process.running and pending:
            machine.after(pending, lambda: self._runs_now(service, process))
        elif process.running:
            self._runs(service)

    def _runs_now(self, service: Service, process: Process) -> None:
        # Its start was pending until now.
        if service.process is process and service.status == "StartPending":
            self._runs(service)

    def _host(self, service: Service, command_line: str) -> Process:
        name = "svchost" if "svchost" in command_line.lower() else service.name
        path = command_line.split(" -")[0].strip('"')
        return self._processes.add(name, path, command_line, parent=self._own_pid())

    def _own_pid(self) -> int:
        found = self._processes.named("services")
        return found[0].pid if found else 4

    def _environment(self, service: Service, token: Token) -> dict[str, str]:
        # The manager's own (boot-time) variables, then the service's; a name is overwritten without case.
        merged = self._processes.user_environment(token)
        boot = {k.lower() for k in self.environment}
        merged = {k: v for k, v in merged.items() if k.lower() not in boot and k in _PER_USER}
        merged |= self.environment
        for line in self._machine.registry.strings(service.key, "Environment"):
            name, separator, value = line.partition("=")
            if separator and name:
                for known in [k for k in merged if k.lower() == name.lower()]:
                    del merged[known]
                merged[name] = value
        return merged

    def _runs(self, service: Service) -> None:
        service.status, service.exit_code, service.specific_code = "Running", 0, 0
        self._event(7036, f"The {service.display} service entered the running state.", level="Information")
        self._machine.wake()

    def _start_error(self, service: Service, code: int) -> Failure:
        service.status, service.exit_code = "Stopped", code
        if code == 1053:
            self._event(
                7009,
                f"A timeout was reached (30000 milliseconds) while waiting for the {service.display} "
                "service to connect.",
            )
        self._event(
            7000,
            f"The {service.display} service failed to start due to the following error: \r\n"
            f"{MESSAGES.get(code, str(code))}.",
        )
        return service_failure(code) if code in MESSAGES else win32_failure(code, f"Win32 error {code}")

    # ---- stopping --------------------------------------------------------------------------------------

    def stop(self, service: Service) -> None:
        """ControlService(STOP); 1051 when services that depend on it run."""
        if service.status == "Stopped":
            raise service_failure(1062)
        if service.status in ("StartPending", "StopPending"):
            raise service_failure(1061)
        if any(d.status != "Stopped" for d in self.dependents(service)):
            raise service_failure(1051)
        if service.builtin and service.name.lower() in _NEVER_STOPS:
            raise service_failure(1052)
        service.status = "StopPending"
        if service.process is not None:
            service.process.ended.clear()
            self._processes.stop(service.process)
        self._stopped(service, 0)

    def stop_with_dependents(self, service: Service) -> list[Service]:
        """Stop what depends on it, then it; gives what was stopped, in order."""
        stopped: list[Service] = []
        for other in self.dependents(service):
            if other.status != "Stopped":
                self.stop(other)
                stopped.append(other)
        if service.status != "Stopped":
            self.stop(service)
            stopped.append(service)
        return stopped

    def _stopped(self, service: Service, code: int, specific: int = 0) -> None:
        service.status, service.process = "Stopped", None
        service.exit_code, service.specific_code = code, specific
        self._event(7036, f"The {service.display} service entered the stopped state.", level="Information")
        if (told := self.stopped.get(service.name.lower())) is not None:
            told()
        self._finish_delete(service)
        self._machine.wake()

    def pause(self, service: Service) -> None:
        """A wrapper service reports itself paused (NSSM between two quick deaths of its program)."""
        service.status = "Paused"

    def resume(self, service: Service) -> None:
        """A paused wrapper service runs again."""
        service.status = "Running"

    # ---- failing ---------------------------------------------------------------------------------------

    def _ended(self, service: Service, process: Process, died: Died) -> None:
        # The process of a service is gone and no request ended it.
        if service.process is not process or service.status == "StopPending":
            return
        if died.service_code is None:
            self._stopped(service, 1067)
            self._crashed(service)
            return
        win32 = 1066 if died.service_code else 0
        self._stopped(service, win32, died.service_code)
        if died.service_code:
            self._event(
                7024,
                f"The {service.display} service terminated with the following service-specific "
                f"error: \r\n{died.service_code}",
            )
            if self._machine.registry.number(service.key, "FailureActionsOnNonCrashFailures"):
                self._crashed(service, quiet=True)

    def _crashed(self, service: Service, *, quiet: bool = False) -> None:
        recovery = self.recovery(service)
        now = self._machine.time.seconds
        if recovery.reset_seconds != 0xFFFFFFFF and now - service.last_failure > recovery.reset_seconds:
            service.failures = 0
        service.last_failure = now
        service.failures += 1
        times = f"It has done this {service.failures} time(s)."
        if not recovery.actions:
            if not quiet:
                message = f"The {service.display} service terminated unexpectedly.  {times}"
                self._event(7034, message, values=(service.display, str(service.failures)))
            return
        kind, delay = recovery.actions[min(service.failures, len(recovery.actions)) - 1]
        self._event(
            7031,
            f"The {service.display} service terminated unexpectedly.  {times}  The following "
            f"corrective action will be taken in {delay} milliseconds: {_ACTIONS.get(kind, str(kind))}.",
            values=(service.display, str(service.failures), str(delay), str(kind)),
        )
        if kind == 1:
            self._machine.after(delay / 1000, lambda: self._restart(service))
        elif kind == 2:
            self._machine.after(delay / 1000, self._machine.reboot)
        elif kind == 3:
            raise Refusal("value", "FailureCommand", "a service that runs a command when it fails")

    def _restart(self, service: Service) -> None:
        if self.find(service.name) is not service or service.status != "Stopped":
            return
        try:
            self.start(service)
        except Failure as failed:
            # The manager tries the next action of its list when its own restart fails.
            service.exit_code = failed.win32
            self._crashed(service)

    # ---- boot ------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Boot: the manager reads all definitions and the machine's environment."""
        registry = self._machine.registry
        self._services.clear()
        self.changes += 1
        self.environment = self._machine.registry.machine_environment()
        for name in registry.subkeys(SERVICES):
            key = f"{SERVICES}\\{name}"
            if registry.number(key, "DeleteFlag"):
                registry.wipe(key)
                continue
            image = registry.value(key, "ImagePath")
            kind = registry.number(key, "Type")
            if image is None or not isinstance(image.data, str) or not kind & 0x30:
                continue
            service = Service(
                name,
                registry.text(key, "DisplayName", name),
                image.data,
                registry.number(key, "Start", DEMAND),
                bool(registry.number(key, "DelayedAutostart")),
                registry.strings(key, "DependOnService"),
                registry.text(key, "ObjectName", "LocalSystem"),
                kind,
            )
            service.builtin = name.lower() in self.in_box
            self._services[name.lower()] = service

    def start_automatic(self) -> None:
        """Boot: automatic services in the order of their dependencies; the delayed ones later."""
        automatic = [s for s in self.all() if s.start == AUTO]
        self._given_up.clear()
        for service in self._start_order([s for s in automatic if not s.delayed]):
            self._start_quietly(service)
        # Each is tried once; only later a client's start tries what it depends on again.
        self._given_up.clear()
        late = self._start_order([s for s in automatic if s.delayed])
        if late:
            self._machine.after(DELAY_OF_DELAYED, lambda: self._start_all(late))

    def _start_all(self, services: list[Service]) -> None:
        for service in services:
            self._start_quietly(service)

    def _start_quietly(self, service: Service) -> None:
        if service.status != "Stopped" or self.find(service.name) is not service:
            return
        try:
            self.start(service)
        except Failure:
            # The event log has it; boot continues.
            self._given_up.add(service.name.lower())
            return

    def _start_order(self, services: list[Service]) -> list[Service]:
        ordered: list[Service] = []

        def place(service: Service, above: tuple[str, ...]) -> None:
            if service in ordered or service.name in above:
                return
            for name in service.depends:
                needed = self.find(name)
                if needed is not None and needed in services:
                    place(needed, (*above, service.name))
            ordered.append(service)

        for service in services:
            place(service, ())
        return ordered

    def go_down(self, *, clean: bool) -> None:
        """The machine goes down: services of the lab receive it when it is a clean shutdown."""
        for service in reversed(self._start_order(self.all())):
            if clean and service.status == "Running" and service.process is not None and not service.builtin:
                service.process.ended.clear()
                self._processes.stop(service.process)
            service.status, service.process = "Stopped", None

    def _event(self, number: int, message: str, level: str = "Error", values: tuple[str, ...] = ()) -> None:
        self._events.write("System", "Service Control Manager", number, message, level, values)

    def __iter__(self) -> Iterator[Service]:
        """Every service, by name."""
        return iter(self.all())

    def tree(self) -> Tree:
        """How services run (the registry holds their definitions)."""
        return {s.name: {"status": s.status, "exit_code": s.exit_code} for s in self.all()}


_PER_USER = ("USERNAME", "USERDOMAIN", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP")
_NEVER_STOPS = frozenset({"rpcss", "dcomlaunch", "samss", "windefend"})
_ACTIONS = {
    0: "No action",
    1: "Restart the service",
    2: "Reboot the machine",
    3: "Run the configured recovery program",
}
