"""flannel's ConfigMap: one for the whole cluster, with values that Linux and Windows nodes must share."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from winboot.base.errors import ClusterError, UsageError
from winboot.base.foreign import Malformed, decoded
from winboot.config.networks.cluster import (
    ClusterSettings,
    Detected,
    InCluster,
    NetworkManifest,
    Wanted,
    names,
)
from winboot.report.finding import Finding

NAMESPACE: Final = "kube-flannel"
CONFIG_MAP: Final = "kube-flannel-cfg"
# Where flannel's own manifest puts it, and where older ones did.
PLACES: Final = ((NAMESPACE, CONFIG_MAP), ("kube-system", CONFIG_MAP))
# What flannel on Linux takes where the file names nothing; Windows needs a VNI of 4096 or more, and port 4789
# (flannel-io/flannel, Documentation/backends.md).
LINUX_VNI: Final = 1
LINUX_PORT: Final = 8472
_CHECK: Final = "flannel-config"


class _Backend(msgspec.Struct, frozen=True):
    Type: str = "udp"
    VNI: int | None = None
    Port: int | None = None
    DirectRouting: bool = False


class _NetConf(msgspec.Struct, frozen=True):
    """flannel-io/flannel, pkg/subnet/config.go (Config), and pkg/backend/vxlan/vxlan.go (RegisterNetwork)."""

    Network: str = ""
    Backend: _Backend | None = None


_NET_CONF: Final = msgspec.json.Decoder(_NetConf)


@dataclass(frozen=True, slots=True)
class FlannelConf:
    """flannel's net-conf.json as the cluster's ConfigMap contains it; `place` is namespace/name."""

    place: str
    network: str
    backend: str
    vni: int | None = None
    port: int | None = None
    direct_routing: bool = False


def read(cluster: ClusterSettings) -> FlannelConf | None:
    """flannel's configuration, or None where the cluster has none. ClusterError where it cannot be read."""
    for namespace, name in PLACES:
        data = cluster.config_map(namespace, name)
        if data is not None:
            return parse(f"{namespace}/{name}", data.get("net-conf.json", ""))
    return None


def parse(place: str, text: str) -> FlannelConf:
    """Read a net-conf.json; ClusterError for any other text."""
    try:
        conf = decoded(_NET_CONF, text)
    except Malformed as error:
        raise ClusterError(f"ConfigMap {place}: net-conf.json cannot be read: {error}", hint="") from None
    backend = conf.Backend or _Backend()
    return FlannelConf(
        place=place,
        network=conf.Network,
        backend=backend.Type.lower(),  # as flannel reads it (pkg/backend/manager.go, `GetBackend`)
        vni=backend.VNI,
        port=backend.Port,
        direct_routing=backend.DirectRouting,
    )


def _detect(cluster: ClusterSettings) -> Detected | None:
    found = read(cluster)
    if found is None:
        return None
    return Detected(f"flannel:{found.backend}", found.network, f"flannel's ConfigMap {found.place}")


def _findings(cluster: ClusterSettings, wanting: Sequence[Wanted]) -> Iterator[Finding]:
    found = read(cluster)
    if found is None:
        fix = "Install flannel, or apply what `winboot manifests flannel` prints."
        yield Finding(_CHECK, "error", f"the cluster has no ConfigMap {CONFIG_MAP}", fix, names(wanting))
        return
    wrong = defaultdict(list)
    for one in wanting:
        for reason in _differences(one, found):
            wrong[reason].append(one)
    for reason, nodes in wrong.items():
        fix = f"Make {found.place} and the profile equal; after a change of the ConfigMap, restart flannel on every node."
        yield Finding(_CHECK, "error", reason, fix, names(nodes))


def _differences(wanted: Wanted, found: FlannelConf) -> Iterator[str]:
    if found.backend != wanted.mode:
        yield f"flannel's backend is {found.backend!r} in the cluster and {wanted.mode!r} in the profile"
        return
    pods = wanted.pod_cidrs
    if found.network and pods and found.network not in pods:
        yield f"flannel's network is {found.network} in the cluster; the profile's cluster.pod_cidr is {', '.join(pods)}"
    if wanted.mode == "vxlan":
        yield from _vxlan_differences(wanted, found)


def _vxlan_differences(wanted: Wanted, found: FlannelConf) -> Iterator[str]:
    values = (
        ("VNI", found.vni or LINUX_VNI, wanted.vxlan.vni),
        ("port", found.port or LINUX_PORT, wanted.vxlan.port),
    )
    for key, there, here in values:
        if there != here:
            yield f"flannel's VXLAN {key} is {there} in the cluster and {here} in the profile"
    if found.direct_routing:
        yield "flannel's DirectRouting is on in the cluster, but Windows nodes do not support it"


def _config_map(wanting: Sequence[Wanted]) -> list[dict[str, Any]]:
    """The ConfigMap that Linux and Windows nodes must share, with values that Windows supports."""
    texts = dict.fromkeys(json.dumps(_shared(one.net_conf), indent=2) for one in wanting if one.net_conf)
    if len(texts) > 1:
        raise UsageError(
            "the nodes of the inventory want different flannel networks",
            hint="A cluster has only one flannel network: make pod_cidr, mode and vxlan of the profiles equal.",
        )
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE, "labels": {"app": "flannel"}},
            "data": {"cni-conf.json": json.dumps(_LINUX_CNI, indent=2), "net-conf.json": net_conf},
        }
        for net_conf in texts
    ]


# What flannel's own manifest gives to Linux nodes.
_LINUX_CNI: Final = {
    "name": "cbr0",
    "cniVersion": "0.3.1",
    "plugins": [
        {"type": "flannel", "delegate": {"hairpinMode": True, "isDefaultGateway": True}},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}


def _shared(conf: Mapping[str, Any]) -> dict[str, Any]:
    """A node's net-conf without the names that matter on Windows alone."""
    backend = {key: value for key, value in conf["Backend"].items() if key not in ("Name", "MacPrefix")}
    return {"Network": conf["Network"], "EnableNFTables": False, "Backend": backend}


FLANNEL_SETTINGS: Final = InCluster(
    check=_CHECK,
    why="flannel's backend, network, VNI and port must be the same on all nodes.",
    findings=_findings,
    detect=_detect,
    manifest=NetworkManifest(
        name="flannel",
        why="flannel's configuration for the whole cluster, in values that Windows also supports.",
        note="A change of VNI or port needs a restart of flanneld on every Linux node.",
        make=_config_map,
    ),
)
