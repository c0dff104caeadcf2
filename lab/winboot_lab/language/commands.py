"""What can be called on a Windows Server: cmdlets with their parameters, aliases, programs, approved verbs.

The cmdlets come from `data/commands.tsv`, which is read at the first look-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

SYSTEMS: Final[Mapping[str, str]] = {"9": "2019", "2": "2022", "5": "2025"}

COMMON_PARAMETERS: Final = frozenset(
    {
        "Verbose",
        "Debug",
        "ErrorAction",
        "WarningAction",
        "InformationAction",
        "ErrorVariable",
        "WarningVariable",
        "InformationVariable",
        "OutVariable",
        "OutBuffer",
        "PipelineVariable",
        "WhatIf",
        "Confirm",
    }
)
_COMMON: Final = {name.lower(): name for name in COMMON_PARAMETERS}
# Short names that are aliases of parameters, though their spelling does not show it.
_ALIAS_PARAMETERS: Final = frozenset({"Cn", "Lup", "Msg", "For", "Cf", "Wi"})
_NAMES_IN_CAPITALS: Final = frozenset({"ID"})


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """A cmdlet: its spelling, its module, the systems that have it, its parameters by lower-case name.

    A parameter is its spelling and the systems that have it, as digits (see SYSTEMS).
    """

    name: str
    module: str
    systems: str
    parameters: Mapping[str, tuple[str, str]]

    def missing_systems(self) -> tuple[str, ...]:
        """The Windows Server versions without this cmdlet."""
        return _missing(self.systems)

    def parameter(self, name: str) -> tuple[str, tuple[str, ...]] | None:
        """A parameter's spelling and the Windows Server versions without it; None for an unknown parameter."""
        found = self.parameters.get(name.lower())
        if found is not None:
            return found[0], _missing(found[1])
        common = _COMMON.get(name.lower())
        return None if common is None else (common, ())

    def beginning_with(self, prefix: str) -> list[str]:
        """The parameters that this may be an abbreviation of."""
        lower = prefix.lower()
        own = [spelling for name, (spelling, _) in self.parameters.items() if name.startswith(lower)]
        return own + [spelling for name, spelling in _COMMON.items() if name.startswith(lower)]


def _missing(systems: str) -> tuple[str, ...]:
    return tuple(year for digit, year in SYSTEMS.items() if digit not in systems)


def is_parameter_alias(spelling: str) -> bool:
    """Whether a parameter's name is a short form of another one (`-wi`, `-CN`)."""
    if spelling[:1].islower() or spelling in _ALIAS_PARAMETERS:
        return True
    return len(spelling) <= 3 and spelling.isupper() and spelling not in _NAMES_IN_CAPITALS


@cache
def _lines() -> dict[str, str]:
    text = resources.files(__package__).joinpath("data/commands.tsv").read_text(encoding="utf-8")
    lines = (line for line in text.split("\n") if line and line[0] != "#")
    return {line[: line.index("\t")].lower(): line for line in lines}


@cache
def find(name: str) -> CommandFacts | None:
    """The cmdlet of this name (in any case), or None."""
    line = _lines().get(name.lower())
    if line is None:
        return None
    spelling, module, systems, everywhere, *somewhere = line.split("\t")
    parameters = {one.lower(): (one, systems) for one in everywhere.split()}
    for pair in somewhere[0].split() if somewhere else ():
        one, _, only = pair.rpartition(":")
        parameters[one.lower()] = (one, only)
    return CommandFacts(spelling, module, systems, parameters)


def names() -> list[str]:
    """The names of all cmdlets known here."""
    return [line[: line.index("\t")] for line in _lines().values()]


# ----------------------------------------------------------------------------------------------------
# Aliases of Windows PowerShell 5.1

ALIASES: Final[Mapping[str, str]] = {
    "%": "ForEach-Object",
    "?": "Where-Object",
    "ac": "Add-Content",
    "asnp": "Add-PSSnapin",
    "cat": "Get-Content",
    "cd": "Set-Location",
    "cfs": "ConvertFrom-String",
    "chdir": "Set-Location",
    "clc": "Clear-Content",
    "clear": "Clear-Host",
    "clhy": "Clear-History",
    "cli": "Clear-Item",
    "clp": "Clear-ItemProperty",
    "cls": "Clear-Host",
    "clv": "Clear-Variable",
    "cnsn": "Connect-PSSession",
    "compare": "Compare-Object",
    "copy": "Copy-Item",
    "cp": "Copy-Item",
    "cpi": "Copy-Item",
    "cpp": "Copy-ItemProperty",
    "curl": "Invoke-WebRequest",
    "cvpa": "Convert-Path",
    "dbp": "Disable-PSBreakpoint",
    "del": "Remove-Item",
    "diff": "Compare-Object",
    "dir": "Get-ChildItem",
    "dnsn": "Disconnect-PSSession",
    "ebp": "Enable-PSBreakpoint",
    "echo": "Write-Output",
    "epal": "Export-Alias",
    "epcsv": "Export-Csv",
    "epsn": "Export-PSSession",
    "erase": "Remove-Item",
    "etsn": "Enter-PSSession",
    "exsn": "Exit-PSSession",
    "fc": "Format-Custom",
    "fl": "Format-List",
    "foreach": "ForEach-Object",
    "ft": "Format-Table",
    "fw": "Format-Wide",
    "gal": "Get-Alias",
    "gbp": "Get-PSBreakpoint",
    "gc": "Get-Content",
    "gci": "Get-ChildItem",
    "gcm": "Get-Command",
    "gcs": "Get-PSCallStack",
    "gdr": "Get-PSDrive",
    "ghy": "Get-History",
    "gi": "Get-Item",
    "gin": "Get-ComputerInfo",
    "gjb": "Get-Job",
    "gl": "Get-Location",
    "gm": "Get-Member",
    "gmo": "Get-Module",
    "gp": "Get-ItemProperty",
    "gps": "Get-Process",
    "gpv": "Get-ItemPropertyValue",
    "group": "Group-Object",
    "gsn": "Get-PSSession",
    "gsnp": "Get-PSSnapin",
    "gsv": "Get-Service",
    "gtz": "Get-TimeZone",
    "gu": "Get-Unique",
    "gv": "Get-Variable",
    "gwmi": "Get-WmiObject",
    "h": "Get-History",
    "history": "Get-History",
    "icm": "Invoke-Command",
    "iex": "Invoke-Expression",
    "ihy": "Invoke-History",
    "ii": "Invoke-Item",
    "ipal": "Import-Alias",
    "ipcsv": "Import-Csv",
    "ipmo": "Import-Module",
    "ipsn": "Import-PSSession",
    "irm": "Invoke-RestMethod",
    "ise": "powershell_ise.exe",
    "iwmi": "Invoke-WmiMethod",
    "iwr": "Invoke-WebRequest",
    "kill": "Stop-Process",
    "lp": "Out-Printer",
    "ls": "Get-ChildItem",
    "man": "help",
    "md": "mkdir",
    "measure": "Measure-Object",
    "mi": "Move-Item",
    "mount": "New-PSDrive",
    "move": "Move-Item",
    "mp": "Move-ItemProperty",
    "mv": "Move-Item",
    "nal": "New-Alias",
    "ndr": "New-PSDrive",
    "ni": "New-Item",
    "nmo": "New-Module",
    "npssc": "New-PSSessionConfigurationFile",
    "nsn": "New-PSSession",
    "nv": "New-Variable",
    "ogv": "Out-GridView",
    "oh": "Out-Host",
    "popd": "Pop-Location",
    "ps": "Get-Process",
    "pushd": "Push-Location",
    "pwd": "Get-Location",
    "r": "Invoke-History",
    "rbp": "Remove-PSBreakpoint",
    "rcjb": "Receive-Job",
    "rcsn": "Receive-PSSession",
    "rd": "Remove-Item",
    "rdr": "Remove-PSDrive",
    "ren": "Rename-Item",
    "ri": "Remove-Item",
    "rjb": "Remove-Job",
    "rm": "Remove-Item",
    "rmdir": "Remove-Item",
    "rmo": "Remove-Module",
    "rni": "Rename-Item",
    "rnp": "Rename-ItemProperty",
    "rp": "Remove-ItemProperty",
    "rsn": "Remove-PSSession",
    "rsnp": "Remove-PSSnapin",
    "rujb": "Resume-Job",
    "rv": "Remove-Variable",
    "rvpa": "Resolve-Path",
    "rwmi": "Remove-WmiObject",
    "sajb": "Start-Job",
    "sal": "Set-Alias",
    "saps": "Start-Process",
    "sasv": "Start-Service",
    "sbp": "Set-PSBreakpoint",
    "sc": "Set-Content",
    "scb": "Set-Clipboard",
    "select": "Select-Object",
    "set": "Set-Variable",
    "shcm": "Show-Command",
    "si": "Set-Item",
    "sl": "Set-Location",
    "sleep": "Start-Sleep",
    "sls": "Select-String",
    "sort": "Sort-Object",
    "sp": "Set-ItemProperty",
    "spjb": "Stop-Job",
    "spps": "Stop-Process",
    "spsv": "Stop-Service",
    "start": "Start-Process",
    "stz": "Set-TimeZone",
    "sujb": "Suspend-Job",
    "sv": "Set-Variable",
    "swmi": "Set-WmiInstance",
    "tee": "Tee-Object",
    "trcm": "Trace-Command",
    "type": "Get-Content",
    "wget": "Invoke-WebRequest",
    "where": "Where-Object",
    "wjb": "Wait-Job",
    "write": "Write-Output",
}
# Aliases that come with a module when its first command is called.
MODULE_ALIASES: Final[Mapping[str, str]] = {
    "fhx": "Format-Hex",
    "gcb": "Get-Clipboard",
    "gcim": "Get-CimInstance",
    "icim": "Invoke-CimMethod",
    "ncim": "New-CimInstance",
    "ncms": "New-CimSession",
    "rcim": "Remove-CimInstance",
    "rcms": "Remove-CimSession",
    "scim": "Set-CimInstance",
}
# What to write instead of an alias whose own command is not the best one, or not the one that was meant.
_BETTER: Final[Mapping[str, str]] = {
    "curl": "curl.exe or Invoke-WebRequest",
    "gwmi": "Get-CimInstance",
    "iwmi": "Invoke-CimMethod",
    "man": "Get-Help",
    "md": "New-Item -ItemType Directory",
    "rwmi": "Remove-CimInstance",
    "sc": "sc.exe or Set-Content",
    "swmi": "Set-CimInstance",
}


def alias(name: str) -> str | None:
    """What to write instead of an alias (in any case); None for a name that is not an alias."""
    lower = name.lower()
    return _BETTER.get(lower) or ALIASES.get(lower) or MODULE_ALIASES.get(lower)


# ----------------------------------------------------------------------------------------------------
# Programs that a script for a node may start by name

PROGRAMS: Final = frozenset(
    [
        "auditpol",
        "bcdedit",
        "certutil",
        "cmd",
        "containerd",
        "crictl",
        "ctr",
        "curl",
        "dism",
        "fltmc",
        "fsutil",
        "getmac",
        "hcsdiag",
        "hcsshim",
        "hostname",
        "icacls",
        "ipconfig",
        "kube-log-runner",
        "kube-proxy",
        "kubeadm",
        "kubectl",
        "kubelet",
        "flanneld",
        "logman",
        "mountvol",
        "msiexec",
        "net",
        "netsh",
        "netstat",
        "nltest",
        "nslookup",
        "nssm",
        "pktmon",
        "pnputil",
        "powercfg",
        "powershell",
        "reg",
        "robocopy",
        "route",
        "sc",
        "schtasks",
        "secedit",
        "shutdown",
        "systeminfo",
        "takeown",
        "tar",
        "taskkill",
        "tasklist",
        "tracert",
        "tzutil",
        "vfpctrl",
        "w32tm",
        "wevtutil",
        "where",
        "whoami",
        "winrm",
        "wmic",
    ]
)

# ----------------------------------------------------------------------------------------------------
# Approved verbs of Windows PowerShell 5.1

VERBS: Final = frozenset(
    [
        "Add",
        "Clear",
        "Close",
        "Copy",
        "Enter",
        "Exit",
        "Find",
        "Format",
        "Get",
        "Hide",
        "Join",
        "Lock",
        "Move",
        "New",
        "Open",
        "Optimize",
        "Pop",
        "Push",
        "Redo",
        "Remove",
        "Rename",
        "Reset",
        "Resize",
        "Search",
        "Select",
        "Set",
        "Show",
        "Skip",
        "Split",
        "Step",
        "Switch",
        "Undo",
        "Unlock",
        "Watch",
        "Backup",
        "Checkpoint",
        "Compare",
        "Compress",
        "Convert",
        "ConvertFrom",
        "ConvertTo",
        "Dismount",
        "Edit",
        "Expand",
        "Export",
        "Group",
        "Import",
        "Initialize",
        "Limit",
        "Merge",
        "Mount",
        "Out",
        "Publish",
        "Restore",
        "Save",
        "Sync",
        "Unpublish",
        "Update",
        "Approve",
        "Assert",
        "Complete",
        "Confirm",
        "Deny",
        "Disable",
        "Enable",
        "Install",
        "Invoke",
        "Register",
        "Request",
        "Restart",
        "Resume",
        "Start",
        "Stop",
        "Submit",
        "Suspend",
        "Uninstall",
        "Unregister",
        "Wait",
        "Debug",
        "Measure",
        "Ping",
        "Repair",
        "Resolve",
        "Test",
        "Trace",
        "Connect",
        "Disconnect",
        "Read",
        "Receive",
        "Send",
        "Write",
        "Block",
        "Grant",
        "Protect",
        "Revoke",
        "Unblock",
        "Unprotect",
        "Use",
    ]
)
