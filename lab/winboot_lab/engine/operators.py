"""PowerShell's operators by the names the syntax tree uses (`+`, `ieq`, `inotlike`, `shl`, `f` ...).

binary("ieq")(left, right, scope)     any binary operator; -and/-or without their short cut
unary("-")(value, scope)              - + not bnot join isplit csplit
step(value, 1), equals, compare, match, wildcard_match
"""

from __future__ import annotations

from collections.abc import Callable

from winboot_lab.engine import arithmetic
from winboot_lab.engine.arithmetic import bare, step
from winboot_lab.engine.comparison import compare, contains, equality, equals, ordering
from winboot_lab.engine.convert import to_bool, to_string, try_convert
from winboot_lab.engine.dotnet import DotNetType, Runtime
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.textops import (
    format_operator,
    join,
    like_operator,
    match,
    match_operator,
    replace_operator,
    split_operator,
    unary_join,
    unary_split,
    wildcard_match,
)
from winboot_lab.engine.typenames import find_type
from winboot_lab.engine.values import (
    PS_CUSTOM,
    PS_OBJECT,
    Decorated,
    PSCustomObject,
    Structured,
    Value,
    type_of,
)

__all__ = ["binary", "compare", "equals", "is_type", "match", "step", "unary", "wildcard_match"]

Binary = Callable[[Value, Value, "Runtime | None"], Value]
Unary = Callable[[Value, "Runtime | None"], Value]


def _type_operand(value: Value) -> DotNetType:
    value = bare(value)
    return value if isinstance(value, DotNetType) else find_type(to_string(value))


def is_type(value: Value, kind: DotNetType) -> bool:
    """`value -is [kind]`."""
    if kind is PS_OBJECT or kind is PS_CUSTOM:
        return isinstance(value, (PSCustomObject, Decorated, Structured))
    value = bare(value)
    return value is not None and type_of(value).is_a(kind)


def _is(left: Value, right: Value, _runtime: Runtime | None = None) -> Value:
    return is_type(left, _type_operand(right))


def _isnot(left: Value, right: Value, _runtime: Runtime | None = None) -> Value:
    return not is_type(left, _type_operand(right))


def _as(left: Value, right: Value, _runtime: Runtime | None = None) -> Value:
    return try_convert(left, _type_operand(right))[1]


def _shift(*, to_left: bool) -> Binary:
    return lambda left, right, _runtime: arithmetic.shift(left, right, to_left=to_left)


_BINARY: dict[str, Binary] = {
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "%": arithmetic.modulo,
    "..": arithmetic.number_range,
    "and": lambda left, right, _: to_bool(left) and to_bool(right),
    "or": lambda left, right, _: to_bool(left) or to_bool(right),
    "xor": lambda left, right, _: to_bool(left) is not to_bool(right),
    "band": arithmetic.bitwise(lambda a, b: a & b),
    "bor": arithmetic.bitwise(lambda a, b: a | b),
    "bxor": arithmetic.bitwise(lambda a, b: a ^ b),
    "shl": _shift(to_left=True),
    "shr": _shift(to_left=False),
    "f": format_operator,
    "is": _is,
    "isnot": _isnot,
    "as": _as,
    "join": join,
}
for _letter, _case in (("i", False), ("c", True)):
    _BINARY |= {
        _letter + "eq": equality(case=_case, negated=False),
        _letter + "ne": equality(case=_case, negated=True),
        _letter + "lt": ordering(lambda order: order < 0, case=_case),
        _letter + "le": ordering(lambda order: order <= 0, case=_case),
        _letter + "gt": ordering(lambda order: order > 0, case=_case),
        _letter + "ge": ordering(lambda order: order >= 0, case=_case),
        _letter + "like": like_operator(case=_case, negated=False),
        _letter + "notlike": like_operator(case=_case, negated=True),
        _letter + "match": match_operator(case=_case, negated=False),
        _letter + "notmatch": match_operator(case=_case, negated=True),
        _letter + "contains": contains(case=_case, negated=False, swapped=False),
        _letter + "notcontains": contains(case=_case, negated=True, swapped=False),
        _letter + "in": contains(case=_case, negated=False, swapped=True),
        _letter + "notin": contains(case=_case, negated=True, swapped=True),
        _letter + "replace": replace_operator(case=_case),
        _letter + "split": split_operator(case=_case),
    }

_UNARY: dict[str, Unary] = {
    "-": lambda value, _: arithmetic.negate(value),
    "+": lambda value, _: arithmetic.identity(value),
    "not": lambda value, _: not to_bool(value),
    "bnot": lambda value, _: arithmetic.complement(value),
    "join": unary_join,
    "isplit": unary_split,
    "csplit": unary_split,
}


def binary(operator: str) -> Binary:
    """The function of a binary operator: (left, right, runtime) to value."""
    found = _BINARY.get(operator)
    if found is None:
        raise Refusal("operator", operator)
    return found


def unary(operator: str) -> Unary:
    """The function of a unary operator: (value, runtime) to value."""
    found = _UNARY.get(operator)
    if found is None:
        raise Refusal("operator", operator)
    return found
