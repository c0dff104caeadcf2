"""containerd.exe: a service that reads its configuration, keeps images, and makes pod sandboxes through CNI."""

from __future__ import annotations

import hashlib
import json
import tomllib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any, Final
from urllib.parse import urlsplit

from winboot.config.compat import has_stable_abi
from winboot.config.compat.version import Version
from winboot_lab.programs import cni
from winboot_lab.programs.base import Daemon, GoError, Run, go_text, log_file, start
from winboot_lab.programs.containerd_config import Config, default, parse
from winboot_lab.programs.cri import CriRuntime, PodSandbox
from winboot_lab.programs.goflags import Flags, pflags
from winboot_lab.programs.keeper import Keeper
from winboot_lab.programs.outside import Outside
from winboot_lab.windows import paths
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.scm import AUTO, FailureActions
from winboot_lab.windows.session import Computer

# How long a shim takes to start a sandbox on Windows: some seconds.
START_S: Final = 3.0
DEFAULT_CONFIG: Final = r"C:\Program Files\containerd\config.toml"
_FLAGS: Final = {
    "config": "text",
    "c": "text",
    "log-level": "text",
    "l": "text",
    "address": "text",
    "a": "text",
    "root": "text",
    "state": "text",
    "service-name": "text",
    "register-service": "bool",
    "unregister-service": "bool",
    "run-service": "bool",
    "log-file": "text",
    "version": "bool",
    "v": "bool",
    "help": "bool",
}
# Recovery that --register-service sets up: restart after 15 s twice, then nothing, forgotten after a day.
_RECOVERY: Final = FailureActions(86400, ((1, 15000), (1, 15000), (0, 0)))


class ContainerdProgram:
    """The program: the service, `config dump`, registering and unregistering itself, and --version."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def is_service(self, argv: list[str]) -> bool:
        """It talks to the control manager only with its hidden flag."""
        return "--run-service" in argv

    def serve(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]
    ) -> Containerd:
        """A running containerd."""
        return Containerd(Run(machine, process, argv, env), self._outside)

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """What ends by itself."""
        run = Run(machine, process, argv, env, stdin)
        try:
            flags = _flags(run)
            return self._console(run, flags)
        except GoError as e:
            return Exit(1, b"", go_text(str(e)))
        except Failure as e:
            return Exit(1, b"", go_text(f"containerd: {e.problem.message}"))

    def _console(self, run: Run, flags: Flags) -> Exit:
        if flags.flag("version") or flags.flag("v"):
            return Exit(0, go_text(f"containerd github.com/containerd/containerd/v2 v{run.version} lab"))
        services = run.machine.services
        name = flags.text("service-name", "containerd")
        if flags.flag("register-service"):
            kept = [a for a in run.argv[1:] if "register-service" not in a]
            line = " ".join([f'"{run.process.path}"', *(_quoted(a) for a in kept), "--run-service"])
            service = services.create(name, line, display=name, start=AUTO, description="Container runtime")
            services.set_recovery(service, _RECOVERY)
            return Exit(0)
        if flags.flag("unregister-service"):
            services.delete(services.need(name))
            return Exit(0)
        if flags.words[:2] == ["config", "dump"]:
            config = load_config(run, flags)
            return Exit(0, go_text(f"root = '{config.root}'", f"state = '{config.state}'"))
        raise run.refuse(" ".join(flags.words) or "in the foreground")


def _quoted(argument: str) -> str:
    return f'"{argument}"' if " " in argument else argument


def _flags(run: Run) -> Flags:
    return pflags(run.argv[1:], _FLAGS.get)


def load_config(run: Run, flags: Flags) -> Config:
    """The configuration the flags name, or the default's."""
    path = flags.text("config", flags.text("c", DEFAULT_CONFIG))
    version = Version.parse(run.version)
    given = "config" in flags or "c" in flags
    if not run.exists(path):
        if given:
            run.read(path, "containerd: failed to load TOML from")
        return default(version)
    return parse(run.read(path), path, version, lambda pattern: _imported(run, path, pattern))


def _imported(run: Run, parent: str, pattern: str) -> list[tuple[str, bytes]]:
    """The files of an entry of `imports`, in the order of their names (config.go, resolveImports)."""
    folder, _, name = pattern.replace("/", "\\").rpartition("\\")
    if folder[1:2] != ":":
        folder = "\\".join(part for part in (paths.parent(run.path(parent)), folder) if part)
    if "*" not in name:
        return [(paths.join(folder, name), run.read(paths.join(folder, name)))]
    found = run.machine.files.list(folder) if run.machine.files.is_directory(folder) else []
    names = sorted(entry.name for entry in found if fnmatch(entry.name.lower(), name.lower()))
    return [(paths.join(folder, one), run.read(paths.join(folder, one))) for one in names]


class Containerd(Keeper):
    """A running containerd. Images and sandboxes are kept below its root, so that they outlive the process."""

    name = "containerd"

    def __init__(self, run: Run, outside: Outside) -> None:
        super().__init__(run, outside)
        self.config = Config()
        self.version = Version.parse(run.version)

    def on_start(self) -> Died | None:
        """Read the configuration; without CRI it stays, but serves no pods."""
        try:
            flags = _flags(self.run)
            if "log-file" in flags:
                self.sink = log_file(self.machine, self.run.path(flags.text("log-file")))
            self.config = self._on_its_volume(load_config(self.run, flags))
        except GoError as e:
            return self._dies(str(e))
        try:
            self.take_pipe(self.config.pipe)
        except GoError as e:
            return self._dies(f"containerd: failed to get listener for main endpoint: {e}")
        for warning in self.config.warnings:
            self._say("warning", warning)
        for section in self.config.ignored:
            self._say("warning", f"Ignoring unknown key in TOML for plugin: {section}")
        if self.config.broken is not None:
            self._say("warning", f"failed to load plugin io.containerd.grpc.v1.cri: {self.config.broken}")
        for folder in (self.config.root, self.config.state):
            self.machine.files.make_directory(self.run.path(folder))
        self._say("info", f"containerd successfully booted, serving {self.config.pipe}")
        return None

    def _on_its_volume(self, config: Config) -> Config:
        """Without its snapshotter CRI does not load (plugins/snapshots/windows/windows.go, NewWindowsSnapshotter)."""
        volume = self.machine.files.volumes.get(self.run.path(config.root)[:2])
        if volume is None:
            raise GoError(f"containerd: mkdir {config.root}: The system cannot find the path specified.")
        if volume.format == "NTFS" or config.broken is not None:
            return config
        return replace(
            config, broken=f"{config.root} is not on an NTFS volume - only NTFS volumes are supported"
        )

    def _say(self, level: str, message: str) -> None:
        now = self.machine.now()
        self.sink(f'time="{now:%Y-%m-%dT%H:%M:%S}Z" level={level} msg={json.dumps(message)}')

    def _dies(self, problem: str) -> Died:
        self._say("fatal", problem)
        return Died(1, 1)

    # What clients see

    @property
    def cri_pipe(self) -> str:
        """Where it listens."""
        return self.config.pipe

    def cri(self) -> CriRuntime:
        """It serves CRI itself."""
        return self

    @property
    def conf_dir(self) -> str:
        """The folder of CNI configurations, absolute."""
        return self.run.path(self.config.conf_dir)

    @property
    def sandbox_image(self) -> str:
        """What each sandbox is made of."""
        return self.config.sandbox_image

    @property
    def marks(self) -> tuple[object, ...]:
        """What another start of the runtime changes."""
        return (self.process.pid,)

    def require_cri(self) -> None:
        """GoError when the CRI plug-in did not load."""
        if self.config.broken is not None:
            raise GoError("rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService")

    def network_problem(self) -> str | None:
        """Why pods cannot be connected, as the status of the runtime says it; None when they can."""
        try:
            cni.load(self.run, self.config.conf_dir)
        except GoError as e:
            told = cni.NOT_INITIALISED if cni.NOT_INITIALISED in str(e) else str(e)
            return f"Network plugin returns error: {told}"
        return None

    # Images

    def _file_of(self, part: str) -> str:
        """What the snapshotter knows of its layers is in a file of its own (containerd: plugins/snapshots/windows/common.go,
        NewMetaStore)."""
        if part in ("layers", "layer_of"):
            return self.run.path(rf"{self.config.root}\io.containerd.snapshotter.v1.windows\metadata.db")
        return self.run.path(rf"{self.config.root}\io.containerd.metadata.v1.bolt\meta.db")

    def _layer(self, number: int) -> str:
        return self.run.path(rf"{self.config.root}\io.containerd.snapshotter.v1.windows\snapshots\{number}")

    def pull(self, reference: str) -> str:
        """Pull an image; GoError as containerd words it. Gives its id."""
        failed = f'failed to pull and unpack image "{reference}"'
        host = reference.partition("/")[0]
        problem = self._unreachable(host)
        if problem is not None:
            raise GoError(f'{failed}: failed to resolve reference "{reference}": {problem}')
        builds = self._published(reference)
        if builds is None:
            raise GoError(f'{failed}: failed to resolve reference "{reference}": {reference}: not found')
        if not self._runs_here(builds):
            raise GoError(f"{failed}: no match for platform in manifest: not found")
        return self.import_image(reference, builds)

    def _runs_here(self, builds: tuple[int, ...]) -> bool:
        host = self.machine.build
        stable = (
            has_stable_abi(self.outside.compat, self.version)
            and host >= 26100
            and any(20348 <= b <= host for b in builds)
        )
        return host in builds or stable

    def _mirrors(self, host: str) -> Iterator[str]:
        """The hosts of the first hosts.toml that speaks for the registry."""
        if not self.config.certs:
            return
        folder = host.replace(":", "_") + "_" if ":" in host else host
        for name in (folder, "_default"):
            path = rf"{self.config.certs}\{name}\hosts.toml"
            if self.run.exists(path):
                try:
                    data = tomllib.loads(self.run.read(path).decode("utf-8"))
                except (tomllib.TOMLDecodeError, UnicodeDecodeError):
                    return
                self._require_files(data)
                yield from (urlsplit(url).netloc for url in data.get("host") or {})
                return

    def _require_files(self, data: Mapping[str, Any]) -> None:
        """Every host's files are read for every pull (core/remotes/docker/config/hosts.go, tlsConfigFromHost)."""
        for one in (*(data.get("host") or {}).values(), data):
            pairs = one.get("client") or []
            named = [("CA cert", one["ca"])] if "ca" in one else []
            named += [("CERT file", path) for pair in pairs for path in pair]
            for what, path in named:
                if not self.run.exists(path):
                    missing = "The system cannot find the file specified."
                    raise GoError(f'unable to read {what} "{path}": open {path}: {missing}')

    # Sandboxes

    def listed(self) -> list[PodSandbox]:
        """Those that clients see: a sandbox is stored when its shim has started, seconds after the plug-ins gave it
        an address (containerd internal/cri/server/sandbox_run.go: setupPodNetwork, StartSandbox, sandboxStore.Add)."""
        now = self.machine.now().timestamp()
        return [one for one in self.sandboxes() if now - one.created / 1e9 >= START_S]

    def ready(self, sandbox: PodSandbox) -> bool:
        """Whether its shim still runs."""
        shim = self.machine.processes.get(sandbox.shim)
        return shim is not None and shim.name == "containerd-shim-runhcs-v1"

    def run_sandbox(
        self, namespace: str, name: str, uid: str, dns: Mapping[str, Any], *, probe: bool = False
    ) -> PodSandbox:
        """Make a sandbox: pause image, network, shim. GoError in the words that FailedCreatePodSandBox repeats.

        With `probe` nothing is left behind: it only shows whether a pod would get its network.
        """
        self.require_cri()
        image = self.config.sandbox_image
        if image not in self.images():
            try:
                self.pull(image)
            except GoError as e:
                raise GoError(
                    f'failed to get sandbox image "{image}": failed to pull image "{image}": {e}'
                ) from None
        self.require_plain_folder(self.run.path(self.config.root))
        identity = hashlib.sha256(f"{uid} {self.machine.now()}".encode()).hexdigest()
        sandbox = cni.Sandbox(
            identity, str(uuid.uuid4()), f"K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}"
        )
        result = self._connect(sandbox, dns)
        address = str(result["ips"][0]["address"]).partition("/")[0] if result.get("ips") else ""
        if probe:
            self._disconnect(sandbox)
            return PodSandbox(identity, namespace, name, uid, address, 0, 0)
        shim = self._shim(identity)
        made = PodSandbox(
            identity, namespace, name, uid, address, int(self.machine.now().timestamp() * 1e9), shim
        )
        self.add_sandbox(made)
        return made

    def _connect(self, sandbox: cni.Sandbox, dns: Mapping[str, Any]) -> dict[str, Any]:
        try:
            network = cni.load(self.run, self.config.conf_dir)
            return cni.run_list(self.run, "ADD", network, sandbox, self.config.bin_dirs, {"dns": dns})
        except GoError as e:
            raise GoError(f'failed to setup network for sandbox "{sandbox.id}": {e}') from None

    def _disconnect(self, sandbox: cni.Sandbox) -> None:
        network = cni.load(self.run, self.config.conf_dir)
        cni.run_list(self.run, "DEL", network, sandbox, self.config.bin_dirs, {})

    def _shim(self, identity: str) -> int:
        folder = self.process.path.rpartition("\\")[0]
        line = f'"{folder}\\containerd-shim-runhcs-v1.exe" -namespace k8s.io -id {identity}'
        try:
            return start(
                self.machine, line, parent=self.process, env=self.run.env, directory=folder, sink=self.sink
            ).pid
        except Failure as e:
            raise GoError(
                f"failed to start sandbox task: failed to start shim: {e.problem.message}"
            ) from None

    def remove_sandbox(self, identity: str) -> None:
        """Stop and remove a sandbox; its address goes back."""
        found = next((s for s in self.sandboxes() if s.id == identity), None)
        if found is None:
            return
        try:
            self._disconnect(cni.Sandbox(found.id, ""))
        except GoError as e:
            self._say("error", f"failed to destroy network for sandbox {identity}: {e}")
        if self.ready(found):
            self.machine.processes.kill(found.shim)
        self.drop_sandbox(identity)


class ShimProgram:
    """containerd-shim-runhcs-v1.exe: one process a sandbox, for as long as the sandbox lives."""

    def is_service(self, argv: list[str]) -> bool:
        """Never."""
        return False

    def serve(self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]) -> Daemon:
        """It just stays."""
        return Daemon(Run(machine, process, argv, env))

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """The program has no use on a command line."""
        return Exit(1, b"", go_text("containerd-shim-runhcs-v1: flag provided but not defined"))
