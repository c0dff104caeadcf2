"""Every entry of the table still means a line of the tool, and tests that are there."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.mutations.decision import ROOT, Decision, places, sources
from tests.mutations.runner import a_copy, known_survivors
from tests.mutations.table import DECISIONS

TEXTS = sources()


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda one: one.name)
def test_each_decision_is_made_at_one_place_in_the_tool(decision: Decision) -> None:
    """Where the line was rewritten, write the new one into table.py; where the decision is gone, take the entry out."""
    found = places(decision, TEXTS)

    assert len(found) == 1, f"{decision.name}: {found or 'nowhere'}"
    assert decision.wrong != decision.right
    if found[0].suffix == ".py":
        ast.parse(TEXTS[found[0]].replace(decision.right, decision.wrong))


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda one: one.name)
def test_the_tests_that_are_to_notice_are_there(decision: Decision) -> None:
    assert decision.tests
    assert [one for one in decision.tests if not (ROOT / "tests" / one.partition("::")[0]).exists()] == []


def test_no_two_decisions_have_one_name() -> None:
    assert [name for name, times in Counter(one.name for one in DECISIONS).items() if times > 1] == []


def test_survivors_are_decisions_of_the_table() -> None:
    assert known_survivors() <= {one.name for one in DECISIONS}


def test_a_copy_has_what_is_in_the_working_tree() -> None:
    with a_copy() as copy:
        assert sources(copy) == TEXTS
        assert (copy / Path(__file__).relative_to(ROOT)).exists()
