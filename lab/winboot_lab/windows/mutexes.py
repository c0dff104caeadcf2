"""Named mutexes: machine-wide, owned by a process, abandoned when it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from winboot_lab.windows.accounts import ADMINISTRATORS, SYSTEM, Token
from winboot_lab.windows.acl import Acl, Rule
from winboot_lab.windows.failure import failure, io_failure
from winboot_lab.windows.host import Actor, Host
from winboot_lab.windows.processes import Processes

FULL = 0x1F0001


@dataclass(eq=False, slots=True)
class Mutex:
    """One mutex. `count`: how often its owner took it. It is gone when no process holds a handle."""

    name: str
    acl: Acl
    owner: int | None = None
    count: int = 0
    abandoned: bool = False
    handles: dict[str, int] = field(default_factory=dict)


class Mutexes:
    """All mutexes. Names without a prefix and with `Local\\` belong to the logon session; all ours run in session 0."""

    def __init__(self, machine: Host, processes: Processes) -> None:
        self._machine = machine
        processes.ended.append(self.abandon)
        self._known: dict[str, Mutex] = {}
        self._handles: dict[str, Mutex] = {}
        self._numbers = 0
        # Events, semaphores and so on: all kinds share one space of names.
        self.others: set[str] = set()

    def create(
        self, name: str, owned: bool, session: Actor, security: Acl | None = None
    ) -> tuple[str, bool, bool]:
        """Create or open: the handle, whether it is new, whether the caller owns it now.

        `security` counts for a new one only.
        """
        plain = _plain(name)
        if plain in self.others:
            # CreateMutex: ERROR_INVALID_HANDLE when another object has the name
            # (learn.microsoft.com/windows/win32/api/synchapi/nf-synchapi-createmutexw); .NET makes this of it
            # (referencesource: system/threading/mutex.cs).
            raise failure(
                "System.Threading.WaitHandleCannotBeOpenedException",
                f"A WaitHandle with system-wide name '{name}' cannot be created. A WaitHandle of a different type might "
                "have the same name.",
                hresult=0x8013152C,
            )
        found = self._known.get(plain) if plain else None
        if found is not None:
            self._may_open(found, session.token)
        mutex = found or Mutex(plain, _secured(session.token, security))
        if plain:
            self._known[plain] = mutex
        if found is None and owned:
            mutex.owner, mutex.count = session.pid, 1
        return self._handle(mutex, session.pid), found is None, found is None and owned

    def open(self, name: str, session: Actor) -> str:
        """Open an existing one."""
        found = self._known.get(_plain(name))
        if found is None:
            raise failure(
                "System.Threading.WaitHandleCannotBeOpenedException",
                "No handle of the given name exists.",
                hresult=0x8013152C,
            )
        self._may_open(found, session.token)
        return self._handle(found, session.pid)

    def acl(self, handle: str, session: Actor) -> Acl:
        """Owner and rules, for a handle that may read them."""
        mutex = self._need(handle)
        self._may_open(mutex, session.token)
        return mutex.acl

    def _may_open(self, mutex: Mutex, token: Token) -> None:
        # CreateMutex opens an existing one with full access.
        if not mutex.acl.allows(token, FULL):
            message = f"Access to the path '{mutex.name}' is denied."
            raise failure("System.UnauthorizedAccessException", message, hresult=0x80070005)

    def _handle(self, mutex: Mutex, pid: int) -> str:
        self._numbers += 1
        handle = f"mutex-{self._numbers}"
        mutex.handles[handle] = pid
        self._handles[handle] = mutex
        return handle

    def _need(self, handle: str) -> Mutex:
        mutex = self._handles.get(handle)
        if mutex is None:
            raise failure("System.ObjectDisposedException", "Safe handle has been closed", hresult=0x80131622)
        return mutex

    def wait(
        self, handle: str, milliseconds: int, session: Actor
    ) -> Literal["acquired", "abandoned", "timeout"]:
        """WaitOne; -1 waits without end."""
        mutex = self._need(handle)
        pid = session.pid

        def is_free() -> bool:
            return mutex.owner is None or mutex.owner == pid

        seconds = float("inf") if milliseconds < 0 else milliseconds / 1000
        if not is_free() and not self._machine.wait(min(seconds, 10**9), session.alive, is_free):
            return "timeout"
        mutex.owner = pid
        mutex.count += 1
        was, mutex.abandoned = mutex.abandoned, False
        return "abandoned" if was else "acquired"

    def release(self, handle: str, session: Actor) -> None:
        """ReleaseMutex; only its owner may."""
        mutex = self._need(handle)
        if mutex.owner != session.pid:
            message = "Object synchronization method was called from an unsynchronized block of code."
            raise failure("System.ApplicationException", message, hresult=0x80070120)
        mutex.count -= 1
        if mutex.count == 0:
            mutex.owner = None
            self._machine.wake()

    def close(self, handle: str) -> None:
        """Close a handle; the mutex goes with its last one."""
        mutex = self._handles.pop(handle, None)
        if mutex is None:
            return
        del mutex.handles[handle]
        if not mutex.handles:
            self._known.pop(mutex.name, None)

    def abandon(self, pid: int) -> None:
        """A process ended: what it owned is abandoned, its handles close."""
        for handle, mutex in list(self._handles.items()):
            if mutex.owner == pid:
                mutex.owner, mutex.count, mutex.abandoned = None, 0, True
            if mutex.handles.get(handle) == pid:
                self.close(handle)

    def forget_all(self) -> None:
        """A reboot."""
        self._known.clear()
        self._handles.clear()
        self.others.clear()

    def squat(self, name: str) -> None:
        """Another program makes an event, or another object that is not a mutex, of that name."""
        self.others.add(_plain(name))

    def holder(self, name: str) -> int | None:
        """The process that owns the mutex, for tests and faults."""
        found = self._known.get(_plain(name))
        return found.owner if found else None


def _secured(token: Token, given: Acl | None) -> Acl:
    """What a new mutex has: the rules given, or the default list of the token that makes it.

    What SYSTEM made lets administrators look at it, but not modify it; an ordinary user's belongs to that user and SYSTEM
    ("Default DACL" of access tokens, Windows internals).
    """
    administrator = ADMINISTRATORS in token.sids
    owner = ADMINISTRATORS if administrator else token.sid
    made = given.copy() if given is not None else Acl("", "", protected=True)
    made.owner, made.group = made.owner or owner, made.group or token.sid
    if given is None:
        mine = SYSTEM if token.sid == SYSTEM else owner
        made.explicit = [Rule(sid, FULL) for sid in dict.fromkeys((SYSTEM, mine))]
    return made


def _plain(name: str) -> str:
    # A backslash only follows one of the two prefixes; anywhere else it looks like a folder that is not there.
    prefix, _, rest = name.partition("\\")
    plain = rest if prefix in ("Global", "Local") and rest else name
    if "\\" in plain:
        raise io_failure(3, name)
    return plain
