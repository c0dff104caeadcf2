"""Each belief about Windows has a row, and each row a place in the code."""

from __future__ import annotations

import re
from pathlib import Path

from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import ParseErrors
from winboot_lab.windows.facts import FOLDER, Fact, facts, unsourced

from tests.every import assert_none_wrong, failure, untrue
from tools.facts_page import facts_page

PAGE = Path(__file__).parents[3] / "docs" / "unsourced.md"
FACTS = facts()
# What these are is the lab's own: its time, its doors and its faults. Cmdlets show what the files of their subject hold.
OWN = {
    "__init__",
    "call",
    "clock",
    "door",
    "facts",
    "failure",
    "faults",
    "forking",
    "host",
    "machine",
    "parts",
    "programs",
    "programs_api",
}
OWN |= {"session", "snapshot"}
# Verbs and members that change nothing.
READS = ("Get-", "Select-Object", "Where-Object")


def test_a_fact_stands_in_its_file_and_has_a_source_or_a_command() -> None:
    texts = {name: (FOLDER / name).read_text(encoding="utf-8") for name in {one.file for one in FACTS}}

    assert_none_wrong(
        {
            one.id: untrue(
                in_its_file=one.at in texts[one.file],
                source_or_command=bool(one.source) != bool(one.command),
                when_only_with_a_command=not (one.source and one.when),
            )
            for one in FACTS
        }
    )


def test_each_file_about_windows_has_a_fact() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - OWN

    assert files - {one.file.removesuffix(".py") for one in FACTS} == set()


def test_what_the_code_calls_unsourced_is_a_row_of_that_file() -> None:
    called = {
        (path.relative_to(FOLDER).as_posix(), name)
        for path in FOLDER.rglob("*.py")
        for name in re.findall(r"Unsourced: ([\w-]*)", path.read_text(encoding="utf-8"))
    }

    assert len(called) >= 8
    assert called <= {(one.file, one.id) for one in unsourced()}


def changing(fact: Fact) -> list[str]:
    """The cmdlets of its command that may change something."""
    verbs = re.findall(
        r"(?<![\w'-])[A-Z][a-z]+-[A-Z]\w+", re.sub(r"'[^']*'|-(?:ClassName|LogName) \S+", "", fact.command)
    )
    return [verb for verb in verbs if not verb.startswith(READS)] if verbs else ["no cmdlet"]


def test_the_command_of_a_fact_parses_and_only_reads() -> None:
    assert_none_wrong(
        {one.id: failure(ParseErrors, parse, one.command) or changing(one) for one in unsourced()}
    )


def test_the_page_lists_the_facts_without_a_source() -> None:
    assert PAGE.read_text(encoding="utf-8") == facts_page(), "run make golden"
