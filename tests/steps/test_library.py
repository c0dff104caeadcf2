"""Library functions, one by one on the lab's engine.

Those that only compute have their cases in tests/real/cases, which a real PowerShell runs, too; here is what needs more
of a machine.
"""

from typing import Any

import pytest
from winboot_lab.engines import run_script
from winboot_lab.windows.machine import Machine

from winboot.report.events import KNOWN_LATER
from winboot.report.hints import HINTS
from winboot.script.library import functions_for


@pytest.fixture(scope="module")
def session():
    return Machine().session()


def with_library(expression: str) -> str:
    """A script of an expression and the library functions that it names."""
    library = functions_for(expression)
    return f"Set-StrictMode -Version 2.0\n$ErrorActionPreference = 'Stop'\n{library}\n$script:Run = $null\n{expression}\n"


def answer(session: Any, expression: str) -> list[Any]:
    """What an expression emits, with the library functions that it names."""
    found: list[Any] = []
    ended = run_script(session, with_library(expression), {}, emit=lambda stream, value: found.append(value))
    assert ended.state == "completed", getattr(ended.error, "message", "")
    return found


def test_what_cannot_be_known_yet_differs_whatever_is_there_and_says_so(session):
    found = "| ForEach-Object { $_.key; $_.unknown; $_.is; $_.want }"

    assert answer(session, f"Compare-Wanted -Key 'k' -What 'x' -Is $null -Want $null -Unknown {found}") == [
        "k",
        True,
        None,
        KNOWN_LATER,
    ]
    assert answer(session, f"Compare-Wanted -What 'x' -Is 'a' -Want '{KNOWN_LATER}/24' -Unknown {found}") == [
        "x",
        True,
        "a",
        f"{KNOWN_LATER}/24",
    ]


def test_a_text_that_a_user_writes_is_not_taken_for_unknown(session):
    """A command line may hold any words."""
    found = "| ForEach-Object { $_.unknown }"

    assert answer(session, f"Compare-Wanted -What 'x' -Is 'a' -Want '{KNOWN_LATER}' {found}") == [False]


@pytest.mark.parametrize("text", ["{}", '{"users": []}', '{"clusters": null}', '{"users": [{}]}'])
def test_a_kubeconfig_of_another_shape_differs_and_ends_nothing(session, text: str):
    wanted = "@{ path = 'C:\\k\\p.kubeconfig'; server = 'https://s:6443'; ca_path = 'C:\\k\\ca.crt'; secret = 'x' }"
    session.machine.files.make_directory("C:\\k")
    session.machine.files.write("C:\\k\\p.kubeconfig", text.encode())

    found = answer(session, f"Get-KubeconfigDifference {wanted} | ForEach-Object {{ $_.what }}")

    assert {one.rpartition(": ")[2] for one in map(str, found)} == {"access", "server", "CA"}


@pytest.mark.parametrize(
    "text", ["[1]", "5", '"canary"', "users: [{user: {token: canary}}]", '{"a": 1} canary']
)
def test_a_kubeconfig_that_is_no_json_object_is_given_to_no_cmdlet(session, text: str):
    """Module logging records a cmdlet's input, and that text may be another account's token."""
    wanted = "@{ path = 'C:\\k\\p.kubeconfig'; server = 'https://s:6443'; ca_path = 'C:\\k\\ca.crt'; secret = 'x' }"
    session.machine.files.make_directory("C:\\k")
    session.machine.files.write("C:\\k\\p.kubeconfig", text.encode())
    nothing = "function ConvertFrom-Json { param($InputObject) throw 'it was given' }"

    found = answer(session, f"{nothing}; Get-KubeconfigDifference {wanted} | ForEach-Object {{ $_.what }}")

    assert {one.rpartition(": ")[2] for one in map(str, found)} == {"access", "form"}


def test_a_machine_that_does_not_say_when_it_was_started_is_named(session):
    nothing = "function Get-CimInstance { param($ClassName, $Filter, $Property) }"
    caught = "try { Get-BootStamp } catch { $_.FullyQualifiedErrorId }"

    assert answer(session, f"{nothing}\n{caught}") == ["winboot.NoBootId"]
    assert HINTS["NoBootId"]


def test_a_file_that_is_not_there_has_no_text_and_says_so(session):
    """Without output, .NET methods would be given no text at all: [regex]::Match throws there."""
    assert answer(session, "Read-FileText 'C:\\nowhere.txt'") == [None]
    assert answer(session, "[regex]::Match((Read-FileText 'C:\\nowhere.txt'), 'x').Success") == [False]


@pytest.mark.parametrize("stored", ["{}", "5", "[1]", '"x"', '{"fence": "many"}', '{"fence": null}', "{"])
def test_a_fence_of_another_shape_does_not_count(session, stored: str):
    session.machine.files.make_directory("C:\\ProgramData\\winboot")
    session.machine.files.write("C:\\ProgramData\\winboot\\fence.json", stored.encode())

    assert answer(session, "Get-Fence") == [0]
    assert len(answer(session, "Get-HolderText")) == 1


def test_a_note_of_another_shape_is_not_winboots(session):
    notes = '{"kind":"A","key":"a","value":null}\n{}\n5}\n{"key":"b"}\n{"kind":"B","key":"b"}\n[{}]}\n'
    session.machine.files.make_directory("C:\\ProgramData\\winboot\\former")
    session.machine.files.write("C:\\ProgramData\\winboot\\former\\x.jsonl", notes.encode())

    run = "$script:Run = @{ Step = 'x'; Cache = @{} }"
    assert answer(session, f"{run}\nGet-FormerLine | ForEach-Object {{ $_.kind }}") == ["A"]


def test_a_store_in_which_everything_is_taken_has_no_address_for_kube_proxy(session):
    session.machine.files.make_directory("C:\\store")
    for last in range(1, 7):
        session.machine.files.write(f"C:\\store\\10.0.0.{last}", b"pod\r\neth0")
    vip = "Get-StoreVip -Place 'C:\\store' -Known @{ pod_cidr = '10.0.0.0/29' }"

    assert answer(session, f"try {{ {vip} }} catch {{ $_.FullyQualifiedErrorId }}") == ["winboot.StoreFull"]
    assert HINTS["StoreFull"]
    session.machine.files.delete("C:\\store\\10.0.0.4")
    assert answer(session, vip) == ["10.0.0.4"]


def test_a_time_out_of_a_file_is_its_text_on_each_engine(session):
    """PowerShell 7 makes a date of a text like this in JSON: the report of a run had `since 03/02/2026 08:00:00`."""
    stored = '\'{ "since": "2026-03-02T08:00:00Z" }\' | ConvertFrom-Json'

    assert answer(session, f"ConvertTo-TimeText -Time ({stored}).since") == ["2026-03-02T08:00:00Z"]
    # A calculation: what `new` makes is a stand-in of the lab (docs/contributing.md).
    date = "([DateTime]::new(2026, 3, 2, 8, 0, 0, [DateTimeKind]::Utc)).AddSeconds(0)"
    assert answer(session, f"ConvertTo-TimeText -Time ({date})") == ["2026-03-02T08:00:00Z"]
    assert answer(session, "ConvertTo-TimeText -Time $null") == [""]
