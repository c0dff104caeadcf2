"""Every entry of the table still means a line of the tool, and tests that are there."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.every import assert_none_wrong, failure, untrue
from tests.mutations.decision import ROOT, Decision, places, sources
from tests.mutations.runner import a_copy, known_survivors
from tests.mutations.table import DECISIONS

TEXTS = sources()


def unusable(decision: Decision) -> str:
    """Why the decision cannot be made wrong; empty if it can."""
    found = places(decision, TEXTS)
    if len(found) != 1:
        return f"made at {[str(path) for path in found] or 'no place'}"
    if decision.wrong == decision.right:
        return "right and wrong are equal"
    if found[0].suffix != ".py":
        return ""
    return failure(SyntaxError, ast.parse, TEXTS[found[0]].replace(decision.right, decision.wrong))


def test_each_decision_is_made_at_one_place_in_the_tool() -> None:
    """If you rewrote the line, write the new one into table.py; if the decision is gone, take the entry out."""
    assert_none_wrong({one.name: unusable(one) for one in DECISIONS})


def test_the_tests_that_are_to_notice_are_there() -> None:
    there = {one for decision in DECISIONS for one in decision.tests if _file(one).exists()}

    assert_none_wrong(
        {
            decision.name: [one for one in decision.tests if one not in there] or untrue(tests=decision.tests)
            for decision in DECISIONS
        }
    )


def _file(test: str) -> Path:
    return ROOT / "tests" / test.partition("::")[0]


def test_no_two_decisions_have_one_name() -> None:
    assert [name for name, times in Counter(one.name for one in DECISIONS).items() if times > 1] == []


def test_survivors_are_decisions_of_the_table() -> None:
    assert known_survivors() <= {one.name for one in DECISIONS}


def test_a_copy_has_what_is_in_the_working_tree() -> None:
    with a_copy() as copy:
        assert sources(copy) == TEXTS
        assert (copy / Path(__file__).relative_to(ROOT)).exists()
