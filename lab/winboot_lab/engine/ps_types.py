"""Types of System.Management.Automation and its neighbours that parameters name: enums, and the context object."""

from __future__ import annotations

from winboot_lab.engine import values as _values  # declares System.Int32, below each enum
from winboot_lab.engine.dotnet import enum_type, lookup

_LOADED = (_values,)
_SMA = "System.Management.Automation."


def _enum(name: str, names: str, *, flags: bool = False, start: int = 0) -> None:
    if lookup(name) is not None:
        return
    constants: dict[str, int] = {}
    for number, word in enumerate(names.split()):
        key, cut, value = word.partition("=")
        constants[key] = int(value, 0) if cut else number + start
    enum_type(name, constants, flags=flags)


_enum(_SMA + "ActionPreference", "SilentlyContinue Stop Continue Inquire Ignore Suspend")
_enum(_SMA + "ConfirmImpact", "None Low Medium High")
_enum(
    _SMA + "ScopedItemOptions", "None=0 ReadOnly=1 Constant=2 Private=4 AllScope=8 Unspecified=16", flags=True
)
_enum(
    _SMA + "CommandTypes",
    "Alias=1 Function=2 Filter=4 Cmdlet=8 ExternalScript=16 Application=32 Script=64 Workflow=128 Configuration=256 "
    "All=511",
    flags=True,
)
_enum(
    _SMA + "ErrorCategory",
    "NotSpecified OpenError CloseError DeviceError DeadlockDetected InvalidArgument InvalidData InvalidOperation "
    "InvalidResult InvalidType MetadataError NotImplemented NotInstalled ObjectNotFound OperationStopped "
    "OperationTimeout SyntaxError ParserError PermissionDenied ResourceBusy ResourceExists ResourceUnavailable "
    "ReadError WriteError FromStdErr SecurityError ProtocolError ConnectionError AuthenticationError LimitsExceeded "
    "QuotaExceeded NotEnabled",
)
_enum(
    "System.ConsoleColor",
    "Black DarkBlue DarkGreen DarkCyan DarkRed DarkMagenta DarkYellow Gray DarkGray Blue Green Cyan Red Magenta Yellow "
    "White",
)
_enum(
    "Microsoft.PowerShell.Commands.FileSystemCmdletProviderEncoding",
    "Unknown String Unicode Byte BigEndianUnicode UTF8 UTF7 UTF32 Ascii Default Oem BigEndianUTF32",
)
_enum(
    _SMA + "PSMemberTypes",
    "AliasProperty=1 CodeProperty=2 Property=4 NoteProperty=8 ScriptProperty=16 Properties=31 PropertySet=32 Method=64 "
    "CodeMethod=128 ScriptMethod=256 Methods=448 ParameterizedProperty=512 MemberSet=1024 Event=2048 Dynamic=4096 "
    "All=8191",
    flags=True,
)
