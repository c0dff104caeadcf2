"""Prose follows the style of docs/contributing.md: constructions that had to be read twice do not come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import prose


def test_no_file_has_more_findings_than_its_ratchet() -> None:
    """`python -m tools.prose FILE` lists them; `python -m tools.prose --ratchet` lowers the counts."""
    allowed = prose.allowed()

    more = {file: count for file, count in prose.counted().items() if count > allowed.get(file, 0)}

    assert more == {}


def test_the_lint_reads_every_kind_of_prose() -> None:
    """A folder that moved would pass everything."""
    read = {file.relative_to(prose.ROOT).as_posix() for file in prose.files()}

    assert {
        "README.md",
        "docs/changelog.md",
        "winboot/report/hints.py",
        "lab/winboot_lab/up.py",
        "templates/powershell/lib/guard.ps1",
    } <= read


@pytest.mark.parametrize(
    "text",
    [
        "It is for whoever runs Windows nodes",
        "it waits for nobody",
        "a service of winboot's",
        "`--yes` is none",
        "the script told 26 of 27 steps",
        "the machine is asked",
        "no map stands here",
        "what the kubelet shall do",
        "What was there before is noted.",
        " ".join(["word"] * 31),
    ],
)
def test_the_lint_finds_what_it_is_for(text: str) -> None:
    """The constructions that reviewers stumbled over."""
    assert list(prose.broken(text, "prose")) != []


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ('"""Head.\n\n    a  one\n       more\n    b  two\n    """', ["Head.", "a one more", "b two"]),
        ('"""Head\nthat goes on.\n- item\n"""', ["Head that goes on.", "- item"]),
        ("A = 1  # of the first\nB = 2  # of the second", ["of the first", "of the second"]),
        ("# Two lines\n# of one comment", ["Two lines of one comment"]),
        ("X = '$Name = 1 # code\\n# a comment\\nThrow-It \"a text of it\"'", ["a comment", "a text of it"]),
        ("X = '<a>the text of it</a><b>and another text</b>'", ["the text of it", "and another text"]),
    ],
)
def test_the_lint_reads_rows_comments_and_scripts_apart(tmp_path: Path, source: str, read: list[str]) -> None:
    """Rows of a table are not one sentence, and code is not prose."""
    file = tmp_path / "one.py"
    file.write_text(source)

    assert [" ".join(text.split()) for _, _, text in prose.passages(file)] == read


@pytest.mark.parametrize(
    "text",
    [
        "What does it change?",
        "winboot drains the node.",
        "the kubelet's own certificate",
        " ".join(["Name"] * 31),
    ],
)
def test_the_lint_leaves_plain_sentences(text: str) -> None:
    """Questions, ordinary genitives and lists of names pass."""
    assert list(prose.broken(text, "prose")) == []
