"""Bugs planted in the library, and what each engine makes of them (docs/real-powershell.md has the table).

An answer is what the call writes, each object as a text, or the id of the error that ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from winboot_lab.engines import run_script
from winboot_lab.windows.machine import Machine

from winboot.script.library import functions_for

Answer = list[str]


@dataclass(frozen=True, slots=True)
class Planted:
    """A mutation: `wrong` replaces `right` in a function of the library; then `before` and `call` run."""

    name: str
    right: str
    wrong: str
    call: str
    healthy: Answer
    told: Answer
    before: str = ""
    later: Answer | None = None
    """What PowerShell 7 answers, where Windows PowerShell 5.1 and so the lab answer otherwise."""


_TEXT = "[regex]::Match({}, '(?m)"
_PARTS = "$parts = {}.Split('.')"
_TOKEN = "Read-Member -Object $User -Names 'token'"
_ONE_NETWORK = "function Get-HnsObject { param($Kind, $Name) [pscustomobject]@{ Name = 'pods' } }"
_ADAPTERS = (
    "function Get-NetAdapter { [CmdletBinding()]param($InterfaceIndex, [switch]$IncludeHidden) "
    "[pscustomobject]@{ InterfaceGuid = '{A}' } }\n"
    "function Read-DnsServer { param($Guid) $script:asked = $Guid }"
)

PLANTED: Final = (
    Planted(
        "nothing as an argument of a .NET method that takes a text",
        right=_TEXT.format('"$(Read-FileText -Path $Path)"'),
        wrong=_TEXT.format("(Read-FileByte -Path $Path)"),
        call=r"Read-KubeconfigServer -Path C:\none",
        healthy=[""],
        told=["error ArgumentNullException"],
    ),
    Planted(
        "nothing cast to a text, and asked for a method",
        right=_PARTS.format(f'"$({_TOKEN})"'),
        wrong=_PARTS.format(f"([string]({_TOKEN}))"),
        call="@(Get-CredentialEnd -User ([pscustomobject]@{})).Count",
        healthy=["0"],
        told=["error InvokeMethodOnNull"],
    ),
    Planted(
        "nothing bound to a parameter that is a text",
        right="if ($null -ne $text) { ConvertFrom-Pem -Text $text }",
        wrong="ConvertFrom-Pem -Text $text",
        call=r"@(Read-PemCertificate -Path C:\none).Count",
        healthy=["0"],
        told=["1"],
    ),
    Planted(
        "an enum as a text that fits two constructors",
        right="[IO.FileMode]$Mode, [IO.FileAccess]::Write, [IO.FileShare]::Read",
        wrong="$Mode, 'Write', 'Read'",
        call=r"(Open-FlushedFile -Path C:\x.txt -Mode Create).Dispose(); [IO.File]::Exists('C:\x.txt')",
        healthy=["True"],
        told=["error MethodCountCouldNotFindBest"],
    ),
    Planted(
        "one object where a list is meant",
        right="@(Get-HnsObject -Kind networks -Name $Name).Count -eq 1",
        wrong="(Get-HnsObject -Kind networks -Name $Name).Count -eq 1",
        call="Assert-Network -Name pods; 'passed'",
        before=_ONE_NETWORK,
        healthy=["passed"],
        told=["error PropertyNotFoundStrict"],
        later=["passed"],
    ),
    Planted(
        "one text where a list is meant",
        right="@(Get-NetAdapter @at -IncludeHidden | ForEach-Object { [string]$_.InterfaceGuid })[0]",
        wrong="(Get-NetAdapter @at -IncludeHidden | ForEach-Object { [string]$_.InterfaceGuid })[0]",
        call="Restore-NameServer -Was ([pscustomobject]@{ dns = @(); dhcp_dns = $true; suffix = '' }) -Index 3; $script:asked",
        before=_ADAPTERS,
        healthy=["{A}"],
        told=["{"],
    ),
    Planted(
        "a method of nothing",
        right=_PARTS.format(f'"$({_TOKEN})"'),
        wrong=_PARTS.format(f"({_TOKEN})"),
        call="@(Get-CredentialEnd -User ([pscustomobject]@{})).Count",
        healthy=["0"],
        told=["error InvokeMethodOnNull"],
    ),
    Planted(
        "the caller's pipeline variable in a function",
        right="$Ip -ne '' -and $Ip -notlike '127.*'",
        wrong="$_ -ne '' -and $_ -notlike '127.*'",
        call="'10.0.1.11' | Where-Object { Test-OuterAddress -Ip '127.0.0.1' }; 'end'",
        before="function Find-Address { param($Ip) $Ip }",
        healthy=["end"],
        told=["10.0.1.11", "end"],
    ),
)


def answer(machine: Machine, planted: Planted, *, bug: bool) -> Answer:
    """What the call gives on a machine, with the bug or without it."""
    library = functions_for(planted.call)
    assert library.count(planted.right) == 1, planted.name
    if bug:
        library = library.replace(planted.right, planted.wrong)
    text = (
        "Set-StrictMode -Version 2.0\n$ErrorActionPreference = 'Stop'\n"
        f"{library}\n{planted.before}\n$script:Run = @{{ Step = 'files'; Mode = 'Look'; Cache = @{{}} }}\n"
        f'try {{ {planted.call} }} catch {{ "error $($_.FullyQualifiedErrorId)" }}\n'
    )
    found: list[Any] = []
    with machine.session("Administrator") as session, machine.acting():
        ended = run_script(session, text, {}, emit=lambda stream, value: found.append(value))
    assert ended.state == "completed", getattr(ended.error, "message", "")
    return [str(one) for one in found]
