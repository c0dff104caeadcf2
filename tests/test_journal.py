"""What a run writes down: every record in order, no secret, and no end of the run when the disk is full."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from winboot.base.errors import UsageError
from winboot.base.secret import Secret
from winboot.report.journal import Journal


def test_records_stand_in_their_order_and_a_secret_is_hidden_wherever_it_stands(tmp_path: Path) -> None:
    """Also as it looks inside a JSON string."""
    journal = Journal(tmp_path / "runs" / "n1.jsonl")
    journal.hide(Secret('geh"eim'))
    journal.write("one", {"text": 'it is geh"eim'})
    journal.write("two", {"text": json.dumps({"inner": 'geh"eim'})})
    journal.close()

    lines = [json.loads(line) for line in journal.path.read_text(encoding="utf-8").splitlines()]
    assert [line["kind"] for line in lines] == ["one", "two"]
    assert lines[0]["text"] == "it is ***"
    assert "eim" not in journal.path.read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_made_is_wrong_use(tmp_path: Path) -> None:
    """Before anything is done, and with the way out."""
    (tmp_path / "runs").write_text("a file")

    with pytest.raises(UsageError, match="cannot be written") as caught:
        Journal(tmp_path / "runs" / "n1.jsonl")

    assert "WINBOOT_STATE" in caught.value.hint


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no /dev/full, the disk without room"
)
def test_a_full_disk_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    """The report carries the problem."""
    journal = Journal(tmp_path / "n1.jsonl")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        os.dup2(full.fileno(), journal._file.fileno())

    journal.write("one", {"text": "something"})
    journal.close()

    assert "could not write all of" in journal.problem


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="giving a folder to another user needs root")
@pytest.mark.parametrize("where", ["home", "home/state"])
def test_a_state_folder_of_another_user_is_refused(where: str, tmp_path: Path) -> None:
    """That user would swap it for a link, and root would append to any file."""
    (tmp_path / "home" / "state").mkdir(parents=True)
    os.chown(tmp_path / where, 65534, 65534)

    with pytest.raises(UsageError, match=f"{where} belongs to the user 65534"):
        Journal(tmp_path / "home" / "state" / "runs" / "n1.jsonl")

    assert not (tmp_path / "home" / "state" / "runs").exists()


def test_a_state_folder_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)

    with pytest.raises(UsageError, match="everybody may write into"):
        Journal(shared / "runs" / "n1.jsonl")

    shared.chmod(0o1777)
    Journal(shared / "runs" / "n1.jsonl").close()


def test_in_a_pod_a_volume_for_everybody_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    tmp_path.chmod(0o777)

    Journal(tmp_path / "runs" / "n1.jsonl").close()


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to], ids=["symbolic", "hard"])
def test_no_link_is_followed_to_a_journal(make: Callable[[Path, Path], None], tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("theirs")
    target.chmod(0o644)
    (tmp_path / "runs").mkdir()
    make(tmp_path / "runs" / "n1.jsonl", target)

    with pytest.raises(UsageError, match="cannot be written"):
        Journal(tmp_path / "runs" / "n1.jsonl")

    assert (target.read_text(), target.stat().st_mode & 0o777) == ("theirs", 0o644)


def test_no_link_is_followed_to_the_folder_of_a_journal(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UsageError, match="cannot be written"):
        Journal(tmp_path / "runs" / "n1.jsonl")

    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_folder_is_its_owners_alone_from_its_first_moment_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user that opens it before its mode is corrected keeps the handle."""
    made: list[int] = []
    change = Path.chmod

    def chmod(path: Path, mode: int) -> None:
        made.append(path.stat().st_mode & 0o777)
        change(path, mode)

    monkeypatch.setattr(Path, "chmod", chmod)
    before = os.umask(0o200)
    try:
        Journal(tmp_path / "state" / "runs" / "n1.jsonl").close()
    finally:
        os.umask(before)

    assert made == [0o500, 0o500]
    assert (tmp_path / "state" / "runs").stat().st_mode & 0o777 == 0o700
