"""Labels and taints of the Node: the controller keeps them as the profile says, through the Kubernetes API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.lab.actions import delete_node, patch_node, taints
from tests.lab.site import Site, only
from tests.steps.nodes import Node
from winboot.report.results import StepReport
from winboot.script.steps import STEPS
from winboot.script.steps.node_labels import NODE_LABELS

STEP = "node-labels"
NOTE = "winboot.io/owned"


def look(node: Node) -> StepReport:
    """`winboot plan --only node-labels`."""
    return step(only(node.site.controller().plan(only=(STEP,))))


def change(node: Node) -> StepReport:
    """`winboot join --only node-labels`."""
    return step(only(node.site.join(only=(STEP,))))


def step(report: Any) -> StepReport:
    return next(one for one in report.steps if one.name == STEP)


def whats(told: StepReport) -> dict[str, tuple[str | None, str | None]]:
    return {one.what: (one.is_, one.want) for one in told.differences}


def test_it_is_done_by_the_controller_and_has_no_template():
    assert (NODE_LABELS.side, NODE_LABELS in STEPS) == ("cluster", True)


def test_before_there_is_a_node_all_of_them_are_still_to_come(node: Node):
    node.after(delete_node)

    told = look(node)

    assert told.state == "would-change"
    assert whats(told) == {
        "node label pool": (None, "windows"),
        "node taint os:NoSchedule": (None, "os=windows:NoSchedule"),
    }


def label(value: str | None) -> Mapping[str, Any]:
    return {"metadata": {"labels": {"pool": value}}}


def untaint(site: Site) -> None:
    patch_node({"spec": {"taints": [one for one in taints(site) if one["key"] != "os"] or None}})(site)


@pytest.mark.parametrize(
    ("hand", "found"),
    [
        (patch_node(label(None)), {"node label pool": (None, "windows")}),
        pytest.param(
            patch_node(label("linux")), {"node label pool": ("linux", "windows")}, marks=pytest.mark.check
        ),
        pytest.param(
            untaint, {"node taint os:NoSchedule": (None, "os=windows:NoSchedule")}, marks=pytest.mark.check
        ),
    ],
    ids=["label gone", "another value", "taint gone"],
)
def test_a_difference_is_reported_and_put_back_once(
    node: Node, hand: Any, found: dict[str, tuple[str | None, str | None]]
):
    node.after(hand)

    assert whats(look(node)) == found
    assert change(node).state == "changed"
    assert change(node).state == "ok"
    assert node.differs == []


def test_those_of_others_stay(node: Node):
    theirs = {"key": "maintenance", "value": "tonight", "effect": "NoSchedule"}
    node.after(
        patch_node({"metadata": {"labels": {"team": "blue"}}}),
        lambda site: patch_node({"spec": {"taints": [*taints(site), theirs]}})(site),
        patch_node(label(None)),
    )

    assert set(whats(look(node))) == {"node label pool"}
    change(node)

    assert node.node_object["metadata"]["labels"]["team"] == "blue"
    assert theirs in node.node_object["spec"]["taints"]


def test_one_that_the_profile_no_longer_names_goes_because_the_node_says_whose_it_was(node: Node):
    noted = json.loads(node.node_object["metadata"]["annotations"][NOTE])
    noted["labels"] = sorted([*noted["labels"], "old"])
    node.after(patch_node({"metadata": {"labels": {"old": "yes"}, "annotations": {NOTE: json.dumps(noted)}}}))

    assert whats(look(node))["node label old"] == ("yes", None)
    assert change(node).state == "changed"
    assert node.differs == []


def test_an_unreadable_note_costs_no_label(node: Node):
    node.after(patch_node({"metadata": {"labels": {"team": "blue"}, "annotations": {NOTE: "{"}}}))

    assert set(whats(look(node))) == {f"node annotation {NOTE}"}
    change(node)

    assert node.node_object["metadata"]["labels"]["team"] == "blue"
