"""Machines as in server rooms: several adapters, several addresses, DHCP with DNS servers set by hand."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from winboot_lab.windows.network import Address

from tests.lab.site import NodePlan, Site
from tests.lab.test_networks import BY_NAME, SOLUTIONS, _watch
from tests.matrix import Matrix

NODE: Final = "10.0.1.11"
SECOND: Final = "10.0.1.99"
DNS: Final = ["10.0.0.53"]
# Seconds after its start in which a machine is still at it.
STARTING: Final = 60.0

Addressing = Literal["static", "dhcp", "dhcp and DNS by hand"]


@dataclass(frozen=True)
class Room:
    """One machine: its solution, how many adapters it has (storage is the first that Windows lists), how the node's one
    gets its address, how many it has, and its release."""

    solution: str
    adapters: int
    addressing: Addressing
    addresses: int
    release: str

    def __str__(self) -> str:
        return f"{self.solution}-{self.adapters} adapters-{self.addressing}-{self.addresses} addresses-{self.release}"

    def site(self, folder: Path) -> Site:
        """The bare machine and its cluster."""
        solution = BY_NAME[self.solution]
        site = Site(
            folder,
            NodePlan("win-1", self.release, NODE),  # type: ignore[arg-type]
            cluster=solution.cluster(),
            wishes={**solution.wishes, "network": {"mode": None, **solution.network}},
            prepare=self._furnish,
        )
        if solution.somebody is not None:
            _watch(site, solution.somebody)
        return site

    @property
    def _theirs(self) -> bool:
        return self.solution.startswith("none") or self.solution in ("calico", "calico-services")

    def _furnish(self, site: Site) -> None:
        network = site.machine.network
        uplink = network.management()
        assert uplink is not None
        if self.addressing != "static":
            uplink.served = True
            network.set_dhcp(uplink, True)
            uplink.dns = list(DNS) if self.addressing == "dhcp and DNS by hand" else []
        if self.addresses == 2:
            network.add_address(uplink, Address(SECOND, 16, skip_as_source=True))
        for name, address in (("Storage", "172.20.0.5"), ("Backup", "172.21.0.5"))[: self.adapters - 1]:
            # Another program that makes a network names its adapter or not (Calico: VXLAN_ADAPTER): winboot cannot change that.
            network.plug_in_another(name, address, first=name == "Storage" and not self._theirs)
        network.publish(uplink)
        site.settle(30)


class Watch:
    """How long each address of a machine that runs was not reached, from now on; it looks every second."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._away: dict[str, float] = dict.fromkeys(reached(site), 0.0)
        # Lab seconds at a stretch, by address, without a restart in them and right after one.
        self.longest: dict[str, float] = dict.fromkeys(self._away, 0.0)
        self.after_start: dict[str, float] = dict.fromkeys(self._away, 0.0)
        self.looks = 0
        site.machine.after(1.0, self._look, lasting=True)

    def _look(self) -> None:
        machine = self._site.machine
        machine.after(1.0, self._look, lasting=True)
        if not machine.running:
            self._away = dict.fromkeys(self._away, 0.0)
            return
        self.looks += 1
        here = reached(self._site)
        longest = self.longest if machine.uptime() > STARTING else self.after_start
        for ip in self._away:
            self._away[ip] = 0.0 if ip in here else self._away[ip] + 1.0
            longest[ip] = max(longest[ip], self._away[ip])


def reached(site: Site) -> set[str]:
    """The addresses at which other machines reach this one."""
    network = site.machine.network
    return {ip for ip in network.own_addresses() if network.reachable(ip)}


def rooms() -> list[Room]:
    """Every combination that Windows allows: an adapter with a leased address can have no second one."""
    return [
        Room(solution.name, adapters, addressing, addresses, release)
        for solution in SOLUTIONS
        for adapters, addressing, addresses, release in itertools.product(
            (1, 2, 3), ("static", "dhcp", "dhcp and DNS by hand"), (1, 2), solution.releases
        )
        if addresses == 1 or addressing == "static"
    ]


# Pairwise but for the solutions, which take turns.
ROOMS: Final = Matrix(
    "server rooms",
    rooms(),
    lambda room: {
        "adapters": room.adapters,
        "addressing": room.addressing,
        "addresses": room.addresses,
        "release": room.release,
    },
    turns=lambda room: room.solution,
    core=0,
    daily=1,
)
