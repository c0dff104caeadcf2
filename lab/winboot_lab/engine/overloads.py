"""Which overload a call means, and calling it: PowerShell ranks how well each argument fits, the first argument most.

Failures of the called function become MethodInvocationException with the real exception inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from winboot_lab.engine.convert import INTEGER_CLASSES, INTEGER_KINDS, convert, new_array
from winboot_lab.engine.dotnet import (
    OBJECT,
    DotNetType,
    Method,
    Overload,
    Reference,
    Runtime,
    Slot,
    class_type,
)
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    DotNetException,
    MethodException,
    MethodInvocationException,
    PSInvalidCastException,
)
from winboot_lab.engine.formatting import dotnet_text
from winboot_lab.engine.null_text import Throws, takes_null
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import (
    CHAR,
    DECIMAL,
    DOUBLE,
    INT64,
    INTEGER_RANGES,
    NOTHING,
    NUMBER_CLASSES,
    SINGLE,
    STRING,
    Array,
    ByteArray,
    Char,
    Decorated,
    EnumValue,
    ScriptBlock,
    Single,
    Value,
    enumerate_value,
    type_of,
)

# How well an argument fits, best first; the names are PowerShell's conversion ranks.
_IDENTITY, _TO_CHARS, _ASSIGNABLE = 287, 282, 255
_NUMERIC_UP, _NUMERIC_DOWN, _NULL_REFERENCE, _NULL_VALUE = 239, 207, 191, 175
_NUMERIC_TEXT, _LANGUAGE, _PARSE, _CONSTRUCT, _CUSTOM, _TO_STRING, _UNRELATED = 170, 159, 127, 111, 47, 31, 15
_SCALAR_TO_ARRAY = 8
"""What a lone value loses when it must become an array."""


class _Candidate:
    """An overload with the types its arguments must take; `spread` when `params` swallows the last ones."""

    __slots__ = ("overload", "slots", "spread", "types")

    def __init__(self, overload: Overload, types: Sequence[DotNetType], *, spread: bool) -> None:
        self.overload = overload
        self.types = types
        self.spread = spread
        slots = list(overload.slots)
        last = slots[-1:]
        self.slots = [*slots[:-1], *last * (len(types) - len(slots) + 1)] if spread else slots[: len(types)]


def call(
    method: Method,
    self_: Sequence[Value],
    arguments: Sequence[Value],
    runtime: Runtime,
    owner: DotNetType | None = None,
) -> Value:
    """Call the best overload; `self_` holds the instance, or nothing for a static method or constructor."""
    chosen, prepared = _prepare(method, arguments, owner)
    leading = (runtime, *self_) if chosen.effect else self_
    try:
        result = chosen.function(*leading, *prepared)
    except MethodInvocationException:
        raise
    except DotNetException as cause:
        if getattr(cause, "unwrapped", False):
            raise
        name = ".ctor" if method.name == "new" else method.name
        raise invocation_failure(name, len(arguments), cause) from cause
    except UNFORESEEN as gap:
        raise Refusal("member", f"{method.name}()", f"with these arguments ({gap})") from gap
    return NOTHING if chosen.void else result


UNFORESEEN = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""What Python raises where a declared member was not written for such arguments: .NET's answer is unknown then."""


def invocation_failure(name: str, count: int, cause: DotNetException) -> MethodInvocationException:
    """`Exception calling "Parse" with "1" argument(s): "..."`; the id is the real exception's type name."""
    return MethodInvocationException(
        f'Exception calling "{name}" with "{count}" argument(s): "{cause.message}"',
        type_of(cause).short_name,
        "NotSpecified",
        None,
        cause,
    )


def _prepare(
    method: Method, arguments: Sequence[Value], owner: DotNetType | None
) -> tuple[Overload, list[Value]]:
    count = len(arguments)
    # Which overloads take so many arguments does not change: it is worked out once.
    key = (count, len(method.overloads), owner if owner is not None and owner.arguments else None)
    candidates = method.plans.get(key)
    if candidates is None:
        candidates = method.plans[key] = [
            made for overload in method.overloads for made in _fitting(overload, count, owner)
        ]
    if not candidates:
        raise Refusal("member", f"{method.name}()", f"with {count} arguments")
    try:
        chosen = candidates[0] if len(candidates) == 1 else _best(candidates, arguments)
    except _Ambiguous:
        raise MethodException(
            f'Multiple ambiguous overloads found for "{method.name}" and the argument count: "{count}".',
            "MethodCountCouldNotFindBest",
            "NotSpecified",
        ) from None
    if chosen is None:
        raise Refusal("member", f"{method.name}()", "with arguments of these types")
    return chosen.overload, _converted(chosen, arguments, method.name, owner)


def no_overload(name: str, count: int) -> MethodException:
    """No overload takes so many (or such) arguments."""
    return MethodException(
        f'Cannot find an overload for "{name}" and the argument count: "{count}".',
        "MethodCountCouldNotFindBest",
        "NotSpecified",
    )


def _fitting(overload: Overload, count: int, owner: DotNetType | None) -> list[_Candidate]:
    slots = overload.slots
    found: list[_Candidate] = []
    if not overload.spreads:
        if overload.least <= count <= len(slots):
            found.append(_Candidate(overload, overload.types(owner)[:count], spread=False))
        return found
    if count < len(slots) - 1:
        return found
    types = overload.types(owner)
    if count == len(slots):
        found.append(_Candidate(overload, types, spread=False))
    element = types[-1].element or OBJECT
    extra = count - (len(slots) - 1)
    found.append(_Candidate(overload, [*types[:-1], *[element] * extra], spread=True))
    return found


def _best(candidates: list[_Candidate], arguments: Sequence[Value]) -> _Candidate | None:
    best: _Candidate | None = None
    best_ranks: list[int] = []
    ambiguous = False
    for candidate in candidates:
        ranks = _ranks(candidate, arguments)
        if ranks is None:
            continue
        if best is None:
            best, best_ranks = candidate, ranks
            continue
        order = _compare(candidate, ranks, best, best_ranks, arguments)
        if order > 0:
            best, best_ranks, ambiguous = candidate, ranks, False
        elif order == 0 and _both_enums(candidate, best):
            ambiguous = True
    if ambiguous:
        raise _Ambiguous
    return best


def _ranks(candidate: _Candidate, arguments: Sequence[Value]) -> list[int] | None:
    ranks: list[int] = []
    for argument, kind, slot in zip(arguments, candidate.types, candidate.slots, strict=True):
        rank = rank_of(argument, kind, slot)
        if rank is None:
            return None
        ranks.append(rank)
    return ranks


class _Ambiguous(Exception):
    """Two overloads fit equally well."""


def _both_enums(first: _Candidate, second: _Candidate) -> bool:
    """Do the overloads differ in two enums? (Other ties PowerShell settles in ways that are settled here too.)"""
    return any(
        one is not other and one.kind == "enum" and other.kind == "enum"
        for one, other in zip(first.types, second.types, strict=True)
    )


def _compare(
    first: _Candidate,
    first_ranks: Sequence[int],
    second: _Candidate,
    second_ranks: Sequence[int],
    arguments: Sequence[Value],
) -> int:
    weight, better = len(first_ranks), 0
    for one, other in zip(first_ranks, second_ranks, strict=True):
        better += weight * ((one > other) - (one < other))
        weight -= 1
    if better:
        return better
    if first.spread != second.spread:
        return 1 if second.spread else -1
    return sum(
        _specific(one, other, argument)
        for one, other, argument in zip(first.types, second.types, arguments, strict=True)
    )


_TEXT_PREFERS = {DOUBLE: 3, DECIMAL: 2, INT64: 1}


def _specific(one: DotNetType, other: DotNetType, argument: Value) -> int:
    """Between two types of equal rank: text prefers Double, integers prefer Decimal to Double, subtypes win."""
    if one is other:
        return 0
    if type(argument) is str:
        difference = _TEXT_PREFERS.get(one, 0) - _TEXT_PREFERS.get(other, 0)
        if difference:
            return 1 if difference > 0 else -1
    elif type(argument) in INTEGER_KINDS:
        order = _NUMERIC_ORDER
        if one in order and other in order:
            return 1 if order.index(one) < order.index(other) else -1
    return (1 if one.is_a(other) else 0) - (1 if other.is_a(one) else 0)


_NUMERIC_ORDER: list[DotNetType] = [*INTEGER_CLASSES, DECIMAL, DOUBLE, SINGLE]


def rank_of(argument: Value, kind: DotNetType, slot: Slot | None = None) -> int | None:
    """How well a value fits a parameter type; None when it cannot."""
    if slot is not None and slot.by_reference:
        return _IDENTITY
    if type(argument) is Decorated:
        argument = argument.base
    if argument is None or argument is NOTHING:
        return _NULL_VALUE if kind.is_value_type else _NULL_REFERENCE
    source = type_of(argument)
    if source is kind:
        return _IDENTITY
    if kind is STRING:
        return _TO_STRING
    if source.is_a(kind):
        return _ASSIGNABLE
    if kind.kind == "array":
        return _array_rank(argument, kind)
    return _scalar_rank(argument, source, kind)


def _array_rank(argument: Value, kind: DotNetType) -> int | None:
    if kind.element is CHAR and type(argument) is str:
        return _TO_CHARS
    if isinstance(argument, (Array, ByteArray)):
        return _UNRELATED
    if enumerate_value(argument) is not None:
        return _LANGUAGE
    assert kind.element is not None
    element = rank_of(argument, kind.element)
    return None if element is None else max(element - _SCALAR_TO_ARRAY, 1)


_NUMERIC_TYPES = frozenset((*INTEGER_RANGES, DOUBLE, SINGLE, DECIMAL))


def _scalar_rank(argument: Value, source: DotNetType, kind: DotNetType) -> int | None:
    python = type(argument)
    if kind in _NUMERIC_TYPES:
        if python in NUMBER_CLASSES:
            return _NUMERIC_UP if _widens(argument, source, kind) else _NUMERIC_DOWN
        if python is str:
            return _NUMERIC_TEXT
        if python is bool or python is Char or python is EnumValue:
            return _LANGUAGE
        return None
    if kind.kind == "enum":
        return _LANGUAGE if python is str or python in INTEGER_KINDS or python is Array else None
    if kind.name == "System.Boolean":
        return _LANGUAGE
    if python is ScriptBlock:
        return _LANGUAGE if kind.base is not None and kind.base.name == "System.MulticastDelegate" else None
    if kind is CHAR:
        return _LANGUAGE if python is str or python in INTEGER_KINDS else None
    return _object_rank(argument, kind)


def _object_rank(argument: Value, kind: DotNetType) -> int | None:
    """Other types: by trying, because Parse methods and constructors decide by the value."""
    if kind.kind == "interface":
        return None
    if type(argument) is str and kind.name in ("System.Type", "System.Text.Encoding"):
        return _LANGUAGE if kind.name == "System.Type" else None
    try:
        convert(argument, kind)
    except (DotNetException, Refusal):
        return None
    return _PARSE if type(argument) is str else _CONSTRUCT


def _widens(argument: Value, source: DotNetType, kind: DotNetType) -> bool:
    if type(argument) in (float, Single):
        return kind is DOUBLE
    if type(argument) is Decimal:
        return False
    if kind in (DOUBLE, SINGLE, DECIMAL):
        return True
    low, high = INTEGER_RANGES[kind]
    bounds = INTEGER_RANGES.get(source)
    return bounds is not None and low <= bounds[0] and bounds[1] <= high


def _converted(
    candidate: _Candidate, arguments: Sequence[Value], name: str, owner: DotNetType | None
) -> list[Value]:
    out: list[Value] = []
    parts = zip(arguments, candidate.types, candidate.slots, strict=True)
    for index, (argument, kind, slot) in enumerate(parts):
        if class_type(type(argument)) is kind and not slot.by_reference:
            out.append(argument)
        elif slot.by_reference:
            out.append(_reference(argument, index))
        elif argument is NOTHING:
            out.append(_null_argument(kind, slot, name, owner, len(arguments)))
        else:
            out.append(_argument(argument, kind, slot, name))
    if candidate.spread:
        fixed = len(candidate.overload.slots) - 1
        element = candidate.types[-1] if len(candidate.types) > fixed else OBJECT
        out[fixed:] = [new_array(out[fixed:], element)]
    return out


def _reference(argument: Value, index: int) -> Reference:
    if isinstance(argument, Reference):
        return argument
    raise MethodException(
        f"Argument: '{index + 1}' should be a System.Management.Automation.PSReference. Use [ref].",
        "NonRefArgumentToRefParameterMsg",
        "NotSpecified",
    )


def _null_argument(kind: DotNetType, slot: Slot, name: str, owner: DotNetType | None, count: int) -> Value:
    """What "no output" is as an argument: null, whatever the type, and never '' (CastOrConvertMethodArgument).

    `Expression.Constant(null, parameterType)` itself throws where the type has no null.
    """
    if kind.is_value_type and not kind.name.startswith("System.Nullable`1"):
        raise ArgumentException("Argument types do not match")
    if kind is not STRING:
        return None
    answer = takes_null(owner, name, slot)
    if answer is True:
        return None
    if isinstance(answer, Throws):
        cause = ArgumentNullException(answer.parameter, answer.message)
        raise invocation_failure(".ctor" if name == "new" else name, count, cause) from cause
    shown = f"{owner.name}::" if owner is not None else ""
    raise Refusal("member", f"{shown}{name}()", f"with null for {slot.name} (a command without output)")


NULL_STRING = "System.Management.Automation.Language.NullString"
"""The type of [NullString]::Value, which reaches a string parameter as null where $null becomes ''."""


def _argument(argument: Value, kind: DotNetType, slot: Slot, name: str) -> Value:
    if type(argument) is Decorated and kind is not OBJECT:
        argument = argument.base
    if kind is STRING and type_of(argument).name == NULL_STRING:
        return None
    try:
        return convert(argument, kind)
    except PSInvalidCastException as cause:
        shown = "null" if argument is None else dotnet_text(argument)
        raise MethodException(
            f'Cannot convert argument "{slot.name}", with value: "{shown}", for "{name}" to type '
            f'"{kind.name}": "{cause.message}"',
            "MethodArgumentConversionInvalidCastArgument",
            "NotSpecified",
            None,
            cause,
        ) from None
