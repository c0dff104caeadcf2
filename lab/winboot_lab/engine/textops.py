"""The operators on text: -like, -match, -replace, -split, -join, -f."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from winboot_lab.engine import regexes
from winboot_lab.engine.arithmetic import bare, text_of
from winboot_lab.engine.convert import cast, to_bool
from winboot_lab.engine.dotnet import Runtime
from winboot_lab.engine.exceptions import ArgumentException, FormatException, RuntimeException
from winboot_lab.engine.formatting import dotnet_text, format_string
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.regexes import Match, Regex, regex
from winboot_lab.engine.values import (
    INT32,
    STRING,
    Array,
    Decorated,
    Hashtable,
    PSCustomObject,
    ScriptBlock,
    Value,
    enumerate_value,
    named,
)
from winboot_lab.engine.wildcards import compile_wildcard

Operate = Callable[[Value, Value, "Runtime | None"], Value]


# -- -like


def wildcard_match(pattern: str, text: str, *, case: bool = False) -> bool:
    """Does the text fit the wildcard pattern?"""
    return compile_wildcard(pattern, ignore_case=not case).fullmatch(text) is not None


def like_operator(*, case: bool, negated: bool) -> Operate:
    """-like and -notlike: a list on the left is filtered."""

    def operate(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
        pattern = compile_wildcard(text_of(right, runtime), ignore_case=not case)

        def test(item: Value) -> bool:
            return (pattern.fullmatch(text_of(item, runtime)) is not None) is not negated

        items = enumerate_value(left)
        return test(left) if items is None else Array(item for item in items if test(item))

    return operate


# -- -match


def _pattern(right: Value, runtime: Runtime | None, *, case: bool) -> Regex:
    value = bare(right)
    if isinstance(value, Regex):
        return value
    return regex(text_of(value, runtime), 0 if case else regexes.IGNORE_CASE)


def match(left: Value, right: Value, runtime: Runtime | None = None, *, case: bool = False) -> Value:
    """-match: a single value sets $Matches when it fits; a list is filtered."""
    pattern = _pattern(right, runtime, case=case)
    items = enumerate_value(left)
    if items is not None:
        return Array(item for item in items if pattern.compiled.search(text_of(item, runtime)) is not None)
    found = pattern.search(text_of(left, runtime))
    if found.success and runtime is not None:
        runtime.put("Matches", matches_table(found))
    return found.success


def matches_table(found: Match) -> Hashtable:
    """$Matches: group names and numbers; groups that took no part are absent."""
    table = Hashtable()
    for group in reversed(found.groups()):
        if group.success:
            name = group.name
            table.put(int(name) if name.isdigit() else name, group.value)
    return table


def match_operator(*, case: bool, negated: bool) -> Operate:
    """-match and -notmatch."""

    def operate(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
        if negated and enumerate_value(left) is not None:
            pattern = _pattern(right, runtime, case=case)
            items = enumerate_value(left) or ()
            return Array(item for item in items if pattern.compiled.search(text_of(item, runtime)) is None)
        found = match(left, right, runtime, case=case)
        return not found if negated else found

    return operate


# -- -replace


def _replaced_pattern(value: Value, runtime: Runtime | None, *, case: bool) -> Regex:
    """The pattern of -replace, which words its own complaint about a bad one."""
    try:
        return _pattern(value, runtime, case=case)
    except ArgumentException as cause:
        raise RuntimeException(
            f"The regular expression pattern {text_of(value, runtime)} is not valid.",
            "InvalidRegularExpression",
            "InvalidOperation",
            value,
            cause,
        ) from None


def replace_operator(*, case: bool) -> Operate:
    """-replace: pattern and replacement; a list gives a list."""

    def operate(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
        parts = enumerate_value(right)
        given = [right] if parts is None else list(parts)
        if len(given) > 2:
            raise RuntimeException(
                f"The -replace operator allows only two elements to follow it, not {len(given)}.",
                "BadReplaceArgument",
                "InvalidOperation",
            )
        pattern = _replaced_pattern(given[0] if given else "", runtime, case=case)
        replacement = text_of(given[1], runtime) if len(given) > 1 else ""
        items = enumerate_value(left)
        if items is not None:
            return Array(pattern.replace(text_of(item, runtime), replacement) for item in items)
        return pattern.replace(text_of(left, runtime), replacement)

    return operate


# -- -split

_SIMPLE, _REGEX, _CULTURE, _BLANK, _MULTI, _SINGLE, _IGNORE, _EXPLICIT = 1, 2, 4, 8, 16, 32, 64, 128
_TO_REGEX = {
    _CULTURE: regexes.CULTURE_INVARIANT,
    _BLANK: regexes.IGNORE_WHITESPACE,
    _MULTI: regexes.MULTILINE,
    _SINGLE: regexes.SINGLELINE,
    _IGNORE: regexes.IGNORE_CASE,
    _EXPLICIT: regexes.EXPLICIT_CAPTURE,
}


def split_operator(*, case: bool) -> Operate:
    """-split: pattern or block, then at most so many pieces, then options."""

    def operate(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
        parts = enumerate_value(right)
        given = [right] if parts is None else list(parts)
        if not given:
            raise Refusal("operator", "split", "without a pattern")
        count = int(cast(given[1], INT32)) if len(given) > 1 else 0
        if count < 0:
            raise Refusal("operator", "split", "a negative number of pieces")
        cut = _cutter(bare(given[0]), count, given[2:], runtime, case=case)
        items = enumerate_value(left)
        texts = [left] if items is None else items
        return Array((piece for item in texts for piece in cut(text_of(item, runtime))), STRING)

    return operate


def _cutter(
    pattern: Value, count: int, options: Sequence[Value], runtime: Runtime | None, *, case: bool
) -> Callable[[str], list[str]]:
    if isinstance(pattern, ScriptBlock):
        return lambda text: _split_by_block(text, pattern, count, runtime)
    bits = 0
    if options:
        if len(options) > 1:
            raise Refusal("operator", "split", "more than three arguments")
        kind = named("System.Management.Automation.SplitOptions")
        bits = _option_bits(cast_option(options[0], kind.name))
    flags = 0 if case else regexes.IGNORE_CASE
    for bit, flag in _TO_REGEX.items():
        if bits & bit:
            flags |= flag
    if bits & _SIMPLE:
        made = regex(regexes.escape(text_of(pattern, runtime)), flags)
    else:
        made = pattern if isinstance(pattern, Regex) else regex(text_of(pattern, runtime), flags)
    return lambda text: made.split(text, count)


def cast_option(value: Value, type_name: str) -> Value:
    """An option of -split; a bad one has the id RuntimeException."""
    try:
        return cast(value, named(type_name))
    except RuntimeException as cause:
        raise RuntimeException(cause.message, "RuntimeException", "NotSpecified", None, cause.inner) from None


def _option_bits(value: Value) -> int:
    return int(value.number)


def _split_by_block(text: str, block: ScriptBlock, count: int, runtime: Runtime | None) -> list[str]:
    if runtime is None:
        raise Refusal("operator", "split", "a script block without a runspace")
    pieces = [""]
    for letter in text:
        if (count == 0 or len(pieces) < count) and to_bool(runtime.call_with_underbar(block, letter)):
            pieces.append("")
        else:
            pieces[-1] += letter
    return pieces


def unary_split(value: Value, runtime: Runtime | None = None) -> Value:
    """`-split text`: at white space."""
    items = enumerate_value(value)
    texts = [value] if items is None else items
    return Array((piece for item in texts for piece in text_of(item, runtime).split()), STRING)


# -- -join and -f


def join(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
    """`items -join separator`."""
    items = enumerate_value(left)
    if items is None:
        return dotnet_text(left) if left is not None else ""
    return text_of(right, runtime).join(dotnet_text(item) for item in items)


def unary_join(value: Value, runtime: Runtime | None = None) -> Value:
    """`-join items`."""
    return join(value, "", runtime)


def format_operator(left: Value, right: Value, runtime: Runtime | None = None) -> Value:
    """`template -f arguments`: an array spreads, any other list is one argument."""
    value = bare(right)
    arguments = list(value) if type(value) is Array else [value]
    shown = [_format_argument(argument, runtime) for argument in arguments]
    try:
        return format_string(text_of(left, runtime), shown)
    except FormatException as cause:
        # StringOps.FormatOperator passes on the message alone: there is no inner exception.
        raise RuntimeException(
            f"Error formatting a string: {cause.message}.", "FormatError", "InvalidOperation"
        ) from None


def _format_argument(value: Value, runtime: Runtime | None) -> Value:
    if type(value) is Decorated:
        value = value.base
    return text_of(value, runtime) if type(value) is PSCustomObject else value
