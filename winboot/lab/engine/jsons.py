"""JSON as Windows PowerShell 5.1 writes and reads it (JavaScriptSerializer, not the JSON library of PowerShell 7)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from winboot.lab.engine.convert import to_string
from winboot.lab.engine.exceptions import ArgumentException, InvalidOperationException
from winboot.lab.engine.formatting import dotnet_text
from winboot.lab.engine.members import get_member, properties_of
from winboot.lab.engine.moments import UNIX_EPOCH_TICKS, UTC, DateTime
from winboot.lab.engine.refusal import Refusal
from winboot.lab.engine.scopes import Scope
from winboot.lab.engine.values import (
    DBNULL_VALUE,
    NOTHING,
    NUMBER_CLASSES,
    Array,
    Char,
    Decorated,
    EnumValue,
    Int64,
    NoteProperty,
    PSCustomObject,
    Uri,
    _Mapping,
    enumerate_value,
    extension_of,
    plain,
    type_of,
)

Value = Any

# -- writing


class Writer:
    """Turns values into JSON text, down to `depth` levels."""

    def __init__(self, scope: Scope, *, depth: int, compress: bool) -> None:
        self.scope = scope
        self.depth = depth
        self.compress = compress

    def text(self, value: Value) -> str:
        """The JSON text of a value."""
        return self._write(self._prepare(value, 0), 0)

    # A prepared value: a str of finished JSON, a list, or a dict in order.

    def _prepare(self, value: Value, level: int) -> Any:
        if isinstance(value, Decorated):
            return self._decorated(value, level)
        scalar = self._scalar(value)
        if scalar is not None:
            return scalar
        if level > self.depth:
            return _quoted(to_string(value))
        if isinstance(value, _Mapping):
            return self._mapping(value, level)
        if isinstance(value, PSCustomObject):
            return self._object(value, level)
        items = enumerate_value(value)
        if items is not None:
            return [self._prepare(item, level + 1) for item in items]
        return self._object(value, level)

    def _scalar(self, value: Value) -> str | None:
        kind = type(value)
        if value is None or value is NOTHING or value is DBNULL_VALUE:
            return "null"
        if kind is bool:
            return "true" if value else "false"
        if kind is str or kind is Char:
            return _quoted(value)
        if kind in NUMBER_CLASSES:
            return _number(value)
        if kind is EnumValue:
            return str(value.number)
        if kind is DateTime:
            return _date(value)
        if kind is uuid.UUID:
            return _quoted(str(value))
        if kind is Uri:
            return _quoted(to_string(get_member(value, "AbsoluteUri", self.scope)) if value.absolute else value.original)
        if type_of(value).name == "System.Management.Automation.SwitchParameter":
            return None
        return None

    def _decorated(self, value: Decorated, level: int) -> Any:
        """A scalar with added members becomes an object."""
        notes = [member for member in value.extension.members.values() if isinstance(member, NoteProperty)]
        base = self._prepare(value.base, level)
        if not notes:
            return base
        return {"value": base} | {note.name: self._prepare(note.value, level + 1) for note in notes}

    def _mapping(self, value: _Mapping, level: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidOperationException(
                    f"The type '{type_of(value).name}' is not supported for serialization or deserialization of a "
                    "dictionary. Keys must be strings."
                )
            made[key] = self._prepare(item, level + 1)
        extension = extension_of(value)
        if extension is not None:
            for member in extension.members.values():
                if isinstance(member, NoteProperty) and member.name not in made:
                    made[member.name] = self._prepare(member.value, level + 1)
        return made

    def _object(self, value: Value, level: int) -> dict[str, Any]:
        kind = type_of(plain(value))
        if not kind.closed:
            raise Refusal("type", kind.name, "as JSON")
        made: dict[str, Any] = {}
        for name in properties_of(value):
            made[name] = self._prepare(get_member(value, name, self.scope), level + 1)
        return made

    # -- layout

    def _write(self, prepared: Any, indent: int) -> str:
        if isinstance(prepared, str):
            return prepared
        if self.compress:
            if isinstance(prepared, list):
                return "[" + ",".join(self._write(item, 0) for item in prepared) + "]"
            return "{" + ",".join(f"{_quoted(key)}:{self._write(item, 0)}" for key, item in prepared.items()) + "}"
        inner = " " * (indent + 4)
        if isinstance(prepared, list):
            rows = [inner + self._write(item, indent + 4) for item in prepared]
            opening, closing = "[", "]"
        else:
            rows = []
            for key, item in prepared.items():
                head = f"{_quoted(key)}:  "
                rows.append(inner + head + self._write(item, indent + 4 + len(head)))
            opening, closing = "{", "}"
        return opening + "\r\n" + ",\r\n".join(rows) + "\r\n" + " " * indent + closing


_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r'["\\\x00-\x1f\'<>&\x85\u2028\u2029]')


def _quoted(text: str) -> str:
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    letter = found.group()
    return _SHORT.get(letter) or f"\\u{ord(letter):04x}"


def _number(value: Value) -> str:
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return _quoted(dotnet_text(value)) if False else dotnet_text(value)
        text = repr(float(value)) if type(value) is float else dotnet_text(value)
        return _round_trip(text)
    return dotnet_text(value)


def _round_trip(text: str) -> str:
    """Python's shortest form as .NET's "r" writes it."""
    if text.endswith(".0"):
        text = text[:-2]
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    if mantissa.endswith(".0"):
        mantissa = mantissa[:-2]
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa}E{sign}{exponent.lstrip('+-').zfill(2)}"


def _date(value: DateTime) -> str:
    milliseconds = (value.ticks - UNIX_EPOCH_TICKS) // 10_000
    return f'"\\/Date({milliseconds})\\/"'


# -- reading


class DuplicateKeys(Exception):  # noqa: N818 - it says what is wrong
    """Two keys of one object differ in case only."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first, second)
        self.first = first
        self.second = second


class EmptyKey(Exception):  # noqa: N818 - it says what is wrong
    """An object has the key ''."""


def read(text: str) -> Value:
    """The values of a JSON text. Raises ArgumentException as 5.1 words it, or a Refusal for what only 7 reads."""
    if "\\/Date(" not in text:
        try:
            return _strict(text)
        except ValueError:
            pass
    return _Reader(text).document()


def _strict(text: str) -> Value:
    return _from_python(
        json.loads(
            text,
            object_pairs_hook=_object_of,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_no_constant,
        )
    )


def _from_python(value: Any) -> Value:
    if type(value) is list:
        return Array([_from_python(item) for item in value])
    return value


def _object_of(pairs: list[tuple[str, Any]]) -> PSCustomObject:
    made = PSCustomObject()
    for key, value in pairs:
        if not key:
            raise EmptyKey
        known = made.extension.members.get(key.lower())
        if known is not None and known.name != key:
            raise DuplicateKeys(known.name, key)
        made.extension.members[key.lower()] = NoteProperty(key, _from_python(value))
    return made


def _integer(text: str) -> Value:
    number = int(text)
    if -(2**31) <= number < 2**31:
        return number
    if -(2**63) <= number < 2**63:
        return Int64(number)
    return Decimal(text) if abs(number) < 2**96 else float(number)


def _fraction(text: str) -> Value:
    if "e" in text or "E" in text:
        return float(text)
    return Decimal(text)


def _no_constant(text: str) -> Value:
    raise ValueError(text)


class _Reader:
    """JavaScriptSerializer's grammar where it is wider than JSON: single quotes, bare keys, raw line ends in strings."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def document(self) -> Value:
        value = self._value()
        if self._peek() is not None:
            raise ArgumentException(f"Invalid JSON primitive: {self.text[self.at :].strip()[:60]}.")
        return value

    def _peek(self) -> str | None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at] if self.at < len(self.text) else None

    def _value(self) -> Value:
        letter = self._peek()
        if letter is None:
            raise ArgumentException("Invalid JSON primitive: .")
        if letter == "{":
            return _object_of(list(self._pairs()))
        if letter == "[":
            return self._array()
        if letter in "\"'":
            return self._string()
        return self._primitive()

    def _pairs(self) -> Iterator[tuple[str, Any]]:
        self.at += 1
        if self._peek() == "}":
            self.at += 1
            return
        while True:
            key = self._key()
            if self._peek() != ":":
                raise ArgumentException(f"Invalid object passed in, ':' or '}}' expected. ({self.at}): {self.text}")
            self.at += 1
            yield key, self._value()
            letter = self._peek()
            self.at += 1
            if letter == "}":
                return
            if letter != ",":
                raise ArgumentException(f"Invalid object passed in, ':' or '}}' expected. ({self.at}): {self.text}")
            if self._peek() == "}":
                raise Refusal("value", "a trailing comma in JSON", "PowerShell 5.1 and 7 differ")

    def _key(self) -> str:
        letter = self._peek()
        if letter is not None and letter in "\"'":
            value = self._string()
            return value if isinstance(value, str) else to_string(value)
        found = re.compile(r"[A-Za-z_$][\w$]*").match(self.text, self.at)
        if found is None:
            raise ArgumentException(f"Invalid object passed in, member name expected. ({self.at}): {self.text}")
        self.at = found.end()
        return found.group()

    def _array(self) -> Array:
        self.at += 1
        items: list[Value] = []
        if self._peek() == "]":
            self.at += 1
            return Array()
        while True:
            items.append(self._value())
            letter = self._peek()
            self.at += 1
            if letter == "]":
                return Array(items)
            if letter is None:
                raise Refusal("value", "an unclosed array in JSON", "PowerShell 5.1 and 7 differ")
            if letter != ",":
                raise ArgumentException(f"Invalid array passed in, ',' expected. ({self.at}): {self.text}")
            if self._peek() == "]":
                raise Refusal("value", "a trailing comma in JSON", "PowerShell 5.1 and 7 differ")

    def _string(self) -> Value:
        quote = self.text[self.at]
        begin = self.at
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text):
            letter = self.text[self.at]
            self.at += 1
            if letter == quote:
                return self._finished("".join(parts), self.text[begin : self.at])
            parts.append(self._escaped() if letter == "\\" else letter)
        raise ArgumentException(f"Unterminated string passed in. ({begin}): {self.text}")

    @staticmethod
    def _finished(text: str, raw: str) -> Value:
        found = re.fullmatch(r'"\\/Date\((-?\d+)(?:[+-]\d{4})?\)\\/"', raw)
        if found is not None:
            return DateTime(UNIX_EPOCH_TICKS + int(found.group(1)) * 10_000, UTC)
        return text

    def _escaped(self) -> str:
        letter = self.text[self.at : self.at + 1]
        self.at += 1
        simple = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}.get(letter)
        if simple is not None:
            return simple
        if letter and letter in "\"'\\/":
            return letter
        if letter == "u":
            digits = self.text[self.at : self.at + 4]
            self.at += 4
            try:
                return chr(int(digits, 16))
            except ValueError:
                pass
        raise ArgumentException(f"Unrecognized escape sequence. ({self.at}): {self.text}")

    def _primitive(self) -> Value:
        found = re.compile(r"[^\s,\]\}:\"'\[\{]*").match(self.text, self.at)
        word = found.group() if found is not None else ""
        if word in ("null", "true", "false"):
            self.at += len(word)
            return {"null": None, "true": True, "false": False}[word]
        if re.fullmatch(r"-?(0|[1-9]\d*)", word):
            self.at += len(word)
            return _integer(word)
        if re.fullmatch(r"-?\d+\.\d+([eE][+-]?\d+)?|-?\d+[eE][+-]?\d+", word):
            self.at += len(word)
            return _fraction(word)
        if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F]+|-?0\d+|[+-]?\.?\d+\.?\d*", word) or word.lower() in (
            "nan",
            "infinity",
            "-infinity",
        ):
            raise Refusal("value", f"the JSON number {word}", "PowerShell 5.1 and 7 differ")
        if word.startswith("/"):
            raise ArgumentException(f"Invalid JSON primitive: {word}.")
        raise ArgumentException(f"Invalid JSON primitive: {word}.")
