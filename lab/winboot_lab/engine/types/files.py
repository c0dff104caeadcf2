"""System.IO.File, Directory and DriveInfo through the machine's door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import Runtime, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    DirectoryNotFoundException,
    DotNetException,
    FileNotFoundException,
)
from winboot_lab.engine.moments import FILE_TIME_EPOCH_TICKS, UTC, DateTime
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.fileinfo import FileSystemInfo
from winboot_lab.engine.types.paths import checked, directory_name, full_path, root_length
from winboot_lab.engine.types.streams import (
    READ_WRITE,
    FileStream,
    descriptor,
    mode_name,
    open_file,
    split_line,
)
from winboot_lab.engine.types.text import UTF8, UTF8_BARE, Encoding, encoding_of_bom
from winboot_lab.engine.values import (
    STRING,
    Array,
    ByteArray,
    EnumValue,
    Instance,
    Int64,
    Value,
    enum_value,
)
from winboot_lab.engine.wildcards import fits_pattern

FILE = dotnet("System.IO.File", kind="static")
DIRECTORY = dotnet("System.IO.Directory", kind="static")
_ENCODING = "System.Text.Encoding encoding"


def _one(runtime: Runtime, primitive: str, **parameters: Any) -> Any:
    return ask_one(runtime, primitive, **parameters)


def read_bytes(runtime: Runtime, path: str | None) -> bytes:
    """The content of a file."""
    full = _needed(path)
    try:
        content: bytes = _one(runtime, "file.read", path=full)
    except FileNotFoundException as missing:
        missing.file_name = full
        raise
    return content


def _needed(path: str | None) -> str:
    if path is None:
        raise ArgumentNullException("path")
    if not path:
        raise ArgumentException("Empty path name is not legal.")
    return full_path(path)


def decoded(data: bytes, encoding: Encoding | None) -> str:
    """Text of a file: by its byte order mark, else by the encoding (UTF-8)."""
    found = encoding_of_bom(data)
    if found is not None:
        return found[0].decode(data[found[1] :])
    return (encoding or UTF8).decode(data)


def lines_of(text: str) -> list[str]:
    """The lines of a text as ReadAllLines counts them."""
    out: list[str] = []
    position = 0
    while (found := split_line(text, position)) is not None:
        line, position = found
        out.append(line)
    return out


def write_bytes(runtime: Runtime, path: str | None, content: bytes) -> None:
    """Write a whole file."""
    ask(runtime, "file.write", path=_needed(path), content=content, mode="Create")


@FILE.static_method("ReadAllText(string path)", f"ReadAllText(string path, {_ENCODING})", effect=True)
def _read_text(runtime: Runtime, path: str, encoding: Value = None) -> str:
    return decoded(read_bytes(runtime, path), encoding)


@FILE.static_method("ReadAllLines(string path)", f"ReadAllLines(string path, {_ENCODING})", effect=True)
def _read_lines(runtime: Runtime, path: str, encoding: Value = None) -> Array:
    return Array(lines_of(_read_text(runtime, path, encoding)), STRING)


def file_lines(runtime: Runtime, path: str) -> Array:
    """The lines of a file as a StreamReader reads them: UTF-8 unless a byte order mark says otherwise."""
    return Array(lines_of(_read_text(runtime, path)), STRING)


FILE.static_method("ReadAllBytes(string path)", effect=True)(
    lambda runtime, path: ByteArray(read_bytes(runtime, path))
)


def _encoded(text: str | None, encoding: Encoding | None) -> bytes:
    chosen = encoding or UTF8_BARE
    return chosen.bom + chosen.encode(text or "")


@FILE.static_method(
    "void WriteAllText(string path, string contents)",
    f"void WriteAllText(string path, string contents, {_ENCODING})",
    effect=True,
)
def _write_text(runtime: Runtime, path: str, text: str, encoding: Value = None) -> None:
    write_bytes(runtime, path, _encoded(text, encoding))


@FILE.static_method("void WriteAllBytes(string path, byte[] bytes)", effect=True)
def _write_all_bytes(runtime: Runtime, path: str, data: Value) -> None:
    if data is None:
        raise ArgumentNullException("bytes")
    write_bytes(runtime, path, bytes(data))


def _append(runtime: Runtime, path: str, text: str, encoding: Encoding | None) -> None:
    full = _needed(path)
    found = _one(runtime, "file.stat", path=full)
    chosen = encoding or UTF8_BARE
    mark = chosen.bom if found is None or not found["length"] else b""
    ask(runtime, "file.append", path=full, content=mark + chosen.encode(text or ""))


FILE.static_method(
    "void AppendAllText(string path, string contents)",
    f"void AppendAllText(string path, string contents, {_ENCODING})",
    effect=True,
)(lambda runtime, path, text, encoding=None: _append(runtime, path, text, encoding))


def stat(runtime: Runtime, path: str | None) -> Any:
    """The machine's facts about a path, or None."""
    return _one(runtime, "file.stat", path=_needed(path))


def _exists(runtime: Runtime, path: str | None, kind: str) -> bool:
    if not path or not path.strip():
        return False
    try:
        found = stat(runtime, path)
    except DotNetException:
        return False
    return found is not None and found["kind"] == kind


FILE.static_method("Exists(string path)", effect=True)(lambda runtime, path: _exists(runtime, path, "file"))


@FILE.static_method("void Delete(string path)", effect=True)
def _delete(runtime: Runtime, path: str) -> None:
    ask(runtime, "file.delete", path=_needed(path))


@FILE.static_method("void Move(string sourceFileName, string destFileName)", effect=True)
def _move(runtime: Runtime, source: str, target: str) -> None:
    full = _needed(source)
    found = _one(runtime, "file.stat", path=full)
    if found is None or found["kind"] != "file":
        raise FileNotFoundException(f"Could not find file '{full}'.", full)
    ask(runtime, "file.move", source=full, destination=_needed(target))


@FILE.static_method(
    "void Copy(string sourceFileName, string destFileName)",
    "void Copy(string sourceFileName, string destFileName, bool overwrite)",
    effect=True,
)
def _copy(runtime: Runtime, source: str, target: str, overwrite: bool = False) -> None:
    ask(runtime, "file.copy", source=_needed(source), destination=_needed(target), overwrite=overwrite)


@FILE.static_method(
    "void Replace(string sourceFileName, string destinationFileName, string destinationBackupFileName)",
    effect=True,
)
def _replace(runtime: Runtime, source: str, target: str, backup: str | None, _ignore: bool = False) -> None:
    if backup == "":
        raise ArgumentException("The path is not of a legal form.")
    kept = None if backup is None else full_path(backup)
    ask(runtime, "file.replace", source=_needed(source), destination=_needed(target), backup=kept)


_MODE, _ACCESS, _SHARE = "System.IO.FileMode mode", "System.IO.FileAccess access", "System.IO.FileShare share"


@FILE.static_method(
    f"Open(string path, {_MODE})",
    f"Open(string path, {_MODE}, {_ACCESS})",
    f"Open(string path, {_MODE}, {_ACCESS}, {_SHARE})",
    effect=True,
)
def _open(
    runtime: Runtime,
    path: str,
    mode: EnumValue,
    access: EnumValue | None = None,
    share: EnumValue | None = None,
) -> FileStream:
    return open_file(
        runtime,
        path,
        mode_name(mode),
        None if access is None else access.number,
        "None" if share is None else str(share),
    )


FILE.static_method("Create(string path)", "Create(string path, int bufferSize)", effect=True)(
    lambda runtime, path, size=4096: open_file(runtime, path, "Create", READ_WRITE, "None")
)

# -- attributes and times


def _stat_or_fail(runtime: Runtime, path: str) -> Any:
    found = stat(runtime, path)
    if found is None:
        full = _needed(path)
        folder = directory_name(full)
        if folder is not None and _one(runtime, "file.stat", path=folder) is None:
            raise DirectoryNotFoundException(f"Could not find a part of the path '{full}'.")
        raise FileNotFoundException(f"Could not find file '{full}'.", full)
    return found


FILE.static_method("GetAttributes(string path)", effect=True)(
    lambda runtime, path: enum_value("System.IO.FileAttributes", _stat_or_fail(runtime, path)["attributes"])
)


@FILE.static_method("void SetAttributes(string path, System.IO.FileAttributes fileAttributes)", effect=True)
def _set_attributes(runtime: Runtime, path: str, attributes: EnumValue) -> None:
    _stat_or_fail(runtime, path)
    ask(runtime, "file.set-attributes", path=_needed(path), attributes=attributes.number)


def _last_write(runtime: Runtime, path: str) -> DateTime:
    found = stat(runtime, path)
    return DateTime(FILE_TIME_EPOCH_TICKS, UTC) if found is None else DateTime.of(found["modified"], UTC)


for _kind in (FILE, DIRECTORY):
    _kind.static_method("GetLastWriteTimeUtc(string path)", effect=True)(_last_write)

# -- directories


@DIRECTORY.static_method("Exists(string path)", effect=True)
def _directory_exists(runtime: Runtime, path: str | None) -> bool:
    return _exists(runtime, path, "directory")


def _directory_info(path: str) -> Value:
    return FileSystemInfo(path.rstrip("\\") if len(path) > root_length(path) else path, folder=True)


@DIRECTORY.static_method(
    "CreateDirectory(string path)",
    "CreateDirectory(string path, System.Security.AccessControl.DirectorySecurity directorySecurity)",
    effect=True,
)
def _create_directory(runtime: Runtime, path: str, security: Value = None) -> Value:
    if path == "":
        raise ArgumentException("Path cannot be the empty string or all whitespace.")
    full = _needed(path)
    extra = {} if security is None else {"security": descriptor(security)}
    ask(runtime, "file.make-directory", path=full, **extra)
    return _directory_info(full)


@DIRECTORY.static_method("void Delete(string path)", "void Delete(string path, bool recursive)", effect=True)
def _delete_directory(runtime: Runtime, path: str, recursive: bool = False) -> None:
    ask(runtime, "file.delete-directory", path=_needed(path), recurse=recursive)


@DIRECTORY.static_method("void Move(string sourceDirName, string destDirName)", effect=True)
def _move_directory(runtime: Runtime, source: str, target: str) -> None:
    full = _needed(source)
    if _one(runtime, "file.stat", path=full) is None:
        raise DirectoryNotFoundException(f"Could not find a part of the path '{full}'.")
    ask(runtime, "file.move", source=full, destination=_needed(target))


def _children(runtime: Runtime, path: str, pattern: str, deep: bool, kinds: frozenset[str]) -> list[str]:
    """Matching names under a folder, as the path was given."""
    full = _needed(path)
    shown = checked(path).rstrip("\\/") if len(path) > root_length(path) else path
    out: list[str] = []
    folders: list[str] = []
    for record in ask(runtime, "file.list", path=full):
        name = record["name"]
        child = f"{shown}\\{name}" if not shown.endswith("\\") else shown + name
        if record["kind"] in kinds and fits_pattern(name, pattern):
            out.append(child)
        if record["kind"] == "directory" and not record["link_type"]:
            folders.append(child)
    if deep:
        for folder in folders:
            out.extend(_children(runtime, folder, pattern, deep, kinds))
    return out


_BOTH = frozenset(("file", "directory"))
for _name, _kinds in (
    ("Files", frozenset(("file",))),
    ("Directories", frozenset(("directory",))),
    ("FileSystemEntries", _BOTH),
):

    def _get(
        runtime: Runtime,
        path: str,
        pattern: str = "*",
        option: EnumValue | None = None,
        kinds: frozenset[str] = _kinds,
    ) -> Array:
        deep = option is not None and option.number == 1
        return Array(_children(runtime, path, pattern, deep, kinds), STRING)

    for _verb in ("Get", "Enumerate"):
        DIRECTORY.static_method(
            f"{_verb}{_name}(string path)",
            f"{_verb}{_name}(string path, string searchPattern)",
            f"{_verb}{_name}(string path, string searchPattern, System.IO.SearchOption searchOption)",
            effect=True,
        )(_get)


# -- access rules

_SECTIONS = "System.Security.AccessControl.AccessControlSections includeSections"


def _access_of(kind: str) -> Callable[..., Any]:
    def get(runtime: Runtime, path: str, sections: EnumValue | None = None) -> Any:
        from winboot_lab.engine.types.access import AUDIT, security_of

        if sections is not None and sections.number & AUDIT:
            raise Refusal("value", str(sections), "the lab hands out no audit entries")
        return security_of(kind, _one(runtime, "acl.get", path=_needed(path)))

    return get


def _set_access(runtime: Runtime, path: str, security: Any) -> None:
    # The object writes the sections that were changed in it, and no other (FileSystemSecurity.Persist).
    if given := security.changes():
        ask(runtime, "acl.set", path=_needed(path), **given)


for _holder, _security in ((FILE, "FileSecurity"), (DIRECTORY, "DirectorySecurity")):
    _holder.static_method(
        "GetAccessControl(string path)", f"GetAccessControl(string path, {_SECTIONS})", effect=True
    )(_access_of(_security))
    _holder.static_method(
        f"void SetAccessControl(string path, System.Security.AccessControl.{_security} security)", effect=True
    )(_set_access)

# -- drives


class Drive(Instance):
    """System.IO.DriveInfo."""

    def __init__(self, name: str) -> None:
        self.name = name

    def facts(self, runtime: Runtime) -> Any:
        """The volume's record, or None."""
        return next((record for record in ask(runtime, "file.volumes") if record["name"] == self.name), None)

    def __str__(self) -> str:
        return self.name


DRIVE = dotnet("System.IO.DriveInfo", Drive)


@DRIVE.constructor("string driveName")
def _drive(name: str | None) -> Drive:
    if name is None:
        raise ArgumentNullException("driveName")
    letter = name[:1]
    if not letter.isascii() or not letter.isalpha() or name[1:] not in ("", ":", ":\\"):
        if name[1:2] == ":" and letter.isalpha():
            return Drive(f"{letter.upper()}:\\")
        raise ArgumentException(
            'Object must be a root directory ("C:\\") or a drive letter ("C").', "driveName"
        )
    return Drive(f"{letter.upper()}:\\")


def _of_volume(key: str) -> Callable[[Runtime, Drive], Value]:
    def get(runtime: Runtime, self: Drive) -> Value:
        facts = self.facts(runtime)
        if facts is None:
            from winboot_lab.engine.exceptions import DriveNotFoundDotNetException

            raise DriveNotFoundDotNetException(
                f"Could not find the drive '{self.name}'. The drive might not be ready or might not be mapped."
            )
        value = facts[key]
        return Int64(value) if isinstance(value, int) and not isinstance(value, bool) else value

    return get


DRIVE.prop("Name", "string", lambda self: self.name)
DRIVE.prop("AvailableFreeSpace", "long", _of_volume("free"), effect=True)
DRIVE.prop("DriveFormat", "string", _of_volume("format"), effect=True)
DRIVE.prop("TotalSize", "long", _of_volume("total"), effect=True)
DRIVE.method("ToString()")(str)
