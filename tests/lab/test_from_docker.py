"""Nodes that run Docker move to containerd under the same name, and back."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from winboot_lab.cluster import ClusterPlan
from winboot_lab.programs import hcn
from winboot_lab.programs.base import fetch_served
from winboot_lab.programs.containerd import Containerd

from tests.lab.others import CERTIFICATE, DOCKER_KINDS, docker_node
from tests.lab.scenes import SCENES
from tests.lab.site import WIN_1, Killed, Site, only, problems
from winboot.base.errors import NotDone
from winboot.operations.remove import refuse_dockershim
from winboot.report.events import Difference, StepDone
from winboot.report.results import Report

VERSION: Final = "1.23.17"
WEB: Final = "mcr.microsoft.com/web:1"
# No registry of the lab gives it.
PRIVATE: Final = "mcr.microsoft.com/private:1"
STORE: Final = r"C:\ProgramData\docker\image\windowsfilter\repositories.json"


def a_docker_node(folder: Path, kind: str = "kubeadm-prepare-node") -> Site:
    """A Ready node of 1.23 with dockershim and flannel host-gw on Windows Server 2019, and a profile for containerd."""
    site = Site(
        folder,
        replace(WIN_1, release="2019"),
        cluster=ClusterPlan(version=VERSION),
        wishes={"kubernetes": {"version": VERSION}},
        prepare=SCENES["operator by DHCP"].prepare,
    )
    docker_node(site, kind)
    assert runtime(site) == "docker://20.10.9"
    return site


def a_pod(site: Site, *images: str) -> None:
    """A pod on the node with containers of these images."""
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    body = {"metadata": {"name": "web"}, "spec": {"nodeName": "win-1", "containers": containers}}
    site.admin("POST", "/api/v1/namespaces/default/pods", body)


def runtime(site: Site) -> str:
    """The runtime that a Ready node reports; what is wrong, otherwise."""
    node = site.node()
    ready = node["status"]["conditions"][-1]
    found: str = node["status"]["nodeInfo"]["containerRuntimeVersion"]
    return found if ready["status"] == "True" and not node["spec"].get("unschedulable") else ready["message"]


def identity(site: Site) -> tuple[str, bytes]:
    """Which Node it is, and the kubelet's certificate."""
    return site.node()["metadata"]["uid"], site.machine.files.read(CERTIFICATE)


def networks(site: Site) -> set[str]:
    """The HNS networks by name."""
    return {str(one["Name"]) for one in hcn.networks(site.machine)}


def moved(site: Site) -> Report:
    """`winboot join --adopt --drain`."""
    return site.controller().join(adopt=True, drain=True)


def assert_moved(site: Site) -> None:
    """The node runs containerd, nothing of Docker runs, and another run has nothing to do."""
    assert runtime(site) == "containerd://1.7.36"
    assert networks(site) == {"cbr0"}
    docker = site.machine.services.need("docker")
    assert (docker.status, docker.start) == ("Stopped", 3)
    assert site.machine.files.exists(STORE), "the images stay"
    assert site.join().changed == 0
    assert site.refusals == []


@pytest.mark.parametrize(
    "kind",
    [one if one == "aks-engine" else pytest.param(one, marks=pytest.mark.nightly) for one in DOCKER_KINDS],
)
def test_a_docker_node_moves_to_containerd_under_the_same_name_and_back(kind: str, tmp_path: Path) -> None:
    site = a_docker_node(tmp_path, kind)
    before, pods = identity(site), hcn.network(site.machine, "cbr0")
    site.outside.images.builds[WEB] = (site.machine.build,)
    a_pod(site, WEB, PRIVATE)
    (step,) = [one for one in only(site.controller().plan(adopt=True)).steps if one.name == "pause-image"]
    assert {f"image {one} of this node's pods" for one in (WEB, PRIVATE)} < {
        one.what for one in step.differences
    }

    report = moved(site)

    assert (problems(report), identity(site)) == ([], before)
    assert_moved(site)
    (engine,) = (one for _, one in fetch_served(site.machine, Containerd) if isinstance(one, Containerd))
    assert WEB in engine.images() and PRIVATE not in engine.images()
    after = hcn.network(site.machine, "cbr0")
    assert pods is not None and after is not None and after["ID"] == pods["ID"], "the session's bridge stays"

    removed = site.controller().remove()
    site.settle(180)
    assert (problems(removed), identity(site)) == ([], before)
    assert runtime(site) == "docker://20.10.9"
    assert networks(site) == {"cbr0", "nat", "host"}
    assert site.machine.services.find("containerd") is None


@pytest.mark.nightly
def test_a_docker_node_with_pods_does_not_move_without_a_drain(tmp_path: Path) -> None:
    site = a_docker_node(tmp_path)

    report = site.controller().join(adopt=True)

    (step,) = [one for one in only(report).steps if one.name == "adoption"]
    assert step.problem is not None and step.problem.id == "NeedsDrain"
    assert runtime(site) == "docker://20.10.9"


# The steps of the move, at whose event the controller's process ends or the machine loses its power.
PLACES: Final = (
    "directories",
    "adoption",
    "artifacts",
    "containerd",
    "kubelet-credentials",
    "kubelet",
    "flanneld",
    "pod-network",
)


CUTS: Final = [
    pytest.param(place, power, marks=() if (place, power) == ("adoption", True) else (pytest.mark.nightly,))
    for place in PLACES
    for power in (False, True)
]


@pytest.mark.parametrize(("place", "power"), CUTS)
def test_a_move_that_is_cut_is_finished_by_the_next_run(place: str, power: bool, tmp_path: Path) -> None:
    site = a_docker_node(tmp_path)
    before = identity(site)
    cut = []

    def hear(line: str) -> None:
        event = json.loads(line)
        if event.get("step") == place and event.get("state") != "would-change" and not cut:
            cut.append(line)
            if power:
                site.machine.reboot()
            raise Killed

    with pytest.raises(Killed):
        site.controller(hear=hear).join(adopt=True, drain=True)
    site.settle(300)

    report = moved(site)

    assert cut and (problems(report), identity(site)) == ([], before)
    assert_moved(site)


@pytest.mark.parametrize(
    ("kubelet", "refused"), [("v1.23.17", False), ("v1.24.0", True), ("v1.36.5", True), ("", False)]
)
def test_a_way_back_to_dockershim_is_refused_from_1_24_on(kubelet: str, refused: bool) -> None:
    docker = Difference("container runtime", "containerd", "docker", key="undo:docker", policy=True)
    steps = (StepDone("", "node-preflight", "ok", 0, (docker,)),)

    with pytest.raises(NotDone, match="dockershim") if refused else nullcontext():
        refuse_dockershim("win-1", kubelet, steps)
    refuse_dockershim("win-1", kubelet, ())
