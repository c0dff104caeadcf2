"""The problems that a script on a node can name."""

from pathlib import Path

from winboot.hints import HINTS, hint_for
from winboot.problems import problems, problems_page

PAGE = Path(__file__).parents[1] / "docs" / "problems.md"


def test_the_page_is_the_one_that_is_written_from_the_library():
    assert PAGE.read_text(encoding="utf-8") == problems_page(), (
        "python -m winboot.problems > docs/problems.md"
    )


def test_a_problem_has_its_message_and_its_next_step():
    found = {one.id: one for one in problems()}

    assert found["WrongBuild"].message == "Windows build …, but the inventory says …"
    assert "inventory" in found["WrongBuild"].hint
    assert "NeedsDrain" in found, "named by the driver"


def test_a_hint_belongs_to_a_problem_that_a_script_can_name():
    assert set(HINTS) <= {one.id for one in problems()}


def test_a_script_sends_ids_and_the_report_shows_what_to_do():
    assert hint_for("WrongBuild", "") == HINTS["WrongBuild"]
    assert hint_for("WrongBuild", "WrongBuild NoServer") == f"{HINTS['WrongBuild']} {HINTS['NoServer']}"


def test_a_step_of_ones_own_tells_its_own_hint():
    assert hint_for("Mine", "Ask the storage team.") == "Ask the storage team."
    assert hint_for("DiskSpace", "Clean D: first.") == "Clean D: first."
    assert hint_for("Mine", "") == ""
