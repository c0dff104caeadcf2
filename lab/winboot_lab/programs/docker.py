"""dockerd.exe, the service that keeps images, containers and networks, and docker.exe, its command line.

Where no other source is named: moby/moby, cmd/dockerd/service_windows.go, daemon/daemon_windows.go, daemon/config/config.go.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from winboot.config.compat.docker import daemon_keys, engine_row
from winboot.config.compat.version import Version
from winboot_lab.programs import cni, hcn
from winboot_lab.programs.base import GoError, Run, fetch_served, go_text
from winboot_lab.programs.cri import PodSandbox
from winboot_lab.programs.goflags import Flags, pflags
from winboot_lab.programs.keeper import Keeper
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.hns import NON_PERSISTENT
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.scm import AUTO, FailureActions
from winboot_lab.windows.session import Computer

SERVER_2019: Final = 17763
PIPE: Final = r"\\.\pipe\docker_engine"
DATA: Final = r"C:\ProgramData\docker"
CONFIG: Final = DATA + r"\config\daemon.json"
_FLAGS: Final = {
    "config-file": "text",
    "data-root": "text",
    "host": "text",
    "H": "text",
    "exec-opt": "text",
    "log-level": "text",
    "debug": "bool",
    "D": "bool",
    "service-name": "text",
    "register-service": "bool",
    "unregister-service": "bool",
    "run-service": "bool",
    "version": "bool",
    "v": "bool",
}
_RECOVERY: Final = FailureActions(86400, ((1, 15000), (1, 15000), (0, 0)))
_NAT: Final = {"AddressPrefix": "172.30.208.0/20", "GatewayAddress": "172.30.208.1"}


class DockerdProgram:
    """The program: the service, registering and unregistering itself, and --version."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def is_service(self, argv: list[str]) -> bool:
        """It talks to the control manager only with its hidden flag."""
        return "--run-service" in argv

    def serve(self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]) -> Dockerd:
        """A running dockerd."""
        return Dockerd(Run(machine, process, argv, env), self._outside)

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """What ends by itself."""
        run = Run(machine, process, argv, env, stdin)
        try:
            return self._console(run, pflags(run.argv[1:], _FLAGS.get))
        except GoError as e:
            return Exit(1, b"", go_text(str(e)))
        except Failure as e:
            return Exit(1, b"", go_text(e.problem.message))

    def _console(self, run: Run, flags: Flags) -> Exit:
        services, name = run.machine.services, flags.text("service-name", "docker")
        if flags.flag("version") or flags.flag("v"):
            return Exit(0, go_text(f"Docker version {run.version}, build lab"))
        if flags.flag("register-service"):
            kept = [one for one in run.argv[1:] if "register-service" not in one]
            line = " ".join([f'"{run.process.path}"', "--run-service", *kept])
            services.set_recovery(services.create(name, line, display="Docker Engine", start=AUTO), _RECOVERY)
            return Exit(0)
        if flags.flag("unregister-service"):
            services.delete(services.need(name))
            return Exit(0)
        raise run.refuse(" ".join(flags.words) or "in the foreground")


class Dockerd(Keeper):
    """A running dockerd. A stop of it ends its containers: `live-restore` is no key of Windows."""

    def __init__(self, run: Run, outside: Outside) -> None:
        super().__init__(run, outside)
        self.config: dict[str, Any] = {}
        self.version = Version.parse(run.version)

    def on_start(self) -> Died | None:
        """Check Windows, read the configuration, take the pipe, and take over the networks that HNS has."""
        try:
            self._check_system()
            flags = pflags(self.run.argv[1:], _FLAGS.get)
            self.config = self._load(flags)
            self._require_known(flags)
            # The keys of flags and of the file are the same (daemon/config/config.go).
            self.config |= {"data-root": flags.text("data-root", self.config.get("data-root", DATA))}
            self._listen()
            self.machine.files.make_directory(self.root)
            self._take_networks()
        except GoError as e:
            self.machine.events.write("Application", "docker", 1, f"fatal: {e}")
            return Died(1, 1)
        return None

    def _check_system(self) -> None:
        if any(self.machine.services.find(name) is None for name in ("hns", "vmcompute")):
            raise GoError(
                "a required service is not installed, ensure the Containers feature is installed: "
                "failed to open service hns: The specified service does not exist as an installed service."
            )

    def _require_known(self, flags: Flags) -> None:
        """What would change where it listens, or how its containers run, is refused."""
        for name in ("host", "H", "exec-opt"):
            if name in flags:
                raise self.run.refuse(f"--{name}={flags.text(name)}")
        if "hosts" in self.config:
            raise self.run.refuse(f"hosts {self.config['hosts']} in daemon.json")

    def _load(self, flags: Flags) -> dict[str, Any]:
        path = flags.text("config-file", CONFIG)
        failed = f"unable to configure the Docker daemon with file {path}"
        if not self.run.exists(path):
            if "config-file" in flags:
                raise GoError(f"{failed}: open {path}: The system cannot find the file specified.")
            return {}
        raw = self.run.read(path)
        if self.version.major >= 29:
            # getConflictFreeConfiguration of 29 takes a byte order mark.
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        config = cni.decode_json(raw, failed)
        unknown = sorted(set(config) - daemon_keys(self.outside.compat, self.version))
        if unknown:
            raise GoError(
                f"{failed}: the following directives don't match any configuration option: {', '.join(unknown)}"
            )
        both = sorted(key for key in config if key in flags or key.removesuffix("s") in flags)
        if both:
            raise GoError(
                f"{failed}: the following directives are specified both as a flag and in the configuration file: "
                f"{', '.join(both)}"
            )
        return config

    def _listen(self) -> None:
        try:
            self.take_pipe(PIPE)
        except GoError as e:
            raise GoError(f"failed to load listeners: {e}") from None

    @property
    def root(self) -> str:
        """The folder of images, containers and networks."""
        return self.run.path(str(self.config["data-root"]))

    # The API

    @property
    def api(self) -> str:
        """The newest API version that it speaks."""
        return str(engine_row(self.outside.compat, self.version)["api"])

    def require_client(self, version: str) -> None:
        """GoError for a client that speaks an API version which this engine refuses; one without a version in its URLs gets
        the engine's own (api/server/middleware/version.go)."""
        lowest = str(
            self.config.get("min-api-version") or engine_row(self.outside.compat, self.version)["lowest"]
        )
        if version and Version.parse(version) < Version.parse(lowest):
            raise GoError(
                f"Error response from daemon: client version {version} is too old. Minimum supported API version is "
                f"{lowest}, please upgrade your client to a newer version"
            )
        if version and Version.parse(version) > Version.parse(self.api):
            raise GoError(
                f"Error response from daemon: client version {version} is too new. Maximum supported API version is "
                f"{self.api}"
            )

    # Networks: initNetworkController and initBridgeDriver

    def networks(self) -> list[dict[str, str]]:
        """Docker's networks: name, id, driver, and the id of the HNS network behind it."""
        found: list[dict[str, str]] = self._kept("networks") or []
        return found

    def _take_networks(self) -> None:
        """Docker takes every network of HNS as its own; of those that HNS has not, NAT ones are made again, and others are
        forgotten. Each has a new id (moby/moby#43408)."""
        there = {str(one["ID"]): one for one in hcn.networks(self.machine)}
        lost = [
            one
            for one in self.networks()
            if one["driver"] == "nat" and one["name"] != "nat" and one["hns"] not in there
        ]
        self._keep("networks", [self._network("none", "null", "")])
        for identity, one in there.items():
            if one["Type"] not in ("Private", "Internal", "ICS"):
                self._add(self._network(str(one["Name"]), str(one["Type"]).lower(), identity))
        for one in lost:
            self.create_network("nat", one["name"])
        names = {one["name"] for one in self.networks()}
        if self.config.get("bridge") != "none" and "nat" not in names:
            self.create_network("nat", "nat")

    def _network(self, name: str, driver: str, identity: str) -> dict[str, str]:
        return {"name": name, "id": uuid.uuid4().hex * 2, "driver": driver, "hns": identity}

    def _add(self, network: dict[str, str]) -> None:
        self._keep("networks", [*self.networks(), network])

    def create_network(self, driver: str, name: str) -> str:
        """`docker network create`; gives the id."""
        if any(one["name"] == name for one in self.networks()):
            raise GoError(f"Error response from daemon: network with name {name} already exists")
        if driver != "nat":
            raise self.run.refuse(f"a network with the driver {driver}")
        wanted: dict[str, Any] = {"Name": name, "Type": "nat", "Subnets": [_NAT]}
        if self.machine.build == SERVER_2019:
            # There they do not outlive a restart of the machine (MicrosoftDocs/Virtualization-Documentation#1087).
            wanted["Flags"] = NON_PERSISTENT
        made = hcn.call(self.machine, "POST", "/networks/", wanted)
        network = self._network(name, "nat", str(made["ID"]))
        self._add(network)
        return network["id"]

    def remove_network(self, name: str) -> None:
        """`docker network rm`: the network goes from HNS, too, also one that Docker has only found there."""
        found = next((one for one in self.networks() if one["name"] == name), None)
        if found is None:
            raise GoError(f"Error response from daemon: network {name} not found")
        if found["driver"] == "null":
            raise GoError(
                f"Error response from daemon: {name} is a pre-defined network and cannot be removed"
            )
        hcn.call(self.machine, "DELETE", f"/networks/{found['hns']}")
        self._keep("networks", [one for one in self.networks() if one is not found and one["name"] != name])

    # Images

    def _file_of(self, part: str) -> str:
        below = (
            r"network\files\local-kv.db" if part == "networks" else r"image\windowsfilter\repositories.json"
        )
        return rf"{self.root}\{below}"

    def _layer(self, number: int) -> str:
        return rf"{self.root}\windowsfilter\{hashlib.sha256(str(number).encode()).hexdigest()}"

    def _known(self, reference: str) -> str:
        """The folder where Docker keeps what it knows about an image's layer (layer/filestore.go)."""
        identity = hashlib.sha256(reference.encode("utf-8")).hexdigest()
        return rf"{self.root}\image\windowsfilter\layerdb\sha256\{identity}"

    def _unpack(self, reference: str) -> None:
        super()._unpack(reference)
        self.run.write(rf"{self._known(reference)}\size", str(len(b"layer")).encode())

    def remove_image(self, reference: str) -> None:
        """Forget an image, its layer, and what is known about the layer."""
        super().remove_image(reference)
        if self.machine.files.exists(self._known(reference)):
            self.machine.files.delete_directory(self._known(reference), recurse=True)

    def _mirrors(self, host: str) -> Iterator[str]:
        """Docker uses registry-mirrors only for images of Docker's own registry (docker/docker registry/service_v2.go)."""
        for url in self.config.get("registry-mirrors") or [] if host == "docker.io" else []:
            yield str(url).partition("://")[2].rstrip("/")

    def pull(self, reference: str) -> str:
        """Pull an image; GoError as docker words it. Gives its id."""
        problem = self._unreachable(reference.partition("/")[0])
        if problem is not None:
            raise GoError(f"Error response from daemon: {problem}")
        builds = self._published(reference)
        if builds is None:
            raise GoError(f"Error response from daemon: manifest for {reference} not found: manifest unknown")
        if self.machine.build not in builds:
            raise GoError(
                f"no matching manifest for windows/amd64 10.0.{self.machine.build} in the manifest list entries"
            )
        return self.import_image(reference, builds)

    # Containers: of each pod the pause container, as dockershim and cri-dockerd make it. Of one that ended `shim` is not this
    # process.

    def runs(self, sandbox: PodSandbox) -> bool:
        """Whether a container runs: it ends with the engine that started it."""
        return sandbox.shim == self.process.pid

    def stop_sandbox(self, identity: str) -> None:
        """`docker stop`: the container is kept."""
        self._keep_sandboxes(
            [replace(one, shim=0) if one.id == identity else one for one in self.sandboxes()]
        )

    def remove_container(self, identity: str, *, force: bool) -> None:
        """`docker rm` of a whole id."""
        found = next((one for one in self.sandboxes() if one.id == identity), None)
        if found is None:
            raise GoError(f"Error response from daemon: No such container: {identity}")
        if self.runs(found) and not force:
            raise self.run.refuse("rm of a running container without --force")
        self.drop_sandbox(identity)


def connect(machine: Computer, endpoint: str, version: str) -> Dockerd:
    """The engine behind an endpoint for a client of an API version; GoError as docker's client words it."""
    address = endpoint or "npipe:////./pipe/docker_engine"
    wanted = address.partition(":")[2].replace("/", "\\").lower()
    for _, served in fetch_served(machine, Dockerd):
        if isinstance(served, Dockerd) and wanted.endswith(PIPE.lower()):
            served.require_client(version)
            return served
    raise GoError(f"Cannot connect to the Docker daemon at {address}. Is the docker daemon running?")


_CLI: Final = {
    "format": "text",
    "driver": "text",
    "d": "text",
    "quiet": "bool",
    "q": "bool",
    "all": "bool",
    "a": "bool",
    "force": "bool",
    "f": "bool",
    "no-trunc": "bool",
}


class DockerProgram:
    """docker.exe: version, info, network, image, pull, ps and rm, with `--format` of plain fields."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One invocation."""
        run = Run(machine, process, argv, env, stdin)
        try:
            return Exit(0, go_text(*self._answer(run, pflags(argv[1:], _CLI.get))))
        except GoError as e:
            return Exit(1, b"", go_text(str(e)))

    def _answer(self, run: Run, flags: Flags) -> list[str]:
        # It takes the engine's API version where that is older (client.NegotiateAPIVersion).
        engine, form = connect(run.machine, run.env.get("DOCKER_HOST", ""), ""), flags.text("format")
        match flags.words:
            case ["version"]:
                server = {"Server.Version": engine.version, "Server.APIVersion": engine.api}
                return _shown(run, form, [server])
            case ["info"]:
                isolation = (
                    "hyperv" if "isolation=hyperv" in engine.config.get("exec-opts", []) else "process"
                )
                return _shown(run, form, [{"DockerRootDir": engine.root, "Isolation": isolation}])
            case ["network", "ls"]:
                rows = [{"ID": n["id"], "Name": n["name"], "Driver": n["driver"]} for n in engine.networks()]
                return _shown(run, form, rows)
            case ["network", "create", name]:
                return [engine.create_network(flags.text("driver", flags.text("d", "nat")), name)]
            case ["network", "rm", name]:
                engine.remove_network(name)
                return [name]
            case ["image", "ls"] | ["images"]:
                parts = [(one.rpartition(":"), made["id"]) for one, made in engine.images().items()]
                return _shown(run, form, [{"Repository": p[0], "Tag": p[2], "ID": i} for p, i in parts])
            case ["pull", reference] | ["image", "pull", reference]:
                return [engine.pull(reference)]
            case ["image", "rm", reference] | ["rmi", reference]:
                if reference not in engine.images():
                    raise GoError(f"Error response from daemon: No such image: {reference}")
                engine.remove_image(reference)
                return [f"Untagged: {reference}"]
            case ["ps"]:
                # With -a those that ended, too.
                every = flags.flag("all") or flags.flag("a")
                found = [s for s in engine.sandboxes() if every or engine.runs(s)]
                return [s.id for s in found]
            case ["rm", *identities]:
                for identity in identities:
                    engine.remove_container(identity, force=flags.flag("force") or flags.flag("f"))
                return list(identities)
        raise run.refuse(" ".join(flags.words) or "without a command")


def _shown(run: Run, form: str, rows: list[dict[str, Any]]) -> list[str]:
    """A line for each row: the template with its fields filled in, or JSON."""
    lines = []
    for row in rows:
        line = form or json.dumps({key: str(value) for key, value in row.items()})
        for key, value in row.items():
            line = line.replace("{{." + key + "}}", str(value))
        if form and "{{" in line:
            raise run.refuse(f"--format {form}")
        lines.append(line)
    return lines
