"""The controllers that a joining node needs: CSR approval and signing, pod CIDRs, readiness taints.

As in a real cluster they act a moment after the change that gave them work, never within its request: the next
request waits for what is due. `paused` stops one by name, which is how a lab shows "CSR pending" or
"node has no podCIDR".
"""

from __future__ import annotations

import base64
import ipaddress
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from winboot.config.compat.version import Version
from winboot_lab.cluster.admission import NOT_READY, UNREACHABLE, parse_request
from winboot_lab.cluster.authority import CLIENT_AUTH, SERVER_AUTH, Authority, NotTrusted, subject_of
from winboot_lab.cluster.identity import NODE_PREFIX, NODES, OVN_NODE_PREFIX, OVN_NODES, Identity
from winboot_lab.cluster.kinds import (
    CSINODES,
    CSRS,
    DAEMONSETS,
    KINDS,
    LEASES,
    NAMESPACES,
    PODS,
    SERVICES,
    SLICES,
    Object,
    copied,
)
from winboot_lab.cluster.kinds import NODES as NODE_KIND
from winboot_lab.cluster.rbac import Action, allowed
from winboot_lab.cluster.services import slice_of
from winboot_lab.cluster.store import Store

CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client-kubelet"
OVN_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
# ovn-kubernetes pkg/csrapprover/approver.go: Usages, DefaultCSRAcceptanceCondition, MaxDuration.
_AGENT_USAGES: Final = frozenset({"digital signature", "client auth"})
_AGENT_GROUPS: Final = frozenset({NODES, OVN_NODES, "system:authenticated"})
_AGENT_SECONDS: Final = 365 * 86400
SERVING_SIGNER: Final = "kubernetes.io/kubelet-serving"
# How long after a change a controller acts on it. No figure of Kubernetes: some moment, so no client expects an instant act.
REACTS_AFTER: Final = timedelta(milliseconds=200)
# --node-monitor-period (cmd/kube-controller-manager, KubeCloudSharedOptions).
MONITORS_EVERY: Final = timedelta(seconds=5)
_OF_THE_KUBELET: Final = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"})
NAMES: Final = frozenset(
    {
        "csrapproving",
        "csrsigning",
        "nodeipam",
        "nodelifecycle",
        "daemonset",
        "endpointslice",
        "namespace",
        "garbagecollector",
        # OVN-Kubernetes' own: the hybrid overlay's subnets, and ovnkube-identity.
        "ovnkube",
    }
)
_USAGES: Final = {
    CLIENT_SIGNER: ({"digital signature", CLIENT_AUTH}, {"key encipherment"}),
    SERVING_SIGNER: ({"digital signature", SERVER_AUTH}, {"key encipherment"}),
}
_GROUP: Final = "certificates.k8s.io"
_HYBRID_SUBNET: Final = "k8s.ovn.org/hybrid-overlay-node-subnet"


def monitor_grace(version: Version) -> timedelta:
    """The default of --node-monitor-grace-period: 50 s from 1.32 on, 40 s before (kubernetes/kubernetes#126287, merged for
    1.32; openshift/openshift-docs#115628 names the release)."""
    return timedelta(seconds=50 if version.at_least("1.32") else 40)


class Controllers:
    """kube-controller-manager, as far as a lab needs one."""

    def __init__(
        self,
        store: Store,
        authority: Authority,
        cidrs: Sequence[str],
        now: Callable[[], datetime],
        networks: Sequence[str] = (),
        grace: timedelta = timedelta(seconds=50),
        hybrid: str = "",
    ) -> None:
        self._store = store
        self._grace = grace
        self._next_look = now()
        # Node -> the last renewal of its Lease, and when it was seen: the node's own clock does not count.
        self._renewed: dict[str, tuple[str, datetime]] = {}
        # Networks of pods, where no node has a part of its own.
        self._networks = tuple(networks)
        self._authority = authority
        self._now = now
        self._pools = [_Pool(ipaddress.ip_network(c)) for c in cidrs]
        # --hybrid-overlay-cluster-subnets of ovnkube.
        self._hybrid = _Pool(ipaddress.ip_network(hybrid)) if hybrid else None
        self.paused: set[str] = set()
        self.certificate_lifetime = timedelta(days=365)
        # What has changed, in the order of the time to look at it.
        self._due: deque[tuple[datetime, Callable[[str], None], str]] = deque()

    def request_changed(self, name: str) -> None:
        """A certificate request was made or changed."""
        self._later(self._handle_request, name)

    def node_changed(self, name: str) -> None:
        """A Node was made or changed."""
        self._later(self._handle_node, name)

    def services_changed(self, namespace: str) -> None:
        """Pods or services of a namespace have changed."""
        self._later(self._place_endpoints, namespace)

    def pod_changed(self, namespace: str, name: str) -> None:
        """A pod was made or changed."""
        self._later(self._run_on_linux, f"{namespace}/{name}")

    def namespace_ends(self, name: str) -> None:
        """A namespace was deleted: it is Terminating."""
        self._later(self._end_namespace, name)

    def node_gone(self, name: str) -> None:
        """A Node was deleted."""
        self._later(self._end_pods, name)
        self._later(self._end_owned, name)

    def catch_up(self, *, all_of_it: bool = False) -> None:
        """Do what is due by now; with `all_of_it`, what is not yet due as well."""
        with self._store.lock:
            while self._due and (all_of_it or self._due[0][0] <= self._now()):
                _, work, name = self._due.popleft()
                work(name)
            if self._now() >= self._next_look and "nodelifecycle" not in self.paused:
                self._next_look = self._now() + MONITORS_EVERY
                self._monitor()

    def _monitor(self) -> None:
        """A node whose kubelet renews its Lease no more becomes Unknown (node_lifecycle_controller.go,
        tryUpdateNodeHealth)."""
        for lease in self._store.look(LEASES, "kube-node-lease"):
            name, renewed = lease["metadata"]["name"], str(lease["spec"].get("renewTime"))
            known = self._renewed.get(name)
            if known is None or known[0] != renewed:
                self._renewed[name] = (renewed, self._now())
            elif self._now() > known[1] + self._grace:
                self._lose(name)

    def _lose(self, name: str) -> None:
        node = self._store.find(NODE_KIND, "", name)
        ready = condition(node or {}, "Ready")
        if node is None or ready is None or ready["status"] == "Unknown":
            return
        now = self._store.timestamp()
        for one in node["status"]["conditions"]:
            if one["type"] in _OF_THE_KUBELET:
                one.update(status="Unknown", reason="NodeStatusUnknown", lastTransitionTime=now)
                one["message"] = "Kubelet stopped posting node status."
        _taint_by_readiness(node, now)
        self._store.replace(NODE_KIND, node)

    def _later(self, work: Callable[[str], None], name: str) -> None:
        self._due.append((self._now() + REACTS_AFTER, work, name))

    def _handle_request(self, name: str) -> None:
        """Approve what kubeadm's bindings allow; sign what is approved."""
        csr = self._store.find(CSRS, "", name)
        if csr is None:
            return
        if ("csrapproving" not in self.paused and self._approve(csr)) or (
            "ovnkube" not in self.paused and self._approve_agent(csr)
        ):
            self.request_changed(name)
        elif "csrsigning" not in self.paused:
            self._sign(csr)

    def _handle_node(self, name: str) -> None:
        """Give the node its pod CIDRs, and keep the not-ready taint in step with its Ready condition."""
        node = self._store.find(NODE_KIND, "", name)
        if node is None:
            return
        changed = False
        if "nodeipam" not in self.paused:
            changed = self._allocate(node)
        if self._hybrid is not None and "ovnkube" not in self.paused:
            changed = self._annotate(node, self._hybrid) or changed
        if "nodelifecycle" not in self.paused:
            changed = _taint_by_readiness(node, self._store.timestamp()) or changed
        if changed:
            self._store.replace(NODE_KIND, node)
        if "daemonset" not in self.paused:
            self._place_daemons(node)

    def _place_endpoints(self, namespace: str) -> None:
        """The slices of the services that select pods."""
        if "endpointslice" in self.paused:
            return
        pods = self._store.all(PODS, namespace)
        services = self._store.all(SERVICES, namespace)
        for service in services:
            if not service["spec"].get("selector"):
                continue
            wanted = slice_of(service, pods)
            found = self._store.find(SLICES, namespace, wanted["metadata"]["name"])
            if found is None:
                self._store.create(SLICES, wanted)
            elif found["endpoints"] != wanted["endpoints"]:
                self._store.replace(SLICES, {**found, "endpoints": wanted["endpoints"]})
        names = {f"{service['metadata']['name']}-lab" for service in services}
        for one in self._store.all(SLICES, namespace):
            if one["metadata"]["name"].endswith("-lab") and one["metadata"]["name"] not in names:
                self._store.delete(SLICES, namespace, one["metadata"]["name"])

    def _run_on_linux(self, key: str) -> None:
        """Pods on Linux nodes run; their kubelets and networks are taken to be well."""
        namespace, _, name = key.partition("/")
        pod = self._store.find(PODS, namespace, name)
        node = self._store.find(NODE_KIND, "", str((pod or {}).get("spec", {}).get("nodeName", "")))
        if pod is None or node is None or pod.get("status", {}).get("podIP"):
            return
        if (node["metadata"].get("labels") or {}).get("kubernetes.io/os") != "linux":
            return
        cidr = (node["spec"].get("podCIDRs") or [str(pool) for pool in self._networks])[0]
        taken = {one.get("status", {}).get("podIP") for one in self._store.all(PODS)}
        # The first addresses are those of the node's own pods, which the lab has no objects for.
        free = (str(ipaddress.ip_network(cidr)[n]) for n in range(200, 250))
        address = next(one for one in free if one not in taken)
        pod["status"] = {
            "phase": "Running",
            "podIP": address,
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {"name": one["name"], "ready": True, "image": one.get("image", ""), "state": {"running": {}}}
                for one in pod["spec"].get("containers") or []
            ],
        }
        self._store.replace(PODS, pod)
        self.services_changed(namespace)

    def _end_namespace(self, name: str) -> None:
        if "namespace" in self.paused:
            return
        for kind in KINDS:
            if kind.namespaced and kind.stored:
                for thing in self._store.all(kind, name):
                    self._store.delete(kind, name, thing["metadata"]["name"])
        self._store.delete(NAMESPACES, "", name)

    def _end_pods(self, name: str) -> None:
        """Pods of a node that was deleted are deleted too."""
        if self._store.find(NODE_KIND, "", name) is not None:
            return
        for pod in self._store.all(PODS):
            if pod["spec"].get("nodeName") == name:
                self._store.delete(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])

    def _end_owned(self, name: str) -> None:
        """What a Node that was deleted has owned goes too (kube-controller-manager's garbage collector, by uid)."""
        if "garbagecollector" in self.paused:
            return
        node = self._store.find(NODE_KIND, "", name)
        there = node["metadata"]["uid"] if node is not None else None
        for kind in (LEASES, CSINODES):
            for thing in self._store.all(kind):
                metadata = thing["metadata"]
                owners = metadata.get("ownerReferences") or []
                if any(
                    one["kind"] == "Node" and one["name"] == name and one["uid"] != there for one in owners
                ):
                    self._store.delete(kind, metadata.get("namespace", ""), metadata["name"])

    def _place_daemons(self, node: Object) -> None:
        """One pod of each DaemonSet whose selector fits the node's labels. Their taints are taken as tolerated."""
        labels = node["metadata"].get("labels") or {}
        for daemon_set in self._store.look(DAEMONSETS):
            pod = daemon_set["spec"]["template"]["spec"]
            if any(labels.get(k) != v for k, v in (pod.get("nodeSelector") or {}).items()):
                continue
            metadata = daemon_set["metadata"]
            name = f"{metadata['name']}-{node['metadata']['name']}"
            if self._store.find(PODS, metadata["namespace"], name) is not None:
                continue
            owner = {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
            made = {"name": name, "namespace": metadata["namespace"], "ownerReferences": [owner]}
            spec = {**copied(pod), "nodeName": node["metadata"]["name"]}
            self._store.create(PODS, {"metadata": made, "spec": spec, "status": {"phase": "Pending"}})

    def resume(self, name: str) -> None:
        """Let a paused controller catch up."""
        self.paused.discard(name)
        for node in self._store.all(NODE_KIND):
            self.node_changed(node["metadata"]["name"])
        for csr in self._store.all(CSRS):
            self.request_changed(csr["metadata"]["name"])

    def _approve(self, csr: Object) -> bool:
        """Whether a request was approved just now."""
        spec = csr["spec"]
        if csr.get("status", {}).get("conditions") or spec["signerName"] != CLIENT_SIGNER:
            return False  # serving certificates are never approved by upstream controllers
        subject = subject_of(parse_request(csr))
        if signer_problem(csr) is not None:
            return False
        requestor = Identity(spec["username"], tuple(spec["groups"]))
        for subresource, message in (
            ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."),
            ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."),
        ):
            if subresource == "selfnodeclient" and subject.common_name != requestor.name:
                continue
            action = Action("create", _GROUP, f"certificatesigningrequests/{subresource}")
            if allowed(self._store, requestor, action):
                csr.setdefault("status", {})["conditions"] = [
                    {
                        "type": "Approved",
                        "status": "True",
                        "reason": "AutoApproved",
                        "message": message,
                        "lastUpdateTime": self._store.timestamp(),
                    }
                ]
                self._store.replace(CSRS, csr)
                return True
        return False

    def _approve_agent(self, csr: Object) -> bool:
        """ovnkube-identity approves or denies each request of an agent (pkg/csrapprover/approver.go, Reconcile)."""
        spec = csr["spec"]
        if (
            self._hybrid is None
            or spec["signerName"] != OVN_SIGNER
            or csr.get("status", {}).get("conditions")
        ):
            return False
        if not subject_of(parse_request(csr)).common_name.startswith(OVN_NODE_PREFIX):
            return False
        name, problem = csr["metadata"]["name"], _agent_problem(csr)
        found = {"type": "Approved", "reason": "AutoApproved", "message": f'Auto-approved CSR "{name}"'}
        if problem is not None:
            found = {"type": "Denied", "reason": "CSRDenied", "message": f'CSR "{name}" {problem}'}
        decided = {**found, "status": "True", "lastUpdateTime": self._store.timestamp()}
        csr.setdefault("status", {})["conditions"] = [decided]
        self._store.replace(CSRS, csr)
        return True

    def _annotate(self, node: Object, pool: _Pool) -> bool:
        """A Windows node's part of the hybrid overlay (--no-hostsubnet-nodes=kubernetes.io/os=windows)."""
        metadata = node["metadata"]
        annotations = metadata.setdefault("annotations", {})
        if (metadata.get("labels") or {}).get(
            "kubernetes.io/os"
        ) != "windows" or _HYBRID_SUBNET in annotations:
            return False
        nodes = self._store.all(NODE_KIND)
        taken = {(one["metadata"].get("annotations") or {}).get(_HYBRID_SUBNET, "") for one in nodes}
        annotations[_HYBRID_SUBNET] = pool.next(taken)
        return True

    def _sign(self, csr: Object) -> None:
        status = csr.get("status", {})
        types = {c["type"] for c in status.get("conditions") or []}
        if "Approved" not in types or "Failed" in types or status.get("certificate"):
            return
        problem = signer_problem(csr)
        if problem is not None:
            status["conditions"].append(
                {"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": problem}
            )
        else:
            seconds = csr["spec"].get("expirationSeconds")
            lifetime = min(self.certificate_lifetime, timedelta(seconds=seconds or 10**8))
            try:
                pem = self._authority.sign_request(
                    parse_request(csr), csr["spec"]["usages"], self._now(), lifetime
                )
            except NotTrusted as e:
                status["conditions"].append(
                    {"type": "Failed", "status": "True", "reason": "SigningError", "message": str(e)}
                )
            else:
                status["certificate"] = base64.b64encode(pem.encode("ascii")).decode("ascii")
        self._store.replace(CSRS, csr)

    def _allocate(self, node: Object) -> bool:
        if not self._pools or node["spec"].get("podCIDR"):
            return False
        taken = {c for n in self._store.all(NODE_KIND) for c in n["spec"].get("podCIDRs") or []}
        cidrs = [pool.next(taken) for pool in self._pools]
        if None in cidrs:
            return False  # CIDRNotAvailable: the node stays without, as on a full cluster
        node["spec"]["podCIDR"], node["spec"]["podCIDRs"] = cidrs[0], cidrs
        return True


class _Pool:
    """Node subnets of one cluster CIDR, handed out in turn: a freed one is used after the others."""

    def __init__(self, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> None:
        self._network = network
        self._step = network.max_prefixlen - (24 if network.version == 4 else 64)
        self._count = 1 << max(0, network.max_prefixlen - self._step - network.prefixlen)
        self._next = 0

    def next(self, taken: set[str]) -> str | None:
        prefix = self._network.max_prefixlen - self._step
        for _ in range(self._count):
            base = int(self._network.network_address) + (self._next << self._step)
            self._next = (self._next + 1) % self._count
            found = f"{ipaddress.ip_address(base)}/{prefix}"
            if found not in taken:
                return found
        return None


def _agent_problem(csr: Object) -> str | None:
    """Why ovnkube-identity denies an agent's request (pkg/csrapprover/approver.go, validateCSR and Reconcile); None when it
    approves."""
    spec, subject = csr["spec"], subject_of(parse_request(csr))
    node = subject.common_name.removeprefix(OVN_NODE_PREFIX)
    seconds = spec.get("expirationSeconds")
    if spec["username"] not in (f"{OVN_NODE_PREFIX}{node}", f"{NODE_PREFIX}{node}"):
        return f'was created by an unexpected user: "{spec["username"]}"'
    if set(spec["usages"]) != _AGENT_USAGES:
        return f"was created with unexpected usages: [{' '.join(spec['usages'])}]"
    if not set(spec["groups"]) <= _AGENT_GROUPS:
        return f"was created by a user with unexpected groups: [{' '.join(spec['groups'])}]"
    if subject.organizations != (OVN_NODES,):
        return f"has the organizations [{' '.join(subject.organizations)}]"
    if seconds is None:
        return "was created without specyfying the expirationSeconds"
    if seconds > _AGENT_SECONDS:
        return f"was created with invalid expirationSeconds value: {seconds}"
    return None


def signer_problem(csr: Object) -> str | None:
    """Why a kubelet signer would refuse to sign this request; None when it would."""
    signer = csr["spec"]["signerName"]
    subject = subject_of(parse_request(csr))
    if signer == OVN_SIGNER and subject.organizations == (OVN_NODES,):
        return None
    if signer not in _USAGES:
        return f"the lab has no signer {signer}"
    usages = set(csr["spec"]["usages"])
    required, optional = _USAGES[signer]
    if subject.organizations != (NODES,):
        return "subject organization is not system:nodes"
    if not subject.common_name.startswith(NODE_PREFIX):
        return "subject common name does not begin with system:node:"
    if not (required <= usages <= required | optional):
        return f"usages did not match {sorted(required | optional)}"
    has_names = bool(subject.dns_names or subject.addresses)
    if signer == CLIENT_SIGNER and has_names:
        return "DNS and IP subjectAltNames are not allowed"
    if signer == SERVING_SIGNER and not has_names:
        return "at least one DNS or IP subjectAltName is required"
    return None


def condition(thing: Object, kind: str) -> dict[str, Any] | None:
    """One condition of a node or CSR by its type."""
    conditions = thing.get("status", {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == kind), None)


def _taint_by_readiness(node: Object, now: str) -> bool:
    """not-ready where Ready is false, unreachable where it is unknown (node_lifecycle_controller.go,
    nodeConditionToTaintKeyStatusMap)."""
    status = (condition(node, "Ready") or {}).get("status", "False")
    key = {"True": "", "Unknown": UNREACHABLE}.get(status, NOT_READY)
    before = node["spec"].get("taints") or []
    others = [t for t in before if t["key"] not in (NOT_READY, UNREACHABLE)]
    if not key:
        after = others
    elif any(t["key"] == key for t in before):
        return False
    else:
        after = [
            *others,
            {"key": key, "effect": "NoSchedule"},
            {"key": key, "effect": "NoExecute", "timeAdded": now},
        ]
    if after == before:
        return False
    if after:
        node["spec"]["taints"] = after
    else:
        node["spec"].pop("taints", None)
    return True
