"""Equality and order as PowerShell's operators see them: the left operand's type decides.

equals(left, right, runtime, case=False)    -eq on two single values (lists by identity)
compare(left, right, runtime, case=False)   -1, 0 or 1 for -lt and its kin, Sort-Object, ValidateRange
culture_key(text, case=False)               how culture-aware sorting orders text
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from winboot_lab.engine.arithmetic import bare, text_number, text_of
from winboot_lab.engine.convert import cast, convert, to_bool, to_string
from winboot_lab.engine.dotnet import DotNetType, Runtime
from winboot_lab.engine.exceptions import DotNetException, RuntimeException
from winboot_lab.engine.moments import DateTime, DateTimeOffset, TimeSpan
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    NUMBER_CLASSES,
    Array,
    Char,
    EnumValue,
    IPAddress,
    SwitchParameter,
    Uri,
    Value,
    Version,
    enumerate_value,
    fold,
    type_of,
)

# -- text in order

# Characters that weigh nothing in a comparison by culture, the invariant one included, by which -eq and -ceq go (PowerShell,
# StringOps.Compare). These four were seen on the real engine, which took ICU's tables; of Windows' own tables the
# documentation names the soft hyphen (runtime-libraries/system-globalization-compareinfo).
_WITHOUT_WEIGHT = re.compile("[\0\u00ad\u200b\ufeff]")
# Other characters without width: no recording shows whether Windows ignores each of them.
_PERHAPS_WITHOUT_WEIGHT = re.compile(
    "[\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200c-\u200f"
    "\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufff9-\ufffb]"
)

_PUNCTUATION = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
_WEIGHTS = {letter: index for index, letter in enumerate("\t\n\v\f\r" + _PUNCTUATION)}
_DIGIT, _LETTER, _OTHER = 100, 200, 1000


@lru_cache(maxsize=4096)
def _weight(letter: str) -> tuple[int, int, int]:
    """Primary, accent and case weight of one character."""
    known = _WEIGHTS.get(letter)
    if known is not None:
        return known, 0, 0
    if letter.isascii():
        if letter.isdigit():
            return _DIGIT + ord(letter), 0, 0
        if letter.isalpha():
            return _LETTER + ord(letter.lower()), 0, int(letter.isupper())
        return ord(letter), 0, 0
    parts = unicodedata.normalize("NFD", letter)
    if parts[0].isascii() and parts[0].isalpha():
        return _LETTER + ord(parts[0].lower()), sum(map(ord, parts[1:])), int(letter.isupper())
    return _OTHER + ord(letter.lower()[0]), 0, int(letter != letter.lower())


def culture_key(text: str, *, case: bool = False) -> Any:
    """A sort key: letters before their accents before their case (which counts only with `case`)."""
    weights = [_weight(letter) for letter in _WITHOUT_WEIGHT.sub("", text)]
    primary = [weight[0] for weight in weights]
    accents = [weight[1] for weight in weights]
    return (primary, accents, [weight[2] for weight in weights] if case else [])


def compare_text(left: str, right: str, *, case: bool = False) -> int:
    """Culture-aware order of two texts."""
    if left == right:
        return 0
    first, second = culture_key(left, case=case), culture_key(right, case=case)
    return int(first > second) - int(first < second)


def same_text(left: str, right: str, *, case: bool = False) -> bool:
    """Equality of two texts: what has no weight does not count."""
    if left == right:
        return True
    if not case:
        left, right = fold(left), fold(right)
        if left == right:
            return True
    if left.isascii() and right.isascii() and left.isprintable() and right.isprintable():
        return False
    left, right = _WITHOUT_WEIGHT.sub("", left), _WITHOUT_WEIGHT.sub("", right)
    if left == right:
        return True
    if _PERHAPS_WITHOUT_WEIGHT.sub("", left) == _PERHAPS_WITHOUT_WEIGHT.sub("", right):
        raise Refusal("value", "a comparison of texts", "they differ in characters without width alone")
    return False


# -- equality


def equals(left: Value, right: Value, runtime: Runtime | None = None, *, case: bool = False) -> bool:
    """Does `left -eq right` hold for single values?"""
    kind = type(left)
    if kind is str and type(right) is str:
        return same_text(left, right, case=case)
    if kind is int and type(right) is int:
        return bool(left == right)
    left, right = bare(left), bare(right)
    if left is None or right is None:
        return left is right
    kind = type(left)
    if kind is str:
        return same_text(left, text_of(right, runtime), case=case)
    if kind in NUMBER_CLASSES:
        return _number_equals(left, right)
    special = _EQUALS.get(kind)
    if special is not None:
        return special(left, right, case)
    return left is right or _same_exception(left, right)


def _same_exception(left: Value, right: Value) -> bool:
    return False


def _as_number(value: Value) -> Value:
    """The right operand of a comparison with a number, or None. Raises the cast error for text that is not a number."""
    kind = type(value)
    if kind in NUMBER_CLASSES:
        return value
    if kind is str:
        return text_number(value)
    if kind is bool:
        return int(value)
    if kind is Char:
        return ord(value)
    if kind is EnumValue:
        return value.number
    return None


def _number_equals(left: Value, right: Value) -> bool:
    try:
        number = _as_number(right)
    except RuntimeException:
        return False
    if number is None:
        if type(right) in (DateTime, TimeSpan, SwitchParameter):
            return False
        return False
    return _same_number(left, number)


def _same_number(left: Value, right: Value) -> bool:
    if isinstance(left, float) and type(right) is Decimal:
        return bool(Decimal(str(left)) == right)
    if isinstance(right, float) and type(left) is Decimal:
        return bool(left == Decimal(str(right)))
    return bool(left == right)


def _char_equals(left: Char, right: Value, case: bool) -> bool:
    if isinstance(right, str):
        return same_text(str(left), str(right), case=case)
    if type(right) in NUMBER_CLASSES:
        return bool(ord(left) == right)
    return same_text(str(left), to_string(right), case=case)


def _bool_equals(left: bool, right: Value, _case: bool) -> bool:
    return left == to_bool(right)


def _converted_equals(left: Value, right: Value, _case: bool) -> bool:
    kind = type_of(left)
    if type_of(right) is kind:
        return bool(left == right)
    try:
        return bool(left == convert(right, kind))
    except DotNetException:
        return False


def _switch_equals(left: SwitchParameter, right: Value, _case: bool) -> bool:
    if type(right) is SwitchParameter:
        return left.present == right.present
    return left.present == right if type(right) is bool else False


def _enum_equals(left: EnumValue, right: Value, case: bool) -> bool:
    if type(right) in NUMBER_CLASSES:
        return bool(left.number == right)
    return _converted_equals(left, right, case)


_EQUALS: dict[type, Callable[[Any, Value, bool], bool]] = {
    Char: _char_equals,
    bool: _bool_equals,
    SwitchParameter: _switch_equals,
}


def compared_by_value(*classes: type) -> None:
    """Values of these classes are equal when the right one, converted to the left one's type, is `==`."""
    for python in classes:
        _EQUALS[python] = _converted_equals


_EQUALS[EnumValue] = _enum_equals
compared_by_value(DateTime, DateTimeOffset, TimeSpan, Version, IPAddress, Uri)


# -- order


def compare(left: Value, right: Value, runtime: Runtime | None = None, *, case: bool = False) -> int:
    """Order of two single values. Raises ComparisonFailure or the cast error."""
    if type(left) is int and type(right) is int:
        return int(left > right) - int(left < right)
    left, right = bare(left), bare(right)
    if left is None:
        return -_against_null(right)
    if right is None:
        return _against_null(left)
    kind = type(left)
    if kind is str:
        return compare_text(left, text_of(right, runtime), case=case)
    if kind is Char:
        if isinstance(right, str):
            return compare_text(str(left), str(right), case=case)
        left, kind = ord(left), int
    if kind in NUMBER_CLASSES:
        number = _as_number(right)
        if number is None:
            number = cast(right, type_of(left))
        return _order_numbers(left, number)
    if kind is bool:
        other = to_bool(right)
        return int(left > other) - int(left < other)
    return _compare_objects(left, right)


def _against_null(value: Value) -> int:
    if value is None:
        return 0
    if type(value) in NUMBER_CLASSES and value < 0:
        return -1
    return 1


def _order_numbers(left: Value, right: Value) -> int:
    if isinstance(left, float) != isinstance(right, float):
        left, right = _exact(left), _exact(right)
    return int(left > right) - int(left < right)


def _exact(number: Value) -> Value:
    return Decimal(str(number)) if isinstance(number, float) else number


def _compare_objects(left: Value, right: Value) -> int:
    kind = type_of(left)
    orderable = type(left) in _ORDERABLE
    if not orderable:
        if left is right:
            return 0
        raise RuntimeException(
            f'Cannot compare "{to_string(left)}" because it is not IComparable.',
            "NotIcomparable",
            "InvalidOperation",
        )
    if type_of(right) is not kind:
        right = _for_comparison(left, right, kind)
    first, second = _ORDERABLE[type(left)](left), _ORDERABLE[type(left)](right)
    return int(first > second) - int(first < second)


def _for_comparison(left: Value, right: Value, kind: DotNetType) -> Value:
    try:
        return convert(right, kind)
    except DotNetException as cause:
        raise RuntimeException(
            f'Could not compare "{to_string(left)}" to "{to_string(right)}". Error: "{cause.message}"',
            "ComparisonFailure",
            "InvalidOperation",
            None,
            cause,
        ) from None


_ORDERABLE: dict[type, Callable[[Any], Any]] = {
    DateTime: lambda value: value.ticks,
    DateTimeOffset: lambda value: value.utc_ticks,
    TimeSpan: lambda value: value.ticks,
    Version: lambda value: value.parts,
    EnumValue: lambda value: value.number,
    SwitchParameter: lambda value: value.present,
}


def ordered_by(python: type, key: Callable[[Any], Any]) -> None:
    """Values of this class are IComparable by a key."""
    _ORDERABLE[python] = key
    compared_by_value(python)


# -- the operators


def _filtered(left: Value, test: Callable[[Value], bool]) -> Value:
    items = enumerate_value(left)
    if items is None:
        return test(left)
    return Array(item for item in items if test(item))


Operate = Callable[[Value, Value, "Runtime | None"], Value]


def equality(*, case: bool, negated: bool) -> Operate:
    """-eq or -ne: a list on the left is filtered."""

    def operate(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
        if type(left) in _PLAIN:
            return equals(left, right, runtime, case=case) is not negated
        return _filtered(left, lambda item: equals(item, right, runtime, case=case) is not negated)

    return operate


def ordering(test: Callable[[int], bool], *, case: bool) -> Operate:
    """-lt, -le, -gt or -ge: a list on the left is filtered."""

    def operate(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
        if type(left) in _PLAIN:
            return _ordered(left, right, runtime)
        return _filtered(left, lambda item: _ordered(item, right, runtime))

    def _ordered(left: Value, right: Value, runtime: Runtime | None) -> bool:
        if _is_nan(left) or _is_nan(right):
            return False
        return test(compare(left, right, runtime, case=case))

    return operate


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and value != value


_PLAIN = NUMBER_CLASSES | {str, bool, Char, type(None)}


def contains(*, case: bool, negated: bool, swapped: bool) -> Operate:
    """-contains, -in and their negations."""

    def operate(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
        holder, wanted = (right, left) if swapped else (left, right)
        items = enumerate_value(holder)
        if items is None:
            items = (bare(holder),)
        found = any(equals(item, wanted, runtime, case=case) for item in items)
        return found is not negated

    return operate
