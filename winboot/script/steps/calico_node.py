"""Run Calico's node agent as our own service: it makes the pod network above the first switch."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.services import service_table
from winboot.script.steps.step import Step
from winboot.script.steps.texts import node_kubeconfig_text


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    network, solution = spec.network, spec.network.solution
    return {
        "service": service_table(spec, "calico-node"),
        "network": {
            "name": network.network_name,
            "type": solution.hns_type,
            "vni": network.vxlan.vni,
            "endpoint": solution.source_vip_endpoint,
            "log": spec.services["calico-node"].log_file,
        },
    }


def _files(spec: NodeSpec) -> Mapping[str, str]:
    paths = spec.network.solution.paths
    return {
        paths["calico_kubeconfig"]: node_kubeconfig_text(spec, "calico-node"),
        paths["calico_nodename"]: spec.node.name,
    }


def _wanted(spec: NodeSpec) -> bool:
    return CALICO_NODE.name in spec.network.solution.steps


CALICO_NODE = Step(
    name="calico-node",
    why="Calico's agent makes the pod network and its routes to other nodes; kube-proxy uses the endpoint that the agent makes",
    inputs=_inputs,
    leaves=lambda spec: {"services": ["calico-node"], "HNS networks": [spec.network.network_name]},
    needs=("pod-network", "artifacts", "firewall-rules"),
    wanted=_wanted,
    files=_files,
)
