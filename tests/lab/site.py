"""A lab without a wire: the same machines, engine, cluster and product code, in one process and on the lab's time.

Scripts run on the sender's thread, requests to the cluster are function calls, and when the
controller waits, lab time passes. What it proves is the same as over WinRM, except for WinRM itself; a join takes a
fraction of the time, and nothing depends on how fast this computer is.
"""

from __future__ import annotations

import socket
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import httpx2
from httpcore2._backends.sync import SyncStream
from winboot_lab.cli.staging import stage
from winboot_lab.cluster import ApiFailure, LabCluster
from winboot_lab.cluster.cluster import decode_body
from winboot_lab.cluster.identity import ADMIN
from winboot_lab.cluster.kinds import CSRS
from winboot_lab.cluster.kubeconfig import write_kubeconfig
from winboot_lab.cluster.plan import ClusterPlan
from winboot_lab.cluster.streams import Stream, accept_key, chosen, serve
from winboot_lab.console import silent_powershell
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.values import SecureString
from winboot_lab.engines import run_script
from winboot_lab.mirror import Mirror
from winboot_lab.node import USER
from winboot_lab.programs import Outside, install_programs
from winboot_lab.up import MIRROR_HOST, NodePlan
from winboot_lab.windows.clock import LabTime
from winboot_lab.windows.door import Interrupted, MachineStopped
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.programs import Programs
from winboot_lab.windows.session import Session
from winboot_lab.windows.sockets import World as Internet

from winboot.base.errors import ConnectionLost, ScriptFailed, Unreachable
from winboot.base.secret import Secret
from winboot.config.inventory import Machine as InventoryMachine
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import NodeSpec, resolve
from winboot.node.run import Patience, Stop
from winboot.operations.bake import bake
from winboot.operations.join import Options, RunContext, join, survey
from winboot.operations.remove import Removal, remove, survey_removal
from winboot.operations.rollback import rollback
from winboot.operations.upgrade import upgrade
from winboot.remote.cluster.base import DrainRules, ExpectedNode, Verdict
from winboot.remote.cluster.lightkube import LightkubeCluster
from winboot.report.events import Event
from winboot.report.results import NodeReport, Report
from winboot.script.library import library

WIN_1 = NodePlan("win-1", "2022", "10.0.1.11")


class Killed(BaseException):
    """The controller's process is gone. Not an Exception: nothing in the product may get hold of it."""


@dataclass
class Ears:
    """A listener that keeps every event."""

    events: list[Event] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def event(self, node: str, event: Event) -> None:
        self.events.append(event)

    def say(self, node: str, text: str) -> None:
        self.said.append(f"{node}: {text}")


class Site:
    """Machines, a cluster, a mirror, and winboot's own files for them."""

    def __init__(
        self,
        folder: Path,
        *plans: NodePlan,
        cluster: ClusterPlan | None = None,
        wishes: Mapping[str, Any] | None = None,
        profile: Path | None = None,
        node_ip: bool = False,
        prepare: Callable[[Site], None] = lambda site: None,
    ) -> None:
        self.folder = folder
        self.plans = plans or (WIN_1,)
        self.password = "the password of a lab"
        self.mirror_url = f"http://{MIRROR_HOST}"
        self.time = LabTime(scale=0, real=False)
        self.internet = Internet()
        self.mirror = Mirror()
        self.internet.serve(MIRROR_HOST, 80, self.mirror.handle)
        self.cluster = LabCluster(cluster, now=self.time.datetime)
        self.outside = Outside(self.internet)
        self.outside.attach(self.cluster)
        self._programs = Programs()
        install_programs(self._programs, self.outside)
        # How often each machine has lost its network for a moment: open connections break then.
        self.losses: Counter[str] = Counter()
        self.machines = {plan.name: self.machine_of(plan) for plan in self.plans}
        self.machine = self.machines[self.plans[0].name]
        prepare(self)
        self.files = stage(self._as_lab(), folder, profile, wishes=wishes, node_ip=node_ip)
        self.controllers: list[Controller] = []
        # The machines as the files have them, by name; as they were read last.
        self.inventory: dict[str, InventoryMachine] = {}

    def machine_of(self, plan: NodePlan, name: str = "") -> Machine:
        """A machine of this site; without a name it has one as Windows makes it."""
        machine = Machine(
            name or f"WIN-{plan.name.upper().replace('-', '')[:8]}X",
            release=plan.release,
            address=plan.address,
            prefix_length=16,
            gateway="10.0.0.1",
            time=self.time,
            world=self.internet,
            programs=self._programs,
        )
        machine.run_powershell = silent_powershell
        machine.watch(lambda signal: self.losses.update({plan.name: signal == "network-lost"}))
        return machine

    def _as_lab(self) -> Any:
        """As much of a `winboot_lab.up.Lab` as staging its files takes."""
        kubeconfig = SimpleNamespace(write_admin_kubeconfig=self._write_kubeconfig)
        settings = SimpleNamespace(address="127.0.0.1")
        nodes = {
            plan.name: SimpleNamespace(
                endpoint=SimpleNamespace(settings=settings, http_port=port, certificate=None), ssh=None
            )
            for port, plan in enumerate(self.plans, 5985)
        }
        return SimpleNamespace(
            plans=self.plans,
            nodes=nodes,
            cluster=self.cluster,
            server=kubeconfig,
            password=self.password,
            mirror_url=self.mirror_url,
        )

    def _write_kubeconfig(self, path: Path) -> None:
        write_kubeconfig(path, self.cluster.plan.server, self.cluster.authority.pem, self.cluster.admin())

    # ---- winboot ---------------------------------------------------------------------------------------

    def specs(self) -> list[NodeSpec]:
        """The inventory's nodes, resolved."""
        machines = list(load_inventory(self.files.inventory))
        self.inventory.update({machine.name: machine for machine in machines})
        return [resolve(machine.profile, machine) for machine in machines]

    def controller(self, **changes: Any) -> Controller:
        """A new winboot process on some laptop."""
        made = Controller(self, **changes)
        self.controllers.append(made)
        return made

    def join(self, **options: Any) -> Report:
        """`winboot join` by a controller that nothing happens to."""
        return self.controller().join(**options)

    def plan(self) -> Report:
        """`winboot plan`."""
        return self.controller().plan()

    # ---- the surroundings ------------------------------------------------------------------------------

    def admin(self, method: str, path: str, body: Any = None, **rest: Any) -> Any:
        """Ask the cluster as its administrator."""
        return self.cluster.request(ADMIN, method, path, body, **rest).body

    def node(self, name: str = "win-1") -> Any:
        """The Node object."""
        return self.admin("GET", f"/api/v1/nodes/{name}")

    def settle(self, seconds: float) -> None:
        """Let time pass without any action."""
        for machine in self.machines.values():
            machine.tasks.wait_idle()
            machine.settle(seconds)
            machine.tasks.wait_idle()

    @property
    def refusals(self) -> list[Refusal]:
        """The features that scripts used and the lab lacks."""
        return [refusal for machine in self.machines.values() for refusal in machine.refusals]


class Controller:
    """One winboot process: its files are the site's, its life is its own.

    `hear` is called with each line a script says, at the moment it falls; it may raise Killed, or do something to
    the machine. `rewrite` makes another script of the one that is about to run.
    """

    def __init__(
        self,
        site: Site,
        *,
        hear: Callable[[str], None] = lambda line: None,
        rewrite: Callable[[str], str] = lambda script: script,
        holder: str = "me@laptop",
    ) -> None:
        self.site = site
        self.hear = hear
        self.rewrite = rewrite
        self.ears = Ears()
        self.alive = True
        # What happens when this process is gone; and the session on the node that runs its script.
        self.at_death: Callable[[], None] = lambda: None
        self.session: Session | None = None
        self.pipelines: list[Mapping[str, object]] = []
        # The names of the secrets that went along with each.
        self.secrets: list[list[str]] = []
        self.scripts: list[str] = []
        self.run = uuid.uuid4().hex[:12]
        self.stop = LabStop(self)
        self._clients: list[Inside] = []
        self.context = RunContext(
            connect=lambda spec: Direct(self, spec),
            cluster=self._client,
            listener=self.ears,
            journals=site.folder / "journals",
            run=self.run,
            holder=holder,
            stop=self.stop,
            machines=site.inventory,
        )

    def join(self, **options: Any) -> Report:
        """`winboot join`, on the lab's time."""
        with self._command():
            return join(self.site.specs(), self.context, self._options(**options))

    def plan(self, **options: Any) -> Report:
        """`winboot plan`."""
        with self._command():
            return survey(self.site.specs(), self.context, self._options(**options))

    def bake(self, *names: str, dry_run: bool = False) -> Report:
        """`winboot bake` of these machines."""
        specs = [spec for spec in self.site.specs() if spec.node.name in names]
        with self._command():
            return bake(specs, self.context, self._options(), dry_run=dry_run)

    def remove(self, *, keep_node: bool = False, cluster_only: bool = False, **options: Any) -> Report:
        """`winboot remove --yes`."""
        with self._command():
            removal = Removal(keep_node, cluster_only)
            return remove(self.site.specs(), self.context, self._options(**options), removal)

    def upgrade(
        self, *, unmanaged: bool = True, emptydir: bool = True, flows: bool = False, **options: Any
    ) -> Report:
        """`winboot upgrade --yes`, with --force and --delete-emptydir-data unless they are left out."""
        with self._command():
            rules = DrainRules(unmanaged=unmanaged, emptydir=emptydir)
            chosen = self._options(drain_rules=rules, **options)
            return upgrade(self.site.specs(), self.context, chosen, flows=flows)

    def rollback(
        self, *, unmanaged: bool = True, emptydir: bool = True, flows: bool = False, **options: Any
    ) -> Report:
        """`winboot rollback --yes` of every node, with the same."""
        with self._command():
            rules = DrainRules(unmanaged=unmanaged, emptydir=emptydir)
            chosen = self._options(drain_rules=rules, **options)
            return rollback(self.site.specs(), self.context, chosen, flows=flows)

    def survey_removal(self, *, keep_node: bool = False, cluster_only: bool = False) -> Report:
        """`winboot remove --dry-run`."""
        with self._command():
            removal = Removal(keep_node, cluster_only)
            return survey_removal(self.site.specs(), self.context, self._options(), removal)

    @property
    def journal(self) -> Path:
        """The folder of this run's journals."""
        return self.site.folder / "journals" / self.run

    def check(self) -> None:
        """A dead process does nothing more."""
        if not self.alive:
            raise Killed

    def _client(self, spec: NodeSpec) -> Inside | None:
        if spec.cluster.kubeconfig is None:
            return None
        self._clients.append(Inside(self, self.site.machines.get(spec.node.name)))
        return self._clients[-1]

    @contextmanager
    def _command(self) -> Iterator[None]:
        """What a command has opened ends with it."""
        try:
            yield
        finally:
            while self._clients:
                self._clients.pop().close()

    def _options(self, **changes: Any) -> Options:
        usual: dict[str, Any] = {"workers": 1, "patience": Patience(poll=5.0)}
        return Options(**(usual | changes))


class LabStop(Stop):
    """Waiting lets the lab's time pass, and costs nothing else."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller

    def wait(self, seconds: float) -> bool:
        self._controller.check()
        self._controller.site.settle(seconds)
        self._controller.check()
        return self.requested


class Direct:
    """A transport that is a function call. It sees a machine that is down or cut off as WinRM would."""

    def __init__(self, controller: Controller, spec: NodeSpec) -> None:
        self._controller = controller
        self._name = spec.node.name
        self._machine = controller.site.machines[self._name]

    def run(
        self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]
    ) -> Iterator[str]:
        controller, machine = self._controller, self._machine
        controller.check()
        machine.tasks.wait_idle()
        if not machine.reachable():
            raise Unreachable(f"{self._name}: does not answer", node=self._name)
        parameters: dict[str, object] = dict(arguments)
        if secrets:
            parameters["Secrets"] = {name: SecureString(each.reveal()) for name, each in secrets.items()}
        # What runs, though the machine keeps the library: a falsified script is sent whole.
        whole = f"{parameters['NodePart']}{library().text}" if "NodePart" in parameters else script
        falsified = controller.rewrite(whole)
        if falsified != whole:
            script = falsified
            for name in ("NodePart", "Reader"):
                parameters.pop(name, None)
        controller.scripts.append(script)
        controller.pipelines.append(arguments)
        controller.secrets.append(sorted(secrets))
        lines: list[str] = []
        before = controller.site.losses[self._name]

        def cut_off() -> bool:
            return controller.site.losses[self._name] != before

        def emit(stream: str, value: object) -> None:
            line = str(value) if stream == "output" else f"{stream}: {value}"
            if controller.alive and not cut_off():
                lines.append(line)
                controller.hear(line)

        try:
            with machine.session(USER) as session, machine.acting():
                controller.session = session
                ended = run_script(session, script, parameters, emit=emit, local_scope=True)
                if cut_off():
                    raise Interrupted(self._name)
            controller.check()
        except Killed:
            controller.at_death()
            raise
        except Refusal as refusal:
            machine.refusals.append(refusal)
            raise ScriptFailed(f"{self._name}: the lab refuses: {refusal}", node=self._name) from None
        except (MachineStopped, Interrupted):
            yield from lines
            raise ConnectionLost(f"{self._name}: cut off", node=self._name) from None
        yield from lines
        if ended.state == "failed":
            raise ScriptFailed(f"{self._name}: {ended.error}", node=self._name)

    def close(self) -> None:
        """There is nothing to give back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Calls(httpx2.BaseTransport):
    """Requests to the API server as function calls."""

    def __init__(self, cluster: LabCluster) -> None:
        self._cluster = cluster

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        parts = urlsplit(str(request.url))
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        content_type = request.headers.get("Content-Type") or "application/json"
        # As the lab's server does while its time leaps.
        headers = {"Date": f"{self._cluster.now():%a, %d %b %Y %H:%M:%S GMT}", "Age": "0"}
        try:
            if request.headers.get("Upgrade") == "websocket":
                stream = self._cluster.stream(ADMIN, parts.path, parse_qsl(parts.query))
                return _opened(request, stream)
            body = decode_body(request.read(), content_type)
            answer = self._cluster.request(
                ADMIN, request.method, parts.path, body, query=query, content_type=content_type
            )
        except ApiFailure as failure:
            return httpx2.Response(failure.code, headers=headers, json=failure.status())
        if isinstance(answer.body, str):
            return httpx2.Response(answer.code, headers=headers, text=answer.body)
        return httpx2.Response(answer.code, headers=headers, json=answer.body)


def _opened(request: httpx2.Request, stream: Stream) -> httpx2.Response:
    """A WebSocket whose other end is spoken by a thread of this process."""
    protocol = chosen(request.headers["Sec-WebSocket-Protocol"], stream.protocols)
    assert protocol is not None
    here, there = socket.socketpair()

    def speak() -> None:
        with there:
            serve(there, stream)

    threading.Thread(target=speak, daemon=True).start()
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": accept_key(request.headers["Sec-WebSocket-Key"]),
        "Sec-WebSocket-Protocol": protocol,
    }
    return httpx2.Response(101, headers=headers, extensions={"network_stream": SyncStream(here)})


class Inside:
    """The cluster client of one controller: the real one, without its sockets.

    The lab checks certificate requests on its own time. The product's thread, which looks every few real seconds,
    only states the nodes whose requests are expected.
    """

    def __init__(self, controller: Controller, machine: Machine | None = None) -> None:
        self._controller = controller
        # Its timers pass the time between two looks.
        self._machine = machine or controller.site.machine
        self._expected: ExpectedNode | None = None
        self._seen = -1
        self._open = True
        site = controller.site
        self._client = LightkubeCluster(
            site.files.kubeconfig,
            transport=_Calls(site.cluster),
            wait=controller.stop.wait,
            clock=lambda: site.time.seconds,
        )
        self._look()

    def __getattr__(self, name: str) -> Any:
        self._controller.check()
        return getattr(self._client, name)

    def settle_requests(self, expected: ExpectedNode) -> tuple[Verdict, ...]:
        self._expected = expected
        return ()

    def close(self) -> None:
        """Look no more."""
        self._open = False
        self._client.close()

    def _look(self) -> None:
        site = self._controller.site
        if not self._controller.alive or not self._open:
            return
        latest = site.cluster.latest(CSRS)
        if self._expected is not None and latest != self._seen:
            self._client.settle_requests(self._expected)
            self._seen = latest
        self._machine.after(1.0, self._look, lasting=True)


def only(report: Report) -> NodeReport:
    """The one node of a report."""
    (node,) = report.nodes
    return node


def differences(report: Report) -> dict[str, list[str]]:
    """What a report found to differ: step to its `what`s, policy left out."""
    return {
        step.name: [d.what for d in step.differences if not d.policy]
        for node in report.nodes
        for step in node.steps
        if any(not d.policy for d in step.differences)
    }


def problems(report: Report) -> list[str]:
    """Everything that went wrong, in words."""
    found = []
    for node in report.nodes:
        if node.failure is not None:
            found.append(f"{node.node}: {node.failure.name}: {node.failure.message}")
        found += [
            f"{node.node}: {step.name} {step.state}: {step.problem.id}: {step.problem.message} ({step.problem.hint})"
            for step in node.steps
            if step.problem is not None
        ]
    return found
