"""Keep the logs of services from filling the disk."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.services import MIB, turns_itself_over
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    log = spec.runtime.log
    return {
        "logs": [service.log_file for service in spec.services.all],
        # Copied and cut off while their writer continues, which must append: containerd opens its --log-file with
        # O_APPEND (cmd/containerd/command/service_windows.go), for Go FILE_APPEND_DATA alone, and lets others write.
        "endless": [one.log_file for one in spec.services.all if not turns_itself_over(spec, one)],
        "max_bytes": log.max_size_mib * MIB,
        "max_files": log.max_files,
    }


LOG_ROTATION = Step(
    name="log-rotation",
    why="containerd's log has no size limit, and NSSM and kube-log-runner never delete old logs: the disk fills up",
    inputs=_inputs,
    leaves=lambda spec: {"scheduled tasks": [r"\winboot\logs (every hour)"]},
    needs=("directories",),
    identity=False,
)
