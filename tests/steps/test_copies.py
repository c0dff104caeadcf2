"""A machine that cannot be compared with its note is neither a copy nor known: only its held services wait for that."""

from __future__ import annotations

from tests.steps.bench import Bench
from tests.steps.library import call

NOTE = r"C:\ProgramData\winboot\machine.json"
FAILS = "function Get-CimInstance { throw 'WMI does not answer' }\n"
EMPTY = "$script:Run.Identity = @{ Uuid = '' }\n"
NOTED = (
    "Initialize-StateFolder; Write-StateJson -Name 'machine.json' -Value @{ uuid = 'a-b'; node = 'win-1' }\n"
)
BOOT = "\n".join(
    (
        "$script:Did = @()",
        "$script:Asked = 0",
        "$script:Run.Steps = @()",
        "function Start-Sleep { }",
        "function Write-StateJson { }",
        "function New-EventLine { param([hashtable]$Fields) if ($Fields.event -ne 'boot') { $script:Did += $Fields.event } }",
        "function Get-BootId { 'b' }",
        "function Get-BootStamp { 's' }",
        "function Start-HeldService { $script:Did += 'held' }",
        "function Complete-InterruptedRun { $script:Did += 'completed' }",
        "function Restore-AgentHold { }",
        "function Clear-OldFile { }",
        "function Save-Start {",
        "    param([object[]]$Failed = @())",
        '    foreach ($one in $Failed) { $script:Did += "fault of $($one.step)" }',
        "}",
        "function Watch-OwnService { param([int]$Seconds) $script:Did += 'watched' }",
        "function Remove-StrayTask { param([object[]]$Running) }",
        "function Read-DetachedRun { }",
        "function Update-HashMemory { }",
        "",
    )
)


def test_a_machine_without_a_note_asks_windows_nothing(bench: Bench) -> None:
    assert call(bench, f"{FAILS}Get-CopyText").id == ""


def test_a_machine_without_a_uuid_is_unknown_and_no_copy(bench: Bench) -> None:
    answer = call(bench, f"{NOTED}{EMPTY}Get-CopyText")

    assert (answer.objects, answer.id.removeprefix("winboot.")) == ([], "NoMachineUuid")


def test_an_unknown_machine_does_its_other_work_at_the_start(bench: Bench) -> None:
    unknown = "function Get-CopyText { throw 'WMI does not answer' }\n"

    assert call(bench, f"{BOOT}{unknown}Invoke-Boot; $script:Did").objects == [
        "completed",
        "boot-failed",
        "fault of registration",
        "watched",
    ]


def test_held_services_start_as_soon_as_the_machine_is_known(bench: Bench) -> None:
    later = "function Get-CopyText { $script:Asked++; if ($script:Asked -lt 6) { throw 'not yet' } }\n"

    assert call(bench, f"{BOOT}{later}Invoke-Boot; $script:Did").objects == ["completed", "held", "watched"]


def test_a_copy_that_is_known_late_starts_no_held_service(bench: Bench) -> None:
    later = (
        "function Get-CopyText { $script:Asked++; if ($script:Asked -lt 6) { throw 'not yet' }; 'a copy' }\n"
    )

    assert call(bench, f"{BOOT}{later}Invoke-Boot; $script:Did").objects == [
        "completed",
        "fault of registration",
        "copied-machine",
    ]


def test_the_guard_of_an_unknown_machine_asks_again(bench: Bench) -> None:
    later = (
        "$script:Asked = 0\nfunction Start-Sleep { }\nfunction New-EventLine { }\n"
        "function Get-CopyText { $script:Asked++; if ($script:Asked -lt 3) { throw 'not yet' }; 'a copy' }\n"
    )

    assert call(bench, f"{later}Invoke-Guard; $script:Asked").objects == [3]
