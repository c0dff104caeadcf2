"""New-Object, Add-Member, Get-Member, Invoke-Command, New-Guid, Get-Random, Add-Type."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import CORE, all_cmdlets, cmdlet
from winboot_lab.engine.convert import convert, try_convert
from winboot_lab.engine.dotnet import DotNetType, named
from winboot_lab.engine.exceptions import (
    DotNetException,
    InvalidOperationException,
    MethodException,
    MethodInvocationException,
    PSArgumentException,
    RuntimeException,
)
from winboot_lab.engine.invoke import BlockStage, code_of, positional
from winboot_lab.engine.members import get_member, invoke_member, new_object, set_member
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.stages import Line
from winboot_lab.engine.typenames import find_type
from winboot_lab.engine.values import (
    INT32,
    PS_CUSTOM,
    PS_OBJECT,
    AliasProperty,
    NoteProperty,
    PropertySet,
    PSCustomObject,
    ScriptBlock,
    ScriptMethod,
    ScriptProperty,
    Structured,
    _Mapping,
    decorate,
    enum_value,
    enumerate_value,
    extension_of,
    plain,
    type_names_of,
    type_of,
)
from winboot_lab.engine.wildcards import like

Value = Any
_SMA = "System.Management.Automation."


# -- New-Object


@cmdlet(
    "New-Object",
    """
    TypeName: string mandatory position=0 set=Net
    ComObject: string mandatory position=0 refused set=Com
    ArgumentList: object[] position=1 alias=Args set=Net
    Strict: switch refused set=Com
    Property: System.Collections.IDictionary
    """,
    default_set="Net",
)
def new_object_command(call: Call) -> None:
    """An object of a type; -Property sets properties afterwards."""
    kind = _type(call, call["TypeName"])
    if kind in (PS_OBJECT, PS_CUSTOM) or kind.name == _SMA + "PSCustomObject":
        made: Value = PSCustomObject()
    else:
        made = _construct(call, kind)
    if call.has("Property") and not _set_properties(call, made, call["Property"]):
        return
    call.write(made)


def _type(call: Call, name: str) -> DotNetType:
    text = name.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    own = call.session.types.get(text.lower())
    if own is not None:
        return own
    try:
        return find_type(text)
    except RuntimeException:
        call.fail(
            PSArgumentException(
                f"Cannot find type [{name}]: verify that the assembly containing this type is loaded."
            ),
            "TypeNotFound",
            "InvalidType",
        )


def _construct(call: Call, kind: DotNetType) -> Value:
    arguments = [plain(item) for item in call.items("ArgumentList")]
    try:
        return new_object(kind, arguments, call.scope, name=kind.short_name)
    except (MethodException, MethodInvocationException) as failure:
        if not arguments and not isinstance(failure, MethodInvocationException):
            call.fail(
                PSArgumentException(
                    f"A constructor was not found. Cannot find an appropriate constructor for type {kind.name}."
                ),
                "CannotFindAppropriateCtor",
                "ObjectNotFound",
            )
        call.fail(failure, "ConstructorInvokedThrowException", "InvalidOperation")


def _set_properties(call: Call, made: Value, properties: _Mapping) -> bool:
    """Set the properties; False when one of them does not exist."""
    for key, value in properties.items():
        name = call.text(key)
        if isinstance(made, PSCustomObject):
            made.put(name, value)
            continue
        try:
            set_member(made, name, value, call.scope)
        except RuntimeException as failure:
            if (
                failure.id not in ("PropertyNotFound", "ExceptionWhenSetting")
                or "cannot be found" not in failure.message
            ):
                call.fail(failure, "SetValueException", "InvalidOperation")
            call.error(
                InvalidOperationException(
                    f'The member "{name}" was not found for the specified .NET object.'
                ),
                "InvalidOperationException",
                "InvalidOperation",
                None,
            )
            return False
    return True


# -- Add-Member


@cmdlet(
    "Add-Member",
    """
    InputObject: psobject mandatory value
    MemberType: System.Management.Automation.PSMemberTypes mandatory position=0 alias=Type set=MemberSet
    Name: string mandatory position=1 set=MemberSet
    Value: object position=2 set=MemberSet
    SecondValue: object position=3 set=MemberSet
    TypeName: string set=MemberSet,TypeNameSet,NotePropertySingleMemberSet,NotePropertyMultiMemberSet
    NotePropertyName: string mandatory position=0 set=NotePropertySingleMemberSet
    NotePropertyValue: object mandatory position=1 null empty set=NotePropertySingleMemberSet
    NotePropertyMembers: System.Collections.IDictionary mandatory position=0 set=NotePropertyMultiMemberSet
    Force: switch
    PassThru: switch
    """,
    default_set="TypeNameSet",
)
def add_member(call: Call) -> None:
    """Members beside an object's own."""
    value = call["InputObject"]
    made, _ = decorate(value)
    if made is not value and not call.flag("PassThru"):
        call.refuse("to a scalar without -PassThru")
    if call.has("TypeName"):
        _, extension = decorate(made)
        extension.type_names = [call["TypeName"], *type_names_of(made)]
    for member in _members(call):
        _add(call, made, member)
    if call.flag("PassThru"):
        call.write(made)


def _is_no_member_type(value: Value) -> bool:
    """-NotePropertyName does not take what names a member type: that is -MemberType."""
    return not (isinstance(value, str) and try_convert(value, named(_SMA + "PSMemberTypes"))[0])


all_cmdlets()["add-member"].guards["notepropertyname"] = _is_no_member_type


def _members(call: Call) -> list[Any]:
    if call.has("NotePropertyMembers"):
        return [NoteProperty(call.text(key), value) for key, value in call["NotePropertyMembers"].items()]
    if call.has("NotePropertyName"):
        return [NoteProperty(call["NotePropertyName"], call["NotePropertyValue"])]
    if not call.has("MemberType"):
        return []
    kind, name, value, second = str(call["MemberType"]), call["Name"], call["Value"], call["SecondValue"]
    match kind.lower():
        case "noteproperty":
            return [NoteProperty(name, value)]
        case "scriptproperty":
            return [ScriptProperty(name, _block(call, value), _block(call, second))]
        case "scriptmethod":
            return [ScriptMethod(name, _block(call, value) or ScriptBlock(""))]
        case "aliasproperty":
            target = None if second is None else find_type(call.text(second))
            return [AliasProperty(name, call.text(value), target)]
        case "propertyset":
            return [PropertySet(name, [call.text(item) for item in enumerate_value(value) or [value]])]
        case _:
            raise Refusal("parameter", f"Add-Member -MemberType {kind}")


def _block(call: Call, value: Value) -> ScriptBlock | None:
    if value is None:
        return None
    bare = plain(value)
    if not isinstance(bare, ScriptBlock):
        call.refuse("with a value that is not a script block")
    return bare


def _add(call: Call, made: Value, member: Any) -> None:
    _, extension = decorate(made)
    if extension.find(member.name) is not None:
        if not call.flag("Force"):
            call.error(
                InvalidOperationException(
                    f'Cannot add a member with the name "{member.name}" because a member with that name already exists. '
                    "To overwrite the member anyway, add the Force parameter to your command."
                ),
                "MemberAlreadyExists",
                "InvalidOperation",
                made,
            )
            return
        extension.remove(member.name)
    extension.add(member)


# -- Get-Member


_Row = tuple[str, str, str | None]
_MEMBER_GROUPS = {
    "properties": ("Property", "NoteProperty", "ScriptProperty", "AliasProperty", "CodeProperty"),
    "methods": ("Method", "ScriptMethod", "CodeMethod"),
    "all": (),
}


@cmdlet(
    "Get-Member",
    """
    InputObject: psobject value
    Name: string[] position=0
    MemberType: string[] alias=Type
    View: string refused
    Static: switch refused
    Force: switch refused
    """,
)
class GetMember:
    """The members of custom objects; for other types the lab does not know them all."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.seen: set[str] = set()

    def process(self) -> None:
        call = self.call
        item = call.bound.get("inputobject")
        if item is None:
            return
        name = type_names_of(item)[0]
        if name in self.seen:
            return
        self.seen.add(name)
        bare = plain(item)
        if not isinstance(bare, PSCustomObject):
            self._only_added(item)
            return
        rows = [
            (member.kind, member.name, _definition(call, member))
            for member in bare.extension.members.values()
        ]
        rows += [
            ("Method", "Equals", "bool Equals(System.Object obj)"),
            ("Method", "GetHashCode", "int GetHashCode()"),
            ("Method", "GetType", "type GetType()"),
            ("Method", "ToString", "string ToString()"),
        ]
        self._write(name, rows)

    def _only_added(self, item: Value) -> None:
        call = self.call
        wanted = {kind.lower() for kind in call.items("MemberType")}
        if not wanted or not wanted <= {"noteproperty", "scriptproperty", "scriptmethod", "aliasproperty"}:
            kind = type_of(plain(item))
            names = call.items("Name")
            if not names or any("*" in name or "?" in name for name in names):
                call.refuse(f"for {kind.name}")
            self._by_name(item, names)
            return
        extension = extension_of(item)
        rows: list[_Row] = (
            []
            if extension is None
            else [
                (member.kind, member.name, _definition(call, member)) for member in extension.members.values()
            ]
        )
        self._write(type_names_of(item)[0], rows)

    def _by_name(self, item: Value, names: list[str]) -> None:
        """Does a property or method of that name exist? Its definition is not known."""
        from winboot_lab.engine.dotnet import Method

        kind = type_of(plain(item))
        rows: list[_Row] = []
        for name in names:
            found = kind.find(name.lower())
            if found is None and not kind.knows_absence(name):
                raise Refusal("member", f"{kind.name}.{name}")
            if found is not None:
                rows.append(("Method" if isinstance(found, Method) else "Property", found.name, None))
        self._write(kind.name, rows)

    def _write(self, type_name: str, rows: Sequence[_Row]) -> None:
        call = self.call
        order = {"NoteProperty": 3, "Method": 1, "Property": 2}
        for kind, name, definition in sorted(rows, key=lambda row: (order.get(row[0], 2), row[1].lower())):
            if call.has("Name") and not any(like(name, pattern) for pattern in call.items("Name")):
                continue
            if call.has("MemberType") and not self._wanted(kind):
                continue
            properties: dict[str, Value] = {
                "TypeName": type_name,
                "Name": name,
                "MemberType": enum_value(_SMA + "PSMemberTypes", kind),
            }
            if definition is not None:
                properties["Definition"] = definition
            call.write(Structured("Microsoft.PowerShell.Commands.MemberDefinition", properties))

    def _wanted(self, kind: str) -> bool:
        for wanted in self.call.items("MemberType"):
            for part in wanted.split(","):
                key = part.strip().lower()
                if key == "all" or key == kind.lower() or kind in _MEMBER_GROUPS.get(key, ()):
                    return True
        return False


def _definition(call: Call, member: Any) -> str:
    if isinstance(member, NoteProperty):
        from winboot_lab.engine.typenames import type_text

        name = "object" if member.value is None else type_text(type_of(plain(member.value)))
        shown = "null" if member.value is None else call.text(member.value)
        return f"{name} {member.name}={shown}"
    if isinstance(member, AliasProperty):
        return f"{member.name} = {member.target}"
    if isinstance(member, ScriptProperty):
        getter = f"get={member.getter.text};" if member.getter is not None else ""
        setter = f"set={member.setter.text};" if member.setter is not None else ""
        return f"System.Object {member.name} {{{getter}{setter}}}"
    if isinstance(member, ScriptMethod):
        return f"System.Object {member.name}();"
    return str(member.name)


# -- Invoke-Command


@cmdlet(
    "Invoke-Command",
    """
    ScriptBlock: scriptblock mandatory position=0 alias=Command set=InProcess
    NoNewScope: switch set=InProcess
    InputObject: psobject value
    ArgumentList: object[] alias=Args
    ComputerName: string[] refused set=ComputerName
    Session: object refused set=Session
    AsJob: switch refused set=ComputerName
    """,
    module=CORE,
    default_set="InProcess",
)
class InvokeCommand:
    """Run a script block here; elsewhere is refused."""

    def __init__(self, call: Call) -> None:
        self.call = call
        code, home = code_of(call["ScriptBlock"])
        self.stage = BlockStage(
            call.scope,
            code,
            positional(call.items("ArgumentList")),
            call.stage.out,
            Line(),
            expects_input=call.expects_input,
            dotted=call.flag("NoNewScope"),
            home=home,
        )

    def begin(self) -> None:
        self.stage.start()

    def process(self) -> None:
        if self.call.expects_input:
            self.stage.process(self.call.bound.get("inputobject"))
        else:
            self.stage.once()

    def end(self) -> None:
        self.stage.end()
        self.stage.leave()


# -- chance


@cmdlet(
    "New-Guid", module="Microsoft.PowerShell.Utility", suffix="Microsoft.PowerShell.Commands.NewGuidCommand"
)
def new_guid(call: Call) -> None:
    call.write(uuid.uuid4())


@cmdlet(
    "Get-Random",
    """
    Maximum: object position=0 set=RandomNumberParameterSet
    Minimum: object set=RandomNumberParameterSet
    SetSeed: int
    InputObject: object[] mandatory position=0 value set=RandomListItemParameterSet
    Count: int range=1,2147483647 set=RandomListItemParameterSet
    """,
    default_set="RandomNumberParameterSet",
)
class GetRandom:
    """Random numbers and items."""

    def __init__(self, call: Call) -> None:
        import random

        self.call = call
        if call.has("SetSeed"):
            call.refuse("-SetSeed")
        self.random = random.SystemRandom()
        self.items: list[Value] = []

    def process(self) -> None:
        if self.call.set_name == "RandomListItemParameterSet":
            self.items.extend(self.call.items("InputObject"))

    def end(self) -> None:
        call = self.call
        if call.set_name == "RandomListItemParameterSet":
            for item in self.random.sample(self.items, min(call["Count"] or 1, len(self.items))):
                call.write(item)
            return
        low, high = self._limit("Minimum", 0), self._limit("Maximum", 2**31 - 1)
        if low >= high:
            call.fail(
                PSArgumentException(
                    f"The Minimum value ({low}) cannot be greater than or equal to the Maximum value ({high})."
                ),
                "MinGreaterThanOrEqualMax",
                "InvalidArgument",
            )
        call.write(self.random.randrange(low, high))

    def _limit(self, name: str, default: int) -> int:
        if not self.call.has(name):
            return default
        value = plain(self.call[name])
        if type(value) is not int:
            try:
                value = convert(value, INT32)
            except DotNetException:
                self.call.refuse(f"-{name} with something other than Int32")
            if isinstance(self.call[name], float):
                self.call.refuse(f"-{name} with a fraction")
        return int(value)


__all__ = ["get_member", "invoke_member"]
