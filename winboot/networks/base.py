"""What a network solution is, as a value, and what it must be told.

A `Network` says who owns which piece on the node (winboot, the solution's agent, or an operator in the
cluster) and carries the functions that turn the profile's choices into files. The files are data, not text:
nested dicts and lists whose leaves may be `Known`, a value that exists only on the node.

How a `Known` becomes text
    On the node   `winboot.steps.texts` writes it as `<<pod_cidr>>` (its name, with `prefix` and `suffix`
    around it);
                  the library function Expand-Known finds the value out there and fills it in.
    In a preview  `str(known)` is `(known after join)`, with prefix and suffix around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

KnownName = Literal[
    "node_ip",  # the address that reaches the API server, when the inventory does not say
    "node_subnet",  # the CIDR of the network that address is in
    "pod_cidr",  # spec.podCIDR of the Node object (its IPv4 part)
    "pod_cidr_v6",  # its IPv6 part, dual stack only
    "pod_gateway",  # pod CIDR base + 1: the gateway HNS takes
    "pod_endpoint",  # base + 2: the host's own endpoint on an L2 bridge
    "pod_first",  # base + 3: the first address a pod may get
    "pod_gateway_v6",  # the same two of the IPv6 part
    "pod_endpoint_v6",
    "source_vip",  # overlay: the address kube-proxy answers from, reserved in the IPAM store
]

NOT_YET: Final = "(known after join)"


@dataclass(frozen=True, slots=True)
class Known:
    """A value that exists only on the node, with literal text around it: `Known("node_ip", suffix="/32")`."""

    name: KnownName
    prefix: str = ""
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.prefix}{NOT_YET}{self.suffix}"


# Data for a file: JSON's types, with Known among the leaves.
Data: TypeAlias = "str | int | float | bool | Known | Sequence[Data] | Mapping[str, Data] | None"
Text: TypeAlias = "str | Known"

# winboot creates and repairs it; the agent does (a service that winboot runs, or a plugin that it places); an
# operator in the cluster does, or a person, and winboot only looks at it; or the solution has no such thing.
Owner = Literal["winboot", "agent", "operator", "none"]
HnsType = Literal["L2Bridge", "L2Tunnel", "Overlay", "Transparent"]


@dataclass(frozen=True, slots=True)
class Owners:
    """Who owns each piece of a solution on the node."""

    hns_network: Owner
    binaries: Owner
    cni_conf: Owner
    ipam_store: Owner
    routes: Owner
    kube_proxy: Owner


@dataclass(frozen=True, slots=True)
class PortRule:
    """One opening in the firewall. `ports` is `10250` or a range `30000-32767`; `id` is the rule's stable
    name."""

    id: str
    ports: str
    protocol: Literal["TCP", "UDP"]
    why: str
    direction: Literal["in", "out"] = "in"


@dataclass(frozen=True, slots=True)
class Reservation:
    """An address no pod may get: a file `<address>` in the IPAM store holding `holder` and `interface`."""

    address: Known
    holder: str
    interface: str
    why: str


@dataclass(frozen=True, slots=True)
class ClusterNeed:
    """Something the cluster must have for this solution: `check` is its stable name, `why` a sentence."""

    check: str
    why: str


@dataclass(frozen=True, slots=True)
class Choices:
    """What the profile chose, as far as a network must know it."""

    network_name: str
    pod_cidrs: tuple[str, ...]
    service_cidrs: tuple[str, ...]
    dns_service_ips: tuple[str, ...]
    dns_domain: str
    vni: int
    port: int
    mac_prefix: str
    node_ip: Text
    dsr: bool
    node_name: str
    # Where things are on the node, by the names of `winboot.spec.Paths`.
    paths: Mapping[str, str]
    # Who hands out addresses, where that can be chosen; None for the solution's own way.
    ipam: str | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """The service that builds the network: its name, program, arguments (flags, or words as they stand) and environment.

    `runs` names the program that does the work where `program` only starts it.
    """

    service: str
    display: str
    program: str
    arguments: Mapping[str, Text]
    environment: Mapping[str, str]
    words: tuple[str, ...] = ()
    runs: str = ""


@dataclass(frozen=True, slots=True)
class Network:
    """One network solution. `id` is what `explain network <id>` takes; `cni`, `mode` and `managed_by` are the
    profile's keys.

    cni_conf, net_conf, agent  make what winboot writes or runs; None where the solution has no such thing or
    another
                               owns it
    default_name     of the HNS network; `{vni}` stands for the profile's VNI
    host_endpoint    the endpoint of the host in the pod network; kube-proxy must know it. `{name}` is the
    network's source_vip       kube-proxy needs an address of its own in the pod network; with
    `source_vip_endpoint` it is the
                     address of that endpoint, else it is reserved in the IPAM store
    can_route        whether winboot may make the routes to the pods of other nodes (`network.routes: winboot`)
    first_switch     an empty network that is made before the solution's plugin makes its own, so that the
                     adapter is rewired at the join and not with the first pod
    first_vni        the virtual network of that one, where it is an overlay
    makes_own        its agent makes the pod network above the first switch, as soon as it runs
    artifacts        names of the downloads that hold its programs
    fixes            packs of registry values (names of the compatibility data) without which it does not work
    features         what Windows must be able to do (names of the compatibility data)
    later            why it is not offered yet; empty for all that are
    """

    id: str
    cni: str
    mode: str | None
    what: str
    hns_type: HnsType | None
    default_name: str
    owners: Owners
    conf_file: str = ""
    managed_by: Literal["winboot", "operator"] = "winboot"
    cni_conf: Callable[[Choices], Mapping[str, Data]] | None = None
    net_conf: Callable[[Choices], Mapping[str, Data]] | None = None
    agent: Callable[[Choices], Agent] | None = None
    reservations: tuple[Reservation, ...] = ()
    plugins: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    host_endpoint: str | None = None
    source_vip: bool = False
    source_vip_endpoint: str | None = None
    can_route: bool = False
    first_switch: str | None = None
    first_vni: int = 0
    makes_own: bool = False
    fixes: tuple[str, ...] = ()
    ports: tuple[PortRule, ...] = ()
    features: tuple[str, ...] = ()
    dual_stack: bool = False
    needs: tuple[ClusterNeed, ...] = ()
    later: str = ""
    source: str = ""

    def host_endpoint_name(self, network_name: str) -> str | None:
        """The HNS endpoint through which the host itself speaks to pods, or None where there is none."""
        return None if self.host_endpoint is None else self.host_endpoint.format(name=network_name)
