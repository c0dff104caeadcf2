"""Build the network that pods are on, without losing the machine: detached, with a snapshot and a watchdog."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final

from winboot.config.networks import STEPS_BEFORE
from winboot.config.node_spec import NodeSpec
from winboot.script.steps.services import started_by_the_guard
from winboot.script.steps.step import Step

# As SDN's scripts and RKE2 call it.
FIRST_NAME: Final = "External"


def network_table(spec: NodeSpec) -> dict[str, object]:
    """The wanted network as `lib/pod_network.ps1` compares it: the pods' own, or the first switch below it.

    `first` is a switch that winboot makes before an agent that names no adapter to HNS; None elsewhere.
    """
    network, solution = spec.network, spec.network.solution
    # What makes its own network above the first switch does so in its own step, with nothing to lose any more.
    agent = None if solution.makes_own else network.agent
    vni = solution.first_vni if solution.first_switch else network.vxlan.vni
    return {
        "name": solution.first_switch or network.network_name,
        "type": solution.hns_type or "",
        "subnets": _first_subnets(spec) if solution.first_switch else _subnets(spec),
        "empty": solution.first_switch is not None,
        "vni": vni if solution.hns_type == "Overlay" else 0,
        "endpoint": network.host_endpoint or "",
        "endpoint_v6": "<<pod_endpoint_v6>>" if network.host_endpoint and _dual(spec) else "",
        "subnet_env": solution.paths.get("subnet_env", ""),
        "agent": agent.service if agent is not None else "",
        # What it says there last is in the message where it makes no network.
        "log": spec.services[agent.service].log_file if agent is not None else "",
        "first": _first(spec) if agent is not None else None,
    }


def _first(spec: NodeSpec) -> dict[str, object] | None:
    """The empty network that puts a switch on the node's adapter, where the agent would leave the choice to HNS.

    flanneld's host-gw names no adapter (hostgw_windows.go), and HNS then picks one (azure-container-networking, PR 813);
    SDN's KubeCluster.ps1 makes `External` before for that reason. Its VXLAN names the interface of the node's address
    itself (flannel 761c2578), and would name that of the switch, which HNS refuses, if there were one.
    """
    if spec.network.solution.hns_type != "L2Bridge":
        return None
    return {
        "name": FIRST_NAME,
        "type": "L2Bridge",
        "subnets": _first_subnets(spec),
        "empty": True,
        "vni": 0,
        "endpoint": "",
        "endpoint_v6": "",
        "subnet_env": "",
        "agent": "",
        "log": "",
        "first": None,
    }


def _first_subnets(spec: NodeSpec) -> list[dict[str, str]]:
    if spec.network.solution.first_subnet is not None:
        prefix, gateway = spec.network.solution.first_subnet
        return [{"prefix": prefix, "gateway": gateway}]
    found = ipaddress.IPv4Network(spec.network.first_range)
    return [{"prefix": str(found), "gateway": str(found[1])}]


def _subnets(spec: NodeSpec) -> list[dict[str, str]]:
    families = ("", "_v6") if _dual(spec) else ("",)
    return [{"prefix": f"<<pod_cidr{one}>>", "gateway": f"<<pod_gateway{one}>>"} for one in families]


def _dual(spec: NodeSpec) -> bool:
    return len(spec.cluster.pod_cidrs) > 1


def guard_table(spec: NodeSpec) -> dict[str, object]:
    """What the guard of a detached run holds on to: the port of the management, and what a rollback removes."""
    connection = spec.machine.connection
    return {
        # On the machine itself there is no listener to lose.
        "management_port": 0 if connection.transport == "local" else connection.port_number,
        "agent": network_table(spec)["agent"],
        # What a rollback removes, in this order.
        "networks": _networks(spec),
    }


def _networks(spec: NodeSpec) -> list[str]:
    """The names of the HNS networks that this step brings, the pods' own first."""
    table = network_table(spec)
    return [str(table["name"]), *([FIRST_NAME] if table["first"] else [])]


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    solution = spec.network.solution
    return {
        "network": network_table(spec),
        "guard": guard_table(spec),
        "dependents": list(started_by_the_guard(spec)[1:]),
        "restart_hns": bool(solution.fixes),
    }


def _wanted(spec: NodeSpec) -> bool:
    return spec.network.solution.owners.hns_network in ("agent", "winboot")


POD_NETWORK = Step(
    name="pod-network",
    why="a new HNS network rewires the adapter: connections break, and static address, DNS servers and routes can get lost",
    inputs=_inputs,
    leaves=lambda spec: {"HNS networks": _networks(spec)},
    needs=(*STEPS_BEFORE, "registration", "windows-features"),
    wanted=_wanted,
)
