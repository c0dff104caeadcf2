"""What a network solution is, as a value, and what it takes from a profile.

A `Network` names the owner of each piece on the node (winboot, the solution's agent, or an operator in the cluster).
It carries the functions that turn the profile's choices into files. The files are data, not text: nested dicts and
lists whose leaves may be `Known`, a value that exists only on the node.

How a `Known` becomes text
    On the node   `winboot.script.steps.texts` writes it as `<<pod_cidr>>` (its name, with `prefix` and `suffix`
                  around it). The library function Expand-Known finds the value out there and fills it in.
    In a preview  `str(known)` is `(known after join)`, with prefix and suffix around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from winboot.config.compat.downloads import proposed
from winboot.config.networks.cluster import InCluster
from winboot.report.events import KNOWN_LATER

if TYPE_CHECKING:
    # pydantic's weight is only for code that reads a profile.
    from winboot.config.networks.vxlan import Vxlan

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

SERVER_2019: Final = 17763


@dataclass(frozen=True, slots=True)
class Known:
    """A value that exists only on the node, with literal text around it: `Known("node_ip", suffix="/32")`."""

    name: KnownName
    prefix: str = ""
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.prefix}{KNOWN_LATER}{self.suffix}"


# Data for a file: JSON's types, with Known among the leaves.
Data: TypeAlias = "str | int | float | bool | Known | Sequence[Data] | Mapping[str, Data] | None"
Text: TypeAlias = "str | Known"

# One of these creates and repairs it: winboot, or the agent (a service that winboot runs, or a plugin that it
# places). Or an operator in the cluster or a person does, and winboot only looks at it. Or the solution has no such
# thing.
Owner = Literal["winboot", "agent", "operator", "none"]
# Where pods go: to pods of the cluster, to services, to the networks that the nodes are in, to the node's own subnet,
# or to its own pods. The profile names the nodes' networks, else the node's own counts.
Destination = Literal["pods", "services", "nodes", "node_subnet", "node_pods"]
HnsType = Literal["L2Bridge", "L2Tunnel", "Overlay", "Transparent"]


@dataclass(frozen=True, slots=True)
class Owners:
    """The owner of each piece of a solution on the node."""

    hns_network: Owner
    binaries: Owner
    cni_conf: Owner
    ipam_store: Owner
    routes: Owner
    kube_proxy: Owner


@dataclass(frozen=True, slots=True)
class HnsName:
    """The name of an HNS network that a solution makes (`*` for any text), and where its source shows it."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class PortRule:
    """One opening in the firewall. `ports` is `10250` or a range `30000-32767`; `id` is the rule's stable name."""

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
    vxlan: Vxlan
    node_ip: Text
    dsr: bool
    node_name: str
    # Where things are on the node, by the names of `winboot.config.node_spec.Paths` and of `Network.paths`.
    paths: Mapping[str, str]
    # Where the nodes are, as far as the profile says it.
    node_cidrs: tuple[str, ...] = ()
    # Windows' build, 17763 for Windows Server 2019.
    build: int = 0
    # Words of a program that its version decides: part of the command -> words (`winboot.config.compat.downloads`).
    calls: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # The API server's address.
    server: str = ""
    # What hands out addresses, where the user can choose that; None for the solution's own way.
    ipam: str | None = None
    # What the profile adds to the destinations that pods reach without NAT, and what it removes.
    nat_add: tuple[str, ...] = ()
    nat_remove: tuple[str, ...] = ()

    def nat_exceptions(self, own: Sequence[Destination]) -> list[Text]:
        """The networks that pods reach without NAT: a solution's own with the profile's changes, in order."""
        found = destinations(own, self.pod_cidrs, self.service_cidrs, self.node_cidrs)
        kept = [one for one in found if destination_name(one) not in self.nat_remove]
        exceptions = list(dict.fromkeys([*kept, *self.nat_add]))
        return _widest(exceptions) if self.build == SERVER_2019 else exceptions


def destinations(
    kinds: Sequence[Destination], pods: Sequence[str], services: Sequence[str], nodes: Sequence[str]
) -> list[Text]:
    """The networks behind the names of `Network.exceptions`."""
    networks: Mapping[Destination, Sequence[Text]] = {
        "pods": pods,
        "services": services,
        "nodes": nodes or (Known("node_subnet"),),
        "node_subnet": (Known("node_subnet"),),
        "node_pods": (Known("pod_cidr"),),
    }
    return [network for kind in kinds for network in networks[kind]]


def destination_name(value: Text) -> str:
    """How the profile names an exception: a network, or `node_subnet` for the one that only the node knows."""
    return value.name if isinstance(value, Known) else value


def _widest(exceptions: Sequence[Text]) -> list[Text]:
    """Of networks with one first address the one with the shortest prefix.

    Windows Server 2019 drops the prefix lengths of exceptions and then what is there twice (Azure/AgentBaker
    azurecnifunc.ps1, GetBroadestRangesForEachAddress). The network of a node's own pods lies in that of all pods.
    """
    lengths: dict[str, int] = {}
    for one in exceptions:
        if isinstance(one, str):
            first, _, length = one.partition("/")
            lengths[first] = min(int(length), lengths.get(first, 128))
    return [
        one
        for one in exceptions
        if (one.name != "pod_cidr" if isinstance(one, Known) else _is_widest(one, lengths))
    ]


def _is_widest(cidr: str, lengths: Mapping[str, int]) -> bool:
    first, _, length = cidr.partition("/")
    return lengths[first] == int(length)


@dataclass(frozen=True, slots=True)
class Download:
    """One download of a solution: `name` in the compatibility data, `key` below `artifacts` in the profile.

    `version` is what is taken where the profile names none; without it the profile must, and `winboot init` writes
    `proposed` there. `title` is for people.
    """

    name: str
    key: str
    title: str
    version: str = ""
    proposed: str = ""


CNI_PLUGINS: Final = Download("cni-plugins", "cni_plugins", "the CNI plug-ins", proposed("cni-plugins"))


@dataclass(frozen=True, slots=True)
class Rights:
    """What an agent may do with the node's certificate: ClusterRoles that come with the solution's own manifests
    (`bound`), and the rules of winboot's role (`name`, as `winboot manifests rbac` prints it)."""

    bound: tuple[str, ...] = ()
    name: str = ""
    rules: tuple[Mapping[str, Sequence[str]], ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """The service that builds the network: its name, program, arguments (flags, or words as they are) and environment.

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
    """One network solution: all that winboot knows about it. docs/how-to-add-a-network.md goes through the fields.

    `id` is what `winboot explain network <id>` takes; `cni`, `mode` and `managed_by` are the profile's keys.
    """

    id: str
    cni: str
    mode: str | None
    # For a person who compares solutions: half a sentence.
    what: str
    hns_type: HnsType | None
    # Of the HNS network; `{vni}` is replaced by the profile's VNI. Empty where only the user can know it.
    default_name: str
    owners: Owners
    # All HNS networks that it makes under names of its own: on a node of another solution they are not leftovers.
    hns_names: tuple[HnsName, ...] = ()
    managed_by: Literal["winboot", "operator"] = "winboot"
    # The profile key below `artifacts` whose presence chooses this form before the others of its CNI.
    chosen_by: str = ""
    # What a person does to wait for a network that an operator owns: one or two sentences.
    owner_hint: str = ""

    # What winboot writes or runs; None where the solution has no such thing or winboot does not own it.
    conf_file: str = ""
    cni_conf: Callable[[Choices], Mapping[str, Data]] | None = None
    net_conf: Callable[[Choices], Mapping[str, Data]] | None = None
    agent: Callable[[Choices], Agent] | None = None
    # The service of `agent`, and whether it needs NSSM because it answers no service manager.
    agent_service: str = ""
    agent_nssm: bool = False
    rights: Rights | None = None

    # Steps that only this solution has: before the pod network is made; after it, and before CNI configuration and
    # kube-proxy; and those that nothing waits for.
    steps_before: tuple[str, ...] = ()
    steps_after: tuple[str, ...] = ()
    steps_beside: tuple[str, ...] = ()

    # Files: where its own are on the node, by name; CNI plug-ins, which go to one folder; other programs with their
    # names in `paths`; and what they are downloaded with.
    paths: Mapping[str, str] = field(default_factory=dict)
    # Names in `paths`: configuration that a program reads there, and what the agent itself writes.
    configuration: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    programs: tuple[tuple[str, str], ...] = ()
    downloads: tuple[Download, ...] = ()

    # Addresses. `pod_cidr`: whether anything on the node is made from spec.podCIDR, so that a join waits for it.
    pod_cidr: bool = False
    # The Node's annotation that holds it instead.
    pod_cidr_annotation: str = ""
    reservations: tuple[Reservation, ...] = ()
    # IPAM plug-ins that the profile may choose from, the default first.
    ipams: tuple[str, ...] = ()
    # The endpoint of the host in the pod network, `{name}` being the network's; kube-proxy must know it.
    host_endpoint: str | None = None
    # Whether kube-proxy needs an address in the pod network: that of `source_vip_endpoint`, which the network's
    # owner makes, or one that is reserved in the IPAM store.
    source_vip: bool = False
    source_vip_endpoint: str | None = None
    # Whether the overlay gets the policy HostRoute, without which a node does not reach its own pods.
    host_route: bool = False

    # An empty network that is made before the solution makes its own. So the adapter is rewired in a guarded run and
    # not with the first pod. Its VNI where it is an overlay.
    first_switch: str | None = None
    first_vni: int = 0
    # Its range and gateway where the solution looks for exactly these; any free range otherwise.
    first_subnet: tuple[str, str] | None = None
    # Its agent makes the pod network above the first switch, as soon as it runs.
    makes_own: bool = False

    # No other HNS network may be on its adapter. Windows features that it needs besides Containers. Whether its driver is
    # test-signed, which the profile must accept.
    alone: bool = False
    roles: tuple[str, ...] = ()
    test_signed: bool = False

    # Pods have addresses of the network that the nodes are in.
    pods_in_node_network: bool = False
    # Whether frames leave the machine with the MAC addresses of pods, which a hypervisor must allow.
    pods_own_macs: bool = False
    # Whether winboot may make the routes to the pods of other nodes (`network.routes: winboot`).
    can_route: bool = False
    # What must be reached without the HTTP proxy, in addition to the cluster's own networks.
    no_proxy: tuple[str, ...] = ()
    ports: tuple[PortRule, ...] = ()
    # Names of the compatibility data: registry values without which it does not work; what Windows must be able to do.
    fixes: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    dual_stack: bool = False
    # What a user of two families should know: what is wrong with it, for `winboot check`.
    dual_stack_note: str = ""
    # What pods reach without NAT, where winboot writes that down; and what of it the user cannot remove.
    exceptions: tuple[Destination, ...] = ()
    fixed_exceptions: tuple[Destination, ...] = ()
    needs: tuple[ClusterNeed, ...] = ()
    # Its settings in the cluster: how preflight checks them, what `winboot init` and `winboot manifests` know of them.
    in_cluster: InCluster | None = None
    # Why winboot does not offer it; empty for all that it offers.
    later: str = ""
    source: str = ""

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps that only this solution has."""
        return (*self.steps_before, *self.steps_after, *self.steps_beside)

    @property
    def routed(self) -> bool:
        """Whether pods appear on the nodes' network with addresses that were not given out there: a cloud drops their packets
        unless its settings forward them. Overlays wrap them; others take addresses of the nodes' network."""
        return self.hns_type == "L2Bridge" and not self.pods_in_node_network

    def pod_networks(self, pod_cidrs: tuple[str, ...], annotations: Mapping[str, str]) -> tuple[str, ...]:
        """The CIDRs of a Node's pods: the Node's own, or those in the annotation that this network reads."""
        if not self.pod_cidr_annotation:
            return pod_cidrs
        return tuple(filter(None, (annotations.get(self.pod_cidr_annotation),)))

    def host_endpoint_name(self, network_name: str) -> str | None:
        """The HNS endpoint through which the host itself speaks to pods, or None without one."""
        return None if self.host_endpoint is None else self.host_endpoint.format(name=network_name)
