"""The problems that a script on a node can name."""

from pathlib import Path

from winboot.problems import problems, problems_page

PAGE = Path(__file__).parents[1] / "docs" / "problems.md"


def test_the_page_is_the_one_that_is_written_from_the_library():
    assert PAGE.read_text(encoding="utf-8") == problems_page(), (
        "python -m winboot.problems > docs/problems.md"
    )


def test_a_problem_has_its_message_and_its_next_step():
    found = {one.id: one for one in problems()}

    assert found["WrongBuild"].message == "Windows build {0}, but the inventory says {1}"
    assert "inventory" in found["WrongBuild"].hint
    assert "NeedsDrain" in found, "named by the driver itself"
