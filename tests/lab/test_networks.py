"""Every network solution joins, under both service managers, on every release that has it; and what is wrong shows why.

The last part takes away or falsifies one thing of each solution in the script that runs. Winboot then believes in it,
so only the node itself can tell: it must not become Ready, and somewhere the true reason must stand.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.lab.site import NodePlan, Site, differences, only, problems
from winboot.errors import InvalidInput
from winboot.lab.cluster import ClusterPlan
from winboot.lab.programs import hcn
from winboot.lab.windows.programs_api import image_bytes

MANAGERS: Final = ("sc", "nssm")
RELEASES: Final = ("2019", "2022", "2025")
OVERLAY: Final = {"Type": "vxlan", "VNI": 4096, "Port": 4789}
SOMEBODYS_CONF: Final = """{"name": "corp", "cniVersion": "1.0.0", "plugins": [{"type": "win-bridge", "apiVersion": 2,
"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24", "rangeStart": "10.77.0.3"}]]}}]}"""


@dataclass(frozen=True)
class Solution:
    """One solution as a profile names it. `pods` is the network that a pod's address must be in; `somebody` does on
    the machine what the solution's owner does there."""

    name: str
    network: Mapping[str, Any]
    cluster: Callable[[], ClusterPlan] = lambda: ClusterPlan(flannel=None)
    wishes: Mapping[str, Any] = field(default_factory=dict)
    pods: str = "10.244.1.0/24"
    releases: tuple[str, ...] = RELEASES
    somebody: Callable[[Site], None] | None = None
    services: tuple[str, ...] = ("containerd", "kubelet", "kube-proxy")


def _dual() -> ClusterPlan:
    return ClusterPlan(
        flannel=None,
        pod_cidrs=("10.244.0.0/16", "fd00:10:244::/56"),
        service_cidrs=("10.96.0.0/12", "fd00:10:96::/112"),
    )


def _calico_services(site: Site) -> None:
    """What a person's Calico services do: networks, endpoint and plug-ins, but no configuration."""
    machine = site.machine
    subnet = ipaddress.ip_network(site.node()["spec"]["podCIDR"])
    for name, prefix, gateway, vsid in (
        ("External", "192.168.255.0/30", "192.168.255.1", 9999),
        ("Calico", str(subnet), str(subnet[1]), 4096),
    ):
        found = hcn.network(machine, name)
        if found is None:
            policies = [{"Type": "VSID", "VSID": vsid}]
            subnets = [{"AddressPrefix": prefix, "GatewayAddress": gateway, "Policies": policies}]
            hcn.call(machine, "POST", "/networks/", {"Name": name, "Type": "Overlay", "Subnets": subnets})
            return
        if not found["ManagementIP"]:
            return
    if hcn.endpoint(machine, "Calico_ep") is None:
        network = hcn.network(machine, "Calico")
        assert network is not None
        request = {"Name": "Calico_ep", "VirtualNetwork": network["ID"], "IPAddress": str(subnet[2])}
        made = hcn.call(machine, "POST", "/endpoints/", {**request, "GatewayAddress": "0.0.0.0"})
        host = {"SystemType": "Host", "CompartmentId": 1}
        hcn.call(machine, "POST", f"/endpoints/{made['ID']}/attach", host)
    for name in ("calico", "calico-ipam"):
        machine.files.write(rf"C:\opt\cni\bin\{name}.exe", image_bytes(name, "3.32.0"))


def _somebodys_bridge(site: Site) -> None:
    """A network solution that winboot knows nothing of."""
    machine = site.machine
    network = hcn.network(machine, "corp")
    if network is None:
        subnets = [{"AddressPrefix": "10.77.0.0/24", "GatewayAddress": "10.77.0.1"}]
        hcn.call(machine, "POST", "/networks/", {"Name": "corp", "Type": "L2Bridge", "Subnets": subnets})
    elif network["ManagementIP"]:
        for name in ("win-bridge", "host-local"):
            machine.files.write(rf"C:\opt\cni\bin\{name}.exe", image_bytes(name, "1.7.1"))
        machine.files.write(r"C:\etc\cni\net.d\10-corp.conflist", SOMEBODYS_CONF.encode())


def _watch(site: Site, work: Callable[[Site], None]) -> None:
    """Somebody comes to the machine once it is a node, and every few seconds after that."""

    def look() -> None:
        site.machine.after(3.0, look, lasting=True)
        nodes = site.admin("GET", "/api/v1/nodes")["items"]
        running = site.machine.services.find("hns")
        if (
            running is not None
            and running.status == "Running"
            and any(n["metadata"]["name"] == "win-1" for n in nodes)
        ):
            work(site)

    site.machine.after(3.0, look, lasting=True)


SOLUTIONS: Final = (
    Solution(
        "flannel-host-gw",
        {"cni": "flannel", "mode": "host-gw"},
        ClusterPlan,
        services=("containerd", "kubelet", "flanneld", "kube-proxy"),
    ),
    Solution(
        "flannel-vxlan",
        {"cni": "flannel", "mode": "vxlan"},
        lambda: ClusterPlan(flannel=OVERLAY),
        services=("containerd", "kubelet", "flanneld", "kube-proxy"),
    ),
    Solution("win-bridge", {"cni": "win-bridge"}),
    Solution("win-bridge-dual", {"cni": "win-bridge"}, _dual, releases=("2022", "2025")),
    Solution("win-overlay", {"cni": "win-overlay"}),
    Solution(
        "azure",
        {"cni": "azure", "mode": "bridge"},
        wishes={"artifacts": {"azure_cni": "1.6.18"}},
        pods="10.0.0.0/16",
    ),
    Solution(
        "azure-tunnel",
        {"cni": "azure", "mode": "tunnel"},
        wishes={"artifacts": {"azure_cni": "1.6.18"}},
        pods="10.0.0.0/16",
    ),
    Solution(
        "calico",
        {"cni": "calico", "managed_by": "operator"},
        lambda: ClusterPlan(flannel=None, calico=True),
        services=("containerd", "kubelet"),
    ),
    Solution("calico-services", {"cni": "calico", "managed_by": "winboot"}, somebody=_calico_services),
    Solution(
        "none",
        {"cni": "none"},
        wishes={"kube_proxy": {"managed_by": "operator"}},
        pods="10.77.0.0/24",
        somebody=_somebodys_bridge,
        services=("containerd", "kubelet"),
    ),
    Solution(
        "none-with-kube-proxy",
        {"cni": "none", "network_name": "corp"},
        pods="10.77.0.0/24",
        somebody=_somebodys_bridge,
    ),
)
BY_NAME: Final = {one.name: one for one in SOLUTIONS}


def a_site(folder: Path, solution: Solution, *, release: Any = "2022", **wishes: Any) -> Site:
    """A bare machine and a cluster for a solution."""
    network = {"mode": None, **solution.network}
    site = Site(
        folder,
        NodePlan("win-1", release, "10.0.1.11"),
        cluster=solution.cluster(),
        wishes={**solution.wishes, "network": network, **wishes},
    )
    if solution.somebody is not None:
        _watch(site, solution.somebody)
    return site


def joined(folder: Path, solution: Solution, **more: Any) -> Site:
    """A site whose node is Ready."""
    site = a_site(folder, solution, **more)
    report = site.join()
    assert not problems(report), problems(report)
    assert only(report).ready
    return site


def run_pod(site: Site, name: str) -> Any:
    """Put a pod on the node and let it come up."""
    pods = "/api/v1/namespaces/default/pods"
    site.admin("POST", pods, {"metadata": {"name": name}, "spec": {"nodeName": "win-1", "containers": []}})
    site.settle(30)
    return site.admin("GET", f"{pods}/{name}")["status"]


def _combinations() -> Iterator[Any]:
    for solution in SOLUTIONS:
        for release in solution.releases:
            for manager in MANAGERS:
                yield pytest.param(solution, manager, release, id=f"{solution.name}-{manager}-{release}")


@pytest.mark.parametrize(("solution", "manager", "release"), _combinations())
def test_a_bare_machine_becomes_a_ready_node_and_a_second_run_changes_nothing(
    solution: Solution, manager: str, release: str, tmp_path: Path
) -> None:
    site = joined(tmp_path, solution, release=release, services={"manager": manager})

    pod = run_pod(site, "web")
    again = site.join()

    assert pod["phase"] == "Running"
    assert ipaddress.ip_address(pod["podIP"]) in ipaddress.ip_network(solution.pods)
    assert (differences(again), problems(again), only(again).pipelines) == ({}, [], 1)
    running = [one for one in solution.services if site.machine.services.need(one).status == "Running"]
    assert running == list(solution.services)
    assert not site.refusals


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda one: one.name)
def test_a_restart_costs_nothing_that_has_to_be_repaired(solution: Solution, tmp_path: Path) -> None:
    site = joined(tmp_path, solution)
    run_pod(site, "before")

    site.machine.reboot()
    site.settle(600)
    plan = site.plan()
    pod = run_pod(site, "after")

    assert (differences(plan), problems(plan)) == ({}, [])
    assert (only(plan).ready, pod["phase"]) == (True, "Running")
    assert not site.refusals


@pytest.mark.parametrize("cni", ["win-overlay", "flannel"])
def test_an_overlay_carries_no_ipv6(cni: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        Site(tmp_path, cluster=_dual(), wishes={"network": {"cni": cni, "mode": None}})

    assert "carries IPv4 alone" in "\n".join(refused.value.problems)
