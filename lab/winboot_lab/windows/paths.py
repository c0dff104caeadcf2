"""Windows path names: what is a name, what is the same name, and what .NET refuses."""

from __future__ import annotations

from winboot_lab.windows.failure import failure, io_failure

_MAX_PATH = 260
_ILLEGAL = frozenset('<>"|') | {chr(code) for code in range(32)}


def normal(path: str, *, long_names: bool = False) -> str:
    """The absolute path in canonical spelling: backslashes, no dot parts, no trailing dots or spaces."""
    if not path:
        raise failure("System.ArgumentException", "Empty path name is not legal.", hresult=0x80070057)
    text = path.replace("/", "\\")
    extended = text.startswith("\\\\?\\")
    if extended:
        text = text[4:]
    drive, rest = text[:2], text[2:]
    if text.startswith("\\\\"):
        raise io_failure(0x35, path)
    if len(drive) < 2 or drive[1] != ":" or not drive[0].isalpha() or (rest and not rest.startswith("\\")):
        raise failure(
            "System.ArgumentException",
            f"The path is not absolute: '{path}'.",
            hresult=0x80070057,
            target=path,
        )
    parts: list[str] = []
    for part in rest.split("\\"):
        if part == "..":
            del parts[-1:]
        elif part and part != ".":
            parts.append(_name(part, path))
    found = drive.upper() + "\\" + "\\".join(p for p in parts if p)
    if len(found) >= _MAX_PATH and not extended and not long_names:
        raise failure(
            "System.IO.PathTooLongException",
            "The specified path, file name, or both are too long.",
            hresult=0x800700CE,
            target=path,
        )
    return found


def _name(part: str, path: str) -> str:
    if ":" in part or not _ILLEGAL.isdisjoint(part):
        if ":" in part:
            raise failure(
                "System.NotSupportedException",
                "The given path's format is not supported.",
                hresult=0x80131515,
                target=path,
            )
        raise failure(
            "System.ArgumentException", "Illegal characters in path.", hresult=0x80070057, target=path
        )
    if "?" in part or "*" in part:
        raise io_failure(0x7B, path)
    return part.rstrip(". ")


def split(path: str) -> tuple[str, list[str]]:
    """A canonical path as its drive (`C:`) and its parts."""
    drive, _, rest = path.partition("\\")
    return drive, [p for p in rest.split("\\") if p]


def parent(path: str) -> str:
    """The folder of a canonical path (a drive's root is its own)."""
    drive, parts = split(path)
    return drive + "\\" + "\\".join(parts[:-1])


def leaf(path: str) -> str:
    """The last part of a canonical path."""
    return path.rstrip("\\").rpartition("\\")[2]


def join(folder: str, name: str) -> str:
    """`folder\\name` with one separator."""
    return folder.rstrip("\\") + "\\" + name
