"""The five kinds of network that Windows' Host Network Service makes, their differences, and when each is the right
one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: how a container hangs on it, what becomes of its packets, which solutions use it, and when to choose
    it."""

    name: str
    attached: str
    packets: str
    used_by: str
    choose: str


KINDS: Final[tuple[Kind, ...]] = (
    Kind(
        "L2Bridge",
        "each pod has a port on an external switch, in the nodes' own network",
        "outgoing packets get the node's MAC; they keep the pod's address unless an OutBoundNAT policy replaces it",
        "flannel host-gw, win-bridge, Azure CNI",
        "the first choice, and the fastest, because packets are not encapsulated. The nodes share one layer-2 network, or "
        "routers have routes to each node's pods (user-defined routes in a cloud). A virtual machine needs MAC spoofing",
    ),
    Kind(
        "L2Tunnel",
        "like L2Bridge, but every packet goes to the virtualization host first, even between pods of one node",
        "like L2Bridge; the virtualization host's policies apply to all packets",
        "Azure CNI in mode tunnel",
        "only on Azure (and Azure Stack), if the platform's network rules must apply to pods",
    ),
    Kind(
        "Overlay",
        "each pod has a port on an external switch, in a subnet without routes in the physical network",
        "encapsulated in VXLAN (UDP 4789, VNI 4096 or more) between nodes",
        "flannel vxlan, win-overlay, Calico VXLAN, OVN hybrid overlay",
        "if nodes are in several networks, if addresses are scarce, or if pods must be separate from the nodes' network. It "
        "needs IPv4, update KB4489899 on Windows Server 2019, and UDP 4789 open between nodes",
    ),
    Kind(
        "Transparent",
        "each pod has a port on an external switch, with its own MAC in the physical network",
        "unchanged by Windows; another virtual switch (Open vSwitch) encapsulates the packets in Geneve or STT",
        "OVN-Kubernetes with Open vSwitch, Antrea",
        "only for a solution that needs it: cni: antrea",
    ),
    Kind(
        "NAT",
        "each container has a port on an internal switch behind the node, with an address from WinNAT",
        "outgoing packets get the node's MAC and address",
        "Docker on a single machine",
        "never for Kubernetes: pods of two nodes cannot reach each other. Preflight reports a leftover network of this kind",
    ),
)


def kinds_text() -> str:
    """All five, as text for a person."""
    lines = ["The types of HNS networks in Windows:"]
    for kind in KINDS:
        lines += [
            "",
            kind.name,
            f"  attached  {kind.attached}",
            f"  packets   {kind.packets}",
            f"  used by   {kind.used_by}",
            f"  choose    {kind.choose}",
        ]
    return "\n".join(lines)


def kind_named(name: str) -> Kind | None:
    """The kind of that name in any case, or None."""
    return next((kind for kind in KINDS if kind.name.lower() == name.lower()), None)
