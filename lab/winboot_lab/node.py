"""One lab node: a machine, its WinRM endpoint, and the engine that runs what comes in."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from winboot_lab.console import silent_powershell
from winboot_lab.engine.convert import to_string
from winboot_lab.engine.dotnet import lookup
from winboot_lab.engine.exceptions import DotNetException, ErrorRecord
from winboot_lab.engine.objects import InformationRecord, Invocation
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import SecureString
from winboot_lab.engines import run_script
from winboot_lab.windows.door import Interrupted, MachineStopped
from winboot_lab.windows.host import Signal
from winboot_lab.windows.machine import Machine
from winboot_lab.wsman import executor as wire
from winboot_lab.wsman.endpoint import Endpoint, Settings
from winboot_lab.wsman.farm import Farm

if TYPE_CHECKING:
    from winboot_lab.ssh import SshServer

USER: Final = "Administrator"
WINRM_PORTS: Final = (5985, 5986)
SSH_PORT: Final = 22
_PLAIN: Final = (str, int, bool, float, bytes, type(None))


class Runner:
    """Runs a pipeline's script on the machine, in a network logon of its own."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def run(
        self, script: str, parameters: Mapping[str, object], emit: wire.Emit, cancelled: wire.Stop
    ) -> wire.Ended:
        """See `winboot_lab.wsman.executor.Executor`. A refusal ends the script, and the machine keeps it."""
        with self._machine.session(USER) as session:
            # A script that sleeps for an hour of the lab's time would not ask before it is over.
            cancelled.then(session.interrupt)
            try:
                with self._machine.acting():
                    ended = run_script(
                        session,
                        script,
                        {name: _secured(value) for name, value in parameters.items()},
                        emit=lambda stream, value: _emit(emit, stream, value),
                        cancelled=cancelled,
                        # As the transport asks for it.
                        local_scope=True,
                    )
            except Refusal as refusal:
                self._machine.refusals.append(refusal)
                return wire.Ended("failed", wire.ErrorRecord(f"the lab refuses: {refusal}", "LabRefusal"))
            except (MachineStopped, Interrupted):
                return wire.Ended("stopped")
        error = _record(ended.error) if isinstance(ended.error, ErrorRecord) else None
        return wire.Ended(ended.state, error)


def _secured(value: object) -> object:
    match value:
        case wire.SecureText():
            return SecureString(value.value)
        case Mapping():
            return {key: _secured(item) for key, item in value.items()}
        case list():
            return [_secured(item) for item in value]
    return value


def _emit(emit: wire.Emit, stream: wire.Stream, value: object) -> None:
    match stream, value:
        case "output", _:
            # What is no string comes as text, for winboot's scripts write nothing else.
            emit(stream, value if type(value) in _PLAIN else to_string(value))
        case "error", ErrorRecord():
            emit(stream, _record(value))
        case "error", _:
            emit(stream, wire.ErrorRecord(to_string(value)))
        case "information", InformationRecord():
            emit(stream, wire.Information(value.message, value.source, tuple(value.tags)))
        case (("warning" | "verbose" | "debug"), _):
            emit(stream, to_string(value))
        case _:
            pass  # winboot does not read progress


def _record(record: ErrorRecord) -> wire.ErrorRecord:
    categories = lookup("System.Management.Automation.ErrorCategory")
    number = categories.constants.get(record.category, 0) if categories is not None else 0
    position = wire.Position()
    if isinstance(record.invocation, Invocation):
        at = record.invocation
        position = wire.Position(at.line_number, at.column, at.line, at.position_message)
    return wire.ErrorRecord(
        message=record.exception.message,
        error_id=record.id,
        category=number,
        category_name=record.category,
        activity=record.activity,
        reason=record.reason or record.exception.type_name.rpartition(".")[2],
        target_name=record.target_name or "",
        target_type=record.target_type or "",
        exception=_lineage(record.exception),
        hresult=record.exception.hresult,
        position=position,
        stack=record.script_stack_trace or "",
        details=record.details.message if record.details is not None else None,
    )


def _lineage(exception: DotNetException) -> tuple[str, ...]:
    classes = [each for each in type(exception).__mro__ if issubclass(each, DotNetException)]
    return (*dict.fromkeys(each.type_name for each in classes), "System.Object")


class LabNode:
    """A machine that answers WinRM, restarts on command, and runs its own PowerShell tasks."""

    def __init__(
        self, farm: Farm, machine: Machine, *, address: str, password: str, https: bool = False
    ) -> None:
        self.machine = machine
        self.ssh: SshServer | None = None
        self._farm = farm
        settings = Settings(
            users={USER: password},
            computer_name=machine.name,
            address=address,
            https_port=0 if https else None,
            ps_version=f"5.1.{machine.build}.{machine.release.ubr}",
        )
        self.endpoint: Endpoint = farm.add(machine.label, Runner(machine), settings)
        # On loopback WinRM has whatever port was free; scripts that look for their own way in find it there
        # too.
        here = (self.endpoint.http_port, self.endpoint.https_port)
        machine.manage_at(*WINRM_PORTS[: 1 + https], *(port for port in here if port))
        machine.run_powershell = silent_powershell
        machine.watch(self._signal)
        machine.live()

    def open_ssh(self, password: str) -> SshServer:
        """Let sshd run on the machine, too; the login is that of WinRM."""
        from winboot_lab.ssh import SshServer  # paramiko, which only some labs need

        self.ssh = SshServer(self.machine, user=USER, password=password)
        self.machine.manage_at(*self.machine.power.management_ports, SSH_PORT, self.ssh.port)
        return self.ssh

    @property
    def refusals(self) -> list[Refusal]:
        """The features that scripts used on this machine and the lab lacks."""
        return self.machine.refusals

    def _signal(self, signal: Signal) -> None:
        """Let the endpoint follow the machine, without waiting for it: the machine holds its lock."""
        if self.ssh is not None and not (signal != "down" and self.machine.reachable()):
            threading.Thread(target=self.ssh.cut, daemon=True).start()
        if signal == "down":
            self._farm.tell(self.endpoint, "down")
        else:
            self._farm.tell(self.endpoint, "up" if self.machine.reachable() else "cut")
