"""Waves over many nodes: what a budget leaves is in the report, by name, and the command says 4."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.join.fakes import FakeMachine, Found, Scene
from winboot.node.fleet import Budget, Options, Share
from winboot.operations import upgrade
from winboot.operations.join import join
from winboot.report.results import Report


def joined(folder: Path, budget: Budget, *failing: str) -> Report:
    """A join of five bare machines, of which these fail."""
    scene = Scene(folder)
    names = [f"win-{number}" for number in range(1, 6)]
    specs = [replace(scene.spec, node=replace(scene.spec.node, name=name)) for name in names]
    machines = {
        name: FakeMachine(
            scene.machine.steps, Found("directories"), fails_at="directories" if name in failing else ""
        )
        for name in names
    }
    context = replace(scene._context(), connect=lambda spec: machines[spec.node.name])
    return join(specs, context, Options(patience=scene.patience, workers=4, budget=budget))


def test_a_canary_that_fails_leaves_all_others_alone(tmp_path: Path) -> None:
    report = joined(tmp_path, Budget(canary=Share(1)), "win-1")

    assert [node.outcome for node in report.nodes] == ["failed", *["skipped"] * 4]
    assert {node.failure.message for node in report.nodes[1:] if node.failure} == {
        f"win-{number}: not started: the canary win-1 ended as failed" for number in range(2, 6)
    }
    assert report.exit_code == 4


def test_a_canary_that_is_ready_lets_the_others_begin(tmp_path: Path) -> None:
    report = joined(tmp_path, Budget(canary=Share(1), max_unavailable=Share(2)))

    assert ([node.outcome for node in report.nodes], report.exit_code) == (["changed"] * 5, 0)


def test_failures_within_the_budget_are_the_code_of_failed_nodes(tmp_path: Path) -> None:
    report = joined(tmp_path, Budget(max_failed=Share(2)), "win-2", "win-4")

    assert ([node.outcome == "failed" for node in report.nodes], report.exit_code) == (
        [False, True, False, True, False],
        3,
    )


def test_a_second_run_does_what_the_first_one_left(tmp_path: Path) -> None:
    """Nothing is remembered of a budget: each run looks at every node."""
    joined(tmp_path, Budget(deadline=0.0))
    again = joined(tmp_path, Budget(max_failed=Share(0)))

    assert ([node.outcome for node in again.nodes], again.exit_code) == (["changed"] * 5, 0)


def test_after_the_deadline_no_node_is_begun(tmp_path: Path) -> None:
    report = joined(tmp_path, Budget(deadline=0.0))

    assert {(node.outcome, node.pipelines) for node in report.nodes} == {("skipped", 0)}
    assert report.exit_code == 4


@pytest.mark.parametrize(
    ("budget", "flows", "workers", "bears"),
    [
        pytest.param(Budget(), False, 1, Share(0), id="one after the other, to the first that fails"),
        pytest.param(Budget(max_unavailable=Share(3)), False, 32, Share(0), id="as many as may be down"),
        pytest.param(Budget(max_failed=Share(2)), False, 1, Share(2), id="some may fail"),
        pytest.param(
            Budget(max_unavailable=Share(3)), True, 1, Share(0), id="flows need nodes that stand still"
        ),
    ],
)
def test_an_upgrade_goes_as_fast_as_its_budget_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, budget: Budget, flows: bool, workers: int, bears: Share
) -> None:
    seen: list[Options] = []

    def run_nodes(
        command: str, work: Any, specs: Any, context: Any, options: Options, findings: Any
    ) -> Report:
        seen.append(options)
        return Report(command, "", "")

    monkeypatch.setattr(upgrade, "run_nodes", run_nodes)
    monkeypatch.setattr(upgrade, "refuse_wrong_order", lambda specs, cluster: None)
    scene = Scene(tmp_path)

    upgrade.upgrade([scene.spec], scene._context(), Options(budget=budget), flows=flows)

    assert [(one.workers, one.budget.max_failed) for one in seen] == [(workers, bears)]
