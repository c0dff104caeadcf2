"""Register cri-dockerd as a service below NSSM and keep it running."""

from __future__ import annotations

from winboot.script.steps.services import service_table
from winboot.script.steps.step import Step

CRI_DOCKERD = Step(
    name="cri-dockerd",
    why="from Kubernetes 1.24 on, the kubelet cannot use Docker without cri-dockerd",
    inputs=lambda spec: {"service": service_table(spec, "cri-dockerd")},
    wanted=lambda spec: "cri-dockerd" in spec.services,
    leaves=lambda spec: {"services": ["cri-dockerd"]},
    # It would pull the pause image itself, without a word of it.
    needs=("docker", "pause-image"),
    identity=False,
)
