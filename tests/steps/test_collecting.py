"""The task that collects leaves a state folder that only administrators can change, or none."""

from __future__ import annotations

import pytest
from winboot_lab.engines import run_script

from tests.steps.bench import Bench
from winboot.script.rendering import collecting

FOLDER = r"C:\ProgramData\winboot"
DETACHED = rf"{FOLDER}\detached"
THEIRS = rf"{FOLDER}\theirs"


def control(bench: Bench, mode: str, identity: str, before: str = "") -> None:
    """One call of the script that starts and removes the task."""
    parameters = {"Mode": mode, "Id": identity, "Text": "'nothing'", "Seconds": 5, "Limit": 60}
    text = collecting()[0].replace("switch ($Mode)", f"{before}switch ($Mode)")
    with bench.machine.session("Administrator") as session, bench.machine.acting():
        ended = run_script(session, text, parameters, emit=lambda stream, value: None)
    assert ended.state == "completed", getattr(ended.error, "message", "")


def test_an_end_removes_the_folder_and_runs_twice(bench: Bench) -> None:
    control(bench, "Start", "a")
    assert bench.machine.files.exists(DETACHED)

    control(bench, "End", "a")
    assert not bench.machine.files.exists(FOLDER)
    control(bench, "End", "a")


def test_a_folder_of_another_program_stays(bench: Bench) -> None:
    control(bench, "Start", "a")
    bench.machine.files.make_directory(THEIRS)

    control(bench, "End", "a")

    assert bench.machine.files.exists(THEIRS)


@pytest.mark.parametrize("old", ["", "a"])
def test_a_start_keeps_the_folder_closed(bench: Bench, old: str) -> None:
    """The script of a collection that was killed a day ago is the only file there."""
    if old:
        control(bench, "Start", old)
        bench.machine.settle(2 * 86400)

    control(bench, "Start", "b")

    acl = bench.machine.files.need(DETACHED)[1].acl
    assert acl.protected
    assert not bench.machine.files.exists(rf"{DETACHED}\collect-a.ps1")
