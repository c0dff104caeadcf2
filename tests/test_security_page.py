"""docs/security.md names what winboot really makes on a machine."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.steps.bench import Bench
from tests.steps.builders import a_spec
from winboot.script.steps.directories import DIRECTORIES

PAGE = (Path(__file__).parents[1] / "docs" / "security.md").read_text(encoding="utf-8")


def named(path: str) -> bool:
    """By its whole path, or by its folder with the name behind it."""
    if path.startswith("C:\\k\\versions\\"):
        path = r"C:\k\versions\<program>-<version>"
    folder, _, name = path.rpartition("\\")
    return f"`{path}`" in PAGE or (f"`{folder}`" in PAGE and (f"`{name}`" in PAGE or folder == r"C:\var\log"))


@pytest.mark.parametrize("kind", ["private", "readable"])
def test_every_folder_with_rules_of_its_own_is_on_the_page(kind: str):
    inputs = DIRECTORIES.inputs(a_spec())

    assert [path for path in inputs[kind] if not named(path)] == []


def test_every_task_is_on_the_page():
    spec = a_spec()
    bench = Bench(spec=replace(spec, node=replace(spec.node, scheduled_events=True)))
    bench.run("postboot-task", "log-rotation", "azure-events")
    tasks = [task for task in bench.machine.tasks.all() if task.path == "\\winboot\\"]

    assert {task.name for task in tasks} == {"boot", "guard", "logs", "events"}
    assert [task.name for task in tasks if f"`\\winboot\\{task.name}`" not in PAGE] == []
