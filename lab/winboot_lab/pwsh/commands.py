"""Windows' commands for a real PowerShell, from the door's signatures: functions in modules where Windows has functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from winboot.script.literals import quoted
from winboot_lab.engine.signatures import CommandSpec
from winboot_lab.pwsh.stand_ins import places
from winboot_lab.windows.door import ALL_SETS, CommandSignature, InSet, Parameter

LAB = ("Get-ExecutionPolicy", "Get-Item", "Set-Acl", "Get-Acl", "Start-Sleep")
"""Cmdlets of the engine that touch the machine: the lab's own do it here, too."""

_TYPES = {
    "System.String": "string",
    "System.Int32": "int",
    "System.Int64": "long",
    "System.UInt16": "uint16",
    "System.UInt32": "uint32",
    "System.UInt64": "uint64",
    "System.Byte": "byte",
    "System.Boolean": "bool",
    "System.Double": "double",
    "System.Management.Automation.SwitchParameter": "switch",
    "System.TimeSpan": "TimeSpan",
    "System.Collections.Hashtable": "hashtable",
}


def modules(signatures: Iterable[CommandSignature]) -> str:
    """A script that makes a module of each module's functions, and imports it."""
    by_module: dict[str, list[CommandSignature]] = defaultdict(list)
    for signature in signatures:
        if signature.kind == "Function":
            by_module[signature.module].append(signature)
    return "\n".join(
        f"New-Module -Name {quoted(module)} -ScriptBlock {{\n"
        + "\n".join(_function(signature) for signature in found)
        + "\n} | Import-Module -DisableNameChecking"
        for module, found in by_module.items()
    )


def own(specs: Iterable[CommandSpec]) -> str:
    """Functions for the lab's own cmdlets among the specifications."""
    return "\n".join(_function(_signature(spec), scope="global:") for spec in specs)


def _signature(spec: CommandSpec) -> CommandSignature:
    parameters = tuple(
        Parameter(
            one.name,
            one.type.name,
            one.aliases,
            sets=tuple(
                InSet(name, place.mandatory, place.position, place.by_value, place.by_name)
                for name, place in one.places.items()
            ),
        )
        for one in spec.parameters
        if not one.common and not one.refused
    )
    return CommandSignature(spec.name, "", parameters, spec.default_set or ALL_SETS, kind="Function")


def _function(signature: CommandSignature, scope: str = "") -> str:
    binding = []
    if signature.default_set != ALL_SETS:
        binding.append(f"DefaultParameterSetName = {quoted(signature.default_set)}")
    if signature.should_process:
        binding.append("SupportsShouldProcess = $true")
    parameters = ",\n".join(_parameter(parameter) for parameter in signature.parameters)
    return (
        f"function {scope}{signature.name} {{ [CmdletBinding({', '.join(binding)})] param(\n{parameters})\n"
        f"process {{ [Lab.Wire]::Command({quoted(signature.name)}, $PSBoundParameters, $PSCmdlet) }} }}"
    )


def _parameter(parameter: Parameter) -> str:
    marks = [f"[Parameter({words})]" for words in places(parameter, "$true", "'")]
    if parameter.aliases:
        marks.append(f"[Alias({', '.join(quoted(alias) for alias in parameter.aliases)})]")
    if parameter.words:
        marks.append(f"[ValidateSet({', '.join(quoted(word) for word in parameter.words)})]")
    name = parameter.type_name
    element = name.removesuffix("[]")
    kind = _TYPES.get(element, "object") + ("[]" if element != name else "")
    return f"    {''.join(marks)} [{kind}] ${{{parameter.name}}}"
