"""The checks of both sides before the first write: each a value with a stable id and a function.

A function yields findings; it says nothing where all is in order. A check whose question the API server refuses is a
warning of the same id, so that a missing right to look never passes for a good answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, TypeAlias

from winboot.base.clock import clock_level
from winboot.base.errors import ClusterRefused
from winboot.base.foreign import Malformed, yaml_of
from winboot.config.authority import end_of
from winboot.config.compat.platform import check_skew
from winboot.config.networks import cluster_settings
from winboot.config.networks.cluster import InCluster
from winboot.config.node_spec import NodeSpec
from winboot.node.preflight.view import BOOTSTRAPPER, BOOTSTRAPPERS, NODES, ClusterView
from winboot.remote.cluster import rights
from winboot.remote.cluster.base import GmsaState, Need, NodeFacts
from winboot.report.finding import Finding

Found: TypeAlias = Iterator[Finding]
_CSR: Final = "certificatesigningrequests"
_APPLY_RBAC: Final = "Apply the output of `winboot manifests rbac`."


@dataclass(frozen=True, slots=True)
class Check:
    """One check: `id` is what reports show and `--skip-preflight` takes, `why` a sentence for people."""

    id: str
    why: str
    look: Callable[[ClusterView], Found]

    def findings(self, view: ClusterView) -> tuple[Finding, ...]:
        """What it finds. An answer that the API server refuses is a warning; no answer at all raises ClusterUnreachable."""
        try:
            return tuple(self.look(view))
        except ClusterRefused as error:
            reason = f"not checked: {error.problem}"
            return (Finding(self.id, "warning", reason, "`winboot manifests operator` prints the rights."),)


def _names(specs: Iterable[NodeSpec]) -> tuple[str, ...]:
    return tuple(spec.node.name for spec in specs)


def _skew(view: ClusterView) -> Found:
    """https://kubernetes.io/releases/version-skew-policy/#kubelet"""
    by_version = defaultdict(list)
    for spec in view.specs:
        by_version[spec.kubernetes.version].append(spec)
    for version, specs in by_version.items():
        for one in check_skew(version, view.version):
            fix = f"Set kubernetes.version in the profile: {one.instead}."
            yield Finding("version-skew", "error", f"{one.about}: {one.reason}", fix, _names(specs))


def _api_certificate(view: ClusterView) -> Found:
    if view.is_insecure:
        reason = (
            "the kubeconfig has insecure-skip-tls-verify: any server on the path may answer as this cluster"
        )
        fix = "Add certificate-authority-data to its cluster, and remove insecure-skip-tls-verify."
        yield Finding("api-certificate", "warning", reason, fix)


def _controller_clock(view: ClusterView) -> Found:
    """winboot writes no time of this computer into a cluster or a machine, so this stops no node."""
    ahead = view.clock_ahead
    if ahead is None or clock_level(ahead) == "ok":
        return
    side = "behind" if ahead > timedelta() else "ahead of"
    reason = f"this computer's clock is {abs(ahead).total_seconds():.0f} s {side} the API server's"
    fix = "Correct the wrong clock: Kerberos and clouds refuse a login if the clocks differ by more than 5 minutes."
    yield Finding("controller-clock", "warning", reason, fix)


def _permissions(view: ClusterView) -> Found:
    """What the user of the kubeconfig must be allowed to do, found out before a machine restarts for it."""
    fix = "Apply the output of `winboot manifests operator`, and bind the role to this user."
    for need in view.own_missing(rights.needed(mints=view.mints, drains=view.drains)):
        yield Finding("permissions", "error", f"this kubeconfig's user may not {need} {need.why}", fix)
    for need in view.own_missing(rights.preflight(gmsa=any(spec.gmsa for spec in view.specs))):
        yield Finding("permissions", "warning", f"this kubeconfig's user may not {need} {need.why}", fix)


def _bootstrap(view: ClusterView) -> Found:
    """https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/"""
    needs = {
        "create": Need("create", _CSR, rights.CERTIFICATES),
        "approve": Need("create", f"{_CSR}/nodeclient", rights.CERTIFICATES),
    }
    fixes = {
        "create": "Bind ClusterRole system:node-bootstrapper to the group of bootstrap tokens, as kubeadm does.",
        "approve": "Bind ClusterRole system:certificates.k8s.io:certificatesigningrequests:nodeclient to the group "
        "of bootstrap tokens, as kubeadm does; else the kubelet gets no client certificate.",
    }
    for what, need in needs.items():
        for lacking in view.missing({what: (need,)}, BOOTSTRAPPER, BOOTSTRAPPERS):
            reason = f"a bootstrap token may not {lacking.need}"
            yield Finding("bootstrap-bindings", "error", reason, fixes[what])
    renewal = Need("create", f"{_CSR}/selfnodeclient", rights.CERTIFICATES)
    for lacking in view.missing({"renewal": (renewal,)}, "system:node:any", NODES):
        fix = (
            "Bind ClusterRole system:certificates.k8s.io:certificatesigningrequests:selfnodeclient to group "
            "system:nodes; otherwise the nodes' certificates are not renewed and expire."
        )
        yield Finding("bootstrap-bindings", "warning", f"a node may not {lacking.need}", fix)


def _node_cidrs(view: ClusterView) -> Found:
    solutions = [(spec, spec.network.solution) for spec in view.specs]
    wanting = [spec for spec, one in solutions if one.pod_cidr and not one.pod_cidr_annotation]
    settled = [node for node in view.nodes if node.ready]
    if not wanting or not settled or any(node.pod_cidrs for node in view.nodes):
        return
    yield Finding(
        "node-cidrs",
        "error",
        f"none of the {len(settled)} Ready Nodes has a spec.podCIDR, which {wanting[0].network.solution.id} needs",
        "Start kube-controller-manager with --allocate-node-cidrs and --cluster-cidr.",
        _names(wanting),
    )


def _agreement(own: InCluster) -> Check:
    """The check of a solution: its settings in the cluster, and what the nodes with it want."""

    def look(view: ClusterView) -> Found:
        wanting = [spec.network_wanted for spec in view.specs if spec.network.solution.in_cluster is own]
        if wanting:
            yield from own.findings(view.settings, wanting)

    return Check(own.check, own.why, look)


def _cilium(view: ClusterView) -> Found:
    """Cilium's settings are in this ConfigMap (cilium/cilium install/kubernetes/cilium templates/cilium-configmap.yaml)."""
    if view.settings.config_map("kube-system", "cilium-config") is None:
        return
    alone = [spec for spec in view.specs if _is_alone(view, spec)]
    if alone:
        reason = (
            "the cluster's network is Cilium (ConfigMap kube-system/cilium-config), which has no agent for Windows: "
            "with Cilium alone there is no network for Windows nodes"
        )
        fix = "Install a network for Windows nodes, with routes to Cilium's pods; docs/networks.md compares the networks."
        yield Finding("cilium", "warning", reason, fix, _names(alone))


def _is_alone(view: ClusterView, spec: NodeSpec) -> bool:
    """Whether the cluster shows nothing of the network that this node wants. A cloud's network shows nothing there."""
    solution = spec.network.solution
    if solution.in_cluster is None:
        return not solution.pods_in_node_network
    return any(solution.in_cluster.findings(view.settings, [spec.network_wanted]))


def _daemon_sets(view: ClusterView) -> Found:
    for name in view.unselective:
        namespace, _, short = name.partition("/")
        fix = (
            f"kubectl -n {namespace} patch daemonset {short} --type merge -p "
            '\'{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"linux"}}}}}\''
        )
        reason = f"DaemonSet {name} selects no operating system: its Linux pods would be scheduled on Windows nodes"
        yield Finding("daemonset-selectors", "warning", reason, fix)


def _kube_proxy(view: ClusterView) -> Found:
    ours = [
        spec
        for spec in view.specs
        if spec.kube_proxy.wanted and spec.network.solution.owners.kube_proxy != "operator"
    ]
    for name in view.windows_kube_proxies if ours else ():
        yield Finding(
            "kube-proxy-daemonset",
            "error",
            f"DaemonSet {name} runs kube-proxy on Windows nodes, but the profile also wants winboot's service",
            "Two kube-proxies overwrite each other's rules: delete the DaemonSet, or set kube_proxy.managed_by: operator.",
            _names(ours),
        )


def _kube_proxy_mode(view: ClusterView) -> Found:
    """kubeadm writes `mode: iptables` into the ConfigMap that all nodes share, from 1.37 on (kubernetes/kubernetes#139777);
    kube-proxy for Windows takes kernelspace or nothing (validateProxyModeWindows of pkg/proxy/apis/config/validation)."""
    for name, place in view.windows_kube_proxy_configs:
        namespace, _, config_map = place.partition("/")
        for mode in _modes(view.settings.config_map(namespace, config_map) or {}):
            if mode in ("", "kernelspace"):
                continue
            reason = (
                f"DaemonSet {name} gives kube-proxy on Windows nodes ConfigMap {place}, which has mode: {mode}; "
                "kube-proxy for Windows exits unless the mode is kernelspace"
            )
            fix = "Give the DaemonSet its own ConfigMap with mode: kernelspace, unless its pods set the mode themselves."
            yield Finding("kube-proxy-mode", "warning", reason, fix)


def _privileged(view: ClusterView) -> Found:
    """Without --allow-privileged the API server refuses HostProcess pods (validateWindowsHostProcessPod of kubernetes:
    pkg/apis/core/validation/validation.go). Only a dry run would ask it, with a right that no other part of a join needs."""
    wanting = [spec for spec in view.specs if "host-process" in spec.network.solution.features]
    if wanting and not view.has_privileged:
        reason = (
            f"{wanting[0].network.solution.id} needs HostProcess pods, but the API server may refuse them: the cluster "
            "has no privileged DaemonSet yet"
        )
        fix = "Start kube-apiserver with --allow-privileged=true, as kubeadm does."
        yield Finding("privileged-pods", "warning", reason, fix, _names(wanting))


def _csi_proxy(view: ClusterView) -> Found:
    """Two csi-proxies want the same pipes, and without one a driver's pods fail: they cannot open csi-proxy-filesystem-v1
    (kubernetes-sigs/aws-ebs-csi-driver, issue 1322)."""
    ours = [spec for spec in view.specs if "csi-proxy" in spec.services]
    without = [spec for spec in view.specs if "csi-proxy" not in spec.services]
    running = [name for name, role in view.csi_proxies if role == "runs"]
    for name in running if ours else ():
        reason = f"DaemonSet {name} runs csi-proxy, but the profile also wants winboot's service"
        fix = "Two csi-proxies cannot serve the same pipes: delete the DaemonSet, or remove storage.csi_proxy from the profile."
        yield Finding("csi-proxy", "error", reason, fix, _names(ours))
    for name, role in view.csi_proxies if without and not running else ():
        if role == "mounts":
            reason = f"the pods of DaemonSet {name} mount csi-proxy's pipes, but csi-proxy does not run on these nodes"
            fix = "Set storage.csi_proxy in the profile, or let the driver's chart use HostProcess pods (docs/storage.md)."
            yield Finding("csi-proxy", "warning", reason, fix, _names(without))


def _gmsa(view: ClusterView) -> Found:
    """Never an error: the node joins without its accounts. Each account is tried once, with its first service account."""
    wanting = [spec for spec in view.specs if spec.gmsa is not None]
    accounts = dict.fromkeys(one for spec in wanting if spec.gmsa is not None for one in spec.gmsa.accounts)
    if not wanting:
        return
    names, state = _names(wanting), view.gmsa
    if state.specs is None:
        fix = "Install windows-gmsa by its chart (docs/identity.md), then apply the output of `winboot manifests gmsa`."
        yield Finding(
            "gmsa", "warning", "the cluster has no CRD gmsacredentialspecs.windows.k8s.io", fix, names
        )
        return
    yield from _webhook(view, state, names)
    for account in accounts:
        if account.spec not in state.specs:
            reason = f"there is no GMSACredentialSpec {account.spec}"
            yield Finding("gmsa", "warning", reason, "Apply the output of `winboot manifests gmsa`.", names)
        elif account.subjects:
            yield from _tried(view, account.spec, account.subjects[0], names)


def _tried(view: ClusterView, spec: str, subject: str, names: tuple[str, ...]) -> Found:
    """A pod of this service account, in a dry run; winboot's user needs the right to create one."""
    namespace, _, user = subject.partition("/")
    for need in view.own_missing((Need("create", "pods", namespace=namespace),)):
        reason = f"unchecked whether a pod of service account {subject} gets {spec}: this kubeconfig's user may not {need}"
        yield Finding(
            "gmsa", "warning", reason, "Start such a pod yourself, or give the user that right.", names
        )
        return
    refused = view.try_gmsa(namespace, user, spec)
    if refused:
        reason = f"a pod of service account {subject} does not get {spec}: {refused}"
        fix = "`winboot manifests gmsa` prints the role and its bindings; `kubectl get pods -A` shows the webhook."
        yield Finding("gmsa", "warning", reason, fix, names)


def _webhook(view: ClusterView, state: GmsaState, names: tuple[str, ...]) -> Found:
    """Its failurePolicy is Fail: without a certificate that holds, the API server refuses every pod."""
    if not state.bundles:
        fix = "Install windows-gmsa by its chart, with the values of `winboot manifests gmsa-webhook`."
        yield Finding("gmsa", "warning", "the cluster has no webhook of windows-gmsa", fix, names)
    for name, pem in state.bundles.items():
        ends = end_of(pem)
        if ends is None or ends < view.now:
            state_of = "no certificate" if ends is None else f"of {ends:%Y-%m-%d}, and has expired"
            reason = f"the CA bundle of {name} is {state_of}"
            fix = "Renew the webhook's certificate: until then the API server refuses every new pod."
            yield Finding("gmsa", "warning", reason, fix, names)


def _modes(data: Mapping[str, str]) -> Iterator[str]:
    """The modes of the kube-proxy configurations in a ConfigMap; any other text has no mode."""
    for text in data.values():
        try:
            found = yaml_of(text)
        except Malformed:
            continue
        if isinstance(found, Mapping) and found.get("kind") == "KubeProxyConfiguration":
            yield str(found.get("mode") or "")


def _cidrs(view: ClusterView) -> Found:
    """A node inside the pod or the service network sends its own traffic into the wrong place."""
    for spec in view.specs:
        networks = [
            *(("pod network", cidr) for cidr in spec.cluster.pod_cidrs),
            *(("service network", cidr) for cidr in spec.cluster.service_cidrs),
        ]
        for address in _addresses(spec, view.nodes):
            for what, cidr in networks:
                own = what == "pod network" and spec.network.solution.pods_in_node_network
                if address in ip_network(str(cidr)) and not own:
                    reason = f"the address {address} is in the {what} {cidr}"
                    fix = (
                        "Nodes, pods and services need separate networks: correct the profile or the address."
                    )
                    yield Finding("cidr-overlap", "error", reason, fix, (spec.node.name,))


def _addresses(spec: NodeSpec, nodes: Sequence[NodeFacts]) -> Iterator[IPv4Address | IPv6Address]:
    """Where the node is, as far as the inventory and the cluster say it."""
    texts = [str(spec.machine.node_ip)] if spec.machine.node_ip is not None else []
    for node in nodes:
        if node.name == spec.node.name:
            texts += [value for kind, value in node.addresses if kind == "InternalIP"]
    for text in dict.fromkeys(texts):
        with suppress(ValueError):
            yield ip_address(text)


def _machine_ids(view: ClusterView) -> Found:
    """hybrid-overlay-node takes a Node with its own machine id for itself (ho_node_windows.go, AddNode). On Windows the id is
    the computer name (kubernetes pkg/kubelet/winstats/perfcounter_nodestats.go, getMachineInfo)."""
    wanting = {spec.node.name for spec in view.specs if spec.network.solution.cni == "ovn-hybrid"}
    by_id = defaultdict(list)
    for node in view.nodes:
        if node.operating_system == "windows" and node.machine_id:
            by_id[node.machine_id.lower()].append(node.name)
    for machine_id, same in by_id.items():
        if len(same) > 1 and wanting.intersection(same):
            names = ", ".join(sorted(same))
            reason = f"the Nodes {names} share one machine id, {machine_id}: OVN-Kubernetes treats them as one node"
            fix = "Give each machine its own computer_name in the inventory, and join it again."
            yield Finding("machine-ids", "error", reason, fix, tuple(sorted(wanting.intersection(same))))


def _node_names(view: ClusterView) -> Found:
    known: Mapping[str, NodeFacts] = {node.name: node for node in view.nodes}
    for spec in view.specs:
        node = known.get(spec.node.name)
        if node is not None and node.operating_system not in ("", "windows"):
            reason = f"the cluster has a node of this name that runs {node.operating_system}"
            yield Finding(
                "node-name",
                "error",
                reason,
                "Give the host another name in the inventory.",
                (spec.node.name,),
            )


def _agent_rights(view: ClusterView) -> Found:
    """kube-proxy and the network's agent speak with the node's certificate."""
    for spec in view.specs[:1]:
        user = f"system:node:{spec.node.name}"
        for one in view.missing(agent_needs(view.specs), user, NODES):
            reason = f"{one.program} logs in as {user}, which may not {one.need}"
            yield Finding("node-rbac", "error", reason, f"{_APPLY_RBAC} This output binds {one.binding}.")


def agent_needs(specs: Sequence[NodeSpec]) -> dict[str, list[Need]]:
    """What the programs of these nodes do with the certificate of their node."""
    needs: dict[str, list[Need]] = {}
    for spec in specs:
        if spec.kube_proxy.wanted and spec.kube_proxy.kubeconfig is None:
            needs["kube-proxy"] = [
                Need("list", "services"),
                Need("watch", "endpointslices", "discovery.k8s.io"),
            ]
        solution = spec.network.solution
        for rule in solution.rights.rules if solution.rights is not None else ():
            needs.setdefault(solution.agent_service or solution.id, []).extend(
                Need(verb, resource, group)
                for group in rule.get("apiGroups", ())
                for resource in rule.get("resources", ())
                for verb in rule.get("verbs", ())
            )
    return {program: list(dict.fromkeys(wanted)) for program, wanted in needs.items()}


CHECKS: Final[tuple[Check, ...]] = (
    Check("version-skew", "A kubelet must not be newer than the API server, or too old for it.", _skew),
    Check("api-certificate", "The API server must prove its identity by a certificate.", _api_certificate),
    Check(
        "controller-clock",
        "Certificates and logins to domains and clouds fail if this computer's clock is wrong.",
        _controller_clock,
    ),
    Check("permissions", "The kubeconfig's user needs the rights for all requests of a join.", _permissions),
    Check(
        "bootstrap-bindings",
        "A bootstrap token needs the right to request the kubelet's certificate.",
        _bootstrap,
    ),
    Check("node-cidrs", "flannel and the reference plug-ins need the Node's spec.podCIDR.", _node_cidrs),
    *(_agreement(one) for one in cluster_settings()),
    Check("cilium", "Cilium has no agent for Windows nodes.", _cilium),
    Check("daemonset-selectors", "Linux pods cannot run on a Windows node.", _daemon_sets),
    Check("kube-proxy-daemonset", "Only one kube-proxy may run on each node.", _kube_proxy),
    Check(
        "kube-proxy-mode",
        "kube-proxy for Windows supports only one mode, but Linux and Windows nodes may share a ConfigMap.",
        _kube_proxy_mode,
    ),
    Check("privileged-pods", "A solution in HostProcess pods needs --allow-privileged.", _privileged),
    Check("csi-proxy", "A CSI driver in ordinary pods needs one csi-proxy on the node.", _csi_proxy),
    Check("gmsa", "Pods with a gMSA need the CRD, a working webhook and a role.", _gmsa),
    Check("cidr-overlap", "A node's address must not be in the pod network or the service network.", _cidrs),
    Check("machine-ids", "OVN-Kubernetes needs a unique machine id on each node.", _machine_ids),
    Check("node-name", "The name must not belong to a node of another operating system.", _node_names),
    Check("node-rbac", "The node's certificate needs kube-proxy's and the network's rights.", _agent_rights),
)


def wrong_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """Those that no check has."""
    known = {check.id for check in CHECKS}
    return tuple(one for one in ids if one not in known)
