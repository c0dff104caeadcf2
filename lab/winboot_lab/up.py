"""A whole lab: machines, their WinRM endpoints, a cluster, and a mirror, in one process on loopback."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Literal, Self

from winboot_lab.cluster import LabCluster
from winboot_lab.cluster.plan import ClusterPlan
from winboot_lab.cluster.server import ClusterServer
from winboot_lab.mirror import MirrorServer
from winboot_lab.node import LabNode
from winboot_lab.programs import install_programs
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.clock import LabTime
from winboot_lab.windows.hardware import RELEASES as RELEASE_FACTS
from winboot_lab.windows.hardware import Hardware
from winboot_lab.windows.hardware import Release as ReleaseFacts
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.programs import Programs
from winboot_lab.windows.sockets import World
from winboot_lab.wsman.farm import Farm

Release = Literal["2019", "2022", "2025"]
RELEASES: Final[tuple[Release, ...]] = ("2019", "2022", "2025")
MIRROR_HOST: Final = "mirror.lab"
# Where machines call at their first boot; the endpoint listens on this computer, behind the lab as a balancer.
BOOT_HOST: Final = "boot.lab"
BOOT_PORT: Final = 9443


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One machine of a lab: the name of its Node, its release, and its address in its own network.

    `ssh` is true where its sshd runs and is the way in, `https` where WinRM has a certificate. `computer` is its own name,
    `revision` the number of its last update; the lab chooses what is left out."""

    name: str
    release: Release
    address: str
    ssh: bool = False
    https: bool = False
    computer: str = ""
    revision: int | None = None
    dhcp: bool = False
    hardware: Hardware | None = None

    @property
    def windows(self) -> ReleaseFacts:
        """The release, at this machine's update."""
        found = RELEASE_FACTS[self.release]
        return found if self.revision is None else replace(found, ubr=self.revision)


def default_nodes(count: int) -> list[NodePlan]:
    """`win-1` … with the three releases in turn, in one network."""
    return [
        NodePlan(f"win-{n}", RELEASES[(n - 1) % len(RELEASES)], f"10.0.{1 + n // 200}.{10 + n % 200}")
        for n in range(1, count + 1)
    ]


class Lab:
    """Brings everything up on entering and takes it down on leaving."""

    def __init__(
        self,
        *,
        nodes: int | Sequence[NodePlan] = 3,
        cluster: ClusterPlan | LabCluster | None = None,
        scale: float = 0.01,
        real_time: bool = False,
        https: bool = False,
        ssh: bool = False,
    ) -> None:
        self.password: Final = secrets.token_urlsafe(12)
        self.plans = default_nodes(nodes) if isinstance(nodes, int) else list(nodes)
        self.time = LabTime(scale=scale, held=real_time, start=datetime.now(UTC))
        self.world = World()
        self.programs = Programs()
        if not isinstance(cluster, LabCluster):
            cluster = LabCluster(cluster, now=self.time.datetime, leaps=not real_time)
        self.cluster = cluster
        self.outside = Outside(self.world)
        self.outside.attach(self.cluster)
        install_programs(self.programs, self.outside)
        self.farm = Farm()
        self.server = ClusterServer(self.cluster)
        self.mirror = MirrorServer()
        self.world.forward(MIRROR_HOST, 80, self.mirror.address)
        self.nodes: dict[str, LabNode] = {}
        self.boots = False
        self._ended = threading.Event()
        self._https: Final = https
        for plan in self.plans:
            self.add(plan)
            if ssh or plan.ssh:
                self.nodes[plan.name].open_ssh(self.password)

    def add(self, plan: NodePlan) -> LabNode:
        """One more machine, as a cloud would start it; it answers at once."""
        node = self._node(plan, https=self._https or plan.https)
        self.nodes[plan.name] = node
        return node

    def _node(self, plan: NodePlan, *, https: bool) -> LabNode:
        machine = Machine(
            # A machine as it comes from its image: the name is not the wanted one yet.
            plan.computer or f"WIN-{plan.name.upper().replace('-', '')[:8]}X",
            release=plan.windows,
            address=plan.address,
            prefix_length=16,
            gateway="10.0.0.1",
            time=self.time,
            world=self.world,
            programs=self.programs,
            dhcp=plan.dhcp,
            hardware=plan.hardware,
        )
        return LabNode(self.farm, machine, address="127.0.0.1", password=self.password, https=https)

    @property
    def mirror_url(self) -> str:
        """The mirror as the machines reach it."""
        return f"http://{MIRROR_HOST}"

    def open_boot(self) -> None:
        """Let machines call the endpoint of this computer by the name boot.lab."""
        self.boots = True
        self.world.forward(BOOT_HOST, BOOT_PORT, ("127.0.0.1", BOOT_PORT), names_sources=True)

    def wait(self) -> None:
        """Stay up until Ctrl-C or `close`."""
        try:
            while not self._ended.wait(1.0):
                pass
        except KeyboardInterrupt:
            return

    def close(self) -> None:
        """Take everything down; nothing of the lab is left."""
        self._ended.set()
        for node in self.nodes.values():
            if node.ssh is not None:
                node.ssh.close()
        self.farm.close()
        self.server.close()
        self.mirror.close()
        # Otherwise they would live on, and their tasks with them.
        for node in self.nodes.values():
            node.machine.rest()
            node.machine.power_off()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
