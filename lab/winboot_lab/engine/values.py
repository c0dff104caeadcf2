"""PowerShell values in Python: what a variable can hold, what type it has, what a pipeline takes apart.

For the author of a cmdlet
--------------------------
    $null                None                    "no output" (an empty pipeline in a variable): NOTHING
    Boolean, Int32       bool, int               exactly these classes; other integers are subclasses: Int64(5), Byte(3) ...
    Double, Single       float, Single           Decimal: decimal.Decimal
    String, Char         str, Char               Char("x") is a str subclass: ask `type(v) is str`, not isinstance
    object[] / T[]       Array([...]) / Array([...], INT32)       byte[]: ByteArray(b"...")
    List[T], ArrayList   GenericList([...], STRING), ArrayList([...])
    @{} / [ordered]@{}   Hashtable() / OrderedDictionary(): get(key), put(key, value), items()
    [pscustomobject]     PSCustomObject.of({"Name": 1})           .get("name"), .put("Name", 2), .items()
    enum values          EnumValue(type, number) or enum_value("System.DayOfWeek", "Monday")
    objects of machine   from_plain(record): Record -> Structured (named type, ordered properties)
    DateTime, TimeSpan   moments.DateTime, moments.TimeSpan
    exceptions, records  exceptions.py: `raise RuntimeException("message", id="SomeId", category="InvalidOperation")`
                         raises a PowerShell error; any DotNetException is one
    types                DotNetType; type_of(value); find_type("int[]") finds by PowerShell's rules

Objects never compare by content here: `==` on arrays is Python's list equality, identity is `is`; PowerShell's `-eq` lives
in operators.py. A decorated scalar (Add-Member on a string) is a `Decorated`: `plain(value)` takes the wrapper off.

`enumerate_value(value)` says what a pipeline takes apart: arrays, lists, queues, sets; no strings, dictionaries, XML nodes.

More than 800 lines: the types name one another, and apart they would import in a circle.
"""

from __future__ import annotations

import datetime as py
import ipaddress
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from winboot_lab.engine import exceptions, moments
from winboot_lab.engine.dotnet import (
    ARRAY,
    OBJECT,
    VALUE_TYPE,
    DotNetType,
    Reference,
    Value,
    accelerate,
    array_of,
    class_type,
    close_generic,
    dotnet,
    generic,
    lookup,
    named,
)
from winboot_lab.engine.exceptions import DotNetException, ErrorDetails, ErrorRecord, RuntimeException
from winboot_lab.engine.moments import DateTime, DateTimeOffset, TimeSpan
from winboot_lab.engine.uri import Uri

__all__ = [
    "NOTHING",
    "OBJECT",
    "VALUE_TYPE",
    "Array",
    "ArrayList",
    "BigInteger",
    "Byte",
    "ByteArray",
    "Char",
    "DateTime",
    "DateTimeOffset",
    "Decimal",
    "Decorated",
    "DotNetException",
    "DotNetType",
    "EnumValue",
    "ErrorDetails",
    "ErrorRecord",
    "Extension",
    "GenericList",
    "Hashtable",
    "Instance",
    "Int16",
    "Int64",
    "NoteProperty",
    "OrderedDictionary",
    "PSCustomObject",
    "Reference",
    "RuntimeException",
    "SByte",
    "ScriptBlock",
    "SecureString",
    "Single",
    "Structured",
    "TimeSpan",
    "UInt16",
    "UInt32",
    "UInt64",
    "Uri",
    "Value",
    "array_of",
    "close_generic",
    "enum_value",
    "enumerate_value",
    "from_plain",
    "is_enumerable",
    "named",
    "plain",
    "type_of",
]


# -- nothing


class Nothing:
    """AutomationNull: the value of a pipeline without output. It behaves as $null, but enumerates to no items."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = Nothing()


# -- numbers and characters


class Int64(int):
    """System.Int64."""


class Int16(int):
    """System.Int16."""


class SByte(int):
    """System.SByte."""


class Byte(int):
    """System.Byte."""


class UInt16(int):
    """System.UInt16."""


class UInt32(int):
    """System.UInt32."""


class UInt64(int):
    """System.UInt64."""


class BigInteger(int):
    """System.Numerics.BigInteger."""


class Single(float):
    """System.Single; the float holds a value that fits 32 bits."""


class Char(str):
    """System.Char: a str of length 1, which is no String to PowerShell."""


BOXED_BYTES = tuple(Byte(number) for number in range(256))
"""Byte values 0 to 255, made once: byte arrays hand these out."""

NULL_TYPE = DotNetType("null", base=OBJECT)
IFORMATTABLE = dotnet("System.IFormattable", kind="interface")
ICONVERTIBLE = dotnet("System.IConvertible", kind="interface")
ICOMPARABLE = dotnet("System.IComparable", kind="interface")
IDISPOSABLE = dotnet("System.IDisposable", kind="interface")
ICLONEABLE = dotnet("System.ICloneable", kind="interface")
IENUMERABLE = dotnet("System.Collections.IEnumerable", kind="interface")
IENUMERATOR = dotnet("System.Collections.IEnumerator", kind="interface")
ICOLLECTION = dotnet("System.Collections.ICollection", kind="interface", interfaces=[IENUMERABLE])
ILIST = dotnet("System.Collections.IList", kind="interface", interfaces=[ICOLLECTION])
IDICTIONARY = dotnet("System.Collections.IDictionary", kind="interface", interfaces=[ICOLLECTION])


def _number(name: str, python: type, *accelerators: str) -> DotNetType:
    return dotnet(
        "System." + name,
        python,
        base=VALUE_TYPE,
        interfaces=[ICOMPARABLE, IFORMATTABLE, ICONVERTIBLE],
        kind="value",
        accelerators=accelerators,
        default=lambda: python(0),
    )


INT32 = _number("Int32", int, "int", "int32")
INT64 = _number("Int64", Int64, "long", "int64")
INT16 = _number("Int16", Int16, "int16")
SBYTE = _number("SByte", SByte, "sbyte")
BYTE = _number("Byte", Byte, "byte")
UINT16 = _number("UInt16", UInt16, "uint16")
UINT32 = _number("UInt32", UInt32, "uint32")
UINT64 = _number("UInt64", UInt64, "uint64")
SINGLE = _number("Single", Single, "float", "single")
DOUBLE = _number("Double", float, "double")
DECIMAL = _number("Decimal", Decimal, "decimal")
BIG_INTEGER = dotnet(
    "System.Numerics.BigInteger",
    BigInteger,
    base=VALUE_TYPE,
    interfaces=[ICOMPARABLE, IFORMATTABLE],
    kind="value",
    accelerators=["bigint"],
    default=lambda: BigInteger(0),
)
BOOLEAN = dotnet(
    "System.Boolean",
    bool,
    base=VALUE_TYPE,
    interfaces=[ICOMPARABLE, ICONVERTIBLE],
    kind="value",
    accelerators=["bool"],
    default=lambda: False,
)
CHAR = dotnet(
    "System.Char",
    Char,
    base=VALUE_TYPE,
    interfaces=[ICOMPARABLE, ICONVERTIBLE],
    kind="value",
    accelerators=["char"],
    default=lambda: Char("\0"),
)
STRING = dotnet(
    "System.String",
    str,
    interfaces=[ICOMPARABLE, ICONVERTIBLE, ICLONEABLE, IENUMERABLE],
    accelerators=["string"],
)
VOID = dotnet("System.Void", base=VALUE_TYPE, kind="value", accelerators=["void"])
DBNULL = dotnet("System.DBNull")
GUID = dotnet(
    "System.Guid",
    uuid.UUID,
    base=VALUE_TYPE,
    interfaces=[IFORMATTABLE, ICOMPARABLE],
    kind="value",
    accelerators=["guid"],
    default=lambda: uuid.UUID(int=0),
)

OBJECT_ARRAY = array_of(OBJECT)
STRING_ARRAY = array_of(STRING)
BYTE_ARRAY = array_of(BYTE)
ARRAY.interfaces = (ILIST, ICLONEABLE)

INTEGER_RANGES: dict[DotNetType, tuple[int, int]] = {
    SBYTE: (-(2**7), 2**7 - 1),
    BYTE: (0, 2**8 - 1),
    INT16: (-(2**15), 2**15 - 1),
    UINT16: (0, 2**16 - 1),
    INT32: (-(2**31), 2**31 - 1),
    UINT32: (0, 2**32 - 1),
    INT64: (-(2**63), 2**63 - 1),
    UINT64: (0, 2**64 - 1),
}
"""Smallest and largest value of each integer type."""

NUMBER_CLASSES: frozenset[type] = frozenset(
    (int, Int64, Int16, SByte, Byte, UInt16, UInt32, UInt64, float, Single, Decimal, BigInteger)
)
"""The Python classes of PowerShell numbers (bool and Char do not count)."""


class DBNull:
    """System.DBNull; there is one, DBNULL_VALUE."""

    def __str__(self) -> str:
        return ""


DBNULL_VALUE = DBNull()


# -- members that PowerShell adds


class NoteProperty:
    """A name with a value."""

    __slots__ = ("name", "value")
    kind: ClassVar[str] = "NoteProperty"

    def __init__(self, name: str, value: Value) -> None:
        self.name = name
        self.value = value


class AliasProperty:
    """Another name of a member."""

    __slots__ = ("convert_to", "name", "target")
    kind: ClassVar[str] = "AliasProperty"

    def __init__(self, name: str, target: str, convert_to: DotNetType | None = None) -> None:
        self.name = name
        self.target = target
        self.convert_to = convert_to


class ScriptProperty:
    """A property computed by script blocks; `$this` is the object."""

    __slots__ = ("getter", "name", "setter")
    kind: ClassVar[str] = "ScriptProperty"

    def __init__(self, name: str, getter: ScriptBlock | None, setter: ScriptBlock | None = None) -> None:
        self.name = name
        self.getter = getter
        self.setter = setter


class ScriptMethod:
    """A method that is a script block; `$this` is the object."""

    __slots__ = ("name", "script")
    kind: ClassVar[str] = "ScriptMethod"

    def __init__(self, name: str, script: ScriptBlock) -> None:
        self.name = name
        self.script = script


class CodeProperty:
    """A property computed in Python (the added properties of 5.1's type data): `get(self)`."""

    __slots__ = ("get", "name")
    kind: ClassVar[str] = "CodeProperty"

    def __init__(self, name: str, get: Callable[[Any], Value]) -> None:
        self.name = name
        self.get = get


class PropertySet:
    """A named group of property names."""

    __slots__ = ("members", "name")
    kind: ClassVar[str] = "PropertySet"

    def __init__(self, name: str, members: Sequence[str]) -> None:
        self.name = name
        self.members = tuple(members)


AddedMember = NoteProperty | AliasProperty | ScriptProperty | ScriptMethod | CodeProperty | PropertySet


class Extension:
    """What PowerShell keeps in addition to an object: members by name (order kept, case ignored) and perhaps type names."""

    __slots__ = ("members", "type_names")

    def __init__(self) -> None:
        self.members: dict[str, AddedMember] = {}
        self.type_names: list[str] | None = None

    def add(self, member: AddedMember) -> None:
        """Add or replace a member."""
        self.members[member.name.lower()] = member

    def find(self, name: str) -> AddedMember | None:
        return self.members.get(name.lower())

    def remove(self, name: str) -> bool:
        """Remove a member; answers whether there was one."""
        return self.members.pop(name.lower(), None) is not None


class Instance:
    """A reference object that can carry added members. Subclasses are registered types or set `dotnet_type`."""

    extension: Extension | None = None


class Decorated:
    """A value without room for added members (a string, a number ...) together with an Extension."""

    __slots__ = ("base", "extension")

    def __init__(self, base: Value, extension: Extension | None = None) -> None:
        self.base = base
        self.extension = extension or Extension()


def plain(value: Value) -> Value:
    """The value without its PSObject wrapper."""
    return value.base if type(value) is Decorated else value


def extension_of(value: Value) -> Extension | None:
    """The added members of a value, or None."""
    return getattr(value, "extension", None)


def decorate(value: Value) -> tuple[Value, Extension]:
    """The value with room for members, and that room. Scalars come back wrapped; objects are their own room."""
    found = extension_of(value)
    if found is not None:
        return value, found
    if hasattr(type(value), "extension"):
        value.extension = Extension()
        return value, value.extension
    wrapped = Decorated(value)
    return wrapped, wrapped.extension


class PSCustomObject(Instance):
    """[pscustomobject]: only added members. `of` makes one from a mapping, keeping its order."""

    extension: Extension

    def __init__(self) -> None:
        self.extension = Extension()

    @classmethod
    def of(cls, properties: Mapping[str, Value], type_name: str | None = None) -> PSCustomObject:
        """A custom object with these note properties; `type_name` goes in front of its type names."""
        made = cls()
        for name, value in properties.items():
            made.extension.members[name.lower()] = NoteProperty(name, value)
        if type_name is not None:
            made.extension.type_names = [type_name, *DEFAULT_CUSTOM_NAMES]
        return made

    def get(self, name: str, default: Value = None) -> Value:
        """The value of a note property."""
        found = self.extension.members.get(name.lower())
        return found.value if isinstance(found, NoteProperty) else default

    def put(self, name: str, value: Value) -> None:
        """Set or add a note property."""
        found = self.extension.members.get(name.lower())
        if isinstance(found, NoteProperty):
            found.value = value
        else:
            self.extension.add(NoteProperty(name, value))

    def items(self) -> Iterator[tuple[str, Value]]:
        """The note properties in order."""
        for member in self.extension.members.values():
            if isinstance(member, NoteProperty):
                yield member.name, member.value


DEFAULT_CUSTOM_NAMES = ("System.Management.Automation.PSCustomObject", "System.Object")
PS_CUSTOM_OBJECT = dotnet("System.Management.Automation.PSCustomObject", PSCustomObject)
PS_OBJECT = dotnet("System.Management.Automation.PSObject", accelerators=["psobject"])
PS_CUSTOM = DotNetType("System.Management.Automation.PSObject", base=OBJECT)
"""What `[pscustomobject]` names: to a script the same type as [psobject], but casting to it makes objects."""
accelerate("pscustomobject", PS_CUSTOM)


class Structured(Instance):
    """An object of a named .NET or CIM type whose properties are data: what the machine's Records become.

    `properties` keeps order and ignores case. Methods, if any, are declared on the .NET type of that name.
    """

    def __init__(
        self, type_name: str, properties: Mapping[str, Value], dotnet_type: DotNetType | None = None
    ) -> None:
        self.type_name = type_name
        self.properties = {name.lower(): NoteProperty(name, value) for name, value in properties.items()}
        self._type = dotnet_type

    @property
    def dotnet_type(self) -> DotNetType:
        if self._type is None:
            self._type = structured_type(self.type_name)
        return self._type

    def get(self, name: str, default: Value = None) -> Value:
        found = self.properties.get(name.lower())
        return default if found is None else found.value

    def put(self, name: str, value: Value) -> None:
        found = self.properties.get(name.lower())
        if found is None:
            self.properties[name.lower()] = NoteProperty(name, value)
        else:
            found.value = value

    def items(self) -> Iterator[tuple[str, Value]]:
        for note in self.properties.values():
            yield note.name, note.value


CIM_INSTANCE = dotnet("Microsoft.Management.Infrastructure.CimInstance", accelerators=["ciminstance"])


def structured_type(name: str) -> DotNetType:
    """The .NET type behind a record's type name (`...CimInstance#MSFT_X` is CimInstance); made when unknown."""
    head = name.partition("#")[0]
    found = lookup(head)
    if found is None:
        found = dotnet(head)
    return found


# -- collections


class Array(list[Any]):
    """A .NET array: fixed length for scripts, an ordinary list for Python. `element` is its element type."""

    element: DotNetType = OBJECT
    extension: Extension | None = None

    def __init__(self, items: Iterable[Value] = (), element: DotNetType = OBJECT) -> None:
        super().__init__(items)
        if element is not OBJECT:
            self.element = element

    @property
    def dotnet_type(self) -> DotNetType:
        return OBJECT_ARRAY if self.element is OBJECT else array_of(self.element)


class ByteArray(bytearray):
    """byte[]. Python sees ints; `enumerate_value` and indexing in operators hand out Byte values."""

    element: ClassVar[DotNetType] = BYTE
    extension: Extension | None = None
    dotnet_type: ClassVar[DotNetType] = BYTE_ARRAY


class ArrayList(list[Any]):
    """System.Collections.ArrayList."""

    element: DotNetType = OBJECT
    extension: Extension | None = None


class GenericList(list[Any]):
    """List[T]."""

    extension: Extension | None = None

    def __init__(self, items: Iterable[Value] = (), element: DotNetType = OBJECT) -> None:
        super().__init__(items)
        self.element = element

    @property
    def dotnet_type(self) -> DotNetType:
        return close_generic(LIST, (self.element,))


class Collection(GenericList):
    """System.Collections.ObjectModel.Collection[T]."""

    @property
    def dotnet_type(self) -> DotNetType:
        return close_generic(COLLECTION, (self.element,))


def key_of(value: Value, *, ignore_case: bool = False) -> Any:
    """A hashable form of a key: two are equal where .NET's Equals is true (`1` is not `1l`, nor `'1'`)."""
    value = plain(value)
    kind = type(value)
    if kind is str:
        return fold(value) if ignore_case else value
    if kind in NUMBER_CLASSES or kind is bool or kind is Char:
        return (kind, value)
    if kind in _CONTENT_KEYS:
        return value
    if isinstance(value, Iterable) or not value.__hash__:
        return (object, id(value))
    return value


def fold(text: str) -> str:
    """Text for comparison without case, as OrdinalIgnoreCase does it: each character's simple upper case."""
    if text.isascii():
        return text.lower()
    return "".join(
        upper.lower() if len(upper) == 1 else letter for letter in text for upper in (letter.upper(),)
    )


class _Mapping(Instance):
    """What hashtables and dictionaries share: keys with their written form, in order of insertion."""

    ignore_case = False

    def __init__(self, *, ignore_case: bool | None = None) -> None:
        if ignore_case is not None:
            self.ignore_case = ignore_case
        self.table: dict[Any, tuple[Value, Value]] = {}
        self.version = 0

    def get(self, key: Value, default: Value = None) -> Value:
        """The value of a key, or the default."""
        found = self.table.get(key_of(key, ignore_case=self.ignore_case))
        return default if found is None else found[1]

    def put(self, key: Value, value: Value) -> None:
        """Set a key; a known one keeps its spelling and place."""
        folded = key_of(key, ignore_case=self.ignore_case)
        found = self.table.get(folded)
        self.table[folded] = (key if found is None else found[0], value)
        self.version += 1

    def has(self, key: Value) -> bool:
        return key_of(key, ignore_case=self.ignore_case) in self.table

    def drop(self, key: Value) -> bool:
        """Remove a key; answers whether it was there."""
        self.version += 1
        return self.table.pop(key_of(key, ignore_case=self.ignore_case), None) is not None

    def clear(self) -> None:
        self.version += 1
        self.table.clear()

    def items(self) -> Iterator[tuple[Value, Value]]:
        return iter(list(self.table.values()))

    def keys(self) -> list[Value]:
        return [key for key, _ in self.table.values()]

    def values(self) -> list[Value]:
        return [value for _, value in self.table.values()]

    def __len__(self) -> int:
        return len(self.table)

    def __bool__(self) -> bool:
        return True


class Hashtable(_Mapping):
    """@{}: ignores case. `Hashtable(ignore_case=False)` is what [hashtable]::new() makes."""

    ignore_case = True

    @classmethod
    def of(cls, items: Mapping[str, Value]) -> Hashtable:
        """A case-insensitive hashtable with these entries."""
        made = cls()
        for key, value in items.items():
            made.put(key, value)
        return made


class OrderedDictionary(_Mapping):
    """[ordered]@{}: ignores case, keeps order, an Int32 index is a position."""

    ignore_case = True

    @classmethod
    def of(cls, items: Mapping[str, Value]) -> OrderedDictionary:
        made = cls()
        for key, value in items.items():
            made.put(key, value)
        return made

    def put(self, key: Value, value: Value) -> None:
        """Set a key; a known one keeps its place and takes the new spelling."""
        self.table[key_of(key, ignore_case=self.ignore_case)] = (key, value)
        self.version += 1

    def at(self, position: int) -> Value:
        """The value at a position; raises IndexError beyond the end."""
        return list(self.table.values())[position][1]


def _while_unchanged(items: list[Value], source: _Mapping) -> Iterator[Value]:
    """The items of a dictionary or set, until it changes under the enumeration; its end is looked for, too."""
    version = source.version
    for item in items:
        _same_version(source, version)
        yield item
    _same_version(source, version)


def _same_version(source: _Mapping, version: int) -> None:
    if source.version != version:
        raise exceptions.InvalidOperationException(
            "Collection was modified; enumeration operation may not execute."
        )


class View(Instance):
    """The Keys or Values collection of a dictionary, or another read-only live sequence: `read()` gives its items."""

    def __init__(
        self, type_name: str, read: Callable[[], list[Value]], source: _Mapping | None = None
    ) -> None:
        self.type_name = type_name
        self.read = read
        self.source = source

    @property
    def dotnet_type(self) -> DotNetType:
        return structured_type(self.type_name)

    def __iter__(self) -> Iterator[Value]:
        if self.source is None:
            return iter(self.read())
        return _while_unchanged(self.read(), self.source)

    def __len__(self) -> int:
        return len(self.read())

    def __bool__(self) -> bool:
        return True


class Enumerator(Instance):
    """An IEnumerator: `items` is the Python iterator behind GetEnumerator(); the pipeline runs it to its end."""

    def __init__(self, items: Iterable[Value]) -> None:
        self.source = list(items)
        self.position = -1

    def __iter__(self) -> Iterator[Value]:
        while self.position + 1 < len(self.source):
            self.position += 1
            yield self.source[self.position]


LIST = "System.Collections.Generic.List"
DICTIONARY = "System.Collections.Generic.Dictionary"
COLLECTION = "System.Collections.ObjectModel.Collection"
READ_ONLY_COLLECTION = "System.Collections.ObjectModel.ReadOnlyCollection"

ARRAY_LIST = dotnet("System.Collections.ArrayList", ArrayList, interfaces=[ILIST, ICLONEABLE])
HASHTABLE = dotnet(
    "System.Collections.Hashtable",
    Hashtable,
    interfaces=[IDICTIONARY, ICLONEABLE],
    accelerators=["hashtable"],
)
ORDERED_DICTIONARY = dotnet(
    "System.Collections.Specialized.OrderedDictionary", OrderedDictionary, interfaces=[IDICTIONARY]
)
DICTIONARY_ENTRY = dotnet("System.Collections.DictionaryEntry", base=VALUE_TYPE, kind="value")
QUEUE_TYPE = dotnet("System.Collections.Queue", interfaces=[ICOLLECTION, ICLONEABLE])
STACK_TYPE = dotnet("System.Collections.Stack", interfaces=[ICOLLECTION, ICLONEABLE])


# -- enums


class EnumValue:
    """A value of an enum type."""

    __slots__ = ("dotnet_type", "number")

    def __init__(self, dotnet_type: DotNetType, number: int) -> None:
        self.dotnet_type = dotnet_type
        self.number = number

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, EnumValue)
            and self.dotnet_type is other.dotnet_type
            and self.number == other.number
        )

    def __hash__(self) -> int:
        return hash((id(self.dotnet_type), self.number))

    def __str__(self) -> str:
        """The name; of a flags enum the names, smallest value first; the number when names do not cover it."""
        constants = self.dotnet_type.constants.items()
        # Of two names for one number a flags enum shows the later one, another enum the earlier.
        names = {
            number: name for name, number in (constants if self.dotnet_type.flags else reversed(constants))
        }
        exact = names.get(self.number)
        if exact is not None:
            return exact
        if not self.dotnet_type.flags or self.number == 0:
            return str(self.number)
        rest, found = self.number, []
        for number in sorted(names, key=lambda value: value & 0xFFFFFFFFFFFFFFFF, reverse=True):
            if number and rest & number == number:
                found.append(names[number])
                rest &= ~number
        return ", ".join(reversed(found)) if rest == 0 else str(self.number)

    def __repr__(self) -> str:
        return f"[{self.dotnet_type.name}]::{self}"


def enum_value(type_name: str, value: str | int) -> EnumValue:
    """An enum value by type name and member name (case ignored, `A, B` combines) or number."""
    kind = named(type_name)
    if isinstance(value, int):
        return EnumValue(kind, value)
    by_name = {name.lower(): number for name, number in kind.constants.items()}
    number = 0
    for part in value.split(","):
        number |= by_name[part.strip().lower()]
    return EnumValue(kind, number)


# -- script blocks, secrets, small objects


class ScriptBlock(Instance):
    """A script block: source text, syntax tree, and what the evaluator binds to it (scope, closure, module)."""

    def __init__(self, text: str, tree: Any = None, bound: Any = None) -> None:
        self.text = text
        self.tree = tree
        self.bound = bound

    def __str__(self) -> str:
        return self.text


class SecureString(Instance):
    """System.Security.SecureString: holds text that no formatting shows."""

    def __init__(self, text: str = "") -> None:
        self.secret = text
        self.read_only = False
        self.disposed = False

    def __repr__(self) -> str:
        return "SecureString(...)"


class PSCredential(Instance):
    """System.Management.Automation.PSCredential."""

    def __init__(self, user_name: str, password: SecureString) -> None:
        self.user_name = user_name
        self.password = password


class Version:
    """System.Version; a missing part is -1."""

    __slots__ = ("build", "major", "minor", "revision")

    def __init__(self, major: int = 0, minor: int = 0, build: int = -1, revision: int = -1) -> None:
        self.major = major
        self.minor = minor
        self.build = build
        self.revision = revision

    @property
    def parts(self) -> tuple[int, int, int, int]:
        return (self.major, self.minor, self.build, self.revision)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.parts == other.parts

    def __lt__(self, other: Version) -> bool:
        return self.parts < other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __str__(self) -> str:
        return ".".join(str(part) for part in self.parts if part >= 0)


class IPAddress:
    """System.Net.IPAddress."""

    __slots__ = ("address", "scope")

    def __init__(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address, scope: int = 0) -> None:
        self.address = address
        self.scope = scope

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IPAddress) and (self.address, self.scope) == (other.address, other.scope)

    def __hash__(self) -> int:
        return hash((self.address, self.scope))

    def __str__(self) -> str:
        return _address_text(self.address) + (f"%{self.scope}" if self.scope else "")


def _address_text(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """As usual, but an IPv6 address that carries an IPv4 address (mapped, compatible, ISATAP) ends like one."""
    text = str(address)
    if address.version == 4:
        return text
    words = [int.from_bytes(address.packed[at : at + 2], "big") for at in range(0, 16, 2)]
    embeds = not any(words[:4]) and words[6] != 0 and tuple(words[4:6]) in ((0, 0), (0, 0xFFFF), (0xFFFF, 0))
    if not embeds and words[4:6] != [0, 0x5EFE]:
        return text
    head = str(
        ipaddress.IPv6Address(address.packed[:12] + b"\x00\x01\x00\x01")
    )  # no zeros where the tail goes
    return head.removesuffix("1:1") + str(ipaddress.IPv4Address(address.packed[12:]))


SCRIPT_BLOCK = dotnet("System.Management.Automation.ScriptBlock", ScriptBlock, accelerators=["scriptblock"])
SECURE_STRING = dotnet(
    "System.Security.SecureString", SecureString, interfaces=[IDISPOSABLE], accelerators=["securestring"]
)
PS_CREDENTIAL = dotnet(
    "System.Management.Automation.PSCredential", PSCredential, accelerators=["pscredential"]
)
VERSION = dotnet("System.Version", Version, interfaces=[ICLONEABLE, ICOMPARABLE], accelerators=["version"])
IP_ADDRESS = dotnet("System.Net.IPAddress", IPAddress, accelerators=["ipaddress"])
URI = dotnet("System.Uri", Uri, accelerators=["uri"])
ERROR_RECORD = dotnet("System.Management.Automation.ErrorRecord", ErrorRecord)
ERROR_DETAILS = dotnet("System.Management.Automation.ErrorDetails", ErrorDetails)
PS_REFERENCE = dotnet("System.Management.Automation.PSReference", accelerators=["ref"])
dotnet("System.Management.Automation.PSReference`1", Reference, base=PS_REFERENCE)
SWITCH_PARAMETER = dotnet(
    "System.Management.Automation.SwitchParameter",
    base=VALUE_TYPE,
    kind="value",
    accelerators=["switch"],
    default=lambda: SwitchParameter(present=False),
)


class SwitchParameter:
    """The value of a [switch] parameter."""

    __slots__ = ("present",)
    dotnet_type: ClassVar[DotNetType] = SWITCH_PARAMETER

    def __init__(self, *, present: bool) -> None:
        self.present = present

    def __bool__(self) -> bool:
        return self.present

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SwitchParameter) and self.present == other.present

    def __hash__(self) -> int:
        return hash(self.present)

    def __str__(self) -> str:
        return str(self.present)


class NullString(Instance):
    """[NullString]::Value: a null where $null would become an empty string."""

    def __str__(self) -> str:
        return ""


NULL_STRING_VALUE = NullString()


class BaseView(Instance):
    """`$table.PSBase`: a dictionary whose keys do not hide its properties."""

    def __init__(self, target: Value) -> None:
        self.target = target

    @property
    def dotnet_type(self) -> DotNetType:
        return type_of(self.target)


class PSMethod(Instance):
    """A method seen as a value: `$x.ToString` without parentheses, or `[int]::Parse`."""

    def __init__(self, target: Value, name: str, method: Any, *, static: bool = False) -> None:
        self.target = target
        self.name = name
        self.method = method
        self.static = static


PS_METHOD = dotnet("System.Management.Automation.PSMethod", PSMethod)

_CONTENT_KEYS = frozenset(
    (uuid.UUID, DateTime, DateTimeOffset, TimeSpan, Version, IPAddress, Uri, EnumValue, SwitchParameter)
)


# -- questions


def type_of(value: Value) -> DotNetType:
    """The .NET type of a value (of $null: NULL_TYPE, which no script sees)."""
    found = class_type(type(value))
    if found is not None:
        return found
    if value is None or value is NOTHING:
        return NULL_TYPE
    if type(value) is Decorated:
        return type_of(value.base)
    if value is DBNULL_VALUE:
        return DBNULL
    made: DotNetType = value.dotnet_type
    return made


def type_names_of(value: Value) -> list[str]:
    """PSObject.TypeNames: the type and its bases, or what a script put in their place."""
    found = extension_of(value)
    if found is not None and found.type_names is not None:
        return found.type_names
    names = [step.name for step in type_of(value).lineage()]
    bare = plain(value)
    if isinstance(bare, Structured) and bare.type_name != names[0]:
        names.insert(0, bare.type_name)
    return names


_ENUMERATED = (Array, GenericList, ArrayList, View, Enumerator)


def is_enumerable(value: Value) -> bool:
    """Does a pipeline take the value apart? Arrays and lists yes; strings, dictionaries and XML nodes no."""
    kind = type(value)
    if kind in _SCALARS:
        return False
    return isinstance(value, (*_ENUMERATED, ByteArray))


_SCALARS = NUMBER_CLASSES | {str, bool, Char, type(None), PSCustomObject, Hashtable, Structured, EnumValue}


def enumerate_value(value: Value) -> Iterable[Value] | None:
    """The items a pipeline takes out of a value, or None for a value that travels whole.

    NOTHING enumerates to no items, None to itself (so the answer is None).
    """
    kind = type(value)
    if kind in _SCALARS:
        return None
    if kind is ByteArray:
        return [BOXED_BYTES[number] for number in value]
    if kind is Decorated:
        return enumerate_value(value.base)
    if isinstance(value, _ENUMERATED):
        return value
    if value is NOTHING:
        return ()
    return None


# -- the machine's plain data


def from_plain(value: Any) -> Value:
    """What the machine's door answers (Plain) as PowerShell values; Record-like objects become Structured."""
    kind = type(value)
    if kind is int and not -(2**31) <= value < 2**31:
        return Int64(value) if -(2**63) <= value < 2**63 else UInt64(value)
    if value is None or kind in NUMBER_CLASSES or kind in (str, bool):
        return value
    if kind is bytes:
        return ByteArray(value)
    if isinstance(value, py.datetime):
        return DateTime.of(value, moments.LOCAL)
    if isinstance(value, py.timedelta):
        return TimeSpan.of(value)
    if kind in (list, tuple):
        return Array(from_plain(item) for item in value)
    if kind is dict:
        return Hashtable.of({key: from_plain(item) for key, item in value.items()})
    if hasattr(value, "type_name") and hasattr(value, "properties"):
        return Structured(
            value.type_name, {name: from_plain(item) for name, item in value.properties.items()}
        )
    return value


# -- generic collections


def _generic_maker(name: str, arity: int, interfaces: Sequence[DotNetType]) -> None:
    short = name + f"`{arity}"
    definition = dotnet(short, interfaces=interfaces)

    def make(arguments: tuple[DotNetType, ...]) -> DotNetType:
        text = ",".join(argument.name for argument in arguments)
        return DotNetType(f"{short}[{text}]", base=OBJECT, definition=definition, arguments=arguments)

    generic(name, make)


for _name, _arity, _faces in (
    (LIST, 1, [ILIST]),
    (COLLECTION, 1, [ILIST]),
    (READ_ONLY_COLLECTION, 1, [ILIST]),
    (DICTIONARY, 2, [IDICTIONARY]),
):
    _generic_maker(_name, _arity, _faces)
