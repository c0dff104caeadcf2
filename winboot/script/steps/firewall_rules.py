"""Open what the kubelet, kube-proxy and the network must be able to receive, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from winboot.config.networks import NETWORKS
from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step

# Every rule that winboot ever makes, by its name.
OURS: Final = frozenset(
    {
        "winboot-kubelet",
        "winboot-kube-proxy-health",
        "winboot-node-ports-tcp",
        "winboot-node-ports-udp",
        *(rule.id for network in NETWORKS for rule in network.ports),
    }
)


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    sources = [str(one) for one in spec.windows.firewall.sources]
    rules = [
        {
            "name": rule.id,
            "ports": rule.ports,
            "protocol": rule.protocol,
            "direction": rule.direction,
            "sources": sources or ["Any"],
            "why": rule.why,
        }
        for rule in spec.firewall
    ]
    wanted = {rule.id for rule in spec.firewall}
    # What an earlier join with other settings may have opened: the names are winboot's alone.
    return {"rules": rules, "closed": [name for name in sorted(OURS) if name not in wanted]}


def _leaves(spec: NodeSpec) -> Mapping[str, Sequence[str]]:
    sources = ", ".join(map(str, spec.windows.firewall.sources)) or "any address"
    return {
        "firewall rules": [
            f"{one.id} ({one.direction}, {one.protocol} {one.ports})" for one in spec.firewall
        ],
        "ports are open to": [sources],
    }


def _wanted(spec: NodeSpec) -> bool:
    return bool(spec.firewall)


FIREWALL_RULES = Step(
    name="firewall-rules",
    why="the control plane connects to the kubelet, and other nodes connect to the pods, only through open ports",
    inputs=_inputs,
    leaves=_leaves,
    needs=("node-preflight", "download-sources"),
    wanted=_wanted,
    identity=False,
)
