"""System.Diagnostics.Process and ProcessStartInfo: programs started directly, with or without redirected streams.

A program with redirected streams runs when the script waits for it or reads from it. Until then the script can still
write its standard input. The script cannot see the difference: it sees the program through those streams alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import Runtime, dotnet
from winboot_lab.engine.exceptions import (
    InvalidOperationException,
    ObjectDisposedException,
    Win32Exception,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.streams import (
    STREAM,
    STREAM_READER,
    STREAM_WRITER,
    MemoryStream,
    StreamReader,
    Writer,
    split_line,
)
from winboot_lab.engine.types.text import OEM, Encoding
from winboot_lab.engine.values import IDISPOSABLE, Hashtable, Instance, Value, enum_value


def _one(runtime: Runtime, primitive: str, **parameters: Any) -> Any:
    return ask_one(runtime, primitive, **parameters)


# -- what to start

_FLAGS = (
    "UseShellExecute",
    "RedirectStandardOutput",
    "RedirectStandardError",
    "RedirectStandardInput",
    "CreateNoWindow",
)


class ProcessStartInfo(Instance):
    """What to start, and how its streams are connected."""

    def __init__(self, file: str = "", arguments: str = "") -> None:
        self.file = file or ""
        self.arguments = arguments or ""
        self.directory = ""
        self.verb = ""
        self.flags = dict.fromkeys(_FLAGS, False) | {"UseShellExecute": True}
        self.window_style = enum_value("System.Diagnostics.ProcessWindowStyle", "Normal")
        self.environment: Hashtable | None = None
        self.output_encoding: Encoding | None = None
        self.error_encoding: Encoding | None = None

    @property
    def redirected(self) -> bool:
        return any(self.flags[f"RedirectStandard{name}"] for name in ("Output", "Error", "Input"))


START = dotnet("System.Diagnostics.ProcessStartInfo", ProcessStartInfo)
START.constructor("")(ProcessStartInfo)


def _attribute(name: str, type_name: str, attribute: str) -> None:
    def put(self: ProcessStartInfo, value: Value) -> None:
        setattr(self, attribute, "" if value is None and type_name == "string" else value)

    START.prop(name, type_name, lambda self: getattr(self, attribute), put)


def _flag(name: str) -> None:
    def put(self: ProcessStartInfo, value: Value) -> None:
        self.flags[name] = value

    START.prop(name, "bool", lambda self: self.flags[name], put)


for _name, _type, _attr in (
    ("FileName", "string", "file"),
    ("Arguments", "string", "arguments"),
    ("WorkingDirectory", "string", "directory"),
    ("Verb", "string", "verb"),
    ("WindowStyle", "System.Diagnostics.ProcessWindowStyle", "window_style"),
    ("StandardOutputEncoding", "System.Text.Encoding", "output_encoding"),
    ("StandardErrorEncoding", "System.Text.Encoding", "error_encoding"),
):
    _attribute(_name, _type, _attr)
for _name in _FLAGS:
    _flag(_name)


def _variables(runtime: Runtime, self: ProcessStartInfo) -> Hashtable:
    if self.environment is None:
        self.environment = Hashtable.of(_one(runtime, "environment.all", target="Process") or {})
    return self.environment


START.prop("Environment", "object", _variables, effect=True)

# -- the process


class StartedProcess(Instance):
    """A program that was started; `outcome` is what the machine says of a redirected one once it has run."""

    def __init__(self, info: ProcessStartInfo | None = None) -> None:
        self.info = info or ProcessStartInfo()
        self.started = info is not None
        self.outcome: Any = None
        # How long a script has waited for a redirected program: it sees the end once that is as long as the program took.
        self.waited = 0
        self.pid: int | None = None
        self.exit_code: int | None = None
        self.readers: dict[str, ProcessReader] = {}
        self.input: ProcessInput | None = None
        self.disposed = False

    def parameters(self, runtime: Runtime) -> dict[str, Any]:
        """The command line, folder and environment for the machine."""
        line = f"{_quoted(runtime, self.info.file)} {self.info.arguments}".rstrip()
        found: dict[str, Any] = {"command_line": line}
        if self.info.directory:
            found["working_directory"] = self.info.directory
        if self.info.environment is not None:
            found["environment"] = {str(name): str(value) for name, value in self.info.environment.items()}
        return found

    def run(self, runtime: Runtime, milliseconds: int = -1) -> bool:
        """Run a redirected program to its end and wait for it for so long; False while it took longer than that.

        The program runs at once, and the lab's time with it. A script that waits in slices and looks at a clock sees all
        the time pass with the first one.
        """
        self.check()
        if self.outcome is None:
            self.outcome = _one(
                runtime,
                "program.run",
                stdin=b"" if self.input is None else self.input.content(),
                **self.parameters(runtime),
            )
        if milliseconds >= 0:
            self.waited += milliseconds
        return milliseconds < 0 or self.waited >= self.outcome["took_ms"]

    def check(self) -> None:
        """Complain when nothing was started, or when it is disposed."""
        if self.disposed:
            raise ObjectDisposedException("Process", "Cannot access a disposed object.")
        if not self.started:
            raise InvalidOperationException("No process is associated with this object.")


def _quoted(runtime: Runtime, name: str) -> str:
    if name.startswith('"'):
        return name
    if "\\" not in name and "/" not in name:
        name = _one(runtime, "program.find", name=name) or name
    return f'"{name}"'


def _is_program(runtime: Runtime, name: str) -> bool:
    name = name.strip('"')
    if "\\" not in name and "/" not in name:
        return _one(runtime, "program.find", name=name) is not None
    return _one(runtime, "file.stat", path=name, follow=True) is not None


def _start(runtime: Runtime, self: StartedProcess) -> bool:
    info = self.info
    if not info.file:
        raise InvalidOperationException("Cannot start process because a file name has not been provided.")
    if info.redirected and info.flags["UseShellExecute"]:
        raise InvalidOperationException(
            "The Process object must have the UseShellExecute property set to false in order to redirect IO "
            "streams."
        )
    if not _is_program(runtime, info.file):
        raise Win32Exception("The system cannot find the file specified", 2)
    self.started = True
    if not info.redirected:
        self.pid = int(_one(runtime, "program.start", **self.parameters(runtime))["pid"])
    return True


PROCESS = dotnet("System.Diagnostics.Process", StartedProcess, interfaces=[IDISPOSABLE])
PROCESS.constructor("")(StartedProcess)
PROCESS.prop(
    "StartInfo",
    "System.Diagnostics.ProcessStartInfo",
    lambda self: self.info,
    lambda self, value: setattr(self, "info", value),
)
PROCESS.method("Start()", effect=True)(_start)


@PROCESS.static_method("Start(System.Diagnostics.ProcessStartInfo startInfo)", effect=True)
def _start_info(runtime: Runtime, info: ProcessStartInfo) -> StartedProcess:
    made = StartedProcess(info)
    _start(runtime, made)
    return made


PROCESS.static_method("Start(string fileName)", effect=True)(
    lambda runtime, name: _start_info(runtime, ProcessStartInfo(name))
)


def _wait(runtime: Runtime, self: StartedProcess, milliseconds: int = -1) -> bool:
    self.check()
    if self.pid is None or self.outcome is not None:
        return self.run(runtime, milliseconds)
    if self.exit_code is None:
        code = _one(runtime, "program.wait", pid=self.pid, milliseconds=milliseconds)
        if code is None:
            return False
        self.exit_code = int(code)
    return True


def _wait_to_end(runtime: Runtime, self: StartedProcess) -> None:
    _wait(runtime, self)


PROCESS.method("void WaitForExit()", effect=True)(_wait_to_end)
PROCESS.method("WaitForExit(int milliseconds)", effect=True)(_wait)


def _patience(self: StartedProcess) -> int:
    """A running program is only looked at; a redirected one runs to its end when it is first asked about."""
    return 0 if self.pid is not None else -1


def _exit_code(runtime: Runtime, self: StartedProcess) -> int:
    if not _wait(runtime, self, _patience(self)):
        if self.outcome is None:
            raise InvalidOperationException(
                "Process must exit before requested information can be determined."
            )
        return -1  # what a killed process leaves behind
    return int(self.outcome["exit_code"]) if self.outcome is not None else int(self.exit_code or 0)


def _process_id(runtime: Runtime, self: StartedProcess) -> int:
    self.check()
    if self.pid is None:
        self.run(runtime)
        return int(self.outcome["pid"])
    return self.pid


def _record(runtime: Runtime, self: StartedProcess) -> Any:
    found = _one(runtime, "process.get", pid=_process_id(runtime, self))
    if found is None:
        raise InvalidOperationException("Process has exited, so the requested information is not available.")
    return found


PROCESS.prop("ExitCode", "int", _exit_code, effect=True)
PROCESS.prop("HasExited", "bool", lambda runtime, self: _wait(runtime, self, _patience(self)), effect=True)
PROCESS.prop("Id", "int", _process_id, effect=True)
PROCESS.prop("Path", "string", lambda runtime, self: _record(runtime, self)["path"], effect=True)


@PROCESS.method("void Kill()", effect=True)
def _kill(runtime: Runtime, self: StartedProcess) -> None:
    if self.pid is not None and self.outcome is None:
        ask(runtime, "process.stop", pid=self.pid)


PROCESS.method("void Dispose()", "void Close()")(lambda self: setattr(self, "disposed", True))
PROCESS.method("ToString()")(lambda self: "System.Diagnostics.Process")


# -- its streams


class ProcessReader(StreamReader):
    """The StreamReader on a program's output or error stream."""

    def __init__(self, process: StartedProcess, stream: str, encoding: Encoding) -> None:
        super().__init__(None, None, encoding)
        self.process = process
        self.name = stream

    def content(self, runtime: Runtime) -> str:
        if self.text is None:
            self.process.run(runtime)
            self.text = self.encoding.decode(bytes(self.process.outcome[self.name]))
        return self.text


class ProcessInput(Writer):
    """The StreamWriter on a program's input: what was written when the program runs is what it reads."""

    def __init__(self, process: StartedProcess) -> None:
        super().__init__(None, OEM)
        self.process = process
        self.bytes = InputStream()

    def content(self) -> bytes:
        """The text, then the bytes, each in its order: no script mixes them."""
        return "".join(self.pieces).encode("utf-8") + bytes(self.bytes.data)

    def close(self, runtime: Runtime) -> None:
        self.closed = True


class InputStream(MemoryStream):
    """The bytes below a program's input."""

    can_read = False


class TextTask(Instance):
    """A Task[string] that reads the program's output when the script reads Result."""

    def __init__(self, reader: ProcessReader, *, line: bool = False) -> None:
        self.reader = reader
        self.line = line
        self.text: str | None = None

    def wait(self, runtime: Runtime, milliseconds: int) -> bool:
        """Wait until the stream ends: a program that the process started may keep it open."""
        process = self.reader.process
        process.run(runtime)
        if self.line and self.reader.position < len(self.reader.content(runtime)):
            return True
        left = float(process.outcome["open_until"]) - float(_one(runtime, "clock.ticks"))
        if left > 0:
            ask(runtime, "clock.sleep", milliseconds=min(milliseconds, int(left * 1000) + 1))
        return left * 1000 <= milliseconds

    def result(self, runtime: Runtime) -> str | None:
        """What the reader still has, or its next line (nothing at the end), read once."""
        if self.line and self.text is None:
            found = split_line(self.reader.content(runtime), self.reader.position)
            if found is None:
                return None
            self.text, self.reader.position = found
        if self.text is None:
            content = self.reader.content(runtime)
            self.text = content[self.reader.position :]
            self.reader.position = len(content)
        return self.text


for _suffix, _class, _base in (
    ("Reader", ProcessReader, STREAM_READER),
    ("Writer", ProcessInput, STREAM_WRITER),
):
    _made = dotnet(f"System.IO.Stream{_suffix}+OfProcess", _class, base=_base)
    _made.name = _base.name
    if _suffix == "Writer":
        _made.prop("BaseStream", "System.IO.Stream", lambda self: self.bytes)
_made = dotnet("System.IO.FileStream+OfProcess", InputStream, base=STREAM)
_made.name = "System.IO.FileStream"
TASK = dotnet("System.Threading.Tasks.Task`1[System.String]", TextTask)


def _output(stream: str, flag: str, word: str) -> Callable[[StartedProcess], ProcessReader]:
    def get(self: StartedProcess) -> ProcessReader:
        if not self.info.flags[flag]:
            raise InvalidOperationException(f"Standard{word} has not been redirected.")
        encoding = self.info.output_encoding if stream == "stdout" else self.info.error_encoding
        if stream not in self.readers:
            self.readers[stream] = ProcessReader(self, stream, encoding or OEM)
        return self.readers[stream]

    return get


def _input(self: StartedProcess) -> ProcessInput:
    if not self.info.flags["RedirectStandardInput"]:
        raise InvalidOperationException("StandardIn has not been redirected.")
    if self.input is None:
        self.input = ProcessInput(self)
    return self.input


PROCESS.prop("StandardOutput", "System.IO.StreamReader", _output("stdout", "RedirectStandardOutput", "Out"))
PROCESS.prop("StandardError", "System.IO.StreamReader", _output("stderr", "RedirectStandardError", "Error"))
PROCESS.prop("StandardInput", "System.IO.StreamWriter", _input)


@STREAM_READER.method("ReadToEndAsync()")
def _task(reader: Value) -> TextTask:
    if not isinstance(reader, ProcessReader):
        raise Refusal(
            "member", "System.IO.StreamReader.ReadToEndAsync()", "of a reader that is not a program's"
        )
    return TextTask(reader)


@STREAM_READER.method("ReadLineAsync()")
def _line_task(reader: Value) -> TextTask:
    if not isinstance(reader, ProcessReader):
        raise Refusal(
            "member", "System.IO.StreamReader.ReadLineAsync()", "of a reader that is not a program's"
        )
    return TextTask(reader, line=True)


TASK.prop("Result", "string", lambda runtime, self: self.result(runtime), effect=True)
TASK.method("Wait(int millisecondsTimeout)", effect=True)(lambda runtime, self, ms: self.wait(runtime, ms))
