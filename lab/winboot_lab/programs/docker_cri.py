"""Docker behind the container runtime interface: dockershim inside the kubelet (up to 1.23), and cri-dockerd.exe.

Sources: kubernetes/kubernetes 1.19 to 1.23, pkg/kubelet/dockershim, and Mirantis/cri-dockerd, which was made from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from winboot.config.compat.version import Version
from winboot_lab.programs import cni
from winboot_lab.programs.base import Daemon, GoError, Run, go_text
from winboot_lab.programs.cri import PodSandbox, address_of
from winboot_lab.programs.docker import Dockerd, connect
from winboot_lab.programs.goflags import Flags, pflags
from winboot_lab.windows import paths
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.session import Computer

DOCKERSHIM_PIPE: Final = r"\\.\pipe\dockershim"
# libcni 0.8 of Kubernetes 1.19 to 1.23, and 1.1 of cri-dockerd (pkg/types, implementedSpecVersions).
_SPECS: Final = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0")
# The vendored client's version, where no endpoint is named (libdocker/client.go, getDockerClient; docker/api/common.go).
_CLIENTS: Final = (("1.14", "1.38"), ("1.15", "1.40"), ("1.21", "1.41"))
_CRI_DOCKERD_CLIENT: Final = "1.46"
# pkg/kubelet/config/flags.go and options/container_runtime.go; cmd/cri/options/options.go.
DOCKERSHIM: Final[Mapping[str, str]] = {
    "cni-bin-dir": "/opt/cni/bin",
    "cni-conf-dir": "/etc/cni/net.d",
    "pod-infra-container-image": "k8s.gcr.io/pause:3.6",
    "root": "/var/lib/dockershim",
}
CRI_DOCKERD: Final[Mapping[str, str]] = {
    "cni-bin-dir": r"C:\k\cni\bin",
    "cni-conf-dir": r"C:\k\cni\config",
    "network-plugin": "cni",
    "pod-infra-container-image": "registry.k8s.io/pause:3.10",
    "root": "/var/lib/cri-dockerd",
}


@dataclass(frozen=True, slots=True)
class DockerCri:
    """What the flags of a kubelet or of cri-dockerd make of the engine."""

    run: Run
    flags: Flags
    defaults: Mapping[str, str]
    engine: Dockerd
    specs: tuple[str, ...] = _SPECS

    name = "docker"

    @property
    def version(self) -> object:
        """The engine's version."""
        return self.engine.version

    def _flag(self, name: str) -> str:
        return self.flags.text(name, self.defaults.get(name, ""))

    @property
    def conf_dir(self) -> str:
        """The folder of CNI configurations, absolute."""
        return self.run.path(self._flag("cni-conf-dir"))

    @property
    def sandbox_image(self) -> str:
        """What each sandbox is made of."""
        return self._flag("pod-infra-container-image")

    @property
    def marks(self) -> tuple[object, ...]:
        """What another start of the engine or of its CRI changes."""
        return (self.run.process.pid, self.engine.process.pid)

    def require_cri(self) -> None:
        """It always serves it."""

    def network_problem(self) -> str | None:
        """As the runtime's status words it (network/plugins.go and network/cni/cni.go)."""
        if self._flag("network-plugin") != "cni":
            raise self.run.refuse(f"--network-plugin={self._flag('network-plugin')}")
        try:
            cni.load(self.run, self.conf_dir)
        except GoError:
            return "docker: network plugin is not ready: cni config uninitialized"
        return None

    def images(self) -> dict[str, dict[str, Any]]:
        """The engine's."""
        return self.engine.images()

    def pull(self, reference: str) -> str:
        """By the engine."""
        return self.engine.pull(reference)

    def remove_image(self, reference: str) -> None:
        """Of the engine."""
        self.engine.remove_image(reference)

    # Sandboxes

    @property
    def _checkpoints(self) -> str:
        return self.run.path(f"{self.defaults['root']}/sandbox")

    def sandboxes(self) -> list[PodSandbox]:
        """The pause containers, and each checkpoint that has none (docker_sandbox.go, ListPodSandbox)."""
        found = self.engine.sandboxes()
        ids, files = {one.id for one in found}, self.run.machine.files
        names = (
            [e.name for e in files.list(self._checkpoints)] if files.is_directory(self._checkpoints) else []
        )
        for name in names:
            if name not in ids:
                data = json.loads(self.run.read(paths.join(self._checkpoints, name)))
                found.append(PodSandbox(name, data["namespace"], data["name"], "", "", 0, 0))
        return found

    def listed(self) -> list[PodSandbox]:
        """All of them."""
        return self.sandboxes()

    def ready(self, sandbox: PodSandbox) -> bool:
        """Whether the engine that started it still runs: its containers end with it."""
        return self.engine.runs(sandbox)

    def run_sandbox(
        self, namespace: str, name: str, uid: str, dns: Mapping[str, Any], *, probe: bool = False
    ) -> PodSandbox:
        """RunPodSandbox: pause image, pause container with a checkpoint, network. GoError in the words of the event."""
        if self.sandbox_image not in self.images():
            self.pull(self.sandbox_image)
        self.engine.require_plain_folder(self.engine.root)
        machine = self.run.machine
        identity = hashlib.sha256(f"{uid} {machine.now()}".encode()).hexdigest()
        pod = f"K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}"
        try:
            address = self._connect(identity, pod, dns)
        except GoError as e:
            problems = [
                f'failed to set up sandbox container "{identity}" network for pod "{name}": networkPlugin cni failed to '
                f'set up pod "{name}_{namespace}" network: {e}'
            ]
            try:
                self._disconnect(identity, namespace, name)
            except GoError as left:
                problems.append(
                    f'failed to clean up sandbox container "{identity}" network for pod "{name}": {left}'
                )
            raise GoError(_aggregate(problems)) from None
        if probe:
            self._disconnect(identity, namespace, name)
            return PodSandbox(identity, namespace, name, uid, address, 0, 0)
        made = PodSandbox(
            identity,
            namespace,
            name,
            uid,
            address,
            int(machine.now().timestamp() * 1e9),
            self.engine.process.pid,
        )
        checkpoint = {"version": "v1", "name": name, "namespace": namespace}
        self.run.write(paths.join(self._checkpoints, identity), json.dumps(checkpoint).encode())
        self.engine.add_sandbox(made)
        return made

    def _connect(self, identity: str, pod: str, dns: Mapping[str, Any]) -> str:
        """ADD comes for the pause container, for each other one, and with each look at the pod's status (cni_windows.go,
        GetPodNetworkStatus): the same pod keeps one address."""
        network = cni.load(self.run, self.conf_dir)
        other = hashlib.sha256(identity.encode()).hexdigest()
        calls = (identity, "none"), (other, f"container:{identity}"), (identity, "none")
        addresses = [self._add(network, cni.Sandbox(one, netns, pod), dns) for one, netns in calls]
        if len(set(addresses)) > 1:
            raise GoError(f"lab: the plug-in gave one pod {', '.join(addresses)}")
        return addresses[0]

    def _add(self, network: cni.NetworkList, sandbox: cni.Sandbox, dns: Mapping[str, Any]) -> str:
        result = cni.run_list(self.run, "ADD", network, sandbox, self._bins(), {"dns": dns})
        if network.version not in self.specs:
            # containernetworking/cni pkg/version, NewResult.
            raise GoError(f'unsupported CNI result version "{network.version}"')
        return str(result["ips"][0]["address"]).partition("/")[0]

    def _bins(self) -> list[str]:
        return self._flag("cni-bin-dir").split(",")

    def _disconnect(self, identity: str, namespace: str, name: str) -> None:
        """TearDownPod (network/plugins.go)."""
        try:
            network = cni.load(self.run, self.conf_dir)
            cni.run_list(self.run, "DEL", network, cni.Sandbox(identity, "none"), self._bins(), {})
        except GoError as e:
            raise GoError(
                f'networkPlugin cni failed to teardown pod "{name}_{namespace}" network: {e}'
            ) from None

    def remove_sandbox(self, identity: str) -> None:
        """StopPodSandbox and RemovePodSandbox: network, container, checkpoint. Where the first fails the container is stopped
        and kept: the kubelet asks again (docker_sandbox.go, StopPodSandbox)."""
        found = next((one for one in self.sandboxes() if one.id == identity), None)
        if found is None:
            return
        try:
            self._disconnect(identity, found.namespace, found.name)
        except GoError:
            self.engine.stop_sandbox(identity)
            if all(one.id != identity for one in self.engine.sandboxes()):
                self._forget(identity)
            raise
        self.engine.drop_sandbox(identity)
        self._forget(identity)

    def _forget(self, identity: str) -> None:
        path = paths.join(self._checkpoints, identity)
        if self.run.machine.files.exists(path):
            self.run.machine.files.delete(path)


def _aggregate(problems: list[str]) -> str:
    """Errors as one (apimachinery pkg/util/errors, NewAggregate)."""
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


def dockershim(run: Run, flags: Flags) -> DockerCri:
    """The kubelet's own; GoError where no engine answers, or one that refuses it (docker_service.go, NewDockerService)."""
    version = Version.parse(run.version)
    client = next(api for first, api in reversed(_CLIENTS) if version.at_least(first))
    return DockerCri(run, flags, DOCKERSHIM, _engine(run, flags, client))


def _engine(run: Run, flags: Flags, client: str) -> Dockerd:
    endpoint = flags.text("docker-endpoint")
    spoken = "" if endpoint else run.env.get("DOCKER_API_VERSION", client)
    try:
        return connect(run.machine, endpoint or run.env.get("DOCKER_HOST", ""), spoken)
    except GoError as e:
        raise GoError(f"failed to get docker version: {e}") from None


# config/options.go and cmd/server.go of cri-dockerd.
_TEXTS: Final = (
    *(
        "container-runtime-endpoint",
        "docker-endpoint",
        "network-plugin",
        "cni-bin-dir",
        "cni-conf-dir",
        "cni-cache-dir",
    ),
    *(
        "network-plugin-mtu",
        "pod-infra-container-image",
        "image-pull-progress-deadline",
        "runtime-request-timeout",
    ),
    *(
        "streaming-bind-addr",
        "pod-cidr",
        "hairpin-mode",
        "cri-dockerd-root-directory",
        "runtime-cgroups",
        "log-level",
    ),
)
_FLAGS: Final = dict.fromkeys(_TEXTS, "text") | dict.fromkeys(
    ("ipv6-dual-stack", "version", "buildinfo", "help"), "bool"
)


class CriDockerdProgram:
    """cri-dockerd.exe: it answers no service control manager (backend/daemon_windows.go is empty)."""

    def is_service(self, argv: list[str]) -> bool:
        """Never."""
        return False

    def serve(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]
    ) -> CriDockerd:
        """A running one."""
        return CriDockerd(Run(machine, process, argv, env))

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """--version."""
        run = Run(machine, process, argv, env, stdin)
        try:
            flags = pflags(argv[1:], _FLAGS.get)
        except GoError as e:
            return Exit(1, b"", go_text(str(e)))
        if flags.flag("version"):
            return Exit(0, go_text(f"cri-dockerd {run.version} (lab)"))
        raise run.refuse("in the foreground")


class CriDockerd(Daemon):
    """A running cri-dockerd."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._flags = Flags()

    def on_start(self) -> Died | None:
        """Read the flags, look for the engine, listen."""
        try:
            self._flags = pflags(self.run.argv[1:], _FLAGS.get)
            self.cri()
            self.take_pipe(self.cri_pipe)
        except GoError as e:
            self.sink(f"level=fatal msg={json.dumps(str(e))}")
            return Died(1)
        return None

    @property
    def cri_pipe(self) -> str:
        """Where it listens."""
        endpoint = self._flags.text("container-runtime-endpoint", "npipe:////./pipe/cri-dockerd")
        return address_of(endpoint).replace("/", "\\")

    def cri(self) -> DockerCri:
        """The engine behind it."""
        engine = _engine(self.run, self._flags, _CRI_DOCKERD_CLIENT)
        return DockerCri(self.run, self._flags, CRI_DOCKERD, engine, (*_SPECS, "1.0.0"))
