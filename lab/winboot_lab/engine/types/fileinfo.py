"""System.IO.FileInfo, DirectoryInfo and FileVersionInfo: what Get-Item and Get-ChildItem hand out.

As in .NET the facts are read once and kept until Refresh(), or until the object itself changes something.
"""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import OBJECT, Runtime, dotnet
from winboot_lab.engine.exceptions import ArgumentNullException, FileNotFoundException
from winboot_lab.engine.members import adds
from winboot_lab.engine.moments import FILE_TIME_EPOCH_TICKS, UNSPECIFIED, UTC, DateTime
from winboot_lab.engine.types.paths import full_path
from winboot_lab.engine.values import (
    STRING,
    AliasProperty,
    Array,
    CodeProperty,
    DotNetType,
    Instance,
    Int64,
)

Value = Any

READ_ONLY, HIDDEN, SYSTEM, DIRECTORY, ARCHIVE, NORMAL, REPARSE = 1, 2, 4, 16, 32, 128, 1024


class FileSystemInfo(Instance):
    """One file or folder. `path` is the full path as the script wrote it, `shown` what ToString() gives."""

    def __init__(self, path: str, shown: str | None = None, *, folder: bool, facts: Any = None) -> None:
        self.path = path
        self.shown = path if shown is None else shown
        self.folder = folder
        self.known = facts is not None
        self.facts = facts

    @property
    def dotnet_type(self) -> DotNetType:
        return DIRECTORY_INFO if self.folder else FILE_INFO

    @property
    def name(self) -> str:
        bare = self.path.rstrip("\\")
        return self.path if bare.endswith(":") or not bare else bare.rpartition("\\")[2]

    @property
    def extension_text(self) -> str:
        dot = self.name.rfind(".")
        return self.name[dot:] if 0 <= dot < len(self.name) - 1 else ""

    def look(self, runtime: Runtime) -> Any:
        """The machine's facts, or None when nothing is there."""
        if not self.known:
            self.facts = ask_one(runtime, "file.stat", path=self.path)
            self.known = True
        return self.facts

    def forget(self) -> None:
        """Drop the cached facts: the next property reads the machine again."""
        self.known = False

    def attributes(self, runtime: Runtime) -> int:
        facts = self.look(runtime)
        return -1 if facts is None else int(facts["attributes"])

    def __str__(self) -> str:
        return self.shown


def is_folder(facts: Any) -> bool:
    """Do these facts speak of a folder?"""
    return facts is not None and facts["kind"] == "directory"


def process_path(path: str | None, parameter: str = "path") -> str:
    """A path as .NET understands it, made absolute."""
    if path is None:
        raise ArgumentNullException(parameter)
    return full_path(path)


FILE_SYSTEM_INFO = dotnet("System.IO.FileSystemInfo")
FILE_INFO = dotnet("System.IO.FileInfo", base=FILE_SYSTEM_INFO)
DIRECTORY_INFO = dotnet("System.IO.DirectoryInfo", base=FILE_SYSTEM_INFO)


# -- facts


def _exists(runtime: Runtime, self: FileSystemInfo) -> bool:
    facts = self.look(runtime)
    return facts is not None and is_folder(facts) == self.folder


def _length(runtime: Runtime, self: FileSystemInfo) -> Value:
    facts = self.look(runtime)
    if facts is None or is_folder(facts):
        raise FileNotFoundException(f"Could not find file '{self.path}'.", self.path)
    return Int64(facts["length"])


def _time(which: str, *, utc: bool) -> Any:
    def get(runtime: Runtime, self: FileSystemInfo) -> DateTime:
        facts = self.look(runtime)
        moment = DateTime(FILE_TIME_EPOCH_TICKS, UTC) if facts is None else DateTime.of(facts[which], UTC)
        return moment if utc else moment.to_local()

    return get


def _set_time(which: str, *, utc: bool) -> Any:
    def put(runtime: Runtime, self: FileSystemInfo, value: DateTime) -> None:
        # A time that does not say its kind is what the property is about.
        moment = DateTime(value.ticks, UTC) if utc and value.kind == UNSPECIFIED else value.to_utc()
        ask(runtime, "file.set-times", path=self.path, **{which: moment.datetime()})
        self.forget()

    return put


# Members follow the order in which .NET lists them: it is the order of Select-Object *.
FILE_SYSTEM_INFO.prop("FullName", "string", lambda self: self.path)
for _property, _which in (
    ("CreationTime", "created"),
    ("LastAccessTime", "accessed"),
    ("LastWriteTime", "modified"),
):
    FILE_SYSTEM_INFO.prop(
        _property + "Utc",
        "System.DateTime",
        _time(_which, utc=True),
        _set_time(_which, utc=True),
        effect=True,
    )


FILE_SYSTEM_INFO.method("ToString()")(str)


# -- FileInfo


FILE_INFO.prop("Name", "string", lambda self: self.name)
FILE_INFO.prop("Length", "long", _length, effect=True)
FILE_INFO.prop("Exists", "bool", _exists, effect=True)


@FILE_INFO.constructor("string fileName", effect=True)
def _new_file(runtime: Runtime, path: str) -> FileSystemInfo:
    return FileSystemInfo(process_path(path, "fileName"), path, folder=False)


@FILE_INFO.method("CopyTo(string destFileName)", effect=True)
def _copy_file(
    runtime: Runtime,
    self: FileSystemInfo,
    path: str,
    overwrite: bool = False,
) -> FileSystemInfo:
    full = process_path(path, "destFileName")
    ask(runtime, "file.copy", source=self.path, destination=full, overwrite=overwrite)
    return FileSystemInfo(full, folder=False)


# -- what PowerShell adds


class FileVersionInfo(Instance):
    """System.Diagnostics.FileVersionInfo of a file: its version, or nulls for what is no program."""

    def __init__(self, path: str, version: str) -> None:
        self.path = path
        self.version = version or None

    def part(self, index: int) -> int:
        numbers = [int(part) for part in (self.version or "").split(".") if part.isdigit()]
        return numbers[index] if index < len(numbers) else 0


FILE_VERSION_INFO = dotnet("System.Diagnostics.FileVersionInfo", FileVersionInfo, base=OBJECT)


def _mode(self: FileSystemInfo) -> str:
    number = int(self.facts["attributes"]) if self.facts is not None else 0
    flags = zip("darhsl", (DIRECTORY, ARCHIVE, READ_ONLY, HIDDEN, SYSTEM, REPARSE), strict=True)
    return "".join(letter if number & bit else "-" for letter, bit in flags)


def _base_name(self: FileSystemInfo) -> str:
    end = len(self.extension_text)
    return self.name[:-end] if end else self.name


def _target(self: FileSystemInfo) -> Value:
    if self.facts is None or self.facts["target"] is None:
        return None
    return Array([self.facts["target"]], STRING)


def _link_type(self: FileSystemInfo) -> Value:
    return None if self.facts is None else self.facts["link_type"]


def _version(self: FileSystemInfo) -> FileVersionInfo:
    return FileVersionInfo(self.path, "" if self.facts is None else str(self.facts["version"]))


for _added in (
    CodeProperty("Mode", _mode),
    CodeProperty("VersionInfo", _version),
    CodeProperty("BaseName", _base_name),
    CodeProperty("Target", _target),
    CodeProperty("LinkType", _link_type),
):
    adds("System.IO.FileInfo", _added)
for _member in (
    CodeProperty("Mode", _mode),
    AliasProperty("BaseName", "Name"),
    CodeProperty("Target", _target),
    CodeProperty("LinkType", _link_type),
):
    adds("System.IO.DirectoryInfo", _member)
