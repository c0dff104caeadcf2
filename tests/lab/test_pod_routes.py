"""Routes to the pods of other nodes, where winboot makes them: right, renewed, and only with the right to read nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.cluster import ClusterPlan
from winboot_lab.windows.network import Route

from tests.lab.site import NodePlan, Site, differences, only, problems
from winboot.base.errors import InvalidInput
from winboot.remote.manifests import manifest

NODES = "/api/v1/nodes"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def a_site(folder: Path, *, granted: bool = True) -> Site:
    """A bridge whose routes are winboot's; the node may list the others only where that was granted."""
    network = {"cni": "win-bridge", "mode": None, "routes": "winboot"}
    plan = ClusterPlan(flannel=None, grant_nodes=False)
    site = Site(folder, NodePlan("win-1", "2022", "10.0.1.11"), cluster=plan, wishes={"network": network})
    if granted:
        grant(site)
    return site


def grant(site: Site) -> None:
    """Apply the output of `winboot manifests rbac` prints."""
    for one in yaml.safe_load_all(manifest("rbac", site.specs())):
        site.admin("POST", ROLES if one["kind"] == "ClusterRole" else BINDINGS, one)


def add_node(site: Site, name: str, address: str, cidr: str) -> None:
    """Another node of the cluster."""
    spec = {"podCIDR": cidr, "podCIDRs": [cidr]}
    status = {
        "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]
    }
    site.admin("POST", NODES, {"metadata": {"name": name}, "spec": spec, "status": status})


def routes(site: Site) -> dict[str, str]:
    """Where the pods of others are, as the machine sees it."""
    return {r.prefix: r.next_hop for r in site.machine.network.routes if r.prefix.startswith("10.244.")}


@pytest.mark.matrix
def test_every_neighbour_gets_a_route_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    add_node(site, "linux-2", "10.0.0.12", "10.244.50.0/24")

    report = site.join()

    assert (problems(report), only(report).ready) == ([], True)
    assert routes(site)["10.244.50.0/24"] == "10.0.0.12"
    assert differences(site.plan()) == {}
    assert not site.refusals


@pytest.mark.check
def test_routes_follow_the_nodes_that_come_move_and_go(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    for number in (2, 3):
        add_node(site, f"linux-{number}", f"10.0.0.1{number}", f"10.244.5{number}.0/24")
    site.join()

    site.admin("DELETE", f"{NODES}/linux-2")
    add_node(site, "linux-4", "10.0.0.14", "10.244.54.0/24")
    index = next(a.index for a in site.machine.network.adapters if a.name == "vEthernet (Ethernet)")
    (wrong,) = [r for r in site.machine.network.routes if r.prefix == "10.244.53.0/24"]
    site.machine.network.remove_route(wrong)
    site.machine.network.add_route(Route("10.244.53.0/24", "10.0.0.99", index))
    plan = site.plan()
    site.join(drain=True)

    assert differences(plan) == {
        "pod-routes": ["route to 10.244.53.0/24", "route to 10.244.54.0/24", "route to 10.244.52.0/24"]
    }
    found = routes(site)
    assert found["10.244.53.0/24"] == "10.0.0.13"
    assert found["10.244.54.0/24"] == "10.0.0.14"
    assert "10.244.52.0/24" not in found


@pytest.mark.matrix
def test_a_node_behind_a_router_is_that_routers_business(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    add_node(site, "far", "10.9.0.12", "10.244.60.0/24")

    report = site.join()

    notices: list[Any] = [d for step in only(site.plan()).steps for d in step.differences if d.policy]
    assert (problems(report), differences(site.plan())) == ([], {})
    assert ("route to 10.244.60.0/24", "by a router: far is in another network") in [
        (d.what, d.want) for d in notices
    ]
    assert "10.244.60.0/24" not in routes(site)


@pytest.mark.matrix
def test_without_the_right_to_list_nodes_the_step_says_which_binding_is_missing(tmp_path: Path) -> None:
    site = a_site(tmp_path, granted=False)

    report = site.join()

    assert any("NodesForbidden" in one and "winboot manifests rbac" in one for one in problems(report))


@pytest.mark.parametrize("cni", ["flannel", "win-overlay"])
def test_no_other_network_leaves_its_routes_to_winboot(cni: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        Site(tmp_path, wishes={"network": {"cni": cni, "mode": None, "routes": "winboot"}})

    assert "makes the routes itself" in "\n".join(map(str, refused.value.problems))
