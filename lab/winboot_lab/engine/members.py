"""Members of any value: reading, writing, calling, indexing, making objects.

get_member(value, name, runtime)             `$x.Name`; `static=True` for `[T]::Name`
set_member(value, name, new, runtime)        `$x.Name = new`
invoke_member(value, name, arguments, runtime)      `$x.Name(...)`; static: `[T]::Name(...)` and `[T]::new(...)`
index_value, set_index                       `$x[key]`
new_object(type, arguments, runtime)         New-Object and ::new
find_property(value, name, runtime)          (value,) when the object has that property, else None: for cmdlets
properties_of(value)                         names of all properties, in order: Select-Object *, ConvertTo-Json ...

More than 800 lines: reading, writing and calling share the order in which PowerShell looks for a member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from winboot_lab.engine import convert as conversion
from winboot_lab.engine.convert import NOT_CONVERTED, cast, convert, to_bool, to_string
from winboot_lab.engine.dotnet import OBJECT, RUNTIME, DotNetType, Method, Property, Runtime
from winboot_lab.engine.exceptions import (
    ArgumentOutOfRangeException,
    DotNetException,
    GetValueInvocationException,
    IndexOutOfRangeException,
    MethodException,
    OverflowException,
    PropertyNotFoundException,
    RuntimeException,
    SetValueException,
    SetValueInvocationException,
)
from winboot_lab.engine.overloads import UNFORESEEN, call, no_overload
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    BOXED_BYTES,
    INT32,
    NOTHING,
    NUMBER_CLASSES,
    PS_OBJECT,
    STRING,
    AliasProperty,
    Array,
    ArrayList,
    BaseView,
    ByteArray,
    Char,
    CodeProperty,
    Collection,
    Decorated,
    EnumValue,
    GenericList,
    Hashtable,
    Instance,
    NoteProperty,
    OrderedDictionary,
    PropertySet,
    PSCustomObject,
    PSMethod,
    ScriptBlock,
    ScriptMethod,
    ScriptProperty,
    Structured,
    Value,
    _Mapping,
    enumerate_value,
    extension_of,
    plain,
    type_names_of,
    type_of,
)

MISSING = object()
"""Answer of the inner lookups for a member that is not there."""

TYPE_DATA: dict[str, dict[str, CodeProperty | AliasProperty | PropertySet]] = {}
"""5.1's added members by .NET type name (lower case): what types.ps1xml adds."""


def adds(type_name: str, member: CodeProperty | AliasProperty | PropertySet) -> None:
    """Declare a member that PowerShell's own type data adds to a .NET type."""
    TYPE_DATA.setdefault(type_name.lower(), {})[member.name.lower()] = member


# -- errors


def _not_found_strict(name: str) -> PropertyNotFoundException:
    return PropertyNotFoundException(
        f"The property '{name}' cannot be found on this object. Verify that the property exists.",
        "PropertyNotFoundStrict",
        "NotSpecified",
    )


def _not_found_to_set(name: str) -> RuntimeException:
    return RuntimeException(
        f"The property '{name}' cannot be found on this object. Verify that the property exists and can be set.",
        "PropertyNotFound",
        "InvalidOperation",
    )


def _no_method(value: Value, name: str) -> RuntimeException:
    kind = value if isinstance(value, DotNetType) else type_of(value)
    return RuntimeException(
        f"Method invocation failed because [{kind.name}] does not contain a method named '{name}'.",
        "MethodNotFound",
        "InvalidOperation",
        name,
    )


def _null_call() -> RuntimeException:
    return RuntimeException(
        "You cannot call a method on a null-valued expression.", "InvokeMethodOnNull", "InvalidOperation"
    )


def _read_only(name: str) -> RuntimeException:
    return RuntimeException(
        f"'{name}' is a ReadOnly property.", "PropertyAssignmentException", "InvalidOperation"
    )


# -- reading


def get_member(value: Value, name: Value, runtime: Runtime, *, static: bool = False) -> Value:
    """`$value.name` as the script sees it: $null for what is missing, an error under strict mode."""
    name = name if type(name) is str else to_string(name)
    if static:
        return _get_static(value, name, runtime)
    if value is NOTHING and name.lower() == "psobject":
        return PSObjectView(value)  # AutomationNull is a PSObject without a base object
    if value is None or value is NOTHING:
        return _of_null(name, runtime)
    found = lookup(value, name, runtime)
    if found is not MISSING:
        return found
    items = enumerate_value(value)
    if items is not None:
        check_absence(value, name)
        return _from_items(items, name, runtime)
    return _missing(value, name, runtime)


def _of_null(name: str, runtime: Runtime) -> Value:
    if name.lower() == "psobject":
        return None
    if runtime.strict >= 2:
        raise _not_found_strict(name)
    return 0 if name.lower() in ("count", "length") else None


def _missing(value: Value, name: str, runtime: Runtime) -> Value:
    check_absence(value, name)
    single = runtime.strict < 2 and name.lower() in ("count", "length")
    if single and type(plain(value)) is not PSCustomObject:
        return 1
    if runtime.strict >= 2:
        raise _not_found_strict(name)
    return None


def _from_items(items: Iterable[Value], name: str, runtime: Runtime) -> Value:
    """Member enumeration: the values of that member of all items that have it."""
    found: list[Value] = []
    seen = False
    for item in items:
        got = MISSING if item is None else lookup(item, name, runtime)
        if got is MISSING and item is not None:
            inner = enumerate_value(item)
            if inner is not None:
                got = _from_items(inner, name, _Lenient(runtime))
                if got is None:
                    continue
            elif type(item) is PSCustomObject:
                if runtime.strict >= 2:
                    raise _not_found_strict(name)
                got = None
            else:
                check_absence(item, name)
                if name.lower() in ("count", "length") and runtime.strict < 2:
                    got = 1  # what a single object answers, here for each of them
        if got is MISSING or got is NOTHING:
            continue
        seen = True
        parts = enumerate_value(got)
        if parts is None:
            found.append(got)
        else:
            found.extend(parts)
    if not seen:
        if runtime.strict >= 2:
            raise RuntimeException(
                f"The property '{name}' cannot be found on this object. Verify that the property exists.",
                "PropertyNotFoundStrict",
                "InvalidOperation",
            )
        return None
    if not found:
        return NOTHING
    return found[0] if len(found) == 1 else Array(found)


class _Lenient:
    """A runtime without strict mode: for the inner levels of member enumeration."""

    strict = 0

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)


def check_absence(item: Value, name: str) -> None:
    """Refuse a property if the lab has no record of whether .NET has it."""
    kind = type_of(item)
    if not kind.knows_absence(name):
        raise Refusal("member", f"{kind.name}.{name}")


def lookup(value: Value, name: str, runtime: Runtime) -> Value:
    """The value of a property (or a PSMethod) that the object itself has, else MISSING."""
    key = name.lower()
    extension = extension_of(value)
    if extension is not None:
        member = extension.members.get(key)
        if member is not None:
            return _read_added(value, member, runtime)
    bare = value.base if type(value) is Decorated else value
    if type(bare) is BaseView:
        return _lookup_adapted(bare.target, bare.target, name, key, runtime)
    if isinstance(bare, _Mapping) and bare.has(name):
        return bare.get(name)
    if isinstance(bare, Structured):
        note = bare.properties.get(key)
        if note is not None:
            return note.value
    return _lookup_adapted(value, bare, name, key, runtime)


def _lookup_adapted(value: Value, bare: Value, name: str, key: str, runtime: Runtime) -> Value:
    kind = type_of(bare)
    member = kind.find(key)
    if type(member) is Property:
        return _read_property(member, bare, runtime)
    if TYPE_DATA:
        added = type_data(value, key)
        if added is not None:
            return _read_added(value, added, runtime)
    if member is not None:
        return PSMethod(value, member.name, member)
    if key in _INTRINSIC:
        return _INTRINSIC[key](value, runtime)
    return MISSING


def type_data(value: Value, key: str) -> CodeProperty | AliasProperty | PropertySet | None:
    """The member of that (lower-case) name that PowerShell's type data adds to the value's type, or None."""
    for type_name in type_names_of(value):
        table = TYPE_DATA.get(type_name.lower())
        if table is not None and key in table:
            return table[key]
    return None


def _read_property(member: Property, value: Value, runtime: Runtime) -> Value:
    """The value of a property; what its getter throws is swallowed, as PowerShell does: then there is no value."""
    try:
        return member.get(runtime, value) if member.effect else member.get(value)
    except (MethodException, PropertyNotFoundException):
        raise
    except DotNetException:
        return None
    except UNFORESEEN as gap:
        raise Refusal("member", f"{type_of(value).name}.{member.name}", str(gap)) from gap


def _read_added(value: Value, member: Any, runtime: Runtime) -> Value:
    if type(member) is NoteProperty:
        return member.value
    if type(member) is ScriptProperty:
        if member.getter is None:
            raise _no_accessor("Get", member.name)
        try:
            return runtime.call(member.getter, [], value)
        except (MethodException, PropertyNotFoundException):
            raise
        except DotNetException:
            return None
    if type(member) is AliasProperty:
        found = get_member(value, member.target, runtime)
        return found if member.convert_to is None else convert(found, member.convert_to)
    if type(member) is CodeProperty:
        return member.get(plain(value))
    if type(member) is PropertySet:
        return Array(member.members)
    return PSMethod(value, member.name, member)


def _no_accessor(which: str, name: str) -> SetValueException:
    return SetValueException(
        f'{which} accessor for property "{name}" is unavailable.',
        f"{which}Without{which}terFromScriptProperty",
        "NotSpecified",
    )


def _get_static(value: Value, name: str, runtime: Runtime) -> Value:
    kind = plain(value)
    if not isinstance(kind, DotNetType):
        return get_member(value, name, runtime)
    if kind.kind == "enum":
        for constant, number in kind.constants.items():
            if constant.lower() == name.lower():
                return EnumValue(kind, number)
    member = kind.find_static(name)
    if type(member) is Property:
        try:
            return member.get(runtime) if member.effect else member.get()
        except RuntimeException:
            raise
        except DotNetException as cause:
            raise GetValueInvocationException(
                f'Exception getting "{member.name}": "{cause.message}"',
                "ExceptionWhenGetting",
                "NotSpecified",
                None,
                cause,
            ) from cause
    if member is not None:
        return PSMethod(kind, member.name, member, static=True)
    raise Refusal("member", f"[{kind.name}]::{name}")


def find_property(value: Value, name: str, runtime: Runtime) -> tuple[Value] | None:
    """(value,) when the object has a readable property of that name, else None. Methods do not count."""
    if value is None or value is NOTHING:
        return None
    found = lookup(value, name, runtime)
    if found is MISSING:
        check_absence(value, name)
        return None
    return None if type(found) is PSMethod else (found,)


def properties_of(value: Value) -> Iterator[str]:
    """The names of an object's properties, in PowerShell's order: its own, those of the type data, those of its type."""
    seen: set[str] = set()
    for name in _all_property_names(value):
        if name.lower() not in seen:
            seen.add(name.lower())
            yield name


def _all_property_names(value: Value) -> Iterator[str]:
    bare = plain(value)
    extension = extension_of(value)
    if extension is not None:
        for member in extension.members.values():
            if not isinstance(member, (ScriptMethod, PropertySet)):
                yield member.name
    for type_name in type_names_of(value):
        for added in TYPE_DATA.get(type_name.lower(), {}).values():
            if not isinstance(added, PropertySet):
                yield added.name
    if isinstance(bare, Structured):
        yield from (note.name for note in bare.properties.values())
    if not isinstance(bare, PSCustomObject):
        for declared in type_of(bare).all_members():
            if type(declared) is Property and declared.name != "Item":
                yield declared.name


# -- writing


def set_member(value: Value, name: Value, new: Value, runtime: Runtime, *, static: bool = False) -> None:
    """`$value.name = new`."""
    name = name if type(name) is str else to_string(name)
    if new is NOTHING:  # PSSetMemberBinder: "Pretend the value was null"
        new = None
    if static:
        _set_static(value, name, new, runtime)
        return
    if value is None or value is NOTHING:
        raise _not_found_to_set(name)
    if _set_own(value, name, new, runtime):
        return
    bare = plain(value)
    if type(bare) is PSCustomObject:
        inner = f"The property '{name}' cannot be found on this object. Verify that the property exists and can be set."
        raise SetValueInvocationException(
            f'Exception setting "{name}": "{inner}"', "ExceptionWhenSetting", "NotSpecified"
        )
    kind = type_of(bare)
    if not kind.knows_absence(name):
        raise Refusal("member", f"{kind.name}.{name}")
    failure = _not_found_to_set(name)
    if enumerate_value(value) is not None:
        failure.id = "PropertyAssignmentException"
    raise failure


def _set_own(value: Value, name: str, new: Value, runtime: Runtime) -> bool:
    extension = extension_of(value)
    if extension is not None:
        member = extension.find(name)
        if member is not None:
            _write_added(value, member, new, runtime)
            return True
    bare = plain(value)
    if isinstance(bare, _Mapping):
        _set_key(bare, name, new)
        return True
    if isinstance(bare, Structured):
        note = bare.properties.get(name.lower())
        if note is not None:
            note.value = new
            return True
    member_ = type_of(bare).find(name)
    if type(member_) is Property:
        _write_property(member_, bare, new, runtime)
        return True
    added = type_data(value, name.lower())
    if added is not None:
        _write_added(value, added, new, runtime)
        return True
    return False


def _write_added(value: Value, member: Any, new: Value, runtime: Runtime) -> None:
    if type(member) is NoteProperty:
        member.value = new
    elif type(member) is AliasProperty:
        set_member(value, member.target, new, runtime)
    elif type(member) is ScriptProperty:
        if member.setter is None:
            raise SetValueException(
                f'Set accessor for property "{member.name}" is unavailable.',
                "SetWithoutSetterFromScriptProperty",
                "NotSpecified",
            )
        runtime.call(member.setter, [new], value)
    else:
        raise _read_only(member.name)


def _write_property(member: Property, value: Value, new: Value, runtime: Runtime) -> None:
    if member.set is None:
        raise _read_only(member.name)
    try:
        made = convert(new, _property_type(member, value))
        if member.effect:
            member.set(runtime, value, made)
        else:
            member.set(value, made)
    except SetValueException:
        raise
    except UNFORESEEN as gap:
        raise Refusal("member", f"{type_of(value).name}.{member.name} = ...", str(gap)) from gap
    except DotNetException as cause:
        raise SetValueInvocationException(
            f'Exception setting "{member.name}": "{cause.message}"',
            "ExceptionWhenSetting",
            "NotSpecified",
            None,
            cause,
        ) from cause


def _property_type(member: Property, value: Value) -> DotNetType:
    from winboot_lab.engine.dotnet import named

    return named(member.type_name)


def _set_static(value: Value, name: str, new: Value, runtime: Runtime) -> None:
    kind = plain(value)
    if not isinstance(kind, DotNetType):
        set_member(value, name, new, runtime)
        return
    member = kind.find_static(name)
    if type(member) is not Property:
        raise Refusal("member", f"[{kind.name}]::{name}")
    if member.set is None:
        raise _read_only(member.name)
    made = cast(new, _property_type(member, kind))
    try:
        if member.effect:
            member.set(runtime, made)
        else:
            member.set(made)
    except DotNetException as cause:
        raise SetValueInvocationException(
            f'Exception setting "{member.name}": "{cause.message}"',
            "ExceptionWhenSetting",
            "NotSpecified",
            None,
            cause,
        ) from cause


# -- calling


def invoke_member(
    value: Value, name: Value, arguments: Sequence[Value], runtime: Runtime, *, static: bool = False
) -> Value:
    """`$value.name(arguments)`. A method without result answers NOTHING."""
    name = name if type(name) is str else to_string(name)
    if static:
        return _invoke_static(value, name, arguments, runtime)
    if value is None or value is NOTHING:
        if name.lower() in ("foreach", "where") and arguments:
            return Collection((), PS_OBJECT)
        raise _null_call()
    found, result = _try_invoke(value, name, arguments, runtime)
    if found:
        return result
    items = enumerate_value(value)
    if items is not None:
        check_absence(value, name)
        return _invoke_items(value, list(items), name, arguments, runtime)
    kind = type_of(value)
    if not kind.knows_absence(name):
        raise Refusal("member", f"{kind.name}.{name}()")
    raise _no_method(value, name)


def _try_invoke(value: Value, name: str, arguments: Sequence[Value], runtime: Runtime) -> tuple[bool, Value]:
    key = name.lower()
    extension = extension_of(value)
    if extension is not None:
        added = extension.members.get(key)
        if type(added) is ScriptMethod:
            return True, runtime.call(added.script, list(arguments), value)
        if type(added) is NoteProperty and type(added.value) is PSMethod:
            return True, invoke_method(added.value, arguments, runtime)
    bare = value.base if type(value) is Decorated else value
    if type(bare) is BaseView:
        value = bare = bare.target
    kind = type_of(bare)
    member = kind.find(key)
    if type(member) is Method:
        return True, call(member, (bare,), arguments, runtime, kind)
    if key.startswith(("get_", "set_")):
        accessor = kind.find(key[4:])
        if type(accessor) is Property:
            return True, _accessor(accessor, key[:3], bare, arguments, runtime)
        if type(accessor) is Method and key == "get_item":
            return True, call(accessor, (bare,), arguments, runtime, kind)
    if key == "foreach":
        return True, _for_each(value, arguments, runtime)
    if key == "where":
        return True, _where(value, arguments, runtime)
    if isinstance(bare, _Mapping) and bare.has(name) and type(bare.get(name)) is PSMethod:
        return True, invoke_method(bare.get(name), arguments, runtime)
    return False, None


def _accessor(
    member: Property, which: str, value: Value, arguments: Sequence[Value], runtime: Runtime
) -> Value:
    """`$x.get_Count()`, `$x.set_Port(80)`."""
    if len(arguments) != (0 if which == "get" else 1):
        raise no_overload(f"{which}_{member.name}", len(arguments))
    if which == "get":
        return _read_property(member, value, runtime)
    _write_property(member, value, arguments[0], runtime)
    return NOTHING


def invoke_method(method: PSMethod, arguments: Sequence[Value], runtime: Runtime) -> Value:
    """Call a method held as a value: `$m = 'a'.ToUpper; $m.Invoke()`."""
    return invoke_member(method.target, method.name, arguments, runtime, static=method.static)


def _invoke_items(
    value: Value, items: list[Value], name: str, arguments: Sequence[Value], runtime: Runtime
) -> Value:
    out: list[Value] = []
    for item in items:
        if item is None:
            raise _null_call()
        found, result = _try_invoke(item, name, arguments, runtime)
        if not found:
            check_absence(item, name)
            raise _no_method(item, name)
        parts = enumerate_value(result)
        if parts is None:
            out.append(result)
        else:
            out.extend(parts)
    if not items:
        check_absence(value, name)
        raise _no_method(value, name)
    if not out:
        return NOTHING
    return out[0] if len(out) == 1 else Array(out)


def _invoke_static(value: Value, name: str, arguments: Sequence[Value], runtime: Runtime) -> Value:
    kind = plain(value)
    if not isinstance(kind, DotNetType):
        if value is None:
            raise _null_call()
        return _invoke_static(type_of(value), name, arguments, runtime)
    if name.lower() == "new":
        return new_object(kind, arguments, runtime)
    member = kind.find_static(name)
    if type(member) is Method:
        return call(member, (), arguments, runtime, kind)
    raise Refusal("member", f"[{kind.name}]::{name}()")


def new_object(kind: DotNetType, arguments: Sequence[Value], runtime: Runtime) -> Value:
    """An instance made by the best constructor."""
    constructors = kind.constructors
    if not constructors.overloads and kind.definition is not None:
        constructors = kind.definition.constructors
    if constructors.overloads and not _is_open(kind):
        return _construct(kind, constructors, arguments, runtime)
    if kind.kind == "array" and len(arguments) == kind.rank:
        return _new_array(kind, arguments)
    if kind.is_value_type and not arguments and kind.default is not None:
        return kind.default()
    if kind.kind == "enum" and not arguments:
        return EnumValue(kind, 0)
    if kind.kind in ("static", "abstract", "interface"):
        raise no_overload("new", len(arguments))
    raise Refusal("member", f"[{kind.name}]::new()")


def _construct(
    kind: DotNetType,
    constructors: Method,
    arguments: Sequence[Value],
    runtime: Runtime,
) -> Value:
    if kind.is_value_type and not arguments and kind.default is not None:
        return kind.default()
    leading = (kind,) if kind.definition is not None else ()
    return call(constructors, leading, arguments, runtime, kind)


def _new_array(kind: DotNetType, arguments: Sequence[Value]) -> Value:
    if kind.rank > 1:
        raise Refusal("type", kind.name, "an array of several dimensions")
    element = kind.element
    assert element is not None
    length = int(cast(arguments[0], INT32))
    if length < 0:
        raise OverflowException("Arithmetic operation resulted in an overflow.")
    return conversion.new_array(_defaults(element, length), element)


def _defaults(kind: DotNetType, number: int) -> list[Value]:
    """So many times default(T). Nothing can change a number, so a buffer of bytes needs one only."""
    if number and isinstance(first := default_of(kind), int | float):
        return [first] * number
    return [default_of(kind) for _ in range(number)]


def default_of(kind: DotNetType) -> Value:
    """default(T): zero, false, $null."""
    if kind.kind == "enum":
        return EnumValue(kind, 0)
    return kind.default() if kind.is_value_type and kind.default is not None else None


# -- ForEach and Where


def _items_of(value: Value) -> list[Value]:
    items = enumerate_value(value)
    return [value] if items is None else list(items)


def _for_each(value: Value, arguments: Sequence[Value], runtime: Runtime) -> Value:
    if not arguments:
        raise no_overload("ForEach", 0)
    first = plain(arguments[0])
    out: list[Value] = []
    for item in _items_of(value):
        if type(first) is ScriptBlock:
            result = runtime.call_with_underbar(first, item, arguments[1:])
        elif isinstance(first, DotNetType):
            result = cast(item, first)
        else:
            result = _by_name(item, to_string(first), arguments[1:], runtime)
        if result is NOTHING:
            continue
        parts = enumerate_value(result)
        out.extend([result] if parts is None else parts)
    return Collection(out, PS_OBJECT)


def _by_name(item: Value, name: str, arguments: Sequence[Value], runtime: Runtime) -> Value:
    member = MISSING if item is None else lookup(item, name, runtime)
    if type(member) is PSMethod:
        return invoke_member(item, name, arguments, runtime)
    if arguments:
        set_member(item, name, arguments[0], runtime)
        return NOTHING
    return get_member(item, name, runtime)


def _where(value: Value, arguments: Sequence[Value], runtime: Runtime) -> Value:
    if not arguments:
        raise no_overload("Where", 0)
    mode = to_string(arguments[1]).lower() if len(arguments) > 1 else "default"
    count = int(cast(arguments[2], INT32)) if len(arguments) > 2 else 0
    block = plain(arguments[0])
    if type(block) is not ScriptBlock:
        raise Refusal("member", "Where()", "with a condition that is not a script block")
    items = _items_of(value)

    def test(item: Value) -> bool:
        return to_bool(runtime.call_with_underbar(block, item))

    return _where_result(items, test, mode, count)


def _where_result(items: list[Value], test: Any, mode: str, count: int) -> Value:
    match mode:
        case "default":
            return Collection((item for item in items if test(item)), PS_OBJECT)
        case "first":
            found: list[Value] = []
            for item in items:
                if test(item):
                    found.append(item)
                    if len(found) >= max(count, 1):
                        break
        case "last":
            found = [item for item in items if test(item)][-max(count, 1) :]
        case "skipuntil":
            at = next((index for index, item in enumerate(items) if test(item)), len(items))
            found = items[at:] if count == 0 else items[at : at + count]
        case "until":
            at = next((index for index, item in enumerate(items) if test(item)), len(items))
            found = items[:at] if count == 0 else items[: min(at, count)]
        case "split":
            flags = [test(item) for item in items]
            yes = [item for item, flag in zip(items, flags, strict=True) if flag]
            no = [item for item, flag in zip(items, flags, strict=True) if not flag]
            if count:
                no = yes[count:] + no
                yes = yes[:count]
            return Array([Collection(yes, PS_OBJECT), Collection(no, PS_OBJECT)])
        case _:
            raise Refusal("member", f"Where(..., {mode})")
    return Collection(found, PS_OBJECT)


# -- indexing


def index_value(value: Value, key: Value, runtime: Runtime) -> Value:
    """`$value[key]`; several keys give several values."""
    if value is None or value is NOTHING:
        raise RuntimeException("Cannot index into a null array.", "NullArray", "InvalidOperation")
    bare = value.base if type(value) is Decorated else value
    if key is NOTHING:
        key = None
    if isinstance(bare, _Mapping):
        return _index_mapping(bare, key)
    keys = enumerate_value(key) if not isinstance(key, str) else None
    if keys is not None:
        return _index_many(bare, keys, runtime)
    if key is None:
        raise RuntimeException(
            "Index operation failed; the array index evaluated to null.", "NullArrayIndex", "InvalidOperation"
        )
    indexable = _positions(bare)
    if indexable is None:
        return _index_other(bare, key, runtime)
    return _item_at(bare, indexable, key, runtime)


def _positions(value: Value) -> Any:
    if isinstance(value, (Array, ByteArray, GenericList, ArrayList)) or type(value) is str:
        return value
    return None


def _index_many(value: Value, keys: Iterable[Value], runtime: Runtime) -> Value:
    out: list[Value] = []
    sequence = _positions(value)
    if sequence is None and type(type_of(value).find("Item")) is not Method:
        return _index_other(value, Array(keys), runtime)
    for key in keys:
        if sequence is None:
            out.append(index_value(value, key, runtime))
            continue
        position = int(cast(key, INT32))
        if -len(sequence) <= position < len(sequence):
            out.append(_boxed(sequence, position))
        elif runtime.strict >= 3:
            raise IndexOutOfRangeException
    return Array(out)


def _boxed(sequence: Any, position: int) -> Value:
    if type(sequence) is ByteArray:
        return BOXED_BYTES[sequence[position]]
    if type(sequence) is str:
        return Char(sequence[position])
    return sequence[position]


def _item_at(value: Value, sequence: Any, key: Value, runtime: Runtime) -> Value:
    try:
        position = key if type(key) is int else int(cast(key, INT32))
    except RuntimeException:
        if runtime.strict >= 3:
            raise
        return None
    length = len(sequence)
    if position < 0:
        position += length
    if 0 <= position < length:
        return _boxed(sequence, position)
    if isinstance(value, (GenericList, ArrayList)):
        if runtime.strict >= 3:
            raise ArgumentOutOfRangeException(
                "index",
                "Index was out of range. Must be non-negative and less than the size of the collection.",
            )
        return None
    if runtime.strict >= 3:
        raise IndexOutOfRangeException
    return None


def _index_mapping(table: _Mapping, key: Value) -> Value:
    key = plain(key)
    if isinstance(key, Array) and not table.has(key):
        return Array(_index_mapping(table, each) for each in key)
    if isinstance(table, OrderedDictionary) and type(key) is int:
        return table.at(key) if -len(table) <= key < len(table) else None
    if key is None:
        raise RuntimeException(
            "Index operation failed; the array index evaluated to null.", "NullArrayIndex", "InvalidOperation"
        )
    return table.get(key)


def _index_other(value: Value, key: Value, runtime: Runtime) -> Value:
    kind = type_of(value)
    item = kind.find("Item")
    if type(item) is Method:
        return call(item, (value,), [key], runtime, kind)
    if kind.knows_absence("item") and type(key) in NUMBER_CLASSES and key in (0, -1):
        return value  # one object may be indexed like a list of one
    raise Refusal("member", f"{kind.name}[]", "an index")


def set_index(value: Value, key: Value, new: Value, runtime: Runtime) -> None:
    """`$value[key] = new`."""
    if value is None or value is NOTHING:
        raise RuntimeException("Cannot index into a null array.", "NullArray", "InvalidOperation")
    if key is NOTHING:
        key = None
    bare = plain(value)
    if isinstance(bare, _Mapping):
        _set_key(bare, key, new)
    elif isinstance(bare, (Array, ByteArray, GenericList, ArrayList)):
        _set_position(bare, key, new)
    else:
        raise Refusal("member", f"{type_of(bare).name}[] = ...", "an index")


def _set_position(sequence: Any, key: Value, new: Value) -> None:
    if key is None:
        raise RuntimeException(
            "Index operation failed; the array index evaluated to null.", "NullArrayIndex", "InvalidOperation"
        )
    position = int(cast(key, INT32))
    if position < 0:
        position += len(sequence)
    if not 0 <= position < len(sequence):
        if isinstance(sequence, (Array, ByteArray)):
            raise IndexOutOfRangeException
        raise ArgumentOutOfRangeException(
            "index", "Index was out of range. Must be non-negative and less than the size of the collection."
        )
    element = sequence.element
    sequence[position] = new if element is OBJECT else cast(new, element)


def _set_key(table: _Mapping, key: Value, new: Value) -> None:
    key = plain(key)
    if key is None:
        raise RuntimeException(
            "Index operation failed; the array index evaluated to null.", "NullArrayIndex", "InvalidOperation"
        )
    if isinstance(table, OrderedDictionary) and type(key) is int:
        _set_ordered_position(table, key, new)
        return
    table.put(key, new)


def _set_ordered_position(table: OrderedDictionary, position: int, new: Value) -> None:
    if not 0 <= position < len(table):
        raise ArgumentOutOfRangeException("index")
    folded = list(table.table)[position]
    table.table[folded] = (table.table[folded][0], new)


# -- what every object answers


class PSObjectView(Instance):
    """`$x.PSObject`: the object seen from outside. Members are declared in types/psobject.py."""

    def __init__(self, target: Value) -> None:
        self.target = target

    def __str__(self) -> str:
        # `psobject {Members, Properties, …}`: all members by name, of which the lab knows only a part.
        raise Refusal("member", "PSObject", "as text")


def _psobject(value: Value, runtime: Runtime) -> Value:
    return PSObjectView(value)


def _type_names(value: Value, runtime: Runtime) -> Value:
    return type_names_list(value)


class TypeNameList(Collection):
    """PSObject.TypeNames: a list of names that stays connected with its object: `source` is where it keeps them."""

    source: list[str]


def type_names_list(value: Value) -> Value:
    """The live list of an object's type names."""
    found = extension_of(value)
    if found is None or found.type_names is None:
        names = type_names_of(value)
        if found is None and isinstance(value, Instance):
            from winboot_lab.engine.values import Extension

            found = value.extension = Extension()
        if found is not None:
            found.type_names = names
        return _connected(names)
    return _connected(found.type_names)


def _connected(names: list[str]) -> Value:
    view = TypeNameList((), STRING)
    view.source = names
    view.extend(names)
    return view


_INTRINSIC = {
    "psobject": _psobject,
    "psbase": lambda value, runtime: BaseView(value) if isinstance(value, _Mapping) else plain(value),
    "psextended": _psobject,
    "psadapted": lambda value, runtime: plain(value),
    "pstypenames": _type_names,
}


# -- objects from hashtables, for casts


def _make_object(target: DotNetType, value: Value) -> Value:
    """A cast to a type with constructors: from one fitting argument, or from a hashtable of properties."""
    constructors = target.constructors
    if not constructors.overloads and target.definition is not None:
        constructors = target.definition.constructors
    if not constructors.overloads or target.kind in ("static", "interface") or _is_open(target):
        return NOT_CONVERTED
    leading: tuple[Value, ...] = (target,) if target.definition is not None else ()
    if isinstance(value, (Hashtable, OrderedDictionary, PSCustomObject)):
        return _from_properties(target, value, leading)
    for overload in constructors.overloads:
        types = overload.types(target)
        if overload.least <= 1 <= len(overload.slots) and _accepts(types[0], value):
            before = (_runtime_of(target), *leading) if overload.effect else leading
            try:
                return overload.function(*before, convert(value, types[0]))
            except DotNetException as cause:
                raise conversion.failure(value, target, "InvalidCastConstructorException", cause) from None
    return NOT_CONVERTED


def _runtime_of(target: DotNetType) -> Runtime:
    runtime = RUNTIME.get()
    if runtime is None:
        raise Refusal("type", target.name, "made by a cast outside a script")
    return runtime


def _is_open(kind: DotNetType) -> bool:
    """A generic definition without arguments, which has no instances."""
    return kind.definition is None and kind.name[-2:-1] == "`"


def _accepts(kind: DotNetType, value: Value) -> bool:
    source = type_of(value)
    if source.is_a(kind) and kind is not OBJECT:
        return True
    if kind.kind == "array" and enumerate_value(value) is not None:
        return True
    if kind.name in ("System.Collections.IEnumerable", "System.Collections.ICollection"):
        return enumerate_value(value) is not None
    return False


def _from_properties(target: DotNetType, value: Value, leading: tuple[Value, ...]) -> Value:
    empty = next((overload for overload in target.constructors.overloads if overload.least == 0), None)
    if empty is None or empty.effect:
        return NOT_CONVERTED
    made = empty.function(*leading)
    entries = value.items()
    for key, item in entries:
        name = to_string(key)
        member = target.find(name)
        if type(member) is not Property or member.set is None:
            raise Refusal("member", f"{target.name}.{name} = ...")
        member.set(made, convert(item, _property_type(member, made)))
    return made


conversion.object_maker = _make_object
