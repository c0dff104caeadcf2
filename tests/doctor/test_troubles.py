"""docs/troubles.md: every trouble names rules that exist, and every rule finds a trouble."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.doctor.damages import DAMAGES, ELSEWHERE
from winboot.operations.doctor.rules import RULES

PAGE: Final = Path(__file__).parents[2] / "docs" / "troubles.md"
_COMMAND: Final = re.compile(r"`([a-z]+(?:-[a-z]+)+)`")


def troubles(title: str) -> list[tuple[str, list[str]]]:
    """The rows below a title: a trouble, and the rules that find it."""
    part = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("| ")]
    return [(one[0].strip(), _COMMAND.findall(one[1])) for one in rows[2:]]


def test_each_trouble_has_rules_that_a_damage_makes_fire() -> None:
    known = {one.rule for one in DAMAGES} | set(ELSEWHERE)
    guide, others = troubles("Troubles of the guide"), troubles("Other troubles")

    assert len(guide) == 16
    assert len(others) >= 40
    assert [trouble for trouble, rules in guide + others if not rules] == []
    assert {rule for _, rules in guide + others for rule in rules} - known == set()


def test_each_rule_finds_a_trouble() -> None:
    named = {
        rule
        for title in ("Troubles of the guide", "Other troubles")
        for _, rules in troubles(title)
        for rule in rules
    }

    assert {one.id for one in RULES} - named == set()


def test_the_words_of_public_reports_lead_to_rules() -> None:
    words = troubles("Words of public reports")
    named = {name for _, names in words for name in names}

    assert len(words) >= 40
    assert {name for name in named if name not in {one.id for one in RULES}} == set()
