"""Look whether the machine can get credentials of group managed service accounts."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    if spec.gmsa is None:
        return {}
    guid = spec.gmsa.plugin_guid
    return {"domain": spec.gmsa.dns_name, "plugin": f"{{{guid}}}" if guid else None}


GMSA = Step(
    name="gmsa",
    why="without its domain a pod's account gets no ticket, and only the pod shows it (never seen on a real domain)",
    inputs=_inputs,
    needs=("node-preflight",),
    wanted=lambda spec: spec.gmsa is not None,
)
