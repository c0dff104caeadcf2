"""Get-, Set-, Add- and Clear-Content, Get-FileHash, New-TemporaryFile."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import MANAGEMENT, cmdlet
from winboot_lab.engine.convert import convert
from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import enum_type
from winboot_lab.engine.encodings import body, decode, mark_of
from winboot_lab.engine.exceptions import (
    ArgumentException,
    DirectoryNotFoundException,
    DotNetException,
    DriveNotFoundException,
    FileNotFoundException,
    IOException,
    ProviderNotFoundException,
    UnauthorizedAccessException,
    WriteErrorException,
)
from winboot_lab.engine.items import note_values
from winboot_lab.engine.locations import FILES, Place
from winboot_lab.engine.providers import (
    FileProvider,
    chosen_by_name,
    expand,
    filtered,
    given_paths,
    missing,
    no_place,
    place_of,
    report_missing,
    shown_path,
)
from winboot_lab.engine.types.fileinfo import HIDDEN, READ_ONLY, is_folder
from winboot_lab.engine.values import (
    BYTE,
    Array,
    Byte,
    Decorated,
    Extension,
    Int64,
    NoteProperty,
    PSCustomObject,
    enumerate_value,
    plain,
)
from winboot_lab.engine.wildcards import has_wildcards, unescape_wildcards

Value = Any

ENCODING = "Microsoft.PowerShell.Commands.FileSystemCmdletProviderEncoding"
enum_type(
    ENCODING,
    {
        "Unknown": 0,
        "String": 1,
        "Unicode": 2,
        "Byte": 3,
        "BigEndianUnicode": 4,
        "UTF8": 5,
        "UTF7": 6,
        "UTF32": 7,
        "Ascii": 8,
        "Default": 9,
        "Oem": 10,
        "BigEndianUTF32": 11,
    },
)

# Paths come from the pipeline by property name only: a string there is no path.
PATH_OR_LITERAL = """
    Path: string[] mandatory position=0 name set=Path
    LiteralPath: string[] mandatory name alias=PSPath set=LiteralPath
"""
_MORE = """
    Filter: string
    Include: string[]
    Exclude: string[]
    Force: switch
    Credential: pscredential refused
    UseTransaction: switch refused alias=usetx
"""
_LINE_END = re.compile(r"\r\n|\n|\r")


def content_places(call: Call, *, create: bool = False) -> Iterator[Place]:
    """The places whose content is meant; `create`: a plain path need not exist."""
    for text, literal in given_paths(call):
        try:
            pattern = not literal and has_wildcards(text)
            found = expand(call.scope, text, literal=literal)
            if found is None and create:
                found = [place_of(call.scope, text if literal else unescape_wildcards(text))]
        except (DriveNotFoundException, ProviderNotFoundException) as failure:
            no_place(call, failure)
            continue
        if found is None:
            report_missing(call, shown_path(call.scope, text, literal=literal))
            continue
        chosen = [place for place in found if chosen_by_name(call, place.leaf) and filtered(call, place.leaf)]
        if pattern and not chosen:
            call.error(
                DotNetException(
                    f"An object at the specified path {text} does not exist, or has been filtered by the -Include or "
                    "-Exclude parameter."
                ),
                "ItemNotFound",
                "ObjectNotFound",
                text,
            )
        yield from chosen


def report_io(call: Call, failure: DotNetException, place: Place, what: str) -> None:
    """An exception of a file that is opened to be read or written, as the provider reports it."""
    category = "ReadError" if "Reader" in what else "WriteError"
    word = "IOError"
    if isinstance(failure, DirectoryNotFoundException):
        word, category = "DirectoryNotFoundError", "ObjectNotFound"
    elif isinstance(failure, FileNotFoundException):
        word, category = "FileNotFoundError", "ObjectNotFound"
    elif isinstance(failure, UnauthorizedAccessException):
        word, category = "UnauthorizedAccessError", "PermissionDenied"
    elif isinstance(failure, ArgumentException):
        word, category = "ArgumentError", "InvalidArgument"
    elif not isinstance(failure, IOException):
        raise failure
    call.error(failure, f"{what}{word}", category, place.path)


# -- Get-Content


@cmdlet(
    "Get-Content",
    PATH_OR_LITERAL
    + f"""
    ReadCount: long name
    TotalCount: long name alias=First,Head
    Tail: int name alias=Last
    Delimiter: string refused dynamic
    Wait: switch refused dynamic
    Raw: switch dynamic
    Encoding: {ENCODING} dynamic
    Stream: string refused dynamic
    """
    + _MORE,
    module=MANAGEMENT,
    default_set="Path",
)
def get_content(call: Call) -> None:
    """The lines (or bytes, or all the text) of each file."""
    if call.has("TotalCount") and call.has("Tail"):
        call.refuse("-TotalCount together with -Tail")
    for place in content_places(call):
        if place.provider == FILES:
            _read_file(call, place)
        else:
            call.refuse(f"of {place.provider}")


def _read_file(call: Call, place: Place) -> None:
    try:
        handle = ask_one(
            call.scope, "file.open", path=place.path, mode="Open", access="Read", share="ReadWrite"
        )
    except DotNetException as failure:
        report_io(call, failure, place, "GetContentReader")
        return
    # The file stays open while its lines are on their way: a later command of the pipeline cannot write it.
    try:
        content = ask_one(
            call.scope, "file.handle-read", handle=handle["handle"], offset=0, count=int(handle["length"])
        )
        _give(call, place, content)
    finally:
        ask(call.scope, "file.close", handle=handle["handle"])


def _give(call: Call, place: Place, content: bytes) -> None:
    encoding = str(call.get("Encoding", "Default"))
    if encoding == "Byte":
        _give_bytes(call, content)
        return
    text = decode(content, encoding)
    if call.flag("Raw"):
        if text:
            call.write(_Noted(call, place).line(text, 1))
        return
    lines = _LINE_END.split(text)
    if not lines[-1]:
        lines.pop()
    _give_lines(call, place, lines)


def _give_bytes(call: Call, content: bytes) -> None:
    count = int(call.get("ReadCount", 1))
    if call.flag("Raw") or call.has("TotalCount") or call.has("Tail") or count > 1:
        call.refuse("-Encoding Byte with a choice of bytes")
    values = [Byte(number) for number in content]
    if count == 0:
        call.write(Array(values))
        return
    for value in values:
        call.write(value)


def _give_lines(call: Call, place: Place, lines: list[str]) -> None:
    if call.has("Tail"):
        tail = int(call["Tail"])
        lines = lines[-tail:] if tail else []
    elif call.has("TotalCount") and int(call["TotalCount"]) >= 0:
        lines = lines[: int(call["TotalCount"])]
    count = int(call.get("ReadCount", 1))
    noted = _Noted(call, place)
    if count == 1:
        for number, line in enumerate(lines, 1):
            call.write(noted.line(line, number))
        return
    step = count if count > 0 else max(len(lines), 1)
    for begin in range(0, len(lines), step):
        call.write(Array(lines[begin : begin + step]))


class _Noted:
    """Lines with where they come from, as Get-Content hands them out."""

    def __init__(self, call: Call, place: Place) -> None:
        self.notes = [NoteProperty(name, value) for name, value in note_values(place, call.session.locations)]

    def line(self, text: str, number: int) -> Decorated:
        extension = Extension()
        for note in self.notes:
            extension.add(NoteProperty(note.name, note.value))
        extension.add(NoteProperty("ReadCount", Int64(number)))
        return Decorated(text, extension)


# -- Set-Content, Add-Content


_WRITE = f"""
    Path: string[] mandatory position=0 name set=Path
    LiteralPath: string[] mandatory name alias=PSPath set=LiteralPath
    Value: object[] mandatory position=1 value name null none empty
    PassThru: switch
    NoNewline: switch dynamic
    Encoding: {ENCODING} dynamic
    Stream: string refused dynamic
"""


class _Writer:
    """Files that are being written: opened with the first object, closed at the end."""

    creates = True

    def __init__(self, call: Call) -> None:
        self.call = call
        self.open: list[_Target] | None = None

    def process(self) -> None:
        call = self.call
        if not call.should_process():
            return
        if self.open is None:
            self.open = list(self._targets())
        value = call["Value"]
        items = [value] if value is None else list(enumerate_value(value) or ())
        for target in self.open:
            target.write([item for item in items if plain(item) is not None])
        if call.flag("PassThru"):
            call.write_each(value)

    def end(self) -> None:
        for target in self.open or ():
            target.close()

    def _targets(self) -> Iterator[_Target]:
        for place in content_places(self.call, create=True):
            if place.provider == FILES:
                target = self.target(place)
                if target is not None:
                    yield target
            else:
                self.call.refuse(f"of {place.provider}")

    def target(self, place: Place) -> _Target | None:
        """The opened file, or None after a complaint."""
        raise NotImplementedError


class _Target:
    """One file open for writing."""

    def __init__(self, call: Call, place: Place, *, old: int | None) -> None:
        self.call = call
        self.place = place
        self.old = old
        self.encoding = str(call.get("Encoding", "Default"))
        opened = ask_one(
            call.scope, "file.open", path=place.path, mode="OpenOrCreate", access="Write", share="Write"
        )
        self.handle = opened["handle"]
        self.length = int(opened["length"])

    def write(self, items: list[Value]) -> None:
        """Append objects as text, or bytes as they are."""
        if self.encoding == "Byte":
            data = bytes(int(convert(plain(item), BYTE)) for item in items)
        else:
            newline = "" if self.call.flag("NoNewline") else "\r\n"
            text = "".join(self.call.text(item) + newline for item in items)
            data = body(text, self.encoding)
            if data and self.length == 0:
                data = mark_of(self.encoding) + data
        if data:
            ask(self.call.scope, "file.handle-write", handle=self.handle, offset=self.length, content=data)
            self.length += len(data)

    def close(self) -> None:
        ask(self.call.scope, "file.close", handle=self.handle)
        if self.old is not None:
            ask(self.call.scope, "file.set-attributes", path=self.place.path, attributes=self.old)


def _unlock(call: Call, place: Place) -> int | None:
    """With -Force a read-only file is written all the same; its attributes, to be put back."""
    facts = FileProvider(call.scope).facts(place)
    if facts is None or is_folder(facts) or not call.flag("Force"):
        return None
    number = int(facts["attributes"])
    if not number & (READ_ONLY | HIDDEN):
        return None
    ask(call.scope, "file.set-attributes", path=place.path, attributes=number & ~(READ_ONLY | HIDDEN) or 128)
    return number


@cmdlet("Set-Content", _WRITE + _MORE, module=MANAGEMENT, default_set="Path", should_process=True)
class SetContent(_Writer):
    """New content instead of the old."""

    def target(self, place: Place) -> _Target | None:
        call = self.call
        if FileProvider(call.scope).is_container(place):
            call.refuse("of a folder")
        old = _unlock(call, place)
        if FileProvider(call.scope).exists(place):
            try:
                ask(call.scope, "file.write", path=place.path, content=b"", mode="Truncate", share="Write")
            except (IOException, UnauthorizedAccessException) as failure:
                # Emptying the file goes first, and what it throws ends the cmdlet.
                call.fail(failure, failure.type_name, "NotSpecified", place.path)
        try:
            return _Target(call, place, old=old)
        except DotNetException as failure:
            report_io(call, failure, place, "GetContentWriter")
            return None


# -- Clear-Content


# -- Get-FileHash


_HASHES = {"SHA1": "sha1", "SHA256": "sha256", "SHA384": "sha384", "SHA512": "sha512", "MD5": "md5"}


@cmdlet(
    "Get-FileHash",
    """
    Path: string[] mandatory position=0 set=Path
    LiteralPath: string[] mandatory name alias=PSPath set=LiteralPath
    Algorithm: string words=SHA1,SHA256,SHA384,SHA512,MACTripleDES,MD5,RIPEMD160
    """,
    default_set="Path",
    suffix="Get-FileHash",
)
def get_file_hash(call: Call) -> None:
    """The hash of each file's content. In 5.1 this is a function around Resolve-Path and [IO.File]."""
    name = call.get("Algorithm", "SHA256").upper()
    if name not in _HASHES:
        call.refuse(f"-Algorithm {name}")
    for place in _hashed_places(call):
        facts = FileProvider(call.scope).facts(place)
        if is_folder(facts):
            continue
        try:
            content = ask_one(call.scope, "file.read", path=place.path)
        except DotNetException as failure:
            call.error(
                WriteErrorException(f"The file '{place.path}' cannot be read: {failure.message}"),
                "FileReadError",
                "ReadError",
                place.path,
            )
            return
        call.write(_hash(name, content, place.path))


def _hashed_places(call: Call) -> Iterator[Place]:
    for text, literal in given_paths(call):
        try:
            found = expand(call.scope, text, literal=literal)
        except (DriveNotFoundException, ProviderNotFoundException) as failure:
            no_place(call, failure)
            continue
        if found is None:
            shown = shown_path(call.scope, text, literal=literal)
            record = call.record(missing(shown), "PathNotFound", "ObjectNotFound", shown)
            record.id = "PathNotFound,Microsoft.PowerShell.Commands.ResolvePathCommand"
            record.activity = "Resolve-Path"
            call.report(record)
            continue
        yield from (place for place in found if place.provider == FILES)


def _hash(name: str, content: bytes, path: str) -> PSCustomObject:
    digest = hashlib.new(_HASHES[name], content, usedforsecurity=False).hexdigest().upper()
    return PSCustomObject.of(
        {"Algorithm": name, "Hash": digest, "Path": path}, "Microsoft.Powershell.Utility.FileHash"
    )
