"""ConvertTo- and ConvertFrom-Csv, Export- and Import-Csv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from winboot_lab.engine.adapted import property_of
from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import cmdlet
from winboot_lab.engine.convert import to_string
from winboot_lab.engine.door import ask
from winboot_lab.engine.encodings import decode, encode
from winboot_lab.engine.exceptions import IOException, UnauthorizedAccessException
from winboot_lab.engine.locations import full_path
from winboot_lab.engine.members import properties_of
from winboot_lab.engine.values import (
    NoteProperty,
    PSCustomObject,
    _Mapping,
    enumerate_value,
    plain,
    type_names_of,
)

Value = Any

# -- CSV


def csv_columns(value: Value) -> list[str]:
    """The columns an object makes: its properties."""
    return list(properties_of(value))


def csv_line(call: Call, value: Value, columns: Sequence[str], delimiter: str) -> str:
    """One object as a line; every field is quoted, a missing one is empty."""
    fields = []
    for column in columns:
        found = property_of(value, column, call.scope)
        fields.append("" if found is None or found[0] is None else quoted(to_string_field(found[0])))
    return delimiter.join(fields)


def to_string_field(value: Value) -> str:
    """A field's text: lists show their type, as ToString does."""
    from winboot_lab.engine.formatting import dotnet_text

    bare = plain(value)
    return dotnet_text(bare) if enumerate_value(bare) is not None else to_string(bare)


def quoted(text: str) -> str:
    """A field in quotes."""
    return '"' + text.replace('"', '""') + '"'


class _CsvWriter:
    def __init__(self, call: Call, delimiter: str) -> None:
        self.call = call
        self.delimiter = delimiter
        self.columns: list[str] | None = None

    def lines(self, value: Value) -> Iterator[str]:
        if self.columns is None:
            bare = plain(value)
            if isinstance(bare, _Mapping):
                self.call.refuse("with a dictionary")
            self.columns = csv_columns(value)
            if not self.call.flag("NoTypeInformation"):
                yield f"#TYPE {type_names_of(value)[0]}"
            yield self.delimiter.join(quoted(column) for column in self.columns)
        line = csv_line(self.call, value, self.columns, self.delimiter)
        if line:
            yield line


@cmdlet(
    "ConvertTo-Csv",
    """
    InputObject: psobject mandatory position=0 value name
    Delimiter: char position=1 set=Delimiter
    UseCulture: switch refused set=UseCulture
    NoTypeInformation: switch alias=NTI
    """,
    default_set="Delimiter",
)
class ConvertToCsv:
    """Objects as lines of comma-separated values."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.writer = _CsvWriter(call, str(call["Delimiter"] or ","))

    def process(self) -> None:
        for line in self.writer.lines(self.call["InputObject"]):
            self.call.write(line)


@cmdlet(
    "Export-Csv",
    """
    InputObject: psobject mandatory value name
    Path: string position=0
    LiteralPath: string alias=PSPath
    Force: switch
    NoClobber: switch alias=NoOverwrite refused
    Encoding: string words=Unicode,UTF7,UTF8,ASCII,UTF32,BigEndianUnicode,Default,OEM
    Append: switch
    Delimiter: char position=1
    UseCulture: switch refused
    NoTypeInformation: switch alias=NTI
    """,
)
class ExportCsv:
    """The same into a file."""

    def __init__(self, call: Call) -> None:
        self.call = call
        if call.flag("Append"):
            call.refuse("-Append")
        self.writer = _CsvWriter(call, str(call["Delimiter"] or ","))
        self.lines: list[str] = []
        path = call["Path"] or call["LiteralPath"]
        self.path = full_path(call.scope, path)
        try:
            ask(call.scope, "file.write", path=self.path, content=b"")
        except (IOException, UnauthorizedAccessException) as failure:
            call.fail(failure, "FileOpenFailure", "OpenError", path)

    def process(self) -> None:
        self.lines.extend(self.writer.lines(self.call["InputObject"]))

    def end(self) -> None:
        text = "".join(line + "\r\n" for line in self.lines)
        content = encode(text, self.call["Encoding"] or "ascii")
        ask(self.call.scope, "file.write", path=self.path, content=content)


@cmdlet(
    "ConvertFrom-Csv",
    """
    InputObject: psobject[] mandatory position=0 value name
    Delimiter: char position=1 set=Delimiter
    UseCulture: switch refused set=UseCulture
    Header: string[] filled
    """,
    default_set="Delimiter",
)
class ConvertFromCsv:
    """Lines of comma-separated values as objects."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.lines: list[str] = []

    def process(self) -> None:
        self.lines.extend(self.call.text(item) for item in self.call.items("InputObject"))

    def end(self) -> None:
        write_csv_objects(self.call, "\n".join(self.lines))


@cmdlet(
    "Import-Csv",
    """
    Path: string[] position=0 value set=Delimiter
    LiteralPath: string[] name alias=PSPath set=Delimiter
    Delimiter: char position=1 set=Delimiter
    UseCulture: switch refused
    Header: string[] filled
    Encoding: string words=Unicode,UTF7,UTF8,ASCII,UTF32,BigEndianUnicode,Default,OEM
    """,
    default_set="Delimiter",
)
def import_csv(call: Call) -> None:
    for path in call.items("Path") + call.items("LiteralPath"):
        content = ask(call.scope, "file.read", path=full_path(call.scope, path))[0]
        write_csv_objects(call, decode(bytes(content), call["Encoding"] or "default"))


def write_csv_objects(call: Call, text: str) -> None:
    """Read CSV text and write an object for each row."""
    delimiter = str(call["Delimiter"] or ",")
    rows = csv_rows(text, delimiter)
    header = call.items("Header") if call.has("Header") else None
    for row in rows:
        if header is None:
            if row and row[0].startswith("#TYPE") and len(row) == 1:
                continue
            header = _header(call, row)
            continue
        if row == [""]:
            continue
        made = PSCustomObject()
        for number, name in enumerate(header):
            made.extension.members[name.lower()] = NoteProperty(
                name, row[number] if number < len(row) else None
            )
        call.write(made)


def _header(call: Call, row: list[str]) -> list[str]:
    names: list[str] = []
    for number, name in enumerate(row):
        if not name:
            call.warn(
                'One or more headers were not specified. Default names starting with "H" have been used in place of any '
                "missing headers."
            )
            name = f"H{number + 1}"
        names.append(name)
    return names


def csv_rows(text: str, delimiter: str) -> Iterator[list[str]]:
    """The rows of CSV text: quoted fields may hold delimiters, quotes and line ends; blanks before a field go."""
    at, length = 0, len(text)
    row: list[str] = []
    field: list[str] = []
    quoted_field = False
    started = False
    while at < length:
        letter = text[at]
        if quoted_field:
            if letter == '"':
                if text[at + 1 : at + 2] == '"':
                    field.append('"')
                    at += 2
                    continue
                quoted_field = False
            else:
                field.append(letter)
            at += 1
            continue
        if letter == '"' and not field:
            quoted_field = started = True
        elif letter == delimiter:
            row.append("".join(field))
            field, started = [], False
        elif letter in "\r\n":
            if letter == "\r" and text[at + 1 : at + 2] == "\n":
                at += 1
            if row or field or started:
                yield [*row, "".join(field)]
            row, field, started = [], [], False
        elif letter in " \t" and not field and not started:
            pass
        else:
            field.append(letter)
        at += 1
    if row or field or started:
        yield [*row, "".join(field)]
