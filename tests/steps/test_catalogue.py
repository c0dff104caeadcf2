"""One name, four places: step, template, test, doc."""

from pathlib import Path

import pytest

from winboot.script import templates_root
from winboot.steps import STEPS
from winboot.steps.page import steps_page, with_table

ROOT = Path(__file__).parents[2]
NODE_SIDE = [step for step in STEPS if step.side == "node"]


@pytest.mark.parametrize("step", NODE_SIDE, ids=lambda step: step.name)
def test_a_step_on_the_node_has_a_template(step):
    assert (templates_root() / step.template).is_file()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_says_why_in_one_sentence_without_a_full_stop(step):
    assert step.why
    assert not step.why.endswith(".")


def test_no_template_is_without_its_step():
    templates = {path.name.removesuffix(".ps1.j2") for path in (templates_root() / "steps").iterdir()}

    assert templates == {step.stem for step in NODE_SIDE}


def test_the_page_of_steps_is_the_one_that_is_written_from_them():
    assert (ROOT / "docs" / "steps.md").read_text(encoding="utf-8") == steps_page()


@pytest.mark.parametrize("path", sorted((templates_root() / "lib").glob("*.ps1")), ids=lambda path: path.name)
def test_a_library_file_opens_with_what_it_is_for_and_is_plain_ascii(path):
    """Windows PowerShell reads a script without a byte order mark in the code page of the machine."""
    text = path.read_text(encoding="utf-8")

    assert text.startswith("# ")
    assert text.isascii()


def test_the_readmes_support_table_names_every_step_and_build() -> None:
    """Renew it with `python -m winboot.steps readme`."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert with_table(readme) == readme
