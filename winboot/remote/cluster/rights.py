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
    Need("get", "nodes", why="whether the Node is there, and Ready"),
    Need("patch", "nodes", why="labels, taints, and the startup taint that goes last"),
    Need("list", _CSR, CERTIFICATES, why="the request of the kubelet for its serving certificate"),
    Need("update", f"{_CSR}/approval", CERTIFICATES, why="approving it once it was checked"),
    Need("approve", "signers", CERTIFICATES, why="approving for this signer", name=SERVING_SIGNER),
)
# Where winboot mints bootstrap tokens.
TOKENS: Final = (
    Need("create", "secrets", why="a bootstrap token for each join", namespace=SYSTEM),
    Need("delete", "secrets", why="the token goes when the join is over", namespace=SYSTEM),
)
# For --drain.
DRAIN: Final = (
    Need("list", "pods", why="the pods of a node that is drained"),
    Need("create", "pods/eviction", why="evicting them, as their disruption budgets allow"),
)
# What preflight reads. Without one of these a check is left out, and says so.
PREFLIGHT: Final = (
    Need("list", "nodes", why="allocation of pod networks, names, addresses"),
    Need("list", "daemonsets", "apps", why="DaemonSets that would land on Windows"),
    Need("get", "configmaps", why="flannel's configuration", name="kube-flannel-cfg"),
    Need("get", "configmaps", why="kube-proxy's mode, if a DaemonSet runs it on Windows", name="kube-proxy"),
    Need("get", "configmaps", why="whether the cluster's network is Cilium", name="cilium-config"),
    Need("get", "configmaps", why="Antrea's configuration", name="antrea-windows-config"),
    Need("create", "subjectaccessreviews", "authorization.k8s.io", why="what kubelets and agents may do"),
)
# What preflight reads in addition for profiles with `gmsa`. It tries a pod only if the user may create one there anyway.
GMSA: Final = (
    Need("list", "gmsacredentialspecs", "windows.k8s.io", why="the accounts that pods can use"),
    *(
        Need("list", kind, "admissionregistration.k8s.io", why="the webhook of windows-gmsa and its CA")
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    ),
)
# For `winboot remove`, in addition to what a drain needs.
REMOVE: Final = (
    Need("get", "nodes", why="whether the Node is there, and on this machine"),
    Need("delete", "nodes", why="the Node of a machine that was put back"),
    Need("list", _CSR, CERTIFICATES, why="the requests of its kubelet"),
    Need("delete", _CSR, CERTIFICATES, why="they go with the Node"),
)
NODE_LEASES: Final = "kube-node-lease"  # where kubelets keep theirs (k8s.io/api/core/v1, NamespaceNodeLease)
REMOVE_LEASES: Final = tuple(
    Need(verb, "leases", "coordination.k8s.io", why="the Lease of its kubelet", namespace=NODE_LEASES)
    for verb in ("get", "delete")
)
# For `winboot hook serve`, whose machines come and go.
HOOK: Final = (
    Need("list", "nodes", why="the Node of a machine, by its provider id"),
    Need("delete", "nodes", why="the Node of a machine that ends"),
)
# For machines that become nodes by themselves (`winboot hook serve --bootstrap`).
FIRST_BOOT: Final = (Need("create", "events", why="how far a machine has come, at its Node"),)
# For `winboot verify`, in its namespace.
_VERIFY_THERE: Final = (
    *(Need(verb, "pods", why="two pods a node, and where they are") for verb in ("create", "get", "list")),
    *(Need(verb, "services", why="services before the pods") for verb in ("create", "get")),
    Need(
        "list",
        "networkpolicies",
        "networking.k8s.io",
        why="policies that another program puts into new namespaces",
    ),
    Need("create", "secrets", why="logins of the profile's registries, in that namespace"),
    Need("get", "secrets", why="the same", name=PULL_SECRET),
    Need("list", "events", why="why a pod does not run"),
    # Both verbs: https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/ (gate
    # AuthorizePodWebsocketUpgradeCreatePermission, on from 1.35) asks for create where a WebSocket comes with GET.
    *(Need(verb, "pods/exec", why="the flows run in the pods") for verb in ("get", "create")),
    *(Need(verb, "pods/portforward", why="a flow of its own") for verb in ("get", "create")),
    Need("get", "pods/log", why="a flow of its own"),
)
# Beside its namespace.
VERIFY_READS: Final = (
    *(Need(verb, "nodes", why="the nodes, and where they are") for verb in ("get", "list")),
    Need("list", "services", why="the cluster's services, as kube-proxy has to know them"),
    Need("list", "endpointslices", "discovery.k8s.io", why="which services have backends"),
)
# In a namespace whose name is another each time, which winboot makes and deletes (also `join --verify`).
VERIFY: Final = (
    Need("list", "namespaces", why="what a verification that was killed has left"),
    Need("create", "namespaces", why="a namespace of its own"),
    Need("delete", "namespaces", why="and all of it goes again"),
    *_VERIFY_THERE,
    *VERIFY_READS,
)
# Without them, or where the cluster has no such kinds, those policies are not named.
VERIFY_POLICIES: Final = tuple(
    Need("list", resource, group, why="policies over all namespaces that drop packets")
    for group, resource in (
        ("policy.networking.k8s.io", "clusternetworkpolicies"),
        ("policy.networking.k8s.io", "adminnetworkpolicies"),
        ("policy.networking.k8s.io", "baselineadminnetworkpolicies"),
        ("crd.projectcalico.org", "globalnetworkpolicies"),
    )
)
CLAIMS: Final = tuple(
    Need(verb, "leases", "coordination.k8s.io", why="one worker a machine")
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
