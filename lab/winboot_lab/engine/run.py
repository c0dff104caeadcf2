"""Run one script on one lab machine: what the wsman server, detached tasks and the conformance runner call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from winboot_lab.engine import cmdlets as _cmdlets  # declares the cmdlets
from winboot_lab.engine import types as _types  # declares the .NET types
from winboot_lab.engine.automatic import opened
from winboot_lab.engine.binder import Argument
from winboot_lab.engine.blocks import PiecedCode
from winboot_lab.engine.commands import Script
from winboot_lab.engine.compiler import commands as _commands  # these four teach the compiler its nodes
from winboot_lab.engine.compiler import expressions as _expressions
from winboot_lab.engine.compiler import functions as _functions
from winboot_lab.engine.compiler import statements as _statements
from winboot_lab.engine.dotnet import RUNTIME
from winboot_lab.engine.errors import as_runtime, record_of
from winboot_lab.engine.exceptions import DotNetException
from winboot_lab.engine.flow import ExitScript, LoopJump, ReturnFromBlock, StopUpstream
from winboot_lab.engine.invoke import BlockStage
from winboot_lab.engine.moments import ZONE
from winboot_lab.engine.objects import Invocation
from winboot_lab.engine.places import ABOVE
from winboot_lab.engine.programs import compiled
from winboot_lab.engine.room import deep_calls, with_room
from winboot_lab.engine.session import Cancelled, Session
from winboot_lab.engine.stages import Line, run_stage
from winboot_lab.engine.types.paths import PROCESS_DIRECTORY
from winboot_lab.engine.types.time import zone_ticks
from winboot_lab.windows.door import Door

_LOADED = (_cmdlets, _types, _commands, _expressions, _functions, _statements)

Stream = Literal["output", "error", "warning", "verbose", "debug", "information", "progress"]
Emit = Callable[[Stream, object], None]
State = Literal["completed", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended: `failed` carries the terminating ErrorRecord as `error`; `stopped` means cancelled.

    `exit_code` is the number given to `exit`, else None. A refusal is never an `Ended`: it is raised.
    """

    state: State
    error: object | None = None
    exit_code: int | None = None


def run_script(
    machine: Door,
    text: str,
    parameters: Mapping[str, object],
    *,
    emit: Emit,
    cancelled: Callable[[], bool] = lambda: False,
    location: str | None = None,
    local_scope: bool = False,
) -> Ended:
    """Run `text` on `machine` in a fresh runspace; every object goes to `emit(stream, value)` the moment it falls.

    `parameters` are the script's named arguments (values may be SecureString and nested dicts), `location` the folder it
    begins in. With `local_scope` the script has a scope of its own below the global one, like AddScript's useLocalScope.
    A script that does not parse ends as `failed` with a ParseException. Raises `Refusal` where the script asks for a
    feature that the lab lacks, and lets the machine's own MachineStopped and Interrupted through.
    """
    session = Session(machine, emit, cancelled)
    top = opened(session, location)
    from winboot_lab.engine.plain import to_value

    arguments = [
        Argument(name, to_value(value), f"-{name}", splatted=True) for name, value in parameters.items()
    ]
    before = PROCESS_DIRECTORY.set(session.locations.process_directory)
    zone = ZONE.set(zone_ticks(session.machine))
    runtime = RUNTIME.set(top)
    above = ABOVE.set(0)
    try:
        with deep_calls():
            code = compiled(text)
            if isinstance(code, PiecedCode):
                ABOVE.set(code.lines_above)
            stage = BlockStage(
                top,
                code,
                arguments,
                lambda value: session.emit("output", value),
                Line(),
                dotted=not local_scope,
                invocation=Invocation(None, Script(code)),
            )
            with_room(lambda: run_stage(stage))
    except DotNetException as failure:
        record = record_of(as_runtime(failure))
        session.remember(record)
        return Ended("failed", record)
    except ExitScript as ended:
        top.put("LASTEXITCODE", ended.code)
        return Ended("completed", exit_code=ended.code)
    except (LoopJump, ReturnFromBlock, StopUpstream):
        # `break` without a loop ends the script without a word.
        return Ended("completed")
    except Cancelled:
        return Ended("stopped")
    finally:
        PROCESS_DIRECTORY.reset(before)
        ZONE.reset(zone)
        RUNTIME.reset(runtime)
        ABOVE.reset(above)
    return Ended("completed")
