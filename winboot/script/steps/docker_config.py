"""Give Docker its configuration, and crictl the pipe of the runtime."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def runs_docker(spec: NodeSpec) -> bool:
    """Whether Docker is the runtime."""
    return spec.runtime.name == "docker"


def _files(spec: NodeSpec) -> Mapping[str, str]:
    endpoint = spec.runtime.endpoint
    crictl = f"runtime-endpoint: {endpoint}\nimage-endpoint: {endpoint}\ntimeout: 10\n"
    return {spec.paths.docker_config: spec.runtime.config_text, spec.paths.crictl_config: crictl}


DOCKER_CONFIG = Step(
    name="docker-config",
    why="Docker exits if its configuration has a key for Linux only, and container logs without limits fill the disk",
    wanted=runs_docker,
    needs=("artifacts", "directories"),
    files=_files,
    identity=False,
)
