"""Which names and addresses a node's certificate may have: where they come from, and which source winboot believes
(docs/certificates.md).

The inventory and the cloud's own list say them. What a machine says of itself is at most a choice among what they led
one to expect. A certificate of the cluster's CA for `kubernetes.default.svc` or for a neighbour's address would let
the machine speak as those. OpenShift goes by the same rule, with the addresses of the Machine object instead of an
inventory: https://github.com/openshift/cluster-machine-approver/blob/main/README.md ("Node Server CSR Approval
Workflow").
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from winboot.base.errors import ClaimRefused, ClusterRefused
from winboot.config.inventory import MachineSpec
from winboot.config.node_spec import NodeSpec
from winboot.remote.cluster.base import ExpectedNode, NodeFacts
from winboot.remote.cluster.identity import same_machine
from winboot.remote.transport.dialled import resolved
from winboot.report.events import RunStarted

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Others:
    """Whose an address may be in addition to the machine's own: the machines of the run, and the cluster's Nodes.

    `nodes` lists the Nodes; it may raise ClusterError.
    """

    machines: Sequence[MachineSpec]
    nodes: Callable[[], Sequence[NodeFacts]]


def expected_node(spec: NodeSpec, address: str, requestor: str | None) -> ExpectedNode:
    """What a certificate of this node may say. `address` is its own as `believed` gives it (empty: none), `requestor`
    the user that a bootstrap token speaks as."""
    machine = spec.machine
    own = machine.node_ip or address
    names = {spec.node.name, machine.computer_name.lower()}
    return ExpectedNode(
        name=spec.node.name,
        names=frozenset({*names, *machine.certificate_names}),
        addresses=frozenset({own, *machine.certificate_names} - {""}),
        requestors=frozenset({requestor} if requestor else ()),
    )


def believed(spec: NodeSpec, started: RunStarted, others: Others) -> str:
    """The address that this machine's certificate may have because the machine says it: one at which the inventory
    reaches it, and that no other machine has. Empty where it says none, or the inventory says all there is to say.

    Raises ClaimRefused for any other address, with what to write into the inventory if it is right after all.
    """
    machine, said = spec.machine, started.node_ip
    if machine.node_ip is not None or not said:
        return ""
    address = _address(said)
    if said in machine.certificate_names and address is not None:
        return ""
    why = _why_not(spec, address, others)
    if why:
        raise _refused(spec, said, why)
    return str(address)


class Claim:
    """What one machine's certificate may have by the machine's own word, settled once a run.

    `needed`: the change is to end with a serving certificate, so that a claim that is refused ends the node.
    """

    def __init__(self, spec: NodeSpec, others: Others, *, needed: bool) -> None:
        self.address = ""
        self._spec = spec
        self._others = others
        self._needed = needed

    def hear(self, started: RunStarted) -> None:
        """The machine reports its identity: before the change, and at the beginning of each pass. Raises
        ClaimRefused."""
        if self.address:
            # `refuse_second_claim` holds that it is still the same.
            return
        try:
            self.address = believed(self._spec, started, self._others)
        except ClaimRefused:
            if self._needed:
                raise


def refuse_second_claim(node: str, first: RunStarted, now: RunStarted) -> None:
    """A machine is one machine for the length of a run: another UUID, or another address, is ClaimRefused.

    Its computer name may change, by the step of that name; no certificate has it from the machine.
    """
    same = first.smbios_uuid == now.smbios_uuid or same_machine(first.smbios_uuid, now.smbios_uuid)
    if not same:
        _two(node, "SMBIOS UUID", first.smbios_uuid, now.smbios_uuid)
    if first.node_ip and now.node_ip and first.node_ip != now.node_ip:
        _two(node, "address", first.node_ip, now.node_ip)


def _two(node: str, what: str, first: str, now: str) -> None:
    raise ClaimRefused(
        f"{node}: the machine gave two answers in one run: its {what} was {first} and is now {now}",
        hint="Check that the address in the inventory leads to only one machine, then run the same command again.",
        node=node,
    )


def _refused(spec: NodeSpec, said: str, why: str) -> ClaimRefused:
    name = spec.node.name
    return ClaimRefused(
        f"{name}: the machine reports the address {said}, which {why}; winboot approves no certificate for it",
        hint=f"If you know the address to be this machine's, write `node_ip: ADDRESS` for {name} in the inventory "
        "(docs/certificates.md); otherwise check the machine.",
        node=name,
    )


def _why_not(spec: NodeSpec, address: Ip | None, others: Others) -> str:
    """Why this address is not to be believed; empty when it is."""
    if not isinstance(address, ipaddress.IPv4Address):
        return "is not an IPv4 address"
    owner = reserved(spec, address) or _of_another_machine(spec, address, others.machines)
    if owner:
        return owner
    if address == _address(spec.machine.address):
        # The inventory's own word. What the Nodes say of themselves cannot remove it: their kubelets write that.
        return ""
    if str(address) not in resolved(spec.machine.connection.host, spec.machine.connection.port_number):
        return f"is not the machine's address in the inventory ({spec.machine.address})"
    return _of_another_node(spec, address, others.nodes)


def reserved(spec: NodeSpec, address: Ip) -> str:
    """Where an address belongs that no node can have, as the end of a sentence; empty for any other."""
    nobodys = address.is_multicast or address.is_unspecified or address.is_reserved
    if nobodys or address.is_loopback or address.is_link_local:
        return "cannot be a node's address"
    networks = [("service network", spec.cluster.service_cidrs)]
    if not spec.network.solution.pods_in_node_network:
        networks.append(("pod network", spec.cluster.pod_cidrs))
    for what, cidrs in networks:
        for cidr in cidrs:
            if address in ipaddress.ip_network(cidr):
                return f"is in the {what} {cidr}"
    host = spec.cluster.server_host
    if address == _address(host) or str(address) in resolved(host, spec.cluster.server_port):
        return f"is the API server's address ({host})"
    return ""


def _of_another_machine(spec: NodeSpec, address: Ip, machines: Iterable[MachineSpec]) -> str:
    for other in machines:
        if other.name != spec.machine.name and address in _addresses(other):
            return f"is the address of {other.name} in the inventory"
    return ""


def _addresses(machine: MachineSpec) -> Iterator[Ip]:
    texts = (machine.node_ip or machine.address, *machine.certificate_names)
    return (address for address in map(_address, texts) if address is not None)


def _of_another_node(spec: NodeSpec, address: Ip, nodes: Callable[[], Sequence[NodeFacts]]) -> str:
    """A name of the inventory may lead to several addresses, and in a domain a machine writes its own DNS record."""
    try:
        known = nodes()
    except ClusterRefused as error:
        return f"could not be compared with the other Nodes' addresses ({error.problem})"
    for node in known:
        if node.name != spec.node.name and str(address) in {value for _, value in node.addresses}:
            return f"is an address of the Node {node.name}"
    return ""


def _address(text: str) -> Ip | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
