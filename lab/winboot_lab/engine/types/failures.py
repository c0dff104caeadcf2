"""Exceptions and error records as objects: their properties and constructors."""

from __future__ import annotations

from winboot_lab.engine import exceptions
from winboot_lab.engine.convert import NOT_CONVERTED, converts
from winboot_lab.engine.dotnet import DotNetType, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    DotNetException,
    ErrorDetails,
    ErrorRecord,
    ObjectDisposedException,
    RuntimeException,
    Win32Exception,
    as_record,
)
from winboot_lab.engine.formatting import dotnet_text, exception_text
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    ERROR_DETAILS,
    ERROR_RECORD,
    Hashtable,
    Instance,
    ReadOnlyCollection,
    Value,
    enum_value,
    type_of,
)

EXCEPTION = exceptions.EXCEPTION
EXCEPTION.prop("Message", "string", lambda self: self.message)
EXCEPTION.prop("InnerException", "System.Exception", lambda self: self.inner)
EXCEPTION.prop("HResult", "int", lambda self: self.hresult)
EXCEPTION.prop(
    "Source", "string", lambda self: self.source, lambda self, value: setattr(self, "source", value)
)
EXCEPTION.prop(
    "HelpLink", "string", lambda self: self.help_link, lambda self, value: setattr(self, "help_link", value)
)
EXCEPTION.prop("StackTrace", "string", lambda self: None)
EXCEPTION.prop("TargetSite", "object", lambda self: None)
EXCEPTION.method("ToString()")(exception_text)
EXCEPTION.method("GetBaseException()")(lambda self: self.base_exception)
EXCEPTION.refuses("GetObjectData")


def _data(self: DotNetException) -> Hashtable:
    if self.data is None:
        self.data = Hashtable(ignore_case=False)
    data: Hashtable = self.data
    return data


EXCEPTION.prop("Data", "System.Collections.IDictionary", _data)


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

    kind.constructor("")(make)
    kind.constructor("string message")(make)
    kind.constructor("string message, System.Exception innerException")(make)


def _defaults(made: DotNetException) -> None:
    """What the constructors of some classes keep beside the message."""
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
_DISPOSED.constructor("string objectName")(
    lambda name: ObjectDisposedException(name, "Cannot access a disposed object.")
)
_DISPOSED.constructor("string objectName, string message")(ObjectDisposedException)

_ARGUMENT = _type("System.ArgumentException")
_ARGUMENT.prop("ParamName", "string", lambda self: self.parameter)
_ARGUMENT.constructor("string message, string paramName")(ArgumentException)
for _name in ("System.ArgumentNullException", "System.ArgumentOutOfRangeException"):
    _kind = _type(_name)
    _kind.constructors.overloads.clear()
    _python = exceptions.exception_class(_name)
    assert _python is not None
    _kind.constructor("")(_python)
    _kind.constructor("string paramName")(_python)
    _kind.constructor("string paramName, string message")(_python)
_type("System.IO.FileNotFoundException").prop("FileName", "string", lambda self: self.file_name)
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


_WIN32_TEXTS = {
    0: "The operation completed successfully",
    1: "Incorrect function",
    2: "The system cannot find the file specified",
    3: "The system cannot find the path specified",
    5: "Access is denied",
    32: "The process cannot access the file because it is being used by another process",
    87: "The parameter is incorrect",
    1060: "The specified service does not exist as an installed service",
    1072: "The specified service has been marked for deletion",
}


@_WIN32.constructor("int error")
def _win32(code: int) -> Win32Exception:
    if code not in _WIN32_TEXTS:
        raise Refusal("value", str(code), "the text of a Windows error")
    return Win32Exception(_WIN32_TEXTS[code], code)


_RANGE = _type("System.ArgumentOutOfRangeException")
_RANGE.prop("ActualValue", "object", lambda self: self.__dict__.get("actual_value"))


@_RANGE.constructor("string paramName, object actualValue, string message")
def _out_of_range(name: str, actual: Value, message: str) -> DotNetException:
    made = exceptions.ArgumentOutOfRangeException(name, message)
    made.message += f"\r\nActual value was {dotnet_text(actual)}."
    made.__dict__["actual_value"] = actual
    return made


_AGGREGATE = _type("System.AggregateException")


def _aggregate(message: str | None, inner: Value) -> DotNetException:
    made = exceptions.AggregateException(
        "One or more errors occurred." if message is None else message, inner[0] if len(inner) else None
    )
    made.__dict__["inner_exceptions"] = list(inner)
    return made


_AGGREGATE.prop(
    "InnerExceptions",
    "object",
    lambda self: ReadOnlyCollection(
        self.__dict__.get("inner_exceptions") or ([self.inner] if self.inner is not None else []), EXCEPTION
    ),
)
_AGGREGATE.constructor("params System.Exception[] innerExceptions")(lambda inner: _aggregate(None, inner))
_AGGREGATE.constructor("string message, params System.Exception[] innerExceptions")(_aggregate)
_AGGREGATE.refuses("Flatten Handle")
_WEB = _type("System.Net.WebException")
_WEB.prop("Response", "object", lambda self: getattr(self, "response", None))
_WEB.prop(
    "Status",
    "System.Net.WebExceptionStatus",
    lambda self: enum_value("System.Net.WebExceptionStatus", getattr(self, "status", None) or "UnknownError"),
)
_type("System.Management.Automation.RuntimeException").prop("ErrorRecord", "object", as_record)
_type("System.Management.Automation.RuntimeException").prop(
    "WasThrownFromThrowStatement", "bool", lambda self: self.was_thrown_from_throw_statement
)
_type("System.Management.Automation.PSInvalidCastException").prop("ErrorRecord", "object", as_record)
_type("System.Management.Automation.CommandNotFoundException").prop(
    "CommandName", "string", lambda self: self.target
)
_type("System.Management.Automation.ItemNotFoundException").prop(
    "ItemName", "string", lambda self: self.target
)
_BINDING = _type("System.Management.Automation.ParameterBindingException")
_BINDING.prop("ParameterName", "string", lambda self: self.parameter_name or "")
_BINDING.prop("ErrorId", "string", lambda self: self.error_id)
_BINDING.refuses("ParameterType TypeSpecified Line Offset CommandInvocation")
_SOCKET = _type("System.Net.Sockets.SocketException")
# Its source: "the base class returns the HResult with this property we need the Win32 Error Code, hence the override".
_SOCKET.prop("ErrorCode", "int", _native_code)
_SOCKET.prop(
    "SocketErrorCode",
    "System.Net.Sockets.SocketError",
    lambda self: enum_value("System.Net.Sockets.SocketError", _native_code(self)),
)


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
CATEGORY_INFO.prop(
    "Category",
    "System.Management.Automation.ErrorCategory",
    lambda self: enum_value("System.Management.Automation.ErrorCategory", self.record.category),
)
CATEGORY_INFO.prop(
    "Activity",
    "string",
    lambda self: self.activity,
    lambda self, value: setattr(self.record, "activity", value),
)
CATEGORY_INFO.prop(
    "Reason", "string", lambda self: self.reason, lambda self, value: setattr(self.record, "reason", value)
)
CATEGORY_INFO.prop(
    "TargetName",
    "string",
    lambda self: self.target_name,
    lambda self, value: setattr(self.record, "target_name", value),
)
CATEGORY_INFO.prop(
    "TargetType",
    "string",
    lambda self: self.target_type,
    lambda self, value: setattr(self.record, "target_type", value),
)
CATEGORY_INFO.method("GetMessage()")(str)
CATEGORY_INFO.method("ToString()")(str)
CATEGORY_INFO.complete()

ERROR_RECORD.prop("Exception", "System.Exception", lambda self: self.exception)
ERROR_RECORD.prop("TargetObject", "object", lambda self: self.target)
ERROR_RECORD.prop("CategoryInfo", "object", CategoryInfo)
ERROR_RECORD.prop("FullyQualifiedErrorId", "string", lambda self: self.id)
ERROR_RECORD.prop(
    "ErrorDetails",
    "System.Management.Automation.ErrorDetails",
    lambda self: self.details,
    lambda self, value: setattr(self, "details", value),
)
ERROR_RECORD.prop("InvocationInfo", "object", lambda self: self.invocation)
ERROR_RECORD.prop("ScriptStackTrace", "string", lambda self: self.script_stack_trace)
ERROR_RECORD.method("ToString()")(str)
ERROR_RECORD.refuses("PipelineIterationInfo GetObjectData")


@ERROR_RECORD.constructor(
    "System.Exception exception, string errorId, System.Management.Automation.ErrorCategory errorCategory, "
    "object targetObject"
)
def _record(failure: DotNetException, id_: str, category: Value, target: Value) -> ErrorRecord:
    return ErrorRecord(failure, id_ or "", str(category), target)


ERROR_DETAILS.prop("Message", "string", lambda self: self.message)
ERROR_DETAILS.prop(
    "RecommendedAction",
    "string",
    lambda self: self.recommended_action,
    lambda self, value: setattr(self, "recommended_action", value),
)
ERROR_DETAILS.constructor("string message")(ErrorDetails)
ERROR_DETAILS.method("ToString()")(lambda self: self.message)
ERROR_DETAILS.complete()
