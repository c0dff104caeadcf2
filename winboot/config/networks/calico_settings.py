"""Calico's resources in the cluster: what they say that matters on Windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from winboot.config.networks.cluster import ClusterSettings, InCluster, ResourceKind, Wanted, names
from winboot.report.finding import Finding

# https://github.com/projectcalico/calico/tree/v3.32.0/libcalico-go/config/crd
_GROUP: Final = "crd.projectcalico.org"
IP_POOL: Final = ResourceKind(_GROUP, "v1", "IPPool", "ippools")
IPAM_CONFIG: Final = ResourceKind(_GROUP, "v1", "IPAMConfig", "ipamconfigs")
FELIX: Final = ResourceKind(_GROUP, "v1", "FelixConfiguration", "felixconfigurations")
# Calico's own defaults (FelixConfiguration), which the plug-in on Windows receives.
VNI: Final = 4096
PORT: Final = 4789
_CHECK: Final = "calico-config"


@dataclass(frozen=True, slots=True)
class CalicoConf:
    """`ipip_pools` are address pools that use IP-in-IP; `strict_affinity` is None where nothing says it."""

    ipip_pools: tuple[str, ...] = ()
    strict_affinity: bool | None = None
    vni: int | None = None
    port: int | None = None


def read(cluster: ClusterSettings) -> CalicoConf | None:
    """Calico's settings, or None where the cluster has none of its resources."""
    pools = cluster.resources(IP_POOL)
    if pools is None:
        return None
    ipam = cluster.resources(IPAM_CONFIG) or ()
    felix = {key: value for one in cluster.resources(FELIX) or () for key, value in one.items()}
    affinity = [one["strictAffinity"] for one in ipam if "strictAffinity" in one]
    return CalicoConf(
        ipip_pools=tuple(str(one["name"]) for one in pools if one.get("ipipMode", "Never") != "Never"),
        strict_affinity=bool(affinity[0]) if affinity else None,
        vni=felix.get("vxlanVNI"),
        port=felix.get("vxlanPort"),
    )


def _findings(cluster: ClusterSettings, wanting: Sequence[Wanted]) -> Iterator[Finding]:
    found, nodes = read(cluster), names(wanting)
    if found is None:
        fix = "Install Calico in the cluster first; see docs/networks.md."
        yield Finding(_CHECK, "warning", "the cluster has no Calico resources (IPPool)", fix, nodes)
        return
    if found.ipip_pools:
        pools = ", ".join(found.ipip_pools)
        reason = f"IP-in-IP is on in the pools {pools}, but Windows supports only VXLAN"
        fix = "Set ipipMode: Never and vxlanMode: Always on these pools."
        yield Finding(_CHECK, "error", reason, fix, nodes)
    if found.strict_affinity is not True:
        reason = "a node may borrow pod addresses of another node (strictAffinity is not true), which breaks Windows pods"
        fix = "Run `calicoctl ipam configure --strictaffinity=true`."
        yield Finding(_CHECK, "error", reason, fix, nodes)
    for key, value, wanted in (("vxlanVNI", found.vni, VNI), ("vxlanPort", found.port, PORT)):
        if value is not None and value != wanted:
            fix = f"Set {key}: {wanted} in FelixConfiguration default."
            yield Finding(_CHECK, "error", f"FelixConfiguration has {key}: {value}", fix, nodes)


CALICO_SETTINGS: Final = InCluster(
    check=_CHECK,
    why="Windows supports only VXLAN, and needs strict affinity.",
    findings=_findings,
    kinds=(IP_POOL, IPAM_CONFIG, FELIX),
)
