"""JSON as ConvertTo-Json of Windows PowerShell 5.1 writes it: JavaScriptSerializer's text, laid out in PowerShell's wide way.

What differs from PowerShell 7: `'`, `<`, `>` and `&` are escaped, dates are `\\/Date(ms)\\/`, an array or date that came as a
PSObject shows its added properties (`{"value":[...],"Count":2}`). A value that is nested too deep becomes text without a
warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from winboot_lab.engine.convert import to_string
from winboot_lab.engine.exceptions import DotNetException, InvalidOperationException
from winboot_lab.engine.formatting import format_guid, format_number, number_text
from winboot_lab.engine.members import get_member
from winboot_lab.engine.moments import UNIX_EPOCH_TICKS, DateTime, DateTimeOffset
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.values import (
    DBNULL_VALUE,
    NOTHING,
    NUMBER_CLASSES,
    AliasProperty,
    BigInteger,
    Char,
    CodeProperty,
    EnumValue,
    Extension,
    NoteProperty,
    PSCustomObject,
    ScriptProperty,
    Single,
    Uri,
    _Mapping,
    enumerate_value,
    extension_of,
    plain,
    type_of,
)

Value = Any

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CODED = frozenset("'<>&\u0085\u2028\u2029")

# The properties of the few .NET types whose JSON scripts rely on, in the order of .NET Framework.
_KNOWN_OBJECTS = {
    "System.TimeSpan": "Ticks Days Hours Milliseconds Minutes Seconds TotalDays TotalHours TotalMilliseconds TotalMinutes "
    "TotalSeconds",
    "System.Version": "Major Minor Build Revision MajorRevision MinorRevision",
    "System.Management.Automation.SwitchParameter": "IsPresent",
}


class NotAString(Exception):
    """A dictionary has a key that is no string."""

    def __init__(self, table: Value) -> None:
        super().__init__()
        self.table = table
        self.failure = InvalidOperationException(
            f"The type '{type_of(table).name}' is not supported for serialization or deserialization of a dictionary. "
            "Keys must be strings."
        )


def write_json(values: Sequence[Value], scope: Scope, *, depth: int, compress: bool, wrapped: bool) -> str:
    """The JSON text of one value, or of several as an array. `wrapped`: they came through the pipeline."""
    writer = _Writer(scope, depth)
    made: Any
    if len(values) == 1:
        made = writer.process(values[0], 0, wrapped=wrapped)
    else:
        made = [writer.process(value, 1, wrapped=wrapped) for value in values]
    text = _text(made)
    return text if compress else lay_out(text)


class _Writer:
    """Turns values into Python's dicts, lists and scalars, as deep as asked."""

    def __init__(self, scope: Scope, depth: int) -> None:
        self.scope = scope
        self.depth = depth

    def process(self, value: Value, depth: int, *, wrapped: bool = False) -> Any:
        """A value in JSON's terms; `wrapped` when it comes in a PSObject."""
        extension = extension_of(value)
        bare = plain(value)
        if bare is None or bare is NOTHING or bare is DBNULL_VALUE:
            return None
        wrapped = wrapped or extension is not None
        if _is_scalar(bare):
            made: Any = bare
        elif depth > self.depth:
            made = to_string(bare)
            if isinstance(bare, PSCustomObject):
                return made
        elif isinstance(bare, _Mapping):
            made = self._table(bare, depth)
        else:
            items = enumerate_value(bare)
            if items is not None:
                made = [self.process(item, depth + 1) for item in items]
            else:
                return self._object(bare, extension, depth)
        return self._with_added(bare, made, extension, depth) if wrapped else made

    def _table(self, table: _Mapping, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, item in table.items():
            if type(key) is not str:
                raise NotAString(table)
            made[key] = self.process(item, depth + 1)
        return made

    def _object(self, value: Value, extension: Extension | None, depth: int) -> dict[str, Any]:
        """A custom object, or a .NET object by its properties."""
        made: dict[str, Any] = {}
        if not isinstance(value, PSCustomObject):
            for name in _property_names(value):
                made[name] = self.process(self._read(value, name), depth + 1)
        self._append(value, made, extension, depth)
        return made

    def _with_added(self, value: Value, made: Any, extension: Extension | None, depth: int) -> Any:
        """What Add-Member and the type data add to something that is no object of its own."""
        receiver = made if isinstance(made, dict) else {"value": made}
        self._append(value, receiver, extension, depth)
        if enumerate_value(value) is not None and type_of(value).kind == "array":
            receiver.setdefault(
                "Count", len(made) if isinstance(made, list) else len(list(enumerate_value(value) or ()))
            )
        if isinstance(value, DateTime):
            raise Refusal(
                "value", "System.DateTime as JSON", "with the properties that PowerShell adds to it"
            )
        return made if receiver is not made and len(receiver) == 1 else receiver

    def _append(
        self, value: Value, receiver: dict[str, Any], extension: Extension | None, depth: int
    ) -> None:
        for name, read in _added(extension):
            if name not in receiver:
                receiver[name] = self.process(
                    self._read(value, name) if read is None else read.value, depth + 1
                )

    def _read(self, value: Value, name: str) -> Value:
        """A property's value; one that cannot be read counts as null."""
        try:
            return get_member(value, name, self.scope)
        except DotNetException:
            return None


def _added(extension: Extension | None) -> Iterator[tuple[str, NoteProperty | None]]:
    """The added properties: name, and the note where no code has to run."""
    if extension is None:
        return
    for member in list(extension.members.values()):
        if isinstance(member, NoteProperty):
            yield member.name, member
        elif isinstance(member, (ScriptProperty, AliasProperty, CodeProperty)):
            yield member.name, None


def _property_names(value: Value) -> list[str]:
    kind = type_of(value)
    known = _KNOWN_OBJECTS.get(kind.name)
    if known is not None:
        return known.split()
    raise Refusal("value", f"{kind.name} as JSON")


def _is_scalar(value: Value) -> bool:
    kind = type(value)
    if kind is BigInteger:
        raise Refusal("value", "System.Numerics.BigInteger as JSON")
    return (
        kind in NUMBER_CLASSES
        or isinstance(value, (str, bool, DateTime, DateTimeOffset, EnumValue, Uri))
        or type_of(value).name == "System.Guid"
    )


# -- the serializer's text


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(name)}:{_text(item)}" for name, item in value.items()) + "}"
    if type(value) is list:
        return "[" + ",".join(_text(item) for item in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is Char and value == "\0":
        return "null"
    if isinstance(value, str):
        return quoted(str(value))
    if kind is float or kind is Single:
        return format_number(value, "r")
    if kind is Decimal or isinstance(value, int):
        return number_text(value)
    if isinstance(value, EnumValue):
        underlying = value.dotnet_type.underlying
        if underlying is not None and underlying.name in ("System.Int64", "System.UInt64"):
            return quoted(str(value))
        return str(value.number)
    if isinstance(value, DateTime):
        # A local time is written as the same instant in UTC.
        return f'"\\/Date({(value.to_utc().ticks - UNIX_EPOCH_TICKS) // 10_000})\\/"'
    if isinstance(value, DateTimeOffset):
        return f'"\\/Date({(value.utc_ticks - UNIX_EPOCH_TICKS) // 10_000})\\/"'
    if isinstance(value, Uri):
        raise Refusal("value", "System.Uri as JSON")
    return f'"{format_guid(value, "D")}"'


def quoted(text: str) -> str:
    """A string in double quotes, escaped as JavaScriptStringEncode does it."""
    return '"' + "".join(_SHORT.get(letter) or _letter(letter) for letter in text) + '"'


def _letter(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if letter < " " or letter in _CODED else letter


# -- the layout


def lay_out(text: str) -> str:
    """Compressed JSON in 5.1's layout: four blanks a level, children aligned under their opening brace, CRLF."""
    if not text.startswith(("{", "[")):
        return text
    return "".join(_Layout(text).run())


class _Layout:
    """Walks over the compressed text; `out` is what has been written."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.out: list[str] = []

    def run(self) -> list[str]:
        self.out.append(self.text[0])
        if self.text[0] == "{":
            self.members(1, "", 0)
        else:
            self.items(1, "", 0)
        return self.out

    def string(self, at: int) -> int:
        """Copy a string whose opening quote stands before `at`; where its closing quote stands."""
        end = at
        while self.text[end] != '"':
            end += 2 if self.text[end] == "\\" else 1
        self.out.append(self.text[at : end + 1])
        return end

    def items(self, at: int, pad: str, spaces: int) -> int:
        """The items of an array; where its bracket closes."""
        out, text = self.out, self.text
        out.append("\r\n")
        inner = pad + " " * (spaces + 4)
        head = True
        while True:
            letter = text[at]
            if letter == "]":
                out.append("\r\n" + pad + " " * spaces + "]")
                return at
            if letter == ",":
                out.append(",\r\n")
                head = True
            else:
                if head or letter in "{[":
                    out.append(inner)
                out.append(letter)
                head = False
                if letter == "{":
                    at = self.members(at + 1, inner, 0)
                elif letter == "[":
                    at = self.items(at + 1, inner, 0)
                elif letter == '"':
                    at = self.string(at + 1)
            at += 1

    def members(self, at: int, pad: str, spaces: int) -> int:
        """The members of an object; where its brace closes."""
        out, text = self.out, self.text
        out.append("\r\n")
        inner = pad + " " * (spaces + 4)
        head = before_colon = True
        width = 0
        while True:
            letter = text[at]
            if letter == "}":
                out.append("\r\n" + pad + " " * spaces + "}")
                return at
            if letter == ",":
                out.append(",\r\n")
                head = before_colon = True
                width = 0
            elif letter == ":":
                out.append(":  ")
                width += 3
                head = before_colon = False
            else:
                if head:
                    out.append(inner)
                out.append(letter)
                head = False
                begin = at
                if letter == "{":
                    at = self.members(at + 1, inner, width)
                elif letter == "[":
                    at = self.items(at + 1, inner, width)
                elif letter == '"':
                    at = self.string(at + 1)
                if before_colon:
                    width += at - begin + 1
            at += 1
