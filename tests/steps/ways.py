"""Ways out of a machine: what other adapters and the host's endpoint in a pod network add to its own default route."""

from __future__ import annotations

from winboot_lab.windows.network import Address, Route

from tests.steps.bench import Bench


def nothing(bench: Bench) -> None:
    """The machine's own default route alone."""


def host_endpoint(
    bench: Bench,
    name: str = "vEthernet (cbr0_ep)",
    address: str = "10.244.1.2",
    gateway: str = "10.244.1.1",
) -> None:
    """As HNS makes it where its owner names no gateway, as flanneld and Calico do (`attach` of the lab's HNS)."""
    network = bench.machine.network
    endpoint = network.add_adapter(name, "Hyper-V Virtual Ethernet Container Adapter", physical=False)
    network.add_address(endpoint, Address(address, 24))
    network.add_route(Route("0.0.0.0/0", gateway, endpoint.index, 5256, persistent=False))
    bench.machine.settle(5)


def second_gateway(bench: Bench) -> None:
    """A backup network with a gateway of its own."""
    network = bench.machine.network
    backup = network.plug_in_another("Backup", "172.21.0.5")
    network.add_route(Route("0.0.0.0/0", "172.21.0.1", backup.index, 9000))
