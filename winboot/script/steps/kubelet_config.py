"""Write the kubelet's configuration with the values that Windows needs."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step
from winboot.script.steps.texts import json_text


def _files(spec: NodeSpec) -> Mapping[str, str]:
    files = {spec.paths.kubelet_config: json_text(spec.kubelet.config)}
    if spec.kubelet.credentials is not None:
        files[spec.paths.credential_config] = json_text(spec.kubelet.credentials)
    return files


KUBELET_CONFIG = Step(
    name="kubelet-config",
    why="several defaults of the kubelet suit only Linux: on Windows they end the kubelet or break each pod",
    needs=("directories",),
    files=_files,
)
