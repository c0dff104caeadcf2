"""Each flow as something that can be tried: from which end, to which, and what its answer means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from winboot.base.errors import ClusterError
from winboot.operations.verify.objects import LINUX_PORT, PORT, READY
from winboot.operations.verify.scene import NodeScene, PodAt, Scene
from winboot.remote.cluster.workbench import Workbench

# How a flow fails, as far as causes differ. `seen` of an outcome is for people.
Symptom = Literal["", "silent", "refused", "name", "hidden", "api", "other"]
KUBELET: Final = 10250
_LARGE: Final = 3000
_SECONDS: Final = 5
# https://everything.curl.dev/cmdline/exitcode.html
_CODES: Final[dict[int, tuple[Symptom, str]]] = {
    5: ("name", "the name of the proxy was not resolved"),
    6: ("name", "the name was not resolved"),
    7: ("refused", "the connection was refused"),
    28: ("silent", f"no answer within {_SECONDS} seconds"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a trial."""

    passed: bool
    seen: str
    symptom: Symptom = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """One flow between two ends. `node` is the node it is about; `at` the one whose pod or machine asks, None for a
    Linux pod. `to` is the node on the other end, if there is one. `address` is where it goes; `own`: it does not need
    exec."""

    flow: str
    node: NodeScene | None
    source: str
    target: str
    run: Callable[[], Outcome]
    at: NodeScene | None = None
    to: NodeScene | None = None
    address: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What curl said: its code, the body, and the numbers of --write-out."""

    code: int
    body: str
    http: str
    tunnel: str
    connected: bool


class PodCommands:
    """Commands in the pods of a scene."""

    def __init__(self, bench: Workbench, scene: Scene) -> None:
        self._bench = bench
        self._scene = scene

    def curl(self, pod: PodAt, url: str, *options: str, linux: bool = False) -> Answer:
        """Ask a URL from a pod. Raises ClusterError where the command could not be run."""
        form = "\\n%{http_code} %{http_connect} %{time_connect}"
        words = ["curl" if linux else "curl.exe", "--silent", "--show-error", "--max-time", str(_SECONDS)]
        words += ["--write-out", form, *options, url]
        ran = self._bench.execute(self._scene.space, pod.name, words, timeout=_SECONDS + 25)
        body, _, last = ran.output.rpartition("\n")
        numbers = [*last.split(), "000", "000", "0"]
        return Answer(ran.code, body, numbers[0], numbers[1], float(numbers[2].replace(",", ".")) > 0)

    def exec(self, pod: PodAt) -> Outcome:
        """Whether a command runs."""
        ran = self._bench.execute(self._scene.space, pod.name, ["curl.exe", "--version"], timeout=30)
        first = ran.output.partition("\n")[0]
        return Outcome(ran.code == 0, first[:40] or f"exit code {ran.code}", "" if ran.code == 0 else "api")

    def logs(self, pod: PodAt) -> Outcome:
        """Whether the log of a server is there."""
        text = self._bench.logs(self._scene.space, pod.name)
        there = READY in text
        return Outcome(there, READY if there else "an empty log", "" if there else "api")

    def forward(self, pod: PodAt) -> Outcome:
        """Whether a port of a server is reached through the API."""
        request = b"GET / HTTP/1.1\r\nHost: winboot\r\nConnection: close\r\n\r\n"
        answer = self._bench.forward(self._scene.space, pod.name, PORT, request, timeout=30)
        there = pod.name.encode() in answer
        return Outcome(there, "an answer" if there else f"{len(answer)} bytes", "" if there else "api")


def failed(answer: Answer) -> Outcome | None:
    """Why curl did not get an answer; None where it got one."""
    if answer.code == 0:
        return None
    symptom, seen = _CODES.get(answer.code, ("other", f"curl ended with code {answer.code}"))
    return Outcome(False, seen, symptom)


def _answered(answer: Answer, wanted: str = "", source: str = "") -> Outcome:
    """An answer of the server whose name begins with `wanted`, that saw us as `source`."""
    lost = failed(answer)
    if lost is not None:
        return lost
    name, _, rest = answer.body.partition(" ")
    if wanted and not name.startswith(wanted):
        return Outcome(False, f"an answer of {name or 'something else'}", "other")
    seen = rest.partition(" ")[0]
    if source and seen != source:
        return Outcome(False, f"an answer, but the pod was seen as {seen}, not as {source}", "hidden")
    return Outcome(True, f"an answer of {name}")


def _connected(answer: Answer) -> Outcome:
    """Whether TCP came about, whatever came over it."""
    if answer.connected:
        return Outcome(True, "a connection")
    return failed(answer) or Outcome(False, "no connection", "other")


def _resolved(answer: Answer) -> Outcome:
    """Whether the name was found; what then becomes of the connection is another flow's."""
    lost = failed(answer)
    if lost is not None and lost.symptom == "name":
        return lost
    return Outcome(True, "the name was resolved")


def _reached(state: str) -> Outcome:
    match state:
        case "open":
            return Outcome(True, "a connection")
        case "refused":
            return Outcome(False, "the connection was refused", "refused")
    return Outcome(False, "no answer within 5 seconds", "silent")


def egress(hands: PodCommands, pod: PodAt, host: str, port: int, proxy: str) -> Outcome:
    """Reach a place outside by TCP, through the proxy where there is one."""
    options = ("--output", "NUL", "--insecure", *(("--proxy", proxy) if proxy else ("--noproxy", "*")))
    answer = hands.curl(pod, f"https://{host}:{port}/", *options)
    if proxy and answer.tunnel == "200":
        return Outcome(True, "a connection through the proxy")
    if proxy and answer.connected:
        return Outcome(False, f"the proxy answers {answer.tunnel}", "other")
    return _connected(answer)


def api_trials(hands: PodCommands, node: NodeScene) -> Iterator[Trial]:
    """What goes through the API server."""
    server, client = node.server, node.client
    assert server is not None and client is not None
    here = f"pod on {node.name}"
    for flow, run in (
        ("exec", lambda: hands.exec(client)),
        ("logs", lambda: hands.logs(server)),
        ("port-forward", lambda: hands.forward(server)),
    ):
        yield Trial(flow, node, "API server", here, _guarded(run), to=node, own=True)


def node_trials(hands: PodCommands, scene: Scene, node: NodeScene) -> Iterator[Trial]:
    """The flows that are about one node, but those of the API."""
    server, client = node.server, node.client
    assert server is not None and client is not None
    here, domain = f"pod on {node.name}", f"{scene.space}.svc.{scene.domain}"

    def web(address: str) -> Callable[[], Outcome]:
        return lambda: _answered(hands.curl(client, f"http://{address}/"), "server-")

    def name(name: str) -> Callable[[], Outcome]:
        return lambda: _resolved(hands.curl(client, f"http://{name}/"))

    yield Trial(
        "pod-pod-local",
        node,
        here,
        here,
        lambda: _answered(hands.curl(client, f"http://{server.address}/"), server.name, client.address),
        at=node,
        to=node,
        address=server.address,
    )
    for other in scene.partners(node):
        yield from _pair(hands, node, other)
    yield Trial(
        "pod-node",
        node,
        here,
        node.name,
        lambda: _connected(
            hands.curl(client, f"https://{node.address}:{KUBELET}/healthz", "--insecure", "--output", "NUL")
        ),
        at=node,
        to=node,
        address=node.address,
    )
    yield from _linux(hands, scene, node)
    yield Trial("pod-service", node, here, "service", web(scene.service), at=node, address=scene.service)
    yield _service_pod(hands, scene, node)
    yield Trial("dns-full", node, here, f"web.{domain}", name(f"web.{domain}"), at=node)
    yield Trial("dns-short", node, here, "web", name("web"), at=node)
    yield Trial(
        "node-pod",
        node,
        node.name,
        here,
        lambda: _reached(node.reached.get(f"{server.address}:{PORT}", "")),
        at=node,
        to=node,
        address=server.address,
        own=True,
    )


def _pair(hands: PodCommands, node: NodeScene, other: NodeScene) -> Iterator[Trial]:
    client, there = node.client, other.server
    assert client is not None and there is not None
    here, target = f"pod on {node.name}", f"pod on {other.name}"
    url = f"http://{there.address}/"

    def large() -> Outcome:
        answer = hands.curl(client, url + "a" * _LARGE)
        lost = failed(answer)
        if lost is not None:
            return lost
        whole = len(answer.body) >= _LARGE
        return Outcome(whole, f"{len(answer.body)} bytes", "" if whole else "other")

    yield Trial(
        "pod-pod-remote",
        node,
        here,
        target,
        lambda: _answered(hands.curl(client, url), there.name, client.address),
        at=node,
        to=other,
        address=there.address,
    )
    yield Trial("pod-pod-large", node, here, target, large, at=node, to=other, address=there.address)
    if not node.overlay:
        yield Trial(
            "node-pod-remote",
            node,
            node.name,
            target,
            lambda: _reached(node.reached.get(f"{there.address}:{PORT}", "")),
            at=node,
            to=other,
            address=there.address,
            own=True,
        )


def _linux(hands: PodCommands, scene: Scene, node: NodeScene) -> Iterator[Trial]:
    linux, server, client = scene.linux, node.server, node.client
    if linux is None or server is None or client is None:
        return
    here, there = f"pod on {node.name}", f"pod on {scene.linux_node}"

    def seen() -> Outcome:
        answer = hands.curl(client, f"http://{linux.address}:{LINUX_PORT}/clientip")
        source = answer.body.rpartition(":")[0]
        lost = failed(answer)
        if lost is None and source != client.address:
            return Outcome(
                False, f"an answer, but the pod was seen as {source}, not as {client.address}", "hidden"
            )
        return lost or Outcome(True, "an answer")

    yield Trial("pod-linux", node, here, there, seen, at=node, address=linux.address)
    yield Trial(
        "linux-pod",
        node,
        there,
        here,
        lambda: _answered(hands.curl(linux, f"http://{server.address}/", linux=True), server.name),
        to=node,
        address=server.address,
    )
    yield Trial(
        "linux-service",
        node,
        there,
        f"service of {node.name}",
        lambda: _answered(hands.curl(linux, f"http://{node.service}/", linux=True), server.name),
        to=node,
        address=node.service,
    )


def _service_pod(hands: PodCommands, scene: Scene, node: NodeScene) -> Trial:
    """From another node where there is one: a service that leads back to its own pod is another matter."""
    server = node.server
    assert server is not None
    asking = next(iter(scene.partners(node)), node)
    client = asking.client
    assert client is not None
    return Trial(
        "service-pod",
        node,
        f"pod on {asking.name}",
        f"service of {node.name}",
        lambda: _answered(hands.curl(client, f"http://{node.service}/"), server.name),
        at=asking,
        to=node,
        address=node.service,
    )


def node_port_trial(hands: PodCommands, scene: Scene, node: NodeScene) -> Trial | None:
    """From the machine of another node, else from the Linux pod; None where there is neither."""
    port, target = node.node_port, f"{node.name}:{node.node_port}"
    asking = next(iter(scene.partners(node)), None)
    if asking is not None:
        return Trial(
            "node-port",
            node,
            asking.name,
            target,
            lambda: _reached(asking.reached.get(f"{node.address}:{port}", "")),
            at=asking,
            to=node,
            address=node.address,
            own=True,
        )
    linux = scene.linux
    if linux is None:
        return None
    return Trial(
        "node-port",
        node,
        f"pod on {scene.linux_node}",
        target,
        lambda: _answered(hands.curl(linux, f"http://{node.address}:{port}/", linux=True)),
        to=node,
        address=node.address,
    )


def targets(scene: Scene, node: NodeScene) -> Sequence[str]:
    """What the machine of a node is to connect to by itself."""
    found = [f"{node.server.address}:{PORT}"] if node.server is not None else []
    for other in scene.partners(node):
        if other.server is not None and not node.overlay:
            found.append(f"{other.server.address}:{PORT}")
        if other.node_port:
            found.append(f"{other.address}:{other.node_port}")
    return found


def _guarded(run: Callable[[], Outcome]) -> Callable[[], Outcome]:
    """What the API server says is what was seen."""

    def guarded() -> Outcome:
        try:
            return run()
        except ClusterError as error:
            return Outcome(False, error.problem, "api")

    return guarded
