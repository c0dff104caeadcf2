"""Turn on the Windows features that containers need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step

# The names of Server Manager that differ from DISM's, which is what the node asks.
_DISM_NAMES: Final = {
    "hyper-v": "Microsoft-Hyper-V",
    "hyper-v-powershell": "Microsoft-Hyper-V-Management-PowerShell",
}


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {
        "features": [_DISM_NAMES.get(name.lower(), name) for name in spec.windows.features],
        "features_source": spec.windows.features_source,
    }


def _wanted(spec: NodeSpec) -> bool:
    return bool(spec.windows.features)


WINDOWS_FEATURES = Step(
    name="windows-features",
    why="containerd cannot start a container until the Containers feature is on and the machine has restarted",
    inputs=_inputs,
    leaves=lambda spec: {"Windows features": spec.windows.features},
    needs=("node-preflight", "download-sources"),
    wanted=_wanted,
    identity=False,
)
