"""Keep the Node's labels and taints as the profile says; the controller does it through the Kubernetes API."""

from __future__ import annotations

from winboot.script.steps.step import Step

NODE_LABELS = Step(
    name="node-labels",
    why="a kubelet sets labels and taints only at its first registration; winboot sets those that change later",
    needs=("registration",),
    side="cluster",
)
