"""On a healthy pair of every shipped profile all flows pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from winboot_lab.up import NodePlan
from winboot_lab.windows.firewall import FirewallRule

from tests.lab.scenes import SCENES, Scene, all_profiles
from tests.lab.site import Site, problems
from winboot.operations.verify import Options, verify
from winboot.operations.verify.flows import IDS


def nothing(site: Site) -> None:
    """The profile has all that its network needs."""


def remote_subnets(site: Site) -> None:
    """The agent's policies for an overlay without an agent of its own: a policy of the network for each other node, as
    flanneld does (flannel-io/flannel pkg/backend/vxlan/vxlan_network_windows.go, hcn.RemoteSubnetRoutePolicySetting)."""
    cidrs = {one["metadata"]["name"]: one for one in site.admin("GET", "/api/v1/nodes")["items"]}
    for name, machine in site.machines.items():
        network = next(
            one for one in machine.hns.networks.values() if one["Type"] == "Overlay" and one["Subnets"]
        )
        for other, node in cidrs.items():
            if other != name and str(network["Name"]).lower() != "external":
                address = next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP")
                route = {
                    "DestinationPrefix": node["spec"]["podCIDR"],
                    "ProviderAddress": address,
                    "IsolationId": 4096,
                }
                network["Policies"].append({"Type": "RemoteSubnetRoute", **route})


def opens_vxlan(site: Site) -> None:
    """The owner of an overlay opens its port, too (Calico's network requirements: VXLAN, UDP 4789, both ways)."""
    for machine in site.machines.values():
        rule = FirewallRule("calico-vxlan", "Calico VXLAN", protocol="UDP", local_ports=["4789"])
        machine.firewall.save(rule)


Release = Literal["2019", "2022", "2025"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A shipped profile: what is laid over it, what its network's owner does on the machines, and which releases join."""

    profile: str
    wishes: Mapping[str, Any] = field(default_factory=dict)
    agent: Callable[[Site], None] = nothing
    prepare: Callable[[Site], None] = nothing
    releases: tuple[Release, Release] = ("2022", "2025")
    # Settings of its cluster that the profile does not contain.
    cluster: Mapping[str, Any] = field(default_factory=dict)
    # Over VXLAN a node reaches only its own pods: a limitation that is named.
    unasked: frozenset[str] = frozenset({"node-pod-remote"})


KINDS: Final = (
    Kind("minimal"),
    Kind("flannel-host-gw"),
    Kind("flannel-vxlan"),
    Kind("ltsc-2019", releases=("2019", "2019")),
    Kind("win-bridge", wishes={"network": {"routes": "winboot"}}),
    Kind("win-overlay", agent=remote_subnets),
    Kind("azure"),
    Kind("calico", cluster={"kube_proxy_pods": True}),
    Kind("calico-node"),
    Kind("calico-services", prepare=SCENES["installed by hand"].prepare),
    # The administrator maintains the network: here with Calico's operator and the DaemonSet of sig-windows-tools.
    Kind(
        "none",
        agent=opens_vxlan,
        # Another owner's program carries services, too.
        unasked=frozenset({"node-pod-remote", "node-services-in-hns"}),
        cluster={"calico": True, "kube_proxy_pods": True, "allocates": False},
    ),
)


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS, ids=[one.profile for one in KINDS])
def test_all_flows_of_a_healthy_pair_pass(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(profile=kind.profile)
    plans = [NodePlan(f"win-{n}", release, f"10.0.1.{10 + n}") for n, release in enumerate(kind.releases, 1)]
    cluster = replace(scene.cluster(), **kind.cluster)
    site = Site(
        tmp_path, *plans, profile=scene.file, cluster=cluster, wishes=kind.wishes, prepare=kind.prepare
    )
    joined = site.join()
    assert not problems(joined), problems(joined)
    site.settle(60)
    kind.agent(site)

    report = verify(site.specs(), site.controller().context, Options(workers=1))

    assert [row for row in report.rows if row.state not in ("passed", "limitation")] == []
    passed = {row.flow for row in report.rows if row.state == "passed"}
    assert passed >= set(IDS) - kind.unasked
    assert site.refusals == []


def test_every_shipped_profile_is_tried() -> None:
    """But for two: the lab has no model of Open vSwitch, and its Linux nodes have no part in OVN-Kubernetes' overlay."""
    assert {kind.profile for kind in KINDS} == set(all_profiles()) - {"antrea", "ovn-hybrid"}
