"""kubelet.exe: from its flags to a Node that is Ready, or to the reason why it is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from winboot.config.compat.flags import PRIORITY_CLASSES
from winboot.config.compat.version import Version
from winboot_lab.cluster.admission import kubelet_may_set
from winboot_lab.programs import settings as reading
from winboot_lab.programs.base import Daemon, GoError, Run, go_text, klog_error
from winboot_lab.programs.cri import CriRuntime
from winboot_lab.programs.docker_cri import DOCKERSHIM_PIPE
from winboot_lab.programs.kubelet_identity import Identity
from winboot_lab.programs.kubelet_node import NodeReporter
from winboot_lab.programs.kubelet_pods import Pods
from winboot_lab.programs.kubelet_providers import ProviderError, register_providers
from winboot_lab.programs.kubelet_values import authorization_problem, resource_problems
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.session import Computer

PORT: Final = 10250
HEALTH_PORT: Final = 10248
DEFAULTS: Final[Mapping[str, Any]] = {
    "cgroupsPerQOS": True,
    "enforceNodeAllocatable": ["pods"],
    "resolvConf": "/etc/resolv.conf",
    "maxPods": 110,
    "registerNode": True,
    "port": PORT,
    "volumePluginDir": "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    # SetDefaults_KubeletConfiguration of pkg/kubelet/apis/config/v1beta1/defaults.go: on Windows too.
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
}
FOLDERS: Final = (
    "checkpoints",
    "device-plugins",
    "image_manager/pulled",
    "image_manager/pulling",
    "plugins",
    "plugins_registry",
    "pod-resources",
    "pods",
)
_PRIORITIES: Final = {
    "IDLE_PRIORITY_CLASS": "Idle",
    "BELOW_NORMAL_PRIORITY_CLASS": "BelowNormal",
    "NORMAL_PRIORITY_CLASS": "Normal",
    "ABOVE_NORMAL_PRIORITY_CLASS": "AboveNormal",
    "HIGH_PRIORITY_CLASS": "High",
    "REALTIME_PRIORITY_CLASS": "RealTime",
}


class KubeletProgram:
    """The program: a service with --windows-service, else a process that stays."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def is_service(self, argv: list[str]) -> bool:
        """Only with its flag it answers the control manager."""
        return any(a in ("--windows-service", "--windows-service=true") for a in argv)

    def serve(self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]) -> Kubelet:
        """A running kubelet."""
        return Kubelet(Run(machine, process, argv, env), self._outside)

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """`--version`, `--help`, or a start that fails before it stays."""
        run = Run(machine, process, argv, env, stdin)
        compat = self._outside.compat
        try:
            said = reading.answer(run, compat, "kubelet")
            if said is not None:
                return Exit(0, go_text(said))
            reading.set_gates(run, compat, "kubelet")
            reading.load(run, compat, "kubelet", DEFAULTS)
        except GoError as e:
            return Exit(1, b"", go_text(klog_error(run, "command failed", str(e))))
        raise run.refuse("in the foreground")


class Kubelet(Daemon):
    """A running kubelet."""

    def __init__(self, run: Run, outside: Outside) -> None:
        super().__init__(run)
        self._outside = outside
        self._identity: Identity | None = None
        self._reporter: NodeReporter | None = None
        self._pods: Pods | None = None
        # Where its dockershim listens; empty without one.
        self.cri_pipe = ""

    def on_start(self) -> Died | None:
        """Read and check everything; what is wrong here ends the process with the real one's words."""
        try:
            settings = reading.load(self.run, self._outside.compat, "kubelet", DEFAULTS)
            for warning in settings.warnings:
                self.klog(warning, "I", "codec.go:102")
            self._check(settings)
        except reading.GoPanic as e:
            self.sink(f"panic: {e}")
            return Died(2)
        except GoError as e:
            return self._failed(str(e))
        try:
            self._run_server(settings)
        except ProviderError as e:
            self.klog_error("Failed to register CRI auth plugins", str(e), "kuberuntime_manager.go:301")
            return Died(1)
        except GoError as e:
            return self._failed(f"failed to run Kubelet: {e}")
        self.klog(f'"Kubelet version" kubeletVersion="v{self.run.version}"')
        return None

    def _run_server(self, settings: reading.Settings) -> None:
        """`run` of cmd/kubelet/app/server.go, in its order: credentials first, and the runtime long after."""
        name = self._node_name(settings)
        self._identity = Identity(self, self._outside, settings, name)
        self._identity.prepare()
        self._authenticate(settings)
        self._identity.tick()
        pods = Pods(self, self._outside, settings, self._identity)
        if pods.dockershim:
            self._serve_dockershim(settings, pods)
        try:
            pods.runtime()
        except GoError as e:
            if "rpc error" not in str(e):
                raise
            what = f'validate service connection: validate CRI v1 runtime API for endpoint "{pods.endpoint}"'
            raise GoError(f"{what}: {e}") from None
        self.klog('"Validated CRI v1 runtime API"', "I", "remote_runtime.go:171")
        for problem in resource_problems(settings.config):
            raise GoError(problem)
        register_providers(self.run, settings)
        self._make_folders(settings)
        self._listen(settings)
        self._reporter = NodeReporter(self, settings, self._identity, pods)
        self._outside.kubelets[name] = (self.machine, self.process, pods)

    def _serve_dockershim(self, settings: reading.Settings, pods: Pods) -> None:
        """dockershim listens inside the kubelet (dockershim/remote/docker_server.go). Up to 1.20 it compares its cgroup
        driver with Docker's, which names none on Windows and counts as cgroupfs (docker_service.go, NewDockerService)."""
        driver = str(settings.get("cgroupDriver", "cgroupfs"))
        pods.runtime()
        if driver != "cgroupfs" and not Version.parse(self.run.version).at_least("1.21"):
            raise GoError(
                f'misconfiguration: kubelet cgroup driver: "{driver}" is different from docker cgroup driver: "cgroupfs"'
            )
        self._pods, self.cri_pipe = pods, DOCKERSHIM_PIPE

    def cri(self) -> CriRuntime:
        """What its dockershim serves."""
        assert self._pods is not None
        return self._pods.runtime()

    def _make_folders(self, settings: reading.Settings) -> None:
        """setupDataDirs of pkg/kubelet/kubelet.go, with those of its managers and volume plug-ins."""
        root = settings.flags.text("root-dir", "/var/lib/kubelet")
        for folder in (*(f"{root}/{name}" for name in FOLDERS), str(settings.get("volumePluginDir"))):
            self.machine.files.make_directory(self.run.path(folder), self.process.token)

    def _authenticate(self, settings: reading.Settings) -> None:
        """The server's side: which clients may ask the kubelet (BuildAuth of cmd/kubelet/app/auth.go)."""
        if settings.get("authentication.webhook.enabled", True) and not settings.flags.text("kubeconfig"):
            raise GoError("no client provided, cannot use webhook authentication")
        if settings.get("authentication.x509.clientCAFile"):
            self.run.read(str(settings.get("authentication.x509.clientCAFile")))
        problem = authorization_problem(settings.config)
        if problem is not None:
            raise GoError(problem)

    def _failed(self, problem: str) -> Died:
        self.klog_error("command failed", problem)
        return Died(1)

    def on_tick(self) -> Died | None:
        """Certificates first, then the Node and its pods."""
        if self._identity is None or self._reporter is None:
            return None
        ending = self._identity.tick()
        if ending is not None:
            self.klog(f'"{ending}"', "E", "transport.go:120")
            return Died(1)
        if self._identity.client is not None:
            self._reporter.tick()
        return None

    def _node_name(self, settings: reading.Settings) -> str:
        return (settings.flags.text("hostname-override").strip() or self.machine.name).lower()

    def _check(self, settings: reading.Settings) -> None:
        self._check_labels(settings)
        self._check_cgroups(settings, Version.parse(self.run.version))
        self._set_priority(settings)

    def _check_cgroups(self, settings: reading.Settings, version: Version) -> None:
        problems = []
        if settings.get("cgroupsPerQOS") is True:
            problems.append("CgroupsPerQOS (--cgroups-per-qos) true is not supported on Windows")
        given = settings.config.get("enforceNodeAllocatable")
        if given and not (version.at_least("1.31") and given == ["none"]):
            shown = f"[{' '.join(given)}]"
            problems.append(
                f"EnforceNodeAllocatable (--enforce-node-allocatable) {shown} is not supported on Windows"
            )
        if problems and not version.at_least("1.31"):
            told = ", ".join(f"invalid configuration: {problem}" for problem in problems)
            raise GoError(f"failed to validate kubelet configuration, error: [{told}], path: ")
        for problem in problems:
            self.klog(f"ignored configuration option: {problem}", "W", "validation_windows.go:36")

    def _check_labels(self, settings: reading.Settings) -> None:
        labels = dict(pair.partition("=")[::2] for pair in settings.flags.list("node-labels"))
        refused = sorted(label for label in labels if not kubelet_may_set(label))
        if refused:
            raise GoError(
                "failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified with "
                f"--node-labels: [{' '.join(refused)}]\n--node-labels in the 'kubernetes.io' namespace must begin with "
                "an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set"
            )

    def _set_priority(self, settings: reading.Settings) -> None:
        wanted = settings.flags.text("windows-priorityclass", "NORMAL_PRIORITY_CLASS")
        if wanted not in PRIORITY_CLASSES:
            raise GoError(
                f"failed OS init: unknown priority class {wanted}, valid ones are available at "
                "https://docs.microsoft.com/en-us/windows/win32/procthread/scheduling-priorities"
            )
        self.process.priority = _PRIORITIES[wanted]

    def _listen(self, settings: reading.Settings) -> None:
        """Its own port it must have; without its health port it continues, and reports that."""
        port = int(settings.get("port", PORT))
        try:
            self.machine.sockets.listen(self.process, port, address="0.0.0.0")
        except Failure as e:
            raise GoError(f"listen tcp :{port}: bind: {e.problem.message}.") from None
        try:
            self.machine.sockets.listen(self.process, HEALTH_PORT, address="127.0.0.1")
        except Failure as e:
            self.klog_error(
                "Failed to start healthz server",
                f"listen tcp 127.0.0.1:{HEALTH_PORT}: bind: {e.problem.message}.",
                "server.go:1",
            )
