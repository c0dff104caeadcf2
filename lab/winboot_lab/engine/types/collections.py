"""System.Collections and its generic relatives: lists, dictionaries, sets, queues, stacks, comparers."""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

from winboot_lab.engine.comparison import compare, culture_key
from winboot_lab.engine.convert import convert, to_bool, to_string
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Runtime, array_of, dotnet, named
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
    InvalidOperationException,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    ARRAY_LIST,
    COLLECTION,
    DICTIONARY,
    DICTIONARY_ENTRY,
    HASH_SET,
    HASHTABLE,
    ICOLLECTION,
    IDICTIONARY,
    IENUMERABLE,
    IENUMERATOR,
    ILIST,
    KEY_VALUE_PAIR,
    LIST,
    ORDERED_DICTIONARY,
    QUEUE,
    QUEUE_TYPE,
    READ_ONLY_COLLECTION,
    SORTED_DICTIONARY,
    SORTED_SET,
    STACK,
    STACK_TYPE,
    Array,
    ArrayList,
    Collection,
    Dictionary,
    Entry,
    Enumerator,
    GenericList,
    HashSet,
    Hashtable,
    Instance,
    OrderedDictionary,
    Queue,
    ReadOnlyCollection,
    Stack,
    Value,
    View,
    _Mapping,
    enumerate_value,
    fold,
    key_of,
    type_of,
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

    def same(self, first: str, second: str) -> bool:
        return fold(first) == fold(second) if self.ignore_case else first == second


ICOMPARER = dotnet("System.Collections.IComparer", kind="interface")
IEQUALITY = dotnet("System.Collections.IEqualityComparer", kind="interface")
STRING_COMPARER = dotnet("System.StringComparer", Comparer, interfaces=[ICOMPARER, IEQUALITY])
for _name, _culture, _ignore in (
    ("Ordinal", False, False),
    ("OrdinalIgnoreCase", False, True),
    ("InvariantCulture", True, False),
    ("InvariantCultureIgnoreCase", True, True),
    ("CurrentCulture", True, False),
    ("CurrentCultureIgnoreCase", True, True),
):
    STRING_COMPARER.static_field(
        _name, "System.StringComparer", Comparer(culture=_culture, ignore_case=_ignore)
    )


@STRING_COMPARER.method("Compare(string x, string y)")
def _compare_texts(self: Comparer, first: str, second: str) -> int:
    one, other = self.key(first), self.key(second)
    return int(one > other) - int(one < other)


STRING_COMPARER.method("Equals(string x, string y)")(lambda self, first, second: self.same(first, second))
STRING_COMPARER.refuses("GetHashCode Create")


def order_by(comparer: Value, runtime: Runtime | None) -> Callable[[Value], Any]:
    """A sort key: by a StringComparer, a Comparison delegate, or the default order (text by culture, with case)."""
    if isinstance(comparer, Comparer):
        return lambda item: comparer.key(to_string(item))
    if comparer is not None:
        return functools.cmp_to_key(lambda a, b: int(convert(comparer.call(runtime, [a, b]), named("int"))))
    return functools.cmp_to_key(lambda a, b: compare(a, b, case=True))


def ignores_case(comparer: Value) -> bool:
    """Does an equality comparer given to a constructor ignore case?"""
    return isinstance(comparer, Comparer) and comparer.ignore_case


# -- interfaces (members are declared on the classes)

for _kind in (ICOLLECTION, IDICTIONARY, IENUMERABLE, ILIST, IENUMERATOR, ICOMPARER, IEQUALITY):
    _kind.complete()


def _items(source: Value) -> list[Value]:
    """The items of a collection argument."""
    if source is None:
        raise ArgumentNullException("collection")
    if isinstance(source, _Mapping):
        return entries(source)
    found = enumerate_value(source)
    return list(source) if found is None else list(found)


def entries(table: _Mapping) -> list[Value]:
    """A dictionary's entries, as enumerating it gives them."""
    types = (table.key_type, table.value_type) if isinstance(table, Dictionary) else None
    return [Entry(key, value, types) for key, value in sorted_items(table)]


def sorted_items(table: _Mapping) -> list[tuple[Value, Value]]:
    """The pairs of a dictionary in its order."""
    pairs = list(table.items())
    if isinstance(table, Dictionary) and table.sorts:
        order = order_by(None, None)
        pairs.sort(key=lambda pair: order(pair[0]))
    return pairs


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
    kind.prop("IsReadOnly", "bool", lambda self: isinstance(self, ReadOnlyCollection))
    kind.prop("IsFixedSize", "bool", lambda self: isinstance(self, ReadOnlyCollection))
    kind.prop("IsSynchronized", "bool", lambda self: False)
    kind.prop("SyncRoot", "object", lambda self: self)
    kind.method(f"Contains({item} item)")(lambda self, value: find_equal(self, value) >= 0)
    kind.method(f"IndexOf({item} item)")(find_equal)
    kind.method("GetEnumerator()")(Enumerator)
    kind.method("void CopyTo(Array array)")(lambda self, target: _copy_into(self, target, 0))
    kind.method("void CopyTo(Array array, int arrayIndex)")(_copy_into)


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

    @kind.method("void InsertRange(int index, object collection)")
    def insert_range(self: list[Value], index: int, more: Value) -> None:
        at = _position(self, index, last=True)
        self[at:at] = _typed(self, _items(more))

    @kind.method("void RemoveRange(int index, int count)")
    def remove_range(self: list[Value], index: int, count: int) -> None:
        if index < 0 or count < 0 or index + count > len(self):
            raise ArgumentException(
                "Offset and length were out of bounds for the array or count is greater than the number of "
                "elements from index to the end of the source collection."
            )
        del self[index : index + count]

    @kind.method("void Reverse()", "void Reverse(int index, int count)")
    def reverse(self: list[Value], index: int = 0, count: int | None = None) -> None:
        end = len(self) if count is None else index + count
        self[index:end] = self[index:end][::-1]

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


@ARRAY_LIST.constructor("")
def _array_list() -> ArrayList:
    return ArrayList()


@ARRAY_LIST.constructor("int capacity")
def _array_list_sized(_capacity: int) -> ArrayList:
    return ArrayList()


@ARRAY_LIST.constructor("System.Collections.ICollection c")
def _array_list_of(source: Value) -> ArrayList:
    return ArrayList(_items(source))


@ARRAY_LIST.method("Add(object value)")
def _array_list_add(self: ArrayList, value: Value) -> int:
    self.append(value)
    return len(self) - 1


@ARRAY_LIST.method("void Remove(object obj)")
def _array_list_remove(self: ArrayList, value: Value) -> None:
    at = find_equal(self, value)
    if at >= 0:
        del self[at]


ARRAY_LIST.method("void TrimToSize()")(lambda self: None)
ARRAY_LIST.method("ToArray()")(Array)
ARRAY_LIST.method("ToArray(type type)")(lambda self, kind: convert(Array(self), array_of(kind)))
ARRAY_LIST.method("Clone()")(ArrayList)
ARRAY_LIST.method("GetRange(int index, int count)")(
    lambda self, index, count: ArrayList(self[index : index + count])
)
ARRAY_LIST.refuses("BinarySearch Capacity SetRange")
ARRAY_LIST.refuses_static("Synchronized Adapter FixedSize ReadOnly Repeat")

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


@_LIST.constructor("int capacity")
def _list_sized(kind: DotNetType, capacity: int) -> GenericList:
    if capacity < 0:
        raise ArgumentOutOfRangeException("capacity", "Non-negative number required.")
    return GenericList((), kind.arguments[0])


@_LIST.constructor("System.Collections.IEnumerable collection")
def _list_of(kind: DotNetType, source: Value) -> GenericList:
    made = GenericList((), kind.arguments[0])
    made.extend(_typed(made, _items(source)))
    return made


_LIST.method("void Add(T item)")(lambda self, value: self.append(value))


@_LIST.method("Remove(T item)")
def _list_remove(self: GenericList, value: Value) -> bool:
    at = find_equal(self, value)
    if at >= 0:
        del self[at]
    return at >= 0


_LIST.method("ToArray()")(lambda self: convert(Array(self), array_of(self.element)))
_LIST.method("GetRange(int index, int count)")(
    lambda self, index, count: GenericList(self[index : index + count], self.element)
)
_LIST.method("void TrimExcess()")(lambda self: None)
_LIST.method("AsReadOnly()")(lambda self: ReadOnlyCollection(self, self.element))


def _last_where(self: list[Value], test: Callable[[Value], bool]) -> int:
    return next((at for at in range(len(self) - 1, -1, -1) if test(self[at])), -1)


def _predicates(kind: DotNetType) -> None:
    def declare(name: str, choose: Callable[[Any, Callable[[Value], bool]], Value]) -> None:
        @kind.method(f"{name}(Delegate match)", effect=True)
        def run(runtime: Runtime, self: Any, delegate: Value) -> Value:
            return choose(self, lambda item: to_bool(delegate.call(runtime, [item])))

    declare("Find", lambda self, test: next((item for item in self if test(item)), None))
    declare("FindLast", lambda self, test: next((item for item in reversed(self) if test(item)), None))
    declare("FindAll", lambda self, test: GenericList((item for item in self if test(item)), self.element))
    declare("FindIndex", lambda self, test: next((at for at, item in enumerate(self) if test(item)), -1))
    declare("FindLastIndex", _last_where)
    declare("Exists", lambda self, test: any(test(item) for item in self))
    declare("TrueForAll", lambda self, test: all(test(item) for item in self))

    @kind.method("RemoveAll(Delegate match)", effect=True)
    def remove_all(runtime: Runtime, self: Any, delegate: Value) -> int:
        before = len(self)
        self[:] = [item for item in self if not to_bool(delegate.call(runtime, [item]))]
        return before - len(self)

    @kind.method("void ForEach(Delegate action)", effect=True)
    def for_each(runtime: Runtime, self: Any, action: Value) -> None:
        for item in list(self):
            action.call(runtime, [item])

    @kind.method("void Sort(Delegate comparison)", effect=True)
    def sort(runtime: Runtime, self: Any, comparison: Value) -> None:
        self.sort(key=order_by(comparison, runtime))


_predicates(_LIST)
_LIST.refuses("Capacity")


@_LIST.method("ConvertAll(Delegate converter)", effect=True)
def _convert_all(runtime: Runtime, self: GenericList, converter: Value) -> GenericList:
    types = type_of(converter).arguments
    if len(types) != 2:
        raise Refusal("member", "List.ConvertAll()", "a converter without types")
    return GenericList((converter.call(runtime, [item]) for item in self), types[1])


@_LIST.method("BinarySearch(T item)")
def _binary_search(self: GenericList, value: Value) -> int:
    order = order_by(None, None)
    keys = [order(item) for item in self]
    at = bisect_left(keys, order(value))
    return at if at < len(keys) and not order(value) < keys[at] else ~at


_COLLECTION = definition(COLLECTION, 1)
_list_members(_COLLECTION, "T")
_changing_members(_COLLECTION, "T")
_COLLECTION.method("void Add(T item)")(lambda self, value: self.append(value))
_COLLECTION.method("Remove(T item)")(_list_remove)


@_COLLECTION.constructor("")
def _collection(kind: DotNetType) -> Collection:
    return Collection((), kind.arguments[0])


_COLLECTION.complete()
_READ_ONLY = definition(READ_ONLY_COLLECTION, 1)
_list_members(_READ_ONLY, "T")
_READ_ONLY.complete()

# -- queues and stacks


def _queue_members(kind: DotNetType, item: str) -> None:
    kind.prop("Count", "int", len)
    kind.method("void Clear()")(lambda self: self.clear())
    kind.method(f"Contains({item} item)")(lambda self, value: find_equal(self, value) >= 0)
    kind.method("GetEnumerator()")(lambda self: Enumerator(enumerate_value(self) or ()))
    kind.method("ToArray()")(_as_array)
    kind.method("void TrimExcess()")(lambda self: None)


def _as_array(self: Any) -> Value:
    items = list(enumerate_value(self) or ())
    return Array(items) if self.element is None else convert(Array(items), array_of(self.element))


def _take(self: list[Value], at: int, word: str, *, keep: bool) -> Value:
    if not self:
        raise InvalidOperationException(f"{word} empty.")
    return self[at] if keep else self.pop(at)


for _kind, _item in ((QUEUE_TYPE, "object"), (definition(QUEUE, 1), "T")):
    _queue_members(_kind, _item)
    _kind.method(f"void Enqueue({_item} item)")(lambda self, value: self.append(value))
    _kind.method("Dequeue()")(lambda self: _take(self, 0, "Queue", keep=False))
    _kind.method("Peek()")(lambda self: _take(self, 0, "Queue", keep=True))
    _kind.refuses("CopyTo IsSynchronized SyncRoot Clone TrimToSize Synchronized")
for _kind, _item in ((STACK_TYPE, "object"), (definition(STACK, 1), "T")):
    _queue_members(_kind, _item)
    _kind.method(f"void Push({_item} item)")(lambda self, value: self.append(value))
    _kind.method("Pop()")(lambda self: _take(self, -1, "Stack", keep=False))
    _kind.method("Peek()")(lambda self: _take(self, -1, "Stack", keep=True))
    _kind.refuses("CopyTo IsSynchronized SyncRoot Clone Synchronized")

QUEUE_TYPE.constructor("int capacity")(lambda capacity: Queue())
STACK_TYPE.constructor("int initialCapacity")(lambda capacity: Stack())
definition(QUEUE, 1).constructor("int capacity")(lambda kind, capacity: Queue((), kind.arguments[0]))
definition(STACK, 1).constructor("int capacity")(lambda kind, capacity: Stack((), kind.arguments[0]))
QUEUE_TYPE.constructor("")(Queue)
QUEUE_TYPE.constructor("System.Collections.ICollection col")(lambda source: Queue(_items(source)))
STACK_TYPE.constructor("")(Stack)
STACK_TYPE.constructor("System.Collections.ICollection col")(lambda source: Stack(_items(source)))
definition(QUEUE, 1).constructor("")(lambda kind: Queue((), kind.arguments[0]))
definition(STACK, 1).constructor("")(lambda kind: Stack((), kind.arguments[0]))


@definition(QUEUE, 1).constructor("System.Collections.IEnumerable collection")
def _queue_of(kind: DotNetType, source: Value) -> Queue:
    return Queue((convert(item, kind.arguments[0]) for item in _items(source)), kind.arguments[0])


@definition(STACK, 1).constructor("System.Collections.IEnumerable collection")
def _stack_of(kind: DotNetType, source: Value) -> Stack:
    return Stack((convert(item, kind.arguments[0]) for item in _items(source)), kind.arguments[0])


# -- dictionaries


def _keys(table: _Mapping, type_name: str) -> View:
    return View(type_name, lambda: [key for key, _ in sorted_items(table)], table)


def _values(table: _Mapping, type_name: str) -> View:
    return View(type_name, lambda: [value for _, value in sorted_items(table)], table)


def _mapping_members(kind: DotNetType, key: str, value: str, keys: str, values: str) -> None:
    kind.prop("Count", "int", len)
    kind.prop("Keys", "object", lambda self: _keys(self, keys))
    kind.prop("Values", "object", lambda self: _values(self, values))
    kind.prop("IsReadOnly", "bool", lambda self: False)
    kind.prop("IsFixedSize", "bool", lambda self: False)
    kind.prop("IsSynchronized", "bool", lambda self: False)
    kind.prop("SyncRoot", "object", lambda self: self)
    kind.method("void Clear()")(lambda self: self.clear())
    kind.method("GetEnumerator()")(lambda self: Enumerator(entries(self), of_entries=True, table=self))
    kind.method(f"Item({key} key)")(lambda self, name: self.get(name))
    kind.method(f"void set_Item({key} key, {value} value)")(lambda self, name, item: self.put(name, item))


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


def _has_value(self: _Mapping, value: Value) -> bool:
    wanted = key_of(value)
    return any(key_of(item) == wanted for item in self.values())


HASHTABLE.method("ContainsKey(object key)")(lambda self, key: self.has(_needs_key(key)))
HASHTABLE.method("ContainsValue(object value)")(_has_value)


def _clone(self: Hashtable) -> Hashtable:
    made = Hashtable(ignore_case=self.ignore_case)
    made.table = dict(self.table)
    return made


HASHTABLE.method("Clone()")(_clone)
HASHTABLE.constructor("")(lambda: Hashtable(ignore_case=False))
HASHTABLE.constructor("int capacity")(lambda capacity: Hashtable(ignore_case=False))


@HASHTABLE.constructor("System.Collections.IDictionary d")
def _hashtable_of(source: _Mapping) -> Hashtable:
    made = Hashtable(ignore_case=False)
    for key, value in source.items():
        made.put(key, value)
    return made


HASHTABLE.constructor("System.Collections.IEqualityComparer equalityComparer")(
    lambda comparer: Hashtable(ignore_case=ignores_case(comparer))
)
HASHTABLE.refuses("Synchronized CopyTo GetObjectData OnDeserialization")


@ORDERED_DICTIONARY.method("void Insert(int index, object key, object value)")
def _ordered_insert(self: OrderedDictionary, index: int, key: Value, value: Value) -> None:
    _position(list(self.table), index, last=True)
    if self.has(key):
        _add(self, key, value)
    pairs = list(self.table.items())
    pairs.insert(index, (key_of(key, ignore_case=self.ignore_case), (key, value)))
    self.table = dict(pairs)


@ORDERED_DICTIONARY.method("void RemoveAt(int index)")
def _ordered_remove_at(self: OrderedDictionary, index: int) -> None:
    del self.table[list(self.table)[_position(list(self.table), index)]]


ORDERED_DICTIONARY.constructor("")(lambda: OrderedDictionary(ignore_case=False))
ORDERED_DICTIONARY.constructor("int capacity")(lambda capacity: OrderedDictionary(ignore_case=False))
ORDERED_DICTIONARY.constructor("System.Collections.IEqualityComparer comparer")(
    lambda comparer: OrderedDictionary(ignore_case=ignores_case(comparer))
)
ORDERED_DICTIONARY.refuses("CopyTo AsReadOnly GetObjectData")

for _generic, _sorts in ((DICTIONARY, False), (SORTED_DICTIONARY, True)):
    _kind = definition(_generic, 2)
    _mapping_members(_kind, "TKey", "TValue", f"{_generic}`2+KeyCollection", f"{_generic}`2+ValueCollection")

    def _make(kind: DotNetType, comparer: Value = None, *, sorts: bool = _sorts) -> Dictionary:
        key, value = kind.arguments
        return Dictionary(key, value, ignore_case=ignores_case(comparer), sorts=sorts)

    def _make_sized(kind: DotNetType, _capacity: int, *, sorts: bool = _sorts) -> Dictionary:
        return Dictionary(*kind.arguments, sorts=sorts)

    def _make_from(
        kind: DotNetType, source: _Mapping, comparer: Value = None, *, sorts: bool = _sorts
    ) -> Dictionary:
        key, value = kind.arguments
        made = Dictionary(key, value, ignore_case=ignores_case(comparer), sorts=sorts)
        for name, item in source.items():
            made.put(convert(name, key), convert(item, value))
        return made

    def _generic_add(self: Dictionary, key: Value, value: Value) -> None:
        _needs_key(key)
        if self.has(key):
            raise ArgumentException("An item with the same key has already been added.")
        self.put(key, value)

    def _generic_get(self: Dictionary, key: Value) -> Value:
        if not self.has(_needs_key(key)):
            raise Refusal("member", "Dictionary.Item()", "of a key that is not there")
        return self.get(key)

    def _try_get(self: Dictionary, key: Value, out: Value) -> bool:
        from winboot_lab.engine.members import default_of

        found = self.has(_needs_key(key))
        out.value = self.get(key) if found else default_of(self.value_type)
        return found

    _kind.constructor("")(_make)
    _kind.constructor("System.Collections.IEqualityComparer comparer")(_make)
    _kind.constructor("int capacity")(_make_sized)
    _kind.constructor("System.Collections.IDictionary dictionary")(_make_from)
    _kind.constructor(
        "System.Collections.IDictionary dictionary, System.Collections.IEqualityComparer comparer"
    )(_make_from)
    _kind.members.pop("item")
    _kind.method("Item(TKey key)")(_generic_get)
    _kind.method("void Add(TKey key, TValue value)")(_generic_add)
    _kind.method("Remove(TKey key)")(lambda self, key: self.drop(_needs_key(key)))
    _kind.method("ContainsKey(TKey key)")(lambda self, key: self.has(_needs_key(key)))
    _kind.method("ContainsValue(TValue value)")(_has_value)
    _kind.method("TryGetValue(TKey key, out TValue value)")(_try_get)
    _kind.refuses("Comparer CopyTo GetObjectData OnDeserialization")

for _kind, _key, _value in (
    (DICTIONARY_ENTRY, "object", "object"),
    (definition(KEY_VALUE_PAIR, 2), "TKey", "TValue"),
):
    _kind.prop("Key", _key, lambda self: self.key)
    _kind.prop("Value", _value, lambda self: self.value)
    _kind.complete()
DICTIONARY_ENTRY.prop("Name", "object", lambda self: self.key)
DICTIONARY_ENTRY.constructor("object key, object value")(Entry)
definition(KEY_VALUE_PAIR, 2).constructor("TKey key, TValue value")(
    lambda kind, key, value: Entry(key, value, kind.arguments)
)

for _name in (
    "System.Collections.Hashtable+KeyCollection",
    "System.Collections.Hashtable+ValueCollection",
    "System.Collections.Specialized.OrderedDictionary+OrderedDictionaryKeyValueCollection",
    f"{DICTIONARY}`2+KeyCollection",
    f"{DICTIONARY}`2+ValueCollection",
    f"{SORTED_DICTIONARY}`2+KeyCollection",
    f"{SORTED_DICTIONARY}`2+ValueCollection",
):
    _kind = dotnet(_name, interfaces=[ICOLLECTION])
    _kind.prop("Count", "int", len)
    _kind.prop("IsSynchronized", "bool", lambda self: False)
    _kind.prop("SyncRoot", "object", lambda self: self)
    _kind.method("GetEnumerator()")(Enumerator)
    _kind.method("void CopyTo(Array array, int index)")(
        lambda self, target, index: _copy_into(list(self), target, index)
    )
    _kind.method("Contains(object item)")(lambda self, value: find_equal(list(self), value) >= 0)
    _kind.complete()

# -- sets


def _remove_where(runtime: Runtime, self: HashSet, match: Value) -> int:
    gone = [item for item in self if to_bool(match.call(runtime, [item]))]
    for item in gone:
        self.drop(item)
    return len(gone)


for _generic, _sorts in ((HASH_SET, False), (SORTED_SET, True)):
    _kind = definition(_generic, 1)

    def _make_set(kind: DotNetType, comparer: Value = None, *, sorts: bool = _sorts) -> HashSet:
        return HashSet(kind.arguments[0], ignore_case=ignores_case(comparer), sorts=sorts)

    def _make_set_of(
        kind: DotNetType, source: Value, comparer: Value = None, *, sorts: bool = _sorts
    ) -> HashSet:
        element = kind.arguments[0]
        items = (convert(item, element) for item in _items(source))
        return HashSet(element, items, ignore_case=ignores_case(comparer), sorts=sorts)

    _kind.constructor("")(_make_set)
    _kind.constructor("System.Collections.IEqualityComparer comparer")(_make_set)
    _kind.constructor("System.Collections.IEnumerable collection")(_make_set_of)
    _kind.constructor(
        "System.Collections.IEnumerable collection, System.Collections.IEqualityComparer comparer"
    )(_make_set_of)
    _kind.prop("Count", "int", len)
    _kind.method("Add(T item)")(lambda self, value: self.add(value))
    _kind.method("Contains(T item)")(lambda self, value: self.has(value))
    _kind.method("Remove(T item)")(lambda self, value: self.drop(value))
    _kind.method("void Clear()")(lambda self: self.table.clear())
    _kind.method("GetEnumerator()")(Enumerator)
    _kind.method("void CopyTo(Array array)")(lambda self, target: _copy_into(list(self), target, 0))
    _kind.method("void TrimExcess()")(lambda self: None)
    _kind.method("RemoveWhere(Delegate match)", effect=True)(_remove_where)
    _kind.refuses("Comparer CopyTo GetObjectData OnDeserialization GetViewBetween Reverse CreateSetComparer")
for _name, _at in (("Min", 0), ("Max", -1)):
    definition(SORTED_SET, 1).prop(
        _name, "object", lambda self, at=_at: list(enumerate_value(self) or ())[at] if len(self) else None
    )


def _other(self: HashSet, source: Value) -> HashSet:
    return HashSet(
        self.element, (convert(item, self.element) for item in _items(source)), ignore_case=self.ignore_case
    )


def _keep(self: HashSet, test: Callable[[Any], bool]) -> None:
    for item in [item for key, item in self.table.items() if not test(key)]:
        self.drop(item)


def _union(self: HashSet, source: Value) -> None:
    for item in _other(self, source):
        self.add(item)


def _symmetric(self: HashSet, source: Value) -> None:
    other = _other(self, source)
    extra = {key: item for key, item in other.table.items() if key not in self.table}
    _keep(self, lambda key: key not in other.table)
    for item in extra.values():
        self.add(item)


_SET_ACTIONS: dict[str, Callable[[HashSet, Value], None]] = {
    "UnionWith": _union,
    "IntersectWith": lambda self, source: _keep(self, _other(self, source).table.__contains__),
    "ExceptWith": lambda self, source: _except(self, _other(self, source)),
    "SymmetricExceptWith": _symmetric,
}


def _except(self: HashSet, other: HashSet) -> None:
    _keep(self, lambda key: key not in other.table)


_SET_QUESTIONS: dict[str, Callable[[set[Any], set[Any]], bool]] = {
    "IsSubsetOf": lambda mine, theirs: mine <= theirs,
    "IsSupersetOf": lambda mine, theirs: mine >= theirs,
    "IsProperSubsetOf": lambda mine, theirs: mine < theirs,
    "IsProperSupersetOf": lambda mine, theirs: mine > theirs,
    "Overlaps": lambda mine, theirs: bool(mine & theirs),
    "SetEquals": lambda mine, theirs: mine == theirs,
}


def _declare_set(kind: DotNetType) -> None:
    for name, action in _SET_ACTIONS.items():
        kind.method(f"void {name}(System.Collections.IEnumerable other)")(action)
    for name, question in _SET_QUESTIONS.items():

        def ask(self: HashSet, source: Value, question: Any = question) -> bool:
            return bool(question(set(self.table), set(_other(self, source).table)))

        kind.method(f"{name}(System.Collections.IEnumerable other)")(ask)


for _generic in (HASH_SET, SORTED_SET):
    _declare_set(definition(_generic, 1))

# -- enumerators

ENUMERATOR = dotnet("System.Array+SZArrayEnumerator", Enumerator, interfaces=[IENUMERATOR])


def _current(self: Enumerator) -> Value:
    if not 0 <= self.position < len(self.source):
        raise InvalidOperationException("Enumeration has either not started or has already finished.")
    return self.source[self.position]


ENUMERATOR.prop("Current", "object", _current)


@ENUMERATOR.method("MoveNext()")
def _move_next(self: Enumerator) -> bool:
    self.position = min(self.position + 1, len(self.source))
    return self.position < len(self.source)


@ENUMERATOR.method("void Reset()")
def _reset(self: Enumerator) -> None:
    self.position = -1


ENUMERATOR.prop("Key", "object", lambda self: _current(self).key if self.of_entries else None)
ENUMERATOR.prop("Value", "object", lambda self: _current(self).value if self.of_entries else None)
ENUMERATOR.method("void Dispose()")(lambda self: None)
ENUMERATOR.refuses("Clone Entry")
