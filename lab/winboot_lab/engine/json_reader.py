"""JSON as Windows PowerShell 5.1 reads it: by .NET Framework's JavaScriptSerializer, which is laxer here and stricter there.

It takes single quotes and bare member names, refuses comments, trailing commas and empty member names, and gives Int32, Int64,
Decimal or Double by what the text looks like. Objects become custom objects, arrays object[].
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from winboot_lab.engine.exceptions import ArgumentException, DotNetException, InvalidOperationException
from winboot_lab.engine.moments import UNIX_EPOCH_TICKS, UTC, DateTime
from winboot_lab.engine.parsing import parse_decimal, parse_double
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import Array, Int64, NoteProperty, PSCustomObject

Value = Any

MAX_DEPTH = 102
MAX_MEMBERS = 1000

_DATE = re.compile(r'"\\/Date\((-?[0-9]+)(?:[a-zA-Z]|[+-][0-9]{4})?\)\\/"')
_ESCAPES = {'"': '"', "'": "'", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?[0-9]*\.?[0-9]*-?")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity")


class DuplicateKeys(Exception):
    """Two members of an object differ in case only, which a custom object cannot hold."""

    def __init__(self, known: str, new: str) -> None:
        super().__init__(known, new)
        self.failure = InvalidOperationException(
            "Cannot convert the JSON string because a dictionary that was converted from the string contains the "
            f"duplicated keys '{known}' and '{new}'."
        )


def read_json(text: str) -> Value:
    """The value of a JSON text. Raises ArgumentException for other text, DuplicateKeys for members with one name."""
    return to_objects(_Reader(text).read_all())


def to_objects(value: Value) -> Value:
    """Dictionaries as custom objects, lists as object[], deeply."""
    if isinstance(value, dict):
        made = PSCustomObject()
        members = made.extension.members
        for name, item in value.items():
            known = members.get(name.lower())
            if known is not None:
                raise DuplicateKeys(known.name, name)
            members[name.lower()] = NoteProperty(name, to_objects(item))
        return made
    if type(value) is list:
        return Array(to_objects(item) for item in value)
    return value


class _Reader:
    """The text and how far it is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    # -- characters -------------------------------------------------------------------------------------------------

    def next_filled(self) -> str:
        """The next character that is no white space, or ''; it is taken."""
        text = self.text
        while self.at < len(text):
            letter = text[self.at]
            self.at += 1
            if not letter.isspace():
                return letter
        return ""

    def take(self) -> str:
        """The next character, or ''."""
        if self.at >= len(self.text):
            return ""
        self.at += 1
        return self.text[self.at - 1]

    def problem(self, message: str) -> ArgumentException:
        """A complaint with the place and the whole text."""
        return ArgumentException(f"{message} ({self.at}): {self.text}")

    # -- values -----------------------------------------------------------------------------------------------------

    def read_all(self) -> Value:
        """The one value of the text, or null."""
        value = self.value(0)
        if self.next_filled():
            raise ArgumentException(f"Invalid JSON primitive: {self.text[self.at - 1 :]}.")
        return value

    def value(self, depth: int) -> Value:
        depth += 1
        if depth > MAX_DEPTH:
            raise self.problem("RecursionLimit exceeded.")
        first = self.next_filled()
        if not first:
            return None
        self.at -= 1
        date = _DATE.match(self.text, self.at) if first == '"' else None
        if date is not None:
            self.at = date.end()
            return DateTime(int(date.group(1)) * 10_000 + UNIX_EPOCH_TICKS, UTC)
        if first == "{":
            return self.members(depth)
        if first == "[":
            return self.items(depth)
        if first in "\"'":
            return self.string()
        return _primitive(self.word())

    def members(self, depth: int) -> dict[str, Value]:
        """An object, from its brace to its brace."""
        self.at += 1
        found: dict[str, Value] = {}
        first = True
        letter = ""
        while letter := self.next_filled():
            self.at -= 1
            if letter == "}" and first:
                self.at += 1
                break
            name = "" if letter in ":}" else self.member_name()
            if not name and letter != "}":
                raise self.problem("Invalid object passed in, member name expected.")
            if name and self.next_filled() != ":":
                raise self.problem("Invalid object passed in, ':' or '}' expected.")
            if len(found) >= MAX_MEMBERS:
                raise InvalidOperationException(
                    "Operation is not valid due to the current state of the object."
                )
            found[name] = self.value(depth)
            first = False
            letter = self.next_filled()
            if letter == "}":
                break
            if letter != ",":
                raise self.problem("Invalid object passed in, ':' or '}' expected.")
        if letter != "}":
            raise self.problem("Invalid object passed in, ':' or '}' expected.")
        if "__type" in found:
            raise Refusal("value", "__type", "a JSON member that names a type")
        return found

    def member_name(self) -> str:
        return self.string() if self.text[self.at] in "\"'" else self.word()

    def items(self, depth: int) -> list[Value]:
        """An array, from its bracket to its bracket."""
        self.at += 1
        found: list[Value] = []
        more = False
        while (letter := self.next_filled()) and letter != "]":
            self.at -= 1
            found.append(self.value(depth))
            more = False
            letter = self.next_filled()
            if letter == "]":
                break
            more = True
            if letter != ",":
                raise self.problem("Invalid array passed in, ',' expected.")
        if more:
            raise self.problem("Invalid array passed in, extra trailing ','.")
        if letter != "]":
            raise self.problem("Invalid array passed in, ']' expected.")
        return found

    def string(self) -> str:
        """A string in either kind of quotes."""
        quote = self.take()
        made: list[str] = []
        while letter := self.take():
            if letter == quote:
                return "".join(made)
            made.append(self.escaped() if letter == "\\" else letter)
        raise self.problem("Unterminated string passed in.")

    def escaped(self) -> str:
        letter = self.take()
        if letter == "\\":
            return "\\"
        if letter == "u":
            digits = self.text[self.at : self.at + 4]
            self.at += 4
            if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                raise self.problem("Unrecognized escape sequence.")
            return chr(int(digits, 16))
        if not letter:
            raise self.problem("Unterminated string passed in.")
        if letter not in _ESCAPES:
            raise self.problem("Unrecognized escape sequence.")
        return _ESCAPES[letter]

    def word(self) -> str:
        """A run of letters, digits and `.-_+`."""
        begin = self.at
        text = self.text
        while self.at < len(text) and (text[self.at].isalnum() or text[self.at] in ".-_+"):
            self.at += 1
        return text[begin : self.at]


def _primitive(word: str) -> Value:
    if word == "null":
        return None
    if word in ("true", "false"):
        return word == "true"
    if "e" not in word.lower():
        if "." not in word and _WHOLE.fullmatch(word):
            number = int(word)
            if -(2**31) <= number < 2**31:
                return number
            if -(2**63) <= number < 2**63:
                return Int64(number)
        found = _decimal(word)
        if found is not None:
            return found
    if _FLOAT.fullmatch(word):
        return parse_double(word)
    raise ArgumentException(f"Invalid JSON primitive: {word}.")


def _decimal(word: str) -> Decimal | None:
    if not _FRACTION.fullmatch(word) or not any(letter.isdigit() for letter in word):
        return None
    try:
        return parse_decimal(word)
    except DotNetException:
        return None
