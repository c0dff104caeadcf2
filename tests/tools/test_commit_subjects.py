"""The rule for commit subjects."""

import pytest

from tools.commit_subjects import LONGEST, wrong

RIGHT = (
    "hook: keep the heartbeat while a machine boots",
    "lab, script: drop the layout of an unreleased winboot",
    "docs/steps.md: list the exit codes",
    "h: " + "a" * (LONGEST - 3),
)
WRONG = (
    "Whoever had it has changed it since",
    "hook: Keep the heartbeat",
    "hook keep the heartbeat",
    "hook: keep the heartbeat.",
    "hook:keep the heartbeat",
    "h: " + "a" * (LONGEST - 2),
    "",
)


@pytest.mark.parametrize("subject", RIGHT)
def test_an_area_and_an_imperative_are_accepted(subject: str) -> None:
    assert wrong([subject]) == []


@pytest.mark.parametrize("subject", WRONG)
def test_another_form_is_listed_with_its_reason(subject: str) -> None:
    (found,) = wrong([subject])

    assert found.endswith(subject)
