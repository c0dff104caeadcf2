"""Run Calico's node agent as a service of ours: it makes the pod network above the first switch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from winboot_lab.programs import hcn

from tests.lab.hands import SERVICES, Hand, delete, endpoint, network, regedit, remove_network, stop
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node

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
        == r'/c "C:\k\calico-node.exe -startup && C:\k\calico-node.exe -felix"'
    )


def test_the_endpoint_is_the_one_that_calicos_plug_in_would_make(joined: Callable[[str], Node]):
    machine = joined(SCENE).machine
    made = hcn.endpoint(machine, "Calico_ep")
    of = hcn.network(machine, "Calico")

    assert made is not None
    assert of is not None
    assert (made["IPAddress"], made["VirtualNetwork"]) == ("10.244.1.2", of["ID"])
    assert {"Type": "PA", "PA": "10.0.1.11"} in made["Policies"]
    assert machine.network.holder("10.244.1.2") is not None, "the host has it"


@pytest.mark.parametrize(
    ("whats", "hand"),
    [
        ({NETWORK, ENDPOINT}, remove_network("Calico")),
        (
            {f"{NETWORK}: VNI"},
            network(lambda found: found["Subnets"][0]["Policies"][0].update(VSID=5000), "Calico"),
        ),
        ({ENDPOINT}, endpoint(lambda hns, found: hns.remove_endpoint(found), "Calico_ep")),
        (
            {"service calico-node: AppParameters"},
            regedit(VALUES, "AppParameters", "ExpandString", "/c other"),
        ),
        ({"service calico-node: state"}, stop("calico-node")),
        ({r"file C:\k\calico-nodename: content"}, delete(r"C:\k\calico-nodename")),
    ],
    ids=["network", "VNI", "endpoint", "parameters", "state", "name"],
)
def test_what_is_otherwise_is_told_and_mended(joined: Callable[[str], Node], whats: set[str], hand: Hand):
    node = joined(SCENE).after(hand)

    assert whats <= set(node.look(STEP).differences(STEP))
    assert node.change(STEP, "kube-proxy").states[STEP] == "changed"
    node.site.settle(60)
    assert node.differs == []


def test_it_is_taken_away_with_its_network_while_the_switch_below_stays(joined: Callable[[str], Node]):
    node = joined(SCENE)

    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.machine.services.find("calico-node") is None
    assert hcn.network(node.machine, "Calico") is None
    assert hcn.network(node.machine, "External") is not None
    assert node.machine.reachable()
    assert node.change(STEP, "kube-proxy").states[STEP] == "changed"
    node.site.settle(60)
    assert node.differs == []
