"""System.Collections and its generic relatives: lists, dictionaries, sets, queues, stacks, comparers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from winboot_lab.engine.comparison import compare, culture_key
from winboot_lab.engine.convert import convert, to_string
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Runtime, array_of, dotnet, named
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    ARRAY_LIST,
    COLLECTION,
    HASHTABLE,
    ICOLLECTION,
    IENUMERATOR,
    LIST,
    ORDERED_DICTIONARY,
    READ_ONLY_COLLECTION,
    Array,
    ArrayList,
    Enumerator,
    GenericList,
    Hashtable,
    Instance,
    OrderedDictionary,
    Value,
    View,
    _Mapping,
    enumerate_value,
    key_of,
)

# -- comparers


class Comparer(Instance):
    """A StringComparer: ordinal or by culture, with or without case."""

    def __init__(self, *, culture: bool, ignore_case: bool) -> None:
        self.culture = culture
        self.ignore_case = ignore_case

    def key(self, text: str) -> Any:
        """The text as this comparer orders it."""
        if self.culture:
            return culture_key(text, case=not self.ignore_case)
        return text.upper() if self.ignore_case else text


ICOMPARER = dotnet("System.Collections.IComparer", kind="interface")
IEQUALITY = dotnet("System.Collections.IEqualityComparer", kind="interface")
STRING_COMPARER = dotnet("System.StringComparer", Comparer, interfaces=[ICOMPARER, IEQUALITY])


def order_by(comparer: Value, runtime: Runtime | None) -> Callable[[Value], Any]:
    """A sort key: by a StringComparer, a Comparison delegate, or the default order (text by culture, with case)."""
    if isinstance(comparer, Comparer):
        return lambda item: comparer.key(to_string(item))
    if comparer is not None:
        return functools.cmp_to_key(lambda a, b: int(convert(comparer.call(runtime, [a, b]), named("int"))))
    return functools.cmp_to_key(lambda a, b: compare(a, b, case=True))


# -- interfaces (members are declared on the classes)


def _items(source: Value) -> list[Value]:
    """The items of a collection argument."""
    if source is None:
        raise ArgumentNullException("collection")
    if isinstance(source, _Mapping):
        raise Refusal("member", "the entries of a dictionary")
    found = enumerate_value(source)
    return list(source) if found is None else list(found)


def _position(items: Value, index: int, *, last: bool = False) -> int:
    limit = len(items) + (1 if last else 0)
    if not 0 <= index < limit:
        raise ArgumentOutOfRangeException(
            "index", "Index was out of range. Must be non-negative and less than the size of the collection."
        )
    return index


def find_equal(items: list[Value], value: Value, start: int = 0) -> int:
    """The position of an equal item, or -1."""
    key = key_of(value)
    return next((at for at in range(start, len(items)) if key_of(items[at]) == key), -1)


# -- lists: what ArrayList, List[T] and Collection[T] share


def _list_members(kind: DotNetType, item: str) -> None:
    kind.prop("Count", "int", len)
    kind.method(f"Contains({item} item)")(lambda self, value: find_equal(self, value) >= 0)
    kind.method(f"IndexOf({item} item)")(find_equal)
    kind.method("void CopyTo(Array array)")(lambda self, target: _copy_into(self, target, 0))


def _copy_into(self: list[Value], target: Value, index: int) -> None:
    if index + len(self) > len(target):
        raise ArgumentException(
            "Destination array was not long enough. Check destIndex and length, and the array's lower bounds."
        )
    target[index : index + len(self)] = self


def _changing_members(kind: DotNetType, item: str) -> None:
    kind.method("void Clear()")(lambda self: self.clear())

    @kind.method(f"void Insert(int index, {item} item)")
    def insert(self: list[Value], index: int, value: Value) -> None:
        self.insert(_position(self, index, last=True), value)

    @kind.method("void RemoveAt(int index)")
    def remove_at(self: list[Value], index: int) -> None:
        del self[_position(self, index)]


def _range_members(kind: DotNetType, item: str) -> None:
    """What List[T] and ArrayList have beyond Collection[T]."""
    kind.method("void AddRange(object collection)")(
        lambda self, more: self.extend(_typed(self, _items(more)))
    )

    @kind.method("void Sort()", effect=True)
    def sort(runtime: Runtime, self: list[Value]) -> None:
        self.sort(key=order_by(None, runtime))

    @kind.method("void Sort(System.Collections.IComparer comparer)", effect=True)
    def sort_by(runtime: Runtime, self: list[Value], comparer: Value) -> None:
        self.sort(key=order_by(comparer, runtime))

    kind.method(f"LastIndexOf({item} item)")(_last_index)
    kind.method(f"IndexOf({item} item, int index)")(find_equal)


def _last_index(self: list[Value], value: Value) -> int:
    key = key_of(value)
    return next((at for at in range(len(self) - 1, -1, -1) if key_of(self[at]) == key), -1)


def _typed(holder: Any, items: Iterable[Value]) -> list[Value]:
    element = getattr(holder, "element", OBJECT)
    return list(items) if element is OBJECT else [convert(item, element) for item in items]


# ArrayList

_list_members(ARRAY_LIST, "object")
_changing_members(ARRAY_LIST, "object")
_range_members(ARRAY_LIST, "object")


@ARRAY_LIST.method("Add(object value)")
def _array_list_add(self: ArrayList, value: Value) -> int:
    self.append(value)
    return len(self) - 1


@ARRAY_LIST.method("void Remove(object obj)")
def _array_list_remove(self: ArrayList, value: Value) -> None:
    at = find_equal(self, value)
    if at >= 0:
        del self[at]


ARRAY_LIST.method("ToArray()")(Array)
ARRAY_LIST.method("Clone()")(ArrayList)

# List[T]


def definition(name: str, arity: int) -> DotNetType:
    """The open generic type under its name with arity."""
    return named(f"{name}`{arity}")


_LIST = definition(LIST, 1)
_list_members(_LIST, "T")
_changing_members(_LIST, "T")
_range_members(_LIST, "T")


@_LIST.constructor("")
def _list(kind: DotNetType) -> GenericList:
    return GenericList((), kind.arguments[0])


_LIST.method("void Add(T item)")(lambda self, value: self.append(value))


@_LIST.method("Remove(T item)")
def _list_remove(self: GenericList, value: Value) -> bool:
    at = find_equal(self, value)
    if at >= 0:
        del self[at]
    return at >= 0


_LIST.method("ToArray()")(lambda self: convert(Array(self), array_of(self.element)))


def _last_where(self: list[Value], test: Callable[[Value], bool]) -> int:
    return next((at for at in range(len(self) - 1, -1, -1) if test(self[at])), -1)


def _predicates(kind: DotNetType) -> None:
    def declare(name: str, choose: Callable[[Any, Callable[[Value], bool]], Value]) -> None:
        pass

    declare("Find", lambda self, test: next((item for item in self if test(item)), None))
    declare("FindLast", lambda self, test: next((item for item in reversed(self) if test(item)), None))
    declare("FindAll", lambda self, test: GenericList((item for item in self if test(item)), self.element))
    declare("FindIndex", lambda self, test: next((at for at, item in enumerate(self) if test(item)), -1))
    declare("FindLastIndex", _last_where)
    declare("Exists", lambda self, test: any(test(item) for item in self))
    declare("TrueForAll", lambda self, test: all(test(item) for item in self))

    @kind.method("void Sort(Delegate comparison)", effect=True)
    def sort(runtime: Runtime, self: Any, comparison: Value) -> None:
        self.sort(key=order_by(comparison, runtime))


_predicates(_LIST)


_COLLECTION = definition(COLLECTION, 1)
_list_members(_COLLECTION, "T")
_changing_members(_COLLECTION, "T")


_READ_ONLY = definition(READ_ONLY_COLLECTION, 1)
_list_members(_READ_ONLY, "T")

# -- dictionaries


def _keys(table: _Mapping, type_name: str) -> View:
    return View(type_name, lambda: list(table.keys()), table)


def _values(table: _Mapping, type_name: str) -> View:
    return View(type_name, lambda: list(table.values()), table)


def _mapping_members(kind: DotNetType, key: str, value: str, keys: str, values: str) -> None:
    kind.prop("Count", "int", len)
    kind.prop("Keys", "object", lambda self: _keys(self, keys))
    kind.prop("Values", "object", lambda self: _values(self, values))
    kind.method("void Clear()")(lambda self: self.clear())
    kind.method(f"Item({key} key)")(lambda self, name: self.get(name))


def _needs_key(key: Value) -> Value:
    if key is None:
        raise ArgumentNullException("key")
    return key


_mapping_members(
    HASHTABLE,
    "object",
    "object",
    "System.Collections.Hashtable+KeyCollection",
    "System.Collections.Hashtable+ValueCollection",
)
_mapping_members(
    ORDERED_DICTIONARY,
    "object",
    "object",
    "System.Collections.Specialized.OrderedDictionary+OrderedDictionaryKeyValueCollection",
    "System.Collections.Specialized.OrderedDictionary+OrderedDictionaryKeyValueCollection",
)


def _add(self: _Mapping, key: Value, value: Value) -> None:
    _needs_key(key)
    if self.has(key):
        known = self.table[key_of(key, ignore_case=self.ignore_case)][0]
        raise ArgumentException(
            f"Item has already been added. Key in dictionary: '{to_string(known)}'  Key being added: "
            f"'{to_string(key)}'"
        )
    self.put(key, value)


for _kind in (HASHTABLE, ORDERED_DICTIONARY):
    _kind.method("void Add(object key, object value)")(_add)
    _kind.method("void Remove(object key)")(lambda self, key: self.drop(_needs_key(key)) and None)
    _kind.method("Contains(object key)")(lambda self, key: self.has(_needs_key(key)))


HASHTABLE.method("ContainsKey(object key)")(lambda self, key: self.has(_needs_key(key)))


def _clone(self: Hashtable) -> Hashtable:
    made = Hashtable(ignore_case=self.ignore_case)
    made.table = dict(self.table)
    return made


HASHTABLE.method("Clone()")(_clone)


@ORDERED_DICTIONARY.method("void RemoveAt(int index)")
def _ordered_remove_at(self: OrderedDictionary, index: int) -> None:
    del self.table[list(self.table)[_position(list(self.table), index)]]


for _name in (
    "System.Collections.Hashtable+KeyCollection",
    "System.Collections.Hashtable+ValueCollection",
    "System.Collections.Specialized.OrderedDictionary+OrderedDictionaryKeyValueCollection",
):
    _kind = dotnet(_name, interfaces=[ICOLLECTION])

# -- enumerators

ENUMERATOR = dotnet("System.Array+SZArrayEnumerator", Enumerator, interfaces=[IENUMERATOR])
