"""System.Threading: named mutexes that the whole machine shares, and sleeping."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import Reference, Runtime, dotnet
from winboot_lab.engine.exceptions import (
    ApplicationException,
    ArgumentOutOfRangeException,
    ObjectDisposedException,
    SystemException,
    declare_exception,
)
from winboot_lab.engine.moments import TimeSpan
from winboot_lab.engine.values import IDISPOSABLE, Instance, Value

WaitHandleCannotBeOpenedException = declare_exception(
    "System.Threading.WaitHandleCannotBeOpenedException", ApplicationException
)
# The former owner died without letting go; the wait got the mutex all the same.
AbandonedMutexException = declare_exception("System.Threading.AbandonedMutexException", SystemException)
AbandonedMutexException.default_message = "The wait completed due to an abandoned mutex."
BAD_TIMEOUT = "Number must be either non-negative and less than or equal to Int32.MaxValue or -1."


def _one(runtime: Runtime, primitive: str, **parameters: Any) -> Any:
    return ask_one(runtime, primitive, **parameters)


# -- threads


class Thread(Instance):
    """System.Threading.Thread: the one the script runs on."""


THREAD = dotnet("System.Threading.Thread", Thread)


def sleep(runtime: Runtime, milliseconds: int) -> None:
    """Let machine time pass."""
    if milliseconds < -1:
        raise ArgumentOutOfRangeException("millisecondsTimeout", BAD_TIMEOUT)
    ask(runtime, "clock.sleep", milliseconds=milliseconds)


# -- mutexes


class Mutex(Instance):
    """System.Threading.Mutex; `handle` is None once it is closed."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def open(self) -> Any:
        """The handle of a mutex that is not closed."""
        if self.handle is None:
            raise ObjectDisposedException(None, "Safe handle has been closed")
        return self.handle


WAIT_HANDLE = dotnet("System.Threading.WaitHandle", kind="abstract", interfaces=[IDISPOSABLE])
MUTEX = dotnet("System.Threading.Mutex", Mutex, base=WAIT_HANDLE)


def _create(
    runtime: Runtime, owned: bool, name: str | None, created: Reference | None = None, **rules: Any
) -> Mutex:
    record = _one(runtime, "mutex.create", name=name or "", initially_owned=owned, **rules)
    if created is not None:
        created.value = bool(record["created_new"])
    return Mutex(record["handle"])


@MUTEX.constructor(
    "bool initiallyOwned, string name, ref bool createdNew, "
    "System.Security.AccessControl.MutexSecurity mutexSecurity",
    effect=True,
)
def _create_secured(runtime: Runtime, owned: bool, name: str, created: Reference, security: Value) -> Mutex:
    rules = {} if security is None else {"security": security.machine_record()}
    return _create(runtime, owned, name, created, **rules)


@MUTEX.method("GetAccessControl()", effect=True)
def _access(runtime: Runtime, self: Mutex) -> Value:
    from winboot_lab.engine.types.access import security_of

    return security_of("MutexSecurity", _one(runtime, "mutex.acl", handle=self.open()))


def _wait(runtime: Runtime, self: Mutex, milliseconds: int = -1, _leave: bool = False) -> bool:
    if milliseconds < -1:
        raise ArgumentOutOfRangeException("millisecondsTimeout", BAD_TIMEOUT)
    answer = _one(runtime, "mutex.wait", handle=self.open(), milliseconds=milliseconds)
    if answer == "abandoned":
        raise AbandonedMutexException("The wait completed due to an abandoned mutex.")
    return bool(answer == "acquired")


def _wait_span(runtime: Runtime, self: Mutex, span: TimeSpan, _leave: bool = False) -> bool:
    return _wait(runtime, self, span.ticks // 10_000)


MUTEX.method(
    "WaitOne()",
    "WaitOne(int millisecondsTimeout)",
    "WaitOne(int millisecondsTimeout, bool exitContext)",
    effect=True,
)(_wait)
MUTEX.method("WaitOne(timespan timeout)", "WaitOne(timespan timeout, bool exitContext)", effect=True)(
    _wait_span
)
MUTEX.method("void ReleaseMutex()", effect=True)(
    lambda runtime, self: ask(runtime, "mutex.release", handle=self.open())
)


@MUTEX.method("void Dispose()", "void Close()", effect=True)
def _close(runtime: Runtime, self: Mutex) -> None:
    if self.handle is not None:
        ask(runtime, "mutex.close", handle=self.handle)
        self.handle = None
