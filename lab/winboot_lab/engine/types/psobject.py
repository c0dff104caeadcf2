"""What `$x.PSObject` shows: properties, members, type names; and the member objects Add takes (`[psnoteproperty]::new()`)."""

from __future__ import annotations

from collections.abc import Iterator

from winboot_lab.engine import members
from winboot_lab.engine.convert import NOT_CONVERTED, converts
from winboot_lab.engine.dotnet import DotNetType, Method, Property, Runtime, dotnet
from winboot_lab.engine.exceptions import SetValueException
from winboot_lab.engine.formatting import dotnet_text
from winboot_lab.engine.members import PSObjectView, TypeNameList
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    COLLECTION,
    NULL_STRING_VALUE,
    NULL_TYPE,
    PS_OBJECT,
    STRING,
    AliasProperty,
    CodeProperty,
    Decorated,
    Enumerator,
    Instance,
    NoteProperty,
    NullString,
    PropertySet,
    PSCustomObject,
    PSMethod,
    ScriptMethod,
    ScriptProperty,
    Structured,
    Value,
    View,
    close_generic,
    decorate,
    enum_value,
    extension_of,
    plain,
    type_of,
)
from winboot_lab.engine.wildcards import like

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


def _value_type(runtime: Runtime, self: MemberView) -> str:
    bare = plain(self.target)
    member = type_of(bare).find(self.name)
    if type(member) is Property and not isinstance(bare, PSCustomObject):
        from winboot_lab.engine.dotnet import named

        return named(member.type_name).name
    kind = type_of(_read(runtime, self))
    return "System.Object" if kind is NULL_TYPE else kind.name


def _settable(self: MemberView) -> bool:
    extension = extension_of(self.target)
    added = extension.find(self.name) if extension is not None else None
    if added is None:
        member = type_of(plain(self.target)).find(self.name)
        return isinstance(plain(self.target), Structured) or (
            type(member) is Property and member.set is not None
        )
    if isinstance(added, ScriptProperty):
        return added.setter is not None
    return not isinstance(added, PropertySet)


MEMBER_INFO.prop("Name", "string", lambda self: self.name)
MEMBER_INFO.prop(
    "MemberType", _SMA + "PSMemberTypes", lambda self: enum_value(_SMA + "PSMemberTypes", self.kind)
)
MEMBER_INFO.prop("IsInstance", "bool", lambda self: self.kind != "Property")
PROPERTY_INFO.prop("IsGettable", "bool", lambda self: True)
PROPERTY_INFO.prop(
    "IsSettable", "bool", lambda self: _settable(self) if isinstance(self, MemberView) else True
)


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
PROPERTY_INFO.prop(
    "TypeNameOfValue",
    "string",
    lambda runtime, self: (
        _value_type(runtime, self) if isinstance(self, MemberView) else type_of(self.value).name
    ),
    effect=True,
)


def _referenced(self: Value) -> Value:
    if isinstance(self, AliasProperty):
        return self.target
    extension = extension_of(self.target)
    found = extension.find(self.name) if extension is not None else None
    return found.target if isinstance(found, AliasProperty) else None


_KINDS[AliasProperty].prop("ReferencedMemberName", "string", _referenced)


for _kind in (MEMBER_INFO, PROPERTY_INFO, _ADAPTED, *_KINDS.values()):
    _kind.refuses("Copy Getter GetterScript SetterScript Script OverloadDefinitions ToString")
_KINDS[NoteProperty].constructor("string name, object value")(NoteProperty)
_KINDS[AliasProperty].constructor("string name, string referencedMemberName")(AliasProperty)
_KINDS[ScriptProperty].constructor(f"string name, {_SMA}ScriptBlock getterScript")(ScriptProperty)
_KINDS[ScriptProperty].constructor(
    f"string name, {_SMA}ScriptBlock getterScript, {_SMA}ScriptBlock setterScript"
)(ScriptProperty)
_KINDS[ScriptMethod].constructor(f"string name, {_SMA}ScriptBlock script")(ScriptMethod)

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


@_MEMBERS.method("Match(string name)")
def _match(self: MemberCollection, pattern: str) -> Value:
    found = [view for view in self if like(view.name, pattern)]
    return View(_SMA + "ReadOnlyPSMemberInfoCollection`1", lambda: found)


_MEMBERS.method("GetEnumerator()")(Enumerator)
_MEMBERS.refuses("Count")
_MATCHED = dotnet(_SMA + "ReadOnlyPSMemberInfoCollection`1")
_MATCHED.prop("Count", "int", len)
_MATCHED.method("Item(int index)")(lambda self, index: self.read()[index])
_MATCHED.refuses("Match GetEnumerator")

# -- the object itself

_VIEW = dotnet(_SMA + "PSObject+View", PSObjectView, base=PS_OBJECT)
_VIEW.name = PS_OBJECT.name
for _name in ("Properties", "Members", "Methods"):
    _VIEW.prop(_name, "object", lambda self, which=_name: MemberCollection(self.target, which))
_VIEW.prop("BaseObject", "object", lambda self: plain(self.target))
_VIEW.prop("ImmediateBaseObject", "object", lambda self: plain(self.target))
_VIEW.prop("TypeNames", "object", lambda self: members.type_names_list(self.target))
_VIEW.method("ToString()")(lambda self: dotnet_text(self.target))
_VIEW.refuses("GetMetaObject CompareTo Equals GetObjectData")


@_VIEW.method("Copy()")
def copy_object(self: PSObjectView) -> Value:
    """A shallow copy with its own members."""
    target = self.target
    if isinstance(target, PSCustomObject):
        made = PSCustomObject()
        for member in target.extension.members.values():
            made.extension.add(
                NoteProperty(member.name, member.value) if isinstance(member, NoteProperty) else member
            )
        made.extension.type_names = list(target.extension.type_names) if target.extension.type_names else None
        return made
    if isinstance(target, (str, int, float)):
        return target
    raise Refusal("member", f"{type_of(target).name}.PSObject.Copy()")


PS_OBJECT.constructor("")(PSCustomObject)
PS_OBJECT.constructor("object obj")(lambda value: decorate(value)[0])
PS_OBJECT.static_method("AsPSObject(object obj)")(lambda value: decorate(value)[0])
PS_OBJECT.refuses("AdaptedMemberSetName BaseMemberSetName ExtendedMemberSetName")
dotnet(_SMA + "PSMethod").refuses("Copy IsInstance MemberType Name Value TypeNameOfValue")


@dotnet(_SMA + "PSMethod", PSMethod).method("Invoke(params object[] arguments)", effect=True)
def _invoke(runtime: Runtime, self: PSMethod, arguments: Value) -> Value:
    if isinstance(self.method, ScriptMethod):
        return runtime.call(self.method.script, list(arguments), self.target)
    return members.invoke_method(self, arguments, runtime)


def _definitions(self: PSMethod) -> Value:
    raise Refusal("member", "OverloadDefinitions")


type_of(PSMethod(None, "", None)).prop("OverloadDefinitions", "string[]", _definitions)
type_of(PSMethod(None, "", None)).prop("Name", "string", lambda self: self.name)
type_of(PSMethod(None, "", None)).refuses("Copy IsInstance MemberType Value TypeNameOfValue")

# -- type names


def _names_changed(self: TypeNameList) -> None:
    self.source[:] = list(self)


_NAMES = close_generic(COLLECTION, (STRING,))


@_NAMES.method("void Add(string item)")
def _add_name(self: Value, name: str) -> None:
    self.append(name)
    if isinstance(self, TypeNameList):
        _names_changed(self)


@_NAMES.method("void Insert(int index, string item)")
def _insert_name(self: Value, index: int, name: str) -> None:
    self.insert(index, name)
    if isinstance(self, TypeNameList):
        _names_changed(self)


@_NAMES.method("void Clear()")
def _clear_names(self: Value) -> None:
    self.clear()
    if isinstance(self, TypeNameList):
        _names_changed(self)


@_NAMES.method("Remove(string item)")
def _remove_name(self: Value, name: str) -> bool:
    if name not in self:
        return False
    self.remove(name)
    if isinstance(self, TypeNameList):
        _names_changed(self)
    return True


@_NAMES.method("void RemoveAt(int index)")
def _remove_name_at(self: Value, index: int) -> None:
    del self[index]
    if isinstance(self, TypeNameList):
        _names_changed(self)


# -- script blocks as delegates and text


NULL_STRING = dotnet(
    "System.Management.Automation.Language.NullString", NullString, accelerators=["nullstring"]
)
NULL_STRING.static_prop("Value", _SMA + "Language.NullString", lambda: NULL_STRING_VALUE)
NULL_STRING.complete()


@converts(NULL_STRING)
def _no_null_string(value: Value) -> Value:
    return NOT_CONVERTED
