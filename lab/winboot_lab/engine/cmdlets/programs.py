"""Start-Process."""

from __future__ import annotations

from typing import Any, NoReturn

from winboot_lab.engine.bridge import to_value
from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import MANAGEMENT, cmdlet
from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.exceptions import DotNetException, InvalidOperationException
from winboot_lab.engine.locations import full_path
from winboot_lab.engine.native import needs_quotes, working_directory
from winboot_lab.engine.types.process import ProcessStartInfo, StartedProcess

Value = Any


@cmdlet(
    "Start-Process",
    """
    FilePath: string mandatory position=0 alias=PSPath filled
    ArgumentList: string[] position=1 alias=Args filled
    Credential: pscredential refused
    WorkingDirectory: string filled
    LoadUserProfile: switch refused
    NoNewWindow: switch alias=nnw
    PassThru: switch
    RedirectStandardError: string alias=RSE filled
    RedirectStandardInput: string alias=RSI filled
    RedirectStandardOutput: string alias=RSO filled
    Verb: string refused
    Wait: switch
    WindowStyle: string words=Normal,Hidden,Minimized,Maximized
    UseNewEnvironment: switch refused
    """,
    module=MANAGEMENT,
)
def start_process(call: Call) -> None:
    """Start a program; the arguments are joined with blanks, without any quoting."""
    path = _program(call, call["FilePath"])
    arguments = " ".join(call.text(argument) for argument in call.items("ArgumentList"))
    line = f'"{path}"' if needs_quotes(path) else path
    given = {
        "command_line": f"{line} {arguments}".rstrip(),
        "working_directory": _folder(call),
    }
    redirects = any(call.has(f"RedirectStandard{stream}") for stream in ("Output", "Error", "Input"))
    try:
        if call.flag("Wait") or redirects:
            _run(call, path, arguments, given)
            return
        started = ask(call.scope, "program.start", **given)
    except DotNetException as failure:
        _cannot(call, failure.message)
    if call.flag("PassThru"):
        call.write(to_value(started[0]))


def _cannot(call: Call, why: str) -> NoReturn:
    call.fail(
        InvalidOperationException(f"This command cannot be run due to the error: {why}"),
        "InvalidOperationException",
        "InvalidOperation",
    )


def _program(call: Call, name: str) -> str:
    wanted = name
    if "\\" in name or "/" in name or ":" in name:
        wanted = full_path(call.scope, name)
    else:
        beside = full_path(call.scope, name)
        if ask_one(call.scope, "file.stat", path=beside) is not None:
            wanted = beside
    found = ask_one(call.scope, "program.find", name=wanted)
    if found is None:
        _cannot(call, "The system cannot find the file specified.")
    return str(found)


def _folder(call: Call) -> str:
    if call.has("WorkingDirectory"):
        return full_path(call.scope, call["WorkingDirectory"])
    return working_directory(call.scope)


def _run(call: Call, path: str, arguments: str, given: dict[str, str]) -> None:
    stdin = b""
    if call.has("RedirectStandardInput"):
        stdin = bytes(
            ask(call.scope, "file.read", path=full_path(call.scope, call["RedirectStandardInput"]))[0]
        )
    outcome = ask_one(call.scope, "program.run", stdin=stdin, **given)
    for stream, name in (("stdout", "RedirectStandardOutput"), ("stderr", "RedirectStandardError")):
        if call.has(name):
            target = full_path(call.scope, call[name])
            ask(call.scope, "file.write", path=target, content=bytes(outcome[stream]))
    if call.flag("PassThru"):
        process = StartedProcess(ProcessStartInfo(path, arguments))
        process.outcome = outcome
        call.write(process)
