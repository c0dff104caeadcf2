"""Files that other programs hold open: virus scanners, backups, indexers, log shippers."""

from __future__ import annotations

import json

import pytest

from tests.steps.bench import Bench
from tests.steps.library import Answer, call

FOLDER = r"C:\ProgramData\winboot"
THERE, NEW = r"C:\k\kubelet.exe", r"C:\k\new.exe"
LIST = rf"{FOLDER}\old-files.txt"
STEP = "dynamic-ports"

OVER = f"Move-FileOver -From '{NEW}' -To '{THERE}'"
WRITE = f"Write-FileText '{THERE}' 'new'"
REMOVE = f"Remove-File '{THERE}'"


@pytest.fixture
def machine(bench: Bench) -> Bench:
    """A machine with an old program and a new one."""
    bench.write(rf"{FOLDER}\former\x.txt", b"")
    bench.write(THERE, b"old")
    bench.write(NEW, b"new")
    return bench


def running(bench: Bench) -> set[int]:
    """The processes that run the old program, of which there is one now."""
    images = bench.machine.files.need(THERE)[1].images
    images.add(bench.machine.processes.add("kubelet", THERE, THERE).pid)
    return images


def names(bench: Bench, folder: str = r"C:\k") -> dict[str, bytes]:
    """The files of a folder."""
    return {entry.name: entry.node.content for entry in bench.machine.files.list(folder)}


@pytest.mark.parametrize("held", [THERE, NEW], ids=["the old file", "the new file"])
@pytest.mark.parametrize("share", ["None", "Read", "ReadWrite"])
def test_a_file_that_is_held_for_moments_is_replaced_all_the_same(machine: Bench, held: str, share: str):
    machine.machine.faults.hold(held, 0.3, share=share)

    assert call(machine, OVER).id == ""
    assert names(machine) == {"kubelet.exe": b"new"}


@pytest.mark.parametrize("held", [THERE, NEW], ids=["the old file", "the new file"])
def test_after_a_replacement_that_failed_the_old_file_is_in_its_place(machine: Bench, held: str):
    machine.machine.faults.hold(held)

    failed = call(machine, OVER)

    assert failed.id == "winboot.FileInUse"
    assert held in failed.message
    assert names(machine) == {"kubelet.exe": b"old", "new.exe": b"new"}


def test_nothing_is_set_aside_for_a_file_that_is_not_there(machine: Bench):
    machine.machine.files.delete(NEW)

    assert NEW in call(machine, OVER).message
    assert names(machine) == {"kubelet.exe": b"old"}


def test_a_reader_that_shares_everything_holds_nothing_up(machine: Bench):
    machine.machine.faults.hold(THERE, share="ReadWrite, Delete")

    assert call(machine, OVER).id == ""
    assert machine.file(THERE) == b"new"


@pytest.mark.parametrize("expression", [OVER, WRITE, REMOVE])
def test_a_read_only_file_is_no_obstacle(machine: Bench, expression: str):
    machine.machine.files.set_attributes(THERE, 1)

    assert call(machine, expression).id == ""
    assert machine.file(THERE) == (None if expression == REMOVE else b"new")
    assert "winboot-old" not in "".join(names(machine))


@pytest.mark.parametrize("share", ["None", "Read", "ReadWrite"])
def test_a_text_is_written_although_the_old_one_is_being_read(machine: Bench, share: str):
    machine.machine.faults.hold(THERE, 1.0, share=share)

    assert call(machine, WRITE).id == ""
    assert machine.file(THERE) == b"new"


@pytest.mark.parametrize("expression", [WRITE, REMOVE, f"Read-FileText '{THERE}'", f"Get-PathHash '{THERE}'"])
def test_a_run_that_gives_up_names_the_file(machine: Bench, expression: str):
    machine.machine.faults.hold(THERE, share="None")

    failed = call(machine, expression)

    assert (failed.id, THERE in failed.message) == ("winboot.FileInUse", True)
    assert names(machine)["kubelet.exe"] == b"old"


def test_our_own_readers_let_everybody_in(machine: Bench):
    """Other programs can write, rename or delete the file while winboot reads it."""
    seen: list[int] = []
    faults = machine.machine.faults
    node = machine.machine.files.need(THERE)[1]
    faults.before_command("file.handle-read", lambda: seen.extend(one.share for one in node.opened))

    assert call(machine, f"Read-FileText '{THERE}'").objects == ["old"]
    assert seen == [7]


def test_a_program_that_runs_is_renamed_and_goes_when_it_has_ended(machine: Bench):
    images = running(machine)

    assert call(machine, OVER).id == ""
    assert names(machine) == {"kubelet.exe": b"new", "kubelet.exe.winboot-old": b"old"}
    assert call(machine, "Clear-OldFile").id == ""
    assert len(names(machine)) == 2
    images.clear()
    assert call(machine, "Clear-OldFile").id == ""
    assert names(machine) == {"kubelet.exe": b"new"}
    assert machine.file(LIST) is None


def test_two_replacements_of_a_program_that_runs_lose_nothing(machine: Bench):
    running(machine)
    call(machine, OVER)
    machine.write(NEW, b"newer")

    assert call(machine, OVER).id == ""
    assert machine.file(THERE) == b"newer"


def test_a_power_cut_between_the_two_renames_is_put_right(machine: Bench):
    """The list knows where the file that was set aside belongs."""
    faults = machine.machine.faults
    faults.before_command("file.move", machine.machine.power_off, call=2)
    with pytest.raises(BaseException, match="WIN-OLD"):
        call(machine, OVER)
    machine.machine.power_on()
    assert "kubelet.exe" not in names(machine)

    assert call(machine, "Clear-OldFile").id == ""

    assert machine.file(THERE) == b"old"
    assert machine.file(LIST) is None


@pytest.mark.parametrize(
    ("seconds", "there"), [(0.3, b"old"), (None, None)], ids=["for a moment", "for good"]
)
def test_a_file_that_is_put_back_is_waited_for_and_missed_by_name(
    bench: Bench, seconds: float | None, there: bytes | None
):
    """After the power cut a scanner has it open."""
    bench.run(STEP)
    bench.write(rf"{THERE}.winboot-old", b"old")
    bench.write(LIST, rf"{THERE}.winboot-old|{THERE}".encode() + b"\n")
    bench.machine.faults.hold(rf"{THERE}.winboot-old", seconds)

    run = "$script:Run = New-Run -Mode Boot -Id r -Steps @() -Secrets @{} -Facts @{} -Text ''"
    assert call(bench, f"{run}; Clear-OldFile").id == ""

    assert bench.file(THERE) == there
    told = (bench.file(rf"{FOLDER}\journal.jsonl") or b"").decode()
    assert ('"file-missing"' in told and "kubelet.exe" in told) == (there is None)


def test_a_reader_between_the_two_renames_gets_the_one_or_the_other(machine: Bench):
    """It finds no file, then no successor, because that has just taken the file's place."""
    files = machine.machine.files
    files.move(THERE, rf"{THERE}.winboot-new")

    def taken() -> None:
        files.move(rf"{THERE}.winboot-new", THERE)

    # Read-FileByte asks for the file, Read-AnyFileByte for it and for its successor.
    machine.machine.faults.before_command("file.stat", taken, call=3)

    assert call(machine, f"Read-FileText '{THERE}'").objects == ["old"]
    assert machine.file(THERE) == b"old"


def test_what_was_removed_on_purpose_is_not_put_back(machine: Bench):
    images = running(machine)
    call(machine, OVER)
    call(machine, REMOVE)
    images.clear()

    assert call(machine, "Clear-OldFile").id == ""
    assert names(machine) == {}


def test_housekeeping_never_fails(machine: Bench):
    running(machine)
    call(machine, OVER)
    for path in (LIST, rf"{THERE}.winboot-old"):
        machine.machine.faults.hold(path, share="Read")

    assert call(machine, "Clear-OldFile").id == ""
    assert machine.file(LIST) is not None


def test_a_full_disk_is_named_with_the_file(machine: Bench):
    machine.machine.faults.disk_full(free=0)

    failed = call(machine, f"Write-FileText '{THERE}' 'a longer text'")

    assert (failed.id, failed.message.split()[0]) == ("winboot.DiskFull", rf"{THERE}.winboot-new")
    assert machine.file(THERE) == b"old"


HELD_AT_THE_START = ["fence.json", "journal.jsonl", "old-files.txt"]


@pytest.mark.parametrize("name", HELD_AT_THE_START)
@pytest.mark.parametrize("share", ["Read", "ReadWrite"])
def test_a_run_continues_while_a_file_of_its_own_is_held_for_moments(bench: Bench, name: str, share: str):
    bench.run(STEP)
    bench.write(rf"{FOLDER}\old-files.txt", b"")
    bench.machine.faults.hold(rf"{FOLDER}\{name}", 2, share=share)

    told = bench.run(STEP)

    assert (told.ended, told.states) == ("complete", {STEP: "ok"})


def test_a_fence_that_cannot_be_written_is_a_named_end(bench: Bench):
    bench.run(STEP)
    bench.machine.faults.hold(rf"{FOLDER}\fence.json")

    told = bench.run(STEP)

    assert [event["event"] for event in told.events] == ["run", "done"]
    assert told.ended == "failed"
    assert told.events[-1]["problem"]["id"] == "FileInUse"
    assert "fence.json" in told.events[-1]["problem"]["message"]


def test_a_fence_on_a_full_disk_is_a_named_end(bench: Bench):
    bench.run(STEP)
    bench.machine.faults.disk_full(free=0)

    told = bench.run(STEP)

    assert (told.ended, told.events[-1]["problem"]["id"]) == ("failed", "DiskFull")


def test_a_journal_that_is_held_keeps_its_lines_for_later(bench: Bench):
    bench.run(STEP)
    before = (bench.file(rf"{FOLDER}\journal.jsonl") or b"").count(b"\n")
    bench.machine.faults.hold(rf"{FOLDER}\journal.jsonl", 0.5)

    told = bench.run(STEP)
    lines = (bench.file(rf"{FOLDER}\journal.jsonl") or b"").decode().splitlines()[before:]

    assert [json.loads(line)["event"] for line in lines] == told.events


def test_a_journal_that_stays_held_ends_no_run(bench: Bench):
    bench.run(STEP)
    bench.machine.faults.hold(rf"{FOLDER}\journal.jsonl")

    assert bench.run(STEP).ended == "complete"


def test_a_full_journal_with_a_reader_continues(bench: Bench):
    """A log shipper lets others write, and rename nothing: no line is lost for that."""
    bench.run(STEP)
    journal = rf"{FOLDER}\journal.jsonl"
    bench.write(journal, b"x" * 1_100_000)
    bench.machine.faults.hold(journal, share="ReadWrite")

    told = bench.run(STEP)

    lines = (bench.file(journal) or b"")[1_100_000:].decode().splitlines()
    assert [json.loads(line)["event"] for line in lines] == told.events


def test_a_finished_run_is_not_made_a_failure_by_an_old_file(bench: Bench):
    bench.run(STEP)
    bench.write(r"C:\k\x.exe.winboot-old", b"")
    bench.write(LIST, b"C:\\k\\x.exe.winboot-old\n")
    bench.machine.faults.hold(r"C:\k\x.exe.winboot-old")

    told = bench.run(STEP)

    assert told.ended == "complete"
    assert [event["event"] for event in told.events][-1] == "done"


def test_an_undo_whose_state_folder_is_held_is_complete_and_it_goes_with_the_restart(bench: Bench):
    bench.run(STEP)
    bench.machine.faults.hold(rf"{FOLDER}\journal.jsonl")

    told = bench.undo(STEP)
    bench.reboot()

    assert told.ended == "complete"
    assert not bench.machine.files.exists(FOLDER)


BOOT = """
$script:Done = @()
$steps = @('a', 'b') | ForEach-Object { @{ Name = $_; Values = {}; Boot = { $script:Done += $script:Run.Step } } }
$script:Run = New-Run -Mode Boot -Id r -Steps $steps -Secrets @{} -Facts @{} -Text ''
Invoke-Boot
$script:Done
"""


@pytest.mark.parametrize("name", ["boot.json", "journal.jsonl", "old-files.txt", "x.winboot-old"])
@pytest.mark.parametrize("share", ["None", "Read", "ReadWrite"])
def test_one_held_file_keeps_the_startup_task_from_nothing_else(bench: Bench, name: str, share: str):
    bench.run(STEP)
    bench.write(rf"{FOLDER}\boot.json", b"{}")
    bench.write(rf"{FOLDER}\x.winboot-old", b"")
    bench.write(LIST, rf"{FOLDER}\x.winboot-old".encode() + b"\n")
    bench.machine.faults.hold(rf"{FOLDER}\{name}", share=share)

    assert call(bench, BOOT) == Answer(["a", "b"])


def test_a_failure_of_the_startup_task_is_in_the_journal(bench: Bench):
    bench.run(STEP)
    bench.write(rf"{FOLDER}\boot.json", b"{}")
    bench.machine.faults.hold(rf"{FOLDER}\boot.json")
    call(bench, BOOT)
    last = (bench.file(rf"{FOLDER}\journal.jsonl") or b"").decode().splitlines()

    assert any('"boot-failed"' in line and "FileInUse" in line and "boot.json" in line for line in last)


def test_the_kept_copy_of_a_former_file_that_is_missing_is_named_and_nothing_is_deleted(bench: Bench):
    """It was too large for a note, and another program deleted the copy."""
    bench.write(THERE, b"winboot's own")
    kept = rf"{FOLDER}\former\files\abc"
    former = f"[pscustomobject]@{{ path = '{THERE}'; bytes = $null; kept = '{kept}' }}"

    answer = call(bench, f"Restore-File -Former ({former})")

    assert (answer.id.removeprefix("winboot."), kept in answer.message) == ("FormerLost", True)
    assert bench.file(THERE) == b"winboot's own"


def test_what_is_below_a_step_whose_undo_failed_waits_for_it_with_its_notes(bench: Bench):
    """Otherwise its folder would stay without a note of its owner: the program that holds it still runs."""
    steps = ("directories", "containerd-config")
    bench.run(*steps)
    held = r"C:\k\crictl.yaml"
    assert bench.file(held) is not None
    bench.machine.faults.hold(held, 600)

    told = bench.undo(*steps)

    assert told.problem("containerd-config").id == "FileInUse"
    assert (told.states["directories"], told.problem("directories").id) == ("blocked", "NeedsStep")
    bench.machine.settle(600)
    assert bench.undo(*steps).states == dict.fromkeys(steps, "changed")
    assert not bench.machine.files.is_directory(r"C:\k")
    assert not bench.machine.files.is_directory(FOLDER)
