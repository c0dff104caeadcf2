"""The problems that a script on a node can name."""

import ast
from pathlib import Path

import winboot
from tests.every import assert_none_wrong, untrue
from tools.problems_page import problems_page
from winboot.base.errors import WinbootError
from winboot.report.hints import HINTS, hint_for
from winboot.script.problems import explain_problem, failures, problems

PAGE = Path(__file__).parents[1] / "docs" / "problems.md"


def test_the_page_is_the_one_that_is_written_from_the_library():
    assert PAGE.read_text(encoding="utf-8") == problems_page(), "run make golden"


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


def test_a_users_own_step_has_its_own_hint():
    assert hint_for("Mine", "Ask the storage team.") == "Ask the storage team."
    assert hint_for("DiskSpace", "Clean D: first.") == "Clean D: first."
    assert hint_for("Mine", "") == ""


def test_every_problem_says_what_happened_and_what_to_do_and_can_be_explained() -> None:
    assert_none_wrong(
        {
            one.id: untrue(
                message=one.message,
                hint=one.hint.endswith((".", "?")),
                explained=one.hint in explain_problem(one.id),
            )
            for one in problems()
        }
    )


def test_every_failure_that_a_report_can_show_has_its_next_step() -> None:
    """The classes of winboot.base.errors, and the problems that the controller makes of them."""

    def below(one: type[WinbootError]) -> set[type[WinbootError]]:
        return {one}.union(*(below(child) for child in one.__subclasses__()))

    named = {one for one in below(WinbootError) if one.__module__ == WinbootError.__module__}
    assert named - {WinbootError} == set(failures())
    for failure in failures():
        assert f"exit code {failure.exit_code}" in explain_problem(failure.__name__)


def test_every_id_that_the_controller_writes_down_is_a_known_one() -> None:
    """`Problem("NeedsStep", …)` in its code; of an error it is the name of the class."""
    known = {one.id for one in problems()} | {one.__name__ for one in failures()}
    written = {
        node.args[0].value
        for path in sorted(Path(winboot.__file__).parent.rglob("*.py"))
        if "lab" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Problem"
        if node.args and isinstance(node.args[0], ast.Constant)
    }

    assert written
    assert written <= known
