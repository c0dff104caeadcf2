"""Functions of the PowerShell library, called one by one on a lab machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winboot_lab.engine.values import PSCustomObject
from winboot_lab.engines import run_script

from tests.steps.bench import Rig
from winboot.script.library import functions_for


@dataclass(frozen=True)
class Answer:
    """What an expression emitted; `id` and `message` of the error that ended it, or empty texts."""

    objects: list[Any]
    id: str = ""
    message: str = ""


def call(bench: Rig, expression: str) -> Answer:
    """Evaluate an expression with the library functions it names, as the step `files` of a run."""
    library = functions_for(expression)
    text = (
        "Set-StrictMode -Version 2.0\n$ErrorActionPreference = 'Stop'\n$global:ErrorActionPreference = 'Stop'\n"
        f"{library}\n$script:Run = @{{ Mode = 'Change'; Step = 'files'; Cache = @{{}} }}\n$script:Node = @{{}}\n"
        "try {\n" + expression + "\n} catch { [pscustomobject]@{ failed = $_.FullyQualifiedErrorId; "
        "message = $_.Exception.GetBaseException().Message } }\n"
    )
    found: list[Any] = []
    with bench.machine.session("Administrator") as session, bench.machine.acting():
        ended = run_script(session, text, {}, emit=lambda stream, value: found.append(value))
    assert ended.state == "completed", getattr(ended.error, "message", "")
    if found and isinstance(error := found[-1], PSCustomObject) and error.get("failed"):
        found.pop()
        return Answer(found, str(error.get("failed")), str(error.get("message")))
    return Answer(found)
