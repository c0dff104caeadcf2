"""Look whether the machine can become this node at all, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.spec import NodeSpec
from winboot.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {
        "build": spec.machine.build,
        "server_host": spec.cluster.server_host,
        "server_port": spec.cluster.server_port,
        "node_ip": spec.machine.node_ip,
        "free_gib": 20,
    }


NODE_PREFLIGHT = Step(
    name="node-preflight",
    why="a wrong build, a missing right or no way to the API server is found out before the first write",
    inputs=_inputs,
    essential=True,
)
