"""Policies over all namespaces are named where they may be the cause, and missed where they cannot be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.config.scene import a_spec
from winboot.base.errors import ClusterRefused
from winboot.node.probes import Look
from winboot.operations.verify.diagnosis import cause_of
from winboot.operations.verify.scene import NodeScene, PodAt, Scene
from winboot.operations.verify.stage import Stage
from winboot.operations.verify.trials import Outcome, Trial
from winboot.remote.cluster.base import NodeFacts

RULE = {
    "Action": "Block",
    "Direction": "In",
    "Priority": 1000,
    "LocalPorts": "",
    "RemotePorts": "",
    "RemoteAddresses": "",
    "Protocols": "",
}

FACTS = NodeFacts(
    "win-1",
    version="1",
    ready=True,
    reason="",
    message="",
    system_uuid="",
    pod_cidrs=("10.244.1.0/24",),
    labels={},
    annotations={},
    taints=(),
    addresses=(("InternalIP", "10.0.1.11"),),
    kubelet_version="v1.36.5",
    operating_system="windows",
)


class Bench:
    """A cluster with some kinds of policies; other kinds it does not have, or does not show."""

    def __init__(self, **found: Sequence[str]) -> None:
        self._found = found

    def listed(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> Sequence[Any]:
        if kind not in self._found:
            raise ClusterRefused(f"listing {kind}s: not found")
        return [{"metadata": {"name": name}} for name in self._found[kind]]


def a_stage(**found: Sequence[str]) -> Stage:
    return Stage(None, Bench(**found), "run", "me", lambda seconds: False, 10.0)  # type: ignore[arg-type]


def test_policies_over_all_namespaces_are_read_where_they_may_be() -> None:
    stage = a_stage(GlobalNetworkPolicy=["default-deny"], AdminNetworkPolicy=["a", "b"])

    assert stage.cluster_policies() == (
        "AdminNetworkPolicy a",
        "AdminNetworkPolicy b",
        "GlobalNetworkPolicy default-deny",
    )
    assert a_stage().cluster_policies() == ()


def a_node(folder: Path, policies: Sequence[str], acls: Sequence[Mapping[str, Any]]) -> NodeScene:
    endpoint = {"address": "10.244.1.5", "acls": acls, "dns": "", "suffix": ""}
    return NodeScene(
        a_spec(folder),
        FACTS,
        server=PodAt("server-win-1", "10.244.1.5"),
        client=PodAt("client-win-1", "10.244.1.6"),
        look=Look({"endpoints": [endpoint]}),
        policies=policies,
    )


@pytest.mark.parametrize(
    ("acls", "cause", "next_step"),
    [
        ([RULE], "an HNS access list drops what comes in", "GlobalNetworkPolicy default-deny"),
        (
            [],
            "a policy for all namespaces (GlobalNetworkPolicy default-deny)",
            "winboot.io/verify",
        ),
    ],
)
def test_they_are_named_where_an_access_list_drops_or_nothing_else_is_known(
    acls: Sequence[Mapping[str, Any]], cause: str, next_step: str, tmp_path: Path
) -> None:
    policies = ("GlobalNetworkPolicy default-deny",)
    node = a_node(tmp_path, policies, acls)
    scene = Scene("space", [node], everywhere=policies)
    trial = Trial("linux-pod", node, "pod on linux", "pod on win-1", lambda: Outcome(True, ""), to=node)

    found = cause_of(trial, Outcome(False, "no answer", "silent"), scene, {})

    assert found[0].startswith(cause)
    assert next_step in found[1]


@pytest.mark.parametrize(("kind", "overlay"), [("Overlay", True), ("L2Bridge", False)])
def test_a_network_of_another_owner_is_read_from_the_machine(
    kind: str, overlay: bool, tmp_path: Path
) -> None:
    network = {
        "name": "theirs",
        "type": kind,
        "management": "10.0.1.11",
        "router": "",
        "subnets": [],
        "remotes": [],
    }
    spec = a_spec(tmp_path, profile="network: {cni: none, network_name: theirs}")
    node = NodeScene(spec, FACTS, look=Look({"networks": [network]}))
    trial = Trial("linux-pod", node, "pod on linux", "pod on win-1", lambda: Outcome(True, ""), to=node)

    cause, next_step = cause_of(trial, Outcome(False, "no answer", "silent"), Scene("space", [node]), {})

    assert node.overlay is overlay
    assert ("UDP 4789" in cause) is overlay
    assert ("winboot opens no port" in next_step) is overlay
