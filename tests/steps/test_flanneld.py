"""The service of flanneld under NSSM. Starting it can rewire the adapter: that is pod-network's, not this step's."""

from __future__ import annotations

import pytest

from tests.lab.actions import SERVICES, Hand, delete, regedit, remove_network, stop
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node

STEP = "flanneld"
KEY = rf"{SERVICES}\flanneld"
VALUES = rf"{KEY}\Parameters"
PARTS = ("command line", "depends on", "account", "environment", "recovery")


def test_a_node_without_flannel_has_no_such_step():
    assert STEP not in Bench(spec=a_spec_of("win-bridge")).look(STEP).states


def test_a_bare_machine_lacks_the_service_and_its_nssm_settings(bench: Bench):
    found = bench.look(STEP).differences(STEP)

    assert {f"service flanneld: {part}" for part in PARTS} <= set(found)
    assert found["service flanneld: AppEnvironmentExtra"] == (None, "NODE_NAME=win-a1")
    assert found["service flanneld: AppNoConsole"] == (None, "1")
    assert "service flanneld: state" not in found, "without its network it need not run"


def test_it_is_registered_but_not_started_while_there_is_no_network(bench: Bench):
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    assert bench.machine.services.need("flanneld").status == "Stopped"
    assert bench.undo(STEP).states == {STEP: "changed"}
    assert bench.machine.services.find("flanneld") is None


def test_it_is_removed_and_made_again_while_its_network_stands(node: Node):
    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.machine.services.find("flanneld") is None
    assert node.change(STEP, "kube-proxy").states == {STEP: "changed", "kube-proxy": "changed"}
    assert node.change(STEP).states == {STEP: "ok"}
    assert node.machine.services.need("flanneld").status == "Running"
    node.site.settle(60)
    assert node.differs == []


@pytest.mark.parametrize(
    ("what", "hand"),
    [
        ("AppParameters", regedit(VALUES, "AppParameters", "ExpandString", "--other")),
        pytest.param("AppPriority", regedit(VALUES, "AppPriority", "DWord", 128), marks=pytest.mark.check),
        pytest.param("AppExit", regedit(rf"{VALUES}\AppExit", "", "String", "Exit"), marks=pytest.mark.check),
        ("state", stop("flanneld")),
    ],
)
def test_a_difference_is_reported_and_repaired(node: Node, what: str, hand: Hand):
    node.after(hand)

    assert set(node.look(STEP).differences(STEP)) == {f"service flanneld: {what}"}
    assert node.change(STEP, "kube-proxy").states[STEP] == "changed"
    node.site.settle(60)
    assert node.differs == []


def test_values_of_nssm_that_are_not_ours_stay(node: Node):
    """NSSM has many more than the profile speaks of."""
    node.after(
        regedit(VALUES, "AppTimestampLog", "DWord", 1), regedit(VALUES, "AppStdout", "ExpandString", "x")
    )
    node.change(STEP)

    assert node.registry(VALUES, "AppTimestampLog") == 1


def test_a_stopped_one_without_its_network_waits_for_the_step_that_may_start_it(node: Node):
    node.after(stop("flanneld"), remove_network("cbr0"))

    assert node.look(STEP).states == {STEP: "ok"}
    assert "HNS network cbr0" in node.look("pod-network").differences("pod-network")


def test_one_that_does_not_stay_up_is_reported_with_its_state(node: Node):
    node.undo(STEP)
    node.after(delete(r"C:\k\versions\flannel-0.28.9\flanneld.exe"))

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "ServiceState"
    assert problem.message.startswith("service flanneld ")
    assert "log" in problem.hint
