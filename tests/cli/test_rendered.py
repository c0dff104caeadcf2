"""`winboot render`: either piece of a script, its hashes, and how it differs from one that was written before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_check import an_inventory
from winboot.cli import run
from winboot.script.library import library
from winboot.script.pieces import BOUNDARY

TWO = "groups: {w: {profile: profile.yaml, os: '2022', hosts: {win-1: {address: 10.0.1.11}, win-2: {address: 10.0.1.12}}}}"


def rendered(path: Path, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What the command prints."""
    assert run(["render", "-i", str(path), *words]) == code, capsys.readouterr().err
    return capsys.readouterr().out


def test_either_piece_is_shown_and_both_are_the_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = an_inventory(tmp_path, TWO)
    node = rendered(path, capsys, "-l", "win-1", "--part", "node")

    assert node + rendered(path, capsys, "--part", "library") == rendered(path, capsys, "-l", "win-1")
    assert BOUNDARY not in node


def test_two_nodes_of_an_inventory_differ_in_about_ten_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = an_inventory(tmp_path, TWO)
    rendered(path, capsys, "--out", str(tmp_path / "old"))
    old = tmp_path / "old" / "win-1" / "winboot.ps1"

    said = rendered(path, capsys, "-l", "win-2", "--diff", str(old), code=2)

    # The name of the node is in the tables of two steps that look at its certificate.
    assert 0 < len([line for line in said.splitlines()[2:] if line[:1] == "+"]) <= 13
    assert "library" not in said


def test_what_did_not_change_shows_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = an_inventory(tmp_path, TWO)
    rendered(path, capsys, "--out", str(tmp_path / "old"))

    assert rendered(path, capsys, "--diff", str(tmp_path / "old")) == ""


def test_another_release_shows_its_library_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = an_inventory(tmp_path, TWO)
    rendered(path, capsys, "--out", str(tmp_path / "old"))
    for old in (tmp_path / "old").glob("*/winboot.ps1"):
        old.write_text(
            old.read_text(encoding="utf-8").replace("function Get-TextHash {", "function Get-Hash {")
        )

    said = rendered(path, capsys, "--diff", str(tmp_path / "old"), code=2)

    assert said.count("+function Get-TextHash {") == 1
    assert f"-> {library().sha256}" in said


def test_the_hashes_alone_are_of_settings_and_scripts_and_once_of_the_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = rendered(an_inventory(tmp_path, TWO), capsys, "--digest").splitlines()

    assert [line.split()[-2] for line in lines] == ["library", "settings", "script", "settings", "script"]
    assert len({line.split()[-1] for line in lines}) == 5
    assert lines[0].endswith(library().sha256)


def test_what_is_no_script_of_ours_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.ps1"
    other.write_text("Get-Date", encoding="utf-8")

    for old in (other, tmp_path / "missing.ps1"):
        assert run(["render", "-i", str(an_inventory(tmp_path, TWO)), "--diff", str(old)]) == 64
