"""Text from outside is made fit for terminals, XML and UTF-8, once, where it enters."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from winboot.base.clean import LONGEST, clean
from winboot.base.errors import ScriptFailed
from winboot.report.data import json_lines, junit
from winboot.report.events import StepDone, parse
from winboot.report.page import html
from winboot.report.results import Failure, NodeReport, Report, StepReport

HOSTILE = "\x1b[2J\x1b]0;title\x07 \x9b31m \ud800 \x00 \u202eexe.txt \ufffe"


def test_what_must_not_be_shown_becomes_visible() -> None:
    assert clean("a\x1b[2J\x9b\ud800\u202e") == r"a\x1b[2J\x9b\ud800\u202e"


@pytest.mark.parametrize("code", [0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x7F, 0x9B])
def test_each_character_that_turns_text_around_or_talks_to_the_terminal_is_shown_as_its_number(
    code: int,
) -> None:
    """UAX 9 has the list of the explicit directional characters: https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters"""
    assert chr(code) not in clean(f"a{chr(code)}b")
    assert f"{code:02x}" in clean(f"a{chr(code)}b")


@pytest.mark.parametrize("text", ["", "plain", "two\nlines\twith a tab", "größer 漢字 🙂"])
def test_what_is_fit_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


def test_a_long_text_is_cut_and_says_so() -> None:
    cut = clean("x" * (LONGEST + 5))

    assert len(cut) < LONGEST + 40
    assert cut.endswith("… (5 more characters)")


def test_every_text_of_an_event_and_of_an_error_is_clean() -> None:
    difference = {"what": HOSTILE, "is": HOSTILE, "want": HOSTILE}
    problem = {"id": HOSTILE, "message": HOSTILE, "hint": HOSTILE, "position": HOSTILE}
    fields = {"step": HOSTILE, "state": "failed", "ms": 1, "differences": [difference], "problem": problem}
    event = parse(json.dumps({"v": 1, "event": "step", "run": "r", **fields}))
    error = ScriptFailed(HOSTILE, hint=HOSTILE)

    assert isinstance(event, StepDone)
    assert clean(repr(event)) == repr(event)
    for text in (
        event.step,
        event.differences[0].what,
        event.problem.message if event.problem else "",
        error.problem,
    ):
        assert "\x1b" not in text
        assert r"\x1b[2J" in text
        text.encode()


@pytest.mark.parametrize("form", [html, junit, json_lines])
def test_every_form_of_the_report_is_whole_whatever_a_node_says(form: object) -> None:
    """Once one lone surrogate of one node cost the report of all."""
    event = parse(
        json.dumps(
            {"v": 1, "event": "step", "run": "r", "step": "one", "state": "failed", "ms": 1}
            | {
                "problem": {"id": "X", "message": HOSTILE},
                "differences": [{"what": "w", "is": HOSTILE, "want": None}],
            }
        )
    )
    assert isinstance(event, StepDone)
    step = StepReport("one", "failed", 1, event.differences, event.problem)
    node = NodeReport("n1", "10.0.0.1", "2022", (step,), Failure.of(ScriptFailed(HOSTILE)))

    text = form(Report("join", "r1", "now", (node,)))  # type: ignore[operator]

    assert text.encode()
    assert "\x1b" not in text
    if form is junit:
        ElementTree.fromstring(text.split("?>", 1)[1])
