"""The helper repeats a program that fails without output: no program of these tests does that on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab_wine.prefix import Wine


def a_wine(folder: Path, *, first: str) -> Wine:
    """A stand-in for Wine that does `first` once, succeeds after that, and counts its starts in `starts`."""
    program = folder / "wine"
    lines = ["#!/bin/sh", f"cd {folder}", "echo >> starts", f"[ $(wc -l < starts) -gt 1 ] || {{ {first}; }}"]
    program.write_text("\n".join([*lines, ""]))
    program.chmod(0o755)
    return Wine(str(program), folder)


def test_a_program_that_fails_in_silence_is_asked_again(tmp_path: Path) -> None:
    """It was never reached."""
    a_wine(tmp_path, first="exit 1").run("program.exe")

    assert (tmp_path / "starts").read_text() == "\n\n"


def test_a_program_that_says_why_it_fails_has_answered(tmp_path: Path) -> None:
    """The helper runs it once and reports its output."""
    with pytest.raises(AssertionError, match=r"ended with 1: Invalid parameter"):
        a_wine(tmp_path, first="echo Invalid parameter; exit 1").run("program.exe")

    assert (tmp_path / "starts").read_text() == "\n"
