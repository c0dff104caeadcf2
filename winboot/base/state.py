"""The state folder on this computer: journals, archived runs, caches, first boot's key, vouchers and approvals.

`state_folder` is the only way to it. Each module that keeps something there is a row of tests/test_state_folder.py.
"""

from __future__ import annotations

import os
from pathlib import Path

from winboot.base.private import refuse_strangers


def state_folder(*parts: str) -> Path:
    """The folder of these parts in `$WINBOOT_STATE`, else `$XDG_STATE_HOME/winboot`, else `~/.local/state/winboot`.

    It may be missing. Raises ForeignFolder if another user decides what is in it; OSError.
    """
    return refuse_strangers(_place().joinpath(*parts))


def _place() -> Path:
    explicit = os.environ.get("WINBOOT_STATE")
    if explicit:
        return Path(explicit)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "winboot"
