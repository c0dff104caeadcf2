"""Write-* and Out-Null: everything that puts objects or messages into a stream."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine import common
from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import CORE, cmdlet
from winboot_lab.engine.errors import copy_record
from winboot_lab.engine.exceptions import DotNetException, ErrorDetails, ErrorRecord, WriteErrorException
from winboot_lab.engine.objects import HostMessage, InformationRecord
from winboot_lab.engine.values import enumerate_value

Value = Any


@cmdlet(
    "Write-Output",
    """
    InputObject: psobject mandatory position=0 value rest null none empty
    NoEnumerate: switch
    """,
)
def write_output(call: Call) -> None:
    """Objects to the output, collections taken apart."""
    value = call["InputObject"]
    if call.flag("NoEnumerate"):
        call.write(value)
        return
    call.write_each(value)


@cmdlet("Out-Null", "InputObject: psobject value", module=CORE)
def out_null(_call: Call) -> None:
    """Nothing."""


@cmdlet("Out-Default", "InputObject: psobject value\nTranscript: switch refused", module=CORE)
def out_default(call: Call) -> None:
    """What would reach the host goes to the output."""
    if call.has("InputObject"):
        call.write(call["InputObject"])


@cmdlet(
    "Write-Host",
    """
    Object: object position=0 value rest
    NoNewline: switch
    Separator: object
    ForegroundColor: System.ConsoleColor
    BackgroundColor: System.ConsoleColor
    """,
)
def write_host(call: Call) -> None:
    """Text for the host, which in 5.1 is an information record."""
    separator = call.text(call["Separator"]) if call.has("Separator") else " "
    text = _host_text(call, call["Object"], separator)
    message = HostMessage(text, newline=not call.flag("NoNewline"))
    record = InformationRecord(message, text, ["PSHOST"], "Write-Host")
    common.write_information(call.scope, record, call.common, call.stage.command.suffix)


def _host_text(call: Call, value: Value, separator: str) -> str:
    items = enumerate_value(value)
    if value is None:
        return ""
    if items is None:
        return call.text(value)
    return separator.join(_host_text(call, item, separator) for item in items)


@cmdlet("Write-Warning", "Message: string mandatory position=0 value alias=Msg empty")
def write_warning(call: Call) -> None:
    call.warn(call["Message"])


@cmdlet("Write-Verbose", "Message: string mandatory position=0 value alias=Msg empty")
def write_verbose(call: Call) -> None:
    call.verbose(call["Message"])


@cmdlet("Write-Debug", "Message: string mandatory position=0 value alias=Msg empty")
def write_debug(call: Call) -> None:
    common.write_debug(call.scope, call["Message"], call.common, call.stage.command.suffix)


@cmdlet(
    "Write-Information",
    """
    MessageData: object mandatory position=0 value alias=Msg,Message empty
    Tags: string[] position=1
    """,
)
def write_information(call: Call) -> None:
    data = call["MessageData"]
    tags = [call.text(tag) for tag in call.items("Tags")]
    record = InformationRecord(data, call.text(data), tags, "")
    common.write_information(call.scope, record, call.common, call.stage.command.suffix)


@cmdlet(
    "Write-Error",
    """
    Message: string mandatory position=0 value alias=Msg null empty set=NoException
    Message: string alias=Msg null empty set=WithException
    Exception: System.Exception mandatory set=WithException
    ErrorRecord: System.Management.Automation.ErrorRecord mandatory set=ErrorRecord
    Category: System.Management.Automation.ErrorCategory set=NoException,WithException
    ErrorId: string null empty set=NoException,WithException
    TargetObject: object null set=NoException,WithException
    """,
    default_set="NoException",
)
def write_error(call: Call) -> None:
    """A non-terminating error of the calling function."""
    record = _error_record(call)
    record.activity = "Write-Error"
    caller = call.scope.get("myinvocation")
    command = getattr(caller, "command", None)
    record.invocation = caller if command is not None else call.stage.invocation
    if command is not None and command.name and command.kind != "ExternalScript":
        record.id = f"{record.id},{command.name}"
    call.stage.line.failed = True
    common.write_error(call.scope, record, call.common.error_action, call.common)


def _error_record(call: Call) -> ErrorRecord:
    if call.has("ErrorRecord"):
        return copy_record(call["ErrorRecord"])
    message = call.text(call["Message"]) if call.has("Message") else None
    failure: DotNetException
    if call.has("Exception"):
        failure = call["Exception"]
    else:
        failure = WriteErrorException(message)
    error_id = call.text(call["ErrorId"]) if call.has("ErrorId") else failure.type_name
    category = str(call["Category"]) if call.has("Category") else "NotSpecified"
    record = ErrorRecord(failure, error_id, category, call["TargetObject"])
    if call.has("Exception") and message:
        record.details = ErrorDetails(message)
    return record
