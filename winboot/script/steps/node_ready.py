"""Wait until the Node is Ready, by the kubelet's own certificate: where no kubeconfig lets the controller look."""

from __future__ import annotations

from winboot.script.steps.step import Step

NODE_READY = Step(
    name="node-ready",
    why="with a bootstrap token alone winboot cannot ask the cluster; the kubelet's certificate may read its own Node",
    needs=("registration", "cni-config", "kube-proxy"),
    wanted=lambda spec: spec.cluster.token_alone,
)
