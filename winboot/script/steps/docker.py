"""Register Docker Engine as a service and keep it running, with the network of pods with hostNetwork."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.docker_config import runs_docker
from winboot.script.steps.services import service_table
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {
        "service": service_table(spec, "docker"),
        "pipe": r"\\.\pipe\docker_engine",
        "layers": spec.runtime.folders.layers,
        "host_network": spec.runtime.host_network,
    }


DOCKER = Step(
    name="docker",
    why="the kubelet starts no pod without a container runtime, and pods with hostNetwork need the Docker network named host",
    inputs=_inputs,
    wanted=runs_docker,
    leaves=lambda spec: {"services": ["docker"]},
    needs=("docker-config", "windows-features"),
    identity=False,
)
