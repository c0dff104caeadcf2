"""The cluster as winboot sees it: the protocol, and the values that pass it."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self, TypeAlias

from winboot.base.secret import Secret
from winboot.config.compat.version import Version
from winboot.config.networks.cluster import ResourceKind
from winboot.config.node_spec import Taint
from winboot.remote.cluster.claims import Leases
from winboot.remote.cluster.workbench import Workbench
from winboot.report.events import Difference

CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER: Final = "kubernetes.io/kubelet-serving"
REQUEST_KINDS: Final[dict[str, Literal["client", "serving"]]] = {
    CLIENT_SIGNER: "client",
    SERVING_SIGNER: "serving",
}

# Which addresses Services get (kubernetes v1.33 staging/src/k8s.io/api/networking/v1/types.go, ServiceCIDR).
SERVICE_CIDR: Final = ResourceKind("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs")

# Waits so many seconds; True means: stop waiting for good (`winboot.node.run.Stop.wait` is one).
Wait = Callable[[float], bool]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A Node object, as far as winboot acts on it."""

    name: str
    version: str  # resourceVersion, for patches that must not overwrite what they have not seen
    ready: bool
    reason: str
    message: str
    system_uuid: str
    pod_cidrs: tuple[str, ...]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    addresses: tuple[tuple[str, str], ...]  # (type, value)
    kubelet_version: str
    operating_system: str
    unschedulable: bool = False
    provider_id: str = ""
    network_reason: str = ""  # of the condition NetworkUnavailable, which a cloud's route controller writes
    machine_id: str = ""
    runtime_version: str = ""  # as in containerd://2.1.4
    # Since when the cluster has received nothing from its kubelet, by the control plane's clock; None where it has.
    # The node controller writes Ready=Unknown (node_lifecycle_controller.go, tryUpdateNodeHealth), a kubelet True or
    # False.
    silent_since: datetime | None = None

    def has_taint(self, key: str) -> bool:
        """Whether a taint with this key is on the node."""
        return any(taint.key == key for taint in self.taints)

    def was_admitted(self, startup_taint: str) -> bool:
        """Whether pods may run there: a kubelet has registered it, and the startup taint, which an admission lifts, is gone."""
        return bool(self.system_uuid or self.ready) and not self.has_taint(startup_taint)


@dataclass(frozen=True, slots=True)
class Token:
    """A bootstrap token that winboot made; only `value` is secret."""

    id: str
    value: Secret
    expires: datetime


_ID_LETTERS: Final = string.digits + string.ascii_lowercase


def token_id(run: str, node: str) -> str:
    """The id of the token that a run makes for a node. The claim on the node names the run, so that the next run can delete
    the token of one that was killed, and needs no right to list secrets."""
    number = int.from_bytes(hashlib.sha256(f"{run}/{node}".encode()).digest())
    return "".join(_ID_LETTERS[number // 36**place % 36] for place in range(6))


@dataclass(frozen=True, slots=True)
class ExpectedNode:
    """What a certificate for this node may say.

    `names` and `addresses` are those that the inventory and the machine itself gave, not those that the Node object
    claims. `addresses` are IP addresses as text; anything else there matches nothing.
    `requestors` are users besides the node's own that may ask for its client certificate: the bootstrap token's.
    """

    name: str
    names: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    requestors: frozenset[str] = frozenset()

    @property
    def user(self) -> str:
        """The user name, and certificate subject, of this node's kubelet."""
        return f"system:node:{self.name}"


RequestState: TypeAlias = Literal["pending", "approved", "denied", "failed", "issued"]


@dataclass(frozen=True, slots=True)
class Request:
    """A CertificateSigningRequest object, as far as it decides anything. `pem` is base64, as stored; `made` is when."""

    name: str
    signer: str
    user: str
    groups: tuple[str, ...]
    usages: frozenset[str]
    pem: str
    state: RequestState = "pending"
    made: datetime | None = None

    @property
    def kind(self) -> Literal["client", "serving"] | None:
        """Which of a kubelet's two certificates this asks for; None for a signer that is not a kubelet's."""
        return REQUEST_KINDS.get(self.signer)


# Why a request must not be approved; empty when all is in order, None when it is not ours to judge.
Judge: TypeAlias = Callable[[Request], tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one certificate request: it was approved, or there are `reasons` why not."""

    request: str
    kind: Literal["client", "serving"]
    approved: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeWish:
    """Labels and taints the profile wants on the Node. The startup taint is not among them."""

    labels: Mapping[str, str]
    taints: Sequence[Taint]


@dataclass(frozen=True, slots=True)
class Need:
    """One thing a user must be allowed to do: `get nodes`, `patch nodes/status`.

    `namespace` is where (empty: everywhere), `name` which object (empty: all of them).
    """

    verb: str
    resource: str
    group: str = ""
    why: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        which = f" {self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {kind}{which}{where}"


@dataclass(frozen=True, slots=True)
class MissingRight:
    """A program's user lacks something. `binding` names what `winboot manifests rbac` would add."""

    program: str
    user: str
    need: Need
    binding: str


@dataclass(frozen=True, slots=True)
class DrainRules:
    """Which pods a drain may evict, as kubectl drain's flags say it.

    `grace` is how many seconds each pod has to end (None: its own); `emptydir` allows those whose emptyDir volumes are lost
    with them, `unmanaged` those that nothing makes again.
    """

    grace: int | None = None
    emptydir: bool = True
    unmanaged: bool = True


ALL_PODS: Final = DrainRules()


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod that a drain would evict: namespace/name, whether nothing makes it again, whether it has emptyDir volumes."""

    name: str
    unmanaged: bool = False
    emptydir: bool = False


@dataclass(frozen=True, slots=True)
class Belonging:
    """Something that a cluster keeps about a node in addition to its Node."""

    kind: Literal["certificate request", "lease"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Drained:
    """How a drain went. `left` names pods that would not go, with the reason."""

    evicted: tuple[str, ...]
    left: tuple[tuple[str, str], ...] = ()


class Nodes(Protocol):
    """Node objects and their Events."""

    def node(self, name: str) -> NodeFacts | None:
        """The node, or None while it does not exist."""
        ...

    def nodes(self) -> tuple[NodeFacts, ...]:
        """All nodes."""
        ...

    def windows_nodes(self) -> tuple[NodeFacts, ...]:
        """The Windows nodes as the API server has them at hand: maybe a moment old, and cheap enough to read again
        and again."""
        ...

    def wait_ready(self, name: str, *, timeout: float, wait: Wait) -> NodeFacts | None:
        """Ask until the node is Ready, `timeout` seconds are over or `wait` says stop.

        Gives the last facts seen (None: there never was a Node); the caller looks at `ready`.
        """
        ...

    def change_node(self, name: str, wish: NodeWish) -> tuple[Difference, ...]:
        """Make labels and taints what the wish says; gives what was different. Foreign ones stay."""
        ...

    def lift_taint(self, name: str, key: str) -> bool:
        """Remove the taints with this key; False when the node had none."""
        ...

    def node_log(self, name: str, service: str, since: datetime) -> str | None:
        """The end of a service's log, as the kubelet of the node gives it; None where it gives no logs. Needs `get` on
        `nodes/proxy`."""
        ...

    def tell(self, name: str, reason: str, message: str, *, good: bool) -> None:
        """Leave an Event about the node, which need not exist: `kubectl describe node` shows it. `reason` is one word."""
        ...

    def cordon(self, name: str, *, why: str = "true") -> bool:
        """Make the node unschedulable, marked as ours with `why`; False when it already was."""
        ...

    def uncordon(self, name: str) -> bool:
        """Make it schedulable again, only when the cordon is ours; False otherwise."""
        ...

    def delete_node(self, name: str) -> bool:
        """Remove the Node object; False when it did not exist."""
        ...


class Tokens(Protocol):
    """Bootstrap tokens."""

    def mint_token(self, *, node: str, lifetime: timedelta, run: str = "") -> Token:
        """A bootstrap token for one join, by the cluster's clock; for a `run` its id is `token_id`, if that is free."""
        ...

    def forget_token(self, token: str) -> None:
        """Delete one token by its id; that it is gone already is fine."""
        ...


class CertificateRequests(Protocol):
    """Certificate requests of kubelets."""

    def certificate_requests(self) -> tuple[Request, ...]:
        """All requests for kubelets' certificates, those that are decided, too."""
        ...

    def settle_requests(self, expected: ExpectedNode) -> tuple[Verdict, ...]:
        """Look at each pending certificate request of this node; approve its newest serving one if that is in order.

        A kubelet makes a new key at each start, so the keys of older requests are gone. Client ones are the
        controller-manager's to approve. What is refused stays pending: denying would be a decision for good. Asks
        once: a caller that waits for a certificate asks again.
        """
        ...

    def judge_requests(self, judge: Judge) -> tuple[Verdict, ...]:
        """Ask `judge` about each pending request; approve a user's newest serving one that it finds nothing wrong with.

        What it has reasons against is among the verdicts; what is not its own (None) is not.
        """
        ...


class Pods(Protocol):
    """The pods of a node, and their eviction."""

    def drain(self, name: str, *, timeout: float, wait: Wait, rules: DrainRules = ALL_PODS) -> Drained:
        """Evict the node's pods (not DaemonSet and mirror pods), respecting disruption budgets; none where the rules keep
        one of them. An API server that is away at the end leaves those that it named last."""
        ...

    def pods_to_drain(self, name: str) -> Sequence[PodFacts]:
        """The pods that a drain would evict."""
        ...

    def images(self, name: str) -> Sequence[str]:
        """The images that the node's pods name, whatever their kind, sorted. Pods that have ended need none."""
        ...

    def runs_containers(self, name: str) -> bool:
        """Whether a pod of the node, whatever its kind, runs a container as far as the kubelet last said."""
        ...


class Leftovers(Protocol):
    """What the cluster keeps about a node in addition to its Node."""

    def belongings(self, name: str) -> tuple[Belonging, ...]:
        """What the cluster keeps about the node in addition to its Node."""
        ...

    def delete_belonging(self, one: Belonging) -> None:
        """Delete it; that it is gone already is fine."""
        ...


class Rights(Protocol):
    """What users may do."""

    def missing_rights(
        self, needs: Mapping[str, Sequence[Need]], user: str, groups: Sequence[str]
    ) -> tuple[MissingRight, ...]:
        """Which needs (by program) this user lacks."""
        ...

    def own_missing_rights(self, needs: Sequence[Need]) -> tuple[Need, ...]:
        """Which of these the user of the kubeconfig lacks."""
        ...


@dataclass(frozen=True, slots=True)
class GmsaState:
    """The GMSACredentialSpecs by name, None without the CRD; and for each configuration of the webhook its CA bundle as PEM."""

    specs: frozenset[str] | None
    bundles: Mapping[str, str]


class Contents(Protocol):
    """What the cluster runs and how it is set up."""

    def version(self) -> Version:
        """The API server's version."""
        ...

    def windows_kube_proxies(self) -> tuple[str, ...]:
        """DaemonSets (`namespace/name`) that run kube-proxy on Windows nodes."""
        ...

    def windows_kube_proxy_configs(self) -> tuple[tuple[str, str], ...]:
        """Each DaemonSet of kube-proxy on Windows nodes with each ConfigMap that it mounts, both as `namespace/name`."""
        ...

    def config_map(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """The data of a ConfigMap; None where it does not exist."""
        ...

    def service_addresses(self, namespace: str, name: str) -> tuple[str, ...]:
        """The cluster IPs of a Service; none where there is no such Service, or it is headless."""
        ...

    def resources(self, kind: ResourceKind) -> Sequence[Mapping[str, Any]] | None:
        """The specs of all objects of a kind, each with its `name`; None where the cluster does not know the kind."""
        ...

    def csi_proxies(self) -> tuple[tuple[str, str], ...]:
        """DaemonSets (`namespace/name`) that run csi-proxy (`runs`), and those whose pods mount a pipe of it (`mounts`)."""
        ...

    def gmsa(self) -> GmsaState:
        """What the cluster has of windows-gmsa."""
        ...

    def try_gmsa(self, namespace: str, account: str, spec: str) -> str:
        """A dry run of a pod with this service account that names a GMSACredentialSpec: empty if the webhook fills it in, else
        what the API server said."""
        ...

    def unselective_daemon_sets(self) -> tuple[str, ...]:
        """DaemonSets (`namespace/name`) that would put Linux pods on a Windows node."""
        ...

    def has_privileged_daemon_sets(self) -> bool:
        """Whether any DaemonSet has a privileged or HostProcess container: then the API server allows both."""
        ...


class ServerClock(Protocol):
    """The time by which the cluster judges certificates and tokens."""

    def server_time(self) -> datetime:
        """The API server's clock (UTC, whole seconds)."""
        ...

    def clock_ahead(self) -> timedelta | None:
        """How far, at least, the API server's clock is ahead of this computer's; negative if it is behind. None if its answer
        does not show the time of now."""
        ...


class Cluster(Nodes, Tokens, CertificateRequests, Pods, Leftovers, Rights, Contents, ServerClock, Protocol):
    """What winboot does with a cluster. Any thread may call every method. A function takes the noun that it needs.

    All failures are `winboot.base.errors.ClusterError` or below it.
    """

    @property
    def is_insecure(self) -> bool:
        """Whether the kubeconfig has the server's certificate not judged."""
        ...

    def leases(self, namespace: str) -> Leases:
        """Which run works on which node, kept in this namespace."""
        ...

    def workbench(self) -> Workbench:
        """Pods, services and what runs in the pods: for trying things."""
        ...

    def close(self) -> None:
        """Give the connections back."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
