"""The sections of a profile, key by key. What a key does is in its description; docs/profile.md is made
of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from winboot.config import networks
from winboot.config.model import LocalPath, Model, OpenMap
from winboot.config.networks.vxlan import Vxlan
from winboot.config.profile.credential_provider import CredentialProvider
from winboot.config.profile.reference import Reference
from winboot.config.profile.values import (
    NO_PROXY_LOGIN,
    AnyVersion,
    Cidrs,
    HttpUrl,
    Ips,
    NatExceptionNames,
    PatchVersion,
    PlainVersion,
    ProxyUrl,
    Server,
    Sha256,
    TaintText,
    WindowsFile,
    WindowsFolder,
)
from winboot.config.source import Wrong

SERVICES = ("containerd", "docker", "cri-dockerd", "csi-proxy", "kubelet", "kube-proxy", *networks.AGENTS)
# Programs that answer no service manager.
# cri-dockerd has no code of a Windows service (Mirantis/cri-dockerd backend/daemon_windows.go).
NSSM_ALONE = (*networks.NSSM_AGENTS, "cri-dockerd")
# dockerd registers itself as a service, and NSSM has nothing to add.
SC_ALONE = ("docker",)
# Before 1.24 the archive of the node has no kube-log-runner, and without it their output is lost (kubernetes
# hack/lib/golang.sh, node_targets: absent in 1.20 to 1.22, present from 1.24 on; 1.23 was not read).
LOG_RUNNER_SINCE = "1.24"
LOGGED_BY_RUNNER = ("kubelet", "kube-proxy")
if TYPE_CHECKING:
    Cni = str
    Ipam = str
else:
    # What there is to choose from is known to winboot.config.networks alone.
    Cni = Literal[networks.CNIS]
    Ipam = Literal[networks.IPAMS]
Manager = Literal["sc", "nssm"]
Priority = Literal[
    "IDLE_PRIORITY_CLASS",
    "BELOW_NORMAL_PRIORITY_CLASS",
    "NORMAL_PRIORITY_CLASS",
    "ABOVE_NORMAL_PRIORITY_CLASS",
    "HIGH_PRIORITY_CLASS",
    "REALTIME_PRIORITY_CLASS",
]
Flags = dict[str, str | None]


class Kubernetes(Model):
    """The version of everything that comes from Kubernetes itself."""

    version: PatchVersion = Field(
        description="the version of kubelet, kube-proxy and kubectl, with the patch number, such as 1.36.5"
    )
    overlay: LocalPath | None = Field(
        default=None,
        description="a file of newer compatibility facts, for a minor that winboot does not know yet",
    )
    keep_versions: int = Field(
        default=2,
        ge=1,
        le=10,
        description="how many versions of the programs the node keeps in C:\\k\\versions; `rollback` needs two",
    )


class Cluster(Model):
    """The cluster to join, as its nodes and as winboot see it."""

    server: Server = Field(description="the API server's address for nodes, https://host:port")
    ca: Reference | None = Field(default=None, description="the cluster's CA certificate, {file: ca.crt}")
    ca_hash: Sha256 | None = Field(
        default=None,
        description="SHA-256 of the CA's public key, as kubeadm prints it; `winboot init` uses it to fetch the CA",
    )
    kubeconfig: Reference | None = Field(
        default=None,
        description="the kubeconfig with which winboot mints tokens, approves certificates and drains",
    )
    context: str | None = Field(
        default=None, description="the context of this kubeconfig; default: its current context"
    )
    pod_cidr: Cidrs = Field(
        description="the network of all pods; for dual stack a list of an IPv4 and an IPv6 network"
    )
    service_cidr: Cidrs = Field(description="the network of all cluster IPs; a list for dual stack")
    node_cidr: Cidrs = Field(
        default=(), description="the networks of the nodes, for the overlap check and NO_PROXY"
    )
    dns_service_ip: Ips = Field(
        default=(), description="the address of the cluster's DNS service; default: the tenth service address"
    )
    dns_domain: str = Field(default="cluster.local", description="the DNS domain of services")
    bootstrap_token: Annotated[Literal["mint"] | Reference, Field(union_mode="left_to_right")] = Field(
        default="mint", description="mint (winboot makes tokens on demand), or a reference to a token"
    )

    @property
    def dns_addresses(self) -> Ips:
        """The cluster's DNS service: as named, or the tenth address of the first service network."""
        return self.dns_service_ip or tuple(cidr.network_address + 10 for cidr in self.service_cidr[:1])

    elsewhere: ClassVar[dict[str, str]] = {
        "token": "bootstrap_token: mint, or {env: NAME}",
        "ca_file": "ca: {file: PATH}",
        "endpoint": "server: https://host:port",
    }

    @field_validator("bootstrap_token", mode="before")
    @classmethod
    def _is_no_token(cls, value: object) -> object:
        if isinstance(value, str) and value != "mint":
            raise Wrong("found a plain token", expected="mint, {env: NAME}, {file: PATH} or {command: [...]}")
        return str(value) if isinstance(value, str) else value


class NatExceptions(Model):
    """Destinations that pods reach without NAT, in addition to winboot's own or instead of them."""

    add: Cidrs = Field(
        default=(), description="networks in addition to the pods', the services' and the nodes'"
    )
    remove: NatExceptionNames = Field(
        default=(),
        description="entries of winboot's list to remove: pods use the node's address for them; `node_subnet` is the "
        "node's own network",
    )


class AntreaSection(Model):
    """What Antrea changes in Windows itself."""

    testsigning: Literal["accepted"] | None = Field(
        default=None,
        description="accepted: winboot turns on test signing, because Windows loads Antrea's driver only with it",
    )


class Network(Model):
    """The network solution; `winboot explain network` compares them."""

    cni: Cni = Field(description=" | ".join(networks.CNIS))
    mode: str | None = Field(default=None, description=f"{networks.mode_list()}; default: the first")
    managed_by: Literal["winboot", "operator"] | None = Field(
        default=None,
        description="calico: operator (HostProcess pods) or winboot (services: winboot installs them with "
        "artifacts.calico, else they must exist)",
    )
    vxlan: Vxlan | None = Field(default=None, description="settings of overlays: vni, port, mac_prefix")
    network_name: str | None = Field(
        default=None, description="the name of the HNS network; default: cbr0, flannel.<vni>, azure, …"
    )
    ipam: Ipam | None = Field(
        default=None,
        description="azure: azure-vnet-ipam (pods get the adapter's secondary addresses; the default) or azure-cns (a "
        "service that your cluster installs)",
    )
    routes: Literal["network", "winboot"] = Field(
        default="network",
        description="win-bridge: what makes routes to other nodes' pods. network: routers or a cloud's route table; "
        "winboot: each join writes a route per Node; only for nodes of one layer-2 network",
    )

    antrea: AntreaSection = Field(default=AntreaSection(), description="settings of cni: antrea")
    nat_exceptions: NatExceptions = Field(
        default=NatExceptions(),
        description="changes to winboot's list of networks for which pods use their own address instead of the node's",
    )

    def name_of(self, solution: networks.Network) -> str:
        """The name of the HNS network on the node; empty where others make it and the profile does not name it."""
        return self.network_name or solution.default_name.format(vni=(self.vxlan or Vxlan()).vni)

    def solution(self, artifacts: Artifacts | None) -> networks.Network:
        """The solution that these keys choose, with the versions that the profile names; ValueError for none."""
        named = artifacts.named if artifacts else ()
        return networks.choose(self.cni, self.mode, self.managed_by, named=named)


class RegistryClient(Model):
    """The certificate that containerd shows to a registry."""

    cert: WindowsFile = Field(description="a certificate file (PEM) on the node")
    key: WindowsFile = Field(description="the file of the certificate's private key (PEM) on the node")


class Registry(Model):
    """How images of one registry host are pulled. All but `mirrors` is about the mirrors, or without any about the
    registry itself; a registry may be the last of its own mirrors."""

    # containerd, docs/cri/registry.md (endpoint) and docs/hosts.md.
    elsewhere: ClassVar[dict[str, str]] = {
        "endpoint": "mirrors",
        "host": "mirrors",
        "server": "nothing: the registry is the key, and mirrors come first",
    }

    mirrors: tuple[HttpUrl, ...] = Field(default=(), description="tried in this order before the registry")
    ca: WindowsFile | None = Field(
        default=None, description="a CA file on the node that containerd trusts in addition"
    )
    skip_verify: bool = Field(default=False, description="do not check the registry's certificate")
    override_path: bool = Field(default=False, description="the mirror's address already holds the API path")
    client: RegistryClient | None = Field(default=None, description="containerd's client certificate")
    header: dict[str, str] = Field(
        default={},
        description="HTTP header → value, sent with each request; every account on the node can read it",
    )
    user: str | None = Field(default=None, description="the user name for `password`")
    password: Reference | None = Field(default=None, description="{env | file | command}")


class Log(Model):
    """How long logs of services are kept."""

    max_size_mib: int = Field(
        default=50, ge=1, le=1_048_576, description="winboot rotates a service's log at this size"
    )
    max_files: int = Field(default=5, ge=1, le=1000, description="how many rotated logs winboot keeps")


class Runtime(Model):
    """The container runtime and how it pulls and starts."""

    name: Literal["containerd", "docker"] = Field(
        default="containerd",
        description="containerd; docker: Docker Engine with dockershim (Kubernetes 1.19 to 1.23) or cri-dockerd (from 1.24)",
    )

    containerd: PatchVersion | None = Field(
        default=None,
        description="default: the newest that Kubernetes tests with this minor; 1.x uses version 2 of config.toml",
    )
    docker: PatchVersion | None = Field(
        default=None,
        description="Docker Engine; default: the last 20.10 for dockershim, the last 28 for cri-dockerd",
    )
    cri_dockerd: PatchVersion | None = Field(
        default=None, description="cri-dockerd, from Kubernetes 1.24 on; you give its hash (artifacts.sha256)"
    )
    pause_image: str | None = Field(
        default=None, description="the sandbox image; default: by Kubernetes minor and Windows build"
    )
    images: tuple[str, ...] = Field(
        default=(), description="more images that join and `winboot bake` pull before a pod needs them"
    )
    registries: dict[str, Registry | None] = Field(
        default={}, description="registry host → mirrors and credentials"
    )
    isolation: tuple[Literal["process", "hypervisor"], ...] = Field(
        default=("process",),
        description="the runtime handlers; hypervisor needs the Hyper-V role",
    )
    log: Log = Field(default=Log(), description="rotation of service logs")
    root: WindowsFolder | None = Field(
        default=None,
        description=r"the folder of images and containers, such as D:\containerd (with D:\containerd-temp for temporary "
        r"files); default: C:\ProgramData\containerd\root. On a live node a change needs --drain, and winboot pulls the "
        "images again",
    )
    ephemeral: bool = Field(
        default=False,
        description="allow a `root` on a drive that can lose its content, such as Azure's temporary disk",
    )
    config: OpenMap = Field(
        default={},
        description="settings of containerd's config.toml that override winboot's, nested as in version 3 of the file "
        "(version 2 for containerd 1.7); with docker, settings of daemon.json; null drops a setting",
    )


class Services(Model):
    """What starts the programs: the service manager itself, or NSSM."""

    manager: Manager = Field(default="sc", description="sc | nssm, for all services that can use both")
    overrides: dict[str, Manager | None] = Field(
        default={}, description=f"service → manager; {' and '.join(NSSM_ALONE)} are always nssm"
    )
    environment: dict[str, dict[str, str | None]] = Field(
        default={},
        description="service → variables in addition to winboot's, which all users of the node can read; null drops one",
    )
    priority: dict[str, Priority | None] = Field(
        default={},
        description="service → priority class, set by NSSM; the kubelet sets its own (windows-priorityclass)",
    )


class Kubelet(Model):
    """The kubelet's own settings, over winboot's."""

    config: OpenMap = Field(
        default={},
        description="KubeletConfiguration fields that override winboot's; a map such as evictionHard replaces the whole map, "
        "{} means none, and null drops a field that winboot sets",
    )
    flags: Flags = Field(
        default={}, description="flags without dashes; winboot writes them as fields where these exist"
    )
    credential_providers: dict[str, CredentialProvider | None] = Field(
        default={},
        description="program (without .exe) → the program's address and hash, and how the kubelet starts it for an image's "
        "credentials",
    )

    elsewhere: ClassVar[dict[str, str]] = {
        "extra_args": "flags: {name: value}",
        "args": "flags: {name: value}",
        "configuration": "config: {field: value}",
        "feature_gates": "config: {featureGates: {Name: true}}",
        "labels": "node.labels",
        "taints": "node.taints",
    }


class KubeProxy(Model):
    """kube-proxy's own settings, over winboot's."""

    managed_by: Literal["winboot", "operator"] | None = Field(
        default=None,
        description="operator: a DaemonSet runs kube-proxy, and winboot does not; default: by the network",
    )
    config: OpenMap = Field(
        default={}, description="KubeProxyConfiguration fields that override winboot's; null drops a field"
    )
    flags: Flags = Field(
        default={}, description="flags without dashes; winboot writes them as fields where these exist"
    )
    dsr: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="direct server return; auto: on if Windows build and Kubernetes version support it",
    )
    kubeconfig: Reference | None = Field(
        default=None, description="kube-proxy's own login; default: the kubelet's certificate"
    )

    elsewhere: ClassVar[dict[str, str]] = {
        "args": "flags: {name: value}",
        "enable_dsr": "dsr: on",
        "feature_gates": "config: {featureGates: {Name: true}}",
    }


class Node(Model):
    """What the Node object carries."""

    labels: dict[str, str | None] = Field(
        default={}, description="labels of the Node, in addition to the kubelet's own"
    )
    taints: tuple[TaintText, ...] = Field(
        default=("os=windows:NoSchedule",), description="taints of the Node, key=value:Effect"
    )
    scheduled_events: bool = Field(
        default=False,
        description="Azure: a task on the machine copies scheduled events to its Node; Azure inventories turn this on",
    )


class Boot(Model):
    """Signals for other tools that wait for a new node. `node.taints` stay on the Node."""

    taints: tuple[TaintText, ...] = Field(
        default=(),
        description="taints for the registration of the Node that another tool removes, such as "
        "karpenter.sh/unregistered:NoExecute; winboot does not restore them",
    )
    ready_file: WindowsFile | None = Field(
        default=None,
        description="a file that the first boot writes when the Node is Ready, such as "
        r"C:\run\cluster-api\bootstrap-success.complete",
    )
    check_machine: bool = Field(
        default=False,
        description="a startup task compares the machine's UUID, then starts the kubelet: a copy of a joined machine does not "
        "contact the cluster",
    )


class Proxy(Model):
    """The HTTP proxy; set per service, so Windows needs no restart."""

    elsewhere: ClassVar[dict[str, str]] = dict.fromkeys(("user", "username", "password"), NO_PROXY_LOGIN)

    http: ProxyUrl | None = Field(
        default=None,
        description="http://host:port, the proxy for plain HTTP, without user and password: if the proxy requires a "
        "login, exempt the nodes there, or set mirrors in runtime.registries and artifacts.source",
    )
    https: ProxyUrl | None = Field(default=None, description="http://host:port, the proxy for HTTPS")
    no_proxy: tuple[str, ...] = Field(
        default=(),
        description="hosts and networks without proxy; winboot adds cluster, pods, services, nodes and loopback",
    )


class DynamicPorts(Model):
    """The range Windows takes client ports from."""

    start: int = Field(default=33000, ge=1025, le=65535, description="the first client port")
    count: int = Field(default=32536, ge=255, le=64511, description="how many")


class ExcludedPorts(Model):
    """Ports that Windows gives to no client: some program of this machine listens there."""

    protocol: Literal["tcp", "udp"] | None = Field(default=None, description="tcp | udp; default: both")
    start: int = Field(ge=1, le=65535, description="the first port")
    count: int = Field(default=1, ge=1, le=65535, description="how many")


class KeepAlive(Model):
    """When Windows asks whether the other end of an idle connection is still there."""

    time_ms: int = Field(
        default=60_000, ge=1_000, le=4_294_967_295, description="idle time before the first probe, in ms"
    )
    interval_ms: int = Field(
        default=1_000, ge=100, le=4_294_967_295, description="the time between two probes, in ms"
    )


class Firewall(Model):
    """Openings in the firewall of Windows."""

    node_ports: bool = Field(default=True, description="open 30000-32767 for NodePort services")
    kube_proxy_health: bool = Field(default=True, description="open 10256 for load balancer health checks")
    sources: Cidrs = Field(default=(), description="the CIDRs that may reach these ports; default: all")


class Windows(Model):
    """Settings of Windows itself; what is not named stays as it is."""

    features: tuple[str, ...] = Field(
        default=("Containers",), description="Windows roles and features; add Hyper-V for isolation"
    )
    features_source: str | None = Field(
        default=None, description="SxS share or WIM with the files, if the update service lacks them"
    )
    rename: bool = Field(
        default=True, description="rename the machine to its computer_name; never done to domain members"
    )
    page_file_mib: Annotated[int, Field(ge=512, le=16_777_216)] | Literal["system"] = Field(
        default="system", description="size of the page file, or system (Windows manages it)"
    )
    dynamic_ports: DynamicPorts | None = Field(
        default=DynamicPorts(), description="the range of client ports; false keeps the present range"
    )
    excluded_ports: tuple[ExcludedPorts, ...] = Field(
        default=(), description="ports of this range that Windows does not give to clients"
    )
    keepalive: KeepAlive | None = Field(
        default=None,
        description="TCP keepalive, for load balancers that drop idle connections before Windows' default of two "
        "hours; {} sets winboot's defaults; needs a restart",
    )
    firewall: Firewall = Field(default=Firewall(), description="open ports in addition to the kubelet's")
    defender_exclusions: bool = Field(
        default=False, description="exclude winboot's programs from Defender's scans"
    )
    update_hold: bool = Field(
        default=False, description="keep Windows Update from installing (and restarting) by itself"
    )
    known_fixes: tuple[str, ...] = Field(
        default=(), description="named packs of registry values; the script has the reason of each value"
    )
    trust_roots: tuple[Reference, ...] = Field(
        default=(),
        description="CA certificates (PEM) that the machine trusts, for proxies, mirrors, registries: self-signed ones "
        "go into the store Root, others into CA",
    )
    time_servers: tuple[str, ...] = Field(default=(), description="NTP servers; ignored on domain members")
    long_paths: bool | None = Field(default=None, description="let programs use paths beyond 260 characters")
    power_plan: Literal["high-performance"] | None = Field(
        default=None, description="Windows' power plan High performance, for bare metal only"
    )
    crash_dump: Literal["complete", "kernel", "small", "automatic"] | None = Field(
        default=None, description="the memory dump that Windows writes at a stop error"
    )
    dns_suffixes: tuple[str, ...] = Field(
        default=(), description="the suffix search list of the node (not of pods)"
    )

    @field_validator("dynamic_ports", mode="before")
    @classmethod
    def _false_is_none(cls, value: object) -> object:
        return None if value in (False, "false") else value


def _default(key: str) -> str:
    return f"default {networks.download(key).version}"


class Artifacts(Model):
    """Where programs come from, which versions, and their hashes."""

    source: str = Field(
        default="upstream",
        description="upstream, a mirror (https://…) or a folder that the node reads (D:\\bundle, \\\\server\\share)",
    )
    cni_plugins: AnyVersion | None = Field(default=None, description=_default("cni_plugins"))
    flannel: AnyVersion | None = Field(default=None, description=_default("flannel"))
    flannel_cni: PlainVersion | None = Field(default=None, description=_default("flannel_cni"))
    azure_cni: AnyVersion | None = Field(default=None, description="required for cni: azure")
    calico: AnyVersion | None = Field(
        default=None, description="cni: calico, managed_by: winboot: the version to install and run"
    )
    hybrid_overlay: AnyVersion | None = Field(default=None, description="required for cni: ovn-hybrid")
    crictl: AnyVersion | None = Field(
        default=None, description="crictl's version; default: the first patch of the Kubernetes minor"
    )
    nssm: PlainVersion | None = Field(default=None, description="default 2.24")
    urls: dict[str, str] = Field(
        default={},
        description="name of a download → its address (https://…) instead of source, with {version} in it",
    )
    sha256: dict[str, Sha256 | None] = Field(
        default={},
        description="name/version/file → hash, and name/version/file!member → hash; `winboot init` fills it in",
    )

    @property
    def named(self) -> tuple[str, ...]:
        """The keys that the profile sets."""
        return tuple(key for key in type(self).model_fields if getattr(self, key) is not None)


class OwnStep(Model):
    """A PowerShell step of the user, in the same three blocks as ours."""

    name: str = Field(description="the step's name: lower case with dashes, different from winboot's steps")
    why: str = Field(default="a step of your own", description="the step's purpose; shown in the plan")
    needs: tuple[str, ...] = Field(default=(), description="steps that must run before this step")
    look: LocalPath = Field(description="a PowerShell file that emits differences")
    change: LocalPath = Field(description="a PowerShell file that makes the change")
    undo: LocalPath | None = Field(
        default=None, description="a PowerShell file that restores the former state"
    )

    @property
    def files(self) -> dict[str, Path]:
        """The files of the step by block."""
        named = {"look": self.look, "change": self.change, "undo": self.undo}
        return {block: path for block, path in named.items() if path is not None}
