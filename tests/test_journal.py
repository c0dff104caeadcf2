"""What a run writes down: every record in order, no secret, and no end of the run when the disk is full."""

from __future__ import annotations

import json
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
def test_a_full_disk_is_told_and_stops_nothing() -> None:
    """The report carries the problem."""
    journal = Journal(Path("/dev/full"))

    journal.write("one", {"text": "something"})
    journal.close()

    assert "is not complete: No space left" in journal.problem
