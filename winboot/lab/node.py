"""One lab node: a machine, its WinRM endpoint, and the engine that runs what comes in."""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Callable, Mapping
from typing import Final

from winboot.lab.engine.exceptions import ErrorRecord
from winboot.lab.engine.objects import Invocation
from winboot.lab.engine.refusal import Refusal
from winboot.lab.engine.run import run_script
from winboot.lab.engine.convert import to_string
from winboot.lab.engine.values import SecureString
from winboot.lab.windows.door import Interrupted, MachineStopped
from winboot.lab.windows.machine import Machine, Signal
from winboot.lab.windows.session import Session
from winboot.lab.wsman import executor as wire
from winboot.lab.wsman.endpoint import Endpoint, Settings
from winboot.lab.wsman.farm import Farm

USER: Final = "Administrator"
_CATEGORIES: Final = ["NotSpecified", "OpenError", "CloseError", "DeviceError", "DeadlockDetected", "InvalidArgument", "InvalidData", "InvalidOperation", "InvalidResult", "InvalidType", "MetadataError", "NotImplemented", "NotInstalled", "ObjectNotFound", "OperationStopped", "OperationTimeout", "SyntaxError", "ParserError", "PermissionDenied", "ResourceBusy", "ResourceExists", "ResourceUnavailable", "ReadError", "WriteError", "FromStdErr", "SecurityError", "ProtocolError", "ConnectionError", "AuthenticationError", "LimitsExceeded", "QuotaExceeded", "NotEnabled"]


class Runner:
    """Runs a pipeline's script on the machine, in a network logon of its own."""

    def __init__(self, machine: Machine, *, refused: Callable[[Refusal], None]) -> None:
        self._machine = machine
        self._refused = refused

    def run(
        self, script: str, parameters: Mapping[str, object], emit: wire.Emit, cancelled: Callable[[], bool]
    ) -> wire.Ended:
        """See `winboot.lab.wsman.executor.Executor`."""
        session = self._machine.session(USER)
        try:
            with self._machine.acting():
                ended = run_script(
                    session,
                    script,
                    {name: _secured(value) for name, value in parameters.items()},
                    emit=lambda stream, value: _emit(emit, stream, value),
                    cancelled=cancelled,
                )
        except Refusal as refusal:
            self._refused(refusal)
            return wire.Ended("failed", wire.ErrorRecord(f"the lab refuses: {refusal}", "LabRefusal"))
        except (MachineStopped, Interrupted):
            return wire.Ended("stopped")
        finally:
            session.close()
        if ended.state == "failed" and isinstance(ended.error, ErrorRecord):
            return wire.Ended("failed", _record(ended.error))
        return wire.Ended(ended.state)


def _secured(value: object) -> object:
    match value:
        case wire.SecureText():
            return SecureString(value.value)
        case Mapping():
            return {key: _secured(item) for key, item in value.items()}
        case list():
            return [_secured(item) for item in value]
    return value


def _emit(emit: wire.Emit, stream: str, value: object) -> None:
    match stream:
        case "output":
            emit(
                "output", value if value is None or type(value) in (str, int, bool, float) else to_string(value)
            )
        case "error":
            emit(
                "error",
                _record(value) if isinstance(value, ErrorRecord) else wire.ErrorRecord(to_string(value)),
            )
        case "warning" | "verbose" | "debug":
            emit(stream, to_string(value))
        # Progress and information carry nothing that a caller of winboot's scripts reads.


def _record(record: ErrorRecord) -> wire.ErrorRecord:
    category = record.category if record.category in _CATEGORIES else "NotSpecified"
    invocation = record.invocation
    position = wire.Position()
    if isinstance(invocation, Invocation):
        position = wire.Position(
            invocation.line_number, invocation.column, invocation.line, invocation.position_message
        )
    return wire.ErrorRecord(
        message=record.message,
        error_id=record.id,
        category=_CATEGORIES.index(category),
        category_name=category,
        activity=record.activity,
        reason=record.reason or record.exception.type_name.rpartition(".")[2],
        exception=(record.exception.type_name, "System.Exception", "System.Object"),
        position=position,
        stack=record.script_stack_trace or "",
    )


class LabNode:
    """A machine that can be reached over WinRM, restarts when told, and runs its own PowerShell tasks."""

    def __init__(
        self, farm: Farm, machine: Machine, *, address: str, password: str, https: bool = False
    ) -> None:
        self.machine = machine
        self.refusals: list[Refusal] = []
        self._farm = farm
        settings = Settings(
            users={USER: password},
            computer_name=machine.name,
            address=address,
            https_port=0 if https else None,
        )
        runner = Runner(machine, refused=self.refusals.append)
        self.endpoint: Endpoint = farm.add(machine.label, runner, settings)
        machine.run_powershell = self._run_powershell
        machine.watch(self._signal)

    def _signal(self, signal: Signal) -> None:
        """The machine tells under its lock; the endpoint's own threads may wait for that lock, so another one acts."""
        match signal:
            case "down" | "network-lost":
                threading.Thread(target=self._farm.down, args=(self.endpoint,), daemon=True).start()
            case "up" | "network-back":
                threading.Thread(target=self._farm.up, args=(self.endpoint,), daemon=True).start()

    def _run_powershell(self, session: Session, arguments: list[str]) -> int:
        """powershell.exe as scheduled tasks call it: -EncodedCommand, or a refusal by name."""
        text = _encoded(arguments)
        try:
            with self.machine.acting():
                ended = run_script(session, text, {}, emit=lambda stream, value: None)
        except Refusal as refusal:
            self.refusals.append(refusal)
            raise
        if ended.exit_code is not None:
            return ended.exit_code
        return 0 if ended.state == "completed" else 1


def _encoded(arguments: list[str]) -> str:
    """The script in the words of a powershell.exe command line; other ways of passing one are refused."""
    lowered = [word.lower() for word in arguments]
    known = {"-nologo", "-noprofile", "-noninteractive", "-encodedcommand"}
    if "-encodedcommand" not in lowered:
        raise Refusal("program", f"powershell.exe {' '.join(arguments[:4])}")
    at = lowered.index("-encodedcommand")
    for word in lowered[:at]:
        if word not in known:
            raise Refusal("program", f"powershell.exe {word}")
    try:
        return base64.b64decode(arguments[at + 1], validate=True).decode("utf-16-le")
    except (IndexError, binascii.Error, UnicodeDecodeError) as error:
        raise Refusal("program", "powershell.exe -EncodedCommand with no base64 of UTF-16 text") from error
