"""The user's own steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from winboot.config.model import is_file
from winboot.config.profile.checks.draft import Draft
from winboot.config.source import Complaint, PathParts

_STEP_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def check(draft: Draft) -> Iterator[Complaint]:
    """Names, each once, and files that are here."""
    seen: set[str] = set()
    for index, step in enumerate(draft.steps):
        path: PathParts = ("steps", index)
        if not _STEP_NAME.fullmatch(step.name):
            yield draft.at(
                (*path, "name"), repr(step.name), "lower case words with dashes, such as time-zone"
            )
        if step.name in seen:
            yield draft.at((*path, "name"), f"two steps have the name {step.name!r}", "another name")
        seen.add(step.name)
        for block, file in step.files.items():
            if not is_file(file):
                yield draft.at((*path, block), f"the file {file} does not exist", "a PowerShell file")
