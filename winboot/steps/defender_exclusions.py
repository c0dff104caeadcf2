"""Keep Defender's hands off container layers, where the profile asks for it."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.spec import NodeSpec
from winboot.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    programs = {service.program for service in spec.services.all}
    programs |= {member.destination for artifact in spec.artifacts for member in artifact.members}
    return {
        "processes": sorted(program for program in programs if program.lower().endswith(".exe")),
        "paths": [
            rf"{spec.paths.containerd_root}\io.containerd.snapshotter.v1.windows\snapshots",
            spec.paths.logs,
        ],
    }


def _wanted(spec: NodeSpec) -> bool:
    return spec.windows.defender_exclusions


DEFENDER_EXCLUSIONS = Step(
    name="defender-exclusions",
    why="a scan that holds files open makes image layers fail to unpack; opting in is a choice of the profile",
    inputs=_inputs,
    needs=("node-preflight",),
    wanted=_wanted,
)
