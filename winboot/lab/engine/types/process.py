"""System.Diagnostics.Process and ProcessStartInfo: programs started directly, with their streams redirected.

A started program runs at the moment somebody waits for it: until then its standard input can still be written, and
nobody can see the difference, because what it says is only to be had through its redirected streams.
"""

from __future__ import annotations

from typing import Any

from winboot.lab.engine.door import ask_one
from winboot.lab.engine.dotnet import OBJECT, Runtime, dotnet
from winboot.lab.engine.exceptions import InvalidOperationException, ObjectDisposedException, Win32Exception
from winboot.lab.engine.refusal import Refusal
from winboot.lab.engine.values import Instance

Value = Any

_DEFAULT_ENCODING = "utf-8"


class ProcessStartInfo(Instance):
    """What to start, and how its streams are connected."""

    def __init__(self, file: str = "", arguments: str = "") -> None:
        self.file = file
        self.arguments = arguments
        self.directory = ""
        self.shell = True
        self.no_window = False
        self.redirect_input = False
        self.redirect_output = False
        self.redirect_error = False
        self.output_encoding: Value = None
        self.error_encoding: Value = None


START = dotnet("System.Diagnostics.ProcessStartInfo", ProcessStartInfo, base=OBJECT)
START.constructor("")(ProcessStartInfo)
START.constructor("string fileName")(ProcessStartInfo)
START.constructor("string fileName, string arguments")(ProcessStartInfo)


def _attribute(owner: Any, name: str, type_name: str, attribute: str) -> None:
    owner.prop(
        name,
        type_name,
        lambda self: getattr(self, attribute),
        lambda self, value: setattr(self, attribute, value),
    )


for _name, _type, _attr in (
    ("FileName", "string", "file"),
    ("Arguments", "string", "arguments"),
    ("WorkingDirectory", "string", "directory"),
    ("UseShellExecute", "bool", "shell"),
    ("CreateNoWindow", "bool", "no_window"),
    ("RedirectStandardInput", "bool", "redirect_input"),
    ("RedirectStandardOutput", "bool", "redirect_output"),
    ("RedirectStandardError", "bool", "redirect_error"),
    ("StandardOutputEncoding", "System.Text.Encoding", "output_encoding"),
    ("StandardErrorEncoding", "System.Text.Encoding", "error_encoding"),
):
    _attribute(START, _name, _type, _attr)
START.refuses("Domain Environment EnvironmentVariables ErrorDialog LoadUserProfile Password UserName Verb WindowStyle")


class StartedProcess(Instance):
    """A program that was started; `outcome` is what the machine says of it once it has run."""

    def __init__(self, info: ProcessStartInfo) -> None:
        self.info = info
        self.stdin = ""
        self.outcome: Any = None
        self.killed = False
        self.disposed = False

    def command_line(self) -> str:
        """The program quoted, its arguments as they were given."""
        return f'"{self.info.file}" {self.info.arguments}'.rstrip()

    def run(self, runtime: Runtime, milliseconds: int = -1) -> bool:
        """Run to the end, or for so long; false when it did not end in time."""
        if self.disposed:
            raise ObjectDisposedException("Process", "Cannot access a disposed object.")
        if self.outcome is None:
            self.outcome = ask_one(
                runtime,
                "program.run",
                command_line=self.command_line(),
                working_directory=self.info.directory or None,
                stdin=self.stdin.encode("utf-8"),
                timeout_ms=milliseconds,
            )
        return not self.outcome["timed_out"]

    def text(self, runtime: Runtime, stream: str) -> str:
        """Everything the program wrote to one stream."""
        self.run(runtime)
        return bytes(self.outcome[stream]).decode(_DEFAULT_ENCODING, "replace")


PROCESS = dotnet("System.Diagnostics.Process", StartedProcess, base=OBJECT)


@PROCESS.static_method("Start(System.Diagnostics.ProcessStartInfo startInfo)", effect=True)
def _start(runtime: Runtime, info: ProcessStartInfo) -> StartedProcess:
    if info.shell:
        raise Refusal("member", "ProcessStartInfo.UseShellExecute = $true")
    if not info.file:
        raise InvalidOperationException("Cannot start process because a file name has not been provided.")
    if ask_one(runtime, "file.stat", path=info.file, follow=True) is None:
        raise Win32Exception("The system cannot find the file specified", 2)
    return StartedProcess(info)


class ProcessReader(Instance):
    """The StreamReader on a program's output or error stream."""

    def __init__(self, process: StartedProcess, stream: str) -> None:
        self.process = process
        self.stream = stream


class ProcessWriter(Instance):
    """The StreamWriter on a program's input."""

    def __init__(self, process: StartedProcess) -> None:
        self.process = process


class TextTask(Instance):
    """A Task[string] whose result is read from the program when it is asked for."""

    def __init__(self, reader: ProcessReader) -> None:
        self.reader = reader


READER = dotnet("System.IO.StreamReader+Process", ProcessReader, base=OBJECT)
WRITER = dotnet("System.IO.StreamWriter+Process", ProcessWriter, base=OBJECT)
TASK = dotnet("System.Threading.Tasks.Task`1[System.String]+Process", TextTask, base=OBJECT)


def _redirected(attribute: str, made: Any, what: str) -> Any:
    def get(self: StartedProcess) -> Value:
        if not getattr(self.info, attribute):
            raise InvalidOperationException(f"Standard{what} has not been redirected.")
        return made(self)

    return get


PROCESS.prop(
    "StandardOutput", "object", _redirected("redirect_output", lambda self: ProcessReader(self, "stdout"), "Out")
)
PROCESS.prop(
    "StandardError", "object", _redirected("redirect_error", lambda self: ProcessReader(self, "stderr"), "Error")
)
PROCESS.prop("StandardInput", "object", _redirected("redirect_input", ProcessWriter, "In"))
PROCESS.prop("ExitCode", "int", lambda runtime, self: _exit_code(runtime, self), effect=True)
PROCESS.prop("HasExited", "bool", lambda runtime, self: self.run(runtime), effect=True)
PROCESS.method("void WaitForExit()", effect=True)(lambda runtime, self: self.run(runtime))
PROCESS.method("WaitForExit(int milliseconds)", effect=True)(lambda runtime, self, ms: self.run(runtime, ms))
PROCESS.method("void Kill()")(lambda self: setattr(self, "killed", True))
PROCESS.method("void Dispose()", "void Close()")(lambda self: setattr(self, "disposed", True))
PROCESS.refuses("Id Handle MainModule StartTime ExitTime BeginOutputReadLine BeginErrorReadLine Refresh PriorityClass")


def _exit_code(runtime: Runtime, self: StartedProcess) -> int:
    self.run(runtime)
    return int(self.outcome["exit_code"])


READER.method("ReadToEnd()", effect=True)(lambda runtime, self: self.process.text(runtime, self.stream))
READER.method("ReadToEndAsync()")(TextTask)
READER.method("void Dispose()", "void Close()")(lambda self: None)
READER.refuses("ReadLine Read Peek EndOfStream BaseStream CurrentEncoding ReadLineAsync")
TASK.prop("Result", "string", lambda runtime, self: self.reader.process.text(runtime, self.reader.stream), effect=True)
TASK.refuses("Wait Status IsCompleted GetAwaiter ContinueWith Exception")


def _write(self: ProcessWriter, text: str | None) -> None:
    self.process.stdin += text or ""


WRITER.method("void Write(string value)")(_write)
WRITER.method("void WriteLine(string value)")(lambda self, text: _write(self, (text or "") + "\r\n"))
WRITER.method("void Flush()", "void Close()", "void Dispose()")(lambda self: None)
WRITER.refuses("AutoFlush BaseStream Encoding NewLine WriteAsync")
