"""What a node needs comes late, or goes wrong, at a start of its machine: the table of such starts, and one of them played.

Late is counted in minutes from the power on:

    refuses   HNS lost the networks of the node's adapter before the start, and refuses every network until then
    forgets   HNS forgets them then, and refuses the first one
    hangs     HNS hangs for so long from the first network of the start on, with the adapter taken
    restarts  HNS restarts then
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from winboot_lab.programs.base import GoError
from winboot_lab.programs.calico import calico_node
from winboot_lab.windows.hns import NON_PERSISTENT, HnsError
from winboot_lab.windows.network import Adapter

from tests.lab.server_room import NODE, reached
from tests.lab.site import NodePlan, Site, differences, only, problems
from tests.lab.test_networks import BY_NAME, MANAGERS, RELEASES, SOLUTIONS, Solution, _watch
from tests.matrix import Matrix

Cause = Literal[
    "API server",
    "DHCP",
    "DNS",
    "HNS refuses",
    "HNS forgets",
    "HNS hangs",
    "HNS restarts",
    "owner",
]
CAUSES: Final[tuple[Cause, ...]] = (
    "API server",
    "DHCP",
    "DNS",
    "HNS refuses",
    "HNS forgets",
    "HNS hangs",
    "HNS restarts",
    "owner",
)
MINUTES: Final = (1, 5, 14, 16, 30, 60)
SERVER: Final = "api.lab"
# Seconds that an address may be away, once it stood in this start.
GAP: Final = 30.0
# Seconds in which a node is Ready again once the cause is gone: half the hour that Windows' DHCP client and the retries of
# agents and services may take together.
RECOVERY: Final = 1800.0


@dataclass(frozen=True)
class Start:
    """One start: what is late, by how much, and where."""

    cause: Cause
    minutes: int
    solution: str
    release: str
    # By DHCP, with DNS servers set by hand.
    addressing: Literal["static", "dhcp"]
    manager: str

    def __str__(self) -> str:
        return (
            f"{self.cause} {self.minutes} min-{self.solution}-{self.release}-{self.addressing}-{self.manager}"
        )

    @property
    def possible(self) -> bool:
        """True for a release of the solution. DHCP is late only if the address comes by DHCP.

        The network's owner is late only if it is not winboot or its agents."""
        return (
            self.release in BY_NAME[self.solution].releases
            and (self.cause != "DHCP" or self.addressing == "dhcp")
            and (self.cause != "owner" or theirs(BY_NAME[self.solution]))
        )


def theirs(solution: Solution) -> bool:
    """True if a program outside winboot brings a part of the network at each start."""
    return solution.somebody is not None or solution.cluster().calico


def starts() -> list[Start]:
    """All that can be."""
    every = (
        Start(cause, minutes, solution.name, release, addressing, manager)
        for cause in CAUSES
        for minutes in MINUTES
        for solution in SOLUTIONS
        for release in RELEASES
        for addressing in ("static", "dhcp")
        for manager in MANAGERS
    )
    return [one for one in every if one.possible]


def properties(start: Start) -> Mapping[str, object]:
    """What every two of meet."""
    return {
        "cause": start.cause,
        "minutes": start.minutes,
        "solution": start.solution,
        "release": start.release,
        "addressing": start.addressing,
        "manager": start.manager,
    }


@cache
def pairwise() -> tuple[Start, ...]:
    """Starts in which every two values meet that can."""
    return Matrix("late or wrong at a start", starts(), properties).everyday


class Late:
    """One such start, from a joined node on."""

    def __init__(self, folder: Path, start: Start) -> None:
        self.start = start
        # Whether the network's owner is on its way, so that nothing of it comes.
        self._away = False
        self._asked_again = 0
        self.site = self._site(folder)
        self.machine = self.site.machine
        self.machine.hardware.boot_seconds = 20.0

    # ---- before the start ------------------------------------------------------------------------------

    def _site(self, folder: Path) -> Site:
        solution = BY_NAME[self.start.solution]
        plan = solution.cluster()
        if self.start.cause == "DNS":
            plan = replace(plan, server=f"https://{SERVER}:6443")
        site = Site(
            folder,
            NodePlan("win-1", self.start.release, NODE),  # type: ignore[arg-type]
            cluster=plan,
            wishes={
                **solution.wishes,
                "network": {"mode": None, **solution.network},
                "services": {"manager": self.start.manager},
            },
            prepare=self._by_dhcp if self.start.addressing == "dhcp" else lambda site: None,
        )
        if solution.somebody is not None:
            somebody = solution.somebody

            def visit(site: Site) -> None:
                # A program that HNS refuses tries again.
                with suppress(GoError):
                    if not self._away:
                        somebody(site)

            _watch(site, visit)

        def calico(run: Any, node: Mapping[str, Any]) -> None:
            if not self._away:
                calico_node(run, node)

        site.outside.host_processes["calico/node-windows"] = calico
        return site

    def _by_dhcp(self, site: Site) -> None:
        network = site.machine.network
        uplink = network.management()
        assert uplink is not None
        uplink.served = True
        network.set_dhcp(uplink, True)
        site.settle(30)

    def join(self) -> None:
        """The node, Ready before all that."""
        report = self.site.join()
        assert not problems(report), problems(report)
        assert only(report).ready
        self.site.settle(120)

    # ---- the start -------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The cause is arranged, and the machine restarts."""
        machine, seconds = self.machine, self.start.minutes * 60.0
        arrange = {
            "API server": self._no_server,
            "DHCP": self._no_lease,
            "DNS": self._no_name,
            "HNS refuses": self._no_network,
            "HNS forgets": self._forgetting,
            "HNS hangs": self._hanging,
            "HNS restarts": self._restarting,
            "owner": self._no_owner,
        }
        arrange[self.start.cause](seconds)
        machine.reboot()
        self.gaps = Gaps(self.site)

    def _at(self, seconds: float, work: Any) -> None:
        self.machine.after(self.machine.hardware.boot_seconds + seconds, work, lasting=True)

    def _no_server(self, seconds: float) -> None:
        outside, cluster = self.site.outside, self.site.cluster
        outside.clusters.clear()
        self.site.internet.servers.pop(self._server)
        self._at(seconds, lambda: outside.attach(cluster))

    @property
    def _server(self) -> tuple[str, int]:
        return "10.0.0.10", 6443

    def _no_lease(self, seconds: float) -> None:
        for adapter in self._served():
            adapter.served = False
        self._at(seconds, self._lease)

    def _served(self) -> list[Adapter]:
        return [one for one in self.machine.network.adapters if one.lan is not None]

    def _lease(self) -> None:
        for adapter in self._served():
            adapter.served = True

    def _no_name(self, seconds: float) -> None:
        names = self.site.internet.names
        address = names.pop(SERVER)
        self._at(seconds, lambda: names.update({SERVER: address}))

    def _no_network(self, seconds: float) -> None:
        self._lose_networks()
        hns, until = (
            self.machine.hns,
            self.machine.time.seconds + self.machine.hardware.boot_seconds + seconds,
        )
        make = hns.create_network

        def create(body: dict[str, Any]) -> dict[str, Any]:
            if self.machine.time.seconds < until:
                raise HnsError(0x80070490, "Element not found.")
            return make(body)

        hns.create_network = create  # type: ignore[method-assign]

    def _lose_networks(self) -> None:
        for network in list(self.machine.hns.networks.values()):
            self.machine.hns.remove_network(network)

    def _forgetting(self, seconds: float) -> None:
        hns = self.machine.hns

        def forget() -> None:
            self._lose_networks()
            hns.fail_next(0x80070490, "Element not found.")

        self._at(seconds, forget)

    def _hanging(self, seconds: float) -> None:
        self._lose_networks()
        self.machine.hns.stall(seconds)

    def _restarting(self, seconds: float) -> None:
        services = self.machine.services

        def restart() -> None:
            services.stop(services.need("hns"))
            self.machine.after(5.0, begin)

        def begin() -> None:
            # The guard may have started it.
            if services.need("hns").status == "Stopped":
                services.start(services.need("hns"))

        self._at(seconds, restart)

    def _no_owner(self, seconds: float) -> None:
        """What it makes does not outlive the machine, and it comes late."""
        self._away = True
        for network in self.machine.hns.networks.values():
            network["Flags"] |= NON_PERSISTENT

        def come() -> None:
            self._away = False

        self._at(seconds, come)

    # ---- afterwards ------------------------------------------------------------------------------------

    def wrong(self) -> list[str]:
        """What is not as it has to be, of the address, of the node when the cause is gone, and of the next look."""
        site, minutes = self.site, self.start.minutes
        site.settle(self.machine.hardware.boot_seconds + minutes * 60.0 + 30.0)
        left = RECOVERY
        while left > 0 and (not ready(site) or NODE not in reached(site)):
            site.settle(30.0)
            left -= 30.0
        site.settle(330.0)
        wrong = list(self.gaps.told())
        if not ready(site):
            wrong.append(f"not Ready {RECOVERY:.0f} s after the cause is gone: {_condition(site)['message']}")
        report = site.plan()
        wrong += problems(report)
        wrong += [f"{step}: {what}" for step, what in differences(report).items()]
        return wrong + [f"the lab refuses {one}" for one in site.refusals]


class Gaps:
    """Seconds without the node's address after it first appeared in this start, measured every second.

    While HNS does not answer, no adapter can hold an address."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._stood = False
        self._away = 0.0
        self.longest = 0.0
        site.machine.after(1.0, self._look, lasting=True)

    def _look(self) -> None:
        machine = self._site.machine
        machine.after(1.0, self._look, lasting=True)
        if not machine.running or machine.hns.stalled:
            self._away = 0.0
            return
        here = machine.network.reachable(NODE)
        self._stood = self._stood or here
        self._away = 0.0 if here or not self._stood else self._away + 1.0
        self.longest = max(self.longest, self._away)

    def told(self) -> list[str]:
        """What is wrong with it."""
        wrong = [] if self._stood else ["the address never stood"]
        if self._stood and self._away > 0:
            wrong.append(f"the address is lost since {self._away:.0f} s")
        if self.longest > GAP:
            wrong.append(f"the address was away for {self.longest:.0f} s")
        return wrong


def _condition(site: Site) -> Mapping[str, Any]:
    return next(one for one in site.node()["status"]["conditions"] if one["type"] == "Ready")


def ready(site: Site) -> bool:
    """What the cluster says of the node now."""
    return bool(_condition(site)["status"] == "True")
