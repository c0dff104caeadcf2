"""Winboot.Privilege: the C# that enables privileges of the process, recognised by its text as Winboot.Hns is."""

from __future__ import annotations

from typing import Final

from winboot_lab.engine.door import ask
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Runtime

# Of the C# in templates/powershell/lib/registry.ps1; tests/steps/test_gmsa.py holds the two together.
DECLARATION: Final = "108466e2499b39c543ea9ba3866e16afc0b008d4a0dff213b6be73228480adc6"

PRIVILEGE: Final = DotNetType("Winboot.Privilege", base=OBJECT, kind="static")


@PRIVILEGE.static_method("void Enable()", effect=True)
def _enable(runtime: Runtime) -> None:
    ask(runtime, "acl.enable-privileges")
