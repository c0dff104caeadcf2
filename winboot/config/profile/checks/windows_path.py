"""A folder or file that the node reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from winboot.config.profile.checks.draft import Draft
from winboot.config.source import Complaint, PathParts

# \\host@SSL@8443\share is how Windows writes WebDAV over TLS; its @ is not a login.
_UNC: Final = re.compile(r"\\\\([A-Za-z0-9_.-]+)(@SSL)?(@[0-9]{1,5})?(\\[^\\/:*?\"<>|]+)+\\?", re.IGNORECASE)

_FOLDER: Final = re.compile(r"[A-Za-z]:\\([^\\/:*?\"<>|]+\\?)*")


def check_path(draft: Draft, path: PathParts, text: str) -> Iterator[Complaint]:
    """A folder or file that the node reads: on another disk, or on a share; WIM:C:\\x.wim:1 names an image in one."""
    bare = re.sub(r"^wim:(.*):[0-9]+$", r"\1", text, flags=re.IGNORECASE)
    if _FOLDER.fullmatch(bare) or _UNC.fullmatch(bare):
        return
    if "@" in text:
        yield draft.at(path, "the path contains a user or a password", "\\\\server\\share\\folder")
    else:
        yield draft.at(path, f"{text!r} is not a Windows path", "D:\\folder or \\\\server\\share\\folder")
