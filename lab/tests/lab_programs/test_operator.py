"""A network that an operator brings with HostProcess pods, as Calico's does."""

from __future__ import annotations

from winboot_lab.cluster import ClusterPlan
from winboot_lab.programs.calico import block_of

from lab_programs.conftest import Node


def calico() -> Node:
    """A node that has only kubelet and containerd; the rest comes from the cluster."""
    node = Node(ClusterPlan(flannel=None, calico=True))
    node.binaries()
    node.configuration()
    node.machine.files.delete(r"C:\etc\cni\net.d\10-flannel.conflist")
    assert node.containerd() == 0
    assert node.kubelet() == 0
    node.settle(60)
    return node


def test_the_operators_pod_brings_networks_plugins_and_configuration() -> None:
    node = calico()

    networks = {n["Name"]: n["Type"] for n in node.machine.hns.networks.values()}

    assert networks == {"External": "Overlay", "Calico": "Overlay"}
    assert node.machine.files.exists(r"C:\opt\cni\bin\calico.exe")
    assert node.ready()["status"] == "True"


def test_a_pod_gets_an_address_of_the_nodes_block() -> None:
    node = calico()
    node.pod("web")
    node.settle(20)

    address = node.admin("GET", "/api/v1/namespaces/default/pods/web")["status"]["podIP"]

    # Its network, its gateway and the endpoint of the node come first; the fourth went to the probe.
    assert address == str(block_of(node.node())[4])


def test_the_operators_pod_restores_removed_parts() -> None:
    node = calico()
    node.machine.files.delete(r"C:\etc\cni\net.d\10-calico.conflist")
    node.settle(20)

    assert node.machine.files.exists(r"C:\etc\cni\net.d\10-calico.conflist")


def test_the_pods_of_a_deleted_node_go_with_it() -> None:
    node = calico()
    node.admin("DELETE", "/api/v1/nodes/win-1")
    node.cluster.settle()

    assert node.admin("GET", "/api/v1/namespaces/calico-system/pods")["items"] == []
