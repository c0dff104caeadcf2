"""The part of first boot that the endpoint sends, in the lab's engine."""

from __future__ import annotations

import json

import pytest
from winboot_lab.engine.run import run_script
from winboot_lab.windows.machine import Machine

from winboot.script.first_boot import client

# An endpoint that answers with these statuses and numbers, one after the other.
ENDPOINT = """
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
$script:Answers = [Collections.Generic.List[object]]::new()
$script:Calls = 0
function Write-Word { param([string]$Text) }
function Send-Call {
    param([string]$Path, [hashtable]$Headers, [byte[]]$Body)
    $script:Calls++
    $answer = $script:Answers[0]
    $script:Answers.RemoveAt(0)
    @{ Status = $answer.Status; Body = [Text.Encoding]::ASCII.GetBytes($answer.Heard) }
}
"""


def answers_to(machine: Machine, given: str, ask: str) -> list[str]:
    """What a call of the client gives, after the endpoint was given its answers."""
    said: list[str] = []
    with machine.session() as session, machine.acting():
        run_script(
            session,
            f"{ENDPOINT}\n{client()}\n{given}\n{ask}",
            {},
            emit=lambda stream, value: said.append(str(value)),
        )
    return said


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([(200, "6")], "6 1"),
        # The endpoint has no room until its output is read, and takes more with a later call.
        ([(200, "3"), (200, "3"), (200, "6")], "6 3"),
        ([(503, ""), (200, "6")], "6 2"),
        ([(410, "")], "-1 1"),
    ],
)
def test_output_is_sent_until_all_of_it_has_arrived(answers: list[tuple[int, str]], told: str) -> None:
    given = "\n".join(
        f"$script:Answers.Add(@{{ Status = {status}; Heard = '{heard}' }})" for status, heard in answers
    )
    ask = "\"$(Send-Output -Said @{} -Heard 3 -Text 'abc') $script:Calls\""

    assert answers_to(Machine(), given, ask) == [told]


# An endpoint that takes all, and shows what each call had.
TAKES_ALL = """
function Send-Call {
    param([string]$Path, [hashtable]$Headers, [byte[]]$Body)
    $script:Seen += "$($Headers['Winboot-Start']) $($Body.Length) $($Headers['Winboot-Exit']);"
    @{ Status = 200; Body = [Text.Encoding]::ASCII.GetBytes("$($Headers['Winboot-Start'] + $Body.Length)") }
}
$script:Seen = ''
"""


@pytest.mark.parametrize(
    ("length", "seen"),
    [
        (0, "7 0 0;"),
        (1_000_000, "7 1000000 0;"),
        (1_000_001, "7 1000000 ;1000007 1 0;"),
        (3_200_000, "7 1000000 ;1000007 1000000 ;2000007 1000000 ;3000007 200000 0;"),
    ],
)
def test_output_goes_in_calls_that_the_endpoint_takes_however_long_a_line_is(length: int, seen: str) -> None:
    """The exit code goes with the last call: the endpoint takes no output of a script after it."""
    ask = f"$all = Send-Output -Said @{{ 'Winboot-Exit' = 0 }} -Heard 7 -Text ('y' * {length}); \"$all $script:Seen\""

    assert answers_to(Machine(), TAKES_ALL, ask) == [f"{7 + length} {seen}"]


def test_a_machine_whose_last_answer_was_lost_gets_it_again_and_writes_the_awaited_file() -> None:
    told = {
        "result": {"state": "Ready", "word": "is the Ready node win-1", "ready_file": r"C:\run\capi\done"}
    }
    given = f"$script:Answers.Add(@{{ Status = 200; Heard = '{json.dumps(told)}' }})"
    ask = "$script:Machine = @{ Host = ''; Voucher = 'v' }; Invoke-FirstBoot -Told @{ nonce = 'n'; proofs = @() }"
    machine = Machine()

    assert answers_to(machine, given, ask) == ["Ready"]
    assert machine.files.read(r"C:\run\capi\done") == b"success"
