"""Run Calico's node agent as winboot's service: it makes the pod network above the first switch."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

import pytest
from winboot_lab.programs import hcn
from winboot_lab.windows.hns import Hns
from winboot_lab.windows.programs_api import Died

from tests.lab.actions import SERVICES, Hand, delete, endpoint, network, regedit, remove_network, stop
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node

PROGRAM = r"C:\k\versions\calico-3.32.0\calico-node.exe"

STEP = "calico-node"
SCENE = "own calico"
VALUES = rf"{SERVICES}\calico-node\Parameters"
NETWORK = "HNS network Calico"
ENDPOINT = "HNS endpoint Calico_ep"


@pytest.mark.parametrize("profile", ["calico", "calico-services", "win-overlay"])
def test_a_network_of_others_or_without_calico_has_no_such_step(profile: str):
    assert STEP not in Bench(spec=a_spec_of(profile)).look(STEP).states


def test_a_bare_machine_lacks_the_service_its_files_the_network_and_the_endpoint():
    found = Bench(spec=a_spec_of("calico-node")).look(STEP).differences(STEP)

    assert found[NETWORK] == (None, "Overlay")
    assert found[ENDPOINT] == (None, "(known after join)")
    assert r"file C:\k\calico.kubeconfig: content" in found
    assert r"file C:\k\calico-nodename: content" in found
    assert found["service calico-node: Application"][1] == r"C:\Windows\System32\cmd.exe"
    assert (
        found["service calico-node: AppParameters"][1]
        == rf'/c "{PROGRAM} -startup -complete-startup && {PROGRAM} -felix"'
    )


@pytest.mark.matrix
def test_the_endpoint_is_calicos_own(joined: Callable[[str], Node]):
    """A remote one with the node's address behind it, in the block that Calico took; the node's own is attached to
    nothing (dataplane_windows.go, createAndAttachVxlanHostEP)."""
    node = joined(SCENE)
    made = hcn.endpoint(node.machine, "Calico_ep")
    of = hcn.network(node.machine, "Calico")

    assert made is not None
    assert of is not None
    block = ipaddress.ip_network(of["Subnets"][0]["AddressPrefix"])
    assert block.prefixlen == 26
    assert (made["IPAddress"], made["VirtualNetwork"]) == (str(block[2]), of["ID"])
    assert made["IsRemoteEndpoint"] is True
    assert made["Policies"] == [{"Type": "PA", "PA": "10.0.1.11"}]
    assert made["MacAddress"] == node.machine.network.holder("10.0.1.11").mac
    assert node.machine.network.holder(made["IPAddress"]) is None
    assert node.look("kube-proxy-config").states == {"kube-proxy-config": "ok"}


def test_a_cluster_that_gives_no_pod_cidr_is_joined(joined: Callable[[str], Node]):
    """Calico's IPAM takes blocks of its own pools; the controller manager need not allocate anything."""
    assert "podCIDR" not in joined(SCENE).node_object["spec"]


def test_a_condition_of_the_cloud_is_cleared(joined: Callable[[str], Node]):
    """main.go: with -complete-startup the network is marked as available."""
    conditions = joined(SCENE).node_object["status"]["conditions"]

    assert {one["type"]: one["status"] for one in conditions}["NetworkUnavailable"] == "False"


def local(hns: Hns, found: dict[str, Any]) -> None:
    """An endpoint of the host itself."""
    found.update(IsRemoteEndpoint=False)


def test_an_endpoint_of_the_host_is_replaced_by_calicos(joined: Callable[[str], Node]):
    node = joined(SCENE).after(endpoint(local, "Calico_ep"))

    assert node.look(STEP).differences(STEP) == {f"{ENDPOINT}: kind": ("of this host", "remote")}
    assert node.change(STEP, "kube-proxy").states[STEP] == "changed"
    node.site.settle(60)
    assert node.differs == []


@pytest.mark.check
def test_after_a_restart_the_network_is_made_again_above_the_same_switch(joined: Callable[[str], Node]):
    """HNS does not say what of a network came through (node-service.ps1); the adapter is not rewired."""
    node = joined(SCENE)
    before = {name: (hcn.network(node.machine, name) or {})["ID"] for name in ("External", "Calico")}

    node.machine.reboot()
    node.site.settle(900)

    after = {name: (hcn.network(node.machine, name) or {})["ID"] for name in ("External", "Calico")}
    assert after["External"] == before["External"]
    assert after["Calico"] != before["Calico"]
    assert hcn.endpoint(node.machine, "Calico_ep") is not None
    assert node.look(STEP, "kube-proxy").states == {STEP: "ok", "kube-proxy": "ok"}


@pytest.mark.parametrize(
    ("whats", "hand"),
    [
        ({NETWORK, ENDPOINT}, remove_network("Calico")),
        pytest.param(
            {f"{NETWORK}: VNI"},
            network(lambda found: found["Subnets"][0]["Policies"][0].update(VSID=5000), "Calico"),
            marks=pytest.mark.check,
        ),
        pytest.param(
            {ENDPOINT},
            endpoint(lambda hns, found: hns.remove_endpoint(found), "Calico_ep"),
            marks=pytest.mark.check,
        ),
        pytest.param(
            {"service calico-node: AppParameters"},
            regedit(VALUES, "AppParameters", "ExpandString", "/c other"),
            marks=pytest.mark.check,
        ),
        pytest.param({"service calico-node: state"}, stop("calico-node"), marks=pytest.mark.check),
        ({r"file C:\k\calico-nodename: content"}, delete(r"C:\k\calico-nodename")),
    ],
    ids=["network", "VNI", "endpoint", "parameters", "state", "name"],
)
def test_a_difference_is_reported_and_repaired(joined: Callable[[str], Node], whats: set[str], hand: Hand):
    node = joined(SCENE).after(hand)

    assert whats <= set(node.look(STEP).differences(STEP))
    assert node.change(STEP, "kube-proxy").states[STEP] == "changed"
    node.site.settle(60)
    assert node.differs == []


def test_the_merged_program_of_3_33_is_agent_and_plug_ins(joined: Callable[[str], Node]):
    """cmd/calico-windows/main.go: its name or CNI_COMMAND chooses what it does."""
    node = joined("own calico of one program")
    folder = r"C:\k\versions\calico-3.33.0"

    program = rf"{folder}\calico-node.exe"
    assert node.machine.registry.text(rf"HKEY_LOCAL_MACHINE\{VALUES}", "AppParameters") == (
        f'/c "{program} component node startup --complete-startup && {program} component felix"'
    )
    assert node.machine.files.read(rf"{folder}\cni\calico-ipam.exe") == node.machine.files.read(
        rf"{folder}\cni\calico.exe"
    )
    assert node.look(STEP).states == {STEP: "ok"}


@pytest.mark.check
def test_felix_that_ends_to_be_started_again_is_no_difference(joined: Callable[[str], Node]):
    """129 means that its configuration changed (felix-service.ps1)."""
    node = joined(SCENE)
    (felix,) = node.machine.processes.named("calico-node")

    node.machine.processes.finish(felix, Died(129))
    node.site.settle(60)

    (again,) = node.machine.processes.named("calico-node")
    assert again.pid != felix.pid
    assert node.look(STEP, "kube-proxy").states == {STEP: "ok", "kube-proxy": "ok"}


def test_an_agent_whose_node_object_is_gone_is_named_with_what_is_missing(joined: Callable[[str], Node]):
    node = joined(SCENE).after(
        remove_network("Calico"), lambda site: site.admin("DELETE", "/api/v1/nodes/win-1")
    )

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "NoPodNetwork"
    what, _, said = problem.message.partition("; calico-node said last: ")
    assert what == f"not as wanted after 180 seconds: {NETWORK} is missing; {ENDPOINT} is missing"
    assert said.startswith("[FATAL] startup: ")
    assert "win-1" in said


def test_it_is_removed_with_its_network_while_the_switch_below_stays(joined: Callable[[str], Node]):
    node = joined(SCENE)

    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.machine.services.find("calico-node") is None
    assert hcn.network(node.machine, "Calico") is None
    assert hcn.network(node.machine, "External") is not None
    assert node.machine.reachable()
    assert node.change(STEP, "kube-proxy").states[STEP] == "changed"
    node.site.settle(60)
    assert node.differs == []
