"""Exceptions and error records as objects: their properties and constructors."""

from __future__ import annotations

from winboot_lab.engine import exceptions
from winboot_lab.engine.convert import NOT_CONVERTED, converts
from winboot_lab.engine.dotnet import DotNetType, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    DotNetException,
    ErrorRecord,
    RuntimeException,
    Win32Exception,
)
from winboot_lab.engine.formatting import dotnet_text, exception_text
from winboot_lab.engine.values import (
    ERROR_RECORD,
    Instance,
    Value,
    enum_value,
    type_of,
)

EXCEPTION = exceptions.EXCEPTION
EXCEPTION.prop("Message", "string", lambda self: self.message)
EXCEPTION.prop("InnerException", "System.Exception", lambda self: self.inner)
EXCEPTION.prop("HResult", "int", lambda self: self.hresult)
EXCEPTION.method("ToString()")(exception_text)
EXCEPTION.method("GetBaseException()")(lambda self: self.base_exception)


def _constructors(python: type[DotNetException], kind: DotNetType) -> None:
    plain = python.__init__ is DotNetException.__init__ or issubclass(python, RuntimeException)

    def make(message: str | None = None, inner: DotNetException | None = None) -> DotNetException:
        made = python.__new__(python)
        if isinstance(made, Win32Exception):
            Win32Exception.__init__(made, message)
            made.inner = inner
            return made
        if isinstance(made, ArgumentException):
            ArgumentException.__init__(made, message)
            made.inner = inner
            return made
        if isinstance(made, RuntimeException):
            RuntimeException.__init__(made, message, inner=inner)
        elif plain:
            DotNetException.__init__(made, message, inner)
        elif message is None and not issubclass(python, exceptions.PSInvalidCastException):
            python.__init__(made)
            made.inner = inner
        else:
            _defaults(made)
            DotNetException.__init__(made, message, inner)
        return made

    kind.constructor("string message")(make)
    kind.constructor("string message, System.Exception innerException")(make)


def _defaults(made: DotNetException) -> None:
    """What the constructors of some classes keep in addition to the message."""
    for name in ("file_name", "parameter", "response", "code"):
        if not hasattr(made, name):
            setattr(made, name, None)


def _declare_all() -> None:
    for python, kind in list(exceptions._TYPES.items()):
        if not kind.constructors.overloads:
            _constructors(python, kind)
    exceptions.DECLARED.append(_constructors)


_declare_all()


def _type(name: str) -> DotNetType:
    from winboot_lab.engine.dotnet import named

    return named(name)


_DISPOSED = _type("System.ObjectDisposedException")
_DISPOSED.constructors.overloads.clear()

_ARGUMENT = _type("System.ArgumentException")
for _name in ("System.ArgumentNullException", "System.ArgumentOutOfRangeException"):
    _kind = _type(_name)
    _kind.constructors.overloads.clear()
    _python = exceptions.exception_class(_name)
    assert _python is not None
_type("System.IO.FileNotFoundException").constructor("string message, string fileName")(
    exceptions.FileNotFoundException
)
_WIN32 = _type("System.ComponentModel.Win32Exception")
_WIN32.prop("ErrorCode", "int", lambda self: self.hresult)


def _native_code(self: Win32Exception) -> int:
    """The Windows error number: the one given, else the low half of an HResult that wraps one."""
    if self.code:
        return self.code
    return self.hresult & 0xFFFF if (self.hresult & 0xFFFF0000) in (0x80070000, 0) else 0


_WIN32.prop("NativeErrorCode", "int", _native_code)


_RANGE = _type("System.ArgumentOutOfRangeException")


_AGGREGATE = _type("System.AggregateException")


_WEB = _type("System.Net.WebException")
_WEB.prop("Response", "object", lambda self: getattr(self, "response", None))
_WEB.prop(
    "Status",
    "System.Net.WebExceptionStatus",
    lambda self: enum_value("System.Net.WebExceptionStatus", getattr(self, "status", None) or "UnknownError"),
)
_BINDING = _type("System.Management.Automation.ParameterBindingException")
_SOCKET = _type("System.Net.Sockets.SocketException")
_SOCKET.prop("ErrorCode", "int", _native_code)
# Its source: "the base class returns the HResult with this property we need the Win32 Error Code, hence the override".


@converts(EXCEPTION)
def _to_exception(value: Value) -> Value:
    return value.exception if isinstance(value, ErrorRecord) else NOT_CONVERTED


# -- error records


class CategoryInfo(Instance):
    """System.Management.Automation.ErrorCategoryInfo of one record."""

    def __init__(self, record: ErrorRecord) -> None:
        self.record = record

    @property
    def reason(self) -> str:
        if self.record.reason is not None:
            return self.record.reason
        return type_of(self.record.exception).short_name

    @property
    def activity(self) -> str:
        """What was being done: set by hand, or the name of the command that failed."""
        command = getattr(self.record.invocation, "command", None)
        return self.record.activity or getattr(command, "name", "")

    @property
    def target_name(self) -> str:
        if self.record.target_name is not None:
            return self.record.target_name
        return dotnet_text(self.record.target)

    @property
    def target_type(self) -> str:
        if self.record.target_type is not None:
            return self.record.target_type
        return "" if self.record.target is None else type_of(self.record.target).short_name

    def __str__(self) -> str:
        target = f"({self.target_name}:{self.target_type})" if self.target_name or self.target_type else "(:)"
        return f"{self.record.category}: {target} [{self.activity}], {self.reason}"


CATEGORY_INFO = dotnet("System.Management.Automation.ErrorCategoryInfo", CategoryInfo)

ERROR_RECORD.prop("Exception", "System.Exception", lambda self: self.exception)
ERROR_RECORD.prop("ScriptStackTrace", "string", lambda self: self.script_stack_trace)
ERROR_RECORD.prop("TargetObject", "object", lambda self: self.target)
ERROR_RECORD.prop("FullyQualifiedErrorId", "string", lambda self: self.id)
ERROR_RECORD.prop("InvocationInfo", "object", lambda self: self.invocation)
ERROR_RECORD.method("ToString()")(str)


@ERROR_RECORD.constructor(
    "System.Exception exception, string errorId, System.Management.Automation.ErrorCategory errorCategory, "
    "object targetObject"
)
def _record(failure: DotNetException, id_: str, category: Value, target: Value) -> ErrorRecord:
    return ErrorRecord(failure, id_ or "", str(category), target)
