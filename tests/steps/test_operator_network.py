"""A network of another owner: winboot waits for it, looks at it, reports differences and never changes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from winboot_lab.programs.calico import calico_node

from tests.lab.actions import Hand, delete, endpoint, network, remove_network
from tests.lab.scenes import by_hand
from tests.lab.site import Site
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node
from winboot.script.steps.operator_network import OPERATOR_NETWORK

STEP = "operator-network"
CONFLIST = r"C:\etc\cni\net.d\10-calico.conflist"
NETWORK = "HNS network Calico"
ENDPOINT = "HNS endpoint Calico_ep"
FOLDER = r"CNI configuration in C:\etc\cni\net.d"
PLUGIN = r"C:\opt\cni\bin\calico.exe"


def gone(site: Site) -> None:
    """The network's owner no longer runs."""
    programs = site.outside.host_processes
    for name in programs:
        programs[name] = lambda run, node: None


def back(scene: str) -> Hand:
    """They are at work again."""

    def hand(site: Site) -> None:
        programs = site.outside.host_processes
        for name in programs:
            programs[name] = calico_node if scene == "operator" else by_hand

    return hand


def test_a_network_of_winboots_own_has_no_such_step(bench: Bench):
    assert STEP not in bench.look(STEP).states


@pytest.mark.parametrize(
    ("profile", "whats"),
    [
        ("calico", {NETWORK, FOLDER}),
        ("calico-services", {NETWORK, ENDPOINT, f"file {PLUGIN}", r"file C:\opt\cni\bin\calico-ipam.exe"}),
    ],
)
def test_on_a_bare_machine_all_of_it_is_still_to_come(profile: str, whats: set[str]):
    """What pods bring they bring whole; of services only what kube-proxy and pods need is looked for."""
    found = Bench(spec=a_spec_of(profile)).look(STEP).differences(STEP)

    assert set(found) == whats
    assert found[NETWORK] == (None, "Overlay")


@pytest.mark.parametrize(
    ("scene", "what", "hand"),
    [
        ("operator", NETWORK, remove_network("Calico")),
        pytest.param("operator", FOLDER, delete(CONFLIST), marks=pytest.mark.check),
        pytest.param(
            "installed by hand",
            ENDPOINT,
            endpoint(lambda hns, found: hns.remove_endpoint(found), "Calico_ep"),
            marks=pytest.mark.check,
        ),
        pytest.param("installed by hand", f"file {PLUGIN}", delete(PLUGIN), marks=pytest.mark.check),
    ],
)
def test_what_is_missing_is_waited_for_until_its_owner_brings_it(
    joined: Callable[[str], Node], scene: str, what: str, hand: Hand
):
    node = joined(scene).after(gone, hand)
    assert what in node.look(STEP).differences(STEP)
    node.after(back(scene))

    assert node.change(STEP).states == {STEP: "changed"}
    assert node.look(STEP).states == {STEP: "ok"}


@pytest.mark.matrix
def test_a_missing_part_is_reported_with_its_owner(joined: Callable[[str], Node]):
    node = joined("installed by hand").after(gone, delete(PLUGIN))

    problem = node.change(STEP).problem(STEP)
    node.after(back("installed by hand"))

    assert (problem.id, problem.message) == ("OperatorMissing", f"not there after 600 seconds: file {PLUGIN}")
    assert "install-calico.ps1" in problem.hint


def test_for_pods_that_bring_it_the_hint_names_kubectl():
    network = OPERATOR_NETWORK.inputs(a_spec_of("calico"))["network"]

    assert "kubectl get pods --namespace calico-system" in network["who"]


def other_vni(found: dict[str, Any]) -> None:
    found["Subnets"][0]["Policies"] = [{"Type": "VSID", "VSID": 9999}]


def test_what_is_otherwise_than_the_profile_says_is_reported_and_left_to_its_owner(
    joined: Callable[[str], Node],
):
    node = joined("operator").after(network(other_vni, "Calico"))
    before = node.machine.snapshot()

    told = node.change(STEP)

    assert told.states == {STEP: "ok"}, "reported, not counted"
    assert told.differences(STEP) == {"HNS network Calico: VNI": ("9999", "4096")}
    assert node.machine.snapshot()["hns"] == before["hns"]


def test_an_undo_touches_nothing_of_it(joined: Callable[[str], Node]):
    node = joined("operator")

    assert node.undo(STEP).states == {STEP: "ok"}
    assert node.differs == []
