"""Objects of PowerShell's own that scripts meet: `$MyInvocation`, `$PSCmdlet`, variables and commands as objects, records."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.dotnet import OBJECT, close_generic, dotnet
from winboot_lab.engine.places import line_text, position_message
from winboot_lab.engine.values import (
    DICTIONARY,
    STRING,
    Collection,
    Hashtable,
    Instance,
    Structured,
    _Mapping,
    enum_value,
)
from winboot_lab.engine.variables import Variable
from winboot_lab.language.syntax import Extent

Value = Any
_SMA = "System.Management.Automation."


class BoundParameters(_Mapping):
    """$PSBoundParameters."""

    ignore_case = True


BOUND_PARAMETERS = dotnet(
    _SMA + "PSBoundParametersDictionary", BoundParameters, base=close_generic(DICTIONARY, (STRING, OBJECT))
)
BOUND_PARAMETERS.prop("Count", "int", len)
BOUND_PARAMETERS.method("ContainsKey(string key)")(lambda self, key: self.has(key))


class Invocation(Instance):
    """System.Management.Automation.InvocationInfo: which command, called how, and where."""

    def __init__(
        self,
        extent: Extent | None,
        command: Any = None,
        called: str = "",
        *,
        expects_input: bool = False,
        length: int = 1,
    ) -> None:
        self.extent = extent
        self.command = command
        self.called = called
        self.expects_input = expects_input
        self.length = length
        self.bound: BoundParameters = BoundParameters()

    @property
    def line_number(self) -> int:
        return 0 if self.extent is None else self.extent.line

    @property
    def column(self) -> int:
        return 0 if self.extent is None else self.extent.column

    @property
    def line(self) -> str:
        return "" if self.extent is None else line_text(self.extent)

    @property
    def position_message(self) -> str:
        return "" if self.extent is None else position_message(self.extent)


INVOCATION = dotnet(_SMA + "InvocationInfo", Invocation)
INVOCATION.prop("MyCommand", _SMA + "CommandInfo", lambda self: command_info(self.command))
INVOCATION.prop("ScriptLineNumber", "int", lambda self: self.line_number)
INVOCATION.prop("OffsetInLine", "int", lambda self: self.column)
INVOCATION.prop("Line", "string", lambda self: self.line)
INVOCATION.prop("PositionMessage", "string", lambda self: self.position_message)
INVOCATION.prop("ScriptName", "string", lambda self: "")


class ScriptCmdlet(Instance):
    """$PSCmdlet of an advanced function."""


PS_CMDLET = dotnet(_SMA + "PSCmdlet")
PS_SCRIPT_CMDLET = dotnet(_SMA + "PSScriptCmdlet", ScriptCmdlet, base=PS_CMDLET)


# -- commands as objects


def command_info(command: Any) -> Value:
    """What `Get-Command` shows of a command."""
    if command is None:
        return None
    kind = command.kind
    text = ""
    if kind in ("Function", "Script"):
        text = command.block().text if hasattr(command, "block") else ""
    elif kind == "Cmdlet":
        text = command.name
    elif kind in ("Application", "ExternalScript"):
        text = command.path
    properties: dict[str, Value] = {
        "Name": command.name,
        "CommandType": enum_value(_SMA + "CommandTypes", kind),
        "Source": command.path if kind == "Application" else getattr(command, "module", ""),
        "ModuleName": getattr(command, "module", ""),
    }
    if kind != "Cmdlet":
        # A cmdlet's Definition is its syntax in words, which the lab does not know.
        properties["Definition"] = text
    if kind in ("Function", "Script") and hasattr(command, "block"):
        properties["ScriptBlock"] = command.block()
    if kind in ("Application", "ExternalScript"):
        properties["Path"] = command.path
    info = CommandInfo(_COMMAND_TYPES[kind], properties)
    info.command = command
    return info


class CommandInfo(Structured):
    """A command as a value; `&` runs it."""

    command: Any = None

    def __str__(self) -> str:
        return str(self.get("Name"))


_COMMAND_TYPES = {
    "Script": _SMA + "ScriptInfo",
    "Function": _SMA + "FunctionInfo",
    "Cmdlet": _SMA + "CmdletInfo",
    "Application": _SMA + "ApplicationInfo",
    "ExternalScript": _SMA + "ExternalScriptInfo",
    "Alias": _SMA + "AliasInfo",
}


COMMAND_INFO = dotnet(_SMA + "CommandInfo")


PARAMETER_METADATA = dotnet(_SMA + "ParameterMetadata")


# -- variables as objects


class PSVariable(Instance):
    """System.Management.Automation.PSVariable: a handle on a variable."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable


PS_VARIABLE = dotnet(_SMA + "PSVariable", PSVariable, accelerators=["psvariable"])


# -- stream records


class _Message(Instance):
    def __init__(self, message: str) -> None:
        self.message = message

    def __str__(self) -> str:
        return self.message


class WarningRecord(_Message):
    """What Write-Warning writes."""


class VerboseRecord(_Message):
    """What Write-Verbose writes."""


class DebugRecord(_Message):
    """What Write-Debug writes."""


class InformationRecord(Instance):
    """What Write-Information and Write-Host write; `data` is the message object."""

    def __init__(self, data: Value, text: str, tags: list[str], source: str = "") -> None:
        self.data = data
        self.message = text
        self.tags = tags
        self.source = source

    def __str__(self) -> str:
        return self.message


class HostMessage(Instance):
    """What Write-Host puts into its information record."""

    def __init__(self, message: str, *, newline: bool) -> None:
        self.message = message
        self.newline = newline

    def __str__(self) -> str:
        return self.message


_INFORMATIONAL = dotnet(_SMA + "InformationalRecord")
_INFORMATIONAL.prop("Message", "string", lambda self: self.message)
_INFORMATIONAL.method("ToString()")(lambda self: self.message)
for _name, _class in (("Warning", WarningRecord), ("Verbose", VerboseRecord), ("Debug", DebugRecord)):
    dotnet(f"{_SMA}{_name}Record", _class, base=_INFORMATIONAL)
INFORMATION_RECORD = dotnet(_SMA + "InformationRecord", InformationRecord)
INFORMATION_RECORD.prop("MessageData", "object", lambda self: self.data)
INFORMATION_RECORD.method("ToString()")(lambda self: self.message)
HOST_MESSAGE = dotnet(_SMA + "HostInformationMessage", HostMessage)


__all__ = [
    "BoundParameters",
    "Collection",
    "CommandInfo",
    "DebugRecord",
    "Hashtable",
    "HostMessage",
    "InformationRecord",
    "Invocation",
    "PSVariable",
    "ScriptCmdlet",
    "VerboseRecord",
    "WarningRecord",
    "command_info",
]
