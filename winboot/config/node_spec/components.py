"""The configuration and the flags of kubelet and kube-proxy, for one version on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from winboot.config import compat
from winboot.config.compat import Compat, Version
from winboot.config.compat.flags import (
    Component,
    field_exists,
    flag_exists,
    network_gates,
    normal,
    whole_maps,
)
from winboot.config.networks.base import Data, Known, Text
from winboot.config.node_spec.merged import over, without_nones
from winboot.config.node_spec.node import Manager, Paths, RuntimeSpec, Taint
from winboot.config.profile import Profile
from winboot.config.profile.owned import said

# Requests for memory below this starve Windows itself; nothing holds it back, it is only counted.
SYSTEM_RESERVED: Final = {"cpu": "500m", "memory": "2Gi", "ephemeral-storage": "1Gi"}
# All three, because naming one takes the others to zero.
EVICTION_HARD: Final = {"memory.available": "500Mi", "nodefs.available": "10%", "imagefs.available": "15%"}
DEFAULT_FLAGS: Final[Mapping[Component, Mapping[str, str]]] = {
    "kubelet": {"v": "2", "windows-priorityclass": "ABOVE_NORMAL_PRIORITY_CLASS"},
    "kube-proxy": {"v": "2"},
}
HEALTH: Final = "0.0.0.0:10256"
METRICS: Final = "127.0.0.1:10249"


def kubelet_config(
    profile: Profile,
    facts: Compat,
    taints: tuple[Taint, ...],
    dns: tuple[str, ...],
    paths: Paths,
    *,
    endpoint: str,
    provider_id: str | None = None,
) -> dict[str, Data]:
    """The whole KubeletConfiguration: winboot's, without fields this version lacks, and the user's over it."""
    version = profile.kubernetes.version
    own: dict[str, Any] = {
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": paths.cluster_ca},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupsPerQOS": False,
        "clusterDNS": list(dns),
        "clusterDomain": profile.cluster.dns_domain,
        "containerLogMaxFiles": 5,
        "containerLogMaxSize": "50Mi",
        "containerRuntimeEndpoint": endpoint,
        "enableSystemLogHandler": True,
        "enforceNodeAllocatable": [],
        "evictionHard": EVICTION_HARD,
        "maxParallelImagePulls": 5,
        "registerNode": True,
        "registerWithTaints": [{"key": one.key, "value": one.value, "effect": one.effect} for one in taints],
        "resolvConf": "",
        "rotateCertificates": True,
        "runtimeRequestTimeout": "10m0s",
        "serializeImagePulls": False,
        "serverTLSBootstrap": True,
        "systemReserved": SYSTEM_RESERVED,
        # The kubelet makes this folder and runs what lies there. Its default, below C:\usr, has the rules of the drive's root,
        # which let users add files, and an undo does not know it.
        "volumePluginDir": rf"{paths.kubelet_root}\volumeplugins",
    }
    if provider_id is not None:
        own["providerID"] = provider_id
    head = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    composed = _composed("kubelet", profile, facts, _existing(facts, "kubelet", own, version))
    if composed.get("serializeImagePulls") is True and "maxParallelImagePulls" not in profile.kubelet.config:
        # Ours goes with the user's choice: a kubelet with both does not start.
        composed.pop("maxParallelImagePulls", None)
    return {**head, **composed}


def kubelet_arguments(
    profile: Profile,
    facts: Compat,
    name: str,
    node_ip: Text,
    manager: Manager,
    paths: Paths,
    runtime: RuntimeSpec,
) -> dict[str, Text]:
    """The kubelet's flags: what the configuration file cannot say, then the user's."""
    version = profile.kubernetes.version
    own: dict[str, Text] = {
        "config": paths.kubelet_config,
        "bootstrap-kubeconfig": paths.bootstrap_kubeconfig,
        "kubeconfig": paths.kubeconfig,
        "cert-dir": paths.kubelet_pki,
        "root-dir": paths.kubelet_root,
        "hostname-override": name,
        "node-ip": node_ip,
    }
    if not field_exists(facts, "kubelet", "containerRuntimeEndpoint", version):
        own["container-runtime-endpoint"] = runtime.endpoint
    own |= runtime.kubelet_flags
    if any(profile.kubelet.credential_providers.values()):
        own["image-credential-provider-bin-dir"] = paths.credential_providers
        own["image-credential-provider-config"] = paths.credential_config
    if manager == "sc":
        own["windows-service"] = "true"
    return {**own, **_remaining_flags("kubelet", profile, facts)}


def credential_config(profile: Profile) -> dict[str, Data] | None:
    """The kubelet's CredentialProviderConfig; None without a provider.

    v1 is served from 1.26 on, v1beta1 from 1.24 on (KEP-2133, graduation). A provider's name has its `.exe`: older
    kubelets ask for a file of exactly this name (os.Stat in RegisterCredentialProviderPlugins, today exec.LookPath).
    """
    form = "v1" if profile.kubernetes.version.at_least("1.26") else "v1beta1"
    providers: list[dict[str, Data]] = [
        {
            "name": f"{name}.exe",
            "matchImages": list(one.images),
            "defaultCacheDuration": one.cache,
            "apiVersion": f"credentialprovider.kubelet.k8s.io/{form}",
            "args": list(one.args),
            "env": [{"name": key, "value": value} for key, value in without_nones(one.environment).items()],
        }
        for name, one in profile.kubelet.credential_providers.items()
        if one is not None
    ]
    if not providers:
        return None
    return {
        "apiVersion": f"kubelet.config.k8s.io/{form}",
        "kind": "CredentialProviderConfig",
        "providers": providers,
    }


def kube_proxy_config(
    profile: Profile,
    facts: Compat,
    name: str,
    network_name: str,
    *,
    dsr: bool,
    paths: Paths,
) -> dict[str, Data]:
    """The whole KubeProxyConfiguration for the network of the profile."""
    solution, version = profile.solution, profile.kubernetes.version
    winkernel: dict[str, Any] = {"enableDSR": dsr, "networkName": network_name}
    if solution.source_vip:
        winkernel["sourceVip"] = Known("source_vip")
    endpoint = solution.host_endpoint_name(network_name)
    if endpoint is not None:
        winkernel["rootHnsEndpointName"] = endpoint
    own: dict[str, Any] = {
        "clientConnection": {"kubeconfig": paths.kube_proxy_kubeconfig},
        "clusterCIDR": ",".join(map(str, profile.cluster.pod_cidr)),
        "healthzBindAddress": HEALTH,
        "hostnameOverride": name,
        "metricsBindAddress": METRICS,
        "mode": "kernelspace",
        "winkernel": winkernel,
    }
    gates = network_gates(version, overlay=solution.hns_type == "Overlay", dsr=dsr)
    if gates:
        own["featureGates"] = gates
    head = {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration"}
    return {**head, **_composed("kube-proxy", profile, facts, _existing(facts, "kube-proxy", own, version))}


def kube_proxy_arguments(profile: Profile, facts: Compat, manager: Manager, paths: Paths) -> dict[str, Text]:
    """kube-proxy's flags; with a configuration file it heeds few.

    The field windowsRunAsService (1.31) is of no use: kube-proxy greets the service control manager before it
    reads its file, so only the flag keeps it from error 1053.
    """
    own: dict[str, Text] = {"config": paths.kube_proxy_config}
    if manager == "sc":
        own["windows-service"] = "true"
    return {**own, **_remaining_flags("kube-proxy", profile, facts)}


def wants_dsr(profile: Profile, build: int) -> bool:
    """Direct server return: as the profile says; auto takes it where version and build bring it by themselves."""
    if profile.kube_proxy.dsr != "auto":
        return profile.kube_proxy.dsr == "on"
    return profile.kubernetes.version.at_least("1.33") and build >= 20348


def _existing(
    facts: Compat, component: Component, config: Mapping[str, Any], version: Version, above: str = ""
) -> dict[str, Any]:
    """The configuration without fields that this version does not have."""
    kept: dict[str, Any] = {}
    for key, value in config.items():
        path = f"{above}.{key}" if above else key
        if field_exists(facts, component, path, version):
            nested = isinstance(value, Mapping) and path in _NESTED
            kept[key] = _existing(facts, component, value, version, path) if nested else value
    return kept


_NESTED: Final = frozenset({"winkernel", "clientConnection", "authentication", "authorization"})


def _composed(
    component: Component, profile: Profile, facts: Compat, own: Mapping[str, Any]
) -> dict[str, Any]:
    """winboot's fields, the fields of moved flags over them, the user's fields over all."""
    section = profile.kubelet if component == "kubelet" else profile.kube_proxy
    moved = compat.move_flags(facts, component, _flags(component, profile, facts), profile.kubernetes.version)
    whole = whole_maps(facts, component)
    return over(over(own, moved.fields, whole), said(component, section.config, profile.solution), whole)


def _remaining_flags(component: Component, profile: Profile, facts: Compat) -> dict[str, Text]:
    moved = compat.move_flags(facts, component, _flags(component, profile, facts), profile.kubernetes.version)
    return dict(moved.flags)


def _flags(component: Component, profile: Profile, facts: Compat) -> dict[str, str]:
    """winboot's default flags with the user's over them; a null of the user drops winboot's flag."""
    section = profile.kubelet if component == "kubelet" else profile.kube_proxy
    version = profile.kubernetes.version
    own: dict[str, str | None] = {
        name: value
        for name, value in DEFAULT_FLAGS[component].items()
        if flag_exists(facts, component, name, version)
    }
    return without_nones({**own, **{normal(name): value for name, value in section.flags.items()}})
