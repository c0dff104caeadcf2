"""What a solution has in the cluster: settings that the nodes must agree with, how they are read, checked and written.

winboot asks the cluster through `ClusterSettings`, so that a solution needs no client of its own; what the nodes want
comes as `Wanted`, one for each node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from winboot.report.finding import Finding

if TYPE_CHECKING:
    # pydantic's weight is only for code that reads a profile.
    from winboot.config.networks.vxlan import Vxlan


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """A kind of objects, none of them in a namespace, that a solution brings to the cluster (a CRD)."""

    group: str
    version: str
    kind: str
    plural: str


class ClusterSettings(Protocol):
    """What a solution may ask of the cluster. Both raise ClusterError where there is no answer."""

    def config_map(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """The data of a ConfigMap; None where it is missing."""
        ...

    def resources(self, kind: ResourceKind) -> Sequence[Mapping[str, Any]] | None:
        """The specs of all objects of a kind, each with its `name`; None where the cluster does not know the kind."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one node wants of its network, as far as the cluster must agree."""

    node: str
    mode: str | None
    pod_cidrs: tuple[str, ...]
    vxlan: Vxlan
    # The file that `Network.net_conf` makes; None where winboot does not own it.
    net_conf: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Detected:
    """What `winboot init` proposes: the network as its option takes it (`cni:mode`), the CIDR of the pods, and where in the
    cluster both are from."""

    network: str
    pod_cidr: str
    where: str


@dataclass(frozen=True, slots=True)
class NetworkManifest:
    """What `winboot manifests <name>` prints: why, a note for the administrator, and the objects for these nodes."""

    name: str
    why: str
    note: str
    make: Callable[[Sequence[Wanted]], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class InCluster:
    """The settings of a solution: the check of preflight (`check` is its stable name, `why` a sentence), and what
    `winboot init` and `winboot manifests` know of them. `kinds` are those that the check asks for.
    """

    check: str
    why: str
    findings: Callable[[ClusterSettings, Sequence[Wanted]], Iterator[Finding]]
    kinds: tuple[ResourceKind, ...] = ()
    detect: Callable[[ClusterSettings], Detected | None] | None = None
    manifest: NetworkManifest | None = None


def names(wanting: Sequence[Wanted]) -> tuple[str, ...]:
    """The nodes that a finding is about."""
    return tuple(one.node for one in wanting)
