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
        "each pod has a port on an external switch, in the network that the nodes themselves are in",
        "the pod's MAC becomes the node's on the way out; its address stays, or becomes the node's by an OutBoundNAT policy",
        "flannel host-gw, win-bridge, Azure CNI",
        "first choice: nothing is wrapped, so it is the fastest; the nodes share one layer-2 network, or routers know each "
        "node's pod subnet (user-defined routes in a cloud), and on a virtual machine MAC spoofing must be allowed",
    ),
    Kind(
        "L2Tunnel",
        "as L2Bridge, but every packet goes to the virtualization host first, even between pods of one node",
        "as L2Bridge; the host's own policies see and steer all of it",
        "Azure CNI in mode tunnel",
        "only on Azure (and Azure Stack), where the platform's network rules are to apply to pods",
    ),
    Kind(
        "Overlay",
        "each pod has a port on an external switch, in a subnet that the physical network does not know",
        "wrapped in VXLAN (UDP 4789, VNI 4096 or more) between nodes",
        "flannel vxlan, win-overlay, Calico VXLAN, OVN hybrid overlay",
        "where nodes are in several networks, or addresses are short, or pods are kept apart from the nodes' network; IPv4, "
        "on Windows Server 2019 from update KB4489899 on, and UDP 4789 must be open between nodes",
    ),
    Kind(
        "Transparent",
        "each pod has a port on an external switch with its own MAC, seen by the physical network",
        "unchanged by Windows; another virtual switch (Open vSwitch) wraps them, with Geneve or STT",
        "OVN-Kubernetes with Open vSwitch, Antrea",
        "only where that solution asks for it: cni: antrea",
    ),
    Kind(
        "NAT",
        "each container has a port on an internal switch, behind the node, with addresses that WinNAT hands out",
        "MAC and address become the node's",
        "Docker on a single machine",
        "never for Kubernetes: pods of two nodes cannot reach each other; a leftover of this kind is named by preflight",
    ),
)


def kinds_text() -> str:
    """All five, as text for a person."""
    lines = ["The kinds of network that Windows knows:"]
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
