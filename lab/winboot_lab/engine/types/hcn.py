"""Winboot.Hcn: the C# that calls computenetwork.dll, recognised by its text as Winboot.Hns is."""

from __future__ import annotations

from typing import Final

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Runtime

# Of the C# in templates/powershell/lib/hcn.ps1; tests/steps/test_host_route.py holds the two together.
DECLARATION: Final = "e18bc7c2ff79d1d73c10d5078bd4c3101084cf53e15afcef75194d5939e0e8d8"

HCN: Final = DotNetType("Winboot.Hcn", base=OBJECT, kind="static")


@HCN.static_method("Query(string id, string query)", effect=True)
def _query(runtime: Runtime, id: str, query: str) -> str:
    return str(ask_one(runtime, "hcn.query", id=id, query=query))


@HCN.static_method("void Modify(string id, string settings)", effect=True)
def _modify(runtime: Runtime, id: str, settings: str) -> None:
    ask(runtime, "hcn.modify", id=id, settings=settings)


HCN.complete()
