"""The machine is a Node with its certificates and its pod network; what is missing is told with who has to give it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.lab.hands import (
    CLIENT,
    PKI,
    Hand,
    all_of,
    delete,
    delete_node,
    kubeconfig,
    patch_status,
    stop,
    write,
)
from tests.steps.bench import Bench
from tests.steps.nodes import Node

STEP = "registration"
BOOTSTRAP = r"C:\k\bootstrap-kubeconfig"
SERVING = rf"{PKI}\kubelet-server-current.pem"


def test_a_bare_machine_is_no_node(bench: Bench):
    assert bench.look(STEP).differences(STEP) == {
        "node win-a1: registered": (None, "yes"),
        "node win-a1: pod CIDR": (None, "(known after join)"),
        "kubelet serving certificate": (None, "issued by the cluster"),
    }


def test_a_node_whose_ipam_is_somebody_elses_needs_no_pod_cidr(joined: Callable[[str], Node]):
    node = joined("operator").after(delete_node)

    assert set(node.look(STEP).differences(STEP)) == {"node win-1: registered"}


@pytest.mark.parametrize(
    ("hand", "whats"),
    [
        (delete_node, {"node win-1: registered", "node win-1: pod CIDR"}),
        pytest.param(delete(SERVING), {"kubelet serving certificate"}, marks=pytest.mark.check),
        pytest.param(
            write(BOOTSTRAP, "token"), {rf"file {BOOTSTRAP}: no longer needed"}, marks=pytest.mark.check
        ),
    ],
    ids=["the Node is deleted", "the serving certificate is gone", "a token that did its duty"],
)
def test_what_is_missing_is_waited_for_until_it_is_there(node: Node, hand: Hand, whats: set[str]):
    node.after(hand)

    assert set(node.look(STEP).differences(STEP)) == whats
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.look(STEP).states == {STEP: "ok"}
    assert node.file(BOOTSTRAP) is None


def test_an_undo_leaves_the_node_to_the_cluster(node: Node):
    assert node.undo(STEP).states == {STEP: "ok"}
    assert node.node_object is not None
    assert node.differs == []


def test_a_node_of_another_machine_is_told(node: Node):
    node.after(patch_status({"nodeInfo": {"systemUUID": "00000000-0000-0000-0000-000000000000"}}))

    is_, want = node.look(STEP).differences(STEP)["node win-1: machine"]

    assert is_ == "00000000-0000-0000-0000-000000000000"
    assert want != is_


def test_while_another_version_is_only_wanted_the_kubectl_that_is_there_is_asked(node: Node):
    """A plan of an upgrade said that the node was to be registered, and its pod network to be made anew."""
    wanted = r"C:\k\versions\kubectl-1.99.0\kubectl.exe"
    node.spec = replace(node.spec, paths=replace(node.spec.paths, kubectl=wanted))

    assert node.look(STEP).differences(STEP) == {}


def pause(*controllers: str) -> Hand:
    """Controllers of the cluster do nothing any more."""
    return lambda site: site.cluster.controllers.paused.update(controllers)


def _elsewhere(data: dict[str, Any]) -> None:
    data["clusters"][0]["cluster"]["server"] = "https://10.9.9.9:6443"


@pytest.mark.check
@pytest.mark.parametrize(
    ("hand", "id_", "message", "hint"),
    [
        pytest.param(
            all_of(stop("kubelet"), delete(CLIENT), delete_node),
            "NoClientCertificate",
            "node win-1: registered",
            "CSR",
            marks=pytest.mark.matrix,
        ),
        (
            all_of(pause("csrsigning"), delete(SERVING)),
            "ServingCsrPending",
            "serving certificate",
            "approves",
        ),
        pytest.param(
            all_of(pause("nodeipam"), delete_node),
            "NoPodCidr",
            "pod CIDR",
            "--allocate-node-cidrs",
            marks=pytest.mark.matrix,
        ),
        (kubeconfig(_elsewhere), "NotRegistered", "registered", "kubelet log"),
    ],
    ids=["no certificate", "no serving certificate", "no pod CIDR", "no Node"],
)
def test_what_does_not_come_is_told_with_who_has_to_give_it(
    node: Node, hand: Hand, id_: str, message: str, hint: str
):
    node.after(hand)

    problem = node.change(STEP, secrets={}).problem(STEP)

    assert (problem.id, problem.message.startswith("not there after 300 seconds: ")) == (id_, True)
    assert message in problem.message
    assert hint in problem.hint
