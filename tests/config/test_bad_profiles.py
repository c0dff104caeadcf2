"""Likely profiles with one error each: the complaint has its place, reason and remedy."""

from __future__ import annotations

import pytest

from tests.config.scene import complaints
from winboot.config.source import Complaint


def _cluster(**keys: str) -> str:
    """A cluster section that is good but for the given keys."""
    good = {
        "server": "https://k",
        "ca": "{file: c}",
        "kubeconfig": "{file: k}",
        "pod_cidr": "10.244.0.0/16",
        "service_cidr": "10.96.0.0/12",
    }
    return "cluster: {" + ", ".join(f"{key}: {value}" for key, value in {**good, **keys}.items()) + "}"


def _provider(name: str = "ecr", **keys: str) -> str:
    """An image credential provider that is good but for the given keys."""
    good = {"url": "https://x.example/ecr.exe", "sha256": "a" * 64, "images": "[x.example]"}
    written = ", ".join(f"{key}: {value}" for key, value in {**good, **keys}.items())
    return f"kubelet: {{credential_providers: {{{name}: {{{written}}}}}}}"


_FILE = f"{{url: 'https://x.example/smb.cmd', sha256: {'a' * 64}}}"


def _csi_proxy(**keys: str) -> str:
    """A csi-proxy that is good but for the given keys."""
    good = {"url": "https://x.example/csi-proxy.exe", "sha256": "a" * 64, "version": "1.3.0"}
    written = ", ".join(f"{key}: {value}" for key, value in {**good, **keys}.items())
    return f"storage: {{csi_proxy: {{{written}}}}}"


# Text with § before the place the complaint must name; the level; a part of what it must say.
BAD: list[tuple[str, str, str]] = [
    # YAML and keys
    ("kubernetes: {version: §1.30}", "error", "1.30 has no patch number"),
    ("kubernetes: {version: §1.36.5+rke2r1}", "error", "version of a distribution"),
    ("kubernetes: {version: §v1.36.5-eks-1a2b3c}", "error", "upstream release 1.36.5"),
    ("kubernetes: {version: §1.36.5-gke.1234}", "error", "upstream release 1.36.5"),
    ("runtime: {containerd: §2.1.4-k3s1}", "error", "upstream release 2.1.4"),
    (
        _cluster(server="§https://rancher.corp.example/k8s/clusters/c-m-x"),
        "error",
        "expected the API server's own address",
    ),
    ("kubernetes: {version: §one}", "error", "a version such as 1.36.5"),
    ("kubernetes: {§verison: 1.34.2}", "error", "did you mean 'version'"),
    ("§kubernets: {version: 1.34.2}", "error", "did you mean 'kubernetes'"),
    ("§kubernetes: {}", "error", "this key is missing"),
    ("kubernetes: §[1.34.2]", "error", "found a list; expected a mapping"),
    ("kubelet: {config: {maxPods: 110}, §feature_gates: {A: true}}", "error", "config: {featureGates"),
    ("kube_proxy: {§enable_dsr: true}", "error", "dsr: on"),
    ("gmsa: {domain: {§DnsTreeName: corp.example}}", "error", "expected forest"),
    ("runtime: {registries: {docker.io: {§endpoint: ['https://m']}}}", "error", "expected mirrors"),
    (_provider(**{"§defaultCacheDuration": "12h"}), "error", "expected cache"),
    # Versions
    ("kubernetes: {version: §1.19.16}", "error", "1.20 or later"),
    ("kubernetes: {version: 1.23.17}\nservices: {overrides: {kubelet: §sc}}", "error", "nssm"),
    ("kubernetes: {version: §1.31.0}", "error", "kubelet-start-socket"),
    ("kubernetes: {version: §1.34.2}", "warning", "no-periodic-sync"),
    ("kubernetes: {version: §1.29.14}", "warning", "ended on 2025-02-28"),
    ("kubernetes: {version: 1.36.5, overlay: §no-such.yaml}", "error", "cannot be read"),
    ("kubernetes: {version: §1.38.0}", "warning", "newer than winboot's data of "),
    ("runtime: {containerd: §1.6.36}", "error", "needs at least containerd"),
    ("kubernetes: {version: 1.34.8}\nruntime: {containerd: §1.7.20}", "warning", "is tested with 1.7.28"),
    (
        "kubernetes: {version: 1.34.8}\nruntime: {containerd: §2.1.9}",
        "warning",
        "support of this release line ended on 2026-07-03",
    ),
    ("artifacts: {crictl: §1.34.0}", "warning", "crictl must have the minor"),
    # Image credential providers
    (_provider(url="§/opt/ecr.exe"), "error", "a Linux path"),
    (_provider(url="§https://x.example/ecr"), "error", "not a Windows program"),
    (_provider(url="§https://me:pw@x.example/ecr.exe"), "error", "a user or a password"),
    (_provider(url="§C:\\k\\..\\ecr.exe"), "error", "a path that the node can read"),
    (_provider(images="§[]"), "error", "the provider has no image"),
    (_provider(images="[§'https://x.example']"), "error", "a registry host"),
    (_provider(cache="§12"), "error", "a duration such as 12h"),
    (_provider(args="[§--config=/etc/kubernetes/azure.json]"), "error", "a Linux path"),
    (_provider(environment="{CONFIG: §/etc/kubernetes/azure.json}"), "error", "a Linux path"),
    (_provider(environment="{§AWS_SECRET_ACCESS_KEY: x}"), "error", "read this credential"),
    (_provider(environment="{§REGISTRY_API_KEY: x}"), "error", "read this credential"),
    (_provider(args="[§--api-key=x]"), "error", "read this credential"),
    (_provider(args="[§--registry=https://me:pw@x.example]"), "error", "read this credential"),
    (_provider(name="§ecr.exe"), "error", "did you mean 'ecr'"),
    ('kubernetes: {version: "1.23.17"}\n' + _provider(name="§ecr"), "error", "an alpha feature gate"),
    (
        'kubernetes: {version: "1.23.17"}\nkubelet: {flags: {§container-runtime: docker}}',
        "error",
        "runtime.name",
    ),
    ("kubelet: {flags: {§image-credential-provider-config: x}}", "error", "kubelet.credential_providers"),
    # Volumes
    (_csi_proxy(version="§0.2.2"), "error", "csi-proxy 0.2.2 does not fit"),
    (_csi_proxy(version="§2.0.0"), "error", "2 is a library"),
    (_csi_proxy(version="1.1.3", **{"§require_privacy": "false"}), "error", "does not have this flag"),
    (_csi_proxy(url="§https://x.example/csi-proxy"), "error", "ends with .exe, .zip"),
    (_csi_proxy(member="§../csi-proxy.exe"), "error", "a path in the archive"),
    ("storage: {flex_volumes: {§smb.cmd: {}}}", "error", "vendor~program"),
    ("storage: {flex_volumes: {§a~smb.cmd: {}}}", "error", "no file smb.cmd"),
    *(
        (
            f"storage: {{flex_volumes: {{a~smb.cmd: {{smb.cmd: {_FILE}}}}}}}\n"
            f"kubelet: {{config: {{volumePluginDir: §{folder}}}}}",
            "error",
            "no folder of Windows for storage.flex_volumes",
        )
        for folder in ("null", "/usr/libexec/volumeplugins", "volumeplugins")
    ),
    (
        f"storage: {{flex_volumes: {{a~smb.cmd: {{smb.cmd: {_FILE}, §'../x': {_FILE}}}}}}}",
        "error",
        "not a plain file name",
    ),
    # Flags of the kubelet
    ("kubelet: {flags: {§network-plugin: cni}}", "error", "removed in 1.24"),
    ("kubelet: {flags: {§pod-infra-container-image: x}}", "error", "runtime.pause_image"),
    (
        "kubernetes: {version: 1.34.8}\nkubelet: {flags: {§pod-infra-container-image: x}}",
        "warning",
        "pause_image",
    ),
    ("kubelet: {flags: {§log-dir: 'C:\\k'}}", "error", "removed in 1.26"),
    ("kubelet: {flags: {§system-reserve: memory=2Gi}}", "error", "--system-reserved"),
    ("kubelet: {flags: {§kubelet-reserve: memory=2Gi}}", "error", "--kube-reserved"),
    ("kubelet: {flags: {§enforce-node-allocable: pods}}", "error", "--enforce-node-allocatable"),
    ("kubelet: {flags: {§windows-priority-class: x}}", "error", "--windows-priorityclass"),
    ("kubelet: {flags: {§windows-priorityclass: ABOVE_NORMAL}}", "error", "ABOVE_NORMAL_PRIORITY_CLASS"),
    ("kubelet: {flags: {§housekeeping-interval: 10s}}", "error", "only Linux builds have"),
    ("kubelet: {flags: {§cgroup-driver: systemd}}", "warning", "job objects"),
    ("kubelet: {flags: {§exit-on-lock-contention: 'true'}}", "error", "the kubelet exits"),
    ("kubelet: {flags: {§cgroups-per-qos: true}}", "warning", "Windows has no cgroups"),
    (
        "kubernetes: {version: 1.30.14}\nkubelet: {flags: {§cgroups-per-qos: true}}",
        "error",
        "does not start",
    ),
    (
        "kubernetes: {version: 1.30.14}\nkubelet: {flags: {§enforce-node-allocatable: none}}",
        "error",
        "even for none",
    ),
    ("kubelet: {flags: {§resolv-conf: /etc/resolv.conf}}", "error", "does not exist on Windows"),
    ("kubelet: {flags: {§max-pods: many}}", "error", "not a whole number"),
    ("kubelet: {flags: {§max-pods: 110}, config: {maxPods: 100}}", "error", "the same setting"),
    ("kubelet: {flags: {§--v: 2}}", "error", "starts with dashes"),
    ("kubelet: {flags: {§v=2: ''}}", "error", "more than the name"),
    ("kubelet: {flags: {§hostname-override: x}}", "error", "winboot sets --hostname-override itself"),
    ("kubelet: {flags: {§node_labels: a=b}}", "error", "node.labels"),
    ("kubernetes: {version: 1.26.15}\nkubelet: {flags: {§config-dir: x}}", "error", "winboot sets"),
    ("kubelet: {flags: {§cloud-provider: azure}}", "error", "external"),
    ("kubelet: {flags: {§allow-privileged: true}}", "error", "removed in 1.15"),
    # Configuration of the kubelet
    ("kubelet: {config: {§maxPod: 110}}", "error", "maxPods"),
    (
        "kubelet: {config: {authentication: {§anonymus: {enabled: true}}}}",
        "error",
        "authentication.anonymous",
    ),
    (
        "kubernetes: {version: 1.26.15}\nkubelet: {config: {§maxParallelImagePulls: 3}}",
        "error",
        "from 1.27 on",
    ),
    ("kubelet: {config: {§cgroupsPerQOS: true}}", "warning", "Windows has no cgroups"),
    ("kubelet: {config: {§singleProcessOOMKill: true}}", "error", "the program exits"),
    ("kubelet: {config: {§protectKernelDefaults: true}}", "warning", "Linux kernel"),
    ("kubelet: {config: {§cpuManagerPolicy: static}}", "warning", "WindowsCPUAndMemoryAffinity"),
    ("kubelet: {config: {§clusterDNS: [10.0.0.1]}}", "error", "cluster.dns_service_ip"),
    ("kubelet: {config: {§registerWithTaints: []}}", "error", "node.taints"),
    # Gates
    ("kubelet: {config: {featureGates: {§IPv6DualStack: true}}}", "error", "removed in 1.25"),
    ("kube_proxy: {config: {featureGates: {§WinDSR: false}}}", "error", "locked on"),
    ("kube_proxy: {config: {featureGates: {§WinOverlay: true}}}", "warning", "locked to this value"),
    (
        "kubelet: {config: {featureGates: {§WindowsGracefulShutdown: true}}}",
        "error",
        "WindowsGracefulNodeShutdown",
    ),
    ("kubelet: {config: {featureGates: {§NodeSwap: true}}}", "warning", "Linux only"),
    ("kubelet: {config: {featureGates: {§AllAlpha: true}}}", "warning", "untested on Windows"),
    (
        "kubernetes: {version: 1.30.14}\nkubelet: {config: {featureGates: {§WindowsGracefulNodeShutdown: true}}}",
        "error",
        "1.32",
    ),
    ("kubelet: {config: {featureGates: {§WindowsCPUAndMemoryAffinity: true}}}", "info", "alpha"),
    ("kubelet: {config: {featureGates: {§NodeLogQuery: maybe}}}", "error", "neither true nor false"),
    # proxy: the machine's own downloads
    ("proxy: {https: §'https://proxy.corp.example:3128'}", "error", "proxies with the https scheme"),
    ("proxy: {http: §'HTTPS://proxy.corp.example'}", "error", "http://host:port"),
    # kube-proxy
    ("kube_proxy: {flags: {§proxy-mode: userspace}}", "error", "winboot sets"),
    ("kube_proxy: {config: {§mode: ipvs}}", "error", "kernelspace"),
    ("kube_proxy: {flags: {§cleanup: true}}", "error", "not implemented"),
    ("kube_proxy: {flags: {§conntrack-min: 5}}", "warning", "only the Linux proxies"),
    (
        "kubernetes: {version: 1.32.9}\nnetwork: {cni: flannel, mode: vxlan}\n"
        "kube_proxy: {config: {§featureGates: {TopologyAwareHints: true}}}",
        "info",
        "winboot adds WinOverlay, because this network needs them in 1.32",
    ),
    (
        "kubernetes: {version: 1.32.9}\nkube_proxy: {dsr: 'on', flags: {§feature-gates: 'WinOverlay=true'}}",
        "info",
        "winboot adds WinDSR, because",
    ),
    ("kube_proxy: {config: {§ipvs: {scheduler: rr}}}", "warning", "only the Linux proxies"),
    ("kube_proxy: {config: {winkernel: {§enableDSR: true}}}", "error", "kube_proxy.dsr"),
    ("kube_proxy: {config: {winkernel: {§networkNames: x}}}", "error", "winkernel.networkName"),
    ("kube_proxy: {dsr: §auto-on}", "error", "auto | on | off"),
    # Networks
    ("network: {cni: §flanel}", "error", "did you mean 'flannel'"),
    ("network: {cni: ovn-hybrid}\n§artifacts: {hybrid_overlay: 1.3.0}", "error", "no project publishes"),
    (
        "artifacts: {urls: {§hybrid-overlay: 'https://x/h.exe'}}",
        "error",
        "did you mean 'hybrid-overlay-node'",
    ),
    ("artifacts: {urls: {flannel: §ftp://x}}", "error", "https://"),
    ("artifacts: {urls: {flannel: §https://x.example/}}", "error", "not the address of a file"),
    ("artifacts: {urls: {flannel: §https://x.example}}", "error", "not the address of a file"),
    ("artifacts: {urls: {flannel: §http://x.example/f.exe}}", "warning", "not encrypted"),
    ("artifacts: {urls: {flannel: §https://x.azureedge.net/f.exe}}", "error", "no longer answers"),
    ("network: {cni: flannel, mode: §vxlna}", "error", "did you mean 'vxlan'"),
    ("network: {cni: win-bridge, mode: §host-gw}", "error", "has only one"),
    ("network: {cni: flannel, mode: vxlan, vxlan: {vni: §1}}", "error", "VNIs from 4096"),
    ("network: {cni: flannel, mode: vxlan, vxlan: {port: §8472}}", "error", "4789"),
    ("network: {cni: flannel, mode: vxlan, vxlan: {mac_prefix: §'0E'}}", "error", "two bytes"),
    ("network: {cni: flannel, mode: host-gw, §vxlan: {vni: 4096}}", "error", "not an overlay"),
    ("network: {cni: flannel, §ipam: azure-cns}", "error", "only azure"),
    ("network: {cni: azure, ipam: §host-local}", "error", "azure-vnet-ipam | azure-cns"),
    (
        "network: {cni: flannel, managed_by: §operator}",
        "error",
        "cannot be managed by operator; expected winboot",
    ),
    ("network: {cni: flannel, network_name: §nat}", "error", "docker"),
    ("network: {cni: win-overlay, network_name: §antrea-hnsnetwork}", "error", "HNS network of antrea"),
    ("network: {cni: flannel, network_name: §Calico}", "error", "HNS network of calico"),
    ("§network: {cni: none}", "error", "network_name"),
    ("network: {cni: §antrea}", "error", "test-signed"),
    ("network: {cni: antrea, antrea: {testsigning: §yes}}", "error", "accepted"),
    ("network: {cni: §cilium}", "error", "a cluster with Cilium alone has no network for Windows nodes"),
    # The cluster
    (
        "cluster: {server: §'http://10.0.0.10:6443', ca: {file: c}, pod_cidr: 10.244.0.0/16, service_cidr: 10.96.0.0/12}",
        "error",
        "https://",
    ),
    (
        "cluster: {server: §'https://a:b@10.0.0.10', ca: {file: c}, pod_cidr: 10.244.0.0/16, service_cidr: 10.96.0.0/12}",
        "error",
        "a user or a password",
    ),
    (
        _cluster(pod_cidr="§10.244.0.1/16"),
        "error",
        "'10.244.0.0/16'",
    ),
    (
        _cluster(pod_cidr="§10.96.0.0/16"),
        "",
        "",
    ),
    (
        _cluster(pod_cidr="10.96.0.0/16", service_cidr="§10.96.0.0/12"),
        "error",
        "overlaps 10.96.0.0/16",
    ),
    (
        _cluster(node_cidr="§10.244.8.0/24"),
        "error",
        "overlaps",
    ),
    (
        _cluster(server="§https://10.244.0.10:6443"),
        "error",
        "cluster.pod_cidr",
    ),
    (
        _cluster(server="§https://10.96.0.1"),
        "error",
        "cluster.service_cidr",
    ),
    (
        _cluster(dns_service_ip="§10.0.0.10"),
        "error",
        "outside the service network",
    ),
    (
        _cluster(pod_cidr="§['fd00::/56']"),
        "error",
        "only IPv6",
    ),
    (
        _cluster(pod_cidr="§[10.244.0.0/16, 'fd00::/56']"),
        "error",
        "supports only IPv4",
    ),
    (
        "network: {cni: azure}\nartifacts: {azure_cni: 1.6.48}\n"
        + _cluster(pod_cidr="§[10.244.0.0/16, 'fd00::/56']", service_cidr="[10.96.0.0/12, 'fd01::/112']"),
        "error",
        "azure supports only IPv4",
    ),
    (
        "network: {cni: azure, mode: tunnel}\nartifacts: {azure_cni: 1.6.48}\n"
        + _cluster(pod_cidr="§[10.244.0.0/16, 'fd00::/56']", service_cidr="[10.96.0.0/12, 'fd01::/112']"),
        "error",
        "azure-tunnel supports only IPv4",
    ),
    (
        _cluster(pod_cidr="§[10.1.0.0/16, 10.2.0.0/16]"),
        "error",
        "one address family",
    ),
    (
        "§cluster: {server: 'https://k', pod_cidr: 10.244.0.0/16, service_cidr: 10.96.0.0/12}",
        "error",
        "no CA is given",
    ),
    (
        _cluster(bootstrap_token="§abcdef.0123456789abcdef"),
        "error",
        "a plain token",
    ),
    (
        "§cluster: {server: 'https://k', ca: {file: c}, pod_cidr: 10.244.0.0/16, service_cidr: 10.96.0.0/12}",
        "warning",
        "without a kubeconfig",
    ),
    (
        "cluster: {server: 'https://k', ca: §text, pod_cidr: 10.244.0.0/16, service_cidr: 10.96.0.0/12}",
        "error",
        "the secret itself",
    ),
    (
        "cluster: {server: 'https://k', ca_hash: §abc, pod_cidr: 10.244.0.0/16, service_cidr: 10.96.0.0/12}",
        "error",
        "64 hexadecimal digits",
    ),
    # containerd
    ("runtime: {pause_image: §pause}", "error", "has no tag"),
    ("runtime: {images: [§'nginx:1']}", "error", "docker.io/library/nginx:1"),
    ("runtime: {isolation: §[process, hypervisor]}", "error", "Hyper-V in windows.features"),
    ("runtime: {isolation: [§hyperv]}", "error", "did you mean 'hypervisor'"),
    ("runtime: {registries: {§'https://docker.io': {mirrors: ['https://m']}}}", "error", "without https://"),
    ("runtime: {registries: {§'*': {mirrors: ['https://m']}}}", "error", "_default"),
    ("runtime: {registries: {r.example: {override_path: §true}}}", "error", "has no mirrors"),
    (
        "runtime: {registries: {§_default: {user: me, password: {env: P}}}}",
        "error",
        "a login for all registries",
    ),
    ("runtime: {registries: {r.example: {header: {§authorization: Basic}}}}", "error", "password: {env"),
    ("runtime: {registries: {r.example: {header: {§'a b': c}}}}", "error", "HTTP header"),
    (
        "runtime: {registries: {r.example: {mirrors: §['https://m.example/v2/hub']}}}",
        "warning",
        "https://m.example/hub, or https://m.example/v2/hub with override_path: true",
    ),
    ("runtime: {registries: {r.example: {mirrors: ['https://m.example/hub/v2']}}}", "", ""),
    ("runtime: {registries: {r.example: {mirrors: ['https://m/v2/hub'], override_path: true}}}", "", ""),
    ("runtime: {registries: {docker.io: {mirrors: [§'m.example']}}}", "error", "http:// or https://"),
    ("runtime: {registries: {§docker.io: {user: me}}}", "error", "without a password"),
    (
        "runtime: {registries: {docker.io: {mirrors: §['http://m'], user: me, password: {env: P}}}}",
        "error",
        "unencrypted",
    ),
    ("runtime: {registries: {docker.io: {user: me, password: §hunter2}}}", "error", "the secret itself"),
    # Services, node, proxy
    ("services: {manager: §systemd}", "error", "sc | nssm"),
    ("services: {overrides: {§kubeproxy: nssm}}", "error", "did you mean 'kube-proxy'"),
    ("services: {environment: {§kubproxy: {A: b}}}", "error", "did you mean 'kube-proxy'"),
    ("services: {environment: {kubelet: {§no-name: b}}}", "error", "letters, digits and _"),
    ("services: {environment: {kubelet: {§https_proxy: 'http://p:1'}}}", "error", "expected proxy"),
    ("services: {priority: {kube-proxy: §HIGH}}", "error", "HIGH_PRIORITY_CLASS"),
    ("services: {priority: {§kube-proxy: HIGH_PRIORITY_CLASS}}", "error", "services.overrides"),
    (
        "services: {manager: nssm, priority: {§kubelet: HIGH_PRIORITY_CLASS}}",
        "error",
        "windows-priorityclass",
    ),
    ("services: {overrides: {flanneld: §sc}}", "error", "1053"),
    ("services: {manager: nssm}\nkubelet: {config: {§shutdownGracePeriod: 30s}}", "warning", "NSSM runs"),
    ("node: {taints: [§os=windows]}", "error", "key=value:Effect"),
    ("node: {taints: [§'os=windows:NoScheduling']}", "error", "did you mean 'NoSchedule'"),
    (
        "node: {taints: ['os=windows:NoSchedule', §'winboot.io/starting=true:NoSchedule']}",
        "error",
        "its own taint",
    ),
    ("node: {taints: §[]}", "warning", "Linux pods"),
    ("node: {labels: {§kubernetes.io/team: x}}", "error", "may not use"),
    ("kubernetes: {version: §1.37.0-rc.1}", "", ""),
    ("node: {labels: {§node-role.kubernetes.io/worker: ''}}", "", ""),
    # operator N13: what passed without a word
    (
        "kubelet: {config: {maxPods: 110}}\n" + _cluster(pod_cidr="§[]"),
        "error",
        "the list has no network",
    ),
    ("kubelet: {config: {maxPods: §100000}}", "error", "65536 addresses"),
    ("kubelet: {config: {maxPods: §300}}", "warning", "/24"),
    ("kubelet: {config: {staticPodPath: §/etc/manifests}}", "warning", "a Linux path"),
    ("kubernetes: {version: §1.36.999}", "error", "this version does not exist"),
    ("kubernetes: {version: §2.0.0}", "error", "this version does not exist"),
    ("node: {labels: {§'bad key': x}}", "error", "letters, digits"),
    (
        r"runtime: {root: §'C:\ProgramData'}",
        "error",
        r"C:\ProgramData and c:\programdata\winboot overlap",
    ),
    (r"runtime: {root: §'C:\Windows\images'}", "error", "a separate folder"),
    (r"runtime: {root: §'D:\'}", "error", "the path of a folder on the machine"),
    ("runtime: {ephemeral: §true}", "error", "this key needs runtime.root"),
    ("proxy: {http: §'http://me:secret@proxy:3128'}", "error", "a user or a password"),
    ("proxy: {https: §'http://me:secret@proxy:3128'}", "error", "exempt the node in the proxy"),
    ("proxy: {http: 'http://proxy:3128', §user: me}", "error", "or set mirrors in runtime.registries"),
    ("proxy: {http: 'http://proxy:3128', §password: {env: PW}}", "error", "a proxy without a login"),
    ("proxy: {http: §proxy:3128}", "error", "http://"),
    ("proxy: {http: 'http://proxy:3128', no_proxy: [§'*.corp.example']}", "error", "do not expand *"),
    # Windows, artifacts, steps
    ("windows: {features: §[Hyper-V]}", "error", "add Containers"),
    ("windows: {dynamic_ports: {start: §30000, count: 1000}}", "error", "NodePorts"),
    ("windows: {dynamic_ports: {start: 60000, count: §9000}}", "error", "at most 65535"),
    ("windows: {excluded_ports: [{start: 65000, count: §1000}]}", "error", "65999"),
    ("windows: {excluded_ports: [{start: 100, count: 9}, {start: §108}]}", "error", "overlaps another range"),
    ("windows: {excluded_ports: [{protocol: §sctp, start: 100}]}", "error", "tcp | udp"),
    ("windows: {keepalive: {time_ms: §60}}", "error", "1000"),
    ("windows: {keepalive: {§time: 60000}}", "error", "time_ms"),
    ("windows: {keepalive: {}, known_fixes: [§tcp-keepalive]}", "error", "one of the two"),
    (
        "windows: {dynamic_ports: {start: §16385, count: 49151}, excluded_ports: [{protocol: tcp, start: 30000, count: 2768}]}",
        "error",
        "NodePorts",
    ),
    (
        "windows: {dynamic_ports: {start: §16385, count: 49151}, excluded_ports: [{start: 30000, count: 2768}]}",
        "",
        "",
    ),
    ("windows: {known_fixes: [§smb-compartement]}", "error", "did you mean 'smb-compartment'"),
    ("windows: {page_file_mib: §100}", "error", "512"),
    ("windows: {crash_dump: §full}", "error", "complete | kernel"),
    ("artifacts: {source: §upstrem}", "error", "did you mean 'upstream'"),
    ("artifacts: {source: §'https://acs-mirror.azureedge.net/k8s'}", "error", "no longer answers"),
    ("artifacts: {source: §'http://mirror.corp.example'}", "warning", "not encrypted"),
    ("artifacts: {sha256: {kubectl.exe: §12}}", "error", "64 hexadecimal digits"),
    ("network: {cni: azure}\n§artifacts: {source: upstream}", "error", "azure_cni"),
    # NAT exceptions: each by its place in the list
    ("network: {cni: flannel, nat_exceptions: {add: §10.1.0.0/33}}", "error", "a network such as"),
    ("network: {cni: flannel, nat_exceptions: {add: [10.1.0.0/16, §10.96.0.0/12]}}", "warning", "already"),
    ("network: {cni: flannel, nat_exceptions: {add: [§'fd00::/64']}}", "error", "supports only IPv4"),
    (
        "network: {cni: flannel, nat_exceptions: {remove: [§10.96.0.0/13]}}",
        "error",
        "did you mean '10.96.0.0/12'",
    ),
    ("network: {cni: flannel, nat_exceptions: {remove: [§node-subnet]}}", "error", "has no prefix length"),
    (
        "network: {cni: calico, managed_by: operator, §nat_exceptions: {add: [10.1.0.0/16]}}",
        "error",
        "in the CNI configuration of calico",
    ),
    (
        "network: {cni: flannel, nat_exceptions: {remove: [node_subnet, §10.244.0.0/16]}}",
        "error",
        "add it again",
    ),
    ("network: {cni: calico, §nat_exceptions: {add: 10.1.0.0/16}}", "error", "winboot does not write"),
    ("network: {cni: flannel, nat_exceptions: {§except: 10.1.0.0/16}}", "error", "unknown key"),
    # The border of what Windows takes as a virtual network
    ("network: {cni: flannel, mode: vxlan, vxlan: {vni: §4095}}", "error", "VNIs from 4096"),
    ("network: {cni: flannel, mode: vxlan, vxlan: {vni: §16777216}}", "error", "4096 to 16777215"),
    ("network: {cni: calico}\nartifacts: {§calico: 3.32.0}", "error", "operator installs"),
    ("artifacts: {§calico: 3.32.0}", "error", "the network is flannel"),
    ("services: {overrides: {calico-node: §sc}}", "error", "1053"),
    ("steps: [{name: §My Step, look: l.ps1, change: c.ps1}]", "error", "lower case words with dashes"),
    # Ranges, in words
    ("windows: {page_file_mib: §1e3}", "error", "system | a whole number from 512 to 16777216"),
    (f"windows: {{page_file_mib: §{10**20}}}", "error", "from 512 to 16777216"),
    (f"runtime: {{log: {{max_size_mib: §{10**20}}}}}", "error", "a whole number from 1 to 1048576"),
    (f"windows: {{keepalive: {{time_ms: §{10**20}}}}}", "error", "to 4294967295"),
    ("network: {cni: flannel, mode: vxlan, vxlan: {vni: §many}}", "error", "a whole number"),
    ("windows: {rename: §maybe}", "error", "true or false"),
    ("windows: {features: §7}", "error", "a list"),
    # Networks that there are not, which crashed
    ("network: {cni: flannel, mode: §hostgw}", "error", "did you mean 'host-gw'"),
    ("network: {cni: flannel, mode: §wireguard}", "error", "host-gw | vxlan"),
    ("network: {cni: win-bridge, managed_by: §operator}", "error", "cannot be managed by operator"),
    # What no host, address or version can be
    (_cluster(server="§'https://k:0'"), "error", "no valid port"),
    (_cluster(server="§'https://k:99999'"), "error", "no valid port"),
    (_cluster(server="§\"https://A'; Evil; 'B:6443\""), "error", "is not a host name"),
    (_cluster(server="§'https://[::1'"), "error", "https://host:port"),
    (_cluster(server="§'https://010.0.0.1'"), "error", "without leading zeros"),
    (_cluster(pod_cidr="§10.244.0.0/32"), "error", "has only 1 addresses"),
    (_cluster(service_cidr="§10.96.0.0/30"), "error", "a prefix of at most /28"),
    ("kubernetes: {version: §1.٣٦.4}", "error", "a version such as 1.36.5"),
    ("kubernetes: {version: §'1.36.5 '}", "error", "a version such as 1.36.5"),
    ("artifacts: {flannel_cni: §'..\\..\\A'}", "error", "a version such as"),
    ("artifacts: {nssm: §'2.24/x'}", "error", "a version such as"),
    ("network: {cni: flannel, mode: vxlan, vxlan: {mac_prefix: §01-2A}}", "error", "multicast"),
    ("node: {labels: {§kubernetes.io/os: linux}}", "error", "sets this label itself"),
    ("node: {labels: {a: §'b c'}}", "error", "letters, digits"),
    ('windows: {time_servers: [§"a,0x8\' ; calc"]}', "error", "unknown flags"),
    ("windows: {time_servers: [§'a b']}", "error", "is not a host name"),
    ("windows: {dns_suffixes: [§'corp example']}", "error", "is not a host name"),
    ("windows: {features_source: §relative}", "error", "is not a Windows path"),
    ("proxy: {http: §'http://a b:1'}", "error", "is not a host name"),
    ("proxy: {http: 'http://p:1', no_proxy: [§'a b']}", "error", "a host, .domain"),
    ("runtime: {registries: {§'r:99999': {}}}", "error", "is not a registry host"),
    (
        "services: {environment: {kubelet: {§AWS_SECRET_ACCESS_KEY: x}}}",
        "error",
        "every user of the node can read",
    ),
    ("services: {environment: {kubelet: {§AWS_WEB_IDENTITY_TOKEN_FILE: 'C:\\t'}}}", "", ""),
    ("steps: [{name: mine, look: §no-such.ps1, change: c.ps1}]", "error", "does not exist"),
]


def _shown(row: tuple[str, str, str]) -> str:
    return row[0].replace("§", "").splitlines()[-1][-70:]


@pytest.mark.parametrize(("text", "level", "says"), BAD, ids=map(_shown, BAD))
def test_a_bad_profile_is_refused_or_warned_about_at_its_place(text: str, level: str, says: str) -> None:
    """The complaint stands at the marked line and column and says what is wrong or what to write."""
    before = text.partition("§")[0]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1

    found = complaints(text.replace("§", ""))

    here = [one for one in found if one.place and (one.place.line, one.place.column) == (line, column)]
    fitting = [one for one in here if not level or (one.level == level and says in str(one))]
    assert bool(fitting) is bool(level), "\n".join(map(str, found)) or "no complaint"


@pytest.mark.parametrize("vni", [4096, 2**24 - 1])
def test_the_first_and_the_last_virtual_network_that_windows_takes_are_good(vni: int) -> None:
    """The neighbours of the two that are refused."""
    text = f"network: {{cni: flannel, mode: vxlan, vxlan: {{vni: {vni}}}}}"

    assert [one for one in complaints(text) if one.level == "error"] == []


def test_azure_carries_one_family_and_pods_have_addresses_of_the_nodes_network() -> None:
    """IPv6 would need a second Azure IPAM plug-in; for Azure, pod_cidr and node_cidr may overlap."""
    azure = "network: {cni: azure}\nartifacts: {azure_cni: 1.6.48}\n"
    nodes = "10.244.0.0/16"
    dual = _cluster(pod_cidr="[10.244.0.0/16, fd00::/56]", service_cidr="[10.96.0.0/12, 'fd01::/112']")

    assert [one for one in complaints(azure + _cluster(node_cidr=nodes)) if one.level == "error"] == []
    assert "overlaps" in str(complaints("network: {cni: flannel}\n" + _cluster(node_cidr=nodes)))
    assert "expected one IPv4 network, or win-bridge or none" in str(complaints(azure + dual)[0])


def test_the_table_has_the_promised_size() -> None:
    """At least sixty ways to be wrong, of every kind."""
    assert len(BAD) >= 60


def test_all_complaints_come_at_once_and_in_the_order_of_the_file() -> None:
    """Four mistakes in four sections are four complaints of one run."""
    text = """
kubernetes: {version: 1.36}
network: {cni: flanel}
kubelet: {flags: {network-plugin: cni}, config: {maxPod: 1}}
proxy: {http: 'http://u:p@x'}
"""
    errors = [one for one in complaints(text) if one.level == "error"]

    assert [one.place.line for one in errors if one.place] == [2, 3, 4, 4, 5]


def test_no_complaint_shows_a_secret() -> None:
    """Where a value stands that should be a reference, the complaint does not repeat it."""
    text = """
cluster:
  server: https://admin:hunter2@10.0.0.10
  bootstrap_token: hunter2.hunter2
  pod_cidr: 10.244.0.0/16
  service_cidr: 10.96.0.0/12
runtime: {registries: {docker.io: {user: me, password: hunter2}}}
proxy: {http: 'http://me:hunter2@proxy:3128'}
artifacts: {source: 'https://me:hunter2@mirror'}
"""
    found = complaints(text)

    assert len(found) >= 5
    assert "hunter2" not in " ".join(map(str, found))


def test_a_complaint_reads_as_one_line() -> None:
    """File, line, column, key, what is wrong, what was expected, what was meant."""
    (found,) = complaints("network: {cni: flanel}")

    assert str(found) == (
        "profile.yaml:1:16: network.cni: 'flanel'; "
        "expected flannel | win-bridge | win-overlay | azure | calico | antrea | ovn-hybrid | none | cilium; "
        "did you mean 'flannel'?"
    )
    assert isinstance(found, Complaint)


# Every spelling of a credential in an address. None may be taken, and none may be shown.
LOGINS = [
    "proxy: {http: 'user:CANARY@proxy:3128'}",
    "proxy: {http: 'socks5://u:CANARY@h:1'}",
    "proxy: {https: 'http://u:CANARY@h:1'}",
    "proxy: {https: 'http://CANARY@h:1'}",
    "proxy: {http: 'http://u:CAN/ARY@h:1'}",
    "proxy: {http: 'http://p:1', no_proxy: ['http://u:CANARY@h']}",
    "proxy: {http: 'http://p:1', no_proxy: ['u:CANARY@h']}",
    "runtime: {registries: {r: {mirrors: ['ftp://u:CANARY@m']}}}",
    "runtime: {registries: {r: {mirrors: ['u:CANARY@m']}}}",
    "runtime: {registries: {r: {mirrors: ['https://m?token=CANARY']}}}",
    "runtime: {registries: {'u:CANARY@r': {}}}",
    "runtime: {pause_image: 'u:CANARY@r/pause:3.10'}",
    "artifacts: {source: 'ftp://u:CANARY@m'}",
    "artifacts: {source: 'https://u:CANARY@m'}",
    "artifacts: {source: 'https://mirror/x?sv=2022&sig=CANARY'}",
    "artifacts: {source: 'https://mirror/x#CANARY'}",
    "artifacts: {source: '\\\\u:CANARY@srv\\share'}",
    "windows: {features_source: '\\\\u:CANARY@s\\sxs'}",
    "services: {environment: {kubelet: {HTTP: 'http://u:CANARY@h'}}}",
    "services: {environment: {kubelet: {DB_PASSWORD: CANARY}}}",
    "kubelet: {config: {staticPodURLHeader: {Authorization: [CANARY]}}}",
    "kubelet: {config: {staticPodURL: 'https://u:CANARY@h/pods'}}",
    "kubelet: {flags: {manifest-url-header: 'Authorization:CANARY'}}",
    _cluster(server="'u:CANARY@h:6443'"),
    _cluster(server="'https://u:CANARY@h:6443'"),
    _cluster(server="'https://h:6443?token=CANARY'"),
    _cluster(ca="'https://u:CANARY@h/ca'"),
]


@pytest.mark.parametrize("text", LOGINS)
def test_a_credential_in_an_address_is_refused_and_never_shown(text: str) -> None:
    """With a scheme or without, in front of the host or behind a question mark, as a value or as a key."""
    found = complaints(text)

    assert any(one.level == "error" for one in found), found
    assert "CAN" not in "".join(map(str, found))


def test_places_of_credentials_pass_in_a_credential_provider() -> None:
    variables = (
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
    )
    places = ", ".join(f"{name}: 'C:\\k\\file'" for name in variables)

    text = _provider(environment=f"{{{places}}}", args="['--token-file=C:\\k\\file']")

    assert [one for one in complaints(text) if "credential_providers" in one.text] == []
