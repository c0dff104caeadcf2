"""Give the machine its name before anything remembers the old one."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"computer_name": spec.machine.computer_name}


def _wanted(spec: NodeSpec) -> bool:
    return spec.windows.rename


COMPUTER_NAME = Step(
    name="computer-name",
    why="the computer name distinguishes the logs and certificates of clones; the kubelet also gets the node's name",
    inputs=_inputs,
    leaves=lambda spec: {
        "computer name": [f"{spec.machine.computer_name} (unless the machine is in a domain)"]
    },
    needs=("node-preflight", "download-sources"),
    wanted=_wanted,
)
