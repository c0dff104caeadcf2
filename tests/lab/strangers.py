"""What an ordinary user of the machine can have done to a path before we come, and what must not be so afterwards.

The lab's files record the paths that a join, a restart and an hour of the machine touch. So a new path of a step, a task or a
service is among them without a name here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final

from winboot_lab.windows import paths
from winboot_lab.windows.accounts import SYSTEM_TOKEN, Token
from winboot_lab.windows.acl import (
    APPEND,
    CHANGE_PERMISSIONS,
    DELETE,
    DELETE_CHILD,
    FULL,
    READ,
    TAKE_OWNERSHIP,
    WRITE,
    Rule,
)
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.files import Files
from winboot_lab.windows.machine import Machine

from tests.lab.site import Site

WINDOWS: Final = "c:\\windows\\"
# winboot only reports that others may replace files in these folders: tests/steps/test_directories.py.
WINDOWS_OWN: Final = (r"C:\Program Files", r"C:\ProgramData")
STATE: Final = "C:\\ProgramData\\winboot"
SECRET: Final = r"C:\secret.txt"
OFFICE: Final = r"C:\office"
# Names with a time, an id or an address of a pod in them: every run has others.
_CHANCE: Final = re.compile(
    r"[0-9a-f]{16,}|\d{4}-\d\d-\d\d|\\\d+\.\d+\.\d+\.\d+|-[0-9a-f]{8}[.-]|\{|winboot-old"
)
_ONE_PATH: Final = (
    "read", "write", "_open_for_write", "open", "delete", "make_directory", "set_acl", "list", "delete_directory", "link",
)  # fmt: skip
_TWO_PATHS: Final = ("move", "copy", "replace")
# Rights to replace the contents of a folder, or to change a file.
_REPLACES: Final = (DELETE, DELETE_CHILD, CHANGE_PERMISSIONS, TAKE_OWNERSHIP)
_CHANGES: Final = (*_REPLACES, WRITE, APPEND)
PID: Final = 4000


def alice(machine: Machine) -> Token:
    """An ordinary user of the machine."""
    if "alice" not in machine.accounts.users:
        machine.accounts.add("alice", administrator=False)
    return machine.accounts.token("alice")


def trace(files: Files, spawned: Any, touched: set[str]) -> None:
    """From now on each path that something reads, writes, makes, lists or starts is added."""
    for name in (*_ONE_PATH, *_TWO_PATHS):
        setattr(files, name, _noting(files, getattr(files, name), touched, 2 if name in _TWO_PATHS else 1))
    spawn = spawned.spawn

    @wraps(spawn)
    def spawning(*given: Any, **named: Any) -> Any:
        process = spawn(*given, **named)
        touched.add(files.normal(process.path))
        return process

    spawned.spawn = spawning


def _noting(files: Files, act: Callable[..., Any], touched: set[str], count: int) -> Callable[..., Any]:
    @wraps(act)
    def noting(*given: Any, **named: Any) -> Any:
        touched.update(files.normal(path) for path in given[:count])
        return act(*given, **named)

    return noting


def worth_attacking(touched: Iterable[str]) -> list[str]:
    """The paths that an ordinary user could have got at before us: not Windows' own, and none whose name is chance."""
    found = {path for path in touched if not path.lower().startswith(WINDOWS) and not _CHANCE.search(path)}
    return sorted(found | {above for path in found for above in _above(path) if len(above) > 3})


def _above(path: str) -> Iterator[str]:
    while len(path) > 3:
        path = paths.parent(path)
        yield path


def depth(path: str) -> int:
    """How many folders deep it is."""
    return path.count("\\")


def in_state(path: str) -> bool:
    """Whether it is the state folder or in it."""
    return (path + "\\").lower().startswith(STATE.lower() + "\\")


# -- the user's attacks on one path; an administrator has made the folders above it


@dataclass
class Plant:
    """The files before the join. `twin`: the contents of a good machine, so that no content reveals the user's files."""

    machine: Machine
    twin: Files
    user: Token
    handles: list[Any] = field(default_factory=list)

    @property
    def files(self) -> Files:
        """The machine's."""
        return self.machine.files

    def is_folder(self, path: str) -> bool:
        """What it is where all is well."""
        found = self.twin.find(path)
        return found is not None and found[1].directory

    def make(self, path: str, token: Token) -> None:
        """The path as a folder or a file of this user."""
        if self.files.exists(path):
            return
        if self.is_folder(path):
            self.files.make_directory(path, token)
        else:
            found = self.twin.find(path)
            self.files.write(path, found[1].content if found else b"hers", token)


def owned(plant: Plant, path: str) -> None:
    plant.make(path, plant.user)


def writable(plant: Plant, path: str) -> None:
    plant.make(path, SYSTEM_TOKEN)
    plant.files.need(path)[1].acl.explicit.append(Rule(plant.user.sid, FULL, inheritance=3))


def junction(plant: Plant, path: str) -> None:
    plant.files.link(path, OFFICE, "Junction", plant.user)


def hard_link(plant: Plant, path: str) -> None:
    """Folders have none: there a file in it is one."""
    if plant.is_folder(path):
        plant.make(path, SYSTEM_TOKEN)
        path = rf"{path}\child"
    plant.files.link(path, SECRET, "HardLink", plant.user)


def symbolic_link(plant: Plant, path: str) -> None:
    """The user needs a privilege for it, which an administrator or the developer mode once gave."""
    plant.files.link(path, OFFICE if plant.is_folder(path) else SECRET, "SymbolicLink", SYSTEM_TOKEN)
    plant.files.need(path, follow=False)[1].acl.owner = plant.user.sid


def held(plant: Plant, path: str) -> None:
    """The user owned it, an administrator took it; the user's handle is still open."""
    plant.make(path, plant.user)
    plant.handles.append(plant.files.hold(path, CHANGE_PERMISSIONS, pid=PID, token=plant.user))
    plant.files.need(path)[1].acl.owner = SYSTEM_TOKEN.sid


STATES: Final[dict[str, Callable[[Plant, str], None]]] = {
    one.__name__: one for one in (owned, writable, junction, hard_link, symbolic_link, held)
}
# A link that the user keeps open without sharing: Windows PowerShell 5.1 has no LinkType for it then.
SHUT: Final = "shut "


def _plant_one(made: Plant, state: str, path: str) -> None:
    STATES[state.removeprefix(SHUT)](made, path)
    if state.startswith(SHUT):
        made.handles.append(made.files.hold(path, READ, pid=PID, token=made.user, share=0))


def plant(site: Site, twin: Site, state: str, attacked: Iterable[str]) -> tuple[Plant, list[str]]:
    """Attack these paths; returns those at which Windows allowed it."""
    machine = site.machine
    made = Plant(machine, twin.machine.files, alice(machine))
    machine.files.write(SECRET, b"of an administrator")
    # The user can read it, and so can give it a second name.
    machine.files.make_directory(OFFICE)
    done: list[str] = []
    for path in attacked:
        if machine.files.find(path, follow=False) is not None and state not in ("writable", "hard_link"):
            continue
        if _behind_link(machine.files, path):
            continue
        try:
            machine.files.make_directory(paths.parent(path))
            _plant_one(made, state, path)
        except Failure:
            continue
        done.append(path)
    return made, done


def _behind_link(files: Files, path: str) -> bool:
    """True if a folder above is one of the user's links already: the path is elsewhere."""
    found = (files.find(above, follow=False) for above in _above(path))
    return any(one is not None and one[1].link is not None for one in found)


# -- what must not be


def doubts(files: Files, path: str, user: Token) -> list[str]:
    """How this user can still decide what a path is: links on the way, and the user's rights on it and on the folders above."""
    found: list[str] = []
    for above in [*reversed(list(_above(path))), path]:
        there = files.find(above, follow=False)
        if there is None or len(above) <= 3:
            continue
        node = there[1]
        if node.link is not None and not above.lower().endswith("-current.pem"):
            found.append(f"{above} is a {node.link[0]}")
        if node.acl.owner == user.sid:
            found.append(f"{above} is the user's")
        # In a folder that only leads to ours, others may add theirs.
        rights = _REPLACES if node.directory else _CHANGES
        if any(node.acl.allows(user, right) for right in rights):
            found.append(f"{above} can be changed by the user")
        if any(one.rights & CHANGE_PERMISSIONS or one.access & 2 for one in node.opened if one.pid == PID):
            found.append(f"{above} is open with the user's handle")
        if not node.directory and node.names > 1:
            found.append(f"{above} is a second name")
    return found


@dataclass
class Guarded:
    """Each program that SYSTEM or an administrator starts, with the changes that the user could have made at that moment."""

    started: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def guard(machine: Machine, user: Token) -> Guarded:
    """Watch the programs that start from now on."""
    seen = Guarded()
    spawn = machine.processes.spawn

    @wraps(spawn)
    def spawning(*given: Any, **named: Any) -> Any:
        process = spawn(*given, **named)
        if process.token.sid != user.sid and not process.path.lower().startswith(WINDOWS):
            seen.started.append(process.path)
            seen.wrong += [
                f"{process.path} was started: {one}" for one in doubts(machine.files, process.path, user)
            ]
        return process

    machine.processes.spawn = spawning  # type: ignore[method-assign]
    return seen


def untouched(machine: Machine) -> list[str]:
    """The files that were written through one of the user's links."""
    files = machine.files
    wrong = [] if files.need(SECRET)[1].content == b"of an administrator" else [f"{SECRET} was changed"]
    return wrong + [rf"{OFFICE}\{one} was written" for one in files.need(OFFICE)[1].children]


# -- races


@dataclass
class Racer:
    """A user that creates a path of winboot's just before winboot's operation on it, wherever Windows allows it.

    `at` selects the operations by number and path. `done` has those numbers with the paths."""

    plant: Plant
    at: Callable[[int, str], bool]
    number: int = 0
    busy: bool = False
    done: list[tuple[int, str]] = field(default_factory=list)

    def before(self, path: str) -> None:
        """An operation on this path comes next."""
        if self.busy or path.lower().startswith(WINDOWS):
            return
        self.number += 1
        files = self.plant.files
        self.busy = True
        try:
            if self.at(self.number, path) and files.find(path, follow=False) is None:
                self.plant.make(path, self.plant.user)
                self.done.append((self.number, path))
        except Failure:
            # Windows does not allow it.
            return
        finally:
            self.busy = False


def race(site: Site, twin: Site, at: Callable[[int, str], bool]) -> Racer:
    """The user is quicker than winboot from now on."""
    made, _ = plant(site, twin, "owned", ())
    racer, files = Racer(made, at), site.machine.files
    for name in (*_ONE_PATH, *_TWO_PATHS):
        setattr(files, name, _raced(files, getattr(files, name), racer, 2 if name in _TWO_PATHS else 1))
    return racer


def _raced(files: Files, act: Callable[..., Any], racer: Racer, count: int) -> Callable[..., Any]:
    @wraps(act)
    def raced(*given: Any, **named: Any) -> Any:
        # The last path: where something comes to be.
        racer.before(files.normal(given[count - 1]))
        return act(*given, **named)

    return raced
