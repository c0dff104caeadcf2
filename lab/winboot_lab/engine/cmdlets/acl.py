"""Get-Acl and Set-Acl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.exceptions import (
    DotNetException,
    DriveNotFoundException,
    ProviderNotFoundException,
    UnauthorizedAccessException,
)
from winboot_lab.engine.items import with_notes
from winboot_lab.engine.locations import FILES, REGISTRY, Place
from winboot_lab.engine.providers import (
    expand,
    given_paths,
    missing,
    no_place,
    not_supported,
    provider_of,
)
from winboot_lab.engine.types.access import security_of
from winboot_lab.engine.values import NoteProperty

Value = Any

_CHOICE = """
    Filter: string refused
    Include: string[]
    Exclude: string[]
"""


def _places(call: Call) -> Iterator[Place]:
    """The items; what is missing has an error id of its own and is named as it was written."""
    for text, literal in list(given_paths(call)) or [(".", False)]:
        try:
            found = expand(call.scope, text, literal=literal)
        except (DriveNotFoundException, ProviderNotFoundException) as failure:
            no_place(call, failure)
            continue
        if found is None:
            call.error(missing(text), "GetAcl_PathNotFound_Exception", "ObjectNotFound")
            continue
        yield from found


def _security(call: Call, place: Place) -> Value:
    if place.provider == FILES:
        folder = provider_of(call.scope, place).is_container(place)
        record = ask_one(call.scope, "acl.get", path=place.path)
        made = security_of("DirectorySecurity" if folder else "FileSecurity", record)
    elif place.provider == REGISTRY:
        record = ask_one(call.scope, "acl.get", path=place.path, kind="registry")
        made = security_of("RegistrySecurity", record)
    else:
        not_supported(call)
    noted = with_notes(made, place, call.session.locations, container=None)
    noted.extension.add(NoteProperty("Path", place.qualified))
    return noted


def _store(call: Call, place: Place, wanted: dict[str, Any]) -> None:
    # It writes all sections, also the audit entries that Get-Acl without -Audit has not read (FileSystemSecurity.cs).
    given = {key: value for key, value in wanted.items() if value is not None} | {"audit": ""}
    try:
        ask(
            call.scope,
            "acl.set",
            path=place.path,
            kind="file" if place.provider == FILES else "registry",
            **given,
        )
    except UnauthorizedAccessException as failure:
        call.error(failure, "System.UnauthorizedAccessException", "PermissionDenied", place.path)
    except DotNetException as failure:
        call.error(failure, failure.type_name, "NotSpecified", place.path)
