"""templates/powershell/_unsourced.ps1: the lab's beliefs without a source, as items of `winboot collect`."""

from __future__ import annotations

from typing import Final

from winboot_lab.windows.facts import Fact, unsourced

_HEAD: Final = """\
# What the lab believes of Windows without a source (docs/unsourced.md). `make golden` writes this file.
function Get-HnsNetwork {
    # Windows' own command gives the same objects, and waits for them without end.
    Get-HnsObject -Kind networks
}

"""


def facts_script() -> str:
    """The file."""
    rows = "".join(map(_row, (one for one in unsourced() if one.bundled)))
    return f"{_HEAD}$more += @(\n{rows})\n"


def _row(one: Fact) -> str:
    return f"    @{{ Name = 'unsourced-{one.id}'; Seconds = 10; Read = {{ {one.command} }} }}\n"
