"""Which machine may be which node, by what it proves. A refusal has a name and a sentence; nothing here changes a machine.

Proof is a voucher, or that a person let the machine in. Possession of either is all that they prove: what binds a machine to
a name is the address that it calls from, which must be the one of the inventory, and its SMBIOS UUID once it was let in.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from winboot.base.clean import clean
from winboot.base.errors import ClusterError, InvalidInput
from winboot.config.node_spec import NodeSpec
from winboot.operations.firstboot.store import Store
from winboot.remote.cluster.base import Cluster
from winboot.remote.cluster.identity import same_machine
from winboot.remote.transport.dialled import resolved

_LONGEST: Final = 256
_MOST_ADDRESSES: Final = 64
_UUID: Final = re.compile(r"[0-9A-Za-z-]{1,64}")


@dataclass(frozen=True, slots=True)
class Hello:
    """What a machine says of itself. `peer` is where its call came from, which it cannot choose."""

    uuid: str
    computer_name: str
    addresses: tuple[str, ...]
    host: str
    voucher: str
    peer: str

    @classmethod
    def read(cls, said: Any, peer: str) -> Hello:
        """Raises InvalidInput for anything else than a hello."""
        if not isinstance(said, dict):
            raise InvalidInput("a hello must be an object")
        words = {name: said.get(name, "") for name in ("uuid", "computer_name", "host", "voucher")}
        addresses = said.get("addresses", [])
        texts = [*words.values(), *(addresses if isinstance(addresses, list) else [None])]
        if not all(isinstance(text, str) and len(text) <= _LONGEST for text in texts):
            raise InvalidInput("a hello has texts of at most 256 characters")
        # It is shown to people: letters, digits and hyphens alone.
        if len(addresses) > _MOST_ADDRESSES or not _UUID.fullmatch(words["uuid"]):
            raise InvalidInput("a hello names the machine's SMBIOS UUID and at most 64 addresses")
        return cls(addresses=tuple(addresses), peer=peer, **words)


@dataclass(frozen=True, slots=True)
class Answer:
    """`spec` is what the machine is to be. Without it `id` names the refusal and `why` says it; `wait` when asking again
    may help."""

    spec: NodeSpec | None = None
    id: str = ""
    why: str = ""
    wait: bool = False


@dataclass(frozen=True, slots=True)
class Door:
    """`hosts` gives what the inventory means now, asked for each machine that calls, so that a changed profile holds for the
    next one: pairs of a spec and the groups of its host."""

    store: Store
    hosts: Callable[[], Sequence[tuple[NodeSpec, tuple[str, ...]]]]
    cluster: Callable[[NodeSpec], Cluster | None]

    def ask(self, hello: Hello) -> Answer:
        """Whether the machine may be one of the nodes. Raises InvalidInput for a wrong inventory, ClusterError."""
        voucher = self.store.find(hello.voucher) if hello.voucher else None
        if hello.voucher and voucher is None:
            return Answer(id="UnknownVoucher", why="its voucher is none of ours, or was revoked")
        hosts = self.hosts()
        if voucher is not None:
            hosts = [(spec, groups) for spec, groups in hosts if voucher.scope in (spec.node.name, *groups)]
        spec, refused = _meant(hello, [spec for spec, _ in hosts])
        if spec is None:
            return refused
        if (taken := self._taken(spec, hello)) is not None:
            return taken
        if voucher is None:
            return self._by_hand(spec, hello)
        refusal = self.store.use(voucher.id, hello.uuid)
        return Answer(id="VoucherRefused", why=refusal) if refusal else Answer(spec)

    def _by_hand(self, spec: NodeSpec, hello: Hello) -> Answer:
        name = spec.node.name
        approved = self.store.read().approved.get(name)
        if approved is not None and same_machine(approved, hello.uuid):
            return Answer(spec)
        why = (
            f"it has no voucher and waits for `winboot hook approve {name}` (SMBIOS UUID {clean(hello.uuid)})"
        )
        self.store.note(name, "waits", why, uuid=hello.uuid, address=hello.peer)
        return Answer(id="NotApproved", why=why, wait=True)

    def _taken(self, spec: NodeSpec, hello: Hello) -> Answer | None:
        """A name that another machine has, or one that has become a node already."""
        seen = self.store.read().machines.get(spec.node.name)
        ours = seen is not None and same_machine(seen.uuid, hello.uuid)
        if seen is not None and seen.state == "joining" and not ours:
            why = f"{spec.node.name} is being joined from another machine (SMBIOS UUID {seen.uuid})"
            return Answer(id="AnotherMachine", why=why)
        cluster = self.cluster(spec)
        try:
            node = cluster.node(spec.node.name) if cluster is not None else None
        except ClusterError as error:
            return Answer(id="ClusterAway", why=error.problem, wait=True)
        if node is None or not node.ready or node.has_taint(spec.node.startup_taint.key):
            return None
        if same_machine(node.system_uuid, hello.uuid):
            return Answer(id="AlreadyReady", why=f"the node {spec.node.name} is Ready")
        why = f"the cluster has a Ready node {spec.node.name} on another machine (SMBIOS UUID {node.system_uuid})"
        return Answer(id="AnotherMachine", why=why)


def _meant(hello: Hello, specs: Sequence[NodeSpec]) -> tuple[NodeSpec | None, Answer]:
    """The host that calls from its own address; a stub for one host names it, which does not prove it."""
    named = [one for one in specs if not hello.host or one.node.name == hello.host]
    if not named:
        about = f"the host {clean(hello.host)}" if hello.host else "its voucher"
        return None, Answer(id="NotMeant", why=f"the inventory means no machine for {about}")
    peer = str(ipaddress.ip_address(hello.peer))
    here = [one for one in named if peer in _addresses(one)]
    if len(here) == 1:
        return here[0], Answer()
    if here:
        several = ", ".join(one.node.name for one in here)
        return None, Answer(
            id="NotMeant", why=f"several hosts of the inventory have the address {peer}: {several}"
        )
    why = f"it calls from {peer}, which is no address of a host that it may be"
    return None, Answer(id="AnotherAddress", why=why)


def _addresses(spec: NodeSpec) -> set[str]:
    """Where the inventory has the machine: its address, and the one of its node, names resolved."""
    machine = spec.machine
    return {
        *(resolved(machine.address, machine.connection.port_number)),
        *([machine.node_ip] if machine.node_ip else []),
    }
