"""What a machine has said on its serial console, for an administrator that cannot log in."""

from __future__ import annotations

import re
from typing import Final

from winboot.base.clean import clean

# As `Write-Word` of _first_boot.ps1.j2 writes it.
_WORD: Final = re.compile(r"winboot: (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) ([^\r\n]+)")


def last_word(text: str, machine: str) -> str:
    """The last sentence that first boot has said, or that it has said nothing."""
    said = _WORD.findall(text)
    if not said:
        about = "the machine may not have booted yet, or its user data did not run"
        return f"the console of {machine} has no message of winboot: {about}"
    when, word = said[-1]
    return f"{clean(word)} ({when}, the console of {machine})"
