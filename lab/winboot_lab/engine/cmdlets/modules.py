"""Import-Module and Get-Module: the modules of the lab's commands are always there."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import CORE, all_cmdlets, cmdlet
from winboot_lab.engine.exceptions import FileNotFoundException

Value = Any


def known_modules(call: Call) -> set[str]:
    """The modules some command of the lab belongs to, by lower-case name."""
    names = {command.module.lower() for command in all_cmdlets().values()}
    names.update(signature.module.lower() for signature in call.machine.commands.values())
    names.discard("")
    return names


@cmdlet(
    "Import-Module",
    """
    Name: string[] mandatory position=0 value set=Name
    Assembly: object refused set=Assembly
    ModuleInfo: object refused set=ModuleInfo
    Global: switch
    Force: switch
    PassThru: switch refused
    Prefix: string refused
    Function: string[] refused
    Cmdlet: string[] refused
    Variable: string[] refused
    Alias: string[] refused
    AsCustomObject: switch refused
    MinimumVersion: version refused alias=Version
    MaximumVersion: string refused
    RequiredVersion: version refused
    ArgumentList: object[] refused alias=Args
    DisableNameChecking: switch
    NoClobber: switch
    Scope: string refused
    """,
    module=CORE,
    default_set="Name",
)
def import_module(call: Call) -> None:
    """Nothing to do for a module of the lab; a module that Windows could have is refused."""
    known = known_modules(call)
    for name in call.items("Name"):
        if name.lower() in known:
            continue
        if "\\" in name or "/" in name or name.lower().endswith((".psm1", ".psd1", ".dll")) or "." in name:
            call.refuse(f"-Name {name}")
        if _exists_elsewhere(name):
            call.refuse(f"-Name {name}")
        call.error(
            FileNotFoundException(
                f"The specified module '{name}' was not loaded because no valid module file was found in any module "
                "directory."
            ),
            "Modules_ModuleNotFound",
            "ResourceUnavailable",
            name,
        )


def _exists_elsewhere(name: str) -> bool:
    """Is it a module of Windows Server that the lab does not have?"""
    from winboot_lab.language import commands

    modules = {facts.module.lower() for facts in map(commands.find, commands.names()) if facts is not None}
    return name.lower() in modules
