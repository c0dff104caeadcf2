"""Which certificates the machines of an inventory may have, where there is no session on them.

`join` learns from each machine which address is its own. Machines that come by themselves, at their first boot or
when they renew, are known by the inventory alone. What a Node object claims of its addresses counts for nothing,
because its kubelet writes it.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from winboot.config.inventory import Connection
from winboot.config.node_spec import NodeSpec
from winboot.node.names import expected_node
from winboot.remote.cluster.base import ExpectedNode, Request
from winboot.remote.cluster.requests import concerns, problems


@dataclass(frozen=True, slots=True)
class Roster:
    """The machines of an inventory, as requests for certificates see them."""

    nodes: tuple[ExpectedNode, ...]

    @classmethod
    def of(cls, specs: Sequence[NodeSpec]) -> Roster:
        """The roster of these machines.

        Where the inventory names no node_ip, the address that it connects to counts, if it is an IP address that no
        other machine shares and no jump host leads to.
        """
        times = Counter(spec.machine.address for spec in specs)
        return cls(tuple(_expected(spec, alone=times[spec.machine.address] == 1) for spec in specs))

    def node(self, request: Request) -> ExpectedNode | None:
        """The machine that a request is about; None when it is about none of these."""
        return next((node for node in self.nodes if concerns(request, node)), None)

    def judge(self, request: Request) -> tuple[str, ...] | None:
        """Why a request must not be approved: see `winboot.remote.cluster.base.Judge`.

        A machine requests a client certificate with a bootstrap token that this command does not have: those are the
        controller-manager's.
        """
        node = self.node(request)
        return None if node is None or request.kind == "client" else problems(request, node)


def _expected(spec: NodeSpec, *, alone: bool) -> ExpectedNode:
    node = expected_node(spec, "", None)
    machine = spec.machine
    if machine.node_ip is not None or not alone or _forwarded(machine.connection):
        return node
    try:
        ipaddress.ip_address(machine.address)
    except ValueError:
        return node
    return replace(node, addresses=node.addresses | {machine.address})


def _forwarded(connection: Connection) -> bool:
    """Whether the address is one that another host reaches, or none that leads to the machine itself."""
    return bool(connection.proxy_jump) or connection.tunnel is not None or connection.loopback
