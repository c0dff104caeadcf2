"""Get-Acl and Set-Acl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import SECURITY, cmdlet
from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.exceptions import (
    ArgumentException,
    DotNetException,
    DriveNotFoundException,
    ProviderNotFoundException,
    UnauthorizedAccessException,
)
from winboot_lab.engine.items import with_notes
from winboot_lab.engine.locations import FILES, REGISTRY, Place
from winboot_lab.engine.providers import (
    chosen_by_name,
    expand,
    given_paths,
    missing,
    no_place,
    not_supported,
    provider_of,
    resolve,
)
from winboot_lab.engine.types.access import Security, security_of
from winboot_lab.engine.values import NoteProperty, plain

Value = Any

_CHOICE = """
    Filter: string refused
    Include: string[]
    Exclude: string[]
"""


@cmdlet(
    "Get-Acl",
    """
    Path: string[] position=0 name set=ByPath
    LiteralPath: string[] name alias=PSPath set=ByLiteralPath
    InputObject: psobject refused set=ByInputObject
    Audit: switch refused
    AllCentralAccessPolicies: switch refused
    """
    + _CHOICE,
    module=SECURITY,
    default_set="ByPath",
)
def get_acl(call: Call) -> None:
    """Owner, group and rules of each item."""
    for place in _places(call):
        if not chosen_by_name(call, place.leaf):
            continue
        call.write(_security(call, place))


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


@cmdlet(
    "Set-Acl",
    """
    Path: string[] mandatory position=0 name set=ByPath
    LiteralPath: string[] mandatory name alias=PSPath set=ByLiteralPath
    InputObject: psobject refused set=ByInputObject
    AclObject: object mandatory position=1 value name
    CentralAccessPolicy: string refused
    ClearCentralAccessPolicy: switch refused
    Passthru: switch
    """
    + _CHOICE,
    module=SECURITY,
    default_set="ByPath",
    should_process=True,
)
def set_acl(call: Call) -> None:
    """Give each item the owner and the rules of a security object."""
    security = plain(call["AclObject"])
    if not isinstance(security, Security):
        call.fail(ArgumentException("AclObject"), "SetAcl_AclObject", "InvalidArgument", call["AclObject"])
    wanted = security.machine_record().properties
    for place in resolve(call):
        if not chosen_by_name(call, place.leaf) or not call.should_process():
            continue
        if place.provider not in (FILES, REGISTRY):
            not_supported(call)
        _store(call, place, wanted)
        if call.flag("Passthru"):
            call.write(_security(call, place))


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
