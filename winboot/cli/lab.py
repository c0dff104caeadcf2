"""`winboot lab` where the lab is not installed: a command that says how to get it."""

from __future__ import annotations

from winboot.base.errors import UsageError


def missing() -> None:
    """Say how to get the lab."""
    raise UsageError(
        "the lab is not installed in this environment",
        hint="It is the folder lab/ of winboot's repository: in a checkout run `pip install ./lab`.",
    )
