"""A cluster's first day: kubeadm's and flannel's objects, and one Linux node."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Iterator
from typing import Any, Final

from winboot.config.compat.version import Version
from winboot_lab.cluster.identity import OVN_NODES
from winboot_lab.cluster.kinds import (
    CALICO,
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    CONFIGMAPS,
    DAEMONSETS,
    NAMESPACES,
    NODES,
    ROLEBINDINGS,
    ROLES,
    SERVICEACCOUNTS,
    Kind,
    Object,
    kind_of,
)
from winboot_lab.cluster.plan import ClusterPlan

CALICO_NODE: Final = "docker.io/calico/node-windows:v3.32.0"
ANTREA_WINDOWS: Final = "docker.io/antrea/antrea-windows:v2.7.0"
JOINERS: Final = "system:bootstrappers:kubeadm:default-node-token"
_CSR_GROUP: Final = "certificates.k8s.io"
_READ: Final = ["get", "list", "watch"]


def objects(plan: ClusterPlan, ca_pem: str, now: str) -> Iterator[tuple[Kind, Object]]:
    """Every object, with its kind, in an order that can be stored."""
    namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"]
    namespaces += ["kube-flannel"] if plan.flannel else []
    namespaces += ["calico-system"] if plan.calico else []
    for name in namespaces:
        yield NAMESPACES, {"metadata": {"name": name}, "status": {"phase": "Active"}}
    if plan.calico:
        yield DAEMONSETS, _host_daemon_set("calico-system", "calico-node-windows", CALICO_NODE)
    if plan.kube_proxy_pods:
        image = f"docker.io/sigwindowstools/kube-proxy:v{plan.version}-calico-hostprocess"
        yield DAEMONSETS, _host_daemon_set("kube-system", "kube-proxy-windows", image)
    if plan.antrea:
        yield DAEMONSETS, _host_daemon_set("kube-system", "antrea-agent-windows", ANTREA_WINDOWS)
    if plan.calico or plan.calico_nodes:
        yield CALICO, {"metadata": {"name": "default"}, "spec": {"datastoreReady": True}}
    yield from _roles(plan)
    yield from _accounts(plan)
    yield from _config_maps(plan, ca_pem)
    yield NODES, _control_plane(plan, now)
    yield (
        kind_of("services"),
        {
            "metadata": {"name": "kubernetes", "namespace": "default"},
            "spec": {"clusterIP": _nth(plan.service_cidrs[0], 1), "ports": [{"name": "https", "port": 443}]},
        },
    )
    yield (
        kind_of("services"),
        {
            "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
            "spec": {
                "clusterIP": _nth(plan.service_cidrs[0], 10),
                "ports": [
                    {"name": "dns", "port": 53, "protocol": "UDP"},
                    {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
                ],
            },
        },
    )
    yield _slice("default", "kubernetes", plan.address)
    yield _slice("kube-system", "kube-dns", _nth(plan.pod_cidrs[0], 2))


def _host_daemon_set(namespace: str, name: str, image: str) -> Object:
    """A DaemonSet of HostProcess pods for Windows nodes, as the Tigera operator makes it and sig-windows-tools has it, in
    short.
    """
    template = {
        "metadata": {"labels": {"k8s-app": name}},
        "spec": {
            "hostNetwork": True,
            "nodeSelector": {"kubernetes.io/os": "windows"},
            "securityContext": {
                "windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\system"}
            },
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "node", "image": image}],
        },
    }
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"k8s-app": name}}, "template": template},
    }


def _slice(namespace: str, service: str, address: str) -> tuple[Kind, Object]:
    labels = {"kubernetes.io/service-name": service}
    metadata = {"name": service, "namespace": namespace, "labels": labels}
    endpoints = [{"addresses": [address], "conditions": {"ready": True}}]
    kind = kind_of("endpointslices", "discovery.k8s.io")
    return kind, {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": []}


def _rule(
    groups: list[str], resources: list[str], verbs: list[str], names: list[str] | None = None
) -> Object:
    rule: Object = {"apiGroups": groups, "resources": resources, "verbs": verbs}
    return {**rule, "resourceNames": names} if names else rule


def _roles(plan: ClusterPlan) -> Iterator[tuple[Kind, Object]]:
    cluster_roles: dict[str, list[Object]] = {
        "cluster-admin": [_rule(["*"], ["*"], ["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}],
        "system:node-bootstrapper": [
            _rule([_CSR_GROUP], ["certificatesigningrequests"], ["create", "get", "list", "watch"])
        ],
        f"system:{_CSR_GROUP}:certificatesigningrequests:nodeclient": [
            _rule([_CSR_GROUP], ["certificatesigningrequests/nodeclient"], ["create"])
        ],
        f"system:{_CSR_GROUP}:certificatesigningrequests:selfnodeclient": [
            _rule([_CSR_GROUP], ["certificatesigningrequests/selfnodeclient"], ["create"])
        ],
        "system:node-proxier": [
            _rule([""], ["services", "endpoints"], ["list", "watch"]),
            _rule([""], ["nodes"], _READ),
            _rule(["", "events.k8s.io"], ["events"], ["create", "patch", "update"]),
            _rule(["discovery.k8s.io"], ["endpointslices"], ["list", "watch"]),
        ],
        "system:basic-user": [
            _rule(
                ["authorization.k8s.io"], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], ["create"]
            ),
            _rule(["authentication.k8s.io"], ["selfsubjectreviews"], ["create"]),
        ],
        "system:public-info-viewer": [
            {"nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version"], "verbs": ["get"]}
        ],
        "system:discovery": [
            {"nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/version"], "verbs": ["get"]}
        ],
        "kubeadm:get-nodes": [_rule([""], ["nodes"], ["get"])],
        "calico-node": [
            _rule([CALICO.group], [CALICO.plural], ["get"]),
            _rule([""], ["nodes"], _READ),
            _rule([""], ["nodes/status"], ["patch"]),
        ],
        # ovn-kubernetes dist/templates/rbac-ovnkube-node.yaml.j2: the agent reads nodes and pods, annotates its own Node, and
        # asks for the next certificate.
        "ovnkube-node": [
            _rule([""], ["nodes", "pods"], _READ),
            _rule(["certificates.k8s.io"], ["certificatesigningrequests"], ["create", *_READ]),
            _rule([""], ["nodes/status"], ["patch"]),
        ],
        "flannel": [
            _rule([""], ["pods"], ["get"]),
            _rule([""], ["nodes"], _READ),
            _rule([""], ["nodes/status"], ["patch"]),
        ],
    }
    for name, rules in cluster_roles.items():
        yield CLUSTERROLES, {"metadata": {"name": name}, "rules": rules}
    bindings: list[tuple[str, str, Object]] = [
        ("cluster-admin", "cluster-admin", _group("system:masters")),
        ("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", _group(JOINERS)),
        (
            "kubeadm:node-autoapprove-bootstrap",
            f"system:{_CSR_GROUP}:certificatesigningrequests:nodeclient",
            _group(JOINERS),
        ),
        (
            "kubeadm:node-autoapprove-certificate-rotation",
            f"system:{_CSR_GROUP}:certificatesigningrequests:selfnodeclient",
            _group("system:nodes"),
        ),
        ("kubeadm:get-nodes", "kubeadm:get-nodes", _group(JOINERS)),
        ("kubeadm:node-proxier", "system:node-proxier", _account("kube-system", "kube-proxy")),
        ("system:node-proxier", "system:node-proxier", {"kind": "User", "name": "system:kube-proxy"}),
        ("system:basic-user", "system:basic-user", _group("system:authenticated")),
        ("system:public-info-viewer", "system:public-info-viewer", _group("system:authenticated")),
        (
            "system:public-info-viewer:anonymous",
            "system:public-info-viewer",
            _group("system:unauthenticated"),
        ),
        ("system:discovery", "system:discovery", _group("system:authenticated")),
    ]
    if plan.flannel:
        bindings.append(("flannel", "flannel", _account("kube-flannel", "flannel")))
    if plan.grant_nodes:
        bindings.append(("winboot:node-proxier", "system:node-proxier", _group("system:nodes")))
        bindings.append(("winboot:flannel", "flannel", _group("system:nodes")))
    if plan.ovn:
        bindings.append(("ovnkube-node", "ovnkube-node", _group(OVN_NODES)))
    if plan.calico_nodes:
        bindings.append(("winboot:calico-node", "calico-node", _group("system:nodes")))
    for name, role, subject in bindings:
        yield CLUSTERROLEBINDINGS, _binding({"name": name}, "ClusterRole", role, subject)
    yield from _public_role()


def _public_role() -> Iterator[tuple[Kind, Object]]:
    metadata = {"name": "kubeadm:bootstrap-signer-clusterinfo", "namespace": "kube-public"}
    yield ROLES, {"metadata": metadata, "rules": [_rule([""], ["configmaps"], ["get"], ["cluster-info"])]}
    anonymous = {"kind": "User", "name": "system:anonymous"}
    yield ROLEBINDINGS, _binding(dict(metadata), "Role", "kubeadm:bootstrap-signer-clusterinfo", anonymous)
    # cmd/kubeadm/app/phases/uploadconfig/uploadconfig.go, UploadConfiguration: joining nodes read kubeadm-config.
    metadata = {"name": "kubeadm:nodes-kubeadm-config", "namespace": "kube-system"}
    yield ROLES, {"metadata": metadata, "rules": [_rule([""], ["configmaps"], ["get"], ["kubeadm-config"])]}
    for group in (JOINERS, "system:nodes"):
        named = {**metadata, "name": f"{metadata['name']}:{group}"}
        yield ROLEBINDINGS, _binding(named, "Role", metadata["name"], _group(group))


def _binding(metadata: Object, role_kind: str, role: str, subject: Object) -> Object:
    return {
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
        "subjects": [subject],
    }


def _group(name: str) -> Object:
    return {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": name}


def _account(namespace: str, name: str) -> Object:
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def _accounts(plan: ClusterPlan) -> Iterator[tuple[Kind, Object]]:
    accounts = [("default", "default"), ("kube-system", "kube-proxy")]
    if plan.flannel:
        accounts.append(("kube-flannel", "flannel"))
    for namespace, name in accounts:
        yield SERVICEACCOUNTS, {"metadata": {"name": name, "namespace": namespace}}


def net_conf(plan: ClusterPlan) -> dict[str, Any]:
    """The flannel configuration of this cluster."""
    found: dict[str, Any] = {
        "Network": plan.pod_cidrs[0],
        "EnableNFTables": False,
        "Backend": dict(plan.flannel or {}),
    }
    return found


def _config_maps(plan: ClusterPlan, ca_pem: str) -> Iterator[tuple[Kind, Object]]:
    kubeadm = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "kubernetesVersion": f"v{plan.version}",
        "controlPlaneEndpoint": plan.server.removeprefix("https://"),
        "networking": {
            "dnsDomain": "cluster.local",
            "podSubnet": ",".join(plan.pod_cidrs),
            "serviceSubnet": ",".join(plan.service_cidrs),
        },
    }
    proxy = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        # kubeadm writes it down from 1.37 on (kubernetes/kubernetes#139777, in the release notes of 1.37).
        "mode": "iptables" if Version.parse(plan.version).at_least("1.37") else "",
    }
    discovery = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "", "cluster": {"server": plan.server, "certificate-authority-data": _b64(ca_pem)}}
        ],
    }
    yield _config_map("kube-system", "kubeadm-config", {"ClusterConfiguration": json.dumps(kubeadm)})
    yield _config_map("kube-system", "kube-proxy", {"config.conf": json.dumps(proxy)})
    yield _config_map("kube-public", "cluster-info", {"kubeconfig": json.dumps(discovery)})
    for namespace in ("kube-system", "default"):
        yield _config_map(namespace, "kube-root-ca.crt", {"ca.crt": ca_pem})
    if plan.antrea:
        agent = {"kubeAPIServerOverride": plan.server, "antreaProxy": {"enable": True, "proxyAll": True}}
        yield _config_map("kube-system", "antrea-windows-config", {"antrea-agent.conf": json.dumps(agent)})
    if plan.flannel:
        yield _config_map(
            "kube-flannel", "kube-flannel-cfg", {"net-conf.json": json.dumps(net_conf(plan), indent=2)}
        )


def _config_map(namespace: str, name: str, data: dict[str, str]) -> tuple[Kind, Object]:
    return CONFIGMAPS, {"metadata": {"name": name, "namespace": namespace}, "data": data}


def _control_plane(plan: ClusterPlan, now: str) -> Object:
    """The Linux node that was there before us; it is Ready and carries flannel's lease."""
    address = plan.address
    annotations: dict[str, str] = {}
    if plan.flannel:
        annotations = {
            "flannel.alpha.coreos.com/backend-type": str(plan.flannel.get("Type", "")),
            "flannel.alpha.coreos.com/backend-data": _backend_data(plan),
            "flannel.alpha.coreos.com/kube-subnet-manager": "true",
            "flannel.alpha.coreos.com/public-ip": address,
        }
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "metadata": {
            "name": "control-plane",
            "labels": {
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": "control-plane",
                "node-role.kubernetes.io/control-plane": "",
            },
            "annotations": annotations,
        },
        "spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": "control-plane"},
            ],
            "conditions": [ready],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "0f0d8f0f-6c0b-4f0f-8a44-0f4a3a4c5d11",
                "containerRuntimeVersion": "containerd://2.1.5",
                "kernelVersion": "6.8.0",
                "kubeProxyVersion": "",
                "kubeletVersion": f"v{plan.version}",
                "machineID": "5f0c1c463c5d4c6a9a526d0c6c0f7a11",
                "operatingSystem": "linux",
                "osImage": "Ubuntu 24.04 LTS",
                "systemUUID": "5f0c1c46-3c5d-4c6a-9a52-6d0c6c0f7a11",
            },
        },
    }


def _backend_data(plan: ClusterPlan) -> str:
    backend = plan.flannel or {}
    if backend.get("Type") == "vxlan":
        return json.dumps(
            {"VNI": backend.get("VNI", 1), "VtepMAC": "0e:2a:0a:00:00:0a"}, separators=(",", ":")
        )
    return "null"


def _nth(cidr: str, n: int) -> str:
    return str(ipaddress.ip_network(cidr)[n])


def _b64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8")).decode("ascii")
