"""The C# that the library declares, compiled for real. Everywhere else the lab knows what it means, without compiling it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from winboot_lab import engines
from winboot_lab.engine.dotnet import DotNetType, Method, named
from winboot_lab.pwsh.wire import DECLARED

from winboot.script.library import templates_root

_SCRIPT = Path(__file__).with_name("declarations.ps1")


def test_the_library_s_csharp_compiles_and_has_the_methods_that_the_lab_knows(
    request: pytest.FixtureRequest,
) -> None:
    powershell = engines.find_powershell(request.config.getoption("--pwsh"))
    if powershell is None:
        pytest.skip(f"needs a real PowerShell to compile C#. {engines.HOW_TO_GET}")

    words = [
        "-NoProfile",
        "-NonInteractive",
        "-File",
        str(_SCRIPT),
        "-Library",
        str(templates_root() / "lib"),
    ]
    compiled = subprocess.run([powershell, *words], capture_output=True, text=True, check=False)

    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    assert sorted(compiled.stdout.splitlines()) == sorted(
        line for kind in DECLARED.values() for line in _methods(kind)
    )


def _methods(kind: DotNetType) -> list[str]:
    """The methods of a type of the lab, a line each, as the script writes them."""
    return [
        f"{kind.name}.{member.name}({', '.join(f'{named(slot.type_name).name} {slot.name}' for slot in overload.slots)})"
        for member in kind.statics.values()
        if isinstance(member, Method)
        for overload in member.overloads
    ]
