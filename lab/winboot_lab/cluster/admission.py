"""What the API server checks and completes before it stores an object."""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from cryptography import x509

from winboot_lab.cluster.authority import subject_of
from winboot_lab.cluster.failure import ApiFailure, invalid
from winboot_lab.cluster.identity import NODE_PREFIX, Identity
from winboot_lab.cluster.kinds import CSRS, NODES, SECRETS, Kind, Object

KUBELET_SIGNERS: Final = ("kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving")
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_DNS_NAME: Final = re.compile(r"\A[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_PATH_NAMED: Final = {"roles", "rolebindings", "clusterroles", "clusterrolebindings"}
_LABEL_VALUE: Final = re.compile(r"\A([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")

# Labels under kubernetes.io and k8s.io that a kubelet may set on its own node.
KUBELET_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    }
)
KUBELET_LABEL_NAMESPACES: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")


# The API always writes these, empty or not; strict clients rely on it.
_NODE_INFO: Final = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)


def kubelet_may_set(label: str) -> bool:
    """Whether NodeRestriction lets a kubelet put this label on its node."""
    namespace = label.partition("/")[0] if "/" in label else ""
    restricted = any(namespace == n or namespace.endswith("." + n) for n in ("kubernetes.io", "k8s.io"))
    if not restricted or label in KUBELET_LABELS:
        return True
    return any(namespace == n or namespace.endswith("." + n) for n in KUBELET_LABEL_NAMESPACES)


def admit(kind: Kind, subresource: str, old: Object | None, new: Object, identity: Identity) -> None:
    """Check and complete `new` in place. `old` is None on create."""
    metadata = new.setdefault("metadata", {})
    name = str(metadata.get("name", ""))
    if old is None and name and kind.plural not in _PATH_NAMED and not _valid_name(kind, name):
        raise invalid(
            kind.kind,
            name,
            "metadata.name",
            f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case '
            "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
        )
    for key, value in (metadata.get("labels") or {}).items():
        if not _LABEL_VALUE.match(str(value)):
            raise invalid(kind.kind, name, "metadata.labels", f'Invalid value: "{value}": label {key}')
    if kind is NODES:
        _admit_node(subresource, old, new, identity)
    elif kind is CSRS:
        _admit_request(subresource, old, new, identity)
    elif kind is SECRETS:
        _admit_secret(new)


def _valid_name(kind: Kind, name: str) -> bool:
    if kind is CSRS:
        return len(name) <= 253 and "/" not in name
    return len(name) <= 253 and bool(_DNS_NAME.match(name))


def _admit_node(subresource: str, old: Object | None, new: Object, identity: Identity) -> None:
    spec = new.setdefault("spec", {})
    for taint in spec.get("taints") or []:
        if taint.get("effect") not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            raise invalid("Node", new["metadata"]["name"], "metadata.taints", "a taint needs key and effect")
    info = new.setdefault("status", {}).get("nodeInfo") or {}
    new["status"]["nodeInfo"] = {**dict.fromkeys(_NODE_INFO, ""), **info}
    if old is None:
        if not any(t["key"] == NOT_READY for t in spec.get("taints") or []):
            spec["taints"] = [*(spec.get("taints") or []), {"key": NOT_READY, "effect": "NoSchedule"}]
    elif old["spec"].get("podCIDR") and spec.get("podCIDR") != old["spec"]["podCIDR"]:
        raise invalid("Node", new["metadata"]["name"], "spec.podCIDR", "node updates may not change podCIDR")
    if identity.node is not None:
        _restrict_node(identity.node, subresource, old, new)


def _restrict_node(node: str, subresource: str, old: Object | None, new: Object) -> None:
    """The NodeRestriction plug-in."""
    name = new["metadata"]["name"]
    if name != node:
        raise _forbidden(name, f"node {node!r} is not allowed to modify node {name!r}")
    before: dict[str, Any] = (old or {}).get("metadata", {}).get("labels") or {}
    after: dict[str, Any] = new["metadata"].get("labels") or {}
    changed = {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}
    refused = sorted(k for k in changed if not kubelet_may_set(k))
    if refused:
        raise _forbidden(name, f"is not allowed to modify labels: {', '.join(refused)}", node)
    if (
        old is not None
        and subresource == ""
        and (old["spec"].get("taints") or []) != (new["spec"].get("taints") or [])
    ):
        raise _forbidden(name, "is not allowed to modify taints", node)


def _forbidden(name: str, problem: str, node: str = "") -> ApiFailure:
    prefix = f'node "{node}" ' if node else ""
    return ApiFailure(
        403, f'nodes "{name}" is forbidden: {prefix}{problem}', details={"name": name, "kind": "nodes"}
    )


def _admit_request(subresource: str, old: Object | None, new: Object, identity: Identity) -> None:
    if old is None:
        spec = new.get("spec") or {}
        name = new["metadata"].get("name", "")
        if not spec.get("signerName"):
            raise invalid("CertificateSigningRequest", name, "spec.signerName", "Required value")
        if not spec.get("usages"):
            raise invalid("CertificateSigningRequest", name, "spec.usages", "Required value")
        _restrict_request(parse_request(new), spec["signerName"], identity)
        new["spec"] = {**spec, "username": identity.name, "groups": list(identity.groups)}
        new["status"] = {}
        return
    if new.get("spec") != old.get("spec"):
        raise invalid(
            "CertificateSigningRequest", new["metadata"]["name"], "spec", "updates may not modify the spec"
        )
    had = {c["type"] for c in old.get("status", {}).get("conditions") or []}
    has = {c["type"] for c in new.get("status", {}).get("conditions") or []}
    if {"Approved", "Denied"} <= has or (had - has and subresource == "approval"):
        raise invalid(
            "CertificateSigningRequest",
            new["metadata"]["name"],
            "status.conditions",
            "Approved and Denied conditions are mutually exclusive and may not be removed",
        )


def _restrict_request(request: x509.CertificateSigningRequest, signer: str, identity: Identity) -> None:
    """NodeRestriction: a kubelet asks in its own name only.

    https://github.com/kubernetes/kubernetes/blob/v1.36.0/plugin/pkg/admission/noderestriction/admission.go, admitCSR
    """
    if identity.node is None or signer not in KUBELET_SIGNERS:
        return
    wanted = f"{NODE_PREFIX}{identity.node}"
    if subject_of(request).common_name != wanted:
        raise ApiFailure(
            403,
            "certificatesigningrequests.certificates.k8s.io is forbidden: can only create a node CSR with "
            f"CN={wanted}",
            details={"group": "certificates.k8s.io", "kind": "certificatesigningrequests"},
        )


def parse_request(csr: Object) -> x509.CertificateSigningRequest:
    """The PKCS#10 request inside a CSR object; 422 when it holds no request."""
    try:
        pem = base64.b64decode(csr["spec"]["request"], validate=True)
        return x509.load_pem_x509_csr(pem)
    except (KeyError, ValueError, TypeError):
        name = csr.get("metadata", {}).get("name", "")
        raise invalid(
            "CertificateSigningRequest",
            name,
            "spec.request",
            "Invalid value: PEM block type must be CERTIFICATE REQUEST",
        ) from None


def _admit_secret(new: Object) -> None:
    plain = new.pop("stringData", None) or {}
    if plain:
        coded = {k: base64.b64encode(str(v).encode("utf-8")).decode("ascii") for k, v in plain.items()}
        new["data"] = {**(new.get("data") or {}), **coded}
    if new.get("type") == "bootstrap.kubernetes.io/token":
        name = new["metadata"]["name"]
        if not re.fullmatch(r"bootstrap-token-[a-z0-9]{6}", name):
            raise invalid(
                "Secret", name, "metadata.name", "a bootstrap token secret is named bootstrap-token-<id>"
            )
    new.setdefault("type", "Opaque")


def admit_level(namespace: Object, pod: Object) -> None:
    """Pod Security, as far as the level `restricted` asks for: https://kubernetes.io/docs/concepts/security/pod-security-standards/
    A pod whose os is windows needs no more than to run as no administrator."""
    labels = namespace["metadata"].get("labels") or {}
    if labels.get("pod-security.kubernetes.io/enforce") != "restricted":
        return
    spec = pod.get("spec", {})
    context = spec.get("securityContext") or {}
    problems = [] if context.get("runAsNonRoot") is True else ["runAsNonRoot != true"]
    if spec.get("hostNetwork") or any(one.get("hostPath") for one in spec.get("volumes") or []):
        problems.append("host namespaces")
    if (spec.get("os") or {}).get("name") != "windows":
        for container in spec.get("containers") or []:
            own = container.get("securityContext") or {}
            if own.get("allowPrivilegeEscalation") is not False:
                problems.append("allowPrivilegeEscalation != false")
            if "ALL" not in ((own.get("capabilities") or {}).get("drop") or []):
                problems.append("unrestricted capabilities")
        if (context.get("seccompProfile") or {}).get("type") not in ("RuntimeDefault", "Localhost"):
            problems.append("seccompProfile")
    if problems:
        name = pod["metadata"].get("name", "")
        raise ApiFailure(
            403,
            f'pods "{name}" is forbidden: violates PodSecurity "restricted:latest": {", ".join(problems)}',
        )
