"""Which machine may be which node, by what it proves. A refusal has a name and a sentence; nothing here changes a machine.

A machine has a voucher, or a person let it in: possession of either is all that they prove. What binds it to a name is the
address that it calls from, which must be the one of the inventory, and its SMBIOS UUID once it was let in. Or its
cloud confirms its identity (`proof`).
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from winboot.base.clean import clean
from winboot.base.errors import ClusterError
from winboot.config.node_spec import NodeSpec
from winboot.operations.firstboot.hello import Done, Hello, Refusal, ready_word
from winboot.operations.firstboot.proof import Proof, Proven
from winboot.operations.firstboot.store import Store
from winboot.remote.cloud.base import same_provider_id
from winboot.remote.cluster.base import Cluster
from winboot.remote.cluster.identity import same_machine
from winboot.remote.transport.dialled import resolved

Meant = Sequence[tuple[NodeSpec, tuple[str, ...]]]
# How long what the inventory means holds for every caller. A group that starts asks its cloud for one list, not for
# one each; so does a machine that calls all day.
MEANT_S: Final = 5.0
# How long what a name resolves to holds, and how many names are resolved side by side.
NAMES_S: Final = 60.0
_RESOLVERS: Final = 16


@dataclass(slots=True)
class Shared:
    """What the inventory means, asked once for all machines that call within `lasts` seconds. Any thread may call
    it."""

    ask: Callable[[], Meant]
    lasts: float = MEANT_S
    now: Callable[[], float] = time.monotonic
    _found: tuple[float, Meant] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self) -> Meant:
        """Raises what `ask` does, each time again."""
        with self._lock:
            if self._found is None or self.now() - self._found[0] >= self.lasts:
                self._found = None
                found = self.ask()
                self._found = self.now(), found
            return self._found[1]


@dataclass(slots=True)
class Names:
    """The addresses of hosts. winboot resolves a name once for all machines that call within `lasts` seconds. Any
    thread may call it."""

    resolve: Callable[[str, int], tuple[str, ...]] = resolved
    lasts: float = NAMES_S
    now: Callable[[], float] = time.monotonic
    _found: dict[str, tuple[float, tuple[str, ...]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def addresses(self, specs: Sequence[NodeSpec]) -> list[set[str]]:
        """Where the inventory has each machine: its address, names resolved, and the one of its node."""
        with self._lock:
            now = self.now()
            self._found = {name: one for name, one in self._found.items() if now - one[0] < self.lasts}
            ports = {one.machine.address: one.machine.connection.port_number for one in specs}
            missing = [name for name in ports if name not in self._found]
            if missing:
                with ThreadPoolExecutor(_RESOLVERS) as pool:
                    answers = pool.map(lambda name: self.resolve(name, ports[name]), missing)
                    self._found.update(
                        (name, (now, answer)) for name, answer in zip(missing, answers, strict=True)
                    )
            return [{*self._found[one.machine.address][1], one.machine.node_ip or ""} - {""} for one in specs]


@dataclass(frozen=True, slots=True)
class Door:
    """`hosts` gives what the inventory means now: pairs of a spec and the groups of its host. It runs for each
    machine that calls, so that a changed profile holds for the next one.
    `proof` is what machines of a cloud show in place of a voucher."""

    store: Store
    hosts: Callable[[], Meant]
    cluster: Callable[[NodeSpec], Cluster | None]
    proof: Proof | None = None
    names: Names = field(default_factory=Names)

    def ask(self, hello: Hello) -> NodeSpec | Refusal | Done:
        """What the machine is to be, or that it is so. Raises InvalidInput for a wrong inventory, ClusterError, CloudError."""
        if hello.voucher:
            return self._by_voucher(hello)
        if hello.document and self.proof is not None:
            return self._by_proof(self.proof, hello)
        spec = self._at(hello, [spec for spec, _ in self.hosts()])
        return (
            spec
            if isinstance(spec, Refusal)
            else self._free(spec, hello, by_hand=True) or self._by_hand(spec, hello)
        )

    def _by_voucher(self, hello: Hello) -> NodeSpec | Refusal | Done:
        voucher = self.store.find(hello.voucher)
        if voucher is None:
            return Refusal("UnknownVoucher", "winboot did not issue this voucher, or the voucher is revoked")
        meant = [spec for spec, groups in self.hosts() if voucher.scope in (spec.node.name, *groups)]
        spec = self._at(hello, meant)
        if isinstance(spec, Refusal):
            return spec
        taken = self._free(spec, hello)
        if taken is not None:
            return taken
        seen = self.store.read().machines.get(spec.node.name)
        if voucher.kind == "host" and seen is not None and seen.ready_at > voucher.made:
            return Refusal(
                "VoucherRefused", f"the voucher {voucher.id} is used up: {spec.node.name} was Ready"
            )
        why = self.store.use(voucher.id, hello.uuid, node=spec.node.name, address=hello.peer)
        return Refusal("VoucherRefused", why) if why else spec

    def _by_proof(self, proof: Proof, hello: Hello) -> NodeSpec | Refusal | Done:
        seen = self.store.read().machines.values()
        # The UUID alone is anybody's to say, and the address is not.
        known = any(same_machine(one.uuid, hello.uuid) and one.address == hello.peer for one in seen)
        proven = proof.prove(hello, known=known)
        if isinstance(proven, Refusal):
            return proven
        spec = next((one for one, _ in self.hosts() if _is(one, proven)), None)
        if spec is None:
            return Refusal("NotMeant", f"the inventory does not contain the instance {proven.instance}")
        free = self._free(spec, hello, started=proven.started)
        return free or self._since_its_start(spec, proven, hello) or spec

    def _since_its_start(self, spec: NodeSpec, proven: Proven, hello: Hello) -> Refusal | None:
        """Refuses what pods of the machine can prove as well as the machine: they have its document, and its address where
        it translates theirs. Before the machine was a node it had no pods."""
        name = spec.node.name
        seen = self.store.read().machines.get(name)
        if seen is None:
            return None
        start = proven.started.timestamp() if proven.started is not None else 0.0
        if seen.ready_at > start:
            why = f"since its start, {proven.instance} was the Ready node {name}, so its pods could act as the machine"
            return Refusal("WasReady", f"{why}: stop and start it, replace it, or run `winboot join`")
        other = not same_machine(seen.uuid, hello.uuid)
        if other and seen.at > start and seen.address == hello.peer:
            why = f"since its start, {proven.instance} joined with another SMBIOS UUID ({seen.uuid})"
            return Refusal("AnotherMachine", why)
        return None

    def _by_hand(self, spec: NodeSpec, hello: Hello) -> NodeSpec | Refusal:
        name = spec.node.name
        approved = self.store.read().approved.get(name)
        if approved is not None and same_machine(approved, hello.uuid):
            return spec
        uuid = clean(hello.uuid)
        why = f"the machine has no voucher; compare its SMBIOS UUID, then run `winboot hook approve {name} {uuid}`"
        return Refusal("NotApproved", why, wait=True, node=name)

    def _free(
        self, spec: NodeSpec, hello: Hello, *, by_hand: bool = False, started: datetime | None = None
    ) -> Refusal | Done | None:
        """Refuses a name that another machine has; a machine that has become a node already receives that as the
        reason.

        Whatever this endpoint remembers, a Node without the startup taint was admitted, and its pods can show what its machine
        can. Only an administrator's approval of one machine counts then, or that its cloud `started` it again after its kubelet
        fell silent: pods do not outlive that.
        """
        name = spec.node.name
        seen = self.store.read().machines.get(name)
        if seen is not None and seen.state == "joining" and not same_machine(seen.uuid, hello.uuid):
            why = f"another machine (SMBIOS UUID {seen.uuid}) is joining as {name}"
            return Refusal("AnotherMachine", why)
        cluster = self.cluster(spec)
        try:
            node = cluster.node(name) if cluster is not None else None
        except ClusterError as error:
            return Refusal("ClusterAway", error.problem, wait=True)
        if node is None or not node.was_admitted(spec.node.startup_taint.key):
            return None
        if not same_machine(node.system_uuid, hello.uuid):
            why = f"winboot admitted the Node {name} on another machine (SMBIOS UUID {node.system_uuid})"
            return Refusal("AnotherMachine", f"{why}: delete the Node if that machine is gone")
        again = started is not None and node.silent_since is not None and node.silent_since < started
        if node.ready:
            return Done(name, ready_word(name), spec.boot.ready_file)
        why = f"winboot admitted the Node {name} (not Ready now), so its pods could act as the machine"
        return (
            None
            if by_hand or again
            else Refusal("WasReady", f"{why}: delete the Node, or run `winboot join`")
        )

    def _at(self, hello: Hello, specs: Sequence[NodeSpec]) -> NodeSpec | Refusal:
        """The host that calls from its own address; a stub for one host names it, which does not prove it."""
        named = [one for one in specs if not hello.host or one.node.name == hello.host]
        if not named:
            about = f"the host {clean(hello.host)}" if hello.host else "its voucher"
            return Refusal("NotMeant", f"the inventory has no host for {about}")
        peer = str(ipaddress.ip_address(hello.peer))
        at = self.names.addresses(named)
        here = [one for one, addresses in zip(named, at, strict=True) if peer in addresses]
        if len(here) == 1:
            return here[0]
        if here:
            several = ", ".join(one.node.name for one in here)
            return Refusal("NotMeant", f"several hosts of the inventory have the address {peer}: {several}")
        return Refusal("AnotherAddress", f"the machine calls from {peer}, not from the address of its host")


def _is(spec: NodeSpec, proven: Proven) -> bool:
    return same_provider_id(spec.machine.provider_id or "", proven.provider_id)
