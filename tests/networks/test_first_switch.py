"""The range of the first switch, and clusters whose networks lie where it usually is."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.scene import complaints
from winboot.config.networks.first_switch import USUAL, first_switch_range

SOLUTIONS = (
    "{cni: flannel, mode: host-gw}",
    "{cni: flannel, mode: vxlan}",
    "{cni: win-bridge}",
    "{cni: win-overlay}",
    "{cni: calico, mode: vxlan, managed_by: operator}",
    "{cni: calico, mode: vxlan, managed_by: winboot}\nartifacts: {calico: 3.32.0}",
    "{cni: azure, mode: bridge}\nartifacts: {azure_cni: 1.6.18}",
)
CIDRS = {"pod_cidr": "10.244.0.0/16", "service_cidr": "10.96.0.0/12", "node_cidr": "10.0.0.0/16"}


@pytest.mark.parametrize("network", SOLUTIONS)
@pytest.mark.parametrize("key", CIDRS)
def test_calicos_default_network_is_accepted_everywhere(network: str, key: str) -> None:
    cidrs = ", ".join(f"{name}: {cidr}" for name, cidr in {**CIDRS, key: "192.168.0.0/16"}.items())
    cluster = f"cluster: {{server: 'https://k', ca: {{file: c}}, kubeconfig: {{file: k}}, {cidrs}}}"

    assert [one for one in complaints(f"{cluster}\nnetwork: {network}") if one.level == "error"] == []


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ((), "192.168.255.0/30"),
        (("10.244.0.0/16", "10.96.0.0/12", "fd00::/56"), "192.168.255.0/30"),
        (("192.168.0.0/16",), "192.0.2.0/30"),
        (("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"), "192.0.2.0/30"),
        (("192.168.255.2/31", "192.0.2.0/24"), "198.51.100.0/30"),
        (("192.0.0.0/2",), "192.168.255.0/30"),
    ],
)
def test_the_usual_range_is_first_of_those_that_are_free(taken: tuple[str, ...], expected: str) -> None:
    assert str(first_switch_range(taken)) == expected


@given(
    st.lists(
        st.ip_addresses(v=4).map(lambda one: ipaddress.ip_network(f"{one}/16", strict=False)), max_size=4
    )
)
def test_a_chosen_range_overlaps_no_network_of_the_cluster(taken: list[ipaddress.IPv4Network]) -> None:
    found = first_switch_range(map(str, taken))

    assert found == USUAL or not any(found.overlaps(one) for one in taken)
