"""The values a node is described with. Mirrors the profile; see `winboot.config.node_spec`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from winboot.config.authority import TrustedCertificate
from winboot.config.compat.platform import BadUpdate, UpdateNeed
from winboot.config.compat.version import Version
from winboot.config.inventory import MachineSpec
from winboot.config.networks.base import Agent, Data, Network, PortRule, Reservation, Text
from winboot.config.networks.cluster import Wanted
from winboot.config.networks.vxlan import Vxlan
from winboot.config.profile import Reference
from winboot.config.profile.owned import CLUSTER_CA, CONTAINERD, KUBE_PROXY_KUBECONFIG
from winboot.config.profile.sections import Log, Windows

STARTUP_TAINT: Final = "winboot.io/starting"
Manager = Literal["sc", "nssm"]


@dataclass(frozen=True, slots=True)
class Paths:
    """Where things are on the node. One place, so that no template contains a path.

    `winboot.config.node_spec.places` puts a version into the paths of programs.
    """

    bin: str = r"C:\k"
    versions: str = r"C:\k\versions"
    kubelet: str = r"C:\k\kubelet.exe"
    kube_proxy: str = r"C:\k\kube-proxy.exe"
    kubectl: str = r"C:\k\kubectl.exe"
    csi_proxy: str = r"C:\k\csi-proxy.exe"
    kube_log_runner: str = r"C:\k\kube-log-runner.exe"
    crictl: str = r"C:\k\crictl.exe"
    nssm: str = r"C:\k\nssm.exe"
    cmd: str = r"C:\Windows\System32\cmd.exe"
    kubelet_root: str = r"C:\var\lib\kubelet"
    kubelet_config: str = r"C:\var\lib\kubelet\config.yaml"
    kubelet_pki: str = r"C:\var\lib\kubelet\pki"
    credential_providers: str = r"C:\k\credential-providers"
    gmsa_plugin: str = r"C:\k\gmsa\plugin.dll"
    gmsa_events: str = r"C:\k\gmsa\plugin.man"
    credential_config: str = r"C:\k\credential-providers.yaml"
    kubelet_client_certificate: str = r"C:\var\lib\kubelet\pki\kubelet-client-current.pem"
    bootstrap_kubeconfig: str = r"C:\k\bootstrap-kubeconfig"
    kubeconfig: str = r"C:\k\kubeconfig"
    cluster_ca: str = CLUSTER_CA
    containerd_bin: str = r"C:\Program Files\containerd\bin"
    containerd: str = r"C:\Program Files\containerd\bin\containerd.exe"
    ctr: str = r"C:\Program Files\containerd\bin\ctr.exe"
    containerd_config: str = r"C:\Program Files\containerd\config.toml"
    containerd_root: str = r"C:\ProgramData\containerd\root"
    # Empty: containerd takes SYSTEM's own folder.
    containerd_temp: str = ""
    containerd_state: str = r"C:\ProgramData\containerd\state"
    containerd_certs: str = r"C:\ProgramData\containerd\certs.d"
    containerd_pipe: str = r"\\.\pipe\containerd-containerd"
    containerd_endpoint: str = CONTAINERD
    docker_bin: str = r"C:\Program Files\docker"
    docker: str = r"C:\Program Files\docker\docker.exe"
    dockerd: str = r"C:\Program Files\docker\dockerd.exe"
    docker_config: str = r"C:\ProgramData\docker\config\daemon.json"
    docker_root: str = r"C:\ProgramData\docker"
    dockershim_root: str = r"C:\var\lib\dockershim"
    cri_dockerd: str = r"C:\k\cri-dockerd.exe"
    cri_dockerd_root: str = r"C:\var\lib\cri-dockerd"
    crictl_config: str = r"C:\k\crictl.yaml"
    cni_bin: str = r"C:\opt\cni\bin"
    cni_conf: str = r"C:\etc\cni\net.d"
    ipam_store: str = r"C:\var\lib\cni\networks"
    kube_proxy_config: str = r"C:\k\kube-proxy.yaml"
    kube_proxy_kubeconfig: str = KUBE_PROXY_KUBECONFIG
    logs: str = r"C:\var\log"
    state: str = r"C:\ProgramData\winboot"
    downloads: str = r"C:\ProgramData\winboot\downloads"


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """Which profile this is: its name (the file's stem) is in the rendered header."""

    name: str


@dataclass(frozen=True, slots=True)
class KubernetesSpec:
    """What version every Kubernetes program on the node has, and how many versions stay next to each other."""

    version: Version
    keep_versions: int = 2


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The cluster to join. `ca_sha256` is of the PEM bytes as they are on the node (LF line ends)."""

    server: str
    server_host: str
    server_port: int
    ca_pem: str
    ca_sha256: str
    pod_cidrs: tuple[str, ...]
    service_cidrs: tuple[str, ...]
    dns_service_ips: tuple[str, ...]
    dns_domain: str
    bootstrap_token: Reference | Literal["mint"]
    kubeconfig: Reference | None
    context: str | None

    @property
    def token_alone(self) -> bool:
        """Whether a bootstrap token is all that leads to the cluster: the profile names no kubeconfig, and winboot mints no
        token. In a pod it does that with the pod's account."""
        return self.kubeconfig is None and self.bootstrap_token != "mint"


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """The chosen network solution with everything it writes on this node.

    `cni_conf`, `net_conf` are None where winboot does not own the file. Leaves may be `Known`. `routes` is
    true where winboot makes the routes to the pods of other nodes. `first_range` is the CIDR of an empty first switch.
    """

    solution: Network
    network_name: str
    vxlan: Vxlan
    cni_conf: Mapping[str, Data] | None
    cni_conf_path: str
    net_conf: Mapping[str, Data] | None
    ipam_store: str
    reservations: tuple[Reservation, ...]
    agent: Agent | None
    host_endpoint: str | None
    first_range: str
    routes: bool = False


@dataclass(frozen=True, slots=True)
class RegistrySpec:
    """One registry host: its folder under certs.d and the text of hosts.toml.

    `headers` are the further lines of each header table, `files` the paths that hosts.toml names on the node.
    `secret` names the credential in `$Secrets` (`registry/<host>`), to be written as a Basic authorization
    header for each of `authorize` (the URLs whose `[host."…".header]` table ends the file).
    """

    host: str
    folder: str
    hosts_toml: str
    authorize: tuple[str, ...]
    headers: tuple[str, ...]
    files: tuple[str, ...]
    secret: str | None
    credential: Reference | None
    user: str | None


@dataclass(frozen=True, slots=True)
class HandlerSpec:
    """A containerd runtime handler that a RuntimeClass can name."""

    name: str
    isolation: Literal["process", "hypervisor"]
    build: int | None


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """One Windows service, whatever manages it.

    `arguments` are the program's own; with `log_runner` the manager starts kube-log-runner, which starts the
    program. `runs` is the one that does the work where `program` only starts it. `restart_ms` are the delays of
    the recovery actions, `reset_s` the time after which the count starts again.
    """

    name: str
    display_name: str
    description: str
    manager: Manager
    program: str
    arguments: tuple[Text, ...]
    log_file: str
    log_runner: bool
    depends_on: tuple[str, ...]
    environment: Mapping[str, str]
    priority_class: str | None = None
    runs: str = ""
    restart_ms: tuple[int, ...] = (10_000, 30_000, 60_000)
    reset_s: int = 900


@dataclass(frozen=True, slots=True)
class Folders:
    """The runtime's folders by the rights that users have there; see the step directories. `root` holds all of its data,
    `layers` the image layers below it."""

    private: tuple[str, ...]
    readable: tuple[str, ...]
    ours: tuple[str, ...]
    opaque: tuple[str, ...]
    watched: tuple[str, ...]
    root: str
    layers: str


@dataclass(frozen=True, slots=True)
class RuntimeSpec:
    """The container runtime: containerd, or Docker with dockershim or cri-dockerd. Only its own steps ask which it is."""

    name: Literal["containerd", "docker"]
    version: Version
    # Where kubelet and crictl find CRI; the service that the kubelet depends on; the one that answers crictl while it runs.
    endpoint: str
    service: str
    answers: str
    # Download -> program -> where it goes.
    programs: Mapping[str, Mapping[str, str]]
    # In the order they start, before the kubelet.
    services: tuple[ServiceSpec, ...]
    kubelet_flags: Mapping[str, str]
    # HNS version whose form the CNI configuration has.
    cni_form: Literal[1, 2]
    folders: Folders
    # The whole text of config.toml or daemon.json (LF line ends).
    config_text: str
    pause_image: str
    # What is pulled before a pod needs it: the pause image first.
    images: tuple[str, ...]
    # Host of each registry that is named here or that the pause image is from -> where containerd asks it, in order.
    registry_urls: Mapping[str, tuple[str, ...]]
    log: Log
    # containerd's alone: the form of its file, registries, handlers, whether it discards unpacked layers by winboot's default,
    # whether the drive of its root may come back empty.
    config_version: Literal[2, 3] = 3
    registries: tuple[RegistrySpec, ...] = ()
    handlers: tuple[HandlerSpec, ...] = ()
    discards_unasked: bool = False
    ephemeral: bool = False
    # Docker's alone: whether there is the network `host` of pods with hostNetwork.
    host_network: bool = False


@dataclass(frozen=True, slots=True)
class ServicesSpec:
    """The services of this node in the order they start."""

    all: tuple[ServiceSpec, ...]

    def __getitem__(self, name: str) -> ServiceSpec:
        """The service of that name; KeyError where this node has none."""
        for service in self.all:
            if service.name == name:
                return service
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(service.name == name for service in self.all)

    def manager(self, name: str) -> Manager:
        """`sc` or `nssm` for the service of that name."""
        return self[name].manager


@dataclass(frozen=True, slots=True)
class KubeletSpec:
    """The whole KubeletConfiguration and the flags next to it (`v` → `2`; order is the command line's). `credentials` is the
    CredentialProviderConfig, None without a provider."""

    config: Mapping[str, Data]
    arguments: Mapping[str, Text]
    credentials: Mapping[str, Data] | None = None


@dataclass(frozen=True, slots=True)
class KubeProxySpec:
    """kube-proxy's configuration and flags. `wanted` is false where an operator runs it; `kubeconfig` is the
    profile's own credential file, None for the kubelet's rotating certificate."""

    wanted: bool
    config: Mapping[str, Data]
    arguments: Mapping[str, Text]
    dsr: bool
    kubeconfig: Reference | None


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint; `str()` is the flag form `key=value:Effect`."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class NodeObjectSpec:
    """The Node object: its name, labels and taints (the startup taint is not among them: it is STARTUP_TAINT). Also
    whether the machine writes there what Azure is going to do to it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    startup_taint: Taint = field(default_factory=lambda: Taint(STARTUP_TAINT, "true", "NoSchedule"))
    scheduled_events: bool = False


@dataclass(frozen=True, slots=True)
class BootSpec:
    """What others wait for: taints that the Node registers with and others remove. Also a file on the machine that
    first boot writes when the Node is Ready (empty: none). `check_machine`: the startup task starts the services, on the
    machine that joined alone."""

    taints: tuple[Taint, ...] = ()
    ready_file: str = ""
    check_machine: bool = False


@dataclass(frozen=True, slots=True)
class ProxySpec:
    """The HTTP proxy for the services. `no_proxy` is complete: cluster, pods, services, node and loopback are
    in it."""

    http: str | None
    https: str | None
    no_proxy: tuple[str, ...]

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables a service gets; empty without a proxy."""
        wanted = {"HTTP_PROXY": self.http, "HTTPS_PROXY": self.https}
        variables = {name: value for name, value in wanted.items() if value is not None}
        return {**variables, "NO_PROXY": ",".join(self.no_proxy)} if variables else {}


@dataclass(frozen=True, slots=True)
class RegistryFix:
    """One registry value of a known-fix pack."""

    pack: str
    key: str
    name: str
    kind: Literal["DWord", "String"]
    value: int | str
    reason: str
    source: str
    reboot: bool


@dataclass(frozen=True, slots=True)
class Member:
    """One file inside an archive, where it goes, and its hash where the profile knows it; `asks` are the arguments with
    which it says its version."""

    path: str
    destination: str
    sha256: str | None
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Artifact:
    """One download. `kind` is `file` (its one member has the file's own name) or an archive form."""

    name: str
    version: str
    file: str
    url: str
    sha256: str | None
    kind: Literal["file", "tar.gz", "zip"]
    members: tuple[Member, ...]

    @property
    def key(self) -> str:
        """Under which its hash is pinned, and where it lies in a mirror: one version of one artifact."""
        return f"{self.name}/{self.version}/{self.file}"

    def member_key(self, path: str) -> str:
        """Under which the hash of a file inside is pinned."""
        return f"{self.key}!{path}"

    @property
    def pins(self) -> tuple[str, ...]:
        """All keys that its hashes may have."""
        return (self.key, *(self.member_key(member.path) for member in self.members))


@dataclass(frozen=True, slots=True)
class StorageSpec:
    """What volumes need of Windows, and the folders of the FlexVolume drivers."""

    smb: bool = False
    iscsi: bool = False
    drivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GmsaAccount:
    """A group managed service account. `subjects` are the service accounts (namespace/name) that may use it."""

    spec: str
    name: str
    subjects: tuple[str, ...]
    plugin_input: str | None


@dataclass(frozen=True, slots=True)
class GmsaSpec:
    """The domain and accounts of pods. `plugin_guid`, `app_id` and `provider` have no braces; `app_id` is set where winboot
    installs the plug-in, `provider` where it has events; `ca_bundle` is the webhook's CA as PEM, empty with cert-manager."""

    dns_name: str
    netbios_name: str
    forest: str
    sid: str
    guid: str
    accounts: tuple[GmsaAccount, ...]
    plugin_guid: str | None
    ca_bundle: str
    secret: str
    app_id: str | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True)
class StepSource:
    """A step of the user's own: three PowerShell texts and the steps it comes after."""

    name: str
    why: str
    needs: tuple[str, ...]
    look: str
    change: str
    undo: str


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """Everything about one node. Mirrors the profile's sections."""

    profile: ProfileSource
    kubernetes: KubernetesSpec
    cluster: ClusterSpec
    network: NetworkSpec
    runtime: RuntimeSpec
    services: ServicesSpec
    kubelet: KubeletSpec
    kube_proxy: KubeProxySpec
    node: NodeObjectSpec
    proxy: ProxySpec
    # As the profile says it; what of it means something else on each node is in the fields after it.
    windows: Windows
    fixes: tuple[RegistryFix, ...]
    firewall: tuple[PortRule, ...]
    trust_roots: tuple[TrustedCertificate, ...]
    artifacts: tuple[Artifact, ...]
    machine: MachineSpec
    steps: tuple[StepSource, ...] = ()
    paths: Paths = field(default_factory=Paths)
    # What preflight asks of the machine's update level.
    updates: tuple[UpdateNeed, ...] = ()
    bad_updates: tuple[BadUpdate, ...] = ()
    boot: BootSpec = field(default_factory=BootSpec)
    storage: StorageSpec = field(default_factory=StorageSpec)
    gmsa: GmsaSpec | None = None

    @property
    def network_wanted(self) -> Wanted:
        """What the node wants of its network, as far as the cluster must agree."""
        network = self.network
        return Wanted(
            node=self.node.name,
            mode=network.solution.mode,
            pod_cidrs=self.cluster.pod_cidrs,
            vxlan=network.vxlan,
            net_conf=network.net_conf,
        )
