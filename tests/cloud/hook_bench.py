"""A worker of `winboot hook` on moto's queue and groups and the lab's API server; the machines are canned, its time is virtual.

A canned machine answers winboot's script as `tests.join.fakes.FakeMachine` does, and registers its Node when the script
changes it. The worker runs its own loop (`Worker.run`), one thread at a time. A scale-out costs tenths of a second, and a
test can kill the worker before each of its calls, always at the same place.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import StringIO
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from winboot_lab.cluster import ClusterServer, LabCluster
from winboot_lab.cluster.identity import ADMIN, Identity, user
from winboot_lab.cluster.plan import ClusterPlan

from tests.cloud.virtual_time import Kernel, VirtualPace
from tests.config.scene import CA, FILE, GOOD
from tests.join.fakes import QUICK, FakeMachine, Found, Silent, completed
from winboot.base.errors import ClusterUnreachable, Unreachable
from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import Options, RunContext
from winboot.node.run import Stop
from winboot.operations.hook import Settings, Worker
from winboot.operations.hook.metrics import Log
from winboot.operations.hook.work import NodeWork, Outcome, Target
from winboot.operations.join.secrets import BOOTSTRAP
from winboot.remote.cloud.azure_queue import AzureQueue
from winboot.remote.cloud.base import Message
from winboot.remote.cloud.pool import Pool
from winboot.remote.cluster import connect
from winboot.remote.cluster.claims import Claimant
from winboot.script.plan import make_plan
from winboot.script.steps import STEPS

PROFILE = GOOD.replace("{cni: flannel}", "{cni: flannel, mode: host-gw}")
CLAIM_S = 90
STARTUP = {"key": "winboot.io/starting", "effect": "NoSchedule"}
NAMESPACE = "winboot-system"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


class Killed(BaseException):
    """The process is no more."""


@dataclass
class Tap:
    """Every call that a worker makes to the outside, by name; before call number `die_at` it is killed."""

    die_at: int = 0
    calls: list[str] = field(default_factory=list)
    dead: bool = False
    # What happens before a call of this name, once.
    before: dict[str, Callable[[], None]] = field(default_factory=dict)

    def __call__(self, name: str) -> None:
        if threading.current_thread().name.startswith("csr-"):
            # A thread that looks again and again, in real time: how often depends on the clock.
            if self.dead:
                raise ClusterUnreachable("the process is no more")
            return
        if self.dead:
            raise Killed
        if name != "queue.receive":
            self.calls.append(name)
            if len(self.calls) == self.die_at:
                self.dead = True
                raise Killed
        self.before.pop(name, lambda: None)()


class Polled:
    """A queue whose long poll and visibility timeout pass in virtual time; moto delivers each message at every request."""

    def __init__(self, inner: Any, bench: Bench) -> None:
        self._inner, self._bench = inner, bench

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def receive(self, most: int, visibility: int) -> list[Message]:
        """Up to 20 s, asked every five."""
        kernel, hidden = self._bench.kernel, self._bench.hidden
        for _ in range(4):
            found = [one for one in self._inner.receive(most, 0) if hidden.get(one.id, 0.0) <= kernel.now]
            hidden.update((one.id, kernel.now + visibility) for one in found)
            kernel.sleep(0.1 if found else 5.0)
            if found:
                return found
        return []

    def extend(self, message: Message, seconds: int) -> None:
        """Keep it hidden."""
        self._inner.extend(message, 0)
        self._bench.hidden[message.id] = self._bench.kernel.now + seconds


class RealStop(Stop):
    """A signal in virtual time as a join sees it, whose threads wait in real time."""

    def __init__(self, virtual: Stop) -> None:
        super().__init__()
        self._event = virtual._event


class Tapped:
    """An object whose calls pass the tap."""

    def __init__(self, inner: Any, tap: Tap, prefix: str) -> None:
        self._inner, self._tap, self._prefix = inner, tap, prefix

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        if name == "leases":
            return lambda namespace: Tapped(found(namespace), self._tap, "lease")

        def call(*given: Any, **named: Any) -> Any:
            self._tap(f"{self._prefix}.{name}")
            return found(*given, **named)

        return call

    def __enter__(self) -> Tapped:
        return self

    def __exit__(self, *how: object) -> None:
        """Nothing is left to give back: the process is alive, or it is not."""


class CannedMachine(FakeMachine):
    """A bare machine; its first change makes it a node."""

    def __init__(self, bench: Bench, spec: NodeSpec, provider_id: str) -> None:
        plan = make_plan(spec, STEPS, only=(), skip=()).node_side
        credentials = next(step.name for step in plan if BOOTSTRAP in step.secrets(spec))
        super().__init__(
            [step.name for step in plan],
            Found(credentials),
            during=self._register,
            smbios_uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, provider_id)),
            node_ip=spec.machine.node_ip or "",
        )
        self.bench, self.spec, self.provider_id = bench, spec, provider_id
        self.dead = False
        # The machine's answer to the script that calls its metadata service. `lies` replaces that service: it gets method
        # and content and returns status and body.
        self.answers: str | None = None
        self.lies: Callable[[str, str], tuple[int, str]] | None = None

    def metadata(self, method: str, content: str) -> tuple[int, str]:
        """What its metadata service answers."""
        return (self.lies or self.bench.metadata)(method, content)

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Mapping[str, Any]) -> Iterator[str]:
        if self.dead:
            raise Unreachable(f"{self.spec.machine.address}: connection refused")
        if "Url" in arguments:
            if self.answers is not None:
                return iter([self.answers])
            status, body = self.metadata(arguments["Method"], arguments["Content"])
            return iter([json.dumps({"status": status, "problem": "", "body": body})])
        return super().run(script, arguments, secrets)

    def _register(self) -> None:
        """What its kubelet does: registers, reports, and asks for its serving certificate, which the script waits for."""
        self.bench.register(self.spec, self.provider_id, self.smbios_uuid)
        for _ in range(200):
            request = self.bench.admin("GET", f"{CSRS}/{self.bench.requests[-1]}")
            node = self.bench.admin("GET", f"/api/v1/nodes/{self.spec.node.name}")
            # flanneld waits for the pod CIDR, the kubelet's step for the certificate.
            if request.get("status", {}).get("conditions") and node["spec"].get("podCIDR"):
                return
            time.sleep(0.01)


@dataclass
class Bench:
    """The cluster, the machines behind the instances, and the files."""

    folder: Path
    lab: LabCluster
    pool: Path
    machines: dict[str, CannedMachine] = field(default_factory=dict)
    # How many machines that are met from now on never answer.
    dead: int = 0
    # The user of the workers; None is the administrator.
    kubeconfig: Path | None = None
    # The cloud, where it is not the one that the inventory's settings and the environment lead to.
    provider: Any = None
    # What a machine's metadata service answers: method and content give status and body.
    metadata: Callable[[str, str], tuple[int, str]] = lambda method, content: (404, "")
    requests: list[str] = field(default_factory=list)
    kernel: Kernel = field(default_factory=Kernel)
    # By the id of a message: until when the queue hides it.
    hidden: dict[str, float] = field(default_factory=dict)
    processes: int = 0

    def admin(self, method: str, path: str, body: Any = None, **rest: Any) -> Any:
        """A request as the administrator."""
        return self.lab.request(ADMIN, method, path, body, **rest).body

    def register(self, spec: NodeSpec, provider_id: str, system_uuid: str, *, ready: bool = True) -> None:
        """A kubelet makes its Node, reports, and asks for its serving certificate."""
        kubelet = user(f"system:node:{spec.node.name}", "system:nodes")
        if not any(one["metadata"]["name"] == spec.node.name for one in self.nodes()):
            taint = {"key": spec.node.startup_taint.key, "effect": spec.node.startup_taint.effect}
            body = {
                "metadata": {"name": spec.node.name, "labels": {"kubernetes.io/os": "windows"}},
                "spec": {"providerID": provider_id, "taints": [taint]},
            }
            self.lab.request(kubelet, "POST", "/api/v1/nodes", body)
        self.report(kubelet, spec.node.name, system_uuid, ready=ready)
        address = spec.machine.node_ip or ""
        body = {
            "metadata": {"name": f"csr-{uuid.uuid4().hex[:8]}"},
            "spec": {
                "request": _serving_request(spec.node.name, address),
                "signerName": "kubernetes.io/kubelet-serving",
                "usages": ["digital signature", "server auth"],
            },
        }
        made = self.lab.request(kubelet, "POST", CSRS, {**body, "kind": "CertificateSigningRequest"}).body
        self.requests.append(made["metadata"]["name"])

    def report(self, kubelet: Identity, name: str, system_uuid: str, *, ready: bool) -> None:
        """A kubelet's status."""
        condition = {"type": "Ready", "status": str(ready), "reason": "Kubelet", "message": "says so"}
        info = {"systemUUID": system_uuid, "operatingSystem": "windows", "kubeletVersion": "v1.36.5"}
        self.lab.request(
            kubelet,
            "PATCH",
            f"/api/v1/nodes/{name}/status",
            {"status": {"conditions": [condition], "nodeInfo": info}},
            content_type="application/strategic-merge-patch+json",
        )

    def nodes(self) -> list[dict[str, Any]]:
        """Windows nodes, as the API shows them."""
        items: list[dict[str, Any]] = self.admin("GET", "/api/v1/nodes")["items"]
        return [
            one for one in items if one["metadata"].get("labels", {}).get("kubernetes.io/os") == "windows"
        ]

    def open_nodes(self) -> list[str]:
        """The names of nodes that take pods: their startup taint is gone."""
        return [
            one["metadata"]["name"]
            for one in self.nodes()
            if not any(taint["key"] == STARTUP["key"] for taint in one["spec"].get("taints") or ())
        ]

    def leases(self) -> list[str]:
        """The claims that stand."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
        return [one["metadata"]["name"] for one in self.admin("GET", path)["items"]]

    def machine(self, spec: NodeSpec, provider_id: str) -> CannedMachine:
        """The machine behind a name."""
        if provider_id not in self.machines:
            made = self.machines[provider_id] = CannedMachine(self, spec, provider_id)
            made.dead = self.dead > 0
            self.dead -= made.dead
        return self.machines[provider_id]

    def work(self, tap: Tap, stop: Stop | None = None, **settings: Any) -> NodeWork:
        """What one process does with its machines."""
        client = connect(self.kubeconfig or self.folder / "kubeconfig", wait=lambda seconds: True)
        cluster: Any = Tapped(client, tap, "cluster")

        def session(spec: NodeSpec) -> Any:
            return Tapped(self.machine(spec, spec.machine.provider_id or ""), tap, "machine")

        context = RunContext(
            connect=session,
            cluster=lambda spec: cluster,
            listener=Silent(),
            journals=self.folder / "journals",
            run=uuid.uuid4().hex[:8],
            holder="hook",
            stop=stop or Stop(),
        )
        options = Options(patience=QUICK, ready=5.0)
        given = {"join_timeout": 600.0, "drain_timeout": 1.0, **settings}
        pool = Pool.read(self.pool)
        pool._opened = self.provider
        return BenchWork(pool, context, options, clock=lambda: self.kernel.now, bench=self, **given)

    def pace(self, name: str) -> VirtualPace:
        """Time and threads of a new process."""
        self.processes += 1
        return VirtualPace(self.kernel, f"{name}-{self.processes}")

    def worker(
        self,
        queue: Any,
        name: str = "one",
        *,
        tap: Tap | None = None,
        work: NodeWork | None = None,
        pace: VirtualPace | None = None,
        **settings: Any,
    ) -> Worker:
        """A new process."""
        tap, pace = tap or Tap(), pace or self.pace(name)
        polled = queue if isinstance(queue, AzureQueue) else Polled(queue, self)
        return Worker(
            queue=Tapped(polled, tap, "queue"),  # type: ignore[arg-type]
            work=work or self.work(tap),
            claimant=Claimant(name, pace.now, duration=CLAIM_S),
            leases=lambda cluster: cluster.leases(NAMESPACE),
            stop=pace.stop(),
            settings=Settings(**{"idle": 150.0, "minders": 1, **settings}),
            log=Log(StringIO()),
            pace=pace,
        )

    def drive(self, worker: Worker, seconds: float = 3600.0) -> list[str]:
        """Let it work until the queue is quiet, so many seconds at most; gives the outcomes of the items that have ended."""
        before, pace = len(self.transitions(worker)), worker.pace
        assert isinstance(pace, VirtualPace)
        task, end = pace.spawn("run", worker.run), self.kernel.now + seconds
        try:
            while not task.ended and self.kernel.now < end:
                self.kernel.run(min(self.kernel.now + 1.0, end))
            worker.stop.request()
            while not task.ended:
                self.kernel.run(self.kernel.now + 1.0)
        except BaseException:
            self._bury(pace.process)
            raise
        worker.stop = pace.stop()
        ended = self.transitions(worker)[before:]
        return [one["outcome"] for one in ended if one["to"] in ("done", "failed")]

    def _bury(self, process: str) -> None:
        """A process that was killed does nothing more; its threads end."""
        self.kernel.errors.clear()
        self.kernel.kill(process)
        while any(task.process == process and not task.ended for task in self.kernel.tasks):
            with suppress(Killed):
                self.kernel.run(self.kernel.now)
            self.kernel.errors.clear()

    def transitions(self, worker: Worker) -> list[dict[str, Any]]:
        """The transitions of a worker's items."""
        return [one for one in logged(worker) if one["message"] == "transition"]

    @staticmethod
    def said(worker: Worker) -> list[dict[str, Any]]:
        """A worker's log without its start, its end and its transitions."""
        return [one for one in logged(worker) if one["message"] not in ("transition", "started", "stopped")]


def logged(worker: Worker) -> list[dict[str, Any]]:
    """All that a worker has logged."""
    stream: Any = worker.log._stream
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@dataclass
class BenchWork(NodeWork):
    """Nothing is downloaded here, so that no hash is missing."""

    bench: Bench | None = None

    def _target(self, member: Any, machine: Any) -> Target:
        found = super()._target(member, machine)
        return replace(found, spec=completed(found.spec))

    def answering(self, targets: Sequence[Target]) -> dict[str, str]:
        """By the canned machines, where the test has a bench."""
        if self.self_registering or self.bench is None:
            return {one.member.host.id: "" for one in targets}
        return {one.member.host.id: self._why_not(one) for one in targets}

    def launch(self, target: Target, halt: Stop, **how: Any) -> Outcome:
        return super().launch(target, RealStop(halt), **how)

    def prepare(self, target: Target, halt: Stop, **how: Any) -> Outcome:
        return super().prepare(target, RealStop(halt), **how)

    def _why_not(self, target: Target) -> str:
        assert self.bench is not None
        machine = self.bench.machine(target.spec, target.member.identity.provider_id)
        return f"{target.spec.machine.address}: connection refused" if machine.dead else ""


@contextmanager
def a_bench(folder: Path, name: str, **inventory: Any) -> Iterator[Bench]:
    """A cluster, and the inventory `name` with these keys over the plain ones."""
    lab = LabCluster(ClusterPlan(version="1.36.5"))
    with ClusterServer(lab) as server:
        (folder / FILE).write_text(PROFILE, encoding="utf-8")
        (folder / "ca.crt").write_text(CA, encoding="utf-8")
        server.write_admin_kubeconfig(folder / "kubeconfig")
        wanted = {
            "profile": FILE,
            "defaults": {
                "os": "2022",
                "connection": {"user": "winboot", "password": {"env": "NOBODY_READS_IT"}, "poll_s": 0.02},
            },
            **inventory,
        }
        (folder / name).write_text(yaml.safe_dump(wanted), encoding="utf-8")
        bench = Bench(folder, lab, folder / name)
        bench.admin("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield bench
        bench.kernel.close()


def _serving_request(name: str, address: str) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{name}"),
        ]
    )
    names: list[x509.GeneralName] = [x509.DNSName(name)]
    if address:
        names.append(x509.IPAddress(ip_address(address)))
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(subject)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()
