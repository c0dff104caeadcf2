"""Build the network that pods are on, without losing the machine: detached, with a snapshot and a watchdog."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.spec import NodeSpec
from winboot.steps.step import Step
from winboot.steps.texts import source


def network_table(spec: NodeSpec) -> dict[str, object]:
    """The wanted pod network as `lib/pod_network.ps1` compares it."""
    network = spec.network
    agent = network.agent
    return {
        "name": network.network_name,
        "type": network.solution.hns_type or "",
        "endpoint": network.host_endpoint or "",
        "subnet_env": spec.paths.subnet_env if agent is not None and agent.service == "flanneld" else "",
        "agent": agent.service if agent is not None else "",
        "vni": network.vni if network.solution.hns_type == "Overlay" else 0,
    }


def _guard(spec: NodeSpec) -> dict[str, object]:
    table, connection = network_table(spec), spec.machine.connection
    return {
        "node_ip": spec.machine.node_ip or "",
        "server_host": spec.cluster.server_host,
        "server_port": spec.cluster.server_port,
        # On the machine itself there is no listener to lose.
        "management_port": 0 if connection.transport == "local" else connection.port_number,
        "agent": table["agent"],
        "network": table["name"],
    }


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"source": source(spec), "network": network_table(spec), "guard": _guard(spec)}


def _wanted(spec: NodeSpec) -> bool:
    return spec.network.solution.owners.hns_network == "agent"


POD_NETWORK = Step(
    name="pod-network",
    why="making an HNS network rewires the adapter: sessions drop, and a static address, DNS servers and routes can vanish",
    inputs=_inputs,
    needs=("flanneld", "registration", "windows-features"),
    wanted=_wanted,
)
