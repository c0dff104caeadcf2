"""Register flanneld as a service. NSSM runs it: flanneld itself does not answer the service control manager."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.flanneld_config import flannel_wanted
from winboot.script.steps.pod_network import network_table
from winboot.script.steps.services import service_table
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {
        "service": service_table(spec, "flanneld"),
        "network": network_table(spec),
    }


FLANNELD = Step(
    name="flanneld",
    why="flanneld makes the pod network, maintains the routes to other nodes, and renews the lease of its subnet",
    inputs=_inputs,
    leaves=lambda spec: {"services": ["flanneld"]},
    needs=("flanneld-config", "registration", "artifacts"),
    wanted=flannel_wanted,
)
