"""Run OVN-Kubernetes' hybrid-overlay-node as our own service: it makes the pod network above the base network."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.networks.ovn import VNI
from winboot.config.node_spec import NodeSpec
from winboot.script.steps.services import service_table
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    network, service = spec.network, spec.network.solution.agent_service
    return {
        "service": service_table(spec, service),
        # As `lib/pod_network.ps1` compares a network that an agent makes.
        "network": {
            "name": network.network_name,
            "type": network.solution.hns_type,
            "subnets": [{"prefix": "<<pod_cidr>>", "gateway": "<<pod_gateway>>"}],
            "empty": False,
            "vni": VNI,
            "endpoint": "",
            "endpoint_v6": "",
            "subnet_env": "",
            "agent": service,
            "log": spec.services[service].log_file,
            "first": None,
        },
    }


def _wanted(spec: NodeSpec) -> bool:
    return HYBRID_OVERLAY.name in spec.network.solution.steps


HYBRID_OVERLAY = Step(
    name="hybrid-overlay",
    why="OVN-Kubernetes' agent makes the pod network, publishes it to the other nodes, and adds their pod networks",
    inputs=_inputs,
    leaves=lambda spec: {
        "services": [spec.network.solution.agent_service],
        "HNS networks": [spec.network.network_name],
    },
    needs=("pod-network", "artifacts", "firewall-rules"),
    wanted=_wanted,
)
