"""Register csi-proxy as a service, for CSI drivers whose pods are not HostProcess ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.services import service_table
from winboot.script.steps.step import Step

# One of those that every version from 1.0 on serves (client/groups/filesystem/v1 of kubernetes-csi/csi-proxy).
PIPE: Final = r"\\.\pipe\csi-proxy-filesystem-v1"


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"service": service_table(spec, "csi-proxy"), "pipe": PIPE}


CSI_PROXY = Step(
    name="csi-proxy",
    why="a CSI driver in an ordinary pod reaches the host's disks and shares only through csi-proxy's named pipes",
    inputs=_inputs,
    leaves=lambda spec: {"services": ["csi-proxy"]},
    needs=("directories", "artifacts"),
    wanted=lambda spec: "csi-proxy" in spec.services,
)
