"""Wait until the Node is Ready, by the kubelet's own certificate: where no kubeconfig lets the controller look."""

from __future__ import annotations

from winboot.script.steps.step import Step

NODE_READY = Step(
    name="node-ready",
    why="with only a bootstrap token, winboot cannot read the Node; the kubelet's certificate can",
    needs=("registration", "cni-config", "kube-proxy"),
    wanted=lambda spec: spec.cluster.token_alone,
)
