"""System.Linq.Enumerable as far as scripts call it statically, on arrays and lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from winboot_lab.engine.comparison import compare
from winboot_lab.engine.convert import to_bool
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Runtime, dotnet
from winboot_lab.engine.exceptions import ArgumentNullException, InvalidOperationException
from winboot_lab.engine.overloads import no_overload
from winboot_lab.engine.types.delegates import Delegate
from winboot_lab.engine.values import (
    INT32,
    Array,
    Dictionary,
    GenericList,
    HashSet,
    Int64,
    Value,
    enumerate_value,
    key_of,
    type_of,
)

ENUMERABLE = dotnet("System.Linq.Enumerable", kind="static")
_SOURCE = "System.Collections.IEnumerable source"
_NOTHING_THERE = "Sequence contains no elements"


def _items(source: Value, name: str, count: int) -> list[Value]:
    """The items of a typed sequence: from an untyped array .NET cannot infer the element type."""
    if source is None:
        raise ArgumentNullException("source")
    if element_of(source) is OBJECT and not isinstance(source, (Dictionary, HashSet)):
        failure = no_overload(name, count)
        failure.unwrapped = True  # the choice of the overload fails, not the method
        raise failure
    return list(enumerate_value(source) or ())


def element_of(source: Value) -> DotNetType:
    """The element type of a sequence."""
    if isinstance(source, (Array, GenericList, HashSet)):
        return source.element
    kind = type_of(source)
    return kind.element or (kind.arguments[0] if kind.arguments else OBJECT)


def _plain(name: str, work: Callable[[list[Value], DotNetType], Value]) -> None:
    @ENUMERABLE.static_method(f"{name}({_SOURCE})")
    def run(source: Value) -> Value:
        return work(_items(source, name, 1), element_of(source))


def _tested(name: str, work: Callable[[list[Value], Callable[[Value], Value], DotNetType], Value]) -> None:
    @ENUMERABLE.static_method(f"{name}({_SOURCE}, Delegate predicate)", effect=True)
    def run(runtime: Runtime, source: Value, delegate: Delegate) -> Value:
        items = _items(source, name, 2)
        return work(items, lambda item: delegate.call(runtime, [item]), element_of(source))


def _first(items: list[Value]) -> Value:
    if not items:
        raise InvalidOperationException(_NOTHING_THERE)
    return items[0]


def _sum(items: list[Value], kind: DotNetType) -> Value:
    total: Any = sum(items)
    return Int64(total) if kind.name == "System.Int64" else total


def _extreme(items: list[Value], sign: int) -> Value:
    best = _first(items)
    for item in items[1:]:
        if compare(item, best) * sign > 0:
            best = item
    return best


def _distinct(items: list[Value], kind: DotNetType) -> Array:
    return Array({key_of(item): item for item in items}.values(), kind)


_plain("Sum", _sum)
_plain("Count", lambda items, kind: len(items))
_plain("Any", lambda items, kind: bool(items))
_plain("First", lambda items, kind: _first(items))
_plain("FirstOrDefault", lambda items, kind: items[0] if items else _default(kind))
_plain("Last", lambda items, kind: _first(items[::-1]))
_plain("Max", lambda items, kind: _extreme(items, 1))
_plain("Min", lambda items, kind: _extreme(items, -1))
_plain("Average", lambda items, kind: sum(items) / len(items) if items else _first(items))
_plain("Distinct", _distinct)
_plain("Reverse", lambda items, kind: Array(items[::-1], kind))
_plain("ToArray", Array)
_plain("ToList", GenericList)
_tested("Any", lambda items, test, kind: any(to_bool(test(item)) for item in items))
_tested("All", lambda items, test, kind: all(to_bool(test(item)) for item in items))
_tested("Where", lambda items, test, kind: Array([item for item in items if to_bool(test(item))], kind))
_tested("Count", lambda items, test, kind: sum(1 for item in items if to_bool(test(item))))
_tested("First", lambda items, test, kind: _first([item for item in items if to_bool(test(item))]))


def _default(kind: DotNetType) -> Value:
    from winboot_lab.engine.members import default_of

    return default_of(kind)


ENUMERABLE.static_method("Range(int start, int count)")(
    lambda start, count: Array(range(start, start + count), INT32)
)


def _two(name: str, work: Callable[[list[Value], list[Value]], list[Value]]) -> None:
    @ENUMERABLE.static_method(
        f"{name}(System.Collections.IEnumerable first, System.Collections.IEnumerable second)"
    )
    def run(first: Value, second: Value) -> Array:
        made = work(_items(first, name, 2), _items(second, name, 2))
        return Array(made, element_of(first))


def _unique(items: list[Value]) -> list[Value]:
    return list({key_of(item): item for item in items}.values())


_two("Union", lambda first, second: _unique([*first, *second]))
_two(
    "Except",
    lambda first, second: [item for item in _unique(first) if key_of(item) not in map(key_of, second)],
)
_two(
    "Intersect",
    lambda first, second: [item for item in _unique(first) if key_of(item) in list(map(key_of, second))],
)
_two("Concat", lambda first, second: [*first, *second])


@ENUMERABLE.static_method(
    "SequenceEqual(System.Collections.IEnumerable first, System.Collections.IEnumerable second)"
)
def _same(first: Value, second: Value) -> bool:
    one, other = _items(first, "SequenceEqual", 2), _items(second, "SequenceEqual", 2)
    return [key_of(item) for item in one] == [key_of(item) for item in other]


for _name, _slice in (("Take", lambda items, n: items[:n]), ("Skip", lambda items, n: items[n:])):

    def _cut(source: Value, count: int, name: str = _name, cut: Any = _slice) -> Array:
        return Array(cut(_items(source, name, 2), max(count, 0)), element_of(source))

    ENUMERABLE.static_method(f"{_name}({_SOURCE}, int count)")(_cut)
ENUMERABLE.refuses(
    "Aggregate Append AsEnumerable Cast Contains DefaultIfEmpty ElementAt ElementAtOrDefault Empty GroupBy GroupJoin Join "
    "LastOrDefault LongCount OfType OrderBy OrderByDescending Prepend Repeat Select SelectMany Single SingleOrDefault "
    "SkipWhile TakeWhile ThenBy ThenByDescending ToDictionary ToLookup Zip"
)
