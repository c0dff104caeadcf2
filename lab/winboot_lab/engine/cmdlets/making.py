"""New-Object, Add-Member, Get-Member, Invoke-Command, New-Guid, Get-Random, Add-Type."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import all_cmdlets, cmdlet
from winboot_lab.engine.convert import try_convert
from winboot_lab.engine.dotnet import named
from winboot_lab.engine.exceptions import InvalidOperationException
from winboot_lab.engine.members import get_member, invoke_member
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.typenames import find_type
from winboot_lab.engine.values import (
    AliasProperty,
    NoteProperty,
    PropertySet,
    ScriptBlock,
    ScriptMethod,
    ScriptProperty,
    decorate,
    enumerate_value,
    plain,
    type_names_of,
)

Value = Any
_SMA = "System.Management.Automation."


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
    """Add members to an object."""
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


# -- chance


__all__ = ["get_member", "invoke_member"]
