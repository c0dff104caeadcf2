"""The flows that a cluster with Windows nodes must carry, as values: which end reaches which, and what is expected.

Their ids are in `winboot verify --help`, in its rows and in docs/seeds.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from winboot.base.errors import UsageError
from winboot.config.source import nearest
from winboot.node.probes import PROBES


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow. `linux`: it has an end on a Linux node; `pair`: it needs two Windows nodes."""

    id: str
    what: str
    expected: str
    linux: bool = False
    pair: bool = False


_ANSWER: Final = "an answer"
FLOWS: Final[tuple[Flow, ...]] = (
    Flow("pod-start", "pods of the node's own build start on it", "running, with an address"),
    Flow("exec", "a command runs in a pod, through the API server", "its output"),
    Flow("logs", "the API server shows the log of a pod", "the server's first line"),
    Flow("port-forward", "a port of a pod is reached through the API server", _ANSWER),
    Flow(
        "pod-pod-local",
        "a pod reaches another pod on its node",
        "an answer; the server sees the pod's own address",
    ),
    Flow(
        "pod-pod-remote",
        "a pod reaches a pod on another Windows node",
        "an answer; the server sees the pod's own address",
        pair=True,
    ),
    Flow(
        "pod-pod-large", "packets of full size pass between two nodes", "an answer of 3000 bytes", pair=True
    ),
    Flow(
        "pod-linux",
        "a pod reaches a pod on a Linux node",
        "an answer; the server sees the pod's own address",
        linux=True,
    ),
    Flow("linux-pod", "a pod on a Linux node reaches a Windows pod", _ANSWER, linux=True),
    Flow("node-pod", "a node reaches a pod that is on it", "a connection"),
    Flow("node-pod-remote", "a node reaches a pod on another Windows node", "a connection", pair=True),
    Flow("pod-node", "a pod reaches the node that it is on", "a connection to the kubelet"),
    Flow("pod-service", "a pod reaches a service by its cluster IP", _ANSWER),
    Flow("service-pod", "a service leads to the pods of this node", "an answer of that pod"),
    Flow("linux-service", "a pod on a Linux node reaches a service of Windows pods", _ANSWER, linux=True),
    Flow("node-port", "a NodePort of the node is reached from another machine", "a connection"),
    Flow("dns-full", "a pod finds a service by its full name", "an address"),
    Flow("dns-short", "a pod finds a service by its name without a dot", "an address"),
    Flow("egress", "a pod reaches the outside by TCP", "a connection"),
    Flow(
        "gmsa",
        "two pods that run on a node at the same time reach the domain as their account",
        "a secure channel in both",
    ),
    Flow("smb", "a pod lists the files of a share under its own account", "the list"),
    Flow(
        "volume", "a new pod, on another node if there is one, reads what a pod wrote to a volume", "the text"
    ),
)
# They need more than pods: an account, a share, a StorageClass. Without it a run leaves them out and names what is missing.
WORKLOADS: Final = ("gmsa", "smb", "volume")
# What Windows does not have: named in each run, never a failure.
LIMITATIONS: Final[Mapping[str, str]] = {
    "node-own-port": "a node does not reach its own NodePorts: use another machine",
    "node-service": "a node does not reach the addresses of services: use a pod",
    "ping-outside": "no ICMP leaves the network: use TCP (curl)",
    "node-pod-overlay": "over VXLAN a node reaches only the pods that are on it",
}
IDS: Final = (*(flow.id for flow in FLOWS), *PROBES)
_BY_ID: Final = {flow.id: flow for flow in FLOWS}


def flow(id: str) -> Flow:
    """The flow of an id; KeyError where no flow has it."""
    return _BY_ID[id]


def chosen(names: Sequence[str]) -> frozenset[str]:
    """The ids that these names mean: all where the list is empty. Raises UsageError for an unknown name."""
    for name in names:
        if name not in IDS:
            meant = nearest(name, IDS)
            raise UsageError(
                f"--flows {name}: there is no such flow",
                hint=f"Did you mean {meant!r}?" if meant else "`winboot verify --help` lists them.",
            )
    return frozenset(names or IDS)


def listed() -> str:
    """All ids with what they are, as a text of lines for the command's help."""
    rows = [(flow.id, flow.what) for flow in FLOWS] + list(PROBES.items())
    width = max(len(id) for id, _ in rows)
    return "\n".join(f"{id.ljust(width)}  {what}" for id, what in rows)
