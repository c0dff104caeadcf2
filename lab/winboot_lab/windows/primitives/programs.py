"""program.*, process.*, object.call: starting programs and watching processes."""

from __future__ import annotations

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows import paths
from winboot_lab.windows.call import primitive
from winboot_lab.windows.cmdlets.processes import call_process
from winboot_lab.windows.cmdlets.services import call_service
from winboot_lab.windows.door import Plain, Record
from winboot_lab.windows.failure import failure
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Exit
from winboot_lab.windows.session import Session

Objects = tuple[Plain, ...]


def shown(process: Process) -> Record:
    """A process as a Record."""
    return Record(
        "process",
        {
            "pid": process.pid,
            "parent": process.parent,
            "name": process.name,
            "path": process.path,
            "command_line": process.command_line,
            "start_time": process.started,
            "priority": process.priority,
            "session": process.session,
            "user": process.token.name,
        },
    )


@primitive("program.find")
def find(session: Session, name: str, directories: list[str] | None = None) -> Objects:
    """Look a program up in PATH."""
    known = {k.lower(): v for k, v in session.environment.items()}
    folders = directories or known.get("path", "").split(";")
    endings = [""] if "." in name else []
    endings += known.get("pathext", ".EXE").lower().split(";")
    if "\\" in name:
        folders = [""]
    for folder in folders:
        for ending in endings:
            candidate = (paths.join(folder.strip('"'), name) if folder else name) + ending
            if candidate[1:2] != ":":
                continue
            found = session.machine.files.find(candidate)
            if found is not None and not found[1].directory and ending.lower() in ("", ".exe", ".com"):
                return (found[0],)
    return ()


def _spawn(
    session: Session, command_line: str, working_directory: str | None, environment: dict[str, str] | None
) -> Process:
    given = dict(environment) if environment is not None else dict(session.environment)
    process = session.machine.processes.spawn(
        command_line,
        token=session.token,
        environment=given,
        directory=working_directory or session.process.directory,
        parent=session.process.pid,
    )
    session.children.append(process.pid)
    return process


@primitive("program.run")
def run(
    session: Session,
    command_line: str,
    working_directory: str | None = None,
    environment: dict[str, str] | None = None,
    stdin: bytes = b"",
    timeout_ms: int = -1,
) -> Objects:
    """Run a console program and wait for its end."""
    process = _spawn(session, command_line, working_directory, environment)
    began = session.machine.time.seconds
    ended = session.machine.processes.run(process, stdin)
    session.alive()
    took = session.machine.time.seconds - began
    timed_out = timeout_ms >= 0 and took * 1000 > timeout_ms
    _leave_children(session, process, ended)
    return (
        Record(
            "exit",
            {
                "exit_code": ended.code if ended.code < 2**31 else ended.code - 2**32,
                "stdout": ended.stdout,
                "stderr": ended.stderr,
                "pid": process.pid,
                "timed_out": timed_out,
                "took_ms": took * 1000,
                "open_until": session.machine.uptime() + ended.lingers,
            },
        ),
    )


def _leave_children(session: Session, process: Process, ended: Exit) -> None:
    # A program that it started lives on with the ends of its pipes.
    if ended.lingers <= 0:
        return
    machine = session.machine
    child = machine.processes.add(
        "child", process.path, process.command_line, session.token, parent=process.pid
    )

    def end() -> None:
        machine.processes.kill(child.pid)

    machine.after(ended.lingers, end)


@primitive("program.start")
def start(
    session: Session,
    command_line: str,
    working_directory: str | None = None,
    environment: dict[str, str] | None = None,
) -> Objects:
    """Start a program without waiting; a console program has ended by the time this returns."""
    process = _spawn(session, command_line, working_directory, environment)
    processes = session.machine.processes
    processes.serve(process)
    return (shown(process),)


@primitive("program.wait")
def wait(session: Session, pid: int, milliseconds: int) -> Objects:
    """The exit code, if it ends in time."""
    processes = session.machine.processes
    seconds = 10.0**9 if milliseconds < 0 else milliseconds / 1000
    session.machine.wait(seconds, session.alive, lambda: processes.get(pid) is None)
    code = processes.exit_code(pid)
    return () if code is None else (code,)


@primitive("process.list")
def list_(session: Session) -> Objects:
    """What runs."""
    return tuple(shown(p) for p in session.machine.processes.all())


@primitive("process.get")
def get(session: Session, pid: int) -> Objects:
    """One or none."""
    found = session.machine.processes.get(pid)
    return () if found is None else (shown(found),)


@primitive("process.stop")
def stop(session: Session, pid: int) -> Objects:
    """End a process."""
    if not session.machine.processes.kill(pid):
        message = f"Process with an Id of {pid} is not running."
        raise failure("System.ArgumentException", message, hresult=0x80070057)
    return ()


@primitive("process.current")
def current(session: Session) -> Objects:
    """The PowerShell process of the session."""
    return (shown(session.process),)


@primitive("object.call")
def call(session: Session, object: Record, member: str, arguments: list[Plain] | None = None) -> Objects:
    """A method of an object the machine gave; the first object is always the Record of its new properties."""
    given = list(arguments or [])
    match object.type_name:
        case "System.ServiceProcess.ServiceController":
            return call_service(session, object, member, given)
        case "System.Diagnostics.Process":
            return call_process(session, object, member, given)
        case _:
            raise Refusal("member", f"{object.type_name}.{member}()")
