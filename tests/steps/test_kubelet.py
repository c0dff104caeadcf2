"""The service of the kubelet: its flags, what it depends on, how it comes back after a crash, and its log."""

from __future__ import annotations

import pytest

from tests.lab.actions import SERVICES, Hand, regedit, sc, stop, unset
from tests.steps.bench import Bench
from tests.steps.nodes import Node

STEP = "kubelet"
KEY = rf"{SERVICES}\kubelet"
ABOVE = ("flanneld", "kube-proxy")
PARTS = ("command line", "start type", "depends on", "account", "environment", "recovery", "state")


def test_a_bare_machine_has_no_such_service(bench: Bench):
    found = bench.look(STEP).differences(STEP)

    assert set(found) == {f"service kubelet: {part}" for part in PARTS}
    assert found["service kubelet: depends on"] == (None, "containerd")
    assert found["service kubelet: recovery"][1] == "restart/10000 restart/30000 restart/60000 reset=900"


@pytest.mark.parametrize(
    "words",
    [
        "--windows-service=true",
        "--node-ip=10.0.0.21",
        "--hostname-override=win-a1",
        "-redirect-stderr=true",
        r"-log-file=C:\var\log\kubelet\kubelet.log",
        r"--cert-dir=C:\var\lib\kubelet\pki",
    ],
)
def test_its_command_line_has_what_a_windows_node_needs(bench: Bench, words: str):
    line = bench.look(STEP).differences(STEP)["service kubelet: command line"][1] or ""

    assert words in line.split(" ")


def test_it_is_registered_and_started_once_removed_and_made_again(node: Node):
    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.machine.services.find("kubelet") is None
    assert set(node.look(STEP).differences(STEP)) == {f"service kubelet: {part}" for part in PARTS}
    assert node.change(STEP, *ABOVE).states == {STEP: "changed", **dict.fromkeys(ABOVE, "changed")}
    assert node.change(STEP, *ABOVE).states == {STEP: "ok", **dict.fromkeys(ABOVE, "ok")}
    node.site.settle(60)
    assert node.differs == []


@pytest.mark.parametrize(
    ("part", "is_", "hand"),
    [
        ("start type", "demand", sc("config", "kubelet", "start=", "demand")),
        pytest.param(
            "start type", "disabled", sc("config", "kubelet", "start=", "disabled"), marks=pytest.mark.check
        ),
        ("depends on", "", sc("config", "kubelet", "depend=", "/")),
        pytest.param(
            "recovery",
            " reset=0",
            sc("failure", "kubelet", "reset=", "0", "actions=", ""),
            marks=pytest.mark.check,
        ),
        pytest.param(
            "recovery after a stop with an error",
            "1",
            sc("failureflag", "kubelet", "1"),
            marks=pytest.mark.check,
        ),
        pytest.param(
            "environment",
            "A=b",
            regedit(KEY, "Environment", "MultiString", ["A=b"]),
            marks=pytest.mark.check,
        ),
    ],
)
def test_each_part_of_its_definition_is_compared_and_put_right(node: Node, part: str, is_: str, hand: Hand):
    node.after(hand)
    told = node.look(STEP)

    assert {what: found[0] for what, found in told.differences(STEP).items()} == {
        f"service kubelet: {part}": is_
    }
    assert node.change(STEP, *ABOVE).states[STEP] == "changed"
    node.site.settle(60)
    assert node.differs == []


@pytest.mark.parametrize(
    ("part", "is_", "hand"),
    [
        ("start type", "2 (as String, not DWord)", regedit(KEY, "Start", "String", "2")),
        ("recovery", "01 (no Binary)", regedit(KEY, "FailureActions", "String", "01")),
        (
            "recovery after a stop with an error",
            "no (as String, not DWord)",
            regedit(KEY, "FailureActionsOnNonCrashFailures", "String", "no"),
        ),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_its_service_and_put_right(
    node: Node, part: str, is_: str, hand: Hand
):
    """The control manager does not read it."""
    node.after(hand)

    assert {what: found[0] for what, found in node.look(STEP).differences(STEP).items()} == {
        f"service kubelet: {part}": is_
    }
    assert node.change(STEP, *ABOVE).states[STEP] == "changed"
    assert node.change(STEP, *ABOVE).states[STEP] == "ok"


def test_a_stopped_kubelet_is_started(node: Node):
    node.after(stop("kubelet"))

    assert set(node.look(STEP).differences(STEP)) == {"service kubelet: state"}
    assert node.change(STEP, *ABOVE).states[STEP] == "changed"
    node.site.settle(60)
    assert node.differs == []


def test_a_kubelet_that_dies_again_and_again_is_no_running_one(node: Node):
    node.after(stop("kubelet"))
    node.machine.faults.dies("kubelet", times=99)

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "ServiceState"
    assert problem.message.startswith("service kubelet ")
    assert "log" in problem.hint


def test_values_of_others_in_its_key_stay(node: Node):
    node.after(regedit(KEY, "Monitoring", "String", "agent 7"), sc("config", "kubelet", "start=", "demand"))
    node.change(STEP)

    assert node.registry(KEY, "Monitoring") == "agent 7"
    node.after(unset(KEY, "Monitoring"))
