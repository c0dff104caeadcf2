"""Winboot.Entry: the C# that asks kernel32.dll about a path, recognised by its text as Winboot.Hns is."""

from __future__ import annotations

from typing import Final

from winboot_lab.engine.door import ask_one
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Runtime
from winboot_lab.windows.call import as_int
from winboot_lab.windows.door import Record

# Of the C# in templates/powershell/lib/links.ps1; tests/steps/test_links.py holds the two together.
DECLARATION: Final = "1f2d27d69fc3365b7246a00c8819c39024430f0543ace1bb909d354f7be3c4d0"

ENTRY: Final = DotNetType("Winboot.Entry", base=OBJECT, kind="static")
_READ_CONTROL: Final = 0x20000


@ENTRY.static_method("Tag(string path)", effect=True)
def _tag(runtime: Runtime, path: str) -> int:
    tag = as_int(_ask(runtime, path)["tag"])
    # Int32, as the C# gives it.
    return tag - (1 << 32) if tag >> 31 else tag


@ENTRY.static_method("Names(string path)", effect=True)
def _names(runtime: Runtime, path: str) -> int:
    return as_int(_ask(runtime, path)["names"])


@ENTRY.static_method("Owner(string path)", effect=True)
def _owner(runtime: Runtime, path: str) -> str:
    return str(_ask(runtime, path, _READ_CONTROL)["owner"])


def _ask(runtime: Runtime, path: str, access: int = 0) -> Record:
    found = ask_one(runtime, "file.entry", path=path, access=access)
    assert isinstance(found, Record)
    return found
