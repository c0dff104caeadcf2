"""Lift the startup taint when the node can really run pods; the controller does it through the Kubernetes API."""

from __future__ import annotations

from winboot.script.steps.step import Step

STARTUP_TAINT_LIFT = Step(
    name="startup-taint",
    why="a Node becomes Ready before kube-proxy works; this taint keeps pods away until kube-proxy works",
    needs=("node-labels",),
    side="cluster",
)
