"""Across the machine's door: its plain data as PowerShell values, and values as its plain data.

A Record of the machine becomes a `MachineObject`: a value of a named type. Its properties are data; the machine itself
runs its methods.
"""

from __future__ import annotations

import datetime as py
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from winboot_lab.engine import moments
from winboot_lab.engine.convert import convert
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Runtime, array_of, enum_type, lookup
from winboot_lab.engine.exceptions import (
    DotNetException,
    SystemException,
    declare_exception,
    exception_class,
)
from winboot_lab.engine.moments import DateTime, TimeSpan
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    NOTHING,
    NUMBER_CLASSES,
    STRING,
    Array,
    Byte,
    ByteArray,
    EnumValue,
    Hashtable,
    Int16,
    Int64,
    IPAddress,
    NoteProperty,
    PSCustomObject,
    SByte,
    ScriptBlock,
    Single,
    Structured,
    SwitchParameter,
    UInt16,
    UInt32,
    UInt64,
    Uri,
    Version,
    _Mapping,
    enumerate_value,
    from_plain,
    plain,
)
from winboot_lab.windows.door import Record, Typed

Value = Any

_SCALARS: dict[str, Callable[[Any], Value]] = {
    "System.Byte": Byte,
    "System.SByte": SByte,
    "System.Int16": Int16,
    "System.UInt16": UInt16,
    "System.Int32": int,
    "System.UInt32": UInt32,
    "System.Int64": Int64,
    "System.UInt64": UInt64,
    "System.Single": Single,
    "System.Double": float,
    "System.String": str,
}

# Exceptions of the Windows modules that the machine models; the base decides which catch clause takes them.
declare_exception("Microsoft.PowerShell.Cmdletization.Cim.CimJobException", SystemException)
declare_exception("Microsoft.ActiveDirectory.Management.ADServerDownException", DotNetException)
declare_exception("System.Diagnostics.Eventing.Reader.EventLogException", DotNetException)
declare_exception(
    "System.Diagnostics.Eventing.Reader.EventLogNotFoundException",
    exception_class("System.Diagnostics.Eventing.Reader.EventLogException") or DotNetException,
)
declare_exception("System.ServiceProcess.TimeoutException", SystemException)
for _name, _base in (
    ("System.DllNotFoundException", SystemException),
    ("System.Threading.WaitHandleCannotBeOpenedException", DotNetException),
):
    if exception_class(_name) is None:
        declare_exception(_name, _base)

_ENUMS: dict[str, dict[str, int]] = {
    "System.ServiceProcess.ServiceControllerStatus": {
        "Stopped": 1,
        "StartPending": 2,
        "StopPending": 3,
        "Running": 4,
        "ContinuePending": 5,
        "PausePending": 6,
        "Paused": 7,
    },
    "System.ServiceProcess.ServiceStartMode": {
        "Boot": 0,
        "System": 1,
        "Automatic": 2,
        "Manual": 3,
        "Disabled": 4,
    },
    "System.Diagnostics.ProcessPriorityClass": {
        "Normal": 32,
        "Idle": 64,
        "High": 128,
        "RealTime": 256,
        "BelowNormal": 16384,
        "AboveNormal": 32768,
    },
}


class MachineObject(Structured):
    """An object the machine gave. `handle` is set where the machine answers its methods; `text` is its ToString()."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.type_name, {}, _types.get(record.type_name))
        self.handle = record.handle
        self.text = record.text
        self.fill(record.properties)

    def fill(self, properties: dict[str, Any]) -> None:
        """Take these properties over."""
        for name, value in properties.items():
            self.properties[name.lower()] = NoteProperty(name, to_value(value))

    def __str__(self) -> str:
        if self.text is None:
            raise Refusal("member", f"{self.type_name}.ToString()")
        return self.text

    def call(self, runtime: Runtime, member: str, arguments: list[Value]) -> Value:
        """Let the machine do a method; the properties are then as the machine says."""
        from winboot_lab.engine.door import failure_of

        given = [to_door(argument) for argument in arguments]
        result = runtime.machine.invoke(
            "object.call", {"object": to_door(self), "member": member, "arguments": given}
        )
        if result.errors:
            raise failure_of(result.errors[0])
        if result.refreshed is not None:
            self.fill(result.refreshed)
        return to_value(result.objects[0]) if result.objects else None


# -- from the machine


def to_value(value: Any) -> Value:
    """What the machine answers as a PowerShell value."""
    if isinstance(value, Record):
        return MachineObject(value)
    if isinstance(value, Typed):
        return _typed(value)
    if isinstance(value, py.datetime):
        return DateTime.of(value, moments.LOCAL if value.tzinfo is None else moments.UTC)
    if type(value) is list:
        return Array(to_value(item) for item in value)
    if type(value) is dict:
        return Hashtable.of({key: to_value(item) for key, item in value.items()})
    return from_plain(value)


def _typed(value: Typed) -> Value:
    make = _SCALARS.get(value.type_name)
    if make is not None:
        return make(value.value)
    if value.text is not None:
        assert isinstance(value.value, int)
        kind = enum_named(value.type_name)
        if value.text not in kind.constants and ", " not in value.text:
            kind.constants[value.text] = value.value
        return EnumValue(kind, value.value)
    kind_of = lookup(value.type_name)
    if kind_of is None:
        raise Refusal("type", value.type_name)
    return convert(value.value, kind_of)


def enum_named(name: str) -> DotNetType:
    """The enum type of that name. One the lab does not declare grows with the constants that are seen."""
    found = lookup(name)
    if found is None:
        found = enum_type(name, _ENUMS.get(name, {}))
        if name not in _ENUMS:
            _grown.add(name)
    return found


_grown: set[str] = set()
"""Enum types of which only the constants seen so far are known."""


# -- to the machine


def to_door(value: Value) -> Any:
    """A PowerShell value as plain data. What has no plain form is refused."""
    bare = plain(value)
    if bare is None or bare is NOTHING or type(bare) in (bool, str, float):
        return None if bare is NOTHING else bare
    if isinstance(bare, SwitchParameter):
        return bare.present
    if isinstance(bare, MachineObject):
        return Record(
            bare.type_name,
            {name: to_door(item) for name, item in bare.items()},
            bare.handle,
            bare.text,
        )
    if isinstance(bare, PSCustomObject):
        return Record("PSCustomObject", {name: to_door(item) for name, item in bare.items()})
    if isinstance(bare, _Mapping):
        return {str(key): to_door(item) for key, item in bare.items()}
    if isinstance(bare, ByteArray):
        return bytes(bare)
    items = enumerate_value(bare)
    if items is not None:
        return [to_door(item) for item in items]
    return _scalar(bare)


def _scalar(value: Value) -> Any:
    if type(value) in NUMBER_CLASSES:
        return float(value) if isinstance(value, (float, Decimal)) else int(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, EnumValue):
        return str(value)
    if isinstance(value, DateTime):
        moment = value.datetime()
        return moment if value.kind == moments.UTC else moment.replace(tzinfo=None)
    if isinstance(value, TimeSpan):
        return value.timedelta()
    if isinstance(value, (Uri, Version, IPAddress, uuid.UUID)):
        return str(value)
    if isinstance(value, ScriptBlock):
        return value.text
    raise Refusal("value", type(value).__name__, "given to a command of the machine")


# -- objects with methods


_types: dict[str, DotNetType] = {}


def _object_type(name: str, *methods: str) -> DotNetType:
    """The type of machine objects that have methods."""
    made = DotNetType(name, base=OBJECT)
    for signature in methods:
        member = signature.removeprefix("void ").partition("(")[0]

        def run(runtime: Runtime, self: MachineObject, *arguments: Value, _member: str = member) -> Value:
            return self.call(runtime, _member, list(arguments))

        made.method(signature, effect=True)(run)
    _types[name] = made
    return made


for _enum in _ENUMS:
    enum_named(_enum)

SERVICE_CONTROLLER = _object_type(
    "System.ServiceProcess.ServiceController",
    "void Start()",
    "void Start(string[] args)",
    "void Stop()",
    "void Refresh()",
    "void Close()",
    "void Dispose()",
    "void WaitForStatus(System.ServiceProcess.ServiceControllerStatus desiredStatus)",
    "void WaitForStatus(System.ServiceProcess.ServiceControllerStatus desiredStatus, System.TimeSpan timeout)",
)
PROCESS_OBJECT = _object_type(
    "System.Diagnostics.Process",
    "void Kill()",
    "void WaitForExit()",
    "bool WaitForExit(int milliseconds)",
    "void Refresh()",
    "void Close()",
    "void Dispose()",
)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of an enum parameter whose type the lab does not declare; other text is refused."""

    parameter: str
    words: tuple[str, ...]

    def check(self, value: Value, scope: Any) -> None:
        """Is each word one of them?"""
        items = enumerate_value(value)
        for item in [value] if items is None else items:
            if str(item).lower() not in {word.lower() for word in self.words}:
                raise Refusal("value", str(item), f"for the parameter {self.parameter}")


def parameter_spec(name: str, type_name: str, words: tuple[str, ...]) -> tuple[DotNetType, tuple[Any, ...]]:
    """The type and the validators of a machine command's parameter.

    A type the lab does not declare is an enum, bound as text, where words are given, else any object.
    """
    element = type_name.removesuffix("[]")
    is_list = element != type_name
    kind = _types.get(element) or (None if element in _grown else lookup(element))
    if kind is None and words:
        return array_of(STRING) if is_list else STRING, (Words(name, words),)
    if kind is None:
        kind = OBJECT
    checks: tuple[Any, ...] = ()
    if words and kind.kind != "enum":
        from winboot_lab.engine.validation import OneOf

        checks = (OneOf(words),)
    return array_of(kind) if is_list else kind, checks
