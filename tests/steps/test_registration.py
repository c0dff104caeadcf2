"""The machine is a Node with its certificates and its pod network; the report names each missing part and its provider."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.lab.actions import (
    CLIENT,
    PKI,
    Hand,
    all_of,
    delete,
    delete_node,
    kubeconfig,
    patch_status,
    sc,
    stop,
    write,
)
from tests.lab.site import Site
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


def test_a_node_with_another_owner_of_ipam_needs_no_pod_cidr(joined: Callable[[str], Node]):
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


def test_a_node_of_another_machine_is_reported(node: Node):
    node.after(patch_status({"nodeInfo": {"systemUUID": "00000000-0000-0000-0000-000000000000"}}))

    is_, want = node.look(STEP).differences(STEP)["node win-1: machine"]

    assert is_ == "00000000-0000-0000-0000-000000000000"
    assert want != is_


def test_while_another_version_is_only_wanted_the_kubectl_that_is_there_is_asked(node: Node):
    """A plan of an upgrade said that the node was to be registered, and its pod network to be made again."""
    wanted = r"C:\k\versions\kubectl-1.99.0\kubectl.exe"
    node.spec = replace(node.spec, paths=replace(node.spec.paths, kubectl=wanted))

    assert node.look(STEP).differences(STEP) == {}


def pause(*controllers: str) -> Hand:
    """Controllers of the cluster do nothing any more."""
    return lambda site: site.cluster.controllers.paused.update(controllers)


OLD_ADDRESSES = [{"type": "InternalIP", "address": "10.9.9.9"}, {"type": "Hostname", "address": "win-1"}]


def kubelet_for(address: str) -> Hand:
    """The kubelet runs with the address that the machine had before."""

    def hand(site: Site) -> None:
        line = site.machine.services.need("kubelet").image_path
        old = re.sub(r"--node-ip=[\d.]+", f"--node-ip={address}", line)
        assert old != line
        sc("config", "kubelet", "binPath=", old)(site)
        stop("kubelet")(site)
        sc("start", "kubelet")(site)

    return hand


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
        pytest.param(
            all_of(kubelet_for("10.9.9.9"), delete_node, delete(SERVING)),
            "NoNodeAddress",
            "the Node has no address, so the kubelet requests no serving certificate",
            "node_ip",
            marks=pytest.mark.check,
        ),
        (
            all_of(kubelet_for("10.9.9.9"), patch_status({"addresses": OLD_ADDRESSES})),
            "OtherNodeAddress",
            "the Node has the address 10.9.9.9, not 10.0.1.11",
            "has changed",
        ),
    ],
    ids=["no certificate", "no serving certificate", "no pod CIDR", "no Node", "no address", "old address"],
)
def test_a_missing_part_is_reported_with_its_provider(
    node: Node, hand: Hand, id_: str, message: str, hint: str
):
    node.after(hand)

    problem = node.change(STEP, secrets={}).problem(STEP)

    assert (problem.id, "not there after 400 seconds: " in problem.message) == (id_, True)
    assert message in problem.message
    assert hint in problem.hint


@pytest.mark.check
def test_a_token_that_is_refused_ends_the_kubelet_and_the_next_run_brings_another(node: Node):
    """The kubelet ends by itself after five minutes (kubernetes, pkg/kubelet/certificate/transport.go), within one wait."""
    node.after(all_of(stop("kubelet"), delete(CLIENT), delete_node))
    steps = ("kubelet-credentials", "kubelet", STEP)

    problem = node.change(*steps, secrets={"bootstrap-token": "abcdef.0123456789abcdef"}).problem(STEP)
    log = node.site.machine.files.text(r"C:\var\log\kubelet\kubelet.log")

    assert (problem.id, problem.hint.startswith("If the message names the machine's clock")) == (
        "NoClientCertificate",
        True,
    )
    ended = log.index("No valid client certificate is found and the server is responsive, exiting.")
    assert "Kubelet version" in log[ended:]
    assert node.change(*steps).states == dict.fromkeys(steps, "changed")
    assert node.look(*steps).states == dict.fromkeys(steps, "ok")
