"""A report file is whole, its owner's alone, and its loss hides nothing of what was done."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from winboot.cli.output import save, save_exit
from winboot.journal import Journal
from winboot.report import NodeReport, Report

REPORT = Report("join", "r1", "now", (NodeReport("n1", "10.0.0.1", "2022"),))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_what_we_write_is_its_owners_alone_whatever_the_umask(mask: int, tmp_path: Path) -> None:
    former = os.umask(mask)
    try:
        assert save(REPORT, tmp_path / "r.html")
        Journal(tmp_path / "state" / "runs" / "r1" / "n1.jsonl").close()
    finally:
        os.umask(former)

    folders = [tmp_path / "state", tmp_path / "state" / "runs", tmp_path / "state" / "runs" / "r1"]
    assert [mode(one) for one in folders] == [0o700] * 3
    assert [mode(tmp_path / "r.html"), mode(folders[-1] / "n1.jsonl")] == [0o600] * 2


def test_a_report_that_cannot_be_written_has_its_own_words_and_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once it was `wrong use`, 64, although every node was done."""
    assert not save(REPORT, tmp_path / "gone" / "r.html")

    said = capsys.readouterr().err
    assert "was not written" in said
    assert "the work itself is done as shown" in said
    assert (save_exit(False, 0), save_exit(False, 3), save_exit(True, 0)) == (1, 3, 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_leaves_the_report_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is replaced as a whole, or not at all."""
    path = tmp_path / "r.jsonl"
    assert save(REPORT, path)
    before = path.read_text()
    (tmp_path / ".r.jsonl.part").symlink_to("/dev/full")

    assert not save(REPORT, path)
    assert path.read_text() == before
