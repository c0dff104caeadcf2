"""What an undo leaves of others' things, and what it leaves behind of its own: pending renames, keys, files, notes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from winboot_lab.windows.firewall import FirewallRule
from winboot_lab.windows.registry import HKLM, SESSION_MANAGER

from tests.steps.bench import Bench
from tests.steps.library import call

PENDING = "PendingFileRenameOperations"
STATE = r"C:\ProgramData\winboot"
KEY = r"SOFTWARE\Somebody\Settings"
# Two operations of an installer: a file that replaces another one, and one that is deleted.
WINDOWS = [r"\??\C:\a.dll", r"!\??\C:\b.dll", r"\??\C:\c.tmp", ""]


def pending(bench: Bench) -> list[str]:
    return bench.machine.registry.strings(SESSION_MANAGER, PENDING)


def test_what_windows_does_at_the_next_start_stays_in_its_pairs(bench: Bench):
    """A list that came as one text would shift them: windows.md W0."""
    bench.machine.registry.set(SESSION_MANAGER, PENDING, "MultiString", list(WINDOWS))
    for _ in range(2):
        assert call(bench, r"Remove-AtRestart -Path @('C:\x', 'C:\y')").message == ""

    ours = [r"\??\C:\x", "", r"\??\C:\y", ""]
    assert pending(bench) == WINDOWS + ours + ours


def test_a_program_that_still_runs_after_an_undo_goes_with_the_restart_and_nothing_else_is_lost(bench: Bench):
    bench.run("dynamic-ports")
    bench.machine.registry.set(SESSION_MANAGER, PENDING, "MultiString", list(WINDOWS))
    bench.write(rf"{STATE}\old-files.txt", b"C:\\shim.exe.winboot-old\n")
    bench.write(r"C:\shim.exe.winboot-old", b"runs")
    bench.machine.faults.hold(r"C:\shim.exe.winboot-old", share="Read")

    bench.undo("dynamic-ports")

    assert pending(bench) == [*WINDOWS, r"\??\C:\shim.exe.winboot-old", ""]


def test_a_new_run_takes_back_what_an_undo_left_to_the_restart(bench: Bench):
    """The script of a start has its name from its content: a deletion from before would take the new one (W11)."""
    left = [rf"\??\{STATE}\boot-1.ps1", "", rf"\??\{STATE}", "", r"\??\C:\shim.exe.winboot-old", ""]
    bench.machine.registry.set(SESSION_MANAGER, PENDING, "MultiString", [*WINDOWS, *left])
    bench.write(r"C:\shim.exe.winboot-old", b"ran")

    assert bench.run("dynamic-ports").ended == "complete"

    assert pending(bench) == WINDOWS
    assert bench.file(r"C:\shim.exe.winboot-old") is None, "the run itself deletes what runs no more"


def test_the_last_operation_of_ours_takes_the_list_with_it(bench: Bench):
    bench.machine.registry.set(SESSION_MANAGER, PENDING, "MultiString", [rf"\??\{STATE}", ""])
    bench.run("dynamic-ports")

    assert bench.machine.registry.value(SESSION_MANAGER, PENDING) is None


# The helper takes the functions that are named.
RESTORE = "[void]@('Restore-Registry', 'Restore-File', 'Restore-Folder'); Restore-FormerValue"


@pytest.fixture
def noting(bench: Bench) -> Bench:
    """A machine with a place for notes."""
    bench.machine.files.make_directory(rf"{STATE}\former")
    return bench


def test_keys_that_came_with_a_value_go_with_it(noting: Bench):
    call(
        noting,
        rf"Set-RegistryValue -Path '{KEY}\Deep' -Name 'a' -Value 1; Set-RegistryValue -Path '{KEY}' -Name 'b' -Value 2",
    )
    assert noting.registry(rf"{KEY}\Deep", "a") == 1

    assert call(noting, RESTORE).message == ""

    assert not noting.machine.registry.exists(rf"{HKLM}\SOFTWARE\Somebody")


def test_a_key_that_another_program_uses_meanwhile_stays(noting: Bench):
    call(noting, rf"Set-RegistryValue -Path '{KEY}' -Name 'a' -Value 1")
    noting.machine.registry.set(rf"{HKLM}\{KEY}", "theirs", "DWord", 1)
    call(noting, RESTORE)

    assert noting.registry(KEY, "a") is None
    assert noting.registry(KEY, "theirs") == 1


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("String", "x"),
        ("ExpandString", "%windir%"),
        ("MultiString", []),
        ("MultiString", ["", "a", ""]),
        ("Binary", b""),
        ("None", b"\x01"),
        ("DWord", 0xFFFFFFFF),
        ("QWord", 2**63),
    ],
)
def test_a_value_of_any_kind_comes_back_as_it_was(noting: Bench, kind: Any, data: Any):
    noting.machine.registry.set(rf"{HKLM}\{KEY}", "a", kind, data)
    call(noting, rf"Set-RegistryValue -Path '{KEY}' -Name 'a' -Value 1")
    assert noting.registry(KEY, "a") == 1

    assert call(noting, RESTORE).message == ""

    value = noting.machine.registry.value(rf"{HKLM}\{KEY}", "a")
    assert value is not None
    assert (value.kind, value.data) == (kind, data)


def test_a_value_that_could_not_be_put_back_is_not_overwritten(bench: Bench):
    """A link or a list of resources: .NET gives it as nothing, and its note would say that it was absent (W8)."""
    bench.machine.registry.set(rf"{HKLM}\{KEY}", "a", "Unknown", b"\x01\x02")
    told = call(bench, rf"Set-RegistryValue -Path '{KEY}' -Name 'a' -Value 1")

    assert told.id.removeprefix("winboot.") == "RegistryKind"
    assert KEY in told.message
    assert bench.machine.registry.binary(rf"{HKLM}\{KEY}", "a") == b"\x01\x02"


def test_a_number_of_another_length_is_reported_and_ends_no_undo(bench: Bench):
    note = f'{{"path":"{KEY}","name":"a","value":[1,0],"kind":"DWord"}}'.replace("\\", "\\\\")
    told = call(bench, f"Restore-Registry -Former (ConvertFrom-Json -InputObject '{note}')")

    assert told.message == ""
    assert [one.get("key") for one in told.objects] == [rf"registry:{KEY}\a"]
    assert bench.machine.registry.binary(rf"{HKLM}\{KEY}", "a") == b"\x01\x00"


def test_what_a_cut_left_beside_a_file_goes_with_it_and_so_do_its_folders(noting: Bench):
    path = r"C:\new\deep\file.txt"
    call(noting, rf"Set-FileText -Path '{path}' -Text 'ours'")
    noting.write(path + ".winboot-new", b"half")

    assert call(noting, RESTORE).message == ""

    assert not noting.machine.files.exists(r"C:\new")


@pytest.mark.parametrize(
    ("path", "restore"),
    [
        (rf"{STATE}\logs.ps1", "Restore-LogTask -Former ([pscustomobject]@{ name = 'logs' })"),
        (
            r"C:\ours\held.txt",
            r"Restore-Folder -Former ([pscustomobject]@{ path = 'C:\ours'; existed = $false; ours = $true })",
        ),
    ],
)
def test_a_file_that_is_held_for_a_moment_holds_up_no_undo(bench: Bench, path: str, restore: str):
    bench.write(path, b"text")
    bench.machine.faults.hold(path, 0.3, share="Read")

    assert call(bench, restore).message == ""
    assert bench.file(path) is None


def test_notes_are_distinguished_from_half_lines_by_their_characters(bench: Bench):
    """EndsWith compares by the machine's culture by default: slow, and different on each machine."""
    from winboot.script.library import functions

    assert "EndsWith('}', [StringComparison]::Ordinal)" in functions()["Get-FormerLine"].text


RULE = "winboot-kubelet"
THEIRS = FirewallRule(RULE, "corp's own", protocol="TCP", local_ports=["10250"])
CONFIG = r"C:\var\lib\kubelet\config.yaml"
NOTES = rf"{STATE}\former\firewall-rules.jsonl"


def listed(bench: Bench, step: str = "firewall-rules") -> set[str]:
    """What a look of `remove` takes for winboot's without a note."""
    told = bench.run_text(bench.text(step, mode="Undo"), mode="Look")
    return {one["key"] for one in told.step(step)["differences"] if one["key"].startswith("unnoted:")}


def test_a_foreign_rule_with_winboots_name_is_not_winboots(bench: Bench) -> None:
    """It was as wanted, so that nothing was changed or noted."""
    bench.machine.firewall.save(THEIRS)
    bench.run("firewall-rules")
    bench.machine.files.delete(NOTES)

    assert listed(bench) == {f"unnoted:FirewallRule:{name}" for name in ours(bench)}
    bench.run("firewall-rules", mode="Undo", facts={"Unnoted": [f"FirewallRule:{RULE}"]})
    assert bench.machine.firewall.find(RULE) is not None


def ours(bench: Bench) -> set[str]:
    return {rule.name for rule in bench.machine.firewall.local() if rule.group == "winboot"}


def test_what_was_not_shown_does_not_go(bench: Bench) -> None:
    bench.run("firewall-rules")
    bench.machine.files.delete(NOTES)
    made = ours(bench)
    assert RULE in made

    bench.run("firewall-rules", mode="Undo", facts={"Unnoted": [f"FirewallRule:{RULE}"]})

    assert ours(bench) == made - {RULE}


def test_a_value_restored_by_an_undo_is_not_foreign_in_a_later_pass(bench: Bench) -> None:
    """Notes go with the pass that puts back; the next one, after a restart, must not take that for ours."""
    note = r"Initialize-StateFolder; Save-FormerFile -Path 'C:\k\theirs.exe'; Clear-FormerValue; @(Get-RestoredThing)"
    bench.write(r"C:\k\theirs.exe", b"theirs")

    assert call(bench, note).objects == [r"File:C:\k\theirs.exe"]


def test_what_an_undo_has_put_back_is_not_listed_while_the_state_folder_waits_for_the_restart(
    bench: Bench,
) -> None:
    """A scanner holds the journal: the folder, the last trace of winboot, goes with the next start."""
    bench.run("firewall-rules")
    bench.machine.faults.hold(rf"{STATE}\journal.jsonl", share="Read")
    bench.undo("firewall-rules")
    assert bench.machine.files.exists(STATE)
    bench.machine.firewall.save(replace(THEIRS, group="winboot"))

    assert listed(bench) == set()


def test_what_an_undo_has_put_back_is_not_listed_by_a_later_look(bench: Bench) -> None:
    """It lies where winboot puts its own, and its note went with the pass that put it back. Another step could not be undone,
    so that winboot is still there."""
    bench.write(CONFIG, b"kind: KubeletConfiguration\n")
    bench.run("kubelet-config", "dynamic-ports")
    bench.machine.faults.hold(rf"{STATE}\former\dynamic-ports.jsonl", share="Read")
    assert bench.undo("kubelet-config").states == {"dynamic-ports": "failed", "kubelet-config": "changed"}
    assert bench.file(CONFIG) == b"kind: KubeletConfiguration\n"

    assert listed(bench, "kubelet-config") == set()


@pytest.mark.parametrize(
    ("kind", "key", "value", "reboot", "want"),
    [
        ("TestSigning", "TESTSIGNING", "existed = $false", True, None),
        ("ResetTask", "k8s-restart-job", "name = 'k8s-restart-job'", False, "as it was before winboot"),
    ],
)
def test_a_look_shows_what_an_undo_does(
    bench: Bench, kind: str, key: str, value: str, reboot: bool, want: str | None
) -> None:
    steps = "$script:Run.Steps = @(@{ Name = 'first' }, @{ Name = 'files' })"
    note = f"Initialize-StateFolder; Save-FormerValue -Kind '{kind}' -Key '{key}' -Value @{{ {value} }}"
    shown = "foreach ($one in Get-RemovalDifference) { $one.reboot; $one.want }"

    assert call(bench, f"{steps}\n{note}\n{shown}").objects == [reboot, want]
