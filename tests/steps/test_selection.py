"""--only and --skip: the steps that run are a fact of the run; the script that the node keeps is always the whole one."""

import pytest

from tests.steps.bench import Bench

BOTH = ("directories", "postboot-task")


@pytest.mark.parametrize("mode", ["Look", "Change"])
def test_only_the_chosen_steps_are_looked_at_and_changed(bench: Bench, mode: str) -> None:
    """And the others do not appear at all."""
    told = bench.run(*BOTH, mode=mode, facts={"Steps": "directories"})

    assert list(told.states) == ["directories"]


def test_a_choice_does_not_change_the_script_that_the_boot_task_runs(bench: Bench) -> None:
    """A join with --skip wrote a boot script without the steps that it skipped; the next join wrote another one."""
    bench.run(*BOTH)

    chosen = bench.run(*BOTH, facts={"Steps": "postboot-task"})

    assert chosen.states == {"postboot-task": "ok"}


def test_no_step_at_all_may_be_chosen(bench: Bench) -> None:
    """A comma alone: everything was skipped."""
    assert bench.run(*BOTH, facts={"Steps": ","}).states == {}
