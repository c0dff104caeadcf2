"""The exact scripts of the shipped profiles, reviewed in diffs. `WINBOOT_GOLDEN=write pytest tests/golden` writes them."""

import os
from pathlib import Path

import pytest

from tests.steps.builders import a_spec
from winboot.powershell.check import check_script
from winboot.script.plan import make_plan
from winboot.script.rendering import Script, render
from winboot.script.steps import STEPS

FOLDER = Path(__file__).parent
# Name of the golden file: host in inventories/canonical.yaml, script of `remove`?
CASES = {
    "flannel-host-gw.ps1": ("win-a1", False),
    "flannel-host-gw-remove.ps1": ("win-a1", True),
}


def a_script(host: str, *, undo: bool) -> Script:
    spec = a_spec(host)
    return render(make_plan(spec, STEPS), spec, undo=undo)


@pytest.mark.parametrize("name", CASES)
def test_the_script_is_the_one_that_was_reviewed(name: str):
    host, undo = CASES[name]
    text = a_script(host, undo=undo).text
    if os.environ.get("WINBOOT_GOLDEN") == "write":
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")

    assert text == (FOLDER / name).read_text(encoding="utf-8"), "WINBOOT_GOLDEN=write pytest tests/golden"


@pytest.mark.parametrize("name", CASES)
def test_the_script_passes_the_strict_check(name: str):
    host, undo = CASES[name]

    assert [str(one) for one in check_script(a_script(host, undo=undo).text, origin=name)] == []
