"""What is noted before a change comes back, or its loss is named; what a cut leaves is not taken for a note."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from winboot_lab.windows.scm import AUTO

from tests.steps.bench import Bench
from tests.steps.library import call
from tests.steps.nodes import FORMER, Node
from winboot.script.library import library_files

FILE = r"C:\etc\large.bin"
LARGE = b"before winboot " * 8000
KEPT = r"C:\ProgramData\winboot\former\files"
NOTES = r"C:\ProgramData\winboot\former\files.jsonl"
SAVE = f"Save-FormerFile -Path '{FILE}'"
RESTORE = "foreach ($line in Get-FormerLine) { Restore-File -Former $line.value }"


@pytest.fixture
def noted(bench: Bench) -> Bench:
    """A machine where a large file was noted and then replaced."""
    bench.write(FILE, LARGE)
    assert call(bench, SAVE).id == ""
    bench.write(FILE, b"ours")
    return bench


def test_a_large_file_comes_back_from_its_copy(noted: Bench):
    assert call(noted, RESTORE).message == ""
    assert noted.file(FILE) == LARGE


def test_a_copy_that_is_missing_is_an_error_and_the_file_stays(noted: Bench):
    noted.machine.files.delete_directory(KEPT, recurse=True)
    answer = call(noted, RESTORE)

    assert answer.id == "winboot.FormerLost"
    assert FILE in answer.message
    assert noted.file(FILE) == b"ours"


@pytest.mark.check
def test_any_file_that_was_a_link_comes_back_as_a_link(bench: Bench):
    """A large one too: its content is the other file's, and is not noted."""
    files = bench.machine.files
    bench.write(r"C:\theirs\file.bin", LARGE)
    for folder in (r"C:\etc", FORMER):
        files.make_directory(folder)
    files.link(FILE, r"C:\theirs\file.bin", "SymbolicLink")
    assert call(bench, f"{SAVE}; Write-FileText -Path '{FILE}' -Text 'ours'").message == ""
    assert (bench.file(FILE), bench.file(r"C:\theirs\file.bin")) == (b"ours", LARGE)
    assert not files.exists(KEPT)

    assert call(bench, RESTORE).message == ""

    found = files.find(FILE, follow=False)
    assert found is not None
    assert found[1].link == ("SymbolicLink", r"C:\theirs\file.bin")
    assert bench.file(FILE) == LARGE


@pytest.mark.parametrize("key", [r"C:\k\kubelet.exe", 'a "name" <of> one\'s & more', "ünïcode", "[a-z]*"])
def test_a_note_is_found_by_its_key_whatever_is_written_in_it(bench: Bench, key: str):
    bench.machine.files.make_directory(r"C:\ProgramData\winboot\former")
    quoted = key.replace("'", "''")
    noted = f"Test-FormerNote -Kind 'Text' -Key '{quoted.upper()}'; Test-FormerNote -Kind 'Text' -Key '{quoted}.old'"

    answer = call(bench, f"{noted}; Save-FormerValue -Kind 'Text' -Key '{quoted}' -Value 'before'; {noted}")

    assert answer.objects == [False, False, True, False]


def test_a_cut_between_copy_and_note_loses_nothing(bench: Bench):
    """powercut.md F3: the copy comes first, so that with the note there is always a copy."""
    bench.write(FILE, LARGE)
    call(bench, SAVE)
    (note,) = [line for line in (bench.file(NOTES) or b"").split(b"\n") if line]
    for cut in (0, len(note) // 2):
        bench.write(NOTES, b"\n" + note[:cut])
        assert call(bench, SAVE).message == ""
        bench.write(FILE, b"ours")

        assert call(bench, RESTORE).message == ""
        assert bench.file(FILE) == LARGE


@pytest.mark.parametrize(
    ("scene", "step", "gone"),
    [
        ("own network", "containerd", [r"C:\ProgramData\containerd\root"]),
        ("own network", "kubelet", []),
        ("own network", "kube-proxy", []),
        pytest.param("own calico", "calico-node", [], marks=pytest.mark.check),
    ],
)
def test_all_is_noted_before_a_service_can_start_by_itself(
    joined: Callable[[str], Node], scene: str, step: str, gone: list[str]
):
    """After a power cut it starts with the machine, and winboot would not recognize its network as its own."""
    node = joined(scene)
    node.undo(step)
    for path in gone:
        node.machine.files.delete_directory(path, recurse=True)
    notes, early = rf"{FORMER}\{step}.jsonl", set[str]()

    def kinds() -> set[str]:
        text = node.machine.files.text(notes) if node.machine.files.exists(notes) else ""
        return {json.loads(line)["kind"] for line in text.split("\n") if line}

    def hear(command: str, parameters: Mapping[str, Any]) -> None:
        service = node.machine.services.find(step)
        if service is not None and service.start == AUTO and not early:
            early.update(kinds())

    node.machine.faults.watch_writes(hear)
    node.change(step)

    assert "Service" in early
    assert kinds() == early


# What may write without Write-FileByte: the journal, which nothing is put back from; downloads, whose hash is checked once
# they are complete; and copies of logs.
UNFLUSHED = {
    "Save-Journal": ["[IO.File]::AppendAllText("],
    "Receive-Rest": ["[IO.File]::Open($Path, $mode, 'Write')"],
    "Invoke-LogRotation": ["[IO.File]::Open($path, 'Open', 'ReadWrite', 'ReadWrite')", "[IO.File]::Create("],
}
WRITING = re.compile(
    r"\[IO\.File\]::(?:(?:WriteAll|AppendAll)\w+|Create\w*|OpenWrite|AppendText)\(|\[IO\.File\]::Open\([^)]*Write'\)"
)


def test_what_is_written_is_on_the_disk_before_anything_is_changed():
    """A power cut may keep a registry write and lose a note of a second before. The lab writes in order and cannot show it."""
    found = {}
    for text in library_files().values():
        for name, body in re.findall(r"^function (\S+) {\n(.*?)^}", text, re.MULTILINE | re.DOTALL):
            if there := WRITING.findall(body):
                found[name] = there
            if "Open-FlushedFile" in body:
                assert body.count("Open-FlushedFile") == body.count(".Flush($true)"), name

    assert found == UNFLUSHED


KEY = r"SYSTEM\CurrentControlSet\Services\W32Time"
# Reset after a day; restart the service, run a program, restart the machine (1, 3, 2 of SC_ACTION_TYPE, winsvc.h).
ACTIONS = bytes.fromhex("80510100 00000000 00000000 03000000 14000000") + b"".join(
    kind.to_bytes(4, "little") + (1000).to_bytes(4, "little") for kind in (1, 3, 2)
)


def test_recovery_that_runs_a_program_or_restarts_the_machine_comes_back(bench: Bench):
    key = rf"HKEY_LOCAL_MACHINE\{KEY}"
    registry = bench.machine.registry
    registry.set(key, "FailureActions", "Binary", ACTIONS)
    note = call(
        bench, "ConvertTo-Json -InputObject (Read-FormerService 'W32Time') -Depth 6 -Compress"
    ).objects
    registry.set(key, "FailureActions", "Binary", ACTIONS[:20])
    text = str(note[0]).replace("'", "''")

    answer = call(bench, f"Restore-Service -Former (ConvertFrom-Json -InputObject '{text}')")

    assert answer.message == ""
    assert bytes(registry.value(key, "FailureActions").data) == ACTIONS
