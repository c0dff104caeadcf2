"""What `$x.PSObject` shows: properties, members, type names; and the member objects Add takes (`[psnoteproperty]::new()`)."""

from __future__ import annotations

from collections.abc import Iterator

from winboot_lab.engine import members
from winboot_lab.engine.convert import NOT_CONVERTED, converts
from winboot_lab.engine.dotnet import DotNetType, Method, Runtime, dotnet
from winboot_lab.engine.exceptions import SetValueException
from winboot_lab.engine.formatting import dotnet_text
from winboot_lab.engine.members import PSObjectView
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    NULL_STRING_VALUE,
    PS_OBJECT,
    AliasProperty,
    CodeProperty,
    Decorated,
    Instance,
    NoteProperty,
    NullString,
    PropertySet,
    PSMethod,
    ScriptMethod,
    ScriptProperty,
    Structured,
    Value,
    View,
    decorate,
    extension_of,
    plain,
    type_of,
)

_SMA = "System.Management.Automation."
MEMBER_INFO = dotnet(_SMA + "PSMemberInfo")
PROPERTY_INFO = dotnet(_SMA + "PSPropertyInfo", base=MEMBER_INFO)
_KINDS: dict[type, DotNetType] = {
    NoteProperty: dotnet(
        _SMA + "PSNoteProperty", NoteProperty, base=PROPERTY_INFO, accelerators=["psnoteproperty"]
    ),
    AliasProperty: dotnet(
        _SMA + "PSAliasProperty", AliasProperty, base=PROPERTY_INFO, accelerators=["psaliasproperty"]
    ),
    ScriptProperty: dotnet(
        _SMA + "PSScriptProperty", ScriptProperty, base=PROPERTY_INFO, accelerators=["psscriptproperty"]
    ),
    ScriptMethod: dotnet(
        _SMA + "PSScriptMethod", ScriptMethod, base=MEMBER_INFO, accelerators=["psscriptmethod"]
    ),
    CodeProperty: dotnet(_SMA + "PSCodeProperty", CodeProperty, base=PROPERTY_INFO),
    PropertySet: dotnet(
        _SMA + "PSPropertySet", PropertySet, base=MEMBER_INFO, accelerators=["pspropertyset"]
    ),
}
MEMBER_INFO.prop("Name", "string", lambda self: self.name)
_ADAPTED = dotnet(_SMA + "PSProperty", base=PROPERTY_INFO)


class MemberView(Instance):
    """One property of one object: what the Properties collection hands out."""

    def __init__(self, target: Value, name: str, kind: str, dotnet_type: DotNetType) -> None:
        self.target = target
        self.name = name
        self.kind = kind
        self.dotnet_type = dotnet_type


def _views(target: Value) -> Iterator[MemberView]:
    extension = extension_of(target)
    for name in members.properties_of(target):
        added = extension.find(name) if extension is not None else None
        if added is None:
            added = members.type_data(target, name.lower())
        if added is None:
            yield MemberView(target, name, "NoteProperty" if _is_data(target) else "Property", _ADAPTED)
        else:
            yield MemberView(target, name, added.kind, _KINDS[type(added)])


def _is_data(target: Value) -> bool:
    bare = plain(target)
    return isinstance(bare, Structured) and bare.type_name.startswith("Selected.")


def _view(target: Value, name: str) -> MemberView | None:
    return next((view for view in _views(target) if view.name.lower() == name.lower()), None)


def _read(runtime: Runtime, self: MemberView) -> Value:
    return members.get_member(self.target, self.name, runtime)


def _write(runtime: Runtime, self: MemberView, value: Value) -> None:
    members.set_member(self.target, self.name, value, runtime)


def _own_value(runtime: Runtime, self: Value) -> Value:
    if isinstance(self, MemberView):
        return _read(runtime, self)
    if isinstance(self, NoteProperty):
        return self.value
    raise Refusal("member", "Value", "of a member that belongs to no object")


def _set_own_value(runtime: Runtime, self: Value, value: Value) -> None:
    if isinstance(self, MemberView):
        _write(runtime, self, value)
    elif isinstance(self, NoteProperty):
        self.value = value
    else:
        raise SetValueException("Cannot set the Value property for this member.", "ExceptionWhenSetting")


PROPERTY_INFO.prop("Value", "object", _own_value, _set_own_value, effect=True)


# -- collections of members


class MemberCollection(View):
    """Properties, Members or Methods of one object."""

    def __init__(self, target: Value, which: str) -> None:
        super().__init__(_SMA + "PSMemberInfoIntegratingCollection`1", self._all)
        self.target = target
        self.which = which

    def _all(self) -> list[Value]:
        if self.which != "Properties":
            raise Refusal("member", f"PSObject.{self.which}", "all of them; by name it is known")
        return list(_views(self.target))


_MEMBERS = dotnet(_SMA + "PSMemberInfoIntegratingCollection`1")


@_MEMBERS.method("Item(string name)")
def _item(self: MemberCollection, name: str) -> Value:
    if self.which == "Methods":
        return _method(self.target, name)
    found = _view(self.target, name)
    return found if found is not None or self.which == "Properties" else _method(self.target, name)


def _method(target: Value, name: str) -> Value:
    extension = extension_of(target)
    added = extension.find(name) if extension is not None else None
    if isinstance(added, ScriptMethod):
        return added
    kind = type_of(plain(target))
    member = kind.find(name)
    if isinstance(member, Method):
        return PSMethod(target, member.name, member)
    if member is None and not kind.knows_absence(name):
        raise Refusal("member", f"{kind.name}.{name}")
    return None


def _add_member(target: Value, member: Value) -> None:
    bare = member
    if isinstance(bare, MemberView):
        raise Refusal("member", "Properties.Add()", "a property of another object")
    if isinstance(target, Decorated) or extension_of(target) is not None:
        extension = extension_of(target)
        assert extension is not None
    else:
        holder, extension = decorate(target)
        if holder is not target:
            raise Refusal("member", "Properties.Add()", "to a value without room for members")
    extension.add(bare)


_MEMBERS.method("void Add(object member)", "void Add(object member, bool preValidated)")(
    lambda self, member, checked=False: _add_member(self.target, member)
)


@_MEMBERS.method("void Remove(string name)")
def _remove(self: MemberCollection, name: str) -> None:
    extension = extension_of(self.target)
    if extension is not None:
        extension.remove(name)


_MATCHED = dotnet(_SMA + "ReadOnlyPSMemberInfoCollection`1")

# -- the object itself

_VIEW = dotnet(_SMA + "PSObject+View", PSObjectView, base=PS_OBJECT)
_VIEW.name = PS_OBJECT.name
for _name in ("Properties", "Members", "Methods"):
    _VIEW.prop(_name, "object", lambda self, which=_name: MemberCollection(self.target, which))
_VIEW.prop("TypeNames", "object", lambda self: members.type_names_list(self.target))
_VIEW.method("ToString()")(lambda self: dotnet_text(self.target))


# -- script blocks as delegates and text


NULL_STRING = dotnet(
    "System.Management.Automation.Language.NullString", NullString, accelerators=["nullstring"]
)
NULL_STRING.static_prop("Value", _SMA + "Language.NullString", lambda: NULL_STRING_VALUE)


@converts(NULL_STRING)
def _no_null_string(value: Value) -> Value:
    return NOT_CONVERTED
