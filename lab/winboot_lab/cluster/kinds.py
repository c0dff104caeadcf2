"""The resources this API serves, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource: where its paths are and what its objects are called."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    subresources: tuple[str, ...] = ()
    stored: bool = True  # reviews are answered, never stored
    # Whether an update may come without resourceVersion: AllowUnconditionalUpdate of its strategy in
    # https://github.com/kubernetes/kubernetes/tree/v1.36.0/pkg/registry; tests/genuine compares it.
    unconditional: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`nodes`, or `leases.coordination.k8s.io`: the name that messages use."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_CALICO = "crd.projectcalico.org"
_RBAC = "rbac.authorization.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"

KINDS: Final[tuple[Kind, ...]] = (
    Kind("", "v1", "namespaces", "Namespace", namespaced=False),
    Kind("", "v1", "nodes", "Node", namespaced=False, subresources=("status", "proxy")),
    Kind(
        "",
        "v1",
        "pods",
        "Pod",
        namespaced=True,
        subresources=("status", "eviction", "binding", "exec", "log", "portforward"),
    ),
    Kind(
        "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True, subresources=("status",)
    ),
    Kind("", "v1", "services", "Service", namespaced=True, subresources=("status",)),
    Kind("", "v1", "endpoints", "Endpoints", namespaced=True),
    Kind("", "v1", "secrets", "Secret", namespaced=True),
    Kind("", "v1", "configmaps", "ConfigMap", namespaced=True),
    Kind("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True, subresources=("token",)),
    Kind("", "v1", "resourcequotas", "ResourceQuota", namespaced=True, subresources=("status",)),
    Kind("", "v1", "events", "Event", namespaced=True),
    Kind("events.k8s.io", "v1", "events", "Event", namespaced=True),
    Kind("apps", "v1", "daemonsets", "DaemonSet", namespaced=True, subresources=("status",)),
    Kind("apps", "v1", "deployments", "Deployment", namespaced=True, subresources=("status",)),
    Kind("apps", "v1", "replicasets", "ReplicaSet", namespaced=True, subresources=("status",)),
    Kind("batch", "v1", "jobs", "Job", namespaced=True, subresources=("status",)),
    Kind("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True, unconditional=False),
    Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", namespaced=True),
    Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", namespaced=True),
    Kind(
        "policy",
        "v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        namespaced=True,
        subresources=("status",),
        unconditional=False,
    ),
    Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False, unconditional=False),
    Kind("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False, unconditional=False),
    Kind("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False, unconditional=False),
    Kind(
        "certificates.k8s.io",
        "v1",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        namespaced=False,
        subresources=("approval", "status"),
    ),
    Kind(_CALICO, "v1", "clusterinformations", "ClusterInformation", namespaced=False, unconditional=False),
    Kind(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
    Kind(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    Kind(_RBAC, "v1", "roles", "Role", namespaced=True),
    Kind(_RBAC, "v1", "rolebindings", "RoleBinding", namespaced=True),
    Kind(
        _AUTHORIZATION,
        "v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        namespaced=False,
        stored=False,
    ),
    Kind(_AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False, stored=False),
    Kind(_AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False, stored=False),
    Kind(_AUTHENTICATION, "v1", "tokenreviews", "TokenReview", namespaced=False, stored=False),
)

# What kubectl takes in place of a plural, by qualified name: ShortNames of each storage below
# https://github.com/kubernetes/kubernetes/tree/v1.36.0/pkg/registry.
SHORT_NAMES: Final[dict[str, str]] = {
    "namespaces": "ns",
    "nodes": "no",
    "pods": "po",
    "services": "svc",
    "endpoints": "ep",
    "configmaps": "cm",
    "serviceaccounts": "sa",
    "resourcequotas": "quota",
    "events": "ev",
    "events.events.k8s.io": "ev",
    "daemonsets.apps": "ds",
    "deployments.apps": "deploy",
    "replicasets.apps": "rs",
    "networkpolicies.networking.k8s.io": "netpol",
    "poddisruptionbudgets.policy": "pdb",
    "certificatesigningrequests.certificates.k8s.io": "csr",
}

BY_PATH: Final = {(k.group, k.version, k.plural): k for k in KINDS}


def kind_of(plural: str, group: str = "") -> Kind:
    """The kind with this plural name; a programming error if no kind has it."""
    return next(k for k in KINDS if k.plural == plural and k.group == group)


NODES: Final = kind_of("nodes")
PODS: Final = kind_of("pods")
SECRETS: Final = kind_of("secrets")
CONFIGMAPS: Final = kind_of("configmaps")
NAMESPACES: Final = kind_of("namespaces")
SERVICES: Final = kind_of("services")
QUOTAS: Final = kind_of("resourcequotas")
SLICES: Final = kind_of("endpointslices", "discovery.k8s.io")
SERVICEACCOUNTS: Final = kind_of("serviceaccounts")
EVENTS: Final = kind_of("events")
LEASES: Final = kind_of("leases", "coordination.k8s.io")
CSINODES: Final = kind_of("csinodes", "storage.k8s.io")
CSRS: Final = kind_of("certificatesigningrequests", "certificates.k8s.io")
DAEMONSETS: Final = kind_of("daemonsets", "apps")
BUDGETS: Final = kind_of("poddisruptionbudgets", "policy")
CALICO: Final = kind_of("clusterinformations", _CALICO)
CLUSTERROLES: Final = kind_of("clusterroles", _RBAC)
CLUSTERROLEBINDINGS: Final = kind_of("clusterrolebindings", _RBAC)
ROLES: Final = kind_of("roles", _RBAC)
ROLEBINDINGS: Final = kind_of("rolebindings", _RBAC)


def copied(value: Any) -> Any:
    """A deep copy of JSON-like data (quicker than copy.deepcopy, and it knows there is nothing else)."""
    if isinstance(value, dict):
        return {k: copied(v) for k, v in value.items()}
    if isinstance(value, list):
        return [copied(v) for v in value]
    return value
