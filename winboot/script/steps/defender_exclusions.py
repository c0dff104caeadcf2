"""Keep Defender's hands off container layers, where the profile asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _exclusions(spec: NodeSpec) -> dict[str, list[str]]:
    programs = {service.program for service in spec.services.all}
    programs |= {member.destination for artifact in spec.artifacts for member in artifact.members}
    return {
        "processes": sorted(program for program in programs if program.lower().endswith(".exe")),
        "paths": [
            spec.runtime.folders.layers,
            *([spec.paths.containerd_temp] if spec.paths.containerd_temp else []),
            spec.paths.logs,
        ],
    }


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return _exclusions(spec)


def _leaves(spec: NodeSpec) -> Mapping[str, Sequence[str]]:
    found = _exclusions(spec)
    return {"Defender exclusions": [*found["paths"], *(f"process {one}" for one in found["processes"])]}


def _wanted(spec: NodeSpec) -> bool:
    return spec.windows.defender_exclusions


DEFENDER_EXCLUSIONS = Step(
    name="defender-exclusions",
    why="a virus scan that keeps files open makes image layers fail to unpack; the profile turns this step on",
    inputs=_inputs,
    leaves=_leaves,
    needs=("node-preflight", "download-sources"),
    wanted=_wanted,
    identity=False,
)
