"""Run one script on one lab machine in a real PowerShell: `run_script` as `winboot_lab.engine.run` has it."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Mapping
from typing import Any

from winboot_lab.engine.automatic import opened
from winboot_lab.engine.commands import all_cmdlets
from winboot_lab.engine.dotnet import RUNTIME
from winboot_lab.engine.moments import ZONE
from winboot_lab.engine.objects import InformationRecord
from winboot_lab.engine.plain import to_value
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.run import Emit, Ended
from winboot_lab.engine.session import Cancelled, Session
from winboot_lab.engine.types.paths import PROCESS_DIRECTORY
from winboot_lab.engine.types.time import zone_ticks
from winboot_lab.pwsh import commands
from winboot_lab.pwsh.answers import Answers
from winboot_lab.pwsh.process import Connection, NoPowerShell, Process
from winboot_lab.pwsh.wire import record
from winboot_lab.windows import cmdlets as _declared
from winboot_lab.windows.call import CMDLETS
from winboot_lab.windows.door import Door, Interrupted, MachineStopped

_DECLARED = _declared  # importing it enters the commands in CMDLETS
_STARTING = threading.Lock()
_PROCESSES: dict[str, Process] = {}


def run_script(
    path: str,
    machine: Door,
    text: str,
    parameters: Mapping[str, object],
    *,
    emit: Emit,
    cancelled: Callable[[], bool] = lambda: False,
    location: str | None = None,
    local_scope: bool = False,
) -> Ended:
    """Run `text` in a fresh runspace of the PowerShell at `path`; all else as in `winboot_lab.engine.run`."""
    session = Session(machine, emit, cancelled)
    top = opened(session, location)
    before = PROCESS_DIRECTORY.set(session.locations.process_directory)
    zone = ZONE.set(zone_ticks(session.machine))
    runtime = RUNTIME.set(top)
    wire = _process(path).connect()
    try:
        answers = Answers(top)
        wire.send(
            {
                "text": text,
                "local": local_scope,
                "functions": _text(machine),
                "cmdlets": [one.name for one in machine.commands.values() if one.kind == "Cmdlet"],
                "parameters": answers.cabinet.to_json(to_value(parameters)),
            }
        )
        return _serve(wire, answers, emit)
    finally:
        wire.close()
        PROCESS_DIRECTORY.reset(before)
        ZONE.reset(zone)
        RUNTIME.reset(runtime)


def _serve(wire: Connection, answers: Answers, emit: Emit) -> Ended:
    """Answer until the script has ended. What no script may see ends it there, and is raised here."""
    over: BaseException | None = None
    while True:
        message = wire.receive()
        if "broken" in message:
            raise NoPowerShell(message["broken"])
        if "ended" in message:
            if isinstance(over, Cancelled):
                return Ended("stopped")
            if over is not None:
                raise over
            ended = message["ended"]
            error = ended.get("error")
            return Ended(
                ended["state"], None if error is None else record(answers.cabinet, error), ended.get("code")
            )
        if over is not None:
            if "ask" in message:
                wire.send({"stop": True})
            continue
        try:
            if "stream" in message:
                _emit(answers, emit, message)
            else:
                wire.send(answers.answer(message))
        except (Refusal, MachineStopped, Interrupted, Cancelled) as stop:
            over = stop
            if "ask" in message:
                wire.send({"stop": True})


def _emit(answers: Answers, emit: Emit, message: Any) -> None:
    stream = message["stream"]
    value = answers.cabinet.from_json(message["value"])
    emit(stream, InformationRecord(value, str(value), []) if stream == "information" else value)


def start(path: str) -> None:
    """Have the PowerShell at `path` running, so that copies of this process (`os.fork`) find one. Raises NoPowerShell."""
    _process(path)


def _process(path: str) -> Process:
    with _STARTING:
        if path not in _PROCESSES:
            _PROCESSES[path] = made = Process(path, [cmdlet.signature for cmdlet in CMDLETS.values()])
            atexit.register(made.close)
        return _PROCESSES[path]


def _text(machine: Door) -> str:
    key = tuple(sorted(machine.commands))
    if key not in _TEXTS:
        own = [all_cmdlets()[name.lower()].spec for name in commands.LAB if name.lower() in all_cmdlets()]
        _TEXTS[key] = commands.modules(machine.commands.values()) + "\n" + commands.own(own)
    return _TEXTS[key]


_TEXTS: dict[tuple[str, ...], str] = {}
