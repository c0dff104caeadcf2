"""On a healthy pair of every shipped profile all flows pass.

Not here: `calico` and `none`, whose network and kube-proxy come in HostProcess pods that the lab does not have, or has in
part: flows to services fail there, with that cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from winboot_lab.up import NodePlan

from tests.lab.scenes import Scene
from tests.lab.site import Site, problems
from winboot.operations.verify import Options, verify


def nothing(site: Site) -> None:
    """The profile has all that its network needs."""


def remote_subnets(site: Site) -> None:
    """What somebody's agent writes for an overlay without one of its own: a policy of the network for each other node, as
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


Profile = tuple[str, Mapping[str, Any], Callable[[Site], None]]
PROFILES: Final[tuple[Profile, ...]] = (
    ("flannel-host-gw", {}, nothing),
    ("flannel-vxlan", {}, nothing),
    ("win-bridge", {"network": {"routes": "winboot"}}, nothing),
    ("win-overlay", {}, remote_subnets),
    ("azure", {}, nothing),
)


@pytest.mark.matrix
@pytest.mark.parametrize(("profile", "wishes", "agent"), PROFILES, ids=[one[0] for one in PROFILES])
def test_all_flows_of_a_healthy_pair_pass(
    profile: str, wishes: Mapping[str, Any], agent: Callable[[Site], None], tmp_path: Path
) -> None:
    scene = Scene(profile=profile)
    plans = NodePlan("win-1", "2022", "10.0.1.11"), NodePlan("win-2", "2025", "10.0.1.12")
    site = Site(tmp_path, *plans, profile=scene.file, cluster=scene.cluster(), wishes=wishes)
    joined = site.join()
    assert not problems(joined), problems(joined)
    site.settle(60)
    agent(site)

    report = verify(site.specs(), site.controller().context, Options(workers=1))

    assert [row for row in report.rows if row.state not in ("passed", "limitation")] == []
