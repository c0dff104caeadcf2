"""Register kube-proxy as a service and keep it running."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.networks import STEPS_AFTER
from winboot.config.node_spec import NodeSpec
from winboot.script.steps.kube_proxy_config import kube_proxy_wanted
from winboot.script.steps.services import service_table
from winboot.script.steps.step import Step


def _health(spec: NodeSpec) -> str:
    """The address that shows whether kube-proxy serves; empty where no address shows that.

    With Azure CNI the HNS network comes with the first pod, and kube-proxy waits for it.
    """
    bound = spec.kube_proxy.config.get("healthzBindAddress")
    if not isinstance(bound, str) or ":" not in bound or spec.network.solution.first_switch is not None:
        return ""
    return f"http://127.0.0.1:{bound.rpartition(':')[2]}/healthz"


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {
        "service": service_table(spec, "kube-proxy"),
        "network": spec.network.solution.first_switch or spec.network.network_name,
        "health": _health(spec),
    }


KUBE_PROXY = Step(
    name="kube-proxy",
    why="without kube-proxy, services are unreachable on this node; kube-proxy starts after its HNS network exists",
    inputs=_inputs,
    leaves=lambda spec: {"services": ["kube-proxy"]},
    needs=(
        "kube-proxy-config",
        "pod-network",
        *STEPS_AFTER,
        "operator-network",
        "artifacts",
        "firewall-rules",
    ),
    wanted=kube_proxy_wanted,
)
