"""What the user of the kubeconfig must be allowed to do: one table for preflight, for `winboot manifests operator`, and
for the test that holds it against the calls of whole runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from winboot.remote.cluster.base import SERVING_SIGNER, Need

SYSTEM: Final = "kube-system"
JOINERS: Final = (
    "system:bootstrappers:kubeadm:default-node-token"  # the group of bootstrap tokens, as kubeadm has it
)
PULL_SECRET: Final = "winboot-pull"  # as winboot.operations.verify.objects makes it
VERIFIED: Final = "winboot-verify"  # the namespace of `winboot manifests verifier`
CERTIFICATES: Final = "certificates.k8s.io"
_CSR: Final = "certificatesigningrequests"

# What a run says of a profile that names no kubeconfig.
WITHOUT_KUBECONFIG: Final = (
    "without cluster.kubeconfig winboot takes no Lease and sets no startup taint. It approves no serving certificates, changes "
    "no labels or taints of a Node that exists, and drains and deletes no Node. `winboot manifests operator` and `winboot "
    "manifests remover` print the rights for that."
)
# For every join.
JOIN: Final = (
    Need("get", "nodes", why="to see whether the Node exists and is Ready"),
    Need("patch", "nodes", why="to set labels and taints, and to remove the startup taint after the join"),
    Need("list", _CSR, CERTIFICATES, why="to find the kubelet's request for its serving certificate"),
    Need("update", f"{_CSR}/approval", CERTIFICATES, why="to approve the request after the checks"),
    Need("approve", "signers", CERTIFICATES, why="to approve requests for this signer", name=SERVING_SIGNER),
)
# Where winboot mints bootstrap tokens.
TOKENS: Final = (
    Need("create", "secrets", why="to create a bootstrap token for each join", namespace=SYSTEM),
    Need("delete", "secrets", why="to delete the bootstrap token after the join", namespace=SYSTEM),
)
# For --drain.
DRAIN: Final = (
    Need("list", "pods", why="to list the pods of a node that winboot drains"),
    Need("create", "pods/eviction", why="to evict these pods within their disruption budgets"),
)
# What preflight reads. Without one of these a check is left out, and says so.
PREFLIGHT: Final = (
    Need("list", "nodes", why="to check pod networks, names and addresses of Nodes"),
    Need("list", "daemonsets", "apps", why="to find DaemonSets that would run on Windows"),
    Need("get", "configmaps", why="to read flannel's configuration", name="kube-flannel-cfg"),
    Need("get", "configmaps", why="to read the mode of kube-proxy in a Windows DaemonSet", name="kube-proxy"),
    Need("get", "configmaps", why="to see whether the cluster's network is Cilium", name="cilium-config"),
    Need("get", "configmaps", why="to read Antrea's configuration", name="antrea-windows-config"),
    Need("create", "subjectaccessreviews", "authorization.k8s.io", why="to check the rights of kubelets"),
)
# What preflight reads in addition for profiles with `gmsa`. It tries a pod only if the user may create one there anyway.
GMSA: Final = (
    Need("list", "gmsacredentialspecs", "windows.k8s.io", why="to list the accounts that pods can use"),
    *(
        Need("list", kind, "admissionregistration.k8s.io", why="to read windows-gmsa's webhook and its CA")
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    ),
)
# For `winboot remove`, in addition to what a drain needs.
REMOVE: Final = (
    Need("get", "nodes", why="to see whether the Node exists and runs on this machine"),
    Need("delete", "nodes", why="to delete the Node of a removed machine"),
    Need("list", _CSR, CERTIFICATES, why="to list the certificate requests of the Node's kubelet"),
    Need("delete", _CSR, CERTIFICATES, why="to delete these requests with the Node"),
)
NODE_LEASES: Final = "kube-node-lease"  # where kubelets keep theirs (k8s.io/api/core/v1, NamespaceNodeLease)
REMOVE_LEASES: Final = tuple(
    Need(verb, "leases", "coordination.k8s.io", why="to delete the kubelet's Lease", namespace=NODE_LEASES)
    for verb in ("get", "delete")
)
# For `winboot hook serve`, whose machines come and go.
HOOK: Final = (
    Need("list", "nodes", why="to find the Node of a machine by its provider id"),
    Need("delete", "nodes", why="to delete the Node of a machine that ends"),
)
# For machines that become nodes by themselves (`winboot hook serve --bootstrap`).
FIRST_BOOT: Final = (Need("create", "events", why="to report a machine's progress as events of its Node"),)
# For `winboot verify`, in its namespace.
_VERIFY_THERE: Final = (
    *(Need(verb, "pods", why="to run two test pods on each node") for verb in ("create", "get", "list")),
    *(Need(verb, "services", why="to create services for the test pods") for verb in ("create", "get")),
    Need(
        "list",
        "networkpolicies",
        "networking.k8s.io",
        why="to find policies that another program puts into new namespaces",
    ),
    Need("create", "secrets", why="to give the test namespace the logins of the profile's registries"),
    Need("get", "secrets", why="to check these logins", name=PULL_SECRET),
    Need("list", "events", why="to see why a pod does not run"),
    # Both verbs: https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/ (gate
    # AuthorizePodWebsocketUpgradeCreatePermission, on from 1.35) asks for create where a WebSocket comes with GET.
    *(Need(verb, "pods/exec", why="to run the tests in the pods") for verb in ("get", "create")),
    *(Need(verb, "pods/portforward", why="to test port-forward") for verb in ("get", "create")),
    Need("get", "pods/log", why="to test pod logs"),
)
# Beside its namespace.
VERIFY_READS: Final = (
    *(Need(verb, "nodes", why="to list the nodes and their addresses") for verb in ("get", "list")),
    Need("list", "services", why="to list the services that kube-proxy must serve"),
    Need("list", "endpointslices", "discovery.k8s.io", why="to see which services have backends"),
)
# In a namespace whose name is another each time, which winboot makes and deletes (also `join --verify`).
VERIFY: Final = (
    Need("list", "namespaces", why="to find test namespaces that a killed run left behind"),
    Need("create", "namespaces", why="to create the test namespace"),
    Need("delete", "namespaces", why="to delete the test namespace"),
    *_VERIFY_THERE,
    *VERIFY_READS,
)
# Without them, or where the cluster has no such kinds, those policies are not named.
VERIFY_POLICIES: Final = tuple(
    Need("list", resource, group, why="to find policies for all namespaces that drop packets")
    for group, resource in (
        ("policy.networking.k8s.io", "clusternetworkpolicies"),
        ("policy.networking.k8s.io", "adminnetworkpolicies"),
        ("policy.networking.k8s.io", "baselineadminnetworkpolicies"),
        ("crd.projectcalico.org", "globalnetworkpolicies"),
    )
)
CLAIMS: Final = tuple(
    Need(verb, "leases", "coordination.k8s.io", why="to let only one worker change a machine")
    for verb in ("get", "create", "update", "delete")
)
CLAIMED: Final = "winboot-system"  # where claims are (winboot.remote.cluster.claims, NAMESPACE)
# Without it a join works on the nodes in the order of the inventory.
ORDER: Final = (
    Need("list", "leases", "coordination.k8s.io", why="nodes that are done come last", namespace=CLAIMED),
)


def verify_in(namespace: str) -> tuple[Need, ...]:
    """What `winboot verify --namespace NAME` does in a namespace that stays."""
    gone = (
        *(Need("delete", kind, why="what was made goes again") for kind in ("pods", "services")),
        Need("delete", "secrets", why="and the logins", name=PULL_SECRET),
    )
    return tuple(replace(need, namespace=namespace) for need in (*_VERIFY_THERE, *gone))


def preflight(*, gmsa: bool) -> tuple[Need, ...]:
    """What preflight reads; `gmsa` if a profile has such accounts."""
    return (*PREFLIGHT, *(GMSA if gmsa else ()))


def needed(*, mints: bool, drains: bool) -> tuple[Need, ...]:
    """What a join cannot do without."""
    needs: Sequence[Need] = JOIN
    return (*needs, *(TOKENS if mints else ()), *(DRAIN if drains else ()))
