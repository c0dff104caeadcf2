"""System.Threading: named mutexes that the whole machine shares, and sleeping."""

from __future__ import annotations

from typing import Any

from winboot.lab.engine.door import ask, ask_one
from winboot.lab.engine.dotnet import OBJECT, Reference, Runtime, dotnet
from winboot.lab.engine.exceptions import (
    ArgumentOutOfRangeException,
    ObjectDisposedException,
    SystemException,
    declare_exception,
)
from winboot.lab.engine.moments import TimeSpan
from winboot.lab.engine.values import Instance

Value = Any


# The former owner died without letting go; the wait got the mutex all the same.
AbandonedMutexException = declare_exception("System.Threading.AbandonedMutexException", SystemException)


class Mutex(Instance):
    """A mutex of the machine; `handle` is None once it is closed."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def open(self) -> Any:
        """The handle of a mutex that is not closed."""
        if self.handle is None:
            raise ObjectDisposedException("SafeHandle", "Safe handle has been closed")
        return self.handle


MUTEX = dotnet("System.Threading.Mutex", Mutex, base=OBJECT)


def _create(runtime: Runtime, owned: bool, name: str | None) -> tuple[Mutex, bool]:
    record = ask_one(runtime, "mutex.create", name=name or "", initially_owned=owned)
    return Mutex(record["handle"]), bool(record["created_new"])


@MUTEX.constructor("", effect=True)
def _plain(runtime: Runtime) -> Mutex:
    return _create(runtime, False, None)[0]


@MUTEX.constructor("bool initiallyOwned", effect=True)
def _owned(runtime: Runtime, owned: bool) -> Mutex:
    return _create(runtime, owned, None)[0]


@MUTEX.constructor("bool initiallyOwned, string name", effect=True)
def _named(runtime: Runtime, owned: bool, name: str | None) -> Mutex:
    return _create(runtime, owned, name)[0]


@MUTEX.constructor("bool initiallyOwned, string name, out bool createdNew", effect=True)
def _reported(runtime: Runtime, owned: bool, name: str | None, created: Reference) -> Mutex:
    made, created.value = _create(runtime, owned, name)
    return made


@MUTEX.static_method("OpenExisting(string name)", effect=True)
def _open(runtime: Runtime, name: str) -> Mutex:
    return Mutex(ask_one(runtime, "mutex.open", name=name)["handle"])


def _wait(runtime: Runtime, self: Mutex, milliseconds: int) -> bool:
    if milliseconds < -1:
        raise ArgumentOutOfRangeException("millisecondsTimeout")
    answer = ask_one(runtime, "mutex.wait", handle=self.open(), milliseconds=milliseconds)
    if answer == "abandoned":
        raise AbandonedMutexException("The wait completed due to an abandoned mutex.")
    return bool(answer == "acquired")


MUTEX.method("WaitOne()", effect=True)(lambda runtime, self: _wait(runtime, self, -1))
MUTEX.method("WaitOne(int millisecondsTimeout)", effect=True)(_wait)
MUTEX.method("WaitOne(timespan timeout)", effect=True)(
    lambda runtime, self, span: _wait(runtime, self, _milliseconds(span))
)
MUTEX.method("void ReleaseMutex()", effect=True)(lambda runtime, self: ask(runtime, "mutex.release", handle=self.open()))


@MUTEX.method("void Dispose()", "void Close()", effect=True)
def _close(runtime: Runtime, self: Mutex) -> None:
    if self.handle is not None:
        ask(runtime, "mutex.close", handle=self.handle)
        self.handle = None


MUTEX.refuses("GetAccessControl SetAccessControl SafeWaitHandle Handle TryOpenExisting")


def _milliseconds(span: TimeSpan) -> int:
    return int(span.ticks // 10_000)


class Thread(Instance):
    """Only its static members are known."""


THREAD = dotnet("System.Threading.Thread", Thread, base=OBJECT)


@THREAD.static_method("void Sleep(int millisecondsTimeout)", effect=True)
def _sleep(runtime: Runtime, milliseconds: int) -> None:
    if milliseconds < -1:
        raise ArgumentOutOfRangeException("millisecondsTimeout")
    ask(runtime, "clock.sleep", milliseconds=milliseconds)


THREAD.static_method("void Sleep(timespan timeout)", effect=True)(
    lambda runtime, span: _sleep(runtime, _milliseconds(span))
)
THREAD.refuses("CurrentThread GetDomain MemoryBarrier ResetAbort Yield CurrentPrincipal")
