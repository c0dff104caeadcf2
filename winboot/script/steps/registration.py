"""Wait until the machine is a Node of the cluster, with its certificates and its pod network."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    serving = rf"{spec.paths.kubelet_pki}\kubelet-server-current.pem"
    return {
        "bootstrap": spec.paths.bootstrap_kubeconfig,
        "client": spec.paths.kubelet_client_certificate,
        "serving": serving if spec.kubelet.config.get("serverTLSBootstrap") is True else "",
        "needs_pod_cidr": spec.network.solution.pod_cidr,
        "checked": spec.boot.check_machine,
    }


REGISTRATION = Step(
    name="registration",
    why="the pod network needs the Node's pod CIDR, and `kubectl logs` and `kubectl exec` need the serving certificate",
    inputs=_inputs,
    needs=("kubelet",),
)
