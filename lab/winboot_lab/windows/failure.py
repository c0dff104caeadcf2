"""How the model says no: an exception that carries the error a script would see."""

from __future__ import annotations

from winboot_lab.windows.door import Plain, Problem

# The HRESULT of a Win32 error is 0x8007 followed by its code.
_WIN32_FACILITY = 0x80070000


class Failure(Exception):
    """Something on the machine went wrong the way it does on Windows; the door turns it into an error."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem

    @property
    def win32(self) -> int:
        """The Win32 error code, 0 when the failure is not one."""
        hresult = self.problem.hresult or 0
        return hresult & 0xFFFF if hresult & 0xFFFF0000 == _WIN32_FACILITY else 0


def failure(
    exception: str,
    message: str,
    *,
    hresult: int | None = None,
    id: str = "",
    category: str = "NotSpecified",
    target: Plain = None,
) -> Failure:
    """A .NET exception: `exception` is its full type name; the id defaults to the type's short name."""
    short = exception.rpartition(".")[2]
    return Failure(Problem(message, id or short, category, exception, target, hresult=hresult))


_IO = "System.IO.IOException"
_WORDS: dict[int, tuple[str, str]] = {
    2: ("System.IO.FileNotFoundException", "Could not find file '{0}'."),
    3: ("System.IO.DirectoryNotFoundException", "Could not find a part of the path '{0}'."),
    5: ("System.UnauthorizedAccessException", "Access to the path '{0}' is denied."),
    0x20: (_IO, "The process cannot access the file '{0}' because it is being used by another process."),
    0x35: (_IO, "The network path was not found."),
    0x50: (_IO, "The file '{0}' already exists."),
    0x70: (_IO, "There is not enough space on the disk."),
    0x7B: (_IO, "The filename, directory name, or volume label syntax is incorrect."),
    0x91: (_IO, "The directory is not empty."),
    0xB7: (_IO, "Cannot create a file when that file already exists."),
    0x10B: (_IO, "The directory name is invalid."),
    0x497: (_IO, "Unable to remove the file to be replaced."),
    0x522: (_IO, "A required privilege is not held by the client."),
    0x1126: (_IO, "The file or directory is not a reparse point."),
}


def io_failure(code: int, path: str) -> Failure:
    """The exception that .NET's file functions raise for a Win32 error `code`."""
    exception, words = _WORDS[code]
    return failure(exception, words.format(path), hresult=_WIN32_FACILITY | code, target=path)


def win32_failure(
    code: int, message: str, *, exception: str = "System.ComponentModel.Win32Exception"
) -> Failure:
    """A Win32 error as Win32Exception carries it."""
    return failure(exception, message, hresult=_WIN32_FACILITY | code, target=code)
