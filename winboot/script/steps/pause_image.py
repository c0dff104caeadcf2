"""Have the pause image, and the images of the profile, on the node before the first pod needs them."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"images": list(spec.runtime.images), "leaves_docker": spec.runtime.name != "docker"}


PAUSE_IMAGE = Step(
    name="pause-image",
    why="every pod needs the pause image; an early pull finds a wrong registry, proxy or Windows build before a pod hangs",
    inputs=_inputs,
    leaves=lambda spec: {"images": list(spec.runtime.images)},
    needs=("containerd", "docker"),
    identity=False,
)
