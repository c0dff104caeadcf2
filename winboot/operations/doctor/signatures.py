"""Texts in the logs of node programs that name a cause: the machine counts them, and their lines stay there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Signature:
    """A literal text, the services that log it, and where the text is from."""

    id: str
    text: str
    services: tuple[str, ...]
    source: str


SIGNATURES: Final = (
    Signature(
        "unknown-flag",
        "unknown flag: --",
        ("kubelet", "kube-proxy", "flanneld"),
        "spf13/pflag errors.go, NotExistError",
    ),
    Signature(
        "unknown-gate",
        "unrecognized feature gate",
        ("kubelet", "kube-proxy"),
        "kubernetes staging/src/k8s.io/component-base/featuregate/feature_gate.go",
    ),
    Signature(
        "unauthorized",
        "cannot create certificate signing request: Unauthorized",
        ("kubelet",),
        "client-go util/certificate/csr/csr.go, RequestCertificate",
    ),
    Signature(
        "unknown-authority",
        "x509: certificate signed by unknown authority",
        ("kubelet", "kube-proxy", "containerd", "flanneld"),
        "go crypto/x509 verify.go, UnknownAuthorityError",
    ),
    Signature(
        "forbidden",
        "is forbidden: User ",
        ("kube-proxy", "flanneld"),
        "kubernetes staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go",
    ),
    Signature(
        "other-os",
        "0xc0370101",
        ("containerd", "kubelet"),
        "microsoft/hcsshim, HCS_E_IMAGE_MISMATCH; Windows writes its words in the machine's language",
    ),
    Signature(
        "no-platform",
        "no match for platform in manifest",
        ("containerd", "kubelet"),
        "containerd core/images/image.go, Manifest",
    ),
    Signature(
        "proxy-refuses",
        "proxyconnect tcp",
        ("containerd",),
        "go net/http transport.go, dialConn",
    ),
    Signature(
        "mirrors-and-path",
        "cannot be set when `config_path` is provided",
        ("containerd",),
        "containerd internal/cri/config/config.go, ValidateImageConfig",
    ),
    Signature(
        "port-exists",
        "0x803b0013",
        ("kube-proxy", "containerd", "kubelet"),
        "Microsoft, HCN error codes: HCN_E_PORT_ALREADY_EXISTS",
    ),
    Signature(
        "object-exists",
        "0x803b0010",
        ("flanneld", "containerd", "kubelet"),
        "Microsoft, HCN error codes: HCN_E_NETWORK_ALREADY_EXISTS",
    ),
)
