"""System.Object, Enum, Array, Type: what every value answers."""

from __future__ import annotations

import functools
from collections.abc import Callable

from winboot_lab.engine.comparison import compare
from winboot_lab.engine.convert import cast, convert, new_array
from winboot_lab.engine.dotnet import (
    ARRAY,
    ENUM,
    OBJECT,
    RUNTIME_TYPE,
    RUNTIME_TYPE_BASE,
    VALUE_TYPE,
    DotNetType,
    Method,
    Property,
    Runtime,
    array_of,
    close_generic,
    is_generic_definition,
)
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
    IndexOutOfRangeException,
    RankException,
)
from winboot_lab.engine.formatting import dotnet_text, format_enum
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.typenames import try_find_type
from winboot_lab.engine.types.collections import order_by
from winboot_lab.engine.values import (
    NULL_TYPE,
    STRING,
    Array,
    ByteArray,
    Enumerator,
    EnumValue,
    Instance,
    MultiArray,
    PSCustomObject,
    Value,
    enumerate_value,
    key_of,
    plain,
    type_of,
)


class PlainObject(Instance):
    """`[object]::new()`: nothing but identity."""

    dotnet_type = OBJECT


OBJECT.constructor()(PlainObject)
OBJECT.method("ToString()")(dotnet_text)
OBJECT.method("GetType()")(type_of)
VALUE_TYPE.complete()


@OBJECT.method("Equals(object obj)")
def same_object(self: Value, other: Value) -> bool:
    """.NET's Equals: value types and strings by content (and type), the rest by identity."""
    if isinstance(self, PSCustomObject):
        return False
    return bool(key_of(self) == key_of(plain(other)))


@OBJECT.method("GetHashCode()")
def _hash_code(self: Value) -> int:
    if type(self) is int:
        return self
    if type(self) is bool:
        return int(self)
    raise Refusal("member", f"{type_of(self).name}.GetHashCode()")


@OBJECT.static_method("Equals(object objA, object objB)")
def _static_equals(first: Value, second: Value) -> bool:
    if first is None or second is None or plain(first) is plain(second):
        return bool(plain(first) is plain(second))
    return same_object(first, second)


OBJECT.static_method("ReferenceEquals(object objA, object objB)")(
    lambda first, second: plain(first) is plain(second)
)

# -- enums


@ENUM.method("ToString()", "ToString(string format)")
def _enum_text(self: EnumValue, spec: str = "") -> str:
    return format_enum(self, spec)


@ENUM.method("HasFlag(Enum flag)")
def _has_flag(self: EnumValue, flag: EnumValue) -> bool:
    return self.number & flag.number == flag.number


@ENUM.method("CompareTo(object target)")
def _enum_compare(self: EnumValue, other: Value) -> int:
    return compare(self, other)


def _underlying(self: EnumValue) -> Value:
    kind = self.dotnet_type.underlying
    assert kind is not None
    return convert(self.number, kind)


ENUM.prop("value__", "object", _underlying)
ENUM.refuses("GetTypeCode")


@ENUM.static_method("GetNames(type enumType)")
def _names(kind: DotNetType) -> Array:
    by_value = sorted(kind.constants.items(), key=lambda item: item[1] & 0xFFFFFFFFFFFFFFFF)
    return Array((name for name, _ in by_value), STRING)


@ENUM.static_method("GetValues(type enumType)")
def _values(kind: DotNetType) -> Array:
    numbers = sorted(kind.constants.values(), key=lambda number: number & 0xFFFFFFFFFFFFFFFF)
    return Array((EnumValue(kind, number) for number in numbers), kind)


@ENUM.static_method("GetName(type enumType, object value)")
def _name(kind: DotNetType, value: Value) -> Value:
    number = value.number if isinstance(value, EnumValue) else int(cast(value, kind).number)
    return next((name for name, known in kind.constants.items() if known == number), None)


@ENUM.static_method("IsDefined(type enumType, object value)")
def _is_defined(kind: DotNetType, value: Value) -> bool:
    value = plain(value)
    if isinstance(value, str):
        return value in kind.constants
    number = value.number if isinstance(value, EnumValue) else int(value)
    return number in kind.constants.values()


@ENUM.static_method(
    "Parse(type enumType, string value)", "Parse(type enumType, string value, bool ignoreCase)"
)
def _parse(kind: DotNetType, text: str, ignore_case: bool = False) -> Value:
    number = 0
    if not text.strip():
        raise ArgumentException("Must specify valid information for parsing in the string.", None)
    for part in text.split(","):
        number |= _parse_part(kind, part.strip(), ignore_case)
    return EnumValue(kind, number)


def _parse_part(kind: DotNetType, name: str, ignore_case: bool) -> int:
    if name.lstrip("+-").isdigit():
        return int(name)
    for known, number in kind.constants.items():
        if known == name or (ignore_case and known.lower() == name.lower()):
            return number
    raise ArgumentException(f"Requested value '{name}' was not found.")


@ENUM.static_method("ToObject(type enumType, object value)")
def _to_object(kind: DotNetType, value: Value) -> Value:
    return EnumValue(kind, int(plain(value)))


ENUM.static_method("GetUnderlyingType(type enumType)")(lambda kind: kind.underlying)


@ENUM.static_method(
    "TryParse(string value, out object result)", "TryParse(string value, bool ignoreCase, out object result)"
)
def _try_parse(text: str | None, *rest: Value) -> bool:
    out = rest[-1]
    if not isinstance(out.value, EnumValue):  # the enum is inferred from what the variable holds
        raise Refusal("member", "[Enum]::TryParse()", "into a variable that holds no enum")
    kind = out.value.dotnet_type
    try:
        out.value = _parse(kind, text or "", len(rest) > 1 and rest[0])
    except ArgumentException:
        out.value = EnumValue(kind, 0)
        return False
    return True


ENUM.refuses("Format", "GetTypeCode")

# -- arrays

ARRAY.prop("Length", "int", lambda self: len(self.items) if isinstance(self, MultiArray) else len(self))
ARRAY.prop("Count", "int", lambda self: len(self.items) if isinstance(self, MultiArray) else len(self))
ARRAY.prop("LongLength", "long", lambda self: convert(len(self), _long()))
ARRAY.prop("Rank", "int", lambda self: len(self.lengths) if isinstance(self, MultiArray) else 1)
ARRAY.prop("SyncRoot", "object", lambda self: self)
ARRAY.prop("IsReadOnly", "bool", lambda self: False)
ARRAY.prop("IsFixedSize", "bool", lambda self: True)
ARRAY.prop("IsSynchronized", "bool", lambda self: False)


def _long() -> DotNetType:
    from winboot_lab.engine.values import INT64

    return INT64


@ARRAY.method("GetLength(int dimension)")
def _length_of(self: Value, dimension: int) -> int:
    lengths = self.lengths if isinstance(self, MultiArray) else (len(self),)
    if not 0 <= dimension < len(lengths):
        raise IndexOutOfRangeException
    return int(lengths[dimension])


ARRAY.method("GetUpperBound(int dimension)")(lambda self, dimension: _length_of(self, dimension) - 1)
ARRAY.method("GetLowerBound(int dimension)")(lambda self, dimension: 0 * _length_of(self, dimension))


@ARRAY.method("GetValue(int index)")
def _get_value(self: Value, index: int) -> Value:
    if not 0 <= index < len(self):
        raise IndexOutOfRangeException
    return list(enumerate_value(self) or ())[index]


@ARRAY.method("void SetValue(object value, int index)")
def _set_value(self: Value, value: Value, index: int) -> None:
    if not 0 <= index < len(self):
        raise IndexOutOfRangeException
    self[index] = convert(value, self.element)


@ARRAY.method("Clone()")
def copy_array(self: Value) -> Value:
    """A shallow copy."""
    return ByteArray(self) if isinstance(self, ByteArray) else Array(self, self.element)


@ARRAY.method("void CopyTo(Array array, int index)")
def _copy_to(self: Value, target: Value, index: int) -> None:
    if index < 0 or index + len(self) > len(target):
        raise ArgumentException(
            "Destination array was not long enough. Check destIndex and length, and the array's lower bounds."
        )
    target[index : index + len(self)] = list(self)


ARRAY.method("GetEnumerator()")(lambda self: Enumerator(enumerate_value(self) or ()))
ARRAY.method("void Initialize()")(lambda self: None)
ARRAY.method("Contains(object value)")(
    lambda self, value: any(
        same_object(item, value) for item in enumerate_value(self) or () if item is not None
    )
)
FIXED_SIZE = "Collection was of a fixed size."


def _fixed(name: str) -> None:
    from winboot_lab.engine.exceptions import NotSupportedException

    @ARRAY.method(name)
    def refuse(*_: Value) -> Value:
        raise NotSupportedException(FIXED_SIZE)


for _signature in (
    "Add(object value)",
    "Remove(object value)",
    "RemoveAt(int index)",
    "Insert(int index, object value)",
):
    _fixed(_signature)


@ARRAY.method("void Clear()")
def _clear_all(self: Value) -> None:
    _clear(self, 0, len(self))


def index_of(items: Value, value: Value, start: int = 0, count: int | None = None) -> int:
    """The first position of an equal item, or -1."""
    every = list(enumerate_value(items) or ())
    end = len(every) if count is None else start + count
    key = key_of(value)
    return next((at for at in range(start, end) if key_of(every[at]) == key), -1)


ARRAY.method("IndexOf(object value)")(index_of)


@ARRAY.static_method(
    "IndexOf(Array array, object value)",
    "IndexOf(Array array, object value, int startIndex)",
    "IndexOf(Array array, object value, int startIndex, int count)",
)
def _static_index_of(array: Value, value: Value, start: int = 0, count: int | None = None) -> int:
    if array is None:
        raise ArgumentNullException("array")
    value = _to_element(array, value)
    return index_of(array, value, start, count)


def _to_element(array: Value, value: Value) -> Value:
    return value


@ARRAY.static_method("LastIndexOf(Array array, object value)")
def _last_index_of(array: Value, value: Value) -> int:
    every = list(enumerate_value(array) or ())
    key = key_of(value)
    return next((at for at in range(len(every) - 1, -1, -1) if key_of(every[at]) == key), -1)


@ARRAY.static_method("void Reverse(Array array)", "void Reverse(Array array, int index, int length)")
def _reverse(array: Value, index: int = 0, length: int | None = None) -> None:
    if array is None:
        raise ArgumentNullException("array")
    end = len(array) if length is None else index + length
    array[index:end] = array[index:end][::-1]


@ARRAY.static_method(
    "void Sort(Array array)",
    "void Sort(Array array, System.Collections.IComparer comparer)",
    effect=True,
)
def _sort(runtime: Runtime, array: Value, comparer: Value = None) -> None:
    if array is None:
        raise ArgumentNullException("array")
    if isinstance(array, ByteArray):
        array[:] = bytes(sorted(array))
        return
    array.sort(key=order_by(comparer, runtime))


@ARRAY.static_method("void Sort(Array keys, Array items)")
def _sort_both(keys: Value, items: Value) -> None:
    key = order_by(None, None)
    order = sorted(range(len(keys)), key=lambda at: key(keys[at]))
    keys[:] = [keys[at] for at in order]
    items[: len(order)] = [items[at] for at in order]


@ARRAY.static_method("void Copy(Array sourceArray, Array destinationArray, int length)")
def _copy(source: Value, target: Value, length: int) -> None:
    _copy_range(source, 0, target, 0, length)


@ARRAY.static_method(
    "void Copy(Array sourceArray, int sourceIndex, Array destinationArray, int destinationIndex, int length)"
)
def _copy_range(source: Value, at: int, target: Value, to: int, length: int) -> None:
    if source is None or target is None:
        raise ArgumentNullException("sourceArray" if source is None else "destinationArray")
    if at < 0 or to < 0 or length < 0:
        raise ArgumentOutOfRangeException("length", "Non-negative number required.")
    if at + length > len(source):
        raise ArgumentException(
            "Source array was not long enough. Check srcIndex and length, and the array's lower bounds."
        )
    if to + length > len(target):
        raise ArgumentException(
            "Destination array was not long enough. Check destIndex and length, and the array's lower bounds."
        )
    if isinstance(target, ByteArray):
        target[to : to + length] = bytes(source[at : at + length])
    else:
        target[to : to + length] = [convert(item, target.element) for item in _slice(source, at, length)]


def _slice(source: Value, at: int, length: int) -> list[Value]:
    return list(enumerate_value(source) or ())[at : at + length]


@ARRAY.static_method("void Clear(Array array, int index, int length)")
def _clear(array: Value, index: int, length: int) -> None:
    from winboot_lab.engine.members import default_of

    if isinstance(array, MultiArray):
        array.items[index : index + length] = [default_of(array.element)] * length
        return
    if index < 0 or index + length > len(array):
        raise IndexOutOfRangeException
    if isinstance(array, ByteArray):
        array[index : index + length] = bytes(length)
    else:
        array[index : index + length] = [default_of(array.element) for _ in range(length)]


@ARRAY.static_method("CreateInstance(type elementType, int length)")
def _create(kind: DotNetType, length: int) -> Value:
    from winboot_lab.engine.members import default_of

    return new_array([default_of(kind) for _ in range(length)], kind)


@ARRAY.static_method("BinarySearch(Array array, object value)")
def _binary_search(array: Value, value: Value) -> int:
    low, high = 0, len(array) - 1
    while low <= high:
        middle = (low + high) // 2
        order = compare(array[middle], value)
        if order == 0:
            return middle
        if order < 0:
            low = middle + 1
        else:
            high = middle - 1
    return ~low


def _by_predicate(name: str, choose: Callable[[list[Value], Callable[[Value], bool]], Value]) -> None:
    @ARRAY.static_method(f"{name}(Array array, Delegate match)", effect=True)
    def run(runtime: Runtime, array: Value, delegate: Value) -> Value:
        items = list(enumerate_value(array) or ())
        test = functools.partial(_holds, runtime, delegate)
        found = choose(items, test)
        return Array(found, array.element) if isinstance(found, list) else found


def _holds(runtime: Runtime, delegate: Value, item: Value) -> bool:
    from winboot_lab.engine.convert import to_bool

    return to_bool(delegate.call(runtime, [item]))


_by_predicate("Find", lambda items, test: next((item for item in items if test(item)), None))
_by_predicate("FindAll", lambda items, test: [item for item in items if test(item)])
_by_predicate("FindIndex", lambda items, test: next((at for at, item in enumerate(items) if test(item)), -1))
_by_predicate("FindLast", lambda items, test: next((item for item in reversed(items) if test(item)), None))
_by_predicate("Exists", lambda items, test: any(test(item) for item in items))
_by_predicate("TrueForAll", lambda items, test: all(test(item) for item in items))


@ARRAY.static_method("void ForEach(Array array, Delegate action)", effect=True)
def _for_each(runtime: Runtime, array: Value, action: Value) -> None:
    for item in list(enumerate_value(array) or ()):
        action.call(runtime, [item])


@ARRAY.static_method("ConvertAll(Array array, Delegate converter)", effect=True)
def _convert_all(runtime: Runtime, array: Value, converter: Value) -> Value:
    made = [converter.call(runtime, [item]) for item in list(enumerate_value(array) or ())]
    kind = converter.dotnet_type.arguments[-1] if converter.dotnet_type.arguments else OBJECT
    return new_array((convert(item, kind) for item in made), kind)


ARRAY.refuses_static("AsReadOnly ConstrainedCopy FindLastIndex Empty")
ARRAY.statics["resize"] = Method("Resize")


@ARRAY.static_method("void Resize(ref object array, int newSize)")
def _resize(reference: Value, size: int) -> None:
    from winboot_lab.engine.members import default_of

    array = reference.value
    if array is None:
        reference.value = Array([None] * size)
        return
    if not isinstance(array, (Array, ByteArray)):
        raise RankException
    items = list(array)[:size] + [default_of(array.element) for _ in range(size - len(array))]
    reference.value = new_array(items, array.element)


# -- types as objects

_TYPE = RUNTIME_TYPE_BASE


_TYPE.prop("Name", "string", lambda self: self.short_name)
_TYPE.prop("Namespace", "string", lambda self: self.namespace)
_TYPE.prop("BaseType", "type", lambda self: self.base)
_TYPE.prop("IsEnum", "bool", lambda self: self.kind == "enum")
_TYPE.prop("IsArray", "bool", lambda self: self.kind == "array")
_TYPE.prop(
    "IsClass",
    "bool",
    lambda self: self.kind in ("class", "array", "static", "abstract") and self is not VALUE_TYPE,
)
_TYPE.prop("IsValueType", "bool", lambda self: self.is_value_type)
_TYPE.prop("IsInterface", "bool", lambda self: self.kind == "interface")
_TYPE.prop("IsGenericType", "bool", lambda self: bool(self.arguments))
_TYPE.prop("IsPublic", "bool", lambda self: True)
_TYPE.prop("IsPrimitive", "bool", lambda self: self.name in _PRIMITIVES)
_TYPE.prop("UnderlyingSystemType", "type", lambda self: self)
_TYPE.prop("GenericTypeArguments", "type[]", lambda self: Array(self.arguments, _TYPE))

_PRIMITIVES: frozenset[str] = frozenset(
    "System." + name
    for name in [
        "Boolean",
        "Byte",
        "SByte",
        "Int16",
        "UInt16",
        "Int32",
        "UInt32",
        "Int64",
        "UInt64",
        "IntPtr",
        "UIntPtr",
        "Char",
        "Double",
        "Single",
    ]
)


def _full_name(kind: DotNetType) -> str:
    if not kind.arguments:
        return kind.name
    library = ", mscorlib, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089"
    inner = ",".join(f"[{_full_name(argument)}{library}]" for argument in kind.arguments)
    return f"{kind.name.partition('[')[0]}[{inner}]"


_TYPE.prop("FullName", "string", _full_name)


_TYPE.method("ToString()")(lambda self: self.name)
_TYPE.method("GetElementType()")(lambda self: self.element)
_TYPE.method("GetGenericArguments()")(lambda self: Array(self.arguments, _TYPE))
_TYPE.method("IsAssignableFrom(type c)")(lambda self, other: other is not None and other.is_a(self))
_TYPE.method("IsSubclassOf(type c)")(lambda self, other: self is not other and other in list(self.lineage()))
_TYPE.method("IsInstanceOfType(object o)")(
    lambda self, value: value is not None and type_of(value).is_a(self)
)
_TYPE.method("GetEnumNames()")(_names)
_TYPE.method("GetEnumValues()")(_values)
_TYPE.method("GetEnumName(object value)")(_name)
_TYPE.method("GetEnumUnderlyingType()")(lambda self: self.underlying)
_TYPE.method("MakeArrayType()")(array_of)
_TYPE.method("GetInterfaces()")(lambda self: Array(dict.fromkeys(self.all_interfaces()), _TYPE))
_TYPE.method("Equals(type o)", "Equals(object o)")(lambda self, other: self is other)


@_TYPE.method("MakeGenericType(params type[] typeArguments)")
def _make_generic(self: DotNetType, arguments: Value) -> DotNetType:
    key = is_generic_definition(self.name.partition("`")[0])
    if key is None:
        raise Refusal("member", "MakeGenericType")
    return close_generic(key, tuple(arguments))


class MemberView(Instance):
    """A PropertyInfo or MethodInfo, as far as its name."""

    def __init__(self, name: str, type_name: str) -> None:
        self.name = name
        self.type_name = type_name

    @property
    def dotnet_type(self) -> DotNetType:
        from winboot_lab.engine.values import structured_type

        return structured_type(self.type_name)


@_TYPE.method("GetMethod(string name)", "GetMethod(string name, type[] types)")
def _get_method(self: DotNetType, name: str, _types: Value = None) -> Value:
    found = self.find(name) or self.find_static(name)
    if isinstance(found, Method) and found.name == name:
        return MemberView(found.name, "System.Reflection.MethodInfo")
    if found is None and not self.knows_absence(name):
        raise Refusal("member", f"{self.name}.{name}")
    return None


@_TYPE.method("GetProperty(string name)")
def _get_property(self: DotNetType, name: str) -> Value:
    found = self.find(name) or self.find_static(name)
    if isinstance(found, Property) and found.name == name:
        return MemberView(found.name, "System.Reflection.PropertyInfo")
    if found is None and not self.knows_absence(name):
        raise Refusal("member", f"{self.name}.{name}")
    return None


from winboot_lab.engine.dotnet import dotnet  # noqa: E402

for _view in ("System.Reflection.MethodInfo", "System.Reflection.PropertyInfo"):
    dotnet(_view).prop("Name", "string", lambda self: self.name)

_TYPE.refuses(
    "Assembly AssemblyQualifiedName Attributes ContainsGenericParameters CustomAttributes DeclaredConstructors "
    "DeclaredEvents DeclaredFields DeclaredMembers DeclaredMethods DeclaredNestedTypes DeclaredProperties DeclaringMethod "
    "DeclaringType GUID GenericParameterAttributes GenericParameterPosition GenericTypeParameters HasElementType "
    "ImplementedInterfaces IsAbstract IsAnsiClass IsAutoClass IsAutoLayout IsByRef IsCOMObject IsConstructedGenericType "
    "IsContextful IsExplicitLayout IsGenericParameter IsGenericTypeDefinition IsImport IsLayoutSequential IsMarshalByRef "
    "IsNested IsNestedAssembly IsNestedPrivate IsNestedPublic IsNotPublic IsPointer IsSealed IsSecurityCritical "
    "IsSecuritySafeCritical IsSecurityTransparent IsSerializable IsSpecialName IsUnicodeClass IsVisible MemberType "
    "MetadataToken Module ReflectedType StructLayoutAttribute TypeHandle TypeInitializer AsType FindInterfaces FindMembers "
    "GetArrayRank GetConstructor GetConstructors GetCustomAttributes GetDefaultMembers GetEvent GetEvents GetField GetFields "
    "GetGenericParameterConstraints GetGenericTypeDefinition GetInterface GetInterfaceMap GetMember GetMembers GetMethods "
    "GetNestedType GetNestedTypes GetProperties GetTypeInfo InvokeMember IsDefined IsEnumDefined IsEquivalentTo "
    "MakeByRefType MakePointerType GetTypeCode"
)


@_TYPE.static_method("GetType(string typeName)", "GetType(string typeName, bool throwOnError)")
def _get_type(name: str, throw: bool = False) -> Value:
    found = try_find_type(name)
    if found is None and throw:
        raise ArgumentException(f"Could not load type '{name}'.")
    if found is not None and found.name.lower() != name.lower():
        raise Refusal("member", "[type]::GetType()", "a short name")
    return found


_TYPE.static_field("EmptyTypes", "type[]", Array((), _TYPE))
RUNTIME_TYPE.refuses("TypeHandle")
NULL_TYPE.complete()
