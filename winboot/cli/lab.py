"""`winboot lab` where the lab is not installed: a command that says how to get it."""

from __future__ import annotations

from winboot.base.errors import UsageError
from winboot.base.extras import how_to_install


def missing() -> None:
    """Say how to get the lab."""
    raise UsageError(
        "the lab is not installed in this environment",
        hint=f"The lab is the folder lab/ of winboot's repository: install it {how_to_install(lab=True)}.",
    )
