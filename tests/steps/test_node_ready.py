"""With a bootstrap token alone, the machine itself waits until its Node is Ready."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab.actions import sc, stop
from tests.steps.nodes import Node
from winboot.config.profile.reference import Reference

STEP = "node-ready"
WHAT = "node win-1: Ready"


@pytest.fixture
def alone(node: Node) -> Node:
    """A joined node whose profile names no kubeconfig."""
    cluster = replace(node.spec.cluster, kubeconfig=None, bootstrap_token=Reference(env="TOKEN"))
    node.spec = replace(node.spec, cluster=cluster)
    return node


def test_a_ready_node_is_left_alone(alone: Node) -> None:
    assert alone.look(STEP).states == {STEP: "ok"}
    assert alone.undo(STEP).states == {STEP: "ok"}
    assert alone.differs == []


def test_a_node_that_lost_its_kubelet_is_waited_for(alone: Node) -> None:
    alone.after(stop("kubelet"))
    alone.site.settle(120)

    assert alone.look(STEP).differences(STEP) == {WHAT: ("Unknown", "True")}
    assert alone.run(STEP).problem(STEP).id == "NodeNotReady"
    alone.after(sc("start", "kubelet"))
    assert alone.change(STEP).states == {STEP: "changed"}
    assert alone.look(STEP).states == {STEP: "ok"}
