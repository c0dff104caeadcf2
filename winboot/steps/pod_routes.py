"""Lead to the pods of the other nodes, where no router of the network does."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.spec import NodeSpec
from winboot.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"pod_cidrs": list(spec.cluster.pod_cidrs)}


def _wanted(spec: NodeSpec) -> bool:
    return spec.network.routes


POD_ROUTES = Step(
    name="pod-routes",
    why="on a bridge without an agent nobody else tells this node where the pods of the others are",
    inputs=_inputs,
    needs=("registration", "pod-network"),
    wanted=_wanted,
)
