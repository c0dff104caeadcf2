"""Values between the two sides, as JSON: on this side what the lab's engine holds, so its types work on them unchanged."""

from __future__ import annotations

import base64
import uuid
from decimal import Decimal
from typing import Any

from winboot_lab.engine.bridge import MachineObject
from winboot_lab.engine.convert import convert
from winboot_lab.engine.dotnet import DotNetType, enum_type, lookup, named
from winboot_lab.engine.exceptions import (
    DotNetException,
    ErrorDetails,
    ErrorRecord,
    WebException,
    Win32Exception,
    exception_class,
)
from winboot_lab.engine.moments import DateTime, TimeSpan
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types import entry, hcn, hns, layer, privilege
from winboot_lab.engine.types.text import UTF8, UTF8_BARE, Encoding, encoding_by_page
from winboot_lab.engine.values import (
    NOTHING,
    NUMBER_CLASSES,
    Array,
    ByteArray,
    Char,
    EnumValue,
    Hashtable,
    IPAddress,
    NoteProperty,
    PSCustomObject,
    ScriptBlock,
    SecureString,
    Structured,
    SwitchParameter,
    Uri,
    Version,
    _Mapping,
    enumerate_value,
    plain,
    type_of,
)
from winboot_lab.windows.door import Record

Value = Any
Json = Any

DECLARED = {kind.name: kind for kind in (hns.HNS, hcn.HCN, layer.LAYER, entry.ENTRY, privilege.PRIVILEGE)}
"""The types of the library's C#, which the lab knows without its being compiled."""


class Cabinet:
    """The objects of one run that live on this side; the other side holds their numbers."""

    def __init__(self) -> None:
        self._kept: dict[int, Value] = {}
        self._numbers: dict[int, int] = {}

    def number(self, value: Value) -> int:
        """The number of an object, assigned at the first call."""
        found = self._numbers.get(id(value))
        if found is None:
            found = self._numbers[id(value)] = len(self._kept) + 1
            self._kept[found] = value
        return found

    def __getitem__(self, number: int) -> Value:
        return self._kept[number]

    # -- to the engine

    def to_json(self, value: Value) -> Json:
        """A value as the wire carries it."""
        bare = plain(value)
        if bare is None or bare is NOTHING:
            return None
        if type(bare) in (bool, str):
            return bare
        if type(bare) is int:
            return bare
        return self._small(bare) or self._structure(bare)

    def _small(self, value: Value) -> Json:
        match value:
            case EnumValue():
                text = str(value)
                return {"e": value.dotnet_type.name, "v": str(value.number), "s": text}
            case DateTime():
                return {"dt": str(value.ticks), "k": value.kind}
            case TimeSpan():
                return {"ts": str(value.ticks)}
            case ByteArray() | bytes():
                return {"b": base64.b64encode(bytes(value)).decode()}
            case SwitchParameter():
                return value.present
            case SecureString():
                return {"ss": value.secret}
            case Encoding():
                return {"enc": value.code_page, "bom": bool(value.bom)}
            case DotNetType():
                return {"type": value.name}
            case uuid.UUID() | Version() | Uri() | IPAddress():
                return {"p": type_of(value).name, "v": str(value)}
            case DotNetException():
                return {"ex": failure_facts(value, self)}
        if type(value) in NUMBER_CLASSES or isinstance(value, float | Decimal):
            return {
                "t": type_of(value).name,
                "v": repr(float(value)) if isinstance(value, float) else str(int(value)),
            }
        if isinstance(value, Char):
            return {"t": "System.Char", "v": str(value)}
        return None

    def _structure(self, value: Value) -> Json:
        if isinstance(value, MachineObject):
            return {"m": value.type_name, "o": self._pairs(value), "hd": value.handle, "x": value.text}
        if isinstance(value, PSCustomObject):
            return {"o": self._pairs(value)}
        if isinstance(value, _Mapping):
            return {"h": [[self.to_json(key), self.to_json(item)] for key, item in value.items()]}
        if type(value) is Structured:
            return {"m": value.type_name, "o": self._pairs(value), "hd": None, "x": None}
        items = enumerate_value(value)
        if items is not None:
            element = type_of(value).element
            return {
                "a": [self.to_json(item) for item in items],
                "t": "System.Object" if element is None else element.name,
            }
        return {"i": str(self.number(value)), "t": type_of(value).name}

    def _pairs(self, value: Value) -> Json:
        return [[name, self.to_json(item)] for name, item in value.items()]

    # -- from the engine

    def from_json(self, value: Json) -> Value:
        """What came over the wire, as a value."""
        if not isinstance(value, dict):
            return value
        for tag, read in _READERS.items():
            if tag in value:
                return read(self, value)
        raise Refusal("value", str(sorted(value)))


def failure_facts(failure: DotNetException, cabinet: Cabinet | None = None) -> Json:
    """An exception, for the other side to make the real one; the answer that one of the web carries is kept in `cabinet`."""
    response = failure.response if isinstance(failure, WebException) and cabinet is not None else None
    return {
        "type": failure.type_name,
        "message": failure.message,
        "hresult": str(failure.hresult),
        "inner": None if failure.inner is None else failure_facts(failure.inner, cabinet),
        "response": None if response is None or cabinet is None else cabinet.to_json(response),
        "code": failure.code if isinstance(failure, Win32Exception) else None,
        "status": str(failure.status) if isinstance(failure, WebException) else None,
    }


# -- readers, by tag


def _enum(_cabinet: Cabinet, value: Json) -> Value:
    kind = lookup(value["e"])
    if kind is None or kind.kind != "enum":
        kind = enum_type(value["e"], {value["s"]: int(value["v"])})
    return EnumValue(kind, int(value["v"]))


def _machine_object(cabinet: Cabinet, value: Json) -> Value:
    made = MachineObject(Record(value["m"], {}, value["hd"], value["x"]))
    for name, item in value["o"]:
        made.properties[name.lower()] = NoteProperty(name, cabinet.from_json(item))
    return made


def _custom_object(cabinet: Cabinet, value: Json) -> Value:
    return PSCustomObject.of({name: cabinet.from_json(item) for name, item in value["o"]})


def _table(cabinet: Cabinet, value: Json) -> Value:
    made = Hashtable()
    for key, item in value["h"]:
        made.put(cabinet.from_json(key), cabinet.from_json(item))
    return made


def _list(cabinet: Cabinet, value: Json) -> Value:
    items = [cabinet.from_json(item) for item in value["a"]]
    element = lookup(value["t"])
    return Array(items) if element is None else Array(items, element)


def _number(_cabinet: Cabinet, value: Json) -> Value:
    return convert(value["v"], named(value["t"]))


def _encoding(_cabinet: Cabinet, value: Json) -> Value:
    if value["enc"] == 65001:
        return UTF8 if value["bom"] else UTF8_BARE
    return encoding_by_page(value["enc"])


def _type(_cabinet: Cabinet, value: Json) -> Value:
    return DECLARED.get(value["type"]) or named(value["type"])


def _text(_cabinet: Cabinet, value: Json) -> Value:
    if value["t"] == "System.Management.Automation.ScriptBlock":
        return ScriptBlock(value["s"])
    kind = lookup(value["t"])
    if kind is None:
        raise Refusal("type", value["t"], "handed to the lab")
    return convert(value["s"], kind)


def failure(cabinet: Cabinet, value: Json) -> DotNetException:
    """An exception of the engine."""
    if value is None:
        return DotNetException("")
    kind = exception_class(value["ex"]) or DotNetException
    made = kind.__new__(kind)
    inner = value.get("inner")
    DotNetException.__init__(
        made, value["message"], None if inner is None else failure(cabinet, inner), hresult=value["hresult"]
    )
    for name, usual in (("id", ""), ("category", "NotSpecified"), ("target", None), ("parameter", None)):
        if not hasattr(made, name):
            setattr(made, name, usual)
    return made


def record(cabinet: Cabinet, value: Json) -> ErrorRecord:
    """An error record of the engine."""
    made = ErrorRecord(failure(cabinet, value["exception"]), value["er"], value["category"])
    made.script_stack_trace = value["stack"]
    if value["details"] is not None:
        made.details = ErrorDetails(value["details"])
    return made


_READERS: dict[str, Any] = {
    "e": _enum,
    "m": _machine_object,
    "er": record,
    "ex": failure,
    "o": _custom_object,
    "i": lambda cabinet, value: cabinet[int(value["i"])],
    "b": lambda _cabinet, value: ByteArray(base64.b64decode(value["b"])),
    "dt": lambda _cabinet, value: DateTime(int(value["dt"]), value["k"]),
    "ts": lambda _cabinet, value: TimeSpan(int(value["ts"])),
    "h": _table,
    "a": _list,
    "p": lambda _cabinet, value: convert(value["v"], named(value["p"])),
    "enc": _encoding,
    "ss": lambda _cabinet, value: SecureString(value["ss"]),
    "type": _type,
    "s": _text,
    "t": _number,
}
