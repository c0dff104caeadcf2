"""The node's part of a script as it is rendered, and the library's hash, reviewed in diffs.

The library itself stands in templates/powershell/lib. `WINBOOT_GOLDEN=write pytest tests/golden` writes these files.
"""

import os
from pathlib import Path

import pytest
from winboot_lab.language.check import check_script

from tests.steps.builders import a_spec
from winboot.script.library import library
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
def test_the_nodes_part_is_the_one_that_was_reviewed(name: str):
    host, undo = CASES[name]
    text = a_script(host, undo=undo).node_part.replace(library().sha256, "<library>")

    assert text.count("<library>") == 2
    assert text == reviewed(name, text)


def test_the_library_is_the_one_that_was_reviewed():
    """By its hash: what changed is in the diff of templates/powershell."""
    assert f"{library().sha256}\n" == reviewed("library.sha256", f"{library().sha256}\n")


def reviewed(name: str, text: str) -> str:
    """The golden file, which becomes `text` first where golden files are written."""
    if os.environ.get("WINBOOT_GOLDEN") == "write":
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_the_script_passes_the_strict_check(name: str):
    host, undo = CASES[name]

    assert [str(one) for one in check_script(a_script(host, undo=undo).text, origin=name)] == []
