"""Which networks `--proxy-from` takes, and names that are resolved once for all callers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.steps.builders import a_spec_of
from winboot.base.errors import InvalidInput, UsageError
from winboot.operations.firstboot.balancers import balancers, refuse_hosts_among
from winboot.operations.firstboot.door import NAMES_S, Names

SPEC = a_spec_of("flannel-host-gw", address="boot.example.com")


@pytest.mark.parametrize("text", ["10.0.0.7/32", "10.0.0.16/28", "10.0.0.7", "fd00::7/128", "fd00::/124"])
def test_the_addresses_of_a_load_balancer_are_taken(text: str) -> None:
    assert len(balancers([text])) == 1


@pytest.mark.parametrize("text", ["0.0.0.0/0", "10.0.0.0/27", "10.0.0.1/28", "fd00::/64", "::/0", "boot", ""])
def test_a_wide_network_and_no_network_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"--proxy-from {text}") as error:
        balancers([text])
    assert "/32" in (error.value.hint or "")


@pytest.mark.parametrize("network", ["10.224.0.11/32", "10.224.0.0/28", "10.9.9.9/32"])
def test_a_network_with_a_host_of_the_inventory_is_refused(network: str) -> None:
    """Its node's address counts as well as the one that its name resolves to."""
    spec = replace(SPEC, machine=replace(SPEC.machine, node_ip="10.9.9.9"))
    names = Names(lambda name, port: ("10.224.0.11",))

    refuse_hosts_among(balancers(["10.224.0.16/28"]), [(spec, ())], names)
    with pytest.raises(
        InvalidInput, match=rf"--proxy-from {network}: the host {spec.node.name} has the address"
    ):
        refuse_hosts_among(balancers([network]), [(spec, ())], names)


def test_a_name_is_resolved_once_for_all_calls_within_a_minute() -> None:
    now, asked = 0.0, list[str]()

    def resolve(name: str, port: int) -> tuple[str, ...]:
        asked.append(name)
        return ("10.224.0.11",)

    names = Names(resolve, now=lambda: now)
    found = [names.addresses([SPEC, SPEC]) for _ in range(3)]
    now = NAMES_S
    names.addresses([SPEC])

    assert all(one == [{"10.224.0.11", SPEC.machine.node_ip} - {None}] * 2 for one in found)
    assert asked == ["boot.example.com"] * 2
