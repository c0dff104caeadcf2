"""The ItemProperty cmdlets: values of registry keys, and the facts of files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.cmdlets.paths import PATH_OR_LITERAL
from winboot_lab.engine.commands import MANAGEMENT, cmdlet
from winboot_lab.engine.convert import convert, to_string
from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.exceptions import (
    ArgumentException,
    DotNetException,
    IOException,
    PSArgumentException,
)
from winboot_lab.engine.items import note_values
from winboot_lab.engine.locations import FILES, REGISTRY, Place
from winboot_lab.engine.members import check_absence, find_property, properties_of, set_member
from winboot_lab.engine.providers import (
    chosen_by_name,
    not_supported,
    provider_of,
    resolve,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.registry import data_for, kind_for, store, value_of
from winboot_lab.engine.values import (
    BYTE_ARRAY,
    INT32,
    INT64,
    STRING_ARRAY,
    UINT32,
    UINT64,
    EnumValue,
    Int64,
    PSCustomObject,
    UInt32,
    UInt64,
    plain,
    type_of,
)
from winboot_lab.engine.wildcards import has_wildcards, like

Value = Any

REST = """
    Filter: string refused
    Include: string[]
    Exclude: string[]
    Credential: pscredential refused
    UseTransaction: switch refused alias=usetx
"""


def places(call: Call) -> Iterator[Place]:
    """The existing places of a call, without a trailing separator."""
    for place in resolve(call):
        if chosen_by_name(call, place.leaf):
            bare = place.path.rstrip("\\") if not place.path.endswith(":\\") else place.path
            yield replace(place, path=bare)


def only_registry(call: Call, place: Place) -> None:
    """The file system has no properties to make or remove."""
    if place.provider != REGISTRY:
        not_supported(call)


# -- values of a key


def records(call: Call, place: Place) -> list[Any]:
    """The machine's records of a key's values."""
    return ask(call.scope, "registry.values", key=place.path)


def inner_name(name: str) -> str:
    """The registry's name of a property: the default value has none."""
    return "" if name.lower() == "(default)" else name


def outer_name(record: Any) -> str:
    return str(record["name"]) or "(default)"


def shown_value(record: Any) -> Value:
    """A value as the provider gives it: high numbers are unsigned."""
    value = value_of(record)
    if type(value) is int and value < 0 and record["kind"] == "DWord":
        return UInt32(value + 2**32)
    if type(value) is Int64 and value < 0 and record["kind"] == "QWord":
        return UInt64(value + 2**64)
    return value


def matching(call: Call, place: Place, names: list[str]) -> list[Any]:
    """The values that names or patterns mean; a plain name without a value is reported."""
    known = records(call, place)
    found: list[Any] = []
    for name in names:
        if has_wildcards(name) and not call.has("LiteralPath"):
            hits = [record for record in known if like(outer_name(record), name)]
        else:
            hits = [record for record in known if outer_name(record).lower() == name.lower()]
            if not hits:
                no_property(call, place, name)
        found.extend(record for record in hits if record not in found)
    return found


def no_property(call: Call, place: Place, name: str) -> None:
    """Report a value that is not there."""
    call.error(
        PSArgumentException(f"Property {name} does not exist at path {place.path}."),
        "System.Management.Automation.PSArgumentException",
        "InvalidArgument",
        name,
    )


def noted_object(call: Call, place: Place, properties: list[tuple[str, Value]]) -> PSCustomObject:
    """A custom object with properties and where they come from."""
    made = PSCustomObject()
    for name, value in [*properties, *note_values(place, call.session.locations)]:
        made.put(name, value)
    return made


# -- Get-ItemProperty, Get-ItemPropertyValue


@cmdlet(
    "Get-ItemProperty",
    PATH_OR_LITERAL + "Name: string[] position=1 alias=PSProperty\n" + REST,
    module=MANAGEMENT,
    default_set="Path",
)
def get_item_property(call: Call) -> None:
    """The properties of each item as an object."""
    names = call.items("Name")
    for place in places(call):
        if place.provider == REGISTRY:
            found = matching(call, place, names) if names else records(call, place)
            if found:
                call.write(
                    noted_object(call, place, [(outer_name(record), shown_value(record)) for record in found])
                )
        elif place.provider == FILES:
            _file_properties(call, place, names)
        else:
            not_supported(call)


def _file_properties(call: Call, place: Place, names: list[str]) -> None:
    item = provider_of(call.scope, place).item(place)
    if not names:
        call.write(item)
        return
    found = [(name, value) for name in names for value in _file_property(call, item, name)]
    if found:
        call.write(noted_object(call, place, found))


def _file_property(call: Call, item: Value, name: str) -> Iterator[Value]:
    if has_wildcards(name):
        call.refuse("-Name with a wildcard, of a file")
    if name.lower() in {known.lower() for known in properties_of(item)}:
        found = find_property(item, name, call.scope)
        if found is not None:
            yield found[0]
            return
    check_absence(item, name)
    call.error(
        IOException(f"The property {name} does not exist or was not found."),
        "GetValueError",
        "ReadError",
        name,
    )


# -- New-ItemProperty, Set-ItemProperty


KINDS = "String, ExpandString, Binary, DWord, MultiString, QWord, Unknown"


@cmdlet(
    "New-ItemProperty",
    """
    Path: string[] mandatory position=0 set=Path
    LiteralPath: string[] mandatory name alias=PSPath set=LiteralPath
    Name: string mandatory position=1 name alias=PSProperty
    PropertyType: string name alias=Type
    Value: object name
    Force: switch
    """
    + REST,
    module=MANAGEMENT,
    default_set="Path",
    should_process=True,
)
def new_item_property(call: Call) -> None:
    """Make a value; one that is there stays unless -Force."""
    for place in places(call):
        only_registry(call, place)
        kind = _given_kind(call)
        if kind is None:
            continue
        name = inner_name(call["Name"])
        there = ask_one(call.scope, "registry.get", key=place.path, name=name)
        if there is not None and not call.flag("Force"):
            call.error(
                IOException("The property already exists."),
                "System.IO.IOException",
                "ResourceExists",
                place.path,
            )
            continue
        if call.should_process() and _write(call, place, name, call["Value"], kind):
            _show(call, place, name)


def _given_kind(call: Call) -> str | None:
    """The kind -PropertyType names; '' when it was not given, None after a complaint."""
    wanted = call["PropertyType"]
    if not wanted:
        return ""
    for kind in KINDS.split(", "):
        if kind.lower() == wanted.lower():
            return kind if kind != "Unknown" else ""
    call.error(
        ArgumentException(
            f'Could not bind parameter \'Type\'. Could not convert "{wanted}" to "Microsoft.Win32.RegistryValueKind". '
            f'The possible enumeration values are "{KINDS}".'
        ),
        "System.ArgumentException",
        "InvalidArgument",
    )
    return None


def _write(call: Call, place: Place, name: str, value: Value, kind: str) -> bool:
    """Store a value as a kind, or as the kind that fits when none is given."""
    try:
        word = kind or _fitting(value)
        data = provider_data(value, word) if kind or word != "String" else data_for(value, word)
        store(call.scope, place.path, name, word, data)
    except ArgumentException as failure:
        call.error(failure, "System.ArgumentException", "NotSpecified")
        return False
    except DotNetException as failure:
        denied = failure.type_name in (
            "System.UnauthorizedAccessException",
            "System.Security.SecurityException",
        )
        if not denied:
            raise Refusal(
                "value", f"{call.name} -Value {to_string(plain(value))}", failure.message
            ) from failure
        call.error(failure, failure.type_name, "PermissionDenied", place.path)
        return False
    return True


def _fitting(value: Value) -> str:
    if plain(value) is None:
        return "String"
    return "QWord" if type(plain(value)) is Int64 else kind_for(value)


def provider_data(value: Value, kind: str) -> Any:
    """A value as plain data of a kind, by PowerShell's own conversions; $null becomes the kind's nothing."""
    bare = plain(value)
    if kind in ("String", "ExpandString"):
        return to_string(bare)
    if kind == "MultiString":
        return [] if bare is None else [str(item) for item in convert(bare, STRING_ARRAY)]
    if kind in ("Binary", "None"):
        return b"" if bare is None else bytes(convert(bare, BYTE_ARRAY))
    signed, unsigned = (INT32, UINT32) if kind == "DWord" else (INT64, UINT64)
    if bare is None:
        return 0
    try:
        return int(convert(bare, signed))
    except DotNetException:
        return int(convert(bare, unsigned))


def _show(call: Call, place: Place, name: str) -> None:
    record = ask_one(call.scope, "registry.get", key=place.path, name=name)
    call.write(noted_object(call, place, [(call.get("Name") or "(default)", shown_value(record))]))


@cmdlet(
    "Set-ItemProperty",
    """
    Path: string[] mandatory position=0 name set=propertyValuePathSet
    Path: string[] mandatory position=0 name set=propertyPSObjectPathSet
    LiteralPath: string[] mandatory name alias=PSPath set=propertyValueLiteralPathSet,propertyPSObjectLiteralPathSet
    Name: string mandatory position=1 name alias=PSProperty set=propertyValuePathSet,propertyValueLiteralPathSet
    Value: object mandatory position=2 name null empty none set=propertyValuePathSet,propertyValueLiteralPathSet
    InputObject: psobject mandatory value name set=propertyPSObjectPathSet,propertyPSObjectLiteralPathSet
    PassThru: switch
    Force: switch
    Type: Microsoft.Win32.RegistryValueKind dynamic
    """
    + REST,
    module=MANAGEMENT,
    default_set="propertyValuePathSet",
    should_process=True,
)
def set_item_property(call: Call) -> None:
    """Set a property; a registry value is made when it is missing and keeps its kind when the new data fits it."""
    if call.has("InputObject"):
        call.refuse("-InputObject")
    for place in places(call):
        if not call.should_process():
            continue
        if place.provider == REGISTRY:
            _set_registry(call, place)
        elif place.provider == FILES:
            _set_file(call, place)
        else:
            not_supported(call)


def _set_registry(call: Call, place: Place) -> None:
    name, value = inner_name(call["Name"]), call["Value"]
    kind: EnumValue | None = call["Type"]
    if kind is not None and str(kind) != "Unknown":
        done = _write(call, place, name, value, str(kind))
    else:
        done = _keep_kind(call, place, name, value) or _write(call, place, name, value, "")
    if done and call.flag("PassThru"):
        _show(call, place, name)


def _keep_kind(call: Call, place: Place, name: str, value: Value) -> bool:
    """Store the value in the kind the old one has, if it converts."""
    there = ask_one(call.scope, "registry.get", key=place.path, name=name)
    if there is None:
        return False
    try:
        data = provider_data(value, str(there["kind"]))
    except DotNetException:
        return False
    try:
        store(call.scope, place.path, name, str(there["kind"]), data)
    except ArgumentException:
        return False
    return True


def _set_file(call: Call, place: Place) -> None:
    if call.has("Type"):
        call.refuse("-Type, of a file")
    item = provider_of(call.scope, place).item(place)
    name, value = call["Name"], call["Value"]
    if name.lower() not in {known.lower() for known in properties_of(item)}:
        call.error(
            IOException(
                f"The property {type_of(value).short_name} {name}={call.text(value)} does not exist or was not found."
            ),
            "SetPropertyError",
            "ReadError",
            name,
        )
        return
    set_member(item, name, value, call.scope)
    if call.flag("PassThru"):
        found = find_property(item, name, call.scope)
        call.write(noted_object(call, place, [(name, None if found is None else found[0])]))
