"""Values and records as CLIXML, in the form of Windows PowerShell 5.1.

Records are written from templates and not by a library. Clients read their fields in an order of their own, so a
shared type name (TNRef) may only point backwards in every order. Windows' layout, kept here, has that property.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from winboot_lab.wsman.executor import ErrorRecord, Information, Position, Progress

_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)
_ESCAPED: Final = re.compile(
    "_(?=[xX][0-9A-Fa-f]{4}_)|[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]|[\U00010000-\U0010ffff]"
)
_STRING_OBJECT: Final = (
    "System.Collections.Generic.Dictionary`2[[System.String, mscorlib, Version=4.0.0.0, Culture=neutral,"
    " PublicKeyToken=b77a5c561934e089],[System.Object, mscorlib, Version=4.0.0.0, Culture=neutral,"
    " PublicKeyToken=b77a5c561934e089]]"
)
_OBJECT_LIST: Final = (
    "System.Collections.Generic.List`1[[System.Object, mscorlib, Version=4.0.0.0, Culture=neutral,"
    " PublicKeyToken=b77a5c561934e089]]"
)


def text(value: str) -> str:
    """A string as the content of an element: control and astral characters as _xHHHH_, markup escaped."""
    return _markup(_ESCAPED.sub(_escape, value))


def _escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"_x{units[i]:02X}{units[i + 1]:02X}_" for i in range(0, len(units), 2))


def _markup(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Writer:
    """Writes one message; numbers objects and type lists as they come."""

    def __init__(self) -> None:
        self._objects = 0
        self._types: dict[tuple[str, ...], int] = {}

    def value(self, value: object, name: str | None = None) -> str:
        """A plain value as an element. Raises TypeError for what has no plain form."""
        key = f' N="{name}"' if name is not None else ""
        match value:
            case None:
                return f"<Nil{key} />"
            case bool():
                return f"<B{key}>{str(value).lower()}</B>"
            case int():
                return f"<{_integer_tag(value)}{key}>{int(value)}</{_integer_tag(value)}>"
            case float():
                return f"<Db{key}>{_double(value)}</Db>"
            case str():
                return f"<S{key}>{text(value)}</S>"
            case bytes():
                return f"<BA{key}>{base64.b64encode(value).decode()}</BA>"
            case Mapping():
                return self._dictionary(value, name)
            case Sequence():
                return self._list(value, name)
            case _:
                raise TypeError(f"{type(value).__name__} has no form on the wire")

    def whole(self, types: Sequence[str], inside: str, name: str | None = None) -> str:
        """A whole Obj element, for content that holds no object itself."""
        start, end = self.open(types, name)
        return start + inside + end

    def open(self, types: Sequence[str], name: str | None = None) -> tuple[str, str]:
        """Start and end of an Obj element, for content that holds objects itself."""
        key = f'N="{name}" ' if name is not None else ""
        start = f'<Obj {key}RefId="{self._objects}">'
        self._objects += 1
        known = tuple(types)
        if known in self._types:
            start += f'<TNRef RefId="{self._types[known]}" />'
        elif known:
            number = self._types[known] = len(self._types)
            start += f'<TN RefId="{number}">{"".join(f"<T>{_markup(each)}</T>" for each in known)}</TN>'
        return start, "</Obj>"

    def enum(self, type_name: str, label: str, number: int, name: str) -> str:
        """An enum value, as Windows writes it: its text and its number."""
        inside = f"<ToString>{label}</ToString><I32>{number}</I32>"
        return self.whole((type_name, "System.Enum", "System.ValueType", "System.Object"), inside, name)

    def _dictionary(self, value: Mapping[object, object], name: str | None) -> str:
        start, end = self.open(("System.Collections.Hashtable", "System.Object"), name)
        entries = (f"<En>{self.value(k, 'Key')}{self.value(v, 'Value')}</En>" for k, v in value.items())
        return f"{start}<DCT>{''.join(entries)}</DCT>{end}"

    def _list(self, value: Iterable[object], name: str | None) -> str:
        start, end = self.open(("System.Object[]", "System.Array", "System.Object"), name)
        return f"{start}<LST>{''.join(self.value(each) for each in value)}</LST>{end}"


def _integer_tag(value: int) -> str:
    if value in _INT32:
        return "I32"
    if value in _INT64:
        return "I64"
    raise TypeError(f"{value} does not fit into 64 bits")


def _double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    return repr(value)


def output(value: object) -> str:
    """One object of the output stream."""
    return Writer().value(value)


def session_capability() -> str:
    """What a server can: protocol 2.3 (PowerShell 5.1)."""
    return (
        '<Obj RefId="0"><MS><Version N="protocolversion">2.3</Version><Version N="PSVersion">2.0</Version>'
        '<Version N="SerializationVersion">1.1.0.1</Version></MS></Obj>'
    )


def application_private_data(ps_version: str) -> str:
    """The server's PSVersionTable."""
    writer = Writer()
    primitive = (
        "System.Management.Automation.PSPrimitiveDictionary",
        "System.Collections.Hashtable",
        "System.Object",
    )
    start, end = writer.open(())
    outer, outer_end = writer.open(primitive, "ApplicationPrivateData")
    table, table_end = writer.open(primitive, "Value")
    versions = ["1.0", "2.0", "3.0", "4.0", "5.0", ps_version]
    compatible = writer.whole(
        ("System.Version[]", "System.Array", "System.Object"),
        f"<LST>{''.join(f'<Version>{each}</Version>' for each in versions)}</LST>",
        "Value",
    )

    def entry(key: str, value: str) -> str:
        return f'<En><S N="Key">{key}</S>{value}</En>'

    def version(key: str, value: str) -> str:
        return entry(key, f'<Version N="Value">{value}</Version>')

    build = ps_version.removeprefix("5.1.")
    rows = (
        version("PSVersion", ps_version),
        entry("PSEdition", '<S N="Value">Desktop</S>'),
        entry("PSCompatibleVersions", compatible),
        version("CLRVersion", "4.0.30319.42000"),
        version("BuildVersion", f"10.0.{build}"),
        version("WSManStackVersion", "3.0"),
        version("PSRemotingProtocolVersion", "2.3"),
        version("SerializationVersion", "1.1.0.1"),
    )
    inner = entry("PSVersionTable", f"{table}<DCT>{''.join(rows)}</DCT>{table_end}")
    return f"{start}<MS>{outer}<DCT>{inner}</DCT>{outer_end}</MS>{end}"


def runspacepool_state(state: int) -> str:
    """The state of a pool: 2 is Opened."""
    return f'<Obj RefId="0"><MS><I32 N="RunspaceState">{state}</I32></MS></Obj>'


def runspacepool_init_data(least: int, most: int) -> str:
    """How many runspaces a reconnected pool has."""
    return (
        f'<Obj RefId="0"><MS><I32 N="MinRunspaces">{least}</I32><I32 N="MaxRunspaces">{most}</I32></MS></Obj>'
    )


def runspace_availability(call_id: int, answer: bool | int) -> str:
    """The answer to a question about the number of runspaces."""
    value = (
        Writer().value(answer, "SetMinMaxRunspacesResponse")
        if isinstance(answer, bool)
        else (f'<I64 N="SetMinMaxRunspacesResponse">{answer}</I64>')
    )
    return f'<Obj RefId="0"><MS>{value}<I64 N="ci">{call_id}</I64></MS></Obj>'


def encrypted_session_key(key: str) -> str:
    """The session key for SecureStrings, encrypted with the client's public key."""
    return f'<Obj RefId="0"><MS><S N="EncryptedSessionKey">{key}</S></MS></Obj>'


def pipeline_state(state: int, error: ErrorRecord | None = None, script: str = "") -> str:
    """How a pipeline ended: 3 Stopped, 4 Completed, 5 Failed."""
    writer = Writer()
    start, end = writer.open(())
    inside = f'<I32 N="PipelineState">{state}</I32>'
    if error is not None:
        inside += _error(writer, error, script, "ExceptionAsErrorRecord", from_stream=False)
    return f"{start}<MS>{inside}</MS>{end}"


def error_record(error: ErrorRecord, script: str = "") -> str:
    """One record of the error stream."""
    return _error(Writer(), error, script, None, from_stream=True)


def _error(writer: Writer, error: ErrorRecord, script: str, name: str | None, *, from_stream: bool) -> str:
    start, end = writer.open(("System.Management.Automation.ErrorRecord", "System.Object"), name)
    parts = [f"<ToString>{text(error.details or error.message)}</ToString><MS>"]
    if from_stream:
        parts.append('<B N="writeErrorStream">true</B>')
    parts.append(_exception(writer, error))
    parts.append(f'<Nil N="TargetObject" /><S N="FullyQualifiedErrorId">{text(error.error_id)}</S>')
    parts.append(_invocation_object(writer, error.position, script))
    where = f"({error.target_name}:{error.target_type})" if error.target_name or error.target_type else "(:)"
    parts.append(
        f'<I32 N="ErrorCategory_Category">{error.category}</I32>'
        f'<S N="ErrorCategory_Activity">{text(error.activity)}</S>'
        f'<S N="ErrorCategory_Reason">{text(error.reason)}</S>'
        f'<S N="ErrorCategory_TargetName">{text(error.target_name)}</S>'
        f'<S N="ErrorCategory_TargetType">{text(error.target_type)}</S>'
        f'<S N="ErrorCategory_Message">'
        f"{text(f'{error.category_name}: {where} [{error.activity}], {error.reason}')}</S>"
    )
    if error.details is not None:
        parts.append(f'<S N="ErrorDetails_Message">{text(error.details)}</S>')
    parts.append('<B N="SerializeExtendedInfo">false</B>')
    if error.stack:
        parts.append(f'<S N="ErrorDetails_ScriptStackTrace">{text(error.stack)}</S>')
    if from_stream:
        parts.append('<Nil N="PSMessageDetails" />')
    return f"{start}{''.join(parts)}</MS>{end}"


def _exception(writer: Writer, error: ErrorRecord) -> str:
    start, end = writer.open(error.exception, "Exception")
    data = writer.whole(("System.Collections.ListDictionaryInternal", "System.Object"), "<DCT />", "Data")
    return (
        f"{start}<ToString>{text(f'{error.exception[0]}: {error.message}')}</ToString><Props>"
        f'<S N="Message">{text(error.message)}</S>{data}<Nil N="InnerException" /><Nil N="TargetSite" />'
        '<Nil N="StackTrace" /><Nil N="HelpLink" /><Nil N="Source" />'
        f'<I32 N="HResult">{error.hresult}</I32></Props>{end}'
    )


def _invocation_object(writer: Writer, position: Position, script: str) -> str:
    start, end = writer.open(
        ("System.Management.Automation.InvocationInfo", "System.Object"), "InvocationInfo"
    )
    bound = writer.whole((_STRING_OBJECT, "System.Object"), "<DCT />", "BoundParameters")
    unbound = writer.whole((_OBJECT_LIST, "System.Object"), "<LST />", "UnboundArguments")
    return (
        f"{start}<ToString>System.Management.Automation.InvocationInfo</ToString><Props>"
        f'<S N="MyCommand">{text(script)}</S>{bound}{unbound}'
        f'<I32 N="ScriptLineNumber">{position.line}</I32><I32 N="OffsetInLine">{position.column}</I32>'
        f'<I64 N="HistoryId">1</I64><S N="ScriptName"></S><S N="Line">{text(position.text)}</S>'
        f'<S N="PositionMessage">{text(position.message)}</S><S N="PSScriptRoot"></S>'
        '<Nil N="PSCommandPath" />'
        '<S N="InvocationName"></S><I32 N="PipelineLength">0</I32><I32 N="PipelinePosition">0</I32>'
        '<B N="ExpectingInput">false</B><S N="CommandOrigin">Internal</S><Nil N="DisplayScriptPosition" />'
        f"</Props>{end}"
    )


def informational_record(kind: str, message: str, script: str = "", *, place: bool = True) -> str:
    """One record of the `Warning`, `Verbose` or `Debug` stream; with `place`, where it was written, and the script with it.

    PowerShell's engine/hostifaces/InformationalRecord.cs, ToPSObjectForRemoting: without it, one property says so.
    """
    writer = Writer()
    start, end = writer.open(
        (
            f"System.Management.Automation.{kind}Record",
            "System.Management.Automation.InformationalRecord",
            "System.Object",
        )
    )
    said = (
        f"{start}<ToString>{text(message)}</ToString><MS>"
        f'<S N="InformationalRecord_Message">{text(message)}</S>'
        f'<B N="InformationalRecord_SerializeInvocationInfo">{str(place).lower()}</B>'
    )
    if not place:
        return f"{said}</MS>{end}"
    inside = _invocation_fields(writer, script)
    iteration = writer.whole(
        (
            "System.Collections.ObjectModel.ReadOnlyCollection`1[[System.Int32, mscorlib, Version=4.0.0.0,"
            " Culture=neutral, PublicKeyToken=b77a5c561934e089]]",
            "System.Object",
        ),
        "<LST><I32>0</I32><I32>0</I32></LST>",
        "InformationalRecord_PipelineIterationInfo",
    )
    return f"{said}{inside}{iteration}</MS>{end}"


def _invocation_fields(writer: Writer, script: str) -> str:
    bound = writer.whole(
        ("System.Management.Automation.PSBoundParametersDictionary", _STRING_OBJECT, "System.Object"),
        "<DCT />",
        "InvocationInfo_BoundParameters",
    )
    origin = writer.enum(
        "System.Management.Automation.CommandOrigin", "Runspace", 0, "InvocationInfo_CommandOrigin"
    )
    iteration = writer.whole(
        ("System.Int32[]", "System.Array", "System.Object"),
        "<LST><I32>0</I32><I32>0</I32></LST>",
        "InvocationInfo_PipelineIterationInfo",
    )
    unbound = writer.whole((_OBJECT_LIST, "System.Object"), "<LST />", "InvocationInfo_UnboundArguments")
    kind = writer.enum("System.Management.Automation.CommandTypes", "Script", 64, "CommandInfo_CommandType")
    visibility = writer.enum(
        "System.Management.Automation.SessionStateEntryVisibility", "Public", 0, "CommandInfo_Visibility"
    )
    return (
        f'{bound}{origin}<B N="InvocationInfo_ExpectingInput">false</B>'
        '<S N="InvocationInfo_InvocationName"></S><S N="InvocationInfo_Line"></S>'
        '<I32 N="InvocationInfo_OffsetInLine">0</I32>'
        f'<I64 N="InvocationInfo_HistoryId">1</I64>{iteration}<I32 N="InvocationInfo_PipelineLength">1</I32>'
        '<I32 N="InvocationInfo_PipelinePosition">1</I32><S N="InvocationInfo_PSScriptRoot"></S>'
        '<Nil N="InvocationInfo_PSCommandPath" /><S N="InvocationInfo_PositionMessage"></S>'
        f'<I32 N="InvocationInfo_ScriptLineNumber">0</I32><S N="InvocationInfo_ScriptName"></S>{unbound}'
        f'<B N="SerializeExtent">false</B>{kind}<S N="CommandInfo_Definition">{text(script)}</S>'
        f'<S N="CommandInfo_Name"></S>{visibility}'
    )


def information_record(record: Information, computer: str, user: str, when: str) -> str:
    """One record of the information stream; `when` is an xs:dateTime."""
    writer = Writer()
    start, end = writer.open(())
    tags = writer.whole(
        (_OBJECT_LIST.replace("System.Object", "System.String", 1), "System.Object"),
        f"<LST>{''.join(f'<S>{text(tag)}</S>' for tag in record.tags)}</LST>",
        "Tags",
    )
    return (
        f'{start}<MS><S N="MessageData">{text(record.message)}</S><S N="Source">{text(record.source)}</S>'
        f'<DT N="TimeGenerated">{when}</DT>{tags}<S N="User">{text(user)}</S>'
        f'<S N="Computer">{text(computer)}</S><U32 N="ProcessId">4242</U32>'
        f'<U32 N="NativeThreadId">4243</U32><U32 N="ManagedThreadId">5</U32></MS>{end}'
    )


def progress_record(record: Progress) -> str:
    """One progress record."""
    writer = Writer()
    start, end = writer.open(())
    label, number = ("Completed", 1) if record.completed else ("Processing", 0)
    kind = writer.enum("System.Management.Automation.ProgressRecordType", label, number, "Type")
    return (
        f'{start}<MS><S N="Activity">{text(record.activity)}</S>'
        f'<I32 N="ActivityId">{record.activity_id}</I32>'
        f'<S N="StatusDescription">{text(record.status)}</S><Nil N="CurrentOperation" />'
        f'<I32 N="ParentActivityId">{record.parent_id}</I32>'
        f'<I32 N="PercentComplete">{record.percent}</I32>{kind}'
        f'<I32 N="SecondsRemaining">-1</I32></MS>{end}'
    )
