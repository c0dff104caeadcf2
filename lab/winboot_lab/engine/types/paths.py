"""System.IO.Path by Windows rules."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

from winboot_lab.engine.dotnet import Runtime, dotnet
from winboot_lab.engine.exceptions import ArgumentException, ArgumentNullException, NotSupportedException
from winboot_lab.engine.refusal import Refusal

PATH = dotnet("System.IO.Path", kind="static")
PROCESS_DIRECTORY: ContextVar[str | None] = ContextVar("process directory", default=None)
"""Where relative paths of .NET begin: the process directory of the running script, which Set-Location does not move."""
BAD = frozenset('"<>|' + "".join(map(chr, range(32))))
"""Characters that .NET Framework does not accept in any path."""


def checked(path: str | None, name: str = "path") -> str:
    """A path argument; raises what .NET Framework raises for $null and illegal characters."""
    if path is None:
        raise ArgumentNullException(name)
    if BAD.intersection(path):
        raise ArgumentException("Illegal characters in path.")
    return path


def root_length(path: str) -> int:
    """How much of a path is its root: `C:`, `C:\\`, `\\`, `\\\\server\\share`."""
    if path[:2] in ("\\\\", "//", "\\/", "/\\"):
        end, parts = 2, 2
        while end < len(path) and parts:
            if path[end] in "\\/":
                parts -= 1
                if not parts:
                    break
            end += 1
        return end
    if path[1:2] == ":":
        return 3 if path[2:3] in ("\\", "/") and path[2:3] else 2
    return 1 if path[:1] in ("\\", "/") and path else 0


def is_rooted(path: str) -> bool:
    """Does the path begin with a root (a drive or a separator)?"""
    return (path[:1] in ("\\", "/") and bool(path)) or path[1:2] == ":"


def _combine(first: str, second: str) -> str:
    checked(first, "path1")
    checked(second, "path2")
    if not second:
        return first
    if not first or is_rooted(second):
        return second
    return first + second if first[-1] in "\\/:" else f"{first}\\{second}"


def _from_process_directory(text: str, root: int) -> str:
    here: str | None = PROCESS_DIRECTORY.get()
    if here is None:
        raise Refusal("value", text, "a path relative to the process directory")
    if root and here[:1].lower() != text[:1].lower():
        return text[:2] + "\\" + text[2:]
    return here.rstrip("\\") + "\\" + text[root:]


def full_path(path: str | None) -> str:
    """GetFullPath: separators, dots and trailing dots settled."""
    path = checked(path)
    if not path.strip():
        raise ArgumentException("The path is not of a legal form.")
    text = path.replace("/", "\\")
    if text.startswith(("\\\\?\\", "\\\\.\\")):
        return text
    if ":" in text[2:]:
        raise NotSupportedException("The given path's format is not supported.")
    root = root_length(text)
    if root == 0 or (root == 2 and text[1] == ":"):
        text = _from_process_directory(text, root)
        root = root_length(text)
    head = text[:root]
    if head == "\\":
        head = "C:\\"
    parts: list[str] = []
    pieces = text[root:].split("\\")
    for piece in pieces:
        if piece in ("", "."):
            continue
        if piece == "..":
            if parts:
                parts.pop()
            continue
        kept = piece.rstrip(". ")
        if kept:
            parts.append(kept)
    tail = "\\".join(parts)
    if text.startswith("\\\\"):
        made = head.rstrip("\\") + ("\\" + tail if tail else "")
    else:
        made = head[0].upper() + head[1:] + tail if len(head) > 1 else head + tail
    return made + "\\" if pieces[-1] == "" and tail else made


@PATH.static_method("Combine(string path1, string path2)")
def _combine_two(first: str, second: str) -> str:
    return _combine(first, second)


@PATH.static_method(
    "Combine(string path1, string path2, string path3)",
    "Combine(string path1, string path2, string path3, string path4)",
)
def _combine_more(*parts: str) -> str:
    made: str = _combine_all(parts)
    return made


@PATH.static_method("Combine(params string[] paths)")
def _combine_all(parts: Sequence[str]) -> str:
    made = ""
    for part in parts:
        made = _combine(made, part)
    return made


def _last_separator(path: str) -> int:
    return max(path.rfind("\\"), path.rfind("/"), path.rfind(":"))


def file_name(path: str | None) -> str | None:
    """GetFileName."""
    return None if path is None else checked(path)[_last_separator(path) + 1 :]


def extension(path: str | None) -> str | None:
    """GetExtension: with its dot, or empty."""
    if path is None:
        return None
    name = checked(path)[_last_separator(path) + 1 :]
    dot = name.rfind(".")
    return name[dot:] if 0 <= dot < len(name) - 1 else ""


@PATH.static_method("GetFileNameWithoutExtension(string path)")
def _stem(path: str | None) -> str | None:
    name = file_name(path)
    if name is None:
        return None
    dot = name.rfind(".")
    return name[:dot] if dot >= 0 else name


@PATH.static_method("GetDirectoryName(string path)")
def directory_name(path: str | None) -> str | None:
    """GetDirectoryName: $null for a root, empty for a bare name."""
    if path is None:
        return None
    if not checked(path).strip():
        raise ArgumentException("The path is not of a legal form.")
    root = root_length(path)
    if len(path) == root:
        return None
    end = max(path.rfind("\\"), path.rfind("/"))
    end = max(end, root)
    while end > root and path[end - 1] in "\\/":
        end -= 1
    text = path[:end].replace("/", "\\")
    return text if text or root == 0 else None


PATH.static_method("GetFileName(string path)")(file_name)
PATH.static_method("GetExtension(string path)")(extension)
PATH.static_method("GetFullPath(string path)")(full_path)


@PATH.static_method("GetPathRoot(string path)")
def _root(path: str | None) -> str | None:
    if path is None:
        return None
    if not checked(path):
        raise ArgumentException("The path is not of a legal form.")
    return path[: root_length(path)].replace("/", "\\")


@PATH.static_method("GetTempPath()", effect=True)
def _temp_path(runtime: Runtime) -> str:
    from winboot_lab.engine.door import ask_one

    found = None
    for name in ("TMP", "TEMP", "USERPROFILE"):
        found = found or ask_one(runtime, "environment.get", name=name)
    return str(found or "C:\\Windows").rstrip("\\") + "\\"
