"""powershell.exe (and any other program) of a lab machine, started by a command line, with standard streams.

sshd starts it for a command, and the executable `winboot-lab-powershell` replaces it. Exit codes are those of
powershell.exe: the number given to `exit`, 0 for a script that ran to its end, 1 for one that ended by an error
(about_PowerShell_exe, "-Command" and "-File").
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Final

from winboot.script.literals import quoted
from winboot_lab.engine.convert import to_string
from winboot_lab.engine.exceptions import ErrorRecord
from winboot_lab.engine.objects import InformationRecord
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import plain
from winboot_lab.engines import run_script
from winboot_lab.windows.door import Interrupted, MachineStopped
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.paths import leaf
from winboot_lab.windows.processes import split_arguments
from winboot_lab.windows.session import Computer, Session, StandardStreams

POWERSHELL: Final = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe"
# Words of powershell.exe without a value, and with one, that change nothing in the lab.
_SWITCHES: Final = frozenset({"-nologo", "-noprofile", "-noninteractive", "-mta", "-sta"})
_VALUED: Final = frozenset({"-inputformat", "-outputformat", "-executionpolicy", "-windowstyle", "-version"})
_POLICIES: Final = (
    r"HKEY_LOCAL_MACHINE\SOFTWARE\Policies\Microsoft\Windows\PowerShell",
    r"HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\PowerShell\1\ShellIds\Microsoft.PowerShell",
)
_STOPPED: Final = -1
_PLAIN: Final = (str, int, float, bool)


def run_command(
    machine: Machine,
    command_line: str,
    streams: StandardStreams,
    *,
    user: str = "Administrator",
    started: Callable[[Session], None] = lambda session: None,
) -> int:
    """Run a command line as `user` in a process of its own and give its exit code.

    `started` gets the session, whose `interrupt` ends the run. What the lab does not know goes to standard error as a
    refusal, is kept in `machine.refusals`, and ends with code 1.
    """
    try:
        with machine.session(user, host=POWERSHELL) as session:
            session.standard = streams
            started(session)
            with machine.acting():
                return _run(machine, session, command_line)
    except Refusal as refusal:
        machine.refusals.append(refusal)
        streams.error(f"the lab refuses: {refusal}\n".encode())
        return 1
    except (MachineStopped, Interrupted, BrokenPipeError):
        return _STOPPED  # the machine went down, another program ended this one, or the reader of its output is gone


def _run(machine: Machine, session: Session, command_line: str) -> int:
    words = split_arguments(command_line)
    if leaf(words[0]).lower().removesuffix(".exe") == "powershell":
        return powershell(session, words[1:])
    try:
        with machine.lock:
            process = machine.processes.spawn(
                command_line, token=session.token, environment=session.environment
            )
            exit = machine.processes.run(process)
    except Failure as failed:
        session.standard.error(f"{failed}\n".encode())
        return failed.win32 or 1
    session.standard.output(exit.stdout)
    session.standard.error(exit.stderr)
    return exit.code


def powershell(session: Session, arguments: list[str]) -> int:
    """powershell.exe with these words, writing to the session's standard streams; gives its exit code."""
    text = script_of(arguments, session.machine)
    if text == "-":
        text = session.standard.read(1 << 30).decode("utf-8-sig")
    printer = _Printer(session.standard)
    ended = run_script(session, text, {}, emit=printer.emit)
    if ended.exit_code is not None:
        return ended.exit_code
    if ended.state == "failed":
        printer.emit("error", ended.error)
    return 0 if ended.state == "completed" else 1


def silent_powershell(session: Session, arguments: list[str]) -> int:
    """powershell.exe as scheduled tasks call it, without output; returns its exit code.

    If there is standard input, the caller sees the output as well."""
    if session.standard.input:
        return powershell(session, arguments)
    text = script_of(arguments, session.machine)
    ended = run_script(session, text, {}, emit=lambda stream, value: None)
    if ended.exit_code is not None:
        return ended.exit_code
    return 0 if ended.state == "completed" else 1


def script_of(arguments: list[str], machine: Computer) -> str:
    """The script in the words of a powershell.exe command line, `-` for the one on standard input.

    A script file is called with the words behind it, unless a policy wants it signed. Other ways of passing a script
    are refused.
    """
    words = list(arguments)
    while words:
        word = words.pop(0).lower()
        if word in _SWITCHES:
            continue
        if word in _VALUED and words:
            words.pop(0)
        elif word == "-encodedcommand" and words:
            return _decoded(words[0])
        elif word == "-command" and words:
            return " ".join(words)
        elif word == "-file" and words:
            return _unsigned(words[0]) if _wants_signatures(machine) else _call(words)
        else:
            break
    raise Refusal("program", f"powershell.exe {' '.join(arguments[:4])}")


def _call(words: list[str]) -> str:
    # What begins with a dash names a parameter; all else is text (about_PowerShell_exe, "-File").
    return (
        f"& {' '.join(word if word.startswith('-') else quoted(word) for word in words)}\nexit $LASTEXITCODE"
    )


def _unsigned(path: str) -> str:
    message = f"File {path} cannot be loaded because running scripts without a signature is disabled on this system."
    return f"throw {quoted(message)}"


def _wants_signatures(machine: Computer) -> bool:
    # about_Execution_Policies: a Group Policy, then the machine's setting; the default of Windows Server is RemoteSigned.
    found = (machine.registry.value(key, "ExecutionPolicy") for key in _POLICIES)
    policy = next((str(value.data) for value in found if value is not None), "RemoteSigned")
    return policy in ("AllSigned", "Restricted")


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-16-le")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise Refusal("program", "powershell.exe -EncodedCommand with no base64 of UTF-16 text") from error


class _Printer:
    """What the console host prints: text as it is. How other objects are formatted, the lab does not know."""

    def __init__(self, streams: StandardStreams) -> None:
        self._streams = streams

    def emit(self, stream: str, value: object) -> None:
        """One object of a stream, as a line."""
        match stream, value:
            case "output", None:
                return
            case "output", _ if isinstance(plain(value), _PLAIN):
                self._line(to_string(value))
            case "output", _:
                raise Refusal("value", type(value).__name__, "the lab's console prints text and numbers only")
            case "error", ErrorRecord():
                self._streams.error(f"{value.exception.message} [{value.id}]\r\n".encode())
            case "information", InformationRecord():
                self._line(value.message)
            case (("warning" | "verbose" | "debug"), _):
                self._line(f"{stream.upper()}: {to_string(value)}")
            case _:
                return

    def _line(self, text: str) -> None:
        self._streams.output(f"{text}\r\n".encode())
