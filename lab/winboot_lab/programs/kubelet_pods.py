"""The kubelet's pods: sandboxes for those on its node, and whether a pod would get one at all."""

from __future__ import annotations

from typing import Any, Final

from winboot.config.compat.version import Version
from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.kinds import PODS
from winboot_lab.programs import hcn
from winboot_lab.programs.base import Daemon, GoError
from winboot_lab.programs.cri import CriRuntime, PodSandbox, dial
from winboot_lab.programs.docker_cri import dockershim
from winboot_lab.programs.kubeclient import KubeClient
from winboot_lab.programs.kubelet_identity import Identity
from winboot_lab.programs.outside import Outside
from winboot_lab.programs.settings import Settings

_HOLDERS: Final = ("containerd-shim-runhcs-v1", "dockerd")
STRATEGIC: Final = "application/strategic-merge-patch+json"


class Pods:
    """Pods of one node."""

    def __init__(self, kubelet: Daemon, outside: Outside, settings: Settings, identity: Identity) -> None:
        self._kubelet = kubelet
        self._outside = outside
        self._host_pods: list[dict[str, Any]] = []
        self._settings = settings
        self._identity = identity
        self._proven: tuple[object, ...] | None = None
        self._said: dict[str, str] = {}
        self._seen: tuple[object, ...] = ()
        self._left_over = False
        self._runtime_name = ""

    @property
    def endpoint(self) -> str:
        """Where the runtime listens."""
        return str(self._settings.get("containerRuntimeEndpoint"))

    @property
    def answers_log_queries(self) -> bool:
        """Whether NodeLogQuery, on from 1.36, and `enableSystemLogQuery` are on (kubernetes pkg/kubelet/kubelet.go, Run)."""
        gate = self._settings.get(
            "featureGates.NodeLogQuery", Version.parse(self._kubelet.run.version).at_least("1.36")
        )
        return gate is True and self._settings.get("enableSystemLogQuery", False) is True

    @property
    def dockershim(self) -> bool:
        """Whether the kubelet speaks to Docker itself, as up to 1.23 by default (kubelet.go, PreInitRuntimeService)."""
        old = not Version.parse(self._kubelet.run.version).at_least("1.24")
        return old and self._settings.flags.text("container-runtime", "docker") == "docker"

    def runtime(self) -> CriRuntime:
        """The runtime; GoError while it does not answer."""
        if self.dockershim:
            return dockershim(self._kubelet.run, self._settings.flags)
        runtime = dial(self._kubelet.machine, self.endpoint)
        runtime.require_cri()
        self._runtime_name = runtime.name
        return runtime

    @property
    def runtime_name(self) -> str:
        """docker or containerd, as the runtime has last named itself."""
        return self._runtime_name or ("docker" if self.dockershim else "containerd")

    def problem(self) -> str | None:
        """Why the node is not ready, in the kubelet's words; None when a pod could run.

        The last part is the lab's own: the real kubelet finds out that no sandbox comes about only with the first pod.
        """
        try:
            runtime = self.runtime()
        except GoError as e:
            return f"container runtime is down, PLEG is not healthy: {e}"
        network = runtime.network_problem()
        if network is not None:
            return (
                "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
                f"message:{network}"
            )
        return self._prove(runtime)

    def _prove(self, runtime: CriRuntime) -> str | None:
        try:
            state = self._state(runtime)
            if state == self._proven:
                return None
            self._dns()
            runtime.run_sandbox("lab", "probe", f"probe-{self._kubelet.process.pid}", self._dns(), probe=True)
        except GoError as e:
            self._proven = None
            self._log("probe", str(e))
            return f"lab: no pod would start here: Failed to create pod sandbox: rpc error: code = Unknown desc = {e}"
        # An overlay's or bridge's objects may be new since; what was proven is the state before.
        self._proven = self._state(runtime)
        return None

    def _state(self, runtime: CriRuntime) -> tuple[object, ...]:
        """Whatever a sandbox depends on. While it stays, what was proven once stays true."""
        machine = self._kubelet.machine
        files: list[tuple[str, bytes]] = []
        if machine.files.is_directory(runtime.conf_dir):
            files = [(e.name, e.node.content) for e in machine.files.list(runtime.conf_dir)]
        networks = [(n["ID"], str(n.get("Subnets"))) for n in hcn.networks(machine)]
        return (*runtime.marks, tuple(files), tuple(networks), tuple(sorted(runtime.images())))

    def _dns(self, namespace: str = "default") -> dict[str, Any]:
        resolv = str(self._settings.get("resolvConf", ""))
        if resolv and not self._kubelet.run.exists(resolv) and resolv != "Host":
            self._kubelet.run.read(resolv)
        domain = str(self._settings.get("clusterDomain", ""))
        searches = [f"{namespace}.svc.{domain}", f"svc.{domain}", domain] if domain else []
        servers = self._settings.get("clusterDNS", [])
        # pkg/kubelet/network/dns/dns.go, defaultDNSOptions.
        return {"servers": servers, "searches": searches, "options": ["ndots:5"] if servers else []}

    # Each few seconds

    def sync(self, *, ready: bool) -> None:
        """Start what is new, report it, and clear away what is gone; before the node is ready only host pods."""
        client = self._identity.client
        if client is None:
            return
        if self._host_pods:
            self._work_for_host(client)
        seen = (client.latest(PODS), *self._holders())
        if seen == self._seen:
            return
        query = {"fieldSelector": f"spec.nodeName={self._identity.node}"}
        wanted = client.ask("GET", "/api/v1/pods", query=query)["items"]
        ending = [p for p in wanted if p["metadata"].get("deletionTimestamp")]
        wanted = [p for p in wanted if p not in ending]
        before, self._host_pods = self._host_pods, [p for p in wanted if self._is_host_process(p)]
        self._end_host(before)
        if not ready:
            for pod in self._host_pods:
                self._report(pod, {"phase": "Running"})
            return
        self._left_over = False
        runtime = self.runtime()
        have = {s.uid: s for s in runtime.sandboxes()}
        uids = {p["metadata"]["uid"] for p in wanted}
        kept = set()
        for sandbox in list(have.values()):
            if sandbox.uid not in uids or not runtime.ready(sandbox):
                have.pop(sandbox.uid)
                if not self._removed(runtime, sandbox):
                    kept.add(sandbox.uid)
        # A pod whose sandbox does not go neither ends nor starts again (pkg/kubelet/kuberuntime, killPodWithSyncResult).
        for pod in (one for one in ending if one["metadata"]["uid"] not in kept):
            self._end(client, pod)
        for pod in (one for one in wanted if one["metadata"]["uid"] not in kept):
            self._run(runtime, pod, have.get(pod["metadata"]["uid"]))
        if not self._left_over:
            self._seen = (client.latest(PODS), *self._holders())

    def _removed(self, runtime: CriRuntime, sandbox: PodSandbox) -> bool:
        """Whether a sandbox is gone; where not, the next sync tries again."""
        try:
            runtime.remove_sandbox(sandbox.id)
        except GoError as e:
            message = f"rpc error: code = Unknown desc = {e}"
            self._kubelet.klog_error("StopPodSandbox from runtime service failed", message, "log.go:1")
            self._left_over = True
            return False
        return True

    def _holders(self) -> tuple[int, ...]:
        """The processes that pods end with."""
        processes = self._kubelet.machine.processes
        return tuple(one.pid for name in _HOLDERS for one in processes.named(name))

    def _is_host_process(self, pod: dict[str, Any]) -> bool:
        """Neither dockershim nor cri-dockerd makes HostProcess containers."""
        return bool(pod["spec"].get("hostNetwork")) and not self._docker

    @property
    def _docker(self) -> bool:
        return self.runtime_name == "docker"

    def _work_for_host(self, client: KubeClient) -> None:
        """Let HostProcess pods do what they do: they act on the machine itself."""
        node = client.ask("GET", f"/api/v1/nodes/{self._identity.node}")
        for pod in self._host_pods:
            for repository in _repositories(pod):
                for name, work in self._outside.host_processes.items():
                    if repository.endswith(name):
                        work(self._kubelet.run, node)

    def _end_host(self, before: list[dict[str, Any]]) -> None:
        """What ran for HostProcess pods that are gone ends."""
        kept = {one for pod in self._host_pods for one in _repositories(pod)}
        for repository in {one for pod in before for one in _repositories(pod)} - kept:
            for name, end in self._outside.host_ends.items():
                if repository.endswith(name):
                    end(self._kubelet.machine)

    def _run(self, runtime: CriRuntime, pod: dict[str, Any], sandbox: PodSandbox | None) -> None:
        metadata = pod["metadata"]
        if sandbox is None and not pod["spec"].get("hostNetwork"):
            try:
                dns = self._dns(metadata["namespace"])
                sandbox = runtime.run_sandbox(metadata["namespace"], metadata["name"], metadata["uid"], dns)
            except GoError as e:
                self._event(pod, f"Failed to create pod sandbox: rpc error: code = Unknown desc = {e}")
                self._report(pod, {"phase": "Pending"})
                self._left_over = True
                return
        if sandbox is None and self._docker:
            # Unsourced: the words; that Docker makes no such container is Kubernetes' documentation
            # (tasks/configure-pod-container/create-hostprocess-pod).
            self._event(
                pod,
                "Failed to create pod sandbox: rpc error: code = Unknown desc = HostProcess containers need containerd",
            )
            self._report(pod, {"phase": "Pending"})
            return
        address = sandbox.address if sandbox is not None else ""
        waiting = self._unpulled(runtime, pod)
        if waiting:
            self._left_over = True
            self._report(pod, {"phase": "Pending", "containerStatuses": waiting})
            return
        status: dict[str, Any] = {"phase": "Running"}
        if address:
            status |= {"podIP": address, "conditions": [self._readiness(pod, address)]}
            self._outside.containers().started(pod)
        self._report(pod, status)

    def _end(self, client: KubeClient, pod: dict[str, Any]) -> None:
        """The pod's sandbox is gone: now the object goes (pkg/kubelet/status/status_manager.go, syncPod)."""
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        client.ask("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}})

    def _unpulled(self, runtime: CriRuntime, pod: dict[str, Any]) -> list[dict[str, Any]]:
        """The statuses of containers whose image cannot be pulled. Of images that the lab's registries say nothing of, it is
        taken that they are there."""
        images = self._outside.images
        waiting = []
        for container in pod["spec"].get("containers") or []:
            image = str(container.get("image", ""))
            known = (
                image in images.builds or image in images.missing or image.startswith("mcr.microsoft.com/")
            )
            if not known or image in runtime.images():
                continue
            try:
                runtime.pull(image)
            except GoError as e:
                state = {"waiting": {"reason": "ErrImagePull", "message": str(e)}}
                waiting.append({"name": container["name"], "ready": False, "image": image, "state": state})
        return waiting

    def _readiness(self, pod: dict[str, Any], address: str) -> dict[str, Any]:
        """The condition Ready: the kubelet's probes over the network come from the host itself."""
        probes = [one.get("readinessProbe") or {} for one in pod["spec"].get("containers") or []]
        remote = any("httpGet" in one or "tcpSocket" in one for one in probes)
        ready = not remote or self._kubelet.machine.hns.host_reaches(address)
        return {"type": "Ready", "status": "True" if ready else "False"}

    def _report(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        if all(pod.get("status", {}).get(k) == v for k, v in status.items()) or self._identity.client is None:
            return
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        self._identity.client.ask("PATCH", path, {"status": status}, content_type=STRATEGIC)

    def _log(self, uid: str, message: str) -> bool:
        """Into the log, once for the same words; False when the log has them already."""
        words = message.partition(" for sandbox ")[2].partition(":")[2] or message
        if self._said.get(uid) == words:
            return False
        self._said[uid] = words
        self._kubelet.klog_error("Failed to create sandbox for pod", message, "kuberuntime_sandbox.go:1")
        return True

    def _event(self, pod: dict[str, Any], message: str) -> None:
        """An event, once for the same words (the sandbox's id in them changes with every try)."""
        metadata = pod["metadata"]
        if not self._log(metadata["uid"], message) or self._identity.client is None:
            return
        body = {
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": {"kind": "Pod", "name": metadata["name"], "namespace": metadata["namespace"]},
            "type": "Warning",
            "reason": "FailedCreatePodSandBox",
            "message": message,
            "source": {"component": "kubelet", "host": self._identity.node},
        }
        try:
            self._identity.client.ask("POST", f"/api/v1/namespaces/{metadata['namespace']}/events", body)
        except ApiFailure as e:
            self._kubelet.klog_error("Server rejected event (will not retry!)", e.message, "event.go:359")


def _repositories(pod: dict[str, Any]) -> list[str]:
    """The images of a pod's containers, without their tags."""
    return [str(one.get("image", "")).partition(":")[0] for one in pod["spec"].get("containers") or []]
