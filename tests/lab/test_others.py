"""Nodes that kubeadm made: refused without --adopt, taken over with their identity, and given back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.doctor.documents import verdict
from tests.lab.others import CERTIFICATE, FLAGS, MAKERS, kubeadm_node
from tests.lab.scenes import SCENES
from tests.lab.site import WIN_1, Site, differences, only, problems
from winboot.report.results import Report

TAINT = "node taint os:NoSchedule"


def a_node(folder: Path, maker: str) -> Site:
    """A Ready node of a cluster with Calico's operator and kube-proxy in pods, made by this tool."""
    scene = SCENES["operator by DHCP"]
    cluster = replace(scene.cluster(), kube_proxy_pods=True)
    site = Site(folder, WIN_1, cluster=cluster, profile=scene.file, prepare=scene.prepare)
    kubeadm_node(site, maker)
    assert is_ready(site)
    return site


def is_ready(site: Site) -> bool:
    """Whether the Node is Ready and takes pods."""
    node = site.node()
    return node["status"]["conditions"][-1]["status"] == "True" and not node["spec"].get("unschedulable")


def command_lines(site: Site) -> dict[str, tuple[str, str]]:
    """Each service of the node: its command line and state."""
    services = site.machine.services
    return {
        name: (services.need(name).image_path, services.need(name).status)
        for name in ("containerd", "kubelet")
    }


def identity(site: Site) -> tuple[str, bytes]:
    """Which Node it is, and the kubelet's certificate."""
    return site.node()["metadata"]["uid"], site.machine.files.read(CERTIFICATE)


def problem_ids(report: Report) -> set[str]:
    """The ids of the problems of the one node."""
    return {step.problem.id for step in only(report).steps if step.problem is not None}


@pytest.mark.parametrize(
    "maker",
    [
        one if one == "image-builder-service" else pytest.param(one, marks=pytest.mark.nightly)
        for one in MAKERS
    ],
)
def test_a_kubeadm_node_is_adopted_with_its_identity_and_given_back(maker: str, tmp_path: Path) -> None:
    site = a_node(tmp_path, maker)
    before, services = identity(site), command_lines(site)

    found = verdict(site)
    assert found.first is not None and found.first.rule.id == "other-tool"
    refused = site.join()
    assert "ForeignNode" in problem_ids(refused)
    assert [one.flag for one in site.plan().nodes[0].needs] == ["--adopt"]
    adopted = site.controller().join(adopt=True, drain=True)
    assert (problems(adopted), identity(site)) == ([], before)
    assert is_ready(site)
    assert command_lines(site) != services
    assert site.join().changed == 0

    removed = site.controller().remove()
    site.settle(120)
    assert (problems(removed), identity(site)) == ([], before)
    assert is_ready(site)
    assert command_lines(site) == services
    # A second removal leaves the other tool's node alone.
    again = site.controller().remove()
    assert (problems(again), again.changed, identity(site)) == ([], 0, before)
    assert not site.refusals


@pytest.mark.nightly
def test_what_kubeadm_changes_after_an_adoption_is_named_and_not_overwritten(tmp_path: Path) -> None:
    site = a_node(tmp_path, "kubeadm-prepare-node")
    site.controller().join(adopt=True, drain=True)
    site.machine.files.write(FLAGS, b'KUBELET_KUBEADM_ARGS="--v=4"\n')

    assert "KubeadmConflict" in problem_ids(site.join())
    accepted = site.controller().join(adopt=True, drain=True)
    assert problems(accepted) == []
    assert differences(site.plan()) == {}
