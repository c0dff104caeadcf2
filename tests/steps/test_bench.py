"""A test's machine is freed with the test: each has some 15 MiB, and a thread if a task of it runs without end."""

from __future__ import annotations

import threading
from contextlib import suppress

from winboot_lab.windows.tasks import Action, Task

from tests.conftest import pytest_runtest_call
from tests.steps.bench import Bench


def tasks_that_run_for_ever() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name.startswith("resident ")}


def test_a_task_that_runs_without_end_ends_with_the_test_that_made_its_machine() -> None:
    before = tasks_that_run_for_ever()
    watch = Action("powershell.exe", '-NoProfile -Command "while ($true) { Start-Sleep -Seconds 60 }"')
    call = pytest_runtest_call()  # what pytest does around each test
    next(call)
    tasks = Bench().machine.tasks
    tasks.register(task := Task("watch", "\\", [watch], [], limit_seconds=0))
    tasks.start(task)
    assert len(tasks_that_run_for_ever() - before) == 1

    with suppress(StopIteration):
        next(call)

    assert tasks_that_run_for_ever() == before
