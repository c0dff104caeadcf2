"""Run OVN-Kubernetes' hybrid-overlay-node as our own service: it makes the pod network above the base network."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from winboot_lab.cluster.authority import CLIENT_AUTH, Subject, load_certificate
from winboot_lab.cluster.identity import OVN_NODE_PREFIX, OVN_NODES
from winboot_lab.programs import hcn
from winboot_lab.programs.hybrid_overlay import BASE, NETWORK, SUBNET

from tests.lab.actions import network, remove_network, stop
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node

STEP = "hybrid-overlay"
SCENE = "ovn"
SERVICE = "hybrid-overlay-node"


def test_another_network_has_no_such_step(bench: Bench) -> None:
    assert STEP not in bench.look(STEP).states


def test_a_bare_machine_lacks_the_service_and_its_network() -> None:
    found = Bench(spec=a_spec_of("ovn-hybrid")).look(STEP).differences(STEP)

    assert found[f"HNS network {NETWORK}"] == (None, "Overlay")
    assert any(what.startswith(f"service {SERVICE}") for what in found)


def test_the_pods_network_is_the_annotations_and_the_base_network_is_the_agents(
    joined: Callable[[str], Node],
) -> None:
    """An agent that finds another base network deletes it, and with it the adapter's address."""
    node = joined(SCENE)
    base, pods = (hcn.network(node.machine, name) for name in (BASE, NETWORK))

    assert base is not None
    assert pods is not None
    assert base["Subnets"][0]["GatewayAddress"] == "100.64.0.2"
    assert [one["AddressPrefix"] for one in pods["Subnets"]] == [
        node.node_object["metadata"]["annotations"][SUBNET]
    ]
    assert node.look(STEP).states == {STEP: "ok"}


def test_a_network_that_is_gone_or_stopped_comes_back(joined: Callable[[str], Node]) -> None:
    node = joined(SCENE).after(stop(SERVICE), remove_network(NETWORK))

    assert f"HNS network {NETWORK}" in node.look(STEP).differences(STEP)
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.look(STEP).states == {STEP: "ok"}


def test_another_subnet_than_the_nodes_is_reported_and_corrected(joined: Callable[[str], Node]) -> None:
    def elsewhere(found: dict[str, object]) -> None:
        found["Subnets"] = [
            {"AddressPrefix": "10.133.0.0/24", "GatewayAddress": "10.133.0.1", "Policies": []}
        ]

    node = joined(SCENE).after(network(elsewhere, NETWORK))

    assert f"HNS network {NETWORK}: subnets" in node.look(STEP).differences(STEP)
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.look(STEP).states == {STEP: "ok"}


CERTIFICATE = r"C:\var\lib\kubelet\pki\ovnkube-client-current.pem"
DAY = timedelta(days=1)


def left(node: Node) -> timedelta:
    """How long the agent's certificate is valid from now on."""
    pem = node.machine.files.text(CERTIFICATE)
    return load_certificate(pem).not_valid_after_utc - node.machine.now()


def test_the_agents_certificate_lives_as_long_as_its_flag_asks_and_is_renewed_before_its_end(
    joined: Callable[[str], Node],
) -> None:
    node = joined(SCENE)
    assert DAY - timedelta(hours=1) < left(node) <= DAY
    for valid in ((-20, 1), (-30, -1)):
        life = tuple(node.machine.now() + timedelta(hours=hours) for hours in valid)
        subject = Subject(OVN_NODE_PREFIX + node.node_object["metadata"]["name"], (OVN_NODES,))
        pair = node.site.cluster.authority.issue(subject, [CLIENT_AUTH], (life[0], life[1]))
        node.machine.files.write(CERTIFICATE, (pair.certificate + pair.key).encode())

        node.machine.settle(30)

        assert DAY - timedelta(hours=1) < left(node) <= DAY


def test_the_network_leaves_with_the_service(joined: Callable[[str], Node]) -> None:
    node = joined(SCENE)

    node.undo(STEP)

    assert hcn.network(node.machine, NETWORK) is None
    assert hcn.network(node.machine, BASE) is not None
    assert node.machine.services.find(SERVICE) is None
