"""Lead to the pods of the other nodes, where no router of the network does."""

from __future__ import annotations

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _wanted(spec: NodeSpec) -> bool:
    return spec.network.routes


POD_ROUTES = Step(
    name="pod-routes",
    why="on a bridge network without an agent, no other program gives this node routes to the other nodes' pods",
    leaves=lambda spec: {"routes": ["one route to each other node's pods"]},
    needs=("registration", "pod-network"),
    wanted=_wanted,
)
