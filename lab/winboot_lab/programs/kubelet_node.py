"""The kubelet's Node: registered once, reported again and again."""

from __future__ import annotations

from typing import Any, Final

from winboot.config.compat.flags import parse_value
from winboot.config.compat.version import Version
from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.authority import Subject
from winboot_lab.cluster.kinds import NODES
from winboot_lab.programs.base import Daemon, GoError
from winboot_lab.programs.kubeclient import KubeClient
from winboot_lab.programs.kubelet_identity import Identity
from winboot_lab.programs.kubelet_pods import STRATEGIC, Pods
from winboot_lab.programs.settings import Settings, duration
from winboot_lab.windows.session import Computer

LEASE_S: Final = 10.0
RETRY_S: Final = 2.0
_CONDITIONS: Final = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


class NodeReporter:
    """One node's registration, status and lease."""

    def __init__(self, kubelet: Daemon, settings: Settings, identity: Identity, pods: Pods) -> None:
        self._kubelet = kubelet
        self._settings = settings
        self._identity = identity
        self._pods = pods
        self._registered = False
        self._next_sync = 0.0
        self._next_lease = 0.0
        self._reported: dict[str, Any] | None = None
        # The last change to any Node that we know of: until another comes, our Node has what we reported.
        self._seen: tuple[int, ...] = ()
        self._ready_since = ""

    @property
    def _machine(self) -> Computer:
        return self._kubelet.machine

    def tick(self) -> None:
        """Whatever is due: registering, the status, the lease, the pods."""
        now = self._machine.time.seconds
        try:
            if now >= self._next_sync:
                self._next_sync = now + (self._period() if self._registered else RETRY_S)
                self._sync()
            if self._registered and now >= self._next_lease:
                self._next_lease = now + LEASE_S
                self._renew_lease()
        except (GoError, ApiFailure) as e:
            self._next_sync = now + RETRY_S
            problem = e.message if isinstance(e, ApiFailure) else str(e)
            self._kubelet.klog_error(
                "Error updating node status, will retry", problem, "kubelet_node_status.go:1"
            )

    def _period(self) -> float:
        """How often the real one looks at itself; half of that while it is not ready, so that a change shows soon."""
        period = duration(self._settings.get("nodeStatusUpdateFrequency"), 10.0)
        return period if self._is_ready() else min(period, RETRY_S)

    def _is_ready(self) -> bool:
        return self._reported is not None and self._reported["conditions"][-1]["status"] == "True"

    def _sync(self) -> None:
        if not self._registered:
            self._register()
        self._report()
        self._pods.sync(ready=self._is_ready())

    # Registration

    def _register(self) -> None:
        client = self._identity.client
        if client is None or self._settings.get("registerNode") is False:
            return
        self._kubelet.klog(f'"Attempting to register node" node="{self._identity.node}"')
        try:
            client.ask("POST", "/api/v1/nodes", self._node())
        except ApiFailure as e:
            if e.reason != "AlreadyExists":
                raise
            self._adopt()
        self._registered = True
        self._publish_csi(client)
        # The first try is made before there is a Node, and fails.
        self._next_lease = self._machine.time.seconds + LEASE_S
        self._kubelet.klog(f'"Successfully registered node" node="{self._identity.node}"')

    def _adopt(self) -> None:
        """A Node of this name is there: its default labels are put right; taints and other labels stay as they are."""
        assert self._identity.client is not None
        patch = {"metadata": {"labels": self._default_labels(), "annotations": self._annotations()}}
        path = f"/api/v1/nodes/{self._identity.node}"
        self._identity.client.ask("PATCH", path, patch, content_type=STRATEGIC)

    def _node(self) -> dict[str, Any]:
        labels = dict(pair.partition("=")[::2] for pair in self._settings.flags.list("node-labels"))
        taints = self._taints()
        spec: dict[str, Any] = {"taints": taints} if taints else {}
        if self._settings.flags.text("cloud-provider") == "external":
            uninitialised = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true"}
            spec["taints"] = [*taints, {**uninitialised, "effect": "NoSchedule"}]
        # kubernetes:pkg/kubelet/kubelet_node_status.go, initialNode: only where the kubelet makes the Node.
        if self._settings.get("providerID"):
            spec["providerID"] = str(self._settings.get("providerID"))
        return {
            "metadata": {
                "name": self._identity.node,
                "labels": {**labels, **self._default_labels()},
                "annotations": self._annotations(),
            },
            "spec": spec,
            "status": self._status(),
        }

    def _annotations(self) -> dict[str, str]:
        """pkg/kubelet/kubelet_node_status.go, initialNode: the attach-detach controller cares for this node's volumes."""
        if self._settings.get("enableControllerAttachDetach") is False:
            return {}
        return {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}

    def _taints(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = [
            {k: str(v) for k, v in t.items() if v} for t in self._settings.get("registerWithTaints", [])
        ]
        given = self._settings.flags.text("register-with-taints")
        if given and not found:
            try:
                found = [{k: v for k, v in t.items() if v} for t in parse_value("taints", given)]
            except ValueError as e:
                raise GoError(f"invalid taint: {e}") from None
        return found

    def _default_labels(self) -> dict[str, str]:
        build = f"10.0.{self._machine.build}"
        return {
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "windows",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": self._identity.node,
            "kubernetes.io/os": "windows",
            "node.kubernetes.io/windows-build": build,
        }

    # Status

    def _report(self) -> None:
        """Send the status when the Node says another one; the lease says in between that we live."""
        client = self._identity.client
        if client is None or not self._registered:
            return
        status, nodes = self._status(), client.latest(NODES)
        if nodes == self._seen and _without_times(status) == _without_times(self._reported):
            return
        path = f"/api/v1/nodes/{self._identity.node}"
        there = client.ask("GET", path).get("status", {})
        if not _holds(there, status):
            there = client.ask("PATCH", f"{path}/status", {"status": status}, content_type=STRATEGIC)[
                "status"
            ]
        # The certificate is for what the Node says (kubelet_node_status.go, setLastObservedNodeAddresses).
        self._identity.serving_names = self._names(there.get("addresses") or [])
        self._reported, self._seen = status, client.latest(NODES)

    def _status(self) -> dict[str, Any]:
        machine, hardware = self._machine, self._machine.hardware
        try:
            found = self._pods.runtime()
            runtime = f"{found.name}://{found.version}"
        except GoError:
            runtime = f"{self._pods.runtime_name}://"
        return {
            **self._addressed(),
            "capacity": {
                "cpu": str(hardware.processors),
                "memory": f"{hardware.memory // 1024}Ki",
                "pods": str(self._settings.get("maxPods")),
            },
            "daemonEndpoints": {"kubeletEndpoint": {"Port": int(self._settings.get("port", 10250))}},
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": str(machine.boot_count),
                "containerRuntimeVersion": runtime,
                "kernelVersion": f"10.0.{machine.build}.{machine.release.ubr}",
                "kubeProxyVersion": "",
                "kubeletVersion": f"v{Version.parse(self._kubelet.run.version)}",
                "machineID": machine.name,
                "operatingSystem": "windows",
                "osImage": machine.release.product,
                "systemUUID": hardware.uuid,
            },
            "conditions": self._conditions(),
        }

    def _addressed(self) -> dict[str, Any]:
        """The addresses, or nothing where they cannot be determined: the Node is made, or keeps what it had (setNodeStatus)."""
        try:
            return {"addresses": self._addresses()}
        except GoError as e:
            self._kubelet.klog_error(
                "Failed to set some node status fields", str(e), "kubelet_node_status.go:1"
            )
            return {}

    def _conditions(self) -> list[dict[str, str]]:
        now = f"{self._machine.now():%Y-%m-%dT%H:%M:%SZ}"
        problem = self._pods.problem()
        ready = {
            "type": "Ready",
            "status": "True" if problem is None else "False",
            "reason": "KubeletReady" if problem is None else "KubeletNotReady",
            "message": problem or "kubelet is posting ready status",
        }
        if not self._ready_since or self._is_ready() != (problem is None):
            self._ready_since = now
        pressures = [
            {"type": kind, "status": "False", "reason": reason, "message": message}
            for kind, reason, message in _CONDITIONS
        ]
        times = {"lastHeartbeatTime": now, "lastTransitionTime": self._ready_since}
        return [{**condition, **times} for condition in (*pressures, ready)]

    def _addresses(self) -> list[dict[str, str]]:
        found = [{"type": "InternalIP", "address": a} for a in self._node_ips()]
        return [*found, {"type": "Hostname", "address": self._identity.node}]

    def _node_ips(self) -> list[str]:
        given = [a for a in self._settings.flags.text("node-ip").split(",") if a]
        if given and given[0] not in ("0.0.0.0", "::"):
            for address in given:
                if self._machine.network.holder(address) is None:
                    raise GoError(
                        f'failed to validate nodeIP: node IP: "{address}" not found in the host\'s network interfaces'
                    )
            return given
        version = Version.parse(self._kubelet.run.version)
        if self._settings.flags.text("cloud-provider") == "external" and version.at_least("1.29"):
            return []  # it waits for the cloud's word
        # Windows gives the host's addresses in no useful order: an HNS interface can come first.
        usable = [a for a in self._machine.network.adapters if not a.loopback and a.up]
        usable.sort(key=lambda a: -a.index)
        addresses = [
            d.ip for a in usable for d in a.ipv4 if d.state == "Preferred" and not d.ip.startswith("169.254.")
        ]
        return addresses[:1]

    def _names(self, addresses: list[dict[str, str]]) -> Subject | None:
        ips = tuple(a["address"] for a in addresses if a["type"] == "InternalIP")
        if not ips:
            return None
        return Subject(f"system:node:{self._identity.node}", ("system:nodes",), (self._identity.node,), ips)

    # Lease

    def _renew_lease(self) -> None:
        client = self._identity.client
        assert client is not None
        name = self._identity.node
        now = self._machine.now()
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": 40,
            "renewTime": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
        }
        lease = client.find(f"{path}/{name}")
        if lease is None:
            self._create_owned(client, path, {"name": name, "namespace": "kube-node-lease"}, spec)
            return
        # A Lease is updated from what was read: its version goes along.
        client.ask("PUT", f"{path}/{name}", {**lease, "spec": {**lease["spec"], **spec}})

    def _create_owned(
        self, client: KubeClient, path: str, metadata: dict[str, Any], spec: dict[str, Any]
    ) -> None:
        """Make an object that goes with the Node; nothing while there is no Node (pkg/kubelet/util/nodelease.go)."""
        node = client.find(f"/api/v1/nodes/{self._identity.node}")
        if node is not None:
            uid = node["metadata"]["uid"]
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._identity.node, "uid": uid}
            client.ask("POST", path, {"metadata": {**metadata, "ownerReferences": [owner]}, "spec": spec})

    def _publish_csi(self, client: KubeClient) -> None:
        """pkg/volume/csi/nodeinfomanager, CreateCSINode: once, when the Node is there."""
        path, name = "/apis/storage.k8s.io/v1/csinodes", self._identity.node
        if client.find(f"{path}/{name}") is None:
            self._create_owned(client, path, {"name": name}, {"drivers": []})


def _holds(there: dict[str, Any], status: dict[str, Any]) -> bool:
    """Whether a Node's status says what the kubelet would report, times aside; it may have more."""
    if "conditions" not in there:
        return False
    kinds = {c["type"] for c in status["conditions"]}
    ours = {**there, "conditions": [c for c in there["conditions"] if c["type"] in kinds]}
    told, wanted = _without_times(ours), _without_times(status)
    assert told is not None and wanted is not None  # both have conditions
    return all(told.get(key) == value for key, value in wanted.items())


def _without_times(status: dict[str, Any] | None) -> dict[str, Any] | None:
    if status is None:
        return None
    conditions = [{k: v for k, v in c.items() if not k.endswith("Time")} for c in status["conditions"]]
    return {**status, "conditions": conditions}
