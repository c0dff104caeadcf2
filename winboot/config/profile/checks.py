"""What the sections of a profile say about one another: every check gives complaints, none stops the others.

A section that is itself wrong is None here; the checks that need it are passed over, the others still run.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from winboot.config import compat, networks
from winboot.config.compat import Compat, Finding, Version, age
from winboot.config.compat.flags import Component, normal
from winboot.config.model import is_file
from winboot.config.networks.base import destination_name, destinations
from winboot.config.profile import sections
from winboot.config.profile.values import NAME, has_login, host_name, label_key, label_value, web_address
from winboot.config.source import Complaint, Level, Node, PathParts, Wrong, dotted, locate, nearest

# An HNS network of this range is made first so that the pod network does not bounce the adapter again.
_EXTERNAL: Final = ipaddress.ip_network("192.168.255.0/30")
_RESERVED: Final[Mapping[str, ipaddress.IPv4Network | ipaddress.IPv6Network]] = {
    "the range of winboot's first switch": _EXTERNAL,
    "loopback": ipaddress.ip_network("127.0.0.0/8"),
    "link-local addresses": ipaddress.ip_network("169.254.0.0/16"),
    "multicast": ipaddress.ip_network("224.0.0.0/4"),
}
_NODE_PORTS: Final = range(30000, 32768)
_STARTUP_TAINT: Final = "winboot.io/starting"
_STEP_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# The kubelet itself sets these, from what the machine is (pkg/kubelet/kubelet_node_status.go, initialNode).
_KUBELET_LABELS: Final = frozenset(
    {
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/windows-build",
    }
)
# A variable of a service stands in the registry, where every user of the machine reads it.
_SECRET_VARIABLE: Final = re.compile(
    r"PASSW(OR)?D|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?|CONNECTION_?STRING",
    re.IGNORECASE,
)
_PLACE_VARIABLE: Final = re.compile(
    r"_(FILE|PATH|DIR|URI|URL|ENDPOINT|ID|NAME|ROLE|TTL|EXPIRATION)$", re.IGNORECASE
)
_SECRET_HEADER: Final = re.compile(r"authorization|cookie|token|secret|password|key", re.IGNORECASE)
# A time server as w32time takes it: a host and perhaps flags (0x8: client mode).
_TIME_FLAGS: Final = re.compile(r"0x[0-9A-Fa-f]{1,2}")
# \\host@SSL@8443\share is how Windows writes WebDAV over TLS; its @ is no login.
_UNC: Final = re.compile(r"\\\\([A-Za-z0-9_.-]+)(@SSL)?(@[0-9]{1,5})?(\\[^\\/:*?\"<>|]+)+\\?", re.IGNORECASE)
_FOLDER: Final = re.compile(r"[A-Za-z]:\\([^\\/:*?\"<>|]+\\?)*")
# Room for what a range must hold: the pods of one node at least; the API server's and the DNS service's addresses.
_LONGEST_PREFIX: Final = {4: 28, 6: 124}
_REGISTRY_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?")

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
        "container-runtime-endpoint": "",
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
OWNED_FIELDS: Final[Mapping[Component, Mapping[str, str]]] = {
    "kubelet": {
        "registerWithTaints": "node.taints",
        "containerRuntimeEndpoint": "",
        "clusterDomain": "cluster.dns_domain",
        "clusterDNS": "cluster.dns_service_ip",
        "authentication.x509.clientCAFile": "cluster.ca",
    },
    "kube-proxy": {
        "mode": "",
        "hostnameOverride": "the host key of the inventory",
        "clusterCIDR": "cluster.pod_cidr",
        "windowsRunAsService": "services.manager",
        "clientConnection.kubeconfig": "kube_proxy.kubeconfig",
        "winkernel.networkName": "network.network_name",
        "winkernel.sourceVip": "",
        "winkernel.enableDSR": "kube_proxy.dsr",
        "winkernel.rootHnsEndpointName": "",
    },
}


_UNKNOWN_NETWORK: Final = frozenset({"winkernel.sourceVip", "winkernel.rootHnsEndpointName"})


@dataclass(frozen=True, slots=True)
class Draft:
    """The sections that are valid by themselves, with the nodes they were made of."""

    node: Node
    facts: Compat
    version: Version | None
    cluster: sections.Cluster | None
    network: sections.Network | None
    runtime: sections.Runtime | None
    services: sections.Services | None
    kubelet: sections.Kubelet | None
    kube_proxy: sections.KubeProxy | None
    labels_and_taints: sections.Node | None
    boot: sections.Boot | None
    proxy: sections.Proxy | None
    windows: sections.Windows | None
    artifacts: sections.Artifacts | None
    steps: tuple[sections.OwnStep, ...]

    @property
    def solution(self) -> networks.Network | None:
        """The network solution, where the keys name one."""
        if self.network is None:
            return None
        try:
            return self.network.solution(self.artifacts)
        except ValueError:
            return None

    @property
    def dual_stack(self) -> bool:
        return self.cluster is not None and len(self.cluster.pod_cidr) > 1

    def at(
        self,
        path: PathParts,
        wrong: str,
        expected: str = "",
        did_you_mean: str = "",
        *,
        key: bool = False,
        warning: bool = False,
    ) -> Complaint:
        """A complaint about the value (or the key) at a path."""
        place = locate(self.node, path, key=key)
        level: Level = "warning" if warning else "error"
        return Complaint(place, dotted(path), wrong, expected, did_you_mean, level)

    def wrong(self, path: PathParts, error: Wrong, *, key: bool = False) -> Complaint:
        """What a kind of value says about the value (or the key) at a path."""
        return self.at(path, error.wrong, error.expected, error.did_you_mean, key=key)

    def found(
        self, path: PathParts, findings: Iterable[Finding], *, key: bool = False
    ) -> Iterator[Complaint]:
        """The compatibility data's findings as complaints at a path."""
        for finding in findings:
            place = locate(self.node, path, key=key)
            wrong = f"{finding.about}: {finding.reason}"
            yield Complaint(
                place,
                dotted(path),
                wrong,
                level=finding.level,
                source=finding.source,
                instead=finding.instead,
                expected=finding.expected,
                did_you_mean=finding.did_you_mean,
            )


def all_complaints(draft: Draft) -> list[Complaint]:
    """Everything that is wrong or worth knowing, check by check."""
    return [complaint for check in CHECKS for complaint in check(draft)]


def _kubernetes(draft: Draft) -> Iterator[Complaint]:
    if draft.version is None:
        return
    traits = set()
    if draft.solution and draft.solution.hns_type == "L2Bridge":
        traits.add("l2bridge")
    if draft.dual_stack:
        traits.add("dual-stack")
    findings = compat.check_kubernetes(draft.facts, draft.version, traits=frozenset(traits))
    yield from draft.found(("kubernetes", "version"), findings)
    old = age.said(draft.facts)
    if old is not None:
        # Of no place: it is of the data, and told once however many profiles there are.
        instead = (
            "a newer winboot, or kubernetes.overlay: a file with newer facts and their date (docs/compat.md)"
        )
        yield Complaint(None, "", old, level="warning", instead=instead)


def _runtime(draft: Draft) -> Iterator[Complaint]:
    if draft.runtime is None:
        return
    if draft.version and draft.runtime.containerd:
        findings = compat.check_containerd(draft.facts, draft.runtime.containerd, draft.version)
        yield from draft.found(("runtime", "containerd"), findings)
    yield from _pause_image(draft, draft.runtime.pause_image)
    if not draft.runtime.isolation:
        yield draft.at(("runtime", "isolation"), "no handler is left", "process, or process and hypervisor")
    if "hypervisor" in draft.runtime.isolation and draft.windows and "Hyper-V" not in draft.windows.features:
        yield draft.at(
            ("runtime", "isolation"), "hypervisor isolation without its role", "Hyper-V in windows.features"
        )
    for host, registry in draft.runtime.registries.items():
        if registry is not None:
            yield from _registry(draft, host, registry)


def _pause_image(draft: Draft, image: str | None) -> Iterator[Complaint]:
    path: PathParts = ("runtime", "pause_image")
    if image is None:
        return
    if "/" in image and has_login(image):
        yield draft.at(
            path, "the image's host contains a user or a password", "runtime.registries: {host: …}"
        )
    elif "://" in image:
        yield draft.at(path, f"{image!r} is an address, no image", "host/path:tag, without https://")
    elif not re.fullmatch(r"[a-z0-9][\w.:/-]*[:@][\w.:-]+", image, re.ASCII):
        yield draft.at(path, f"{image!r} has no tag", "host/path:tag")


def _registry(draft: Draft, host: str, registry: sections.Registry) -> Iterator[Complaint]:
    path: PathParts = ("runtime", "registries", host)
    if "@" in host:
        expected = "user and password: {env: NAME} under the host"
        yield draft.at(path, "the key contains a user or a password", expected, key=True)
    elif host != "_default" and not _is_registry_host(host):
        yield draft.at(
            path, f"{host!r} is not a registry host", "host or host:port, without https://", key=True
        )
    if (registry.user is None) != (registry.password is None):
        missing = "password" if registry.password is None else "user"
        yield draft.at(path, f"credentials without a {missing}", "user and password together", key=True)
    if registry.password is not None and any(url.startswith("http:") for url in registry.mirrors):
        yield draft.at((*path, "mirrors"), "a password would go to a mirror in the clear", "https:// mirrors")


def _is_registry_host(text: str) -> bool:
    if not _REGISTRY_HOST.fullmatch(text):
        return False
    name, _, port = text.partition(":")
    try:
        host_name(name)
    except Wrong:
        return False
    return not port or 0 < int(port) < 65536


def _flags_of(component: Component) -> Callable[[Draft], Iterator[Complaint]]:
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
        for below, finding in compat.check_field(draft.facts, component, section.config, draft.version):
            path = (name, "config", *below)
            yield from draft.found(path, [finding], key=not finding.expected)
        yield from _owned_fields(draft, component, (name, "config"), section.config, "")
        yield from _secrets_in(draft, (name, "config"), section.config)

    return check


def _secrets_in(draft: Draft, path: PathParts, value: Any) -> Iterator[Complaint]:
    """Credentials among the fields: the file is on the node's disk and in the script that is shown to people."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            below: PathParts = (*path, key)
            if path[-1] == "staticPodURLHeader" and _SECRET_HEADER.search(key):
                yield draft.at(
                    below, "a credential would be in the script", "a source without login", key=True
                )
            else:
                yield from _secrets_in(draft, below, item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _secrets_in(draft, (*path, index), item)
    elif isinstance(value, str) and "://" in value and has_login(value):
        yield draft.at(path, "the address contains a user or a password", "an address without them")


def _one_flag(
    draft: Draft, component: Component, path: PathParts, flag: str, value: str | None
) -> Iterator[Complaint]:
    assert draft.version is not None
    bare = normal(flag)
    if flag.startswith("-"):
        yield draft.at(path, f"{flag!r} is written with dashes", "the bare name", bare, key=True)
    if "=" in flag or " " in flag:
        yield draft.at(path, f"{flag!r} holds more than a name", "name: value", key=True)
        return
    owned = OWNED_FLAGS[component].get(bare)
    if owned is not None:
        yield draft.at(path, f"winboot sets --{bare} itself", owned or "nothing here", key=True)
        return
    if value is not None and (bare == "manifest-url-header" or ("://" in value and has_login(value))):
        yield draft.at(path, "a credential would be on the command line", "drop it", key=True)
    elif value is not None:
        yield from draft.found(
            path, compat.check_flag(draft.facts, component, flag, value, draft.version), key=True
        )


def _said_twice(
    draft: Draft, component: Component, path: PathParts, flag: str, config: Mapping[str, Any]
) -> Iterator[Complaint]:
    section = draft.facts.section("kubelet_flags" if component == "kubelet" else "kube_proxy_flags")
    target = section.get(normal(flag), {}).get("field", "")
    value: Any = config
    for part in target.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if target and value is not None:
        yield draft.at(
            path, f"config says {target} too, which is the same setting", "one of the two", key=True
        )


def _owned_fields(
    draft: Draft, component: Component, path: PathParts, config: Mapping[str, Any], above: str
) -> Iterator[Complaint]:
    for key, value in config.items():
        here = f"{above}.{key}" if above else key
        owned = OWNED_FIELDS[component].get(here)
        if here in _UNKNOWN_NETWORK and draft.solution is not None and not draft.solution.default_name:
            # Nobody but the user knows what the network is that somebody else brings.
            continue
        if owned is not None:
            yield draft.at((*path, key), f"winboot sets {here} itself", owned or "nothing here", key=True)
        elif isinstance(value, Mapping):
            yield from _owned_fields(draft, component, (*path, key), value, here)


def _network(draft: Draft) -> Iterator[Complaint]:
    network = draft.network
    if network is None:
        return
    modes = networks.modes(network.cni)
    if network.mode is not None and network.mode not in modes:
        expected = " | ".join(modes) or f"no mode: {network.cni} has only one"
        yield draft.at(("network", "mode"), repr(network.mode), expected, nearest(network.mode, modes))
    solution = draft.solution
    if solution is None:
        if network.managed_by is not None and network.mode in (None, *modes):
            wrong = f"{network.cni} cannot be managed by {network.managed_by}"
            owners = dict.fromkeys(one.managed_by for one in networks.NETWORKS if one.cni == network.cni)
            yield draft.at(("network", "managed_by"), wrong, " | ".join(owners))
        return
    if solution.later:
        yield draft.at(
            ("network", "cni"), f"{network.cni} is not offered yet: {solution.later}", "another solution"
        )
    yield from _vxlan(draft, network, solution)
    yield from _network_name(draft, network, solution)
    if network.routes == "winboot" and not solution.can_route:
        wrong = f"{solution.id} leaves no routes to winboot"
        able = _names(one for one in networks.NETWORKS if one.can_route)
        yield draft.at(("network", "routes"), wrong, f"drop it; only {able} has this choice", key=True)
    if network.ipam is not None and network.ipam not in solution.ipams:
        wrong = f"{solution.id} hands out addresses in its own way"
        able = _names(one for one in networks.NETWORKS if one.ipams)
        yield draft.at(("network", "ipam"), wrong, f"drop it; only {able} has this choice", key=True)
    yield from _two_families(draft, solution)
    yield from _nat_exceptions(draft, network.nat_exceptions, solution)


def _names(solutions: Iterable[networks.Network]) -> str:
    """Their `cni`, each once: `win-bridge or none`."""
    names = list(dict.fromkeys(one.cni for one in solutions))
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def _two_families(draft: Draft, solution: networks.Network) -> Iterator[Complaint]:
    if not draft.dual_stack:
        return
    path: PathParts = ("cluster", "pod_cidr")
    able = [one for one in networks.NETWORKS if one.dual_stack]
    if not solution.dual_stack:
        yield draft.at(path, f"{solution.id} carries IPv4 alone", f"one IPv4 network, or {_names(able)}")
    elif solution.dual_stack_note:
        whole = _names(one for one in able if not one.dual_stack_note)
        expected = f"{whole} where pods need IPv6"
        yield draft.at(path, solution.dual_stack_note, expected, warning=True)


def _nat_exceptions(
    draft: Draft, wanted: sections.NatExceptions, solution: networks.Network
) -> Iterator[Complaint]:
    path: PathParts = ("network", "nat_exceptions")
    cluster = draft.cluster
    if cluster is None or not (wanted.add or wanted.remove):
        return
    if not solution.exceptions:
        wrong = f"the CNI configuration of {solution.id} is not winboot's"
        yield draft.at(path, wrong, "drop it, and change it where its owner keeps it", key=True)
        return
    nets = [
        [str(one) for one in cidrs] for cidrs in (cluster.pod_cidr, cluster.service_cidr, cluster.node_cidr)
    ]
    own = [destination_name(one) for one in destinations(solution.exceptions, *nets)]
    fixed = [destination_name(one) for one in destinations(solution.fixed_exceptions, *nets)]
    for index, cidr in enumerate(wanted.add):
        if str(cidr) in own and str(cidr) not in wanted.remove:
            yield draft.at((*path, "add", index), f"{cidr} is an exception already", "drop it", warning=True)
        elif cidr.version == 6 and not solution.dual_stack:
            yield draft.at((*path, "add", index), f"{solution.id} carries IPv4 alone", "an IPv4 network")
    for index, name in enumerate(wanted.remove):
        if name in fixed:
            wrong = f"{solution.id} needs {name} among them: its plug-in would add it again"
            yield draft.at((*path, "remove", index), wrong, "drop it")
        elif name not in own:
            expected = " | ".join(one for one in own if one not in fixed)
            wrong = f"{name} is no exception of {solution.id}"
            yield draft.at((*path, "remove", index), wrong, expected, nearest(name, own))


def _vxlan(draft: Draft, network: sections.Network, solution: networks.Network) -> Iterator[Complaint]:
    if network.vxlan is None:
        return
    if solution.hns_type != "Overlay":
        yield draft.at(
            ("network", "vxlan"), f"{solution.id} is no overlay", "mode: vxlan, or no vxlan", key=True
        )
        return
    if not 4096 <= network.vxlan.vni < 2**24:
        wrong = f"{network.vxlan.vni}; Windows takes virtual networks from 4096 on"
        yield draft.at(("network", "vxlan", "vni"), wrong, "4096 to 16777215, the same in the whole cluster")
    if network.vxlan.port != 4789:
        wrong = f"{network.vxlan.port}; Windows speaks VXLAN on one port alone"
        yield draft.at(("network", "vxlan", "port"), wrong, "4789, the same in the whole cluster")


def _network_name(draft: Draft, network: sections.Network, solution: networks.Network) -> Iterator[Complaint]:
    name = network.network_name
    if name is None:
        runs_proxy = draft.kube_proxy is None or draft.kube_proxy.managed_by != "operator"
        if not solution.default_name and runs_proxy:
            yield draft.at(
                ("network",),
                "kube-proxy must know the HNS network, and cni: none does not name it",
                "network_name: the name, or kube_proxy.managed_by: operator",
                key=True,
            )
        return
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name):
        yield draft.at(("network", "network_name"), repr(name), "letters, digits, ., _ and - (at most 63)")
    if name.lower() == "nat":
        yield draft.at(
            ("network", "network_name"), "nat is the network of Docker and of Windows itself", "another name"
        )


def _cluster(draft: Draft) -> Iterator[Complaint]:
    cluster = draft.cluster
    if cluster is None:
        return
    if cluster.ca is None and cluster.ca_hash is None:
        yield draft.at(("cluster",), "no CA is given", "ca: {file: ca.crt} or ca_hash: sha256:…", key=True)
    if cluster.bootstrap_token == "mint" and cluster.kubeconfig is None:
        wrong = "without a kubeconfig no bootstrap token can be minted"
        expected = "kubeconfig: {file: ~/.kube/config}, or bootstrap_token: {env: NAME}"
        yield draft.at(("cluster",), wrong, expected, key=True, warning=True)
    named = {
        "pod_cidr": cluster.pod_cidr,
        "service_cidr": cluster.service_cidr,
        "node_cidr": cluster.node_cidr,
    }
    # Pods may have addresses of the network that the nodes are in.
    shared = draft.solution is not None and draft.solution.pods_in_node_network
    yield from _overlaps(draft, named, frozenset({"pod_cidr", "node_cidr"}) if shared else frozenset())
    yield from _sizes(draft, named)
    yield from _server(draft, cluster, ("service_cidr",) if shared else ("pod_cidr", "service_cidr"))
    for key in ("pod_cidr", "service_cidr"):
        yield from _families(draft, key, named[key])
    if len(cluster.pod_cidr) != len(cluster.service_cidr) and len(cluster.service_cidr) > 1:
        yield draft.at(
            ("cluster", "service_cidr"), "two service networks for pods of one family", "one network"
        )
    yield from _dns(draft, cluster)
    if not NAME.fullmatch(cluster.dns_domain):
        yield draft.at(("cluster", "dns_domain"), repr(cluster.dns_domain), "a domain such as cluster.local")


def _families(draft: Draft, key: str, cidrs: tuple[Any, ...]) -> Iterator[Complaint]:
    path: PathParts = ("cluster", key)
    families = [cidr.version for cidr in cidrs]
    if not families:
        yield draft.at(path, "no network is given", "one network, or an IPv4 and an IPv6 one")
    elif families == [6]:
        yield draft.at(path, "IPv6 alone; Windows nodes need IPv4", "an IPv4 network, or both families")
    elif len(families) > 2 or len(set(families)) != len(families):
        yield draft.at(path, "two networks of one family", "one network, or an IPv4 and an IPv6 one")
    elif families == [6, 4]:
        yield draft.at(
            path,
            "the IPv6 network is first, but the first family is the node's own",
            "the IPv4 network first",
        )


def _sizes(draft: Draft, named: Mapping[str, tuple[Any, ...]]) -> Iterator[Complaint]:
    for key in ("pod_cidr", "service_cidr"):
        for cidr in named[key]:
            longest = _LONGEST_PREFIX[cidr.version]
            if cidr.prefixlen > longest:
                wrong = f"{cidr} has only {cidr.num_addresses} addresses for the whole cluster"
                yield draft.at(("cluster", key), wrong, f"a prefix of at most /{longest}")


def _overlaps(
    draft: Draft, named: Mapping[str, tuple[Any, ...]], shared: frozenset[str]
) -> Iterator[Complaint]:
    """No two networks share an address, but for the pair that is `shared`."""
    seen: list[tuple[str, Any]] = []
    for key, cidrs in named.items():
        for cidr in cidrs:
            path: PathParts = ("cluster", key)
            for other, known in seen:
                if {key, other} == shared:
                    continue
                if cidr.version == known.version and cidr.overlaps(known):
                    yield draft.at(
                        path, f"{cidr} overlaps {known} of cluster.{other}", "networks that share no address"
                    )
            for what, known in _RESERVED.items():
                if cidr.version == known.version and cidr.overlaps(known):
                    yield draft.at(path, f"{cidr} overlaps {known}, {what}", "another network")
            seen.append((key, cidr))


def _server(draft: Draft, cluster: sections.Cluster, keys: Iterable[str]) -> Iterator[Complaint]:
    """A node reaches the server before there are pods or services, so its address is none of theirs."""
    host = urlsplit(cluster.server).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    for key in keys:
        for cidr in getattr(cluster, key):
            if cidr.version == address.version and address in cidr:
                wrong = f"{address} is an address of cluster.{key} ({cidr})"
                yield draft.at(("cluster", "server"), wrong, "the address that nodes reach the API server at")


def _dns(draft: Draft, cluster: sections.Cluster) -> Iterator[Complaint]:
    for address in cluster.dns_service_ip:
        inside = [
            cidr for cidr in cluster.service_cidr if cidr.version == address.version and address in cidr
        ]
        if not inside:
            cidrs = ", ".join(map(str, cluster.service_cidr))
            yield draft.at(
                ("cluster", "dns_service_ip"),
                f"{address} is outside the service network",
                f"an address in {cidrs}",
            )


def _services(draft: Draft) -> Iterator[Complaint]:
    services = draft.services
    if services is None:
        return
    yield from _service_names(draft, services)
    yield from _service_environment(draft, services)
    for name, manager in services.overrides.items():
        path: PathParts = ("services", "overrides", name)
        if name in sections.NSSM_ALONE and manager == "sc":
            yield draft.at(path, f"{name} cannot be a service by itself (error 1053)", "nssm")
    kubelet = services.overrides.get("kubelet") or services.manager
    config = draft.kubelet.config if draft.kubelet else {}
    if kubelet == "nssm" and config.get("shutdownGracePeriod"):
        wrong = "graceful shutdown works only where the kubelet itself is the service, not under nssm"
        yield draft.at(
            ("kubelet", "config", "shutdownGracePeriod"),
            wrong,
            "services.manager: sc",
            key=True,
            warning=True,
        )
    yield from _kubelet_of_linux(draft, config)


# What the controller-manager gives to a node is a /24, unless --node-cidr-mask-size-ipv4 says otherwise
# (kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager): 254 addresses, one of them the gateway's.
_PODS_OF_A_NODE: Final = 253


def _kubelet_of_linux(draft: Draft, config: Mapping[str, Any]) -> Iterator[Complaint]:
    """Fields that are right for the kubelet and cannot be meant on a node like this."""
    pods = config.get("maxPods")
    if isinstance(pods, int) and draft.cluster is not None:
        room = max(cidr.num_addresses for cidr in draft.cluster.pod_cidr)
        path: PathParts = ("kubelet", "config", "maxPods")
        if pods > room:
            yield draft.at(path, f"{pods} pods, and cluster.pod_cidr has {room} addresses", f"at most {room}")
        elif pods > _PODS_OF_A_NODE:
            wrong = f"{pods} pods, and the pod CIDR of a node has {_PODS_OF_A_NODE + 1} addresses where it is a /24"
            yield draft.at(path, wrong, "fewer, or a larger --node-cidr-mask-size-ipv4", warning=True)
    manifests = config.get("staticPodPath")
    if isinstance(manifests, str) and manifests.startswith("/"):
        path = ("kubelet", "config", "staticPodPath")
        yield draft.at(
            path,
            f"{manifests} is a path of Linux",
            "a folder of Windows, such as C:\\k\\manifests",
            warning=True,
        )


def _service_names(draft: Draft, services: sections.Services) -> Iterator[Complaint]:
    for key in ("overrides", "environment", "priority"):
        for name in getattr(services, key):
            if name not in sections.SERVICES:
                wrong, meant = f"winboot runs no service {name!r}", nearest(name, sections.SERVICES)
                yield draft.at(("services", key, name), wrong, " | ".join(sections.SERVICES), meant, key=True)
    for name, chosen in services.priority.items():
        manager = services.overrides.get(name) or services.manager
        path: PathParts = ("services", "priority", name)
        if name == "kubelet":
            expected = "kubelet.flags: {windows-priorityclass: …}"
            yield draft.at(path, "the kubelet sets its own", expected, key=True)
        elif chosen is not None and manager == "sc" and name not in sections.NSSM_ALONE:
            wrong = "the service manager knows no priority class"
            yield draft.at(path, wrong, f"services.overrides: {{{name}: nssm}}", key=True)


def _service_environment(draft: Draft, services: sections.Services) -> Iterator[Complaint]:
    for service, variables in services.environment.items():
        for name, value in variables.items():
            path: PathParts = ("services", "environment", service, name)
            if value is not None and _looks_secret(name, value):
                wrong = "every user of the node can read this variable, and it looks like a credential"
                yield draft.at(path, wrong, "a file that only the service can read", key=True)
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                yield draft.at(path, repr(name), "a name of letters, digits and _", key=True)
            elif name.upper() in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
                yield draft.at(path, f"winboot sets {name} itself", "proxy", key=True)


def _looks_secret(name: str, value: str) -> bool:
    if has_login(value) and ("://" in value or ":" in value.partition("@")[0]):
        return True
    return bool(value and _SECRET_VARIABLE.search(name) and not _PLACE_VARIABLE.search(name))


def _node(draft: Draft) -> Iterator[Complaint]:
    node = draft.labels_and_taints
    if node is None:
        return
    rules = draft.facts.section("label_rules")
    for label, value in node.labels.items():
        yield from _label(draft, label, value, rules)
    seen: set[tuple[str, str]] = set()
    given = [("node", index, taint) for index, taint in enumerate(node.taints)]
    if draft.boot is not None:
        given += [("boot", index, taint) for index, taint in enumerate(draft.boot.taints)]
    for section, index, taint in given:
        path: PathParts = (section, "taints", index)
        key, _, effect = taint.partition(":")
        key = key.partition("=")[0]
        if key == _STARTUP_TAINT:
            yield draft.at(path, f"{key} is winboot's own; it comes and goes by itself", "drop it")
        if (key, effect) in seen:
            yield draft.at(path, f"a second taint {key} with the effect {effect}", "one of them")
        seen.add((key, effect))
    if "os=windows" not in {taint.partition(":")[0] for taint in node.taints}:
        wrong = "without the taint os=windows pods for Linux can land on the node"
        if node.model_fields_set & {"taints"}:
            yield draft.at(("node", "taints"), wrong, "os=windows:NoSchedule among them", warning=True)


def _label(
    draft: Draft, label: str, value: str | None, rules: Mapping[str, list[str]]
) -> Iterator[Complaint]:
    path: PathParts = ("node", "labels", label)
    try:
        label_key(label)
    except Wrong as error:
        yield draft.wrong(path, error, key=True)
        return
    try:
        label_value(value or "")
    except Wrong as error:
        yield draft.wrong(path, error)
    if label in _KUBELET_LABELS:
        yield draft.at(path, "the kubelet sets this label itself", "another label", key=True)
        return
    prefix = label.rpartition("/")[0]
    reserved = prefix.split(".")[-2:] in (["kubernetes", "io"], ["k8s", "io"])
    # winboot sets labels through the API with the operator's rights, so even reserved ones could be written; they belong to
    # Kubernetes, but for the one that names a node's role, which administrators are to set
    # (kubernetes.io/docs/reference/labels-annotations-taints, node-role.kubernetes.io/*).
    allowed = (
        prefix == "node-role.kubernetes.io"
        or label in rules["labels"]
        or any(prefix == space or prefix.endswith(f".{space}") for space in rules["namespaces"])
    )
    if reserved and not allowed:
        wrong = f"{label} is in a namespace that kubelets may not write to"
        yield draft.at(path, wrong, "another prefix, such as example.com/name", key=True)


def _proxy(draft: Draft) -> Iterator[Complaint]:
    if draft.proxy is None:
        return
    if draft.proxy.no_proxy and not (draft.proxy.http or draft.proxy.https):
        yield draft.at(
            ("proxy", "no_proxy"),
            "no proxy is set",
            "proxy.http or proxy.https",
            warning=True,
        )
    yield from _proxy_schemes(draft, draft.proxy)
    for index, entry in enumerate(draft.proxy.no_proxy):
        path: PathParts = ("proxy", "no_proxy", index)
        if entry.startswith("*."):
            yield draft.at(path, f"{entry!r}: programs do not expand *", entry[1:])
        elif has_login(entry):
            yield draft.at(
                path, "the entry contains a user or a password", "a host, .domain, address or network"
            )
        elif not _is_direct(entry):
            yield draft.at(path, repr(entry), "a host, .domain, address or network")


def _proxy_schemes(draft: Draft, proxy: sections.Proxy) -> Iterator[Complaint]:
    """The machine's own downloads go through HttpWebRequest of the .NET Framework, which knows http:// proxies alone.

    Source: ServicePointManager.FindServicePointHelper of the .NET Framework (referencesource,
    System/net/System/Net/ServicePointManager.cs): NotSupportedException(net_proxyschemenotsupported) unless the proxy's
    scheme is http. The services are Go programs, which would take https://.
    """
    source = draft.artifacts.source if draft.artifacts is not None else "upstream"
    if source != "upstream" and not source.lower().startswith(("http://", "https://")):
        return  # nothing is downloaded through a proxy
    for key, url in (("http", proxy.http), ("https", proxy.https)):
        if url is not None and url.lower().startswith("https://"):
            wrong = (
                f"{url!r}: Windows PowerShell 5.1 cannot download through it (.NET Framework: the ServicePointManager"
                " does not support proxies with the https scheme)"
            )
            yield draft.at(
                ("proxy", key), wrong, "http://host:port: the address of the proxy, whatever it fetches"
            )


def _is_direct(entry: str) -> bool:
    """A host, `.domain`, address, network, or one of the first two with a port; `*` alone means everything."""
    if entry == "*":
        return True
    try:
        ipaddress.ip_network(entry, strict=False)
    except ValueError:
        pass
    else:
        return True
    name, colon, port = entry.removeprefix(".").partition(":")
    if colon and not re.fullmatch(r"[0-9]{1,5}", port):
        return False
    try:
        host_name(name)
    except Wrong:
        return False
    return True


def _windows(draft: Draft) -> Iterator[Complaint]:
    windows = draft.windows
    if windows is None:
        return
    if "Containers" not in windows.features:
        yield draft.at(("windows", "features"), "without Containers nothing runs", "Containers among them")
    for index, feature in enumerate(windows.features):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", feature):
            yield draft.at(
                ("windows", "features", index), repr(feature), "the name Get-WindowsFeature prints"
            )
    yield from _names_of_hosts(draft, windows)
    if windows.features_source is not None:
        yield from _windows_path(draft, ("windows", "features_source"), windows.features_source)
    ports = windows.dynamic_ports
    if ports is not None:
        yield from _dynamic_ports(draft, ports, windows.excluded_ports)
    yield from _excluded_ports(draft, windows.excluded_ports)
    fixes = draft.facts.section("fixes")
    for index, fix in enumerate(windows.known_fixes):
        if fix not in fixes:
            yield draft.at(
                ("windows", "known_fixes", index), repr(fix), " | ".join(fixes), nearest(fix, fixes)
            )
        elif fix == "tcp-keepalive" and windows.keepalive is not None:
            wrong = f"{fix} sets what windows.keepalive says"
            yield draft.at(("windows", "known_fixes", index), wrong, "one of the two")


def _names_of_hosts(draft: Draft, windows: sections.Windows) -> Iterator[Complaint]:
    for index, server in enumerate(windows.time_servers):
        name, comma, flags = server.partition(",")
        path: PathParts = ("windows", "time_servers", index)
        try:
            host_name(name)
        except Wrong as error:
            yield draft.wrong(path, error)
            continue
        if comma and not _TIME_FLAGS.fullmatch(flags):
            yield draft.at(path, f"{server!r} has unknown flags", "a host, or a host with flags such as ,0x8")
    for index, suffix in enumerate(windows.dns_suffixes):
        try:
            host_name(suffix)
        except Wrong as error:
            yield draft.wrong(("windows", "dns_suffixes", index), error)


def _windows_path(draft: Draft, path: PathParts, text: str) -> Iterator[Complaint]:
    """A folder or file that the node reads: on another disk, or on a share; WIM:C:\\x.wim:1 names an image in one."""
    bare = re.sub(r"^wim:(.*):[0-9]+$", r"\1", text, flags=re.IGNORECASE)
    if _FOLDER.fullmatch(bare) or _UNC.fullmatch(bare):
        return
    if "@" in text:
        yield draft.at(path, "the path contains a user or a password", "\\\\server\\share\\folder")
    else:
        yield draft.at(path, f"{text!r} is not a Windows path", "D:\\folder or \\\\server\\share\\folder")


def _dynamic_ports(
    draft: Draft, ports: sections.DynamicPorts, excluded: tuple[sections.ExcludedPorts, ...]
) -> Iterator[Complaint]:
    path: PathParts = ("windows", "dynamic_ports")
    last = ports.start + ports.count - 1
    if last > 65535:
        yield draft.at(
            (*path, "count"), f"{ports.start} and {ports.count} ports end at {last}", "at most 65535"
        )
    # A range that reaches below them is large, and harmless where clients get none of them.
    if ports.start < _NODE_PORTS.stop and last >= _NODE_PORTS.start and not _keeps_node_ports(excluded):
        wrong = f"{ports.start}-{last} meets the NodePorts 30000-32767"
        expected = "a range from 32768 on, such as 33000, or {start: 30000, count: 2768} in excluded_ports"
        yield draft.at((*path, "start"), wrong, expected)


def _keeps_node_ports(excluded: tuple[sections.ExcludedPorts, ...]) -> bool:
    covered = {
        protocol
        for one in excluded
        if one.start <= _NODE_PORTS.start and one.start + one.count >= _NODE_PORTS.stop
        for protocol in _protocols(one)
    }
    return covered == {"tcp", "udp"}


def _protocols(ports: sections.ExcludedPorts) -> tuple[str, ...]:
    return ("tcp", "udp") if ports.protocol is None else (ports.protocol,)


def _excluded_ports(draft: Draft, excluded: tuple[sections.ExcludedPorts, ...]) -> Iterator[Complaint]:
    seen: list[tuple[str, range]] = []
    for index, one in enumerate(excluded):
        path: PathParts = ("windows", "excluded_ports", index)
        ports = range(one.start, one.start + one.count)
        if ports.stop > 65536:
            wrong = f"{one.start} and {one.count} ports end at {ports.stop - 1}"
            yield draft.at((*path, "count"), wrong, "at most 65535")
        # Windows takes no range that shares a port with another one.
        for protocol in _protocols(one):
            if any(known == protocol and ports.start < b.stop and b.start < ports.stop for known, b in seen):
                wrong = f"{protocol} {ports.start}-{ports.stop - 1} meets another range of this list"
                yield draft.at((*path, "start"), wrong, "ranges that share no port")
            seen.append((protocol, ports))


def _artifacts(draft: Draft) -> Iterator[Complaint]:
    artifacts = draft.artifacts
    if artifacts is None:
        return
    yield from _artifact_source(draft, artifacts.source)
    if artifacts.crictl and draft.version:
        yield from draft.found(("artifacts", "crictl"), compat.check_crictl(artifacts.crictl, draft.version))
    if draft.solution:
        yield from _network_artifacts(draft, artifacts, draft.solution)


def _network_artifacts(
    draft: Draft, artifacts: sections.Artifacts, solution: networks.Network
) -> Iterator[Complaint]:
    """Versions that the solution needs; and those that would choose another form, which this one is not."""
    for one in solution.downloads:
        if not one.version and one.key not in artifacts.named:
            wrong = f"{one.key} is missing"
            yield draft.at(("artifacts",), wrong, f"{one.key}: the version of {one.title}", key=True)
    for form in networks.NETWORKS:
        if form.chosen_by not in artifacts.named or form is solution:
            continue
        path: PathParts = ("artifacts", form.chosen_by)
        if form.cni != solution.cni:
            yield draft.at(path, f"the network is {solution.cni}", "drop it", key=True)
        else:
            wrong = f"the {solution.owners.binaries} brings its programs itself"
            yield draft.at(path, wrong, f"network.managed_by: {form.managed_by}, or drop it", key=True)


def _artifact_source(draft: Draft, source: str) -> Iterator[Complaint]:
    path: PathParts = ("artifacts", "source")
    if source == "upstream":
        return
    if source.startswith("\\\\") or re.match(r"[A-Za-z]:\\", source):
        yield from _windows_path(draft, path, source)
        return
    try:
        url = web_address(source, "upstream, an https:// address or a folder that the node reads")
    except Wrong as error:
        meant = nearest(source, ["upstream"])
        yield draft.at(path, error.wrong, error.expected, meant or error.did_you_mean)
        return
    dead = draft.facts.section("dead_hosts")
    name = url.hostname or ""
    if any(name == host or name.endswith(f".{host}") for host in dead["hosts"]):
        yield draft.at(
            path, f"{url.hostname} no longer answers: {dead['why']}", "upstream, or your own mirror"
        )
    if url.scheme == "http":
        yield draft.at(
            path, "downloads go in the clear; only their hashes protect them", "https://", warning=True
        )


def _steps(draft: Draft) -> Iterator[Complaint]:
    seen: set[str] = set()
    for index, step in enumerate(draft.steps):
        path: PathParts = ("steps", index)
        if not _STEP_NAME.fullmatch(step.name):
            yield draft.at(
                (*path, "name"), repr(step.name), "lower case words with dashes, such as time-zone"
            )
        if step.name in seen:
            yield draft.at((*path, "name"), f"a second step {step.name!r}", "another name")
        seen.add(step.name)
        for block, file in step.files.items():
            if not is_file(file):
                yield draft.at((*path, block), f"there is no file {file}", "a PowerShell file")


CHECKS: Final[tuple[Callable[[Draft], Iterator[Complaint]], ...]] = (
    _kubernetes,
    _cluster,
    _network,
    _runtime,
    _services,
    _flags_of("kubelet"),
    _flags_of("kube-proxy"),
    _node,
    _proxy,
    _windows,
    _artifacts,
    _steps,
)
