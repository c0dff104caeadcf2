"""Winboot.Hns: the one piece of C# that the lab knows, recognised by its text.

`Add-Type` with this text declares the type in the session (cmdlets/add_type.py); any other C# is refused.
"""

from __future__ import annotations

import hashlib
from typing import Final

from winboot_lab.engine.door import ask_one
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Runtime

# Of the C# in templates/powershell/lib/hns.ps1; tests/steps/test_hns.py holds the two together.
DECLARATION: Final = "1c19ea85f7f015f8f532fc95eedb47c0efcf333849f0283f018289748581ead0"

# Not registered with the other types: it exists only in a session that has compiled it.
HNS: Final = DotNetType("Winboot.Hns", base=OBJECT, kind="static")


@HNS.static_method("Call(string method, string path, string request, int seconds)", effect=True)
def _call(runtime: Runtime, method: str, path: str, request: str, seconds: int) -> str:
    return str(ask_one(runtime, "hns.call", method=method, path=path, request=request, seconds=seconds))


def digest(source: str) -> str:
    """What identifies a declaration: the hash of its text with LF line ends and no blanks around it."""
    return hashlib.sha256(source.replace("\r\n", "\n").strip().encode("utf-8")).hexdigest()
