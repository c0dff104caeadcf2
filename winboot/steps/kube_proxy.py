"""Register kube-proxy as a service and keep it running."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.spec import NodeSpec
from winboot.steps.kube_proxy_config import kube_proxy_wanted
from winboot.steps.services import service_table
from winboot.steps.step import Step
from winboot.steps.texts import source


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"source": source(spec), "service": service_table(spec, "kube-proxy")}


KUBE_PROXY = Step(
    name="kube-proxy",
    why="services have no address on this node without it; it starts after the HNS network that it programs",
    inputs=_inputs,
    needs=("kube-proxy-config", "pod-network", "artifacts", "firewall-rules"),
    wanted=kube_proxy_wanted,
)
