"""The terminal shows one question, after all looks; a yes runs the plan that was shown."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from msgspec import structs

from winboot.base.errors import Declined, UsageError
from winboot.base.limits import LARGEST_PLAN
from winboot.cli import run
from winboot.cli.approval import ask, at_terminal, gone, with_plan
from winboot.cli.options import Output
from winboot.config.demands import Demand
from winboot.config.source import Place
from winboot.operations.join import Options
from winboot.report.events import Difference
from winboot.report.plan_file import Selection, plan_of
from winboot.report.results import NodeReport, Report, StepReport

STEP = StepReport(
    "directories", "would-change", 1, (Difference("folder C:\\k", None, "there", key="folder:k"),)
)
REPORT = Report(
    "join",
    "r1",
    "2026-01-01T00:00:00+00:00",
    (NodeReport("win-1", "10.0.0.1", "2022", (STEP,)),),
    by="me@here",
)


def answer(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_yes_continues(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer("y\n", monkeypatch)

    ask(REPORT, Output.table)

    said = capsys.readouterr()
    assert "+ folder C:\\k: there" in said.out
    assert "Change 1 node?" in said.err


@pytest.mark.parametrize("text", ["n\n", "\n"])
def test_no_changes_nothing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(text, monkeypatch)

    with pytest.raises(Declined) as declined:
        ask(REPORT, Output.table)
    assert declined.value.exit_code == 2


def test_with_json_everything_of_the_question_goes_to_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer("y\n", monkeypatch)

    ask(REPORT, Output.json)

    said = capsys.readouterr()
    assert said.out == ""
    assert "+ folder C:\\k: there" in said.err


def test_each_question_shows_what_the_files_have_this_computer_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer is about them, also if an earlier run has shown them."""
    for _ in range(2):
        answer("y\n", monkeypatch)
        ask(
            REPORT,
            Output.table,
            [Demand(Place("profile.yaml", 3, 1), "proxy.password", "run", "pass show winboot")],
        )

        assert "pass show winboot" in capsys.readouterr().err


def test_without_a_terminal_there_is_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    answer("y\n", monkeypatch)
    assert not at_terminal()

    # Its answer would come from a pipe.
    monkeypatch.setattr("sys.stderr", Terminal())
    assert not at_terminal()
    monkeypatch.setattr("sys.stdin", Terminal())
    assert at_terminal()


def test_a_plan_says_itself_which_steps_it_is_about() -> None:
    plan = plan_of(REPORT, Selection(only=("directories",), adopt=True), "me@here")

    options = with_plan(Options(drain=True), plan)

    assert (options.only, options.adopt, options.drain, options.approved) == (
        ("directories",),
        True,
        True,
        plan,
    )
    with pytest.raises(UsageError, match="--skip and --plan"):
        with_plan(Options(skip=("kubelet",)), plan)
    with pytest.raises(UsageError, match="--only and --plan"):
        with_plan(Options(only=("kubelet",)), plan)
    assert with_plan(Options(only=("directories",)), plan).approved is plan


def test_a_node_that_the_inventory_has_no_more_is_named() -> None:
    (left,) = gone(plan_of(REPORT, Selection(), "me@here"), [])

    assert (left.node, left.outcome, left.exit_code) == ("win-1", "skipped", 2)


def test_show_says_what_a_plan_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    plan = plan_of(REPORT, Selection(), "me@here")
    file.write_text(plan.text(), encoding="utf-8")

    assert run(["show", str(file)]) == 0

    said = capsys.readouterr().out
    assert f"by me@here, winboot {plan.winboot}, sha256 {plan.sha256}" in said
    assert "+ folder C:\\k: there" in said


@pytest.mark.parametrize("text", [None, "{}", "not json"])
def test_a_damaged_plan_ends_a_join_before_any_contact(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")

    assert run(["join", "-i", str(tmp_path / "none.yaml"), "--plan", str(file)]) == 64
    assert "plan.json" in capsys.readouterr().err


def forged(**texts: str) -> str:
    """A plan edited by hand, with a digest that fits."""
    plan = plan_of(REPORT, Selection(), texts.get("by", "me@here"))
    nodes = {texts.get("node", name): node for name, node in plan.nodes.items()}
    return structs.replace(plan, nodes=nodes).text()


@pytest.mark.parametrize("texts", [{"by": "\x1b]0;owned\x07"}, {"node": "win-1\x1b[2J"}])
@pytest.mark.parametrize("command", ["show", "join --plan"])
def test_a_plan_of_another_user_moves_no_cursor(
    command: str, texts: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(forged(**texts), encoding="utf-8")

    assert run([*command.split(), str(file)]) == 64

    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "damaged or edited" in said.err


def test_a_plan_that_others_may_write_is_no_approval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    file = tmp_path / "plan.json"
    file.write_text(forged(), encoding="utf-8")
    file.chmod(0o666)
    join = ["join", "-i", str(tmp_path / "none.yaml"), "--plan", str(file)]

    assert run(join) == 64
    assert "could approve changes in your place" in capsys.readouterr().err
    assert run([*join, "--trust"]) == 64
    assert "there is no inventory" in capsys.readouterr().err
    assert run(["show", str(file)]) == 0


def test_a_plan_whose_owner_cannot_be_asked_is_no_approval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: Path) -> str:
        raise PermissionError(13, "Permission denied")

    file = tmp_path / "plan.json"
    file.write_text(forged(), encoding="utf-8")
    monkeypatch.setattr("winboot.base.private.others_say", refuse)

    assert run(["join", "-i", str(tmp_path / "none.yaml"), "--plan", str(file)]) == 64
    assert "cannot be read (Permission denied)" in capsys.readouterr().err


def test_a_plan_of_gigabytes_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    with file.open("wb") as hole:
        hole.truncate(LARGEST_PLAN + 1)

    assert run(["show", str(file)]) == 64

    assert "larger than any plan" in capsys.readouterr().err


def test_a_plan_is_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """/dev/zero was read until the memory ended."""
    assert run(["show", "/dev/zero"]) == 64
    assert "/dev/zero: no file" in capsys.readouterr().err
