"""Docker is a service that runs, with the network of pods with hostNetwork, and goes with all that came with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from winboot_lab import docker_node
from winboot_lab.programs import hcn

from tests.lab.actions import stop
from tests.steps.nodes import Node

STEP = "docker"
LAYERS = r"C:\ProgramData\docker\windowsfilter"


@pytest.fixture
def node(joined: Callable[[str], Node]) -> Node:
    """A joined node with Docker."""
    return joined("docker")


def without_balancers(node: Node) -> None:
    """No load balancer is there: with one Windows Server 2019 deletes no network (AgentBaker, cleanupnetwork.ps1)."""
    node.machine.hns.policy_lists.clear()


def docker(node: Node, *words: str) -> str:
    """What docker.exe prints there."""
    folder = node.spec.paths.docker.rpartition("\\")[0]
    return docker_node.docker(node.machine, *words, folder=folder)


def test_a_joined_node_is_right_at_once(node: Node) -> None:
    assert node.look(STEP).differences(STEP) == {}
    assert node.change(STEP).states == {STEP: "ok"}


def test_a_stopped_service_is_started_again_with_its_networks(node: Node) -> None:
    node.after(stop("docker"))

    found = node.look(STEP).differences(STEP)

    assert set(found) == {"service docker: state", "Docker network host"}
    assert node.change(STEP).states == {STEP: "changed"}
    assert "host" in docker(node, "network", "ls", "--format", "{{.Name}}").split()


def test_a_removed_network_of_hostnetwork_pods_is_made_again(node: Node) -> None:
    without_balancers(node)
    docker(node, "network", "rm", "host")

    assert node.look(STEP).differences(STEP) == {"Docker network host": (None, "present")}
    assert node.change(STEP).states == {STEP: "changed"}


def test_an_undo_ends_docker_and_deletes_its_layers_and_its_own_networks(node: Node) -> None:
    assert node.machine.files.list(LAYERS)
    without_balancers(node)
    subnet = {"AddressPrefix": "172.29.0.0/16", "GatewayAddress": "172.29.0.1"}
    hcn.call(node.machine, "POST", "/networks/", {"Name": "theirs", "Type": "NAT", "Subnets": [subnet]})

    assert node.undo(STEP).states == {STEP: "changed"}

    assert node.machine.services.find("docker") is None
    assert node.machine.files.list(LAYERS) == []
    assert [one["Name"] for one in hcn.networks(node.machine) if one["Type"].upper() == "NAT"] == ["theirs"]


def test_another_program_with_the_pipe_of_docker_is_reported(node: Node) -> None:
    node.after(stop("cri-dockerd"), stop("docker"))
    node.machine.files.pipes["docker_engine"] = 4000

    found = node.look(STEP).differences(STEP)

    assert r"pipe \\.\pipe\docker_engine" in found
    assert node.change(STEP).problem(STEP).id == "PipeTaken"
