"""Cmdlets about running scripts: strict mode, Invoke-Expression, aliases, finding commands, sleeping, measuring time."""

from __future__ import annotations

import re
from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import (
    CORE,
    all_cmdlets,
    cmdlet,
    find_command,
    is_known_elsewhere,
    look_up,
)
from winboot_lab.engine.exceptions import CommandNotFoundException
from winboot_lab.engine.objects import CommandInfo, command_info
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import Structured, Version, enum_value
from winboot_lab.engine.wildcards import has_wildcards

Value = Any
_SMA = "System.Management.Automation."


@cmdlet(
    "Set-StrictMode",
    """
    Version: string mandatory alias=v set=Version
    Off: switch mandatory set=Off
    """,
    module=CORE,
    default_set="Version",
)
def set_strict_mode(call: Call) -> None:
    """Strict mode of the current scope: 0 off, 1, 2, 3 (latest)."""
    if call.flag("Off"):
        call.scope.strict = 0
        return
    text = call["Version"]
    if text.lower() == "latest":
        call.scope.strict = 3
        return
    match = re.fullmatch(r"([1-5])(?:\.([01]))?(?:\.\d+){0,2}", text.strip())
    if match is None or (match[2] == "1" and match[1] != "5"):
        raise Refusal("value", f"Set-StrictMode -Version {text}", "PowerShell has no such version")
    number = int(match[1])
    call.scope.strict = 1 if number < 2 else 2 if number < 3 else 3


@cmdlet(
    "Start-Sleep",
    """
    Seconds: int mandatory position=0 value name range=0,2147483 set=Seconds
    Milliseconds: int mandatory name range=0,2147483647 set=Milliseconds
    """,
    default_set="Seconds",
)
def start_sleep(call: Call) -> None:
    """Let lab time pass."""
    milliseconds = call["Milliseconds"] if call.has("Milliseconds") else call["Seconds"] * 1000
    call.machine.invoke("clock.sleep", {"milliseconds": milliseconds})


# -- aliases


def alias_info(name: str, definition: str) -> Structured:
    """An alias as a value."""
    return CommandInfo(
        _SMA + "AliasInfo",
        {
            "Name": name,
            "CommandType": enum_value(_SMA + "CommandTypes", "Alias"),
            "Definition": definition,
            "DisplayName": f"{name} -> {definition}",
            "ReferencedCommand": None,
        },
    )


# -- commands


@cmdlet(
    "Get-Command",
    """
    Name: string[] position=0 value name set=AllCommandSet
    Verb: string[] name set=CmdletSet refused
    Noun: string[] name set=CmdletSet refused
    Module: string[] name refused
    CommandType: System.Management.Automation.CommandTypes name alias=Type set=AllCommandSet
    TotalCount: int refused
    Syntax: switch refused
    ArgumentList: object[] refused
    All: switch
    ListImported: switch refused
    ParameterName: string[] refused
    ParameterType: string[] refused
    """,
    module=CORE,
    default_set="AllCommandSet",
)
def get_command(call: Call) -> None:
    """The command a name would run. Without a name, or with a wildcard over everything, the lab cannot answer."""
    names = call.items("Name")
    if not names:
        call.refuse("without -Name")
    wanted = str(call["CommandType"]) if call.has("CommandType") else None
    for name in names:
        if has_wildcards(name):
            call.refuse("with a wildcard")
        else:
            _get_by_name(call, name, wanted)


def _get_by_name(call: Call, name: str, wanted: str | None) -> None:
    alias = call.scope.find_alias(name.lower())
    if alias is not None and wanted in (None, "Alias", "All"):
        call.write(alias_info(name, alias))
        return
    found = call.scope.find_function(name.lower()) if wanted == "Function" else None
    found = found or look_up(call.scope, name)
    if found is not None and wanted not in (None, "All") and found.kind not in str(wanted).split(", "):
        found = None
    if found is not None:
        call.write(command_info(found))
        return
    if is_known_elsewhere(name):
        call.refuse(name)
    failure = CommandNotFoundException(
        f"The term '{name}' is not recognized as the name of a cmdlet, function, script file, or operable program. "
        "Check the spelling of the name, or if a path was included, verify that the path is correct and try again.",
        target=name,
    )
    call.error(failure, "CommandNotFoundException", "ObjectNotFound", name)


__all__ = ["Version", "all_cmdlets", "find_command"]
