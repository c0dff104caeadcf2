"""kubelet.exe: from its flags to a Node that is Ready, or to the reason why it is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from winboot.config.compat.flags import PRIORITY_CLASSES
from winboot.config.compat.version import Version
from winboot_lab.cluster.admission import kubelet_may_set
from winboot_lab.programs import settings as reading
from winboot_lab.programs.base import Daemon, GoError, Run, go_text
from winboot_lab.programs.containerd import dial
from winboot_lab.programs.kubelet_identity import Identity
from winboot_lab.programs.kubelet_node import NodeReporter
from winboot_lab.programs.kubelet_pods import Pods
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.programs_api import Died, Exit

if TYPE_CHECKING:
    from winboot_lab.windows.machine import Machine
    from winboot_lab.windows.processes import Process

PORT: Final = 10250
HEALTH_PORT: Final = 10248
DEFAULTS: Final[Mapping[str, Any]] = {
    "cgroupsPerQOS": True,
    "enforceNodeAllocatable": ["pods"],
    "resolvConf": "/etc/resolv.conf",
    "maxPods": 110,
    "registerNode": True,
    "port": PORT,
}
_PRIORITIES: Final = {
    "IDLE_PRIORITY_CLASS": "Idle",
    "BELOW_NORMAL_PRIORITY_CLASS": "BelowNormal",
    "NORMAL_PRIORITY_CLASS": "Normal",
    "ABOVE_NORMAL_PRIORITY_CLASS": "AboveNormal",
    "HIGH_PRIORITY_CLASS": "High",
    "REALTIME_PRIORITY_CLASS": "RealTime",
}
_STARTS: Final = "failed to run Kubelet"


class KubeletProgram:
    """The program: a service with --windows-service, else a process that stays."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def is_service(self, argv: list[str]) -> bool:
        """Only with its flag it answers the control manager."""
        return any(a in ("--windows-service", "--windows-service=true") for a in argv)

    def serve(self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str]) -> Kubelet:
        """A running kubelet."""
        return Kubelet(Run(machine, process, argv, env), self._outside)

    def run(
        self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
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
            return Exit(1, b"", go_text(f"Error: {e}"))
        raise run.refuse("in the foreground")


class Kubelet(Daemon):
    """A running kubelet."""

    def __init__(self, run: Run, outside: Outside) -> None:
        super().__init__(run)
        self._outside = outside
        self._identity: Identity | None = None
        self._reporter: NodeReporter | None = None

    def on_start(self) -> Died | None:
        """Read and check everything; what is wrong here ends the process with the real one's words."""
        try:
            settings = reading.load(self.run, self._outside.compat, "kubelet", DEFAULTS)
            for warning in settings.warnings:
                self.klog(warning, "W", "codec.go:1")
            self._check(settings)
            self._listen(settings)
        except GoError as e:
            return self._failed(str(e))
        name = self._node_name(settings)
        self._identity = Identity(self, self._outside, settings, name)
        try:
            self._identity.prepare()
        except GoError as e:
            return self._failed(f"{_STARTS}: {e}")
        pods = Pods(self, self._outside, settings, self._identity)
        self._reporter = NodeReporter(self, settings, self._identity, pods)
        self._outside.kubelets[name] = (self.machine, self.process, pods)
        self.klog(f'"Kubelet version" kubeletVersion="v{self.run.version}"')
        return None

    def _failed(self, problem: str) -> Died:
        self.klog_error("command failed", problem)
        return Died(1)

    def on_tick(self) -> Died | None:
        """Certificates first, then the Node and its pods."""
        if self._identity is None or self._reporter is None:
            return None
        self._identity.tick()
        if self._identity.client is not None:
            self._reporter.tick()
        return None

    def _node_name(self, settings: reading.Settings) -> str:
        return (settings.flags.text("hostname-override").strip() or self.machine.name).lower()

    def _check(self, settings: reading.Settings) -> None:
        version = Version.parse(self.run.version)
        self._check_cgroups(settings, version)
        self._check_labels(settings)
        self._set_priority(settings)
        ca = settings.get("authentication.x509.clientCAFile")
        if ca and not self.run.exists(str(ca)):
            try:
                self.run.read(str(ca))
            except GoError as e:
                raise GoError(f"{_STARTS}: unable to load client CA file {ca}: {e}") from None
        if not settings.flags.text("kubeconfig") and not settings.flags.text("bootstrap-kubeconfig"):
            self.klog('"Standalone mode, no API client"', "W")
        endpoint = str(
            settings.get("containerRuntimeEndpoint") or settings.flags.text("container-runtime-endpoint")
        )
        if not endpoint:
            raise GoError(
                f"{_STARTS}: the container runtime endpoint address was not specified or empty, use "
                "--container-runtime-endpoint to set"
            )
        try:
            dial(self.machine, endpoint).require_cri()
        except GoError as e:
            what = f'validate service connection: validate CRI v1 runtime API for endpoint "{endpoint}"'
            raise GoError(f"{_STARTS}: {what}: {e}") from None

    def _check_cgroups(self, settings: reading.Settings, version: Version) -> None:
        problems = []
        if settings.get("cgroupsPerQOS") is True:
            problems.append(
                "invalid configuration: CgroupsPerQOS (--cgroups-per-qos) true is not supported on Windows"
            )
        if settings.config.get("enforceNodeAllocatable"):
            given = settings.config["enforceNodeAllocatable"]
            if not (version.at_least("1.31") and given == ["none"]):
                problems.append(
                    "invalid configuration: EnforceNodeAllocatable (--enforce-node-allocatable) "
                    f"{given} is not supported on Windows"
                )
        if problems and not version.at_least("1.31"):
            raise GoError(f"failed to validate kubelet configuration, error: [{', '.join(problems)}], path: ")
        for problem in problems:
            self.klog(f'"{problem}"', "W", "validation_windows.go:1")

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
            raise GoError(f"failed to initialize kubelet: unknown priority class {wanted}")
        self.process.priority = _PRIORITIES[wanted]

    def _listen(self, settings: reading.Settings) -> None:
        for port in (int(settings.get("port", PORT)), HEALTH_PORT):
            address = "127.0.0.1" if port == HEALTH_PORT else "0.0.0.0"
            try:
                self.machine.sockets.listen(self.process, port, address=address)
            except Failure as e:
                raise GoError(f"{_STARTS}: listen tcp :{port}: bind: {e.problem.message}.") from None
