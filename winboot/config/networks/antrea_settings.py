"""Antrea's settings for Windows nodes in the cluster: the ConfigMap of its manifests for Windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from winboot.base.foreign import Malformed, yaml_of
from winboot.config.networks.cluster import ClusterSettings, InCluster, Wanted, names
from winboot.report.finding import Finding

_CHECK: Final = "antrea-config"
# antrea-io/antrea v2.7.0 build/yamls/antrea-windows-with-ovs.yml
_NAMESPACE: Final = "kube-system"
_NAME: Final = "antrea-windows-config"
_PLACE: Final = f"ConfigMap {_NAMESPACE}/{_NAME}"


def _findings(cluster: ClusterSettings, wanting: Sequence[Wanted]) -> Iterator[Finding]:
    data = cluster.config_map(_NAMESPACE, _NAME)
    if data is None:
        fix = "Apply antrea-windows-with-ovs.yml of the Antrea release that runs on the Linux nodes."
        yield Finding(_CHECK, "error", f"the cluster has no {_PLACE}", fix, names(wanting))
        return
    for reason, fix in _faults(data.get("antrea-agent.conf", "")):
        yield Finding(_CHECK, "error", f"{_PLACE}: {reason}", fix, names(wanting))


def _faults(text: str) -> Iterator[tuple[str, str]]:
    """What docs/windows.md asks for: without kube-proxy the agent serves all services, and reaches the API server
    by an address of its own."""
    try:
        conf = yaml_of(text)
    except Malformed as error:
        yield f"antrea-agent.conf cannot be read: {error}", "Correct antrea-agent.conf in this ConfigMap."
        return
    if not _table(conf).get("kubeAPIServerOverride"):
        fix = "Set kubeAPIServerOverride to the API server's address: services do not work before the agent runs."
        yield "kubeAPIServerOverride is empty", fix
    if _table(_table(conf).get("antreaProxy")).get("proxyAll") is not True:
        yield "antreaProxy.proxyAll is off", "Set antreaProxy.proxyAll to true: the node runs no kube-proxy."


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


ANTREA_SETTINGS: Final = InCluster(
    check=_CHECK,
    why="Antrea's agent for Windows replaces kube-proxy, and needs the API server's address.",
    findings=_findings,
)
