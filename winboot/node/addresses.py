"""Whether a Node has an address of its machine.

A kubelet whose `--node-ip` the machine does not have registers all the same. A new Node has no address then, an old
one keeps what it had, and both are Ready (kubernetes, pkg/kubelet/kubelet_node_status.go, setNodeStatus).
"""

from __future__ import annotations

from collections.abc import Collection

from winboot.remote.cluster.base import NodeFacts

NO_ADDRESS = "NoNodeAddress"
OTHER_ADDRESS = "OtherNodeAddress"


def address_problem(node: NodeFacts, own: Collection[str]) -> tuple[str, str] | None:
    """The problem's id and what is wrong, or None. `own` are addresses that would be right; none where they are not known."""
    has = [value for kind, value in node.addresses if kind == "InternalIP"]
    if not has:
        return NO_ADDRESS, "the Node has no address"
    if own and not set(has) & set(own):
        return OTHER_ADDRESS, f"the Node has {', '.join(has)}; the machine has {', '.join(sorted(own))}"
    return None
