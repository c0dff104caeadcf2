"""What all lab programs share: how they read files, log, start others, and end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows import paths
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit, Served
from winboot_lab.windows.session import Computer

Sink = Callable[[str], None]
NOT_FOUND: Final = "The system cannot find the file specified."
NO_PATH: Final = "The system cannot find the path specified."


def nowhere(line: str) -> None:
    """Where the output of a service goes that has no wrapper."""


class GoError(Exception):
    """An error of a Go program on its way up; the text is what it prints."""


@dataclass(frozen=True, slots=True)
class Run:
    """One process: the machine it runs on, its arguments and environment. Programs are written against it."""

    machine: Computer
    process: Process
    argv: list[str]
    env: Mapping[str, str]
    stdin: bytes = b""

    @property
    def version(self) -> str:
        """The version the program's file says it has."""
        return self.process.image.version if self.process.image is not None else ""

    def path(self, text: str) -> str:
        """A path as a Go program means it: slashes are fine, a path without a drive is on the current one."""
        text = text.replace("/", "\\")
        if text[1:2] != ":":
            drive = self.process.directory[:2]
            text = drive + text if text.startswith("\\") else paths.join(self.process.directory, text)
        return paths.normal(text)

    def read(self, path: str, doing: str = "open") -> bytes:
        """A file's content; GoError in Go's words when it cannot be read."""
        absolute = self.path(path)
        if not self.machine.files.exists(absolute):
            raise GoError(f"{doing} {path}: {self._missing(absolute)}")
        try:
            return self.machine.files.read(absolute, self.process.token, share=7)
        except Failure:
            raise GoError(f"{doing} {path}: Access is denied.") from None

    def _missing(self, absolute: str) -> str:
        return NOT_FOUND if self.machine.files.is_directory(paths.parent(absolute)) else NO_PATH

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return self.machine.files.exists(self.path(path))

    def write(self, path: str, content: bytes) -> None:
        """Create or replace a file, and the folders above it."""
        absolute = self.path(path)
        self.machine.files.make_directory(paths.parent(absolute), self.process.token)
        self.machine.files.write(absolute, content, self.process.token)

    def refuse(self, what: str) -> Refusal:
        """What this stand-in does not do, by name."""
        name = self.process.image.name if self.process.image is not None else self.process.name
        return Refusal("program", f"{name} {what}")


def go_text(*lines: str) -> bytes:
    """Output as Go programs write it."""
    return "".join(line + "\n" for line in lines).encode("utf-8")


def windows_text(*lines: str) -> bytes:
    """Output as Windows' own programs write it."""
    return "".join(line + "\r\n" for line in lines).encode("ascii", "replace")


def klog_line(run: Run, text: str, level: str, source: str) -> str:
    """A line as klog writes it."""
    now = run.machine.now()
    return f"{level}{now:%m%d %H:%M:%S}.{now.microsecond:06d} {run.process.pid:7d} {source}] {text}"


def klog_error(run: Run, what: str, problem: str, source: str = "run.go:72") -> str:
    """klog.ErrorS: the error in Go's quotes, or as a block where it has several lines."""
    lines = problem.splitlines()
    block = "<\n" + "".join(f"\t{line}\n" for line in lines) + " >"
    quoted = block if len(lines) > 1 else json.dumps(problem, ensure_ascii=False)
    return klog_line(run, f'"{what}" err={quoted}', "E", source)


class Daemon:
    """A running instance of a long-lived program. Subclasses say what starting and each second bring."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.machine = run.machine
        self.process = run.process
        self.sink: Sink = nowhere

    def on_start(self) -> Died | None:
        """Begin; see `Served`."""
        return None

    def on_tick(self) -> Died | None:
        """A second has passed; see `Served`."""
        return None

    def on_stop(self) -> None:
        """End in good order; see `Served`."""

    def take_pipe(self, path: str) -> None:
        """Listen on a pipe; GoError where another has it: Go programs ask for the first instance (Microsoft/go-winio pipe.go,
        makeServerPipeHandle)."""
        name = path.rpartition("\\")[2]
        if name in self.machine.files.pipes:
            raise GoError(f"open {path}: Access is denied.")
        self.machine.files.pipes[name] = self.process.pid

    def klog(self, text: str, level: str = "I", source: str = "server.go:1") -> None:
        """A log line as Kubernetes' programs write them."""
        self.sink(klog_line(self.run, text, level, source))

    def klog_error(self, what: str, problem: str, source: str = "run.go:72") -> None:
        """A structured error (klog.ErrorS)."""
        self.sink(klog_error(self.run, what, problem, source))

    def fatal(self, text: str, code: int = 1) -> Died:
        """Log the error and end."""
        self.klog(text, "E")
        return Died(code)


def start(
    machine: Computer,
    command_line: str,
    *,
    parent: Process,
    env: Mapping[str, str],
    directory: str,
    sink: Sink,
    ended: Callable[[Died], None] | None = None,
    priority: str = "Normal",
) -> Process:
    """Start a program that stays, as a wrapper does; `ended` runs when it dies by itself or is killed."""
    child = machine.processes.spawn(
        command_line,
        token=parent.token,
        environment=dict(env),
        directory=directory,
        parent=parent.pid,
        priority=priority,
    )
    if ended is not None:
        child.ended.append(ended)
    served = machine.processes.program(child).serve()
    if served is None:
        finished = machine.processes.run(child)
        for line in (finished.stdout + finished.stderr).decode("utf-8", "replace").splitlines():
            sink(line)
        if ended is not None:
            ended(Died(finished.code))
        return child
    if isinstance(served, Daemon):
        served.sink = sink
    child.served = served
    died = served.on_start()
    if died is not None:
        machine.processes.finish(child, died)
    return child


def run_child(run: Run, path: str, arguments: str, *, env: Mapping[str, str], stdin: bytes = b"") -> Exit:
    """Run a console program to its end and give what it said; GoError when it is no program."""
    machine = run.machine
    try:
        child = machine.processes.spawn(
            f'"{path}" {arguments}'.rstrip(),
            token=run.process.token,
            environment=dict(env),
            parent=run.process.pid,
        )
    except Failure as failed:
        raise GoError(f"exec: {path!r}: {failed.problem.message}") from None
    return machine.processes.run(child, stdin)


def log_file(machine: Computer, path: str) -> Sink:
    """A sink that writes a log file; a line that cannot be written is lost, as the program would lose it."""

    def write(line: str) -> None:
        try:
            machine.files.log(path, line)
        except Failure:
            return

    return write


def fetch_served(machine: Computer, kind: type[Served]) -> list[tuple[Process, Served]]:
    """All running instances of one kind of program, with their processes."""
    return [(p, p.served) for p in machine.processes.all() if isinstance(p.served, kind)]
