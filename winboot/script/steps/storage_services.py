"""Keep the services of Windows running that SMB and iSCSI volumes need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step

# What csi-proxy and the FlexVolume drivers use: cmdlets of these modules, and for iSCSI the service and the firewall rules that
# iscsi.ps1 of microsoft/K8s-Storage-Plugins turns on itself (lines 320 and 321). The names of the rules: the examples of
# dsccommunity/iSCSIDsc.
_SMB: Final = {"Services": ["LanmanWorkstation"], "Rules": [], "Modules": ["SmbShare"]}
_ISCSI: Final = {
    "Services": ["MSiSCSI"],
    "Rules": ["MsiScsi-In-TCP", "MsiScsi-Out-TCP"],
    "Modules": ["iSCSI", "Storage"],
}


def _parts(spec: NodeSpec) -> list[Mapping[str, list[str]]]:
    storage = spec.storage
    return [*([_SMB] if storage.smb else []), *([_ISCSI] if storage.iscsi else [])]


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    parts = _parts(spec)
    return {"wanted": {key: [one for part in parts for one in part[key]] for key in _SMB}}


def _leaves(spec: NodeSpec) -> Mapping[str, Sequence[str]]:
    parts = _parts(spec)
    return {
        "services that start with Windows": [one for part in parts for one in part["Services"]],
        "rules turned on": [one for part in parts for one in part["Rules"]],
    }


STORAGE_SERVICES = Step(
    name="storage-services",
    why="Windows mounts SMB volumes only with its SMB client, and iSCSI volumes only with its iSCSI initiator",
    inputs=_inputs,
    leaves=_leaves,
    needs=("node-preflight", "download-sources"),
    wanted=lambda spec: spec.storage.smb or spec.storage.iscsi,
    identity=False,
)
