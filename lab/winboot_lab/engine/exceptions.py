""".NET exceptions and PowerShell error records.

A .NET exception is a Python exception, so that library code raises it directly (`raise FormatException("...")`). It is also
a PowerShell value with a type name, a message and an inner exception. The Python class tree is the .NET tree:
`catch [IO.IOException]` is an `is_a` question about `type_of(exception)`.

    DotNetException                               System.Exception
      SystemException ... ArgumentException, IOException, InvalidOperationException, FormatException ...
        RuntimeException                          what PowerShell itself raises: carries id, category and target
          PSInvalidCastException, MethodInvocationException, CommandNotFoundException ...

`declare_exception(name, base)` declares exceptions that library code does not raise by class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from winboot_lab.engine.dotnet import DotNetType, Value, dotnet


class DotNetException(Exception):
    """System.Exception. `message` is what the script sees; `inner` the InnerException."""

    type_name: ClassVar[str] = "System.Exception"
    default_hresult: ClassVar[int] = -2146233088  # 0x80131500
    default_message: ClassVar[str | None] = None
    extension: Any = None  # members added by Add-Member, see values.Extension

    def __init__(
        self, message: str | None = None, inner: DotNetException | None = None, *, hresult: int | None = None
    ) -> None:
        super().__init__(message)
        if message is None:
            message = self.default_message or f"Exception of type '{self.type_name}' was thrown."
        self.message = message
        self.inner = inner
        self.hresult = self.default_hresult if hresult is None else hresult
        self.source: str | None = None
        self.data: Value = None  # a Hashtable once asked for
        self.record: ErrorRecord | None = None

    def __str__(self) -> str:
        return self.message

    @property
    def base_exception(self) -> DotNetException:
        """The innermost exception (GetBaseException)."""
        current: DotNetException = self
        while current.inner is not None:
            current = current.inner
        return current


EXCEPTION = dotnet("System.Exception", DotNetException)


def _declare(python: type[DotNetException]) -> None:
    base = next(parent for parent in python.__mro__[1:] if issubclass(parent, DotNetException))
    base_type = _TYPES[base]
    made = _TYPES[python] = dotnet(python.type_name, python, base=base_type)
    for hook in DECLARED:
        hook(python, made)


_TYPES: dict[type[DotNetException], DotNetType] = {DotNetException: EXCEPTION}
DECLARED: list[Callable[[type[DotNetException], DotNetType], None]] = []
"""Called for each exception class declared from now on (types/failures.py gives them constructors)."""


def declare_exception(
    name: str, base: type[DotNetException], hresult: int | None = None
) -> type[DotNetException]:
    """Declare a further exception class by its .NET name."""
    body: dict[str, Any] = {"type_name": name}
    if hresult is not None:
        body["default_hresult"] = hresult
    python = type(name.rsplit(".", 1)[-1], (base,), body)
    _declare(python)
    return python


def exception_class(name: str) -> type[DotNetException] | None:
    """The Python class of a declared .NET exception, by its full name without regard to case."""
    wanted = name.lower()
    return next((python for python in _TYPES if python.type_name.lower() == wanted), None)


class SystemException(DotNetException):
    type_name = "System.SystemException"
    default_hresult = -2146233087
    default_message = "System error."


class ApplicationException(DotNetException):
    type_name = "System.ApplicationException"
    default_hresult = -2146232832
    default_message = "Error in the application."


class ArgumentException(SystemException):
    """`parameter` is appended on a second line, as .NET Framework does."""

    type_name = "System.ArgumentException"
    default_hresult = -2147024809

    def __init__(
        self,
        message: str | None = None,
        parameter: str | None = None,
        inner: DotNetException | None = None,
        *,
        hresult: int | None = None,
    ) -> None:
        super().__init__(message, inner, hresult=hresult)
        self.parameter = parameter
        if message is None:
            self.message = "Value does not fall within the expected range."
        if parameter:
            self.message += f"\r\nParameter name: {parameter}"


class ArgumentNullException(ArgumentException):
    type_name = "System.ArgumentNullException"
    default_hresult = -2147467261

    def __init__(self, parameter: str | None = None, message: str = "Value cannot be null.") -> None:
        super().__init__(message, parameter)


class ArgumentOutOfRangeException(ArgumentException):
    type_name = "System.ArgumentOutOfRangeException"
    default_hresult = -2146233086

    def __init__(
        self,
        parameter: str | None = None,
        message: str = "Specified argument was out of the range of valid values.",
    ) -> None:
        super().__init__(message, parameter)


class ArithmeticException(SystemException):
    type_name = "System.ArithmeticException"
    default_hresult = -2147024362
    default_message = "Overflow or underflow in the arithmetic operation."


class DivideByZeroException(ArithmeticException):
    type_name = "System.DivideByZeroException"
    default_hresult = -2147352558

    def __init__(self, message: str = "Attempted to divide by zero.") -> None:
        super().__init__(message)


class OverflowException(ArithmeticException):
    type_name = "System.OverflowException"
    default_hresult = -2146233066
    default_message = "Arithmetic operation resulted in an overflow."


class FormatException(SystemException):
    type_name = "System.FormatException"
    default_hresult = -2146233033
    default_message = "One of the identified items was in an invalid format."


class InvalidCastException(SystemException):
    type_name = "System.InvalidCastException"
    default_hresult = -2147467262
    default_message = "Specified cast is not valid."


class InvalidOperationException(SystemException):
    type_name = "System.InvalidOperationException"
    default_hresult = -2146233079
    default_message = "Operation is not valid due to the current state of the object."


class ObjectDisposedException(InvalidOperationException):
    type_name = "System.ObjectDisposedException"
    default_hresult = -2146232798

    def __init__(self, name: str | None = None, message: str = "Cannot access a closed file.") -> None:
        super().__init__(message + (f"\r\nObject name: '{name}'." if name else ""))


class NotSupportedException(SystemException):
    type_name = "System.NotSupportedException"
    default_hresult = -2146233067
    default_message = "Specified method is not supported."


class IndexOutOfRangeException(SystemException):
    type_name = "System.IndexOutOfRangeException"
    default_hresult = -2146233080

    def __init__(self, message: str = "Index was outside the bounds of the array.") -> None:
        super().__init__(message)


class KeyNotFoundException(SystemException):
    type_name = "System.Collections.Generic.KeyNotFoundException"
    default_hresult = -2146232969

    def __init__(self, message: str = "The given key was not present in the dictionary.") -> None:
        super().__init__(message)


class UnauthorizedAccessException(SystemException):
    type_name = "System.UnauthorizedAccessException"
    default_hresult = -2147024891
    default_message = "Attempted to perform an unauthorized operation."


class TimeoutException(SystemException):
    type_name = "System.TimeoutException"
    default_hresult = -2146233083
    default_message = "The operation has timed out."


class IOException(SystemException):
    type_name = "System.IO.IOException"
    default_hresult = -2146232800
    default_message = "I/O error occurred."


class FileNotFoundException(IOException):
    type_name = "System.IO.FileNotFoundException"
    default_hresult = -2147024894
    default_message = "Unable to find the specified file."

    def __init__(
        self, message: str | None = None, file_name: str | None = None, *, hresult: int | None = None
    ) -> None:
        super().__init__(message, hresult=hresult)
        self.file_name = file_name


class DirectoryNotFoundException(IOException):
    type_name = "System.IO.DirectoryNotFoundException"
    default_hresult = -2147024893
    default_message = "Attempted to access a path that is not on the disk."


class DriveNotFoundDotNetException(IOException):
    type_name = "System.IO.DriveNotFoundException"
    default_hresult = -2147024893
    default_message = "Could not find the drive. The drive might not be ready or might not be mapped."


class PathTooLongException(IOException):
    type_name = "System.IO.PathTooLongException"
    default_hresult = -2147024690
    default_message = (
        "The specified path, file name, or both are too long. The fully qualified file name must be less than "
        "260 characters, and the directory name must be less than 248 characters."
    )


class SecurityException(SystemException):
    type_name = "System.Security.SecurityException"
    default_hresult = -2146233078
    default_message = "Security error."


class CryptographicException(SystemException):
    type_name = "System.Security.Cryptography.CryptographicException"
    default_hresult = -2146233296
    default_message = "Error occurred during a cryptographic operation."


class ExternalException(SystemException):
    type_name = "System.Runtime.InteropServices.ExternalException"
    default_hresult = -2147467259
    default_message = "External component has thrown an exception."


class COMException(ExternalException):
    type_name = "System.Runtime.InteropServices.COMException"
    default_message = "Error HRESULT E_FAIL has been returned from a call to a COM component."


class Win32Exception(ExternalException):
    """`code` is the NativeErrorCode."""

    type_name = "System.ComponentModel.Win32Exception"

    def __init__(self, message: str | None = None, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class SocketException(Win32Exception):
    type_name = "System.Net.Sockets.SocketException"


class WebException(InvalidOperationException):
    """`response` is the HttpWebResponse or None, `status` the WebExceptionStatus name."""

    type_name = "System.Net.WebException"

    def __init__(
        self,
        message: str | None = None,
        inner: DotNetException | None = None,
        *,
        response: Value = None,
        status: str = "UnknownError",
    ) -> None:
        super().__init__(message, inner)
        self.response = response
        self.status = status


class AggregateException(DotNetException):
    type_name = "System.AggregateException"
    default_message = "One or more errors occurred."


# -- PowerShell's own


class RuntimeException(SystemException):
    """What PowerShell raises itself. `id` is the FullyQualifiedErrorId (without command), `category` an ErrorCategory."""

    type_name = "System.Management.Automation.RuntimeException"
    default_id: ClassVar[str] = "RuntimeException"
    default_category: ClassVar[str] = "NotSpecified"

    def __init__(
        self,
        message: str | None = None,
        id: str | None = None,
        category: str | None = None,
        target: Value = None,
        inner: DotNetException | None = None,
    ) -> None:
        super().__init__(message, inner)
        self.id = self.default_id if id is None else id
        self.category = self.default_category if category is None else category
        self.target = target
        self.was_thrown_from_throw_statement = False
        self.settled = False  # a statement has already decided that it goes outwards
        # The pipeline whose later command raised it, on its way out through the earlier ones.
        self.crossing: object | None = None

    @property
    def error_record(self) -> ErrorRecord:
        """The record that goes with the exception; made on first use."""
        if self.record is None:
            self.record = ErrorRecord(self, self.id, self.category, self.target)
        return self.record


class PSInvalidCastException(InvalidCastException):
    """A failed conversion. Casts wrap it in a RuntimeException with the same id; the binder in its own exception."""

    type_name = "System.Management.Automation.PSInvalidCastException"

    def __init__(self, message: str, id: str = "InvalidCast", inner: DotNetException | None = None) -> None:
        super().__init__(message, inner)
        self.id = id
        self.category = "InvalidArgument"
        self.target: Value = None

    @property
    def error_record(self) -> ErrorRecord:
        if self.record is None:
            self.record = ErrorRecord(self, self.id, self.category, None)
        return self.record


class PSInvalidOperationException(InvalidOperationException):
    type_name = "System.Management.Automation.PSInvalidOperationException"


class PSArgumentException(ArgumentException):
    type_name = "System.Management.Automation.PSArgumentException"


class PSNotSupportedException(NotSupportedException):
    type_name = "System.Management.Automation.PSNotSupportedException"


class ExtendedTypeSystemException(RuntimeException):
    type_name = "System.Management.Automation.ExtendedTypeSystemException"


class MethodException(ExtendedTypeSystemException):
    """No fitting overload, or an argument that does not convert."""

    type_name = "System.Management.Automation.MethodException"


class MethodInvocationException(MethodException):
    """A .NET method failed: `inner` is the real exception, whose type name is the error id."""

    type_name = "System.Management.Automation.MethodInvocationException"


class SetValueException(ExtendedTypeSystemException):
    type_name = "System.Management.Automation.SetValueException"


class SetValueInvocationException(SetValueException):
    type_name = "System.Management.Automation.SetValueInvocationException"


class GetValueException(ExtendedTypeSystemException):
    type_name = "System.Management.Automation.GetValueException"


class GetValueInvocationException(GetValueException):
    type_name = "System.Management.Automation.GetValueInvocationException"


class PropertyNotFoundException(ExtendedTypeSystemException):
    type_name = "System.Management.Automation.PropertyNotFoundException"


class CmdletInvocationException(RuntimeException):
    type_name = "System.Management.Automation.CmdletInvocationException"


class CommandNotFoundException(RuntimeException):
    type_name = "System.Management.Automation.CommandNotFoundException"
    default_id = "CommandNotFoundException"
    default_category = "ObjectNotFound"


class ApplicationFailedException(RuntimeException):
    type_name = "System.Management.Automation.ApplicationFailedException"


class ParameterBindingException(RuntimeException):
    """The binder's complaint: `error_id` is the id without the command."""

    type_name = "System.Management.Automation.ParameterBindingException"
    default_category = "InvalidArgument"
    error_id: str = ""
    command: str = ""


class ParameterBindingArgumentTransformationException(ParameterBindingException):
    type_name = "System.Management.Automation.ParameterBindingArgumentTransformationException"
    default_category = "InvalidData"


class ParameterBindingValidationException(ParameterBindingException):
    type_name = "System.Management.Automation.ParameterBindingValidationException"
    default_category = "InvalidData"


class ActionPreferenceStopException(RuntimeException):
    type_name = "System.Management.Automation.ActionPreferenceStopException"


class PipelineStoppedException(RuntimeException):
    type_name = "System.Management.Automation.PipelineStoppedException"


class ScriptCallDepthException(SystemException):
    type_name = "System.Management.Automation.ScriptCallDepthException"


class ParseException(RuntimeException):
    type_name = "System.Management.Automation.ParseException"


class ScriptRequiresException(RuntimeException):
    """#requires asks for what this session does not have."""

    type_name = "System.Management.Automation.ScriptRequiresException"
    default_category = "ResourceUnavailable"


class RemoteException(RuntimeException):
    type_name = "System.Management.Automation.RemoteException"


class MetadataException(RuntimeException):
    type_name = "System.Management.Automation.MetadataException"
    default_category = "MetadataError"


class ValidationMetadataException(MetadataException):
    type_name = "System.Management.Automation.ValidationMetadataException"


class ArgumentTransformationMetadataException(MetadataException):
    type_name = "System.Management.Automation.ArgumentTransformationMetadataException"


class SessionStateException(RuntimeException):
    type_name = "System.Management.Automation.SessionStateException"


class SessionStateUnauthorizedAccessException(SessionStateException):
    type_name = "System.Management.Automation.SessionStateUnauthorizedAccessException"


class ItemNotFoundException(SessionStateException):
    type_name = "System.Management.Automation.ItemNotFoundException"


class DriveNotFoundException(SessionStateException):
    type_name = "System.Management.Automation.DriveNotFoundException"


class ProviderNotFoundException(SessionStateException):
    type_name = "System.Management.Automation.ProviderNotFoundException"


class WriteErrorException(SystemException):
    type_name = "Microsoft.PowerShell.Commands.WriteErrorException"


class ServiceCommandException(SystemException):
    type_name = "Microsoft.PowerShell.Commands.ServiceCommandException"


class ProcessCommandException(SystemException):
    type_name = "Microsoft.PowerShell.Commands.ProcessCommandException"


class CimException(DotNetException):
    type_name = "Microsoft.Management.Infrastructure.CimException"


def _declare_tree(parent: type[DotNetException]) -> None:
    for python in parent.__subclasses__():
        _declare(python)
        _declare_tree(python)


_declare_tree(DotNetException)


class ErrorRecord:
    """System.Management.Automation.ErrorRecord. `id` is the FullyQualifiedErrorId, which the evaluator may extend."""

    extension: Any = None

    def __init__(
        self,
        exception: DotNetException,
        id: str = "",
        category: str = "NotSpecified",
        target: Value = None,
    ) -> None:
        self.exception = exception
        self.id = id
        self.category = category
        self.target = target
        self.activity = ""
        self.reason: str | None = None
        self.target_name: str | None = None
        self.target_type: str | None = None
        self.details: Value = None  # ErrorDetails: an ErrorDetails value or None
        self.invocation: Value = None  # InvocationInfo, set by the evaluator
        self.script_stack_trace: str | None = None

    @property
    def message(self) -> str:
        """What a reader sees: ErrorDetails.Message if there is one, else the exception's message."""
        return self.details.message if self.details is not None else self.exception.message

    def __str__(self) -> str:
        return self.message


class ErrorDetails:
    """System.Management.Automation.ErrorDetails."""

    extension: Any = None

    def __init__(self, message: str) -> None:
        self.message = message


def as_record(failure: DotNetException) -> ErrorRecord:
    """The record of any exception: its own, or a new one whose id is the exception's type, as PowerShell does."""
    if failure.record is not None:
        return failure.record
    made = getattr(failure, "error_record", None)
    if isinstance(made, ErrorRecord):
        return made
    failure.record = ErrorRecord(failure, failure.type_name, "OperationStopped", None)
    return failure.record
