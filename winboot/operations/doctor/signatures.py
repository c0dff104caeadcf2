"""Texts in the logs of node programs that name a cause: the machine counts them, and their lines stay there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Signature:
    """Literal texts that mean the same, the services that log them, and where the texts are from."""

    id: str
    texts: tuple[str, ...]
    services: tuple[str, ...]
    source: str

    def count(self, log: str) -> int:
        """How often a log has the texts, once its lines are unwrapped."""
        return sum(map(log.count, self.texts))


def unwrapped(log: str) -> str:
    """A log in which any white space is one space: Windows' event viewer wraps lines."""
    return " ".join(log.split())


_GO: Final = ("kubelet", "kube-proxy", "containerd", "flanneld")
_HNS: Final = ("kubelet", "containerd", "flanneld", "calico-node", "hybrid-overlay-node")

SIGNATURES: Final = (
    Signature(
        "unknown-flag",
        ("unknown flag: --", "flag provided but not defined: -"),
        ("kubelet", "kube-proxy", "flanneld"),
        "spf13/pflag errors.go, NotExistError; go flag/flag.go, parseOne: flanneld's parser (flannel main.go)",
    ),
    Signature(
        "unknown-gate",
        ("unrecognized feature gate", "cannot set feature gate "),
        ("kubelet", "kube-proxy"),
        "kubernetes staging/src/k8s.io/component-base/featuregate/feature_gate.go: unknown gates, and locked ones",
    ),
    Signature(
        "kubelet-refuses",
        (
            "failed to load kubelet config file",
            "failed to validate kubelet ",
            "failed to parse kubelet flag: invalid argument",
            r"protocol \"unix\" not supported",
        ),
        ("kubelet",),
        "kubernetes cmd/kubelet/app/server.go; kubernetes#129952: no containerRuntimeEndpoint; calico#7552",
    ),
    Signature(
        "port-bound",
        (
            "bind: Only one usage of each socket address",
            "bind: An attempt was made to access a socket in a way forbidden",
        ),
        _GO,
        "Microsoft, Windows Sockets error codes: WSAEADDRINUSE and WSAEACCES; docker/for-win#6319",
    ),
    Signature(
        "unauthorized",
        ("cannot create certificate signing request: Unauthorized", "system:bootstrap:", "system:anonymous"),
        ("kubelet",),
        "client-go util/certificate/csr/csr.go, RequestCertificate; kubernetes#62585, kubeadm#217: the refused user",
    ),
    Signature(
        "unknown-authority",
        ("x509: certificate signed by unknown authority",),
        _GO,
        "go crypto/x509 verify.go, UnknownAuthorityError",
    ),
    Signature(
        "forbidden",
        ("is forbidden: User ",),
        ("kube-proxy", "flanneld"),
        "kubernetes staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go",
    ),
    Signature(
        "other-os",
        ("0xc0370101", "container operating system does not match the host operating system"),
        ("containerd", "kubelet"),
        "microsoft/hcsshim internal/hcs/errors.go, SystemError: Windows' words alone, in English where Windows has "
        "them (go syscall, Errno.Error; calico#8465); old Dockers add the code (containerd#7856, moby#35462)",
    ),
    Signature(
        "no-platform",
        (
            "no match for platform in manifest",
            "no matching manifest for windows/",
            "hcsshim::ProcessBaseLayer",
        ),
        ("containerd", "kubelet"),
        "containerd core/images/image.go, Manifest; moby distribution/pull_v2.go; hcsshim#2226: of an image without a "
        "list of platforms only the unpacking fails",
    ),
    Signature(
        "proxy-refuses",
        ("proxyconnect tcp", "Proxy Authentication Required", '": Forbidden'),
        _GO,
        "go net/http transport.go, dialConn; of a refused CONNECT the status text alone (rancher/windows#236, "
        "kubernetes#96171)",
    ),
    Signature(
        "config-refused",
        ("invalid plugin config: ", "invalid cri image config: "),
        ("containerd",),
        "containerd plugins/cri/images/plugin.go, pkg/cri/cri.go of 1.7: containerd runs on without its CRI plug-in",
    ),
    Signature(
        "no-cri",
        ("unknown service runtime.v1",),
        ("kubelet",),
        "containerd#2348, containerd#7799: containerd runs without its CRI plug-in",
    ),
    Signature(
        "cni-plugin",
        ("failed to find plugin ", "binary not installed"),
        ("containerd", "kubelet"),
        "containernetworking/cni pkg/invoke/find.go, FindInPath; k0s#7039: containerd-shim-runhcs-v1.exe is missing",
    ),
    Signature(
        "sandbox-stuck",
        ("failed to reserve sandbox name",),
        ("containerd", "kubelet"),
        "kubernetes#107561, Windows-Containers#430",
    ),
    Signature(
        "layer-refused",
        ("hcsshim::PrepareLayer", "hcsshim::ActivateLayer"),
        ("containerd", "kubelet"),
        "microsoft/hcsshim#919 (0x15), docker/for-win#13932 (0x1), containerd#8891 (0x57)",
    ),
    Signature(
        "no-memory",
        ("The paging file is too small", "0x800705AF"),
        ("containerd", "kubelet"),
        "Azure/AKS#1941, microsoft/nav-docker#383 (a Chinese Windows)",
    ),
    Signature(
        "port-exists",
        ("0x803b0013",),
        ("kube-proxy", "containerd", "kubelet"),
        "Microsoft, HCN error codes: HCN_E_PORT_ALREADY_EXISTS",
    ),
    Signature(
        "object-exists",
        ("0x803b0010", "(0x1392)"),
        _HNS,
        "Microsoft, HCN error codes: HCN_E_NETWORK_ALREADY_EXISTS; sig-windows-tools#245: HNS' older 0x1392",
    ),
    Signature(
        "network-refused",
        (
            "hcnCreateNetwork failed in Win32: The parameter is incorrect",
            "hnsCall failed in Win32: The parameter is incorrect",
        ),
        _HNS,
        "sig-windows-tools#249, flannel#1966, antrea#2013 (0x57)",
    ),
)
