"""System.Environment, Console, Diagnostics.Process, Threading: the surroundings of the script, through the door."""

from __future__ import annotations

import re
from typing import Any

from winboot.lab.engine.door import ask, ask_one
from winboot.lab.engine.dotnet import Reference, Runtime, dotnet
from winboot.lab.engine.exceptions import (
    ApplicationException,
    ArgumentException,
    ArgumentNullException,
    InvalidOperationException,
    ObjectDisposedException,
    SystemException,
    declare_exception,
)
from winboot.lab.engine.moments import LOCAL, DateTime, TimeSpan
from winboot.lab.engine.refusal import Refusal
from winboot.lab.engine.types.streams import StreamReader, Writer
from winboot.lab.engine.types.text import ANSI, OEM, UTF8, Encoding
from winboot.lab.engine.values import (
    BIG_INTEGER,
    IDISPOSABLE,
    STRING,
    Array,
    EnumValue,
    Hashtable,
    Instance,
    Int64,
    Structured,
    Value,
    Version,
    enum_value,
)

WaitHandleCannotBeOpenedException = declare_exception(
    "System.Threading.WaitHandleCannotBeOpenedException", ApplicationException
)
AbandonedMutexException = declare_exception("System.Threading.AbandonedMutexException", SystemException)


def _one(runtime: Runtime, primitive: str, **parameters: Any) -> Any:
    return ask_one(runtime, primitive, **parameters)  # type: ignore[arg-type]


# -- Environment

ENVIRONMENT = dotnet("System.Environment", kind="static")


@ENVIRONMENT.static_method("GetEnvironmentVariable(string variable)", effect=True)
def _get(runtime: Runtime, name: str) -> Value:
    if name is None:
        raise ArgumentNullException("variable")
    return _one(runtime, "environment.get", name=name)


ENVIRONMENT.static_method(
    "GetEnvironmentVariable(string variable, EnvironmentVariableTarget target)", effect=True
)(lambda runtime, name, target: _one(runtime, "environment.get", name=name, target=str(target)))


@ENVIRONMENT.static_method("void SetEnvironmentVariable(string variable, string value)", effect=True)
@ENVIRONMENT.static_method(
    "void SetEnvironmentVariable(string variable, string value, EnvironmentVariableTarget target)",
    effect=True,
)
def _put(runtime: Runtime, name: str, value: str | None, target: EnumValue | None = None) -> None:
    if not name:
        raise ArgumentException("String cannot be of zero length.", "variable")
    if "=" in name:
        raise ArgumentException("Environment variable name cannot contain equal character.")
    ask(
        runtime,
        "environment.set",
        name=name,
        value=value or None,
        target="Process" if target is None else str(target),
    )


@ENVIRONMENT.static_method("GetEnvironmentVariables()", effect=True)
@ENVIRONMENT.static_method("GetEnvironmentVariables(EnvironmentVariableTarget target)", effect=True)
def _all(runtime: Runtime, target: EnumValue | None = None) -> Hashtable:
    found = _one(runtime, "environment.all", target="Process" if target is None else str(target)) or {}
    made = Hashtable(ignore_case=False)
    for name, value in found.items():
        made.put(name, value)
    return made


@ENVIRONMENT.static_method("ExpandEnvironmentVariables(string name)", effect=True)
def expand_variables(runtime: Runtime, text: str) -> str:
    """`%NAME%` filled in; unknown names stay."""

    def put(match: re.Match[str]) -> str:
        found = _one(runtime, "environment.get", name=match.group(1))
        return match.group() if found is None else str(found)

    return re.sub(r"%([^%]+)%", put, text)


def _info(runtime: Runtime, key: str) -> Any:
    return _one(runtime, "computer.info")[key]


def _os_version(runtime: Runtime) -> Value:
    facts = _one(runtime, "computer.info")
    numbers = [int(part) for part in re.findall(r"\d+", str(facts["os_version"]))[:3]]
    version = Version(*(numbers + [0])) if len(numbers) == 3 else Version(10, 0, int(facts["build"]), 0)
    return OperatingSystem(version)


class OperatingSystem(Instance):
    """System.OperatingSystem."""

    def __init__(self, version: Version) -> None:
        self.version = version

    def __str__(self) -> str:
        return f"Microsoft Windows NT {self.version}"


OS = dotnet("System.OperatingSystem", OperatingSystem)
OS.prop("Platform", "System.PlatformID", lambda self: enum_value("System.PlatformID", "Win32NT"))
OS.prop("Version", "version", lambda self: self.version)
OS.prop("VersionString", "string", str)
OS.prop("ServicePack", "string", lambda self: "")
OS.method("ToString()")(str)
OS.refuses("Clone GetObjectData")


def _user(runtime: Runtime) -> str:
    return str(_one(runtime, "identity.current")["name"]).rpartition("\\")[2]


def _domain(runtime: Runtime) -> str:
    return str(_one(runtime, "identity.current")["name"]).rpartition("\\")[0]


for _name, _type, _get_it in (
    ("MachineName", "string", lambda runtime: _info(runtime, "active_name")),
    ("OSVersion", "System.OperatingSystem", _os_version),
    ("ProcessorCount", "int", lambda runtime: _info(runtime, "processors")),
    ("SystemDirectory", "string", lambda runtime: _info(runtime, "system_directory")),
    ("UserName", "string", _user),
    ("UserDomainName", "string", _domain),
    ("TickCount", "int", lambda runtime: int(_one(runtime, "clock.ticks") * 1000) % 2**31),
):
    ENVIRONMENT.static_prop(_name, _type, _get_it, effect=True)
ENVIRONMENT.static_field("NewLine", "string", "\r\n")
ENVIRONMENT.static_field("Is64BitProcess", "bool", True)
ENVIRONMENT.static_field("Is64BitOperatingSystem", "bool", True)
ENVIRONMENT.static_field("HasShutdownStarted", "bool", False)
ENVIRONMENT.static_field("UserInteractive", "bool", False)
ENVIRONMENT.static_field("SystemPageSize", "int", 4096)
ENVIRONMENT.static_field("Version", "version", Version(4, 0, 30319, 42000))
_FOLDERS = {
    "CommonApplicationData": "ProgramData",
    "ProgramFiles": "ProgramFiles",
    "ProgramFilesX86": "ProgramFiles(x86)",
    "Windows": "SystemRoot",
    "UserProfile": "USERPROFILE",
    "ApplicationData": "APPDATA",
    "LocalApplicationData": "LOCALAPPDATA",
    "CommonProgramFiles": "CommonProgramFiles",
}


@ENVIRONMENT.static_method("GetFolderPath(System.Environment+SpecialFolder folder)", effect=True)
def _folder(runtime: Runtime, folder: EnumValue) -> str:
    name = str(folder)
    if name == "System":
        return str(_info(runtime, "system_directory"))
    if name not in _FOLDERS:
        raise Refusal("value", name, "special folder")
    return str(_one(runtime, "environment.get", name=_FOLDERS[name]) or "")


@ENVIRONMENT.static_method("void Exit(int exitCode)")
def _exit(_code: int) -> None:
    raise Refusal("member", "[System.Environment]::Exit()", "it would end the whole process")


@ENVIRONMENT.static_method("void FailFast(string message)")
def _fail_fast(_message: str) -> None:
    raise Refusal("member", "[System.Environment]::FailFast()", "it would end the whole process")


ENVIRONMENT.refuses(
    "CommandLine CurrentDirectory CurrentManagedThreadId ExitCode StackTrace WorkingSet GetCommandLineArgs GetLogicalDrives"
)

# -- Console: a remote session has no window

CONSOLE = dotnet("System.Console", kind="static")
_SETTINGS: dict[str, Encoding] = {"OutputEncoding": OEM, "InputEncoding": OEM}
CONSOLE.static_prop("OutputEncoding", "System.Text.Encoding", lambda: OEM, lambda value: None)
CONSOLE.static_prop("InputEncoding", "System.Text.Encoding", lambda: OEM, lambda value: None)
CONSOLE.static_field("IsOutputRedirected", "bool", True)
CONSOLE.static_field("IsInputRedirected", "bool", True)
CONSOLE.static_field("IsErrorRedirected", "bool", True)
CONSOLE.refuses(
    "Write WriteLine Out Error In Read ReadLine ReadKey Clear Beep Title WindowWidth WindowHeight BufferWidth BufferHeight "
    "CursorTop CursorLeft CursorVisible ForegroundColor BackgroundColor KeyAvailable SetOut SetError SetIn OpenStandardInput "
    "OpenStandardOutput OpenStandardError TreatControlCAsInput ResetColor SetCursorPosition CapsLock NumberLock"
)

# -- threads and mutexes

THREAD = dotnet("System.Threading.Thread")


@THREAD.static_method("void Sleep(int millisecondsTimeout)", effect=True)
def sleep(runtime: Runtime, milliseconds: int) -> None:
    """Let machine time pass."""
    ask(runtime, "clock.sleep", milliseconds=milliseconds)


@THREAD.static_method("void Sleep(timespan timeout)", effect=True)
def _sleep_span(runtime: Runtime, span: TimeSpan) -> None:
    sleep(runtime, span.ticks // 10_000)


class CurrentThread(Instance):
    """System.Threading.Thread: the one the script runs on."""


THREAD_OBJECT = CurrentThread()
CurrentThread.dotnet_type = THREAD  # type: ignore[attr-defined]
THREAD.static_prop("CurrentThread", "System.Threading.Thread", lambda: THREAD_OBJECT)
THREAD.prop("CurrentCulture", "CultureInfo", lambda self: _culture(), lambda self, value: None)
THREAD.prop("CurrentUICulture", "CultureInfo", lambda self: _culture(), lambda self, value: None)
THREAD.prop("ManagedThreadId", "int", lambda self: 1)
THREAD.prop("IsAlive", "bool", lambda self: True)
THREAD.prop("Name", "string", lambda self: None)


def _culture() -> Value:
    from winboot.lab.engine.types.text import INVARIANT

    return INVARIANT


THREAD.refuses(
    "new ApartmentState IsBackground IsThreadPoolThread Priority ThreadState ExecutionContext CurrentContext CurrentPrincipal "
    "Abort Interrupt Join Start Resume Suspend SetApartmentState GetApartmentState SpinWait Yield ResetAbort GetDomain "
    "GetDomainID MemoryBarrier VolatileRead VolatileWrite AllocateDataSlot"
)


class Mutex(Instance):
    """System.Threading.Mutex."""

    def __init__(self, handle: Any, name: str | None) -> None:
        self.handle = handle
        self.name = name
        self.closed = False

    def check(self) -> None:
        if self.closed:
            raise ObjectDisposedException(None, "Safe handle has been closed")


WAIT_HANDLE = dotnet("System.Threading.WaitHandle", kind="abstract", interfaces=[IDISPOSABLE])
MUTEX = dotnet("System.Threading.Mutex", Mutex, base=WAIT_HANDLE)


def _create(runtime: Runtime, owned: bool, name: str | None, created: Reference | None = None) -> Mutex:
    if name == "":
        name = None
    record = _one(runtime, "mutex.create", name=name or "", initially_owned=owned)
    if created is not None:
        created.value = bool(record["created_new"])
    return Mutex(record["handle"], name)


MUTEX.constructor("", effect=True)(lambda runtime: _create(runtime, False, None))
MUTEX.constructor("bool initiallyOwned", effect=True)(lambda runtime, owned: _create(runtime, owned, None))
MUTEX.constructor("bool initiallyOwned, string name", effect=True)(_create)
MUTEX.constructor("bool initiallyOwned, string name, ref bool createdNew", effect=True)(_create)


@MUTEX.constructor(
    "bool initiallyOwned, string name, ref bool createdNew, System.Security.AccessControl.MutexSecurity mutexSecurity",
    effect=True,
)
def _create_secured(runtime: Runtime, owned: bool, name: str, created: Reference, _security: Value) -> Mutex:
    # All sessions of the lab machine may open each mutex, so its security changes nothing.
    return _create(runtime, owned, name, created)


@MUTEX.static_method("OpenExisting(string name)", effect=True)
def _open(runtime: Runtime, name: str) -> Mutex:
    return Mutex(_one(runtime, "mutex.open", name=name)["handle"], name)


@MUTEX.static_method("TryOpenExisting(string name, out System.Threading.Mutex result)", effect=True)
def _try_open(runtime: Runtime, name: str, out: Reference) -> bool:
    try:
        out.value = _open(runtime, name)
    except WaitHandleCannotBeOpenedException:
        out.value = None
        return False
    return True


def _wait(runtime: Runtime, self: Mutex, milliseconds: int = -1, _exit: bool = False) -> bool:
    self.check()
    answer = _one(runtime, "mutex.wait", handle=self.handle, milliseconds=milliseconds)
    if answer == "abandoned":
        raise AbandonedMutexException("The wait completed due to an abandoned mutex.")
    return bool(answer == "acquired")


MUTEX.method("WaitOne()", effect=True)(_wait)
MUTEX.method(
    "WaitOne(int millisecondsTimeout)", "WaitOne(int millisecondsTimeout, bool exitContext)", effect=True
)(_wait)
MUTEX.method("WaitOne(timespan timeout)", "WaitOne(timespan timeout, bool exitContext)", effect=True)(
    lambda runtime, self, span, leave=False: _wait(runtime, self, span.ticks // 10_000)
)


@MUTEX.method("void ReleaseMutex()", effect=True)
def _release(runtime: Runtime, self: Mutex) -> None:
    self.check()
    ask(runtime, "mutex.release", handle=self.handle)


def _close(runtime: Runtime, self: Mutex) -> None:
    if not self.closed:
        ask(runtime, "mutex.close", handle=self.handle)
    self.closed = True


MUTEX.method("void Close()", effect=True)(_close)
MUTEX.method("void Dispose()", effect=True)(_close)
MUTEX.refuses("Handle SafeWaitHandle GetAccessControl SetAccessControl CreateObjRef")
WAIT_HANDLE.refuses("WaitAll WaitAny SignalAndWait WaitTimeout")

# -- processes


class StartInfo(Instance):
    """System.Diagnostics.ProcessStartInfo."""

    def __init__(self, file_name: str = "", arguments: str = "") -> None:
        self.file_name = file_name or ""
        self.arguments = arguments or ""
        self.working_directory = ""
        self.verb = ""
        self.flags: dict[str, bool] = {}
        self.window_style = enum_value("System.Diagnostics.ProcessWindowStyle", "Normal")
        self.environment: Hashtable | None = None
        self.stdout_encoding: Encoding | None = None
        self.stderr_encoding: Encoding | None = None

    def flag(self, name: str) -> bool:
        return self.flags.get(name, name == "UseShellExecute")


START_INFO = dotnet("System.Diagnostics.ProcessStartInfo", StartInfo)
START_INFO.constructor("")(StartInfo)
START_INFO.constructor("string fileName")(StartInfo)
START_INFO.constructor("string fileName, string arguments")(StartInfo)
for _name, _attribute in (
    ("FileName", "file_name"),
    ("Arguments", "arguments"),
    ("WorkingDirectory", "working_directory"),
    ("Verb", "verb"),
):
    START_INFO.prop(
        _name,
        "string",
        lambda self, _attribute=_attribute: getattr(self, _attribute),
        lambda self, value, _attribute=_attribute: setattr(self, _attribute, value or ""),
    )
for _name in (
    "UseShellExecute",
    "RedirectStandardOutput",
    "RedirectStandardError",
    "RedirectStandardInput",
    "CreateNoWindow",
    "ErrorDialog",
    "LoadUserProfile",
):
    START_INFO.prop(
        _name,
        "bool",
        lambda self, _name=_name: self.flag(_name),
        lambda self, value, _name=_name: self.flags.__setitem__(_name, value),
    )
START_INFO.prop(
    "WindowStyle",
    "System.Diagnostics.ProcessWindowStyle",
    lambda self: self.window_style,
    lambda self, value: setattr(self, "window_style", value),
)
for _name, _attribute in (
    ("StandardOutputEncoding", "stdout_encoding"),
    ("StandardErrorEncoding", "stderr_encoding"),
):
    START_INFO.prop(
        _name,
        "System.Text.Encoding",
        lambda self, _attribute=_attribute: getattr(self, _attribute),
        lambda self, value, _attribute=_attribute: setattr(self, _attribute, value),
    )


def _variables(runtime: Runtime, self: StartInfo) -> Hashtable:
    if self.environment is None:
        self.environment = Hashtable()
        for name, value in (_one(runtime, "environment.all", target="Process") or {}).items():
            self.environment.put(name, value)
    return self.environment


START_INFO.prop("EnvironmentVariables", "object", _variables, effect=True)
START_INFO.prop("Environment", "object", _variables, effect=True)
START_INFO.refuses("ArgumentList Domain ErrorDialogParentHandle Password PasswordInClearText UserName Verbs")


class Process(Instance):
    """System.Diagnostics.Process started by the script. A redirected one runs to its end when it is started."""

    def __init__(self) -> None:
        self.info = StartInfo()
        self.pid: int | None = None
        self.exit_code: int | None = None
        self.output: StreamReader | None = None
        self.error: StreamReader | None = None
        self.input: StandardInput | None = None
        self.started_at: DateTime | None = None
        self.ended_at: DateTime | None = None
        self.waiting: dict[str, Any] | None = None


PROCESS = dotnet("System.Diagnostics.Process", interfaces=[IDISPOSABLE])
Process.dotnet_type = PROCESS  # type: ignore[attr-defined]
PROCESS.constructor("")(Process)
PROCESS.prop(
    "StartInfo",
    "System.Diagnostics.ProcessStartInfo",
    lambda self: self.info,
    lambda self, value: setattr(self, "info", value),
)


class StandardInput(Writer):
    """Process.StandardInput: what is written before it is closed is what the program reads."""

    def __init__(self, process: Process) -> None:
        super().__init__(None, ANSI)
        self.process = process

    def close(self, runtime: Runtime) -> None:
        if not self.closed:
            self.closed = True
            _run(runtime, self.process)


from winboot.lab.engine.types.streams import STREAM_WRITER  # noqa: E402

StandardInput.dotnet_type = STREAM_WRITER  # type: ignore[attr-defined]


def _command_line(runtime: Runtime, info: StartInfo) -> str:
    if not info.file_name:
        raise InvalidOperationException("Cannot start process because a file name has not been provided.")
    name = info.file_name
    if "\\" not in name and "/" not in name:
        name = _one(runtime, "program.find", name=name) or name
    quoted = f'"{name}"' if not name.startswith('"') else name
    return f"{quoted} {info.arguments}" if info.arguments else quoted


def _start(runtime: Runtime, self: Process) -> bool:
    info = self.info
    redirected = any(info.flag(f"RedirectStandard{name}") for name in ("Output", "Error", "Input"))
    if redirected and info.flag("UseShellExecute"):
        raise InvalidOperationException(
            "The Process object must have the UseShellExecute property set to false in order to redirect IO streams."
        )
    parameters: dict[str, Any] = {"command_line": _command_line(runtime, info)}
    if info.working_directory:
        parameters["working_directory"] = info.working_directory
    if info.environment is not None:
        parameters["environment"] = {str(name): str(value) for name, value in info.environment.items()}
    self.started_at = DateTime.of(_one(runtime, "clock.now", utc=True), LOCAL)
    if not redirected:
        self.pid = int(_one(runtime, "program.start", **parameters)["pid"])
        return True
    self.waiting = parameters
    if info.flag("RedirectStandardInput"):
        self.input = StandardInput(self)
    else:
        _run(runtime, self)
    return True


def _run(runtime: Runtime, self: Process) -> None:
    """Let a redirected program run to its end, with what was written to its input."""
    if self.waiting is None:
        return
    parameters, self.waiting = self.waiting, None
    stdin = b"" if self.input is None else ANSI.encode("".join(self.input.pieces))
    record = _one(runtime, "program.run", stdin=stdin, **parameters)
    self.pid = int(record["pid"])
    self.exit_code = int(record["exit_code"])
    self.ended_at = DateTime.of(_one(runtime, "clock.now", utc=True), LOCAL)
    out, err = self.info.stdout_encoding or OEM, self.info.stderr_encoding or OEM
    if self.info.flag("RedirectStandardOutput"):
        self.output = StreamReader(out.decode(bytes(record["stdout"])), None, out)
    if self.info.flag("RedirectStandardError"):
        self.error = StreamReader(err.decode(bytes(record["stderr"])), None, err)


PROCESS.method("Start()", effect=True)(_start)


@PROCESS.static_method("Start(System.Diagnostics.ProcessStartInfo startInfo)", effect=True)
def _start_info(runtime: Runtime, info: StartInfo) -> Process:
    made = Process()
    made.info = info
    _start(runtime, made)
    return made


PROCESS.static_method("Start(string fileName)", effect=True)(
    lambda runtime, name: _start_info(runtime, StartInfo(name))
)
PROCESS.static_method("Start(string fileName, string arguments)", effect=True)(
    lambda runtime, name, arguments: _start_info(runtime, StartInfo(name, arguments))
)


def _needs_start(self: Process) -> int:
    if self.pid is None and self.waiting is None:
        raise InvalidOperationException("No process is associated with this object.")
    return self.pid or 0


def _finished(runtime: Runtime, self: Process, milliseconds: int) -> bool:
    _run(runtime, self)
    pid = _needs_start(self)
    if self.exit_code is None:
        code = _one(runtime, "program.wait", pid=pid, milliseconds=milliseconds)
        if code is None:
            return False
        self.exit_code = int(code)
        self.ended_at = DateTime.of(_one(runtime, "clock.now", utc=True), LOCAL)
    return True


@PROCESS.method("void WaitForExit()", effect=True)
def _wait_for_exit(runtime: Runtime, self: Value) -> None:
    _finished(runtime, self, -1)


@PROCESS.method("WaitForExit(int milliseconds)", effect=True)
def _wait_for_exit_in(runtime: Runtime, self: Process, milliseconds: int) -> bool:
    return _finished(runtime, self, milliseconds)


def _exit_code(runtime: Runtime, self: Process) -> int:
    if not _finished(runtime, self, 0):
        raise InvalidOperationException("Process must exit before requested information can be determined.")
    assert self.exit_code is not None
    return self.exit_code


def _reader(name: str) -> Any:
    def get(runtime: Runtime, self: Process) -> StreamReader:
        _run(runtime, self)
        found = self.output if name == "Out" else self.error
        if found is None:
            raise InvalidOperationException(
                f"Standard{name if name == 'Error' else 'Out'} has not been redirected."
            )
        return found

    return get


def _input(self: Process) -> StandardInput:
    if self.input is None:
        raise InvalidOperationException("StandardIn has not been redirected.")
    return self.input


PROCESS.prop("Id", "int", lambda runtime, self: (_run(runtime, self), _needs_start(self))[1], effect=True)
PROCESS.prop("HasExited", "bool", lambda runtime, self: _finished(runtime, self, 0), effect=True)
PROCESS.prop("ExitCode", "int", _exit_code, effect=True)
PROCESS.prop("StandardOutput", "System.IO.StreamReader", _reader("Out"), effect=True)
PROCESS.prop("StandardError", "System.IO.StreamReader", _reader("Error"), effect=True)
PROCESS.prop("StandardInput", "System.IO.StreamWriter", _input)
PROCESS.prop("StartTime", "datetime", lambda self: self.started_at)
PROCESS.prop("ExitTime", "datetime", lambda self: self.ended_at)


def _record(runtime: Runtime, self: Process) -> Any:
    found = _one(runtime, "process.get", pid=_needs_start(self))
    if found is None:
        raise InvalidOperationException(f"Process has exited, so the requested information is not available.")
    return found


PROCESS.prop("ProcessName", "string", lambda runtime, self: _record(runtime, self)["name"], effect=True)
PROCESS.prop("Path", "string", lambda runtime, self: _record(runtime, self)["path"], effect=True)


@PROCESS.method("void Kill()", effect=True)
def _kill(runtime: Runtime, self: Process) -> None:
    ask(runtime, "process.stop", pid=_needs_start(self))


PROCESS.method("void Refresh()")(lambda self: None)
PROCESS.method("void Close()")(lambda self: None)
PROCESS.method("void Dispose()")(lambda self: None)
PROCESS.method("ToString()")(lambda self: "System.Diagnostics.Process")


def _as_process(record: Any) -> Process:
    made = Process()
    made.pid = int(record["pid"])
    start = record["start_time"]
    made.started_at = DateTime.of(start, LOCAL) if start is not None else None
    return made


PROCESS.static_method("GetCurrentProcess()", effect=True)(
    lambda runtime: _as_process(_one(runtime, "process.current"))
)


@PROCESS.static_method("GetProcessById(int processId)", effect=True)
def _by_id(runtime: Runtime, pid: int) -> Process:
    found = _one(runtime, "process.get", pid=pid)
    if found is None:
        raise ArgumentException(f"Process with an Id of {pid} is not running.")
    return _as_process(found)


@PROCESS.static_method("GetProcessesByName(string processName)", effect=True)
def _by_name(runtime: Runtime, name: str) -> Array:
    wanted = name.lower()
    found = [record for record in ask(runtime, "process.list") if str(record["name"]).lower() == wanted]
    return Array((_as_process(record) for record in found), PROCESS)


PROCESS.static_method("GetProcesses()", effect=True)(
    lambda runtime: Array((_as_process(record) for record in ask(runtime, "process.list")), PROCESS)
)
PROCESS.refuses(
    "BasePriority EnableRaisingEvents ExitTime Handle HandleCount MachineName MainModule MainWindowHandle MainWindowTitle "
    "MaxWorkingSet MinWorkingSet Modules NonpagedSystemMemorySize NonpagedSystemMemorySize64 PagedMemorySize "
    "PagedMemorySize64 PagedSystemMemorySize PagedSystemMemorySize64 PeakPagedMemorySize PeakPagedMemorySize64 "
    "PeakVirtualMemorySize PeakVirtualMemorySize64 PeakWorkingSet PeakWorkingSet64 PriorityBoostEnabled PriorityClass "
    "PrivateMemorySize PrivateMemorySize64 PrivilegedProcessorTime ProcessorAffinity Responding SafeHandle SessionId "
    "SynchronizingObject Threads TotalProcessorTime UserProcessorTime VirtualMemorySize VirtualMemorySize64 WorkingSet "
    "WorkingSet64 Site Container BeginErrorReadLine BeginOutputReadLine CancelErrorRead CancelOutputRead CloseMainWindow "
    "WaitForInputIdle EnterDebugMode LeaveDebugMode Name SI Handles VM WS PM NPM CPU Company FileVersion ProductVersion "
    "Description Product __NounName"
)

# -- garbage collection: nothing to see

GC = dotnet("System.GC", kind="static")
GC.static_method("void Collect()")(lambda: None)
GC.static_method("void WaitForPendingFinalizers()")(lambda: None)
GC.refuses(
    "GetTotalMemory SuppressFinalize KeepAlive CollectionCount MaxGeneration GetGeneration AddMemoryPressure"
)
_ = (BIG_INTEGER, Int64, STRING, Structured, UTF8)
