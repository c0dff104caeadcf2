"""Flags and configuration of kubelet and kube-proxy: what is owned, said twice, unknown or secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from winboot.config import compat
from winboot.config.compat.flags import Component, network_gates, normal, parse_taint
from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.owned import (
    CLUSTER_CA,
    CONTAINERD,
    CRI_DOCKERD,
    KUBE_PROXY_KUBECONFIG,
    OF_LINUX,
    at,
    owned_fields,
    unowned,
)
from winboot.config.profile.sections import KubeProxy
from winboot.config.profile.values import has_login
from winboot.config.source import Complaint, PathParts

_SECRET_HEADER: Final = re.compile(r"authorization|cookie|token|secret|password|key", re.IGNORECASE)

# Flags that winboot writes from other keys; saying them here would say it twice.
OWNED_FLAGS: Final[Mapping[Component, Mapping[str, str]]] = {
    "kubelet": {
        "config": "",
        "config-dir": "",
        "kubeconfig": "",
        "bootstrap-kubeconfig": "",
        "cert-dir": "",
        "root-dir": "",
        "hostname-override": "the host key of the inventory",
        "node-ip": "node_ip in the inventory",
        "windows-service": "services.manager",
        "node-labels": "node.labels",
        "register-with-taints": "node.taints",
        "container-runtime": "runtime.name",
        "container-runtime-endpoint": "",
        "image-credential-provider-bin-dir": "kubelet.credential_providers",
        "image-credential-provider-config": "kubelet.credential_providers",
    },
    "kube-proxy": {
        "config": "",
        "kubeconfig": "kube_proxy.kubeconfig",
        "hostname-override": "the host key of the inventory",
        "windows-service": "services.manager",
        "network-name": "network.network_name",
        "source-vip": "",
        "cluster-cidr": "cluster.pod_cidr",
        "enable-dsr": "kube_proxy.dsr",
        "root-hnsendpoint-name": "",
        "proxy-mode": "",
    },
}


# With Docker these are winboot's, too.
_OF_DOCKER: Final[Mapping[str, str]] = {
    "docker-endpoint": "",
    "network-plugin": "network.cni",
    "cni-bin-dir": "network.cni",
    "cni-conf-dir": "network.cni",
    "pod-infra-container-image": "runtime.pause_image",
}


def check_of(component: Component) -> Callable[[Draft], Iterator[Complaint]]:
    """The check of one component's flags and configuration."""
    name = "kubelet" if component == "kubelet" else "kube_proxy"

    def check(draft: Draft) -> Iterator[Complaint]:
        section = draft.kubelet if component == "kubelet" else draft.kube_proxy
        if section is None or draft.version is None:
            return
        for flag, value in section.flags.items():
            path: PathParts = (name, "flags", flag)
            yield from _one_flag(draft, component, path, flag, value)
            yield from _said_twice(draft, component, path, flag, section.config)
        config = unowned(component, section.config, draft.solution)
        for below, finding in compat.check_field(draft.facts, component, config, draft.version):
            path = (name, "config", *below)
            yield from draft.found(path, [finding], key=not finding.expected)
        yield from _owned_fields(draft, component, (name, "config"), section.config)
        yield from _of_linux(draft, component, (name, "config"), section.config)
        yield from secrets_in(draft, (name, "config"), section.config)
        if component == "kube-proxy" and draft.kube_proxy is not None:
            yield from _gates_beside(draft, draft.kube_proxy)

    return check


def _gates_beside(draft: Draft, section: KubeProxy) -> Iterator[Complaint]:
    """winboot's own gates that stay next to the user's; every other map of the user replaces winboot's."""
    solution = draft.solution
    if solution is None or draft.version is None:
        return
    gates = network_gates(draft.version, overlay=solution.hns_type == "Overlay", dsr=section.dsr == "on")
    for keys, name in ((section.config, "featureGates"), (section.flags, "feature-gates")):
        given = keys.get(name)
        own = [gate for gate in gates if given is not None and gate not in given]
        if own:
            path = ("kube_proxy", "config" if keys is section.config else "flags", name)
            wrong = f"winboot adds {', '.join(own)}, because this network needs them in {draft.version.minor}"
            yield replace(draft.at(path, wrong, key=True), level="info")


def secrets_in(draft: Draft, path: PathParts, value: Any) -> Iterator[Complaint]:
    """Credentials among the fields: the file is on the node's disk and in the script that is shown to people."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            below: PathParts = (*path, key)
            if path[-1] == "staticPodURLHeader" and _SECRET_HEADER.search(key):
                yield draft.at(
                    below, "the script would contain a credential", "a source without login", key=True
                )
            else:
                yield from secrets_in(draft, below, item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from secrets_in(draft, (*path, index), item)
    elif isinstance(value, str) and "://" in value and has_login(value):
        yield draft.at(path, "the address contains a user or a password", "an address without login")


def _one_flag(
    draft: Draft, component: Component, path: PathParts, flag: str, value: str | None
) -> Iterator[Complaint]:
    assert draft.version is not None
    bare = normal(flag)
    if flag.startswith("-"):
        yield draft.at(path, f"{flag!r} starts with dashes", "the name without dashes", bare, key=True)
    if "=" in flag or " " in flag:
        yield draft.at(path, f"{flag!r} is more than the name of a flag", "name: value", key=True)
        return
    owned = OWNED_FLAGS[component].get(bare)
    if component == "kubelet" and draft.runtime and draft.runtime.name == "docker":
        owned = _OF_DOCKER.get(bare, owned)
    if owned is not None:
        yield draft.at(path, f"winboot sets --{bare} itself", owned or "nothing here", key=True)
        return
    if value is not None and (bare == "manifest-url-header" or ("://" in value and has_login(value))):
        yield draft.at(path, "the command line would contain a credential", "no such key", key=True)
    elif value is not None:
        yield from draft.found(
            path, compat.check_flag(draft.facts, component, flag, value, draft.version), key=True
        )


def _said_twice(
    draft: Draft, component: Component, path: PathParts, flag: str, config: Mapping[str, Any]
) -> Iterator[Complaint]:
    section = draft.facts.section("kubelet_flags" if component == "kubelet" else "kube_proxy_flags")
    target = section.get(normal(flag), {}).get("field", "")
    if target and at(config, target) is not None:
        yield draft.at(
            path, f"{target} in config is the same setting as this flag", "only one of the two", key=True
        )


def _owned_fields(
    draft: Draft, component: Component, path: PathParts, config: Mapping[str, Any]
) -> Iterator[Complaint]:
    """Fields that are winboot's to write and that say something else. Values that say nothing, winboot's own, and kubeadm's
    for Linux are not errors: the cluster's own file has them."""
    own = _own_values(draft, component)
    for field, key in owned_fields(component, draft.solution).items():
        value = at(config, field)
        if value in (None, "", False, own.get(field), OF_LINUX[component].get(field)):
            continue
        wrong = (
            f"{value!r}, and winboot writes {own[field]!r}" if own.get(field) else "winboot writes it itself"
        )
        yield draft.at((*path, *field.split(".")), wrong, key or "nothing here", key=True)


def _own_values(draft: Draft, component: Component) -> Mapping[str, Any]:
    """What winboot writes, as far as the profile alone says it; a section that is itself wrong says nothing."""
    return _of_kubelet(draft) if component == "kubelet" else _of_kube_proxy(draft)


def _of_kubelet(draft: Draft) -> Mapping[str, Any]:
    own: dict[str, Any] = {
        "containerRuntimeEndpoint": CRI_DOCKERD
        if draft.runtime and draft.runtime.name == "docker"
        else CONTAINERD,
        "authentication.x509.clientCAFile": CLUSTER_CA,
    }
    if draft.cluster is not None:
        own["clusterDomain"] = draft.cluster.dns_domain
        own["clusterDNS"] = [str(one) for one in draft.cluster.dns_addresses]
    if draft.labels_and_taints is not None:
        own["registerWithTaints"] = [parse_taint(text) for text in draft.labels_and_taints.taints]
    return own


def _of_kube_proxy(draft: Draft) -> Mapping[str, Any]:
    own: dict[str, Any] = {"mode": "kernelspace", "clientConnection.kubeconfig": KUBE_PROXY_KUBECONFIG}
    if draft.cluster is not None:
        own["clusterCIDR"] = ",".join(map(str, draft.cluster.pod_cidr))
    if draft.kube_proxy is not None:
        own["winkernel.enableDSR"] = draft.kube_proxy.dsr == "on"
    if draft.services is not None:
        manager = draft.services.overrides.get("kube-proxy") or draft.services.manager
        own["windowsRunAsService"] = manager == "sc"
    if draft.network is not None and draft.solution is not None:
        name = draft.network.name_of(draft.solution)
        own["winkernel.networkName"] = name
        own["winkernel.rootHnsEndpointName"] = draft.solution.host_endpoint_name(name)
    return own


def _of_linux(
    draft: Draft, component: Component, path: PathParts, config: Mapping[str, Any]
) -> Iterator[Complaint]:
    """One notice of the values that are in the file and are not written."""
    other = [field for field, value in OF_LINUX[component].items() if at(config, field) == value]
    if component == "kube-proxy" and at(config, "winkernel.enableDSR") is False:
        other += ["winkernel.enableDSR"] if draft.kube_proxy and draft.kube_proxy.dsr != "off" else []
    if other:
        wrong = f"winboot ignores these values of kubeadm, which are for Linux: {', '.join(other)}"
        yield replace(draft.at(path, wrong, key=True), level="info")
