"""What `winboot collect` reads of a machine besides doctor's facts: lists of what may be read, and nothing else is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from winboot.config.node_spec import NodeSpec
from winboot.operations.doctor.gather import wanted

# Keys whose values are names, paths, numbers and networks (kubernetes kubelet.config.k8s.io/v1beta1 and
# kubeproxy.config.k8s.io/v1alpha1; containerd docs/cri/config.md; containernetworking/cni SPEC.md). None holds a secret.
_KUBELET: Final = (
    "cgroupsPerQOS", "clusterDomain", "containerRuntimeEndpoint", "enableSystemLogQuery", "hairpinMode", "maxPods", "podCIDR",
    "resolvConf", "rotateCertificates", "serverTLSBootstrap",
)  # fmt: skip
_PROXY: Final = (
    "clusterCIDR",
    "enableDSR",
    "hostnameOverride",
    "mode",
    "networkName",
    "sourceVip",
    "rootHnsEndpointName",
)
_CONTAINERD: Final = (
    "version", "root", "state", "sandbox", "sandbox_image", "snapshotter", "config_path", "bin_dir", "conf_dir",
    "runtime_type", "default_runtime_name",
)  # fmt: skip
_CNI: Final = ("cniVersion", "name", "type", "subnet", "apiVersion", "dataDir", "optionalFlags", "delegate")
# Names of winboot's own services' environment; kubelet, kube-proxy and flanneld read them.
VARIABLES: Final = (
    "NODE_NAME",
    "KUBE_NETWORK",
    "POD_NAME",
    "POD_NAMESPACE",
    "CNI_BIN_DIR",
    "CNI_CONFIG_PATH",
)
# Microsoft's collectors read these logs (Azure/AgentBaker staging/cse/windows/debug, microsoft/SDN Kubernetes/windows/debug).
EVENT_LOGS: Final = (
    "Application",
    "System",
    "Microsoft-Windows-Host-Network-Service-Admin",
    "Microsoft-Windows-Host-Network-Service-Operational",
    "Microsoft-Windows-Hyper-V-Compute-Admin",
    "Microsoft-Windows-Hyper-V-Compute-Operational",
    "Microsoft-Windows-Containers-CCG/Admin",
)


def collected(spec: NodeSpec, *, logs: bool) -> Mapping[str, object]:
    """What the script is to look at. The free text of logs only with `logs`."""
    paths, network = spec.paths, spec.network
    files = {
        paths.kubelet_config: _KUBELET,
        paths.kube_proxy_config: _PROXY,
        paths.containerd_config: _CONTAINERD,
    }
    if network.cni_conf_path:
        files[network.cni_conf_path] = _CNI
    texts = [{"service": one.name, "path": one.log_file} for one in spec.services.all if one.log_file]
    return {
        **wanted(spec),
        "settings": [{"path": path, "keys": list(keys)} for path, keys in files.items()],
        "variables": list(VARIABLES),
        "texts": texts if logs else [],
        "event_logs": list(EVENT_LOGS) if logs else [],
    }
