"""Nodes that run Docker: dockershim up to 1.23, cri-dockerd from 1.24 on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from winboot_lab.cluster import ClusterPlan
from winboot_lab.programs import hcn
from winboot_lab.up import NodePlan

from tests.lab.site import Site, differences, problems
from winboot.operations.verify import Options, verify
from winboot.operations.verify.flows import IDS, WORKLOADS

PODS: Final = "10.244.0.0/16"
NETWORKS: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "flannel-host-gw": ({"cni": "flannel", "mode": "host-gw"}, {"flannel": {"Type": "host-gw"}}),
    "flannel-vxlan": (
        {"cni": "flannel", "mode": "vxlan"},
        {"flannel": {"Type": "vxlan", "VNI": 4096, "Port": 4789}},
    ),
    "win-bridge": ({"cni": "win-bridge", "mode": None}, {"flannel": None}),
    "win-overlay": ({"cni": "win-overlay", "mode": None}, {"flannel": None}),
}
# No option of the command names a share or a StorageClass.
OF_ONE_NODE: Final = Options(flows=frozenset(IDS) - frozenset(WORKLOADS))
VERSIONS: Final = ("1.19.16", "1.23.17", "1.30.14")
# A whole join in each run, the other pairs each night.
SAMPLE: Final = (("1.23.17", "flannel-host-gw"),)
PAIRS: Final = [
    pytest.param(version, network, marks=() if (version, network) in SAMPLE else (pytest.mark.nightly,))
    for version in VERSIONS
    for network in NETWORKS
]


def docker_site(folder: Path, version: str, network: str = "flannel-host-gw") -> Site:
    """A bare machine of Windows Server 2019 and a profile with Docker."""
    wanted, cluster = NETWORKS[network]
    return Site(
        folder,
        NodePlan("win-1", "2019", "10.0.1.11"),
        cluster=ClusterPlan(version=version, **cluster),
        wishes={"runtime": {"name": "docker"}, "network": wanted},
    )


@pytest.mark.parametrize(("version", "network"), PAIRS)
def test_a_node_of_docker_joins_is_right_at_once_and_goes_without_a_trace(
    version: str, network: str, tmp_path: Path
) -> None:
    site = docker_site(tmp_path, version, network)

    report = site.join()

    assert problems(report) == []
    info = site.node()["status"]["nodeInfo"]
    assert info["containerRuntimeVersion"].startswith("docker://")
    assert info["kubeletVersion"] == f"v{version}"
    again = site.join()
    assert (problems(again), differences(again)) == ([], {})
    assert hcn.network(site.machine, "host") is not None

    removed = site.controller().remove()

    assert problems(removed) == []
    assert (site.machine.services.find("docker"), site.machine.hns.networks) == (None, {})
    left = (r"C:\ProgramData\docker", r"C:\var\lib\dockershim", r"C:\var\lib\cri-dockerd")
    assert [path for path in left if site.machine.files.is_directory(path)] == []
    assert site.refusals == []


@pytest.mark.check
def test_every_flow_passes_on_a_node_of_docker(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("docker")

    report = verify(site.specs(), site.controller().context, OF_ONE_NODE)

    assert {row.flow for row in report.rows if row.state == "failed"} == set()
    assert {"pod-service", "node-endpoints", "node-runtime"} <= {
        row.flow for row in report.rows if row.state == "passed"
    }
