"""What the API server asks of a node for exec, logs and port-forward, and how it dials it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final, Protocol
from urllib.parse import quote

from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.streams import Ran
from winboot_lab.engine.refusal import Refusal
from winboot_lab.programs.base import GoError
from winboot_lab.programs.containers import Containers
from winboot_lab.programs.cri import CriRuntime
from winboot_lab.programs.traffic import Closed, End, Lost
from winboot_lab.windows.processes import Process
from winboot_lab.windows.session import Computer

Object = dict[str, Any]
PORT: Final = 10250


class NodePods(Protocol):
    """The pods of a kubelet, as the API server needs them."""

    @property
    def answers_log_queries(self) -> bool:
        """Whether the kubelet finds the logs of services."""

    def runtime(self) -> CriRuntime:
        """The runtime; GoError while it does not answer."""


class MachineApi:
    """The kubelet of a machine, as the API server reaches it."""

    def __init__(self, containers: Containers, machine: Computer, pods: NodePods) -> None:
        self._containers = containers
        self._machine = machine
        self._pods = pods

    def execute(self, pod: Object, command: Sequence[str]) -> Ran:
        """Run a command in the pod's container."""
        start = self._start(pod)
        try:
            ended = self._containers.execute(pod, start, command)
        except Refusal as refusal:
            self._machine.refusals.append(refusal)
            raise ApiFailure(500, f"the lab refuses: {refusal}") from None
        return Ran(ended.code, ended.output.encode(), ended.errors.encode())

    def log(self, pod: Object) -> str:
        """What the container has written."""
        self._start(pod)
        lines = self._containers.logs.get(pod["metadata"]["uid"], [])
        return "".join(f"{line}\n" for line in lines)

    def forward(self, pod: Object, port: int, request: bytes) -> bytes:
        """A connection of the host itself to the pod's address (containerd sandbox_portforward_windows.go)."""
        there = self._start(pod)
        host = End("host", self._machine.network.lan.address, self._machine)
        path = request.split(b" ", 2)[1].decode("ascii") if request.count(b" ") >= 2 else "/"
        try:
            arrival = self._containers.traffic.connect(host, there.address, port)
            status, body = self._containers.answer(arrival, path)
        except Lost:
            raise GoError(f"failed to connect to {there.address}:{port}: i/o timeout") from None
        except Closed:
            raise GoError(f"failed to connect to {there.address}:{port}: connection refused") from None
        head = f"HTTP/1.1 {status} OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
        return (head + body).encode()

    def node_log(self, query: Mapping[str, str]) -> str:
        """The log of a service that writes a file below C:\\var\\log (kubernetes pkg/kubelet/kubelet_server_journal.go)."""
        if not self._pods.answers_log_queries:
            return self._folder(r"C:\var\log")
        service = query["query"]
        if len(query) > 1:
            return f"\noptions present and query resolved to log files for [{service}]\ntry without specifying options\n"
        for name in (service, f"{service}.log", rf"{service}\{service}.log"):
            path = rf"C:\var\log\{name}"
            if self._machine.files.exists(path) and not self._machine.files.is_directory(path):
                return self._machine.files.text(path)
        return f"\nlog not found for {service}\n"

    def _folder(self, path: str) -> str:
        """A folder as the file server lists it (Go net/http/fs.go, dirList); ApiFailure where it is missing."""
        if not self._machine.files.is_directory(path):
            raise ApiFailure(404, "404 page not found")
        found = sorted(
            f"{one.name}/" if one.node.directory else one.name for one in self._machine.files.list(path)
        )
        lines = "".join(f'<a href="{quote(name)}">{escape(name)}</a>\n' for name in found)
        return f'<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n{lines}</pre>\n'

    def _start(self, pod: Object) -> End:
        """The pod's end; the kubelet and the runtime must have it."""
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        try:
            runtime = self._pods.runtime()
        except GoError as e:
            raise ApiFailure(500, f"container runtime is down: {e}") from None
        sandbox = next((one for one in runtime.sandboxes() if one.uid == uid and runtime.ready(one)), None)
        if sandbox is None:
            raise ApiFailure(500, f'unable to upgrade connection: container not found ("{name}")')
        found = self._containers.traffic.pod(self._machine, sandbox.address)
        if found is None:
            # The container runs on; it is its network that is gone.
            return End("pod", sandbox.address, self._machine, _nothing())
        return found


def _nothing() -> Object:
    return {
        "ID": "",
        "VirtualNetwork": "",
        "Policies": [],
        "DNSServerList": "",
        "DNSSuffix": "",
        "GatewayAddress": "",
        "IsRemoteEndpoint": False,
    }


class LinuxApi:
    """The kubelet of a Linux node: it is taken to be well."""

    def __init__(self, containers: Containers) -> None:
        self._containers = containers

    def execute(self, pod: Object, command: Sequence[str]) -> Ran:
        """Run a command in the pod's container."""
        ended = self._containers.execute(pod, self._end(pod), command)
        return Ran(ended.code, ended.output.encode(), ended.errors.encode())

    def log(self, pod: Object) -> str:
        """What the container has written."""
        return "".join(f"{line}\n" for line in self._containers.logs.get(pod["metadata"]["uid"], []))

    def node_log(self, query: Mapping[str, str]) -> str:
        """The lab has no log of a Linux node."""
        raise ApiFailure(404, "the lab has no log of a Linux node")

    def forward(self, pod: Object, port: int, request: bytes) -> bytes:
        """Refuse: the lab has no port of a Linux pod."""
        raise GoError("the lab forwards no port of a Linux pod")

    def _end(self, pod: Object) -> End:
        return End("linux", str(pod["status"].get("podIP", "")), node=str(pod["spec"].get("nodeName", "")))


def dial(
    containers: Containers, kubelets: Mapping[str, tuple[Computer, Process, NodePods]], node: str, source: str
) -> MachineApi | LinuxApi:
    """The kubelet of a node, dialled from the API server. ApiFailure as it words what fails: error dialing backend."""
    if any(one.name == node for one in containers.traffic.linux_nodes()):
        return LinuxApi(containers)
    found = kubelets.get(node)
    address = found[0].network.lan.address if found is not None else node
    failed = f"error dialing backend: dial tcp {address}:{PORT}:"
    if found is None:
        raise ApiFailure(500, f"{failed} no route to host")
    machine, daemon, pods = found
    if not machine.running or not machine.network.reachable():
        raise ApiFailure(500, f"{failed} i/o timeout")
    if not machine.firewall.lets_in("TCP", PORT, source):
        raise ApiFailure(500, f"{failed} i/o timeout")
    if machine.processes.get(daemon.pid) is not daemon or not any(
        one.port == PORT for one in machine.sockets.listeners
    ):
        raise ApiFailure(500, f"{failed} connect: connection refused")
    return MachineApi(containers, machine, pods)
