"""What winboot has printed about files before: each version of a file earns its warnings once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from winboot.base.errors import ForeignFolder
from winboot.base.private import own_folder, replace_privately
from winboot.base.state import state_folder

_KEPT: Final = 100


def first_time(texts: Iterable[str]) -> bool:
    """True if these texts were not printed before; from now on they were. True, too, where this cannot be kept."""
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    try:
        file = own_folder(state_folder()) / "seen"
        known = file.read_text(encoding="ascii").splitlines() if file.exists() else []
        if digest in known:
            return False
        replace_privately(file, "\n".join([*known[1 - _KEPT :], digest, ""]))
    except (OSError, UnicodeDecodeError, ForeignFolder):
        pass
    return True
