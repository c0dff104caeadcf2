"""Winboot.Layer: the C# that calls computestorage.dll, recognised by its text as Winboot.Hns is."""

from __future__ import annotations

from typing import Final

from winboot_lab.engine.door import ask_one
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Runtime

# Of the C# in templates/powershell/lib/layers.ps1; tests/steps/test_layers.py holds the two together.
DECLARATION: Final = "21ff59e5334a829ee736911f6cb455e0ba6884ab6518a500a0d7e9aab9f3dc2f"

LAYER: Final = DotNetType("Winboot.Layer", base=OBJECT, kind="static")


@LAYER.static_method("Destroy(string layerPath)", effect=True)
def _destroy(runtime: Runtime, path: str) -> int:
    return int(ask_one(runtime, "hcs.destroy-layer", path=path))
