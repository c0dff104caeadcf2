"""One name, four places: step, template, test, doc."""

import re
from pathlib import Path

from tests.config.scene import a_spec
from tests.every import assert_none_wrong, untrue
from tools.steps_page import steps_page
from winboot.script.library import library_files, templates_root
from winboot.script.problems import problems
from winboot.script.steps import STEPS

ROOT = Path(__file__).parents[2]
NODE_SIDE = [step for step in STEPS if step.side == "node"]


def test_a_step_says_why_in_one_sentence_without_a_full_stop():
    assert_none_wrong(
        {step.name: untrue(why=step.why, no_full_stop=not step.why.endswith(".")) for step in STEPS}
    )


def test_a_step_has_a_test_that_runs_it():
    assert_none_wrong({step.name: untested(step) for step in STEPS})


def untested(step):
    path = Path(__file__).parent / f"test_{step.stem}.py"
    if not path.is_file():
        return f"tests/steps/{path.name} is missing; write it as docs/how-to-add-a-step.md shows"
    text = path.read_text(encoding="utf-8")
    runs = (".run(", ".look(", ".change(") if step.side == "node" else (".join(", ".plan(")
    return untrue(name=f'"{step.name}"' in text, run=any(one in text for one in runs))


def test_a_step_without_identity_takes_nothing_that_tells_one_node_from_another(tmp_path):
    """It may run on a machine of a warm pool, or while an image is made: what it builds on may, too."""
    one, other = (
        a_spec(
            tmp_path,
            host=f"{{address: 10.0.1.{at}, node_ip: 10.0.1.{at}, computer_name: W{at}, provider_id: aws:///eu-west-1a/i-{at}}}",
        )
        for at in (11, 12)
    )
    free = {step.name: step for step in STEPS if not step.identity}

    assert {"artifacts", "containerd", "pause-image", "windows-features"} <= set(free)
    for step in free.values():
        assert set(step.needs) <= set(free), step.name
        if not step.wanted(one):
            continue
        assert step.side == "node" and lasting(step.inputs(one)) == lasting(step.inputs(other)), step.name
        assert step.files(one) == step.files(other), step.name
    assert {"computer-name", "kubelet-credentials", "kubelet", "registration"}.isdisjoint(free)


def lasting(value):
    """Inputs without the arguments that a program is only asked about: nothing of them stays on the machine."""
    match value:
        case dict():
            return {key: lasting(one) for key, one in value.items() if key != "takes"}
        case list() | tuple():
            return [lasting(one) for one in value]
    return value


def test_no_template_is_without_its_step():
    templates = {path.name.removesuffix(".ps1.j2") for path in (templates_root() / "steps").iterdir()}

    assert templates == {step.stem for step in NODE_SIDE}


def test_the_page_names_every_step_with_its_reason_and_what_it_builds_on():
    page = (ROOT / "docs" / "steps.md").read_text(encoding="utf-8")

    for step in STEPS:
        line = next(one for one in page.splitlines() if one.startswith(f"| `{step.name}` |"))
        assert step.why in line
        assert all(f"`{need}`" in line for need in step.needs)


def test_a_problem_that_a_script_can_name_is_met_in_a_test():
    """Where the step fails with it, or where it is the reason for which a detached run failed."""
    met = {
        word
        for root in (ROOT / "tests", ROOT / "lab" / "tests")
        for path in root.rglob("test_*.py")
        if path.name != "test_problems.py"
        for word in re.findall(r'"(?=([\w-]+)")', path.read_text(encoding="utf-8"))
    }

    assert_none_wrong({one.id: "" if one.id in met else "no test names it" for one in problems()})


def test_the_page_of_steps_is_the_one_that_is_written_from_them():
    assert (ROOT / "docs" / "steps.md").read_text(encoding="utf-8") == steps_page()


def test_a_library_file_is_plain_ascii_and_opens_with_what_it_is_for_or_with_what_it_does():
    """Windows PowerShell reads a script without a byte order mark in the code page of the machine.

    A heading travels with the script; where the names of file and functions say it all, there is none.
    """
    assert_none_wrong(
        {
            name: untrue(opening=text.startswith(("# ", "function ")), ascii=text.isascii())
            for name, text in library_files().items()
        }
    )


def test_the_page_of_steps_says_for_each_step_and_build_where_it_was_seen() -> None:
    page = steps_page()

    for step in STEPS:
        if step.side == "node":
            assert f"| `{step.name}` |" + " lab |" * 3 in page
