"""Download the programs, check their hashes and put them in their places."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.programs import common_proxy
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"proxy": common_proxy(spec)}


def _wanted(spec: NodeSpec) -> bool:
    return bool(spec.artifacts)


ARTIFACTS = Step(
    name="artifacts",
    why="only a program's hash proves which program it is; a version string or a date can be wrong",
    inputs=_inputs,
    leaves=lambda spec: {
        "programs": [member.destination for one in spec.artifacts for member in one.members]
    },
    needs=("directories", "trust-roots"),
    wanted=_wanted,
    identity=False,
)
