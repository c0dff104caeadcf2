"""What a verification has made in the cluster, and where its ends are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from winboot.config.node_spec import NodeSpec
from winboot.node.probes import Look
from winboot.remote.cluster.base import NodeFacts

# More nodes than this are tried in a ring, each with the next; fewer, each with all others.
ALL_PAIRS = 4


@dataclass(frozen=True, slots=True)
class PodAt:
    """A pod that runs: its name and address."""

    name: str
    address: str


@dataclass(slots=True)
class NodeScene:
    """One Windows node: its two pods, its service, and what its machine said of itself."""

    spec: NodeSpec
    facts: NodeFacts
    server: PodAt | None = None
    client: PodAt | None = None
    service: str = ""  # cluster IP
    node_port: int = 0
    look: Look | None = None
    problem: str = ""  # why its pods do not run
    policies: Sequence[str] = ()  # kind and name of policies that may have made its pods' access lists
    reached: Mapping[str, str] = field(
        default_factory=dict
    )  # target → open, refused or silent, from the machine itself

    @property
    def name(self) -> str:
        """The node's name."""
        return self.spec.node.name

    @property
    def address(self) -> str:
        """The node's own address."""
        return next((value for kind, value in self.facts.addresses if kind == "InternalIP"), "")

    @property
    def overlay(self) -> bool:
        """Whether its pods are on an overlay: as the solution has it, or the machine where another component brings
        the network."""
        kind = self.spec.network.solution.hns_type
        if kind is not None or self.look is None:
            return kind == "Overlay"
        return any(one["type"] == "Overlay" for one in self.look.facts.get("networks", ()))


@dataclass(slots=True)
class Scene:
    """Everything that the flows run between."""

    space: str
    nodes: Sequence[NodeScene]
    linux: PodAt | None = None
    linux_node: str = ""
    linux_problem: str = ""
    service: str = ""  # of all servers
    domain: str = "cluster.local"
    policies: Sequence[str] = ()  # NetworkPolicies that another client has put into the namespace
    everywhere: Sequence[str] = ()  # kind and name of policies over all namespaces

    def partners(self, node: NodeScene) -> list[NodeScene]:
        """The other nodes that a node is tried with; those without pods do not count."""
        running = [one for one in self.nodes if one.server is not None]
        if node not in running:
            return []
        others = [one for one in running if one is not node]
        if len(running) <= ALL_PAIRS or not others:
            return others
        return [running[(running.index(node) + 1) % len(running)]]
