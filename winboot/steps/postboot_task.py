"""Run at each start of the machine: note the boot, put back what a restart takes away."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.spec import NodeSpec
from winboot.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {
        "node_ip": spec.machine.node_ip,
        "server_host": spec.cluster.server_host,
        "server_port": spec.cluster.server_port,
    }


POSTBOOT_TASK = Step(
    name="postboot-task",
    why="a restart loses routes and leaves stale leases, and no controller may be there to mend them",
    inputs=_inputs,
    needs=("directories",),
)
