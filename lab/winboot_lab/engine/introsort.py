"""The sort of .NET's arrays, step by step.

It is unstable, and PowerShell's comparison of mixed values is no order at all, so the outcome depends on which pairs are
compared. Hence the same algorithm as List.Sort: quicksort by median of three, insertion sort for short runs, heap sort when it
goes too deep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
Compare = Callable[[T, T], int]

SHORT = 16


def introsort(items: list[T], compare: Compare[T]) -> None:
    """Sort in place."""
    if len(items) > 1:
        _intro(items, 0, len(items) - 1, 2 * (len(items).bit_length()), compare)


def _swap_if_greater(items: list[T], i: int, j: int, compare: Compare[T]) -> None:
    if i != j and compare(items[i], items[j]) > 0:
        items[i], items[j] = items[j], items[i]


def _intro(items: list[T], low: int, high: int, depth: int, compare: Compare[T]) -> None:
    while high > low:
        size = high - low + 1
        if size <= SHORT:
            if size == 2:
                _swap_if_greater(items, low, high, compare)
            elif size == 3:
                _swap_if_greater(items, low, high - 1, compare)
                _swap_if_greater(items, low, high, compare)
                _swap_if_greater(items, high - 1, high, compare)
            else:
                _insertion(items, low, high, compare)
            return
        if depth == 0:
            _heap(items, low, high, compare)
            return
        depth -= 1
        pivot = _partition(items, low, high, compare)
        _intro(items, pivot + 1, high, depth, compare)
        high = pivot - 1


def _partition(items: list[T], low: int, high: int, compare: Compare[T]) -> int:
    middle = low + (high - low) // 2
    _swap_if_greater(items, low, middle, compare)
    _swap_if_greater(items, low, high, compare)
    _swap_if_greater(items, middle, high, compare)
    pivot = items[middle]
    items[middle], items[high - 1] = items[high - 1], items[middle]
    left, right = low, high - 1
    while left < right:
        left += 1
        while compare(items[left], pivot) < 0:
            left += 1
        right -= 1
        while compare(pivot, items[right]) < 0:
            right -= 1
        if left >= right:
            break
        items[left], items[right] = items[right], items[left]
    items[left], items[high - 1] = items[high - 1], items[left]
    return left


def _insertion(items: list[T], low: int, high: int, compare: Compare[T]) -> None:
    for i in range(low, high):
        j, item = i, items[i + 1]
        while j >= low and compare(item, items[j]) < 0:
            items[j + 1] = items[j]
            j -= 1
        items[j + 1] = item


def _heap(items: list[T], low: int, high: int, compare: Compare[T]) -> None:
    count = high - low + 1
    for i in range(count // 2, 0, -1):
        _down(items, i, count, low, compare)
    for i in range(count, 1, -1):
        items[low], items[low + i - 1] = items[low + i - 1], items[low]
        _down(items, 1, i - 1, low, compare)


def _down(items: list[T], i: int, count: int, low: int, compare: Compare[T]) -> None:
    item = items[low + i - 1]
    while i <= count // 2:
        child = 2 * i
        if child < count and compare(items[low + child - 1], items[low + child]) < 0:
            child += 1
        if compare(item, items[low + child - 1]) >= 0:
            break
        items[low + i - 1] = items[low + child - 1]
        i = child
    items[low + i - 1] = item
