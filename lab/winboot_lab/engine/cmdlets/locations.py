"""Where a session stands, and its drives: Get-, Set-, Push- and Pop-Location; Get-, New- and Remove-PSDrive."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.exceptions import (
    DriveNotFoundException,
    IOException,
    ProviderNotFoundException,
)
from winboot_lab.engine.locations import Drive, Place
from winboot_lab.engine.providers import place_of, provider_of

Value = Any


# -- drives


def _drive(call: Call, name: str, provider: str, root: str) -> Drive | None:
    try:
        place: Place = place_of(call.scope, f"{provider}::{root}")
    except (DriveNotFoundException, ProviderNotFoundException):
        place = Place(provider, root)
    if not provider_of(call.scope, place).is_container(place):
        call.error(
            IOException(f'The specified drive root "{root}" either does not exist, or it is not a folder.'),
            "DriveRootError",
            "ReadError",
            name,
        )
        return None
    return Drive(name, provider, place.path)
