"""The processes of the machine: what runs, from which file, as which account, with which environment, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows import paths
from winboot_lab.windows.accounts import SYSTEM_TOKEN, Token
from winboot_lab.windows.acl import READ
from winboot_lab.windows.failure import Failure, win32_failure
from winboot_lab.windows.files import Files, Node
from winboot_lab.windows.host import Host
from winboot_lab.windows.programs_api import Died, Exit, Image, Installed, Served, read_image
from winboot_lab.windows.snapshot import Tree

# What Windows names the priority classes, by the number of Win32_Process.Priority.
PRIORITIES = {
    "Idle": 4,
    "BelowNormal": 6,
    "Normal": 8,
    "AboveNormal": 10,
    "High": 13,
    "RealTime": 24,
}

_KILLED = 0xFFFFFFFF


@dataclass(eq=False, slots=True)
class Process:
    """One process. `ended` is called once with how it died, whether by itself or killed."""

    pid: int
    parent: int
    name: str
    path: str
    command_line: str
    started: datetime
    token: Token
    environment: dict[str, str] = field(default_factory=dict)
    directory: str = "C:\\"
    session: int = 0
    priority: str = "Normal"
    image: Image | None = None
    node: Node | None = None
    served: Served | None = None
    exit_code: int | None = None
    ended: list[Callable[[Died], None]] = field(default_factory=list)

    @property
    def running(self) -> bool:
        """Whether the process is still there."""
        return self.exit_code is None


def split_arguments(command_line: str) -> list[str]:
    """A raw command line as argv, by the rules of CommandLineToArgvW."""
    words: list[str] = []
    index, length = 0, len(command_line)
    while index < length:
        if command_line[index] in " \t":
            index += 1
            continue
        word, index = (
            _first_word(command_line) if not words and index == 0 else _next_word(command_line, index)
        )
        words.append(word)
    return words


def _first_word(text: str) -> tuple[str, int]:
    # In the program's own name backslashes are plain and quotes only delimit.
    if text.startswith('"'):
        end = text.find('"', 1)
        return (text[1:], len(text)) if end < 0 else (text[1:end], end + 1)
    end = next((i for i, c in enumerate(text) if c in " \t"), len(text))
    return text[:end], end


def _next_word(text: str, index: int) -> tuple[str, int]:
    word, quoted = "", False
    while index < len(text):
        char = text[index]
        if char == "\\":
            run = len(text[index:]) - len(text[index:].lstrip("\\"))
            index += run
            if text[index : index + 1] == '"':
                word += "\\" * (run // 2)
                if run % 2:
                    word += '"'
                    index += 1
            else:
                word += "\\" * run
        elif char == '"':
            if quoted and text[index + 1 : index + 2] == '"':
                word += '"'
                index += 2
            else:
                quoted = not quoted
                index += 1
        elif char in " \t" and not quoted:
            break
        else:
            word += char
            index += 1
    return word, index


class Launcher(Protocol):
    """The programs there are, on this machine."""

    def find(self, process: Process, image: Image) -> Installed | None:
        """What runs in a process of an image."""


class Processes:
    """All processes since the last boot."""

    def __init__(self, machine: Host, files: Files, launcher: Launcher) -> None:
        self._machine, self._files, self._launcher = machine, files, launcher
        files.moved.append(self.image_moved)
        # Called with the id of each process that ends.
        self.ended: list[Callable[[int], None]] = [files.close_all]
        self._known: dict[int, Process] = {}
        self._next = 4
        # Whether the next second is on the machine's list: it is only while programs of the lab run.
        self._ticking = False
        # Whose turn it is: a program that waits in it (HNS hangs) gets no other one meanwhile.
        self._within: list[Served] = []

    # ---- environment -----------------------------------------------------------------------------------

    def user_environment(self, token: Token) -> dict[str, str]:
        """What a new logon of the user gets."""
        found = self._machine.registry.machine_environment()
        short = token.name.rpartition("\\")[2]
        profile = (
            r"C:\Windows\system32\config\systemprofile" if token is SYSTEM_TOKEN else rf"C:\Users\{short}"
        )
        temp = r"C:\Windows\TEMP" if token is SYSTEM_TOKEN else profile + r"\AppData\Local\Temp"
        user = f"{self._machine.name}$" if token is SYSTEM_TOKEN else short
        found |= {
            "USERNAME": user,
            "USERDOMAIN": self._machine.name,
            "USERPROFILE": profile,
            "APPDATA": profile + r"\AppData\Roaming",
            "LOCALAPPDATA": profile + r"\AppData\Local",
            "TEMP": temp,
            "TMP": temp,
        }
        key = self._machine.registry.find(rf"HKEY_USERS\{token.sid}\Environment")
        for value in key.values.values() if key else ():
            if isinstance(value.data, str) and value.name.upper() not in ("TEMP", "TMP"):
                if value.name.upper() == "PATH":
                    found["Path"] = found.get("Path", "") + ";" + value.data
                else:
                    found[value.name] = value.data
        return found

    # ---- looking ---------------------------------------------------------------------------------------

    def all(self) -> list[Process]:
        """What runs, by process id."""
        return [p for _, p in sorted(self._known.items()) if p.running]

    def get(self, pid: int) -> Process | None:
        """A running process."""
        found = self._known.get(pid)
        return found if found is not None and found.running else None

    def exit_code(self, pid: int) -> int | None:
        """How a process ended; None while it runs or when it never was."""
        found = self._known.get(pid)
        return found.exit_code if found is not None else None

    def named(self, name: str) -> list[Process]:
        """Running processes by name, without `.exe`."""
        return [p for p in self.all() if p.name.lower() == name.lower()]

    # ---- starting --------------------------------------------------------------------------------------

    def add(
        self, name: str, path: str, command_line: str, token: Token = SYSTEM_TOKEN, parent: int = 4
    ) -> Process:
        """A process that the model keeps only by name (parts of Windows)."""
        pid = self._next
        self._next += 4 * (1 + pid % 7)
        process = Process(pid, parent, name, path, command_line, self._machine.now(), token)
        self._known[pid] = process
        return process

    def logon_process(self, path: str, token: Token) -> Process:
        """The process of a new session."""
        name = paths.leaf(path).rpartition(".")[0] or paths.leaf(path)
        process = self.add(name, path, path, token)
        process.environment = self.user_environment(token)
        process.directory = process.environment["USERPROFILE"]
        return process

    def resolve(self, command_line: str) -> tuple[str, Node, Image]:
        """The program that CreateProcess would start: its path, file and image."""
        path = self._program_path(command_line)
        found = self._files.find(path) if path else None
        if found is None or found[1].directory:
            raise win32_failure(2, "The system cannot find the file specified")
        spelled, node = found
        image = read_image(node.content)
        if image is None:
            raise win32_failure(193, "%1 is not a valid Win32 application")
        return spelled, node, image

    def _program_path(self, command_line: str) -> str:
        text = command_line.lstrip()
        if text.startswith('"'):
            return self._with_extension(_first_word(text)[0]) or ""
        # An unquoted name is tried at every space: the old trap of `C:\Program Files\...`.
        ends = [i for i, c in enumerate(text) if c in " \t"] + [len(text)]
        for end in ends:
            found = self._with_extension(text[:end])
            if found:
                return found
        return ""

    def _with_extension(self, path: str) -> str | None:
        if path[1:2] != ":" and not path.startswith("\\"):
            path = rf"C:\Windows\System32\{path}"
        for candidate in (path, path + ".exe"):
            found = self._files.find(candidate)
            if found is not None and not found[1].directory:
                return candidate
        return None

    def spawn(
        self,
        command_line: str,
        *,
        token: Token = SYSTEM_TOKEN,
        environment: dict[str, str] | None = None,
        directory: str | None = None,
        parent: int = 4,
        priority: str = "Normal",
    ) -> Process:
        """Create the process; nothing of the program has run yet."""
        path, node, image = self.resolve(command_line)
        if not node.acl.allows(token, READ):
            raise win32_failure(5, "Access is denied")
        if directory is not None and not self._files.is_directory(directory):
            raise win32_failure(267, "The directory name is invalid")
        name = paths.leaf(path)
        process = self.add(name.removesuffix(".exe").removesuffix(".EXE"), path, command_line, token, parent)
        process.environment = environment if environment is not None else self.user_environment(token)
        process.directory = directory or r"C:\Windows\System32"
        process.image, process.node, process.priority = image, node, priority
        node.images.add(process.pid)
        self._keep_ticking()
        return process

    def program(self, process: Process) -> Installed:
        """The lab's program for a process, or a refusal by name."""
        assert process.image is not None
        program = self._launcher.find(process, process.image)
        if program is None:
            self.kill(process.pid)
            raise Refusal("program", process.image.name)
        return program

    def run(self, process: Process, stdin: bytes = b"") -> Exit:
        """Run a console program to its end."""
        program = self.program(process)
        try:
            ended = program.run(stdin)
        finally:
            if process.running and not process.served:
                self._end(process, 1)
        process.exit_code = ended.code
        return ended

    def serve(self, process: Process) -> Died | None:
        """Start a long-lived program in a process; Died when it ended at once."""
        process.served = self.program(process).serve()
        if process.served is None:
            return Died(self.run(process).code)
        died = process.served.on_start()
        if died is not None:
            self.finish(process, died)
        return died

    # ---- ending ----------------------------------------------------------------------------------------

    def tick(self) -> None:
        """About once each lab second: long-lived programs go on."""
        self._ticking = False
        for process in self.all():
            if process.served is not None and process.running and process.served not in self._within:
                died = self._tick_one(process.served)
                if died is not None and process.running:
                    self.finish(process, died)
        if any(p.image is not None for p in self.all()):
            self._keep_ticking()

    def _tick_one(self, served: Served) -> Died | None:
        self._within.append(served)
        try:
            return served.on_tick()
        except Refusal as refusal:
            # No script is there to be ended: the program dies, and the lab's caller receives the refusal.
            self._machine.refusals.append(refusal)
            return Died(_KILLED)
        except Failure:
            # Something on the machine failed that the program does not handle (a full disk): it crashes.
            return Died(1)
        finally:
            self._within.remove(served)

    def _keep_ticking(self) -> None:
        if not self._ticking:
            self._ticking = True
            self._machine.after(1.0, self.tick)

    def finish(self, process: Process, died: Died) -> None:
        """The process ended by itself."""
        self._end(process, died.code)
        for hook in process.ended:
            hook(died)

    def stop(self, process: Process) -> None:
        """End it in good order (its program receives the stop); no watcher receives its death."""
        if not process.running:
            return
        if process.served is not None:
            process.served.on_stop()
        self._end(process, 0)

    def kill(self, pid: int) -> bool:
        """End it at once; its watcher receives its death. False when there is no such process."""
        process = self.get(pid)
        if process is None:
            return False
        self.finish(process, Died(_KILLED))
        return True

    def _end(self, process: Process, code: int) -> None:
        process.exit_code = code
        if process.node is not None:
            process.node.images.discard(process.pid)
        for told in self.ended:
            told(process.pid)
        self._machine.wake()

    def image_moved(self, node: Node, path: str) -> None:
        """A file was renamed: the processes that run it know their image by the new name."""
        for pid in node.images:
            self._known[pid].path = path

    def forget_all(self) -> None:
        """A reboot: nothing runs. No watcher and no program receives it."""
        for process in self.all():
            process.exit_code = _KILLED
            if process.node is not None:
                process.node.images.clear()
        self._known.clear()
        self._next = 4
        self._ticking = False

    def tree(self) -> Tree:
        """What runs, for the snapshot."""
        return {
            str(p.pid): {"name": p.name, "path": p.path, "command_line": p.command_line} for p in self.all()
        }
