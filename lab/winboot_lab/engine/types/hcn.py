"""Winboot.Hcn: the C# that calls computenetwork.dll, recognised by its text as Winboot.Hns is."""

from __future__ import annotations

from typing import Final

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Runtime

# Of the C# in templates/powershell/lib/hcn.ps1; tests/steps/test_host_route.py holds the two together.
DECLARATION: Final = "592d4ccd60ebe70a17ec9fbe5f7077e07e091bcf22ad2ad7115d0fab27e65f79"

HCN: Final = DotNetType("Winboot.Hcn", base=OBJECT, kind="static")


@HCN.static_method("Query(string id, string query, int seconds)", effect=True)
def _query(runtime: Runtime, id: str, query: str, seconds: int) -> str:
    return str(ask_one(runtime, "hcn.query", id=id, query=query, seconds=seconds))


@HCN.static_method("void Modify(string id, string settings, int seconds)", effect=True)
def _modify(runtime: Runtime, id: str, settings: str, seconds: int) -> None:
    ask(runtime, "hcn.modify", id=id, settings=settings, seconds=seconds)
