"""One name, four places: step, template, test, doc."""

from pathlib import Path

import pytest

from tests.config.scene import a_spec
from tools.steps_page import steps_page
from winboot.script.library import templates_root
from winboot.script.problems import problems
from winboot.script.steps import STEPS

ROOT = Path(__file__).parents[2]
NODE_SIDE = [step for step in STEPS if step.side == "node"]


@pytest.mark.parametrize("step", NODE_SIDE, ids=lambda step: step.name)
def test_a_step_on_the_node_has_a_template(step):
    assert (templates_root() / step.template).is_file()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_says_why_in_one_sentence_without_a_full_stop(step):
    assert step.why
    assert not step.why.endswith(".")


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_has_a_test_that_runs_it(step):
    path = Path(__file__).parent / f"test_{step.stem}.py"

    assert path.is_file(), f"tests/steps/{path.name} is missing: docs/how-to-add-a-step.md says what it holds"
    text = path.read_text(encoding="utf-8")
    assert f'"{step.name}"' in text
    runs = (".run(", ".look(", ".change(") if step.side == "node" else (".join(", ".plan(")
    assert any(one in text for one in runs), "a test of what the step is given is not yet one of the step"


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


@pytest.mark.parametrize("problem", problems(), ids=lambda problem: problem.id)
def test_a_problem_that_a_script_can_name_is_met_in_a_test(problem):
    """Where the step fails with it, or where it is the reason for which a detached run failed."""
    roots = (ROOT / "tests", ROOT / "lab" / "tests")
    tests = [path for root in roots for path in root.rglob("test_*.py") if path.name != "test_problems.py"]

    assert any(f'"{problem.id}"' in path.read_text(encoding="utf-8") for path in tests)


def test_the_page_of_steps_is_the_one_that_is_written_from_them():
    assert (ROOT / "docs" / "steps.md").read_text(encoding="utf-8") == steps_page()


@pytest.mark.parametrize("path", sorted((templates_root() / "lib").glob("*.ps1")), ids=lambda path: path.name)
def test_a_library_file_is_plain_ascii_and_opens_with_what_it_is_for_or_with_what_it_does(path):
    """Windows PowerShell reads a script without a byte order mark in the code page of the machine.

    A heading travels with the script; where the names of file and functions say it all, there is none.
    """
    text = path.read_text(encoding="utf-8")

    assert text.startswith(("# ", "function "))
    assert text.isascii()


def test_the_page_of_steps_says_for_each_step_and_build_where_it_was_seen() -> None:
    page = steps_page()

    for step in STEPS:
        if step.side == "node":
            assert f"| `{step.name}` |" + " lab |" * 3 in page
