"""The validation attributes of parameters and variables: ValidateSet, ValidateRange and their kin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from winboot_lab.engine.convert import to_bool
from winboot_lab.engine.exceptions import DotNetException, RuntimeException
from winboot_lab.engine.operators import compare
from winboot_lab.engine.regexes import Regex
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.values import NOTHING, ScriptBlock, enumerate_value, is_enumerable, plain, type_of

Value = Any


class ValidationFailure(Exception):
    """A value does not fit; `text` is the attribute's complaint, `id` the error id of its validation exception."""

    def __init__(self, text: str, inner: DotNetException | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.inner = inner


def _each(value: Value) -> Iterable[Value]:
    """What an enumerating attribute looks at: the elements of a collection, or the value."""
    if value is None or value is NOTHING:
        raise ValidationFailure(
            "The argument is null. Provide a valid value for the argument, and then try running the command again."
        )
    items = enumerate_value(value)
    if items is None:
        yield value
        return
    for item in items:
        if item is None:
            raise ValidationFailure(
                "The argument is null, empty, or an element of the argument collection contains a null value. "
                "Supply a collection that does not contain any null values and then try the command again."
            )
        yield item


@dataclass(frozen=True, slots=True)
class OneOf:
    """[ValidateSet('a', 'b')]."""

    words: tuple[str, ...]
    ignore_case: bool = True

    def check(self, value: Value, scope: Any) -> None:
        for item in _each(value):
            text = to_text(item, scope)
            known = (
                any(text.lower() == word.lower() for word in self.words)
                if self.ignore_case
                else text in self.words
            )
            if not known:
                raise ValidationFailure(
                    f'The argument "{text}" does not belong to the set "{",".join(self.words)}" specified by the '
                    "ValidateSet attribute. Supply an argument that is in the set and then try the command again."
                )


@dataclass(frozen=True, slots=True)
class InRange:
    """[ValidateRange(1, 10)]."""

    low: Value
    high: Value

    def check(self, value: Value, scope: Any) -> None:
        for item in _each(value):
            item = plain(item)
            if type_of(item) is not type_of(self.low):
                item = self._converted(item)
            text = to_text(item, scope)
            if compare(item, self.low, scope) < 0:
                raise ValidationFailure(
                    f"The {text} argument is less than the minimum allowed range of {to_text(self.low, scope)}. "
                    "Supply an argument that is greater than or equal to "
                    f"{to_text(self.low, scope)} and then try the command again."
                )
            if compare(item, self.high, scope) > 0:
                raise ValidationFailure(
                    f"The {text} argument is greater than the maximum allowed range of {to_text(self.high, scope)}. "
                    "Supply an argument that is less than or equal to "
                    f"{to_text(self.high, scope)} and then try the command again."
                )

    def _converted(self, item: Value) -> Value:
        from winboot_lab.engine.convert import convert

        try:
            return convert(item, type_of(self.low))
        except DotNetException as failure:
            raise ValidationFailure(
                f'The type "{type_of(item).name}" of the argument is different from the type '
                f'"{type_of(self.low).name}" of the minimum and maximum limits of the parameter. Verify that the '
                "argument is of the same type as the limits and then try the command again.",
                failure,
            ) from failure


@dataclass(frozen=True, slots=True)
class Matches:
    """[ValidatePattern('^x')]."""

    pattern: str
    expression: Regex

    def check(self, value: Value, scope: Any) -> None:
        for item in _each(value):
            text = to_text(item, scope)
            if not self.expression.search(text).success:
                raise ValidationFailure(
                    f'The argument "{text}" does not match the "{self.pattern}" pattern. Supply an argument that '
                    f'matches "{self.pattern}" and try the command again.'
                )


@dataclass(frozen=True, slots=True)
class HasLength:
    """[ValidateLength(1, 10)]."""

    low: int
    high: int

    def check(self, value: Value, scope: Any) -> None:
        for item in _each(value):
            item = plain(item)
            if type(item) is not str:
                raise ValidationFailure(
                    "The ValidateLength attribute can be applied only to string and string[] parameters. Make the "
                    "parameter a string or string[] parameter."
                )
            length = len(item)
            if length < self.low:
                raise ValidationFailure(
                    f"The character length ({length}) of the argument is too short. Specify an argument with a "
                    f'length that is greater than or equal to "{self.low}", and then try the command again.'
                )
            if length > self.high:
                raise ValidationFailure(
                    f"The character length of the {length} argument is too long. Shorten the character length of "
                    f'the argument so it is fewer than or equal to "{self.high}" characters, and then try the '
                    "command again."
                )


@dataclass(frozen=True, slots=True)
class HasCount:
    """[ValidateCount(1, 3)]."""

    low: int
    high: int

    def check(self, value: Value, scope: Any) -> None:
        if value is None or value is NOTHING:
            count = 0
        elif is_enumerable(value):
            count = len(list(enumerate_value(value) or ()))
        else:
            raise ValidationFailure(
                "The ValidateCount attribute can be applied only to array parameters. Either remove the attribute "
                "or make the parameter an array parameter."
            )
        if self.low <= count <= self.high:
            return
        if self.low == self.high:
            wanted = f"exactly {self.high} value(s) - {count} value(s) were provided"
            raise ValidationFailure(f"The parameter requires {wanted}.")
        raise ValidationFailure(
            f"The parameter requires at least {self.low} value(s) and no more than {self.high} value(s) - {count} "
            "value(s) were provided."
        )


@dataclass(frozen=True, slots=True)
class Script:
    """[ValidateScript({ … })]."""

    block: ScriptBlock

    def check(self, value: Value, scope: Any) -> None:
        for item in _each(value):
            try:
                answer = scope.call_with_underbar(self.block, item)
            except RuntimeException as failure:
                raise ValidationFailure(failure.message, failure) from failure
            if not to_bool(answer):
                raise ValidationFailure(
                    f'The "{self.block.text}" validation script for the argument with value "{to_text(item, scope)}" '
                    "did not return a result of True. Determine why the validation script failed, and then try the "
                    "command again."
                )


@dataclass(frozen=True, slots=True)
class NotNull:
    """[ValidateNotNull()]."""

    def check(self, value: Value, scope: Any) -> None:
        if value is None or value is NOTHING:
            raise ValidationFailure(
                "The argument is null. Provide a valid value for the argument, and then try running the command "
                "again."
            )
        for item in enumerate_value(value) or ():
            if item is None:
                raise ValidationFailure(_COLLECTION_NULL)


@dataclass(frozen=True, slots=True)
class NotNullOrEmpty:
    """[ValidateNotNullOrEmpty()]."""

    def check(self, value: Value, scope: Any) -> None:
        value = plain(value)
        if value is None or value is NOTHING or (type(value) is str and not value):
            raise ValidationFailure(_EMPTY)
        items = enumerate_value(value)
        if items is None:
            return
        count = 0
        for item in items:
            count += 1
            if item is None or (type(item) is str and not item):
                raise ValidationFailure(_COLLECTION_NULL)
        if not count:
            raise ValidationFailure(_COLLECTION_NULL)


_EMPTY = "The argument is null or empty. Provide an argument that is not null or empty, and then try the command again."
_COLLECTION_NULL = (
    "The argument is null, empty, or an element of the argument collection contains a null value. Supply a collection "
    "that does not contain any null values and then try the command again."
)
