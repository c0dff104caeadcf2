"""The story: does traffic really flow? A namespace, pods and services, every flow tried once from each node, and nothing left.

leftovers cleared → namespace → pods and services → flows, each with its probable cause → the nodes' probes → namespace deleted
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from winboot.base import exits
from winboot.base.errors import ClusterError, InternalError, UsageError, WinbootError
from winboot.config.node_spec import NodeSpec
from winboot.node.facts import said
from winboot.node.fleet import RunContext
from winboot.node.probes import PROBES, Probe, ServicePort, probe_and_look
from winboot.operations.verify.diagnosis import cause_of
from winboot.operations.verify.flows import FLOWS, IDS, LIMITATIONS, WORKLOADS, flow
from winboot.operations.verify.objects import IMAGES, LINUX_IMAGE
from winboot.operations.verify.scene import NodeScene, Scene
from winboot.operations.verify.stage import Stage
from winboot.operations.verify.trials import (
    Outcome,
    PodCommands,
    Trial,
    api_trials,
    egress,
    node_port_trial,
    node_trials,
    targets,
)
from winboot.operations.verify.workloads import Workloads
from winboot.remote.cluster.base import Cluster, NodeFacts
from winboot.remote.cluster.workbench import Workbench
from winboot.report.flows import FlowReport, FlowRow, State
from winboot.report.results import Failure, Report
from winboot.script.rendering import reach as reach_script

TRIES: Final = 3
PAUSE_S: Final = 5.0
_HTTPS: Final = 443


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for. `images` by Windows release, or `linux`; `egress` a place outside (host,
    port), None for the registry of the pause image. `timeout` in seconds, for pods to run. `changed_s`: how many
    seconds before now a node was changed, for those that were; `others`: nodes that take part only as the other
    end."""

    flows: frozenset[str] = frozenset(IDS)
    images: Mapping[str, str] = field(default_factory=dict)
    egress: tuple[str, int] | None = None
    timeout: float = 300.0
    keep: bool = False
    # For the flows of `WORKLOADS`: a StorageClass, and a share as \\\\HOST\\NAME.
    storage_class: str = ""
    share: str = ""
    # A namespace that exists, for a user who may not make one; else each run makes its own.
    namespace: str = ""
    workers: int = 8
    changed_s: Mapping[str, float] = field(default_factory=dict)
    others: Sequence[NodeSpec] = ()


# After a change: the flows of `WORKLOADS` need options that only `winboot verify` has.
_OF_EACH_NODE: Final = Options(flows=frozenset(IDS) - frozenset(WORKLOADS))


def verify(specs: Sequence[NodeSpec], context: RunContext, options: Options) -> FlowReport:
    """Try every flow of these nodes. What the cluster refuses is in the report, with its exit code; winboot deletes
    the namespace in any case, also when the run is to stop. Raises UsageError where a profile names no cluster.
    """
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    rows: list[FlowRow] = []
    notes: list[str] = []
    codes: list[int] = []
    for cluster, several in _by_cluster((*specs, *options.others), context):
        run = _Run(cluster, cluster.workbench(), several, context, options)
        code = run.go()
        rows += run.rows
        notes += run.notes
        codes.append(code)
    stopped = context.stop.exit_code if context.stop.requested else 0
    return FlowReport(
        run=context.run,
        started=started,
        rows=tuple(rows),
        notes=tuple(notes),
        seconds=time.monotonic() - clock,
        code=exits.foremost((*codes, stopped)),
        nodes=tuple(spec.node.name for spec in specs),
    )


def verify_changed(
    result: Report, specs: Sequence[NodeSpec], context: RunContext, options: Options | None = None
) -> FlowReport | None:
    """Verify the nodes that a run has changed and that are Ready; None where no node qualifies, or the run is to
    stop. Where it is one node, another that is Ready takes part as the other end. To be called when the run has just
    ended: ends of services count from now on."""
    changed = {one.node for one in result.nodes if one.ready and one.outcome == "changed"}
    chosen = [spec for spec in specs if spec.node.name in changed]
    if not chosen or context.stop.requested:
        return None
    others = [spec for spec in specs if spec.node.name not in changed]
    return _verify_beside(chosen, others, context, dict.fromkeys(changed, 0.0), options or _OF_EACH_NODE)


def verify_beside(
    spec: NodeSpec,
    others: Sequence[NodeSpec],
    context: RunContext,
    changed_s: float,
    options: Options | None = None,
) -> FlowReport:
    """Verify one node that was changed so many seconds ago; the first of the others that is Ready takes part as the other
    end. Raises what `verify` does."""
    return _verify_beside([spec], others, context, {spec.node.name: changed_s}, options or _OF_EACH_NODE)


def _verify_beside(
    specs: Sequence[NodeSpec],
    others: Sequence[NodeSpec],
    context: RunContext,
    changed_s: Mapping[str, float],
    options: Options,
) -> FlowReport:
    beside = (
        next((one for one in others if _is_ready(one, specs, context)), None) if len(specs) == 1 else None
    )
    return verify(
        specs, context, replace(options, changed_s=changed_s, others=() if beside is None else (beside,))
    )


def _is_ready(spec: NodeSpec, specs: Sequence[NodeSpec], context: RunContext) -> bool:
    """Whether a node of the same cluster can be the other end."""
    if _where(spec) != _where(specs[0]):
        return False
    try:
        cluster = context.cluster(spec)
        node = cluster.node(spec.node.name) if cluster is not None else None
    except ClusterError:
        return False
    return node is not None and node.ready


def _where(spec: NodeSpec) -> tuple[str, str | None]:
    return str(spec.cluster.kubeconfig), spec.cluster.context


def _by_cluster(specs: Sequence[NodeSpec], context: RunContext) -> list[tuple[Cluster, list[NodeSpec]]]:
    groups: dict[tuple[str, str | None], list[NodeSpec]] = {}
    for spec in specs:
        groups.setdefault(_where(spec), []).append(spec)
    found = []
    for several in groups.values():
        cluster = context.cluster(several[0])
        if cluster is None:
            raise UsageError(
                f"{several[0].node.name}: the profile has no cluster.kubeconfig",
                hint="verify makes pods. Set cluster.kubeconfig; `winboot manifests verifier` prints the rights that its user "
                "needs.",
            )
        found.append((cluster, several))
    return found


class _Run:
    """One cluster's part of a verification."""

    def __init__(
        self,
        cluster: Cluster,
        bench: Workbench,
        specs: Sequence[NodeSpec],
        context: RunContext,
        options: Options,
    ) -> None:
        self._cluster = cluster
        self._specs = specs
        self._others = frozenset(one.node.name for one in options.others)
        self._context = context
        self._options = options
        # When it began, by the cluster's clock.
        self._began: datetime | None = None
        self.rows: list[FlowRow] = []
        self.notes: list[str] = []
        self._bench = bench
        self._stage = Stage(
            cluster,
            bench,
            context.run,
            context.holder,
            context.stop.wait,
            options.timeout,
            keep=options.keep,
            given=options.namespace,
            now=cluster.server_time,
        )
        self._workloads = Workloads(self._stage, options.images, options.storage_class, options.share)

    def go(self) -> int:
        """Everything; the exit code of what ended it early, or 0."""
        try:
            return self._go()
        except ClusterError as error:
            self._ended_early(error)
            return error.exit_code

    def _go(self) -> int:
        if self._options.changed_s:
            self._began = self._cluster.server_time()
        nodes = {one.name: one for one in self._cluster.nodes()}
        scene = Scene(
            self._stage.space,
            [NodeScene(spec, nodes[spec.node.name]) for spec in self._specs if spec.node.name in nodes],
            domain=self._specs[0].cluster.dns_domain,
        )
        for spec in self._specs:
            if spec.node.name not in nodes:
                self._row("pod-start", spec.node.name, "", "", "failed", seen="the cluster has no such Node")
        if self._wants(one.id for one in FLOWS):
            self._flows(scene, nodes)
        else:
            self._look(scene)
        self.rows = [row for row in self.rows if row.node not in self._others]
        self.notes += [f"{name} is unchanged, and is the other end of flows" for name in self._others]
        self.rows.sort(key=lambda row: (_ORDER.get(row.flow, len(_ORDER)), row.node))
        return 0

    def _wants(self, ids: Iterator[str]) -> bool:
        return any(one in self._options.flows for one in ids)

    def _flows(self, scene: Scene, nodes: Mapping[str, NodeFacts]) -> None:
        for name in self._stage.clear_leftovers():
            self.notes.append(f"removed the namespace {name} of a run that was killed")
        linux = _linux_node(nodes.values())
        try:
            self._say("making pods and services")
            self._stage.open()
            self._stage.fill(
                scene, self._options.images, linux, self._options.images.get("linux", LINUX_IMAGE)
            )
            if self._stage.wait_running(scene):
                return
            self._name_policies(scene)
            # Until kube-proxy has written the new services everywhere.
            if self._context.stop.wait(PAUSE_S):
                return
            self._say("trying the flows")
            self._look(scene)
            self._try_all(scene)
        finally:
            left = self._stage.close(patient=not self._context.stop.requested)
            if left:
                self.notes.append(left)
        self._left_out(scene, linux)

    def _name_policies(self, scene: Scene) -> None:
        scene.policies = self._stage.network_policies()
        scene.everywhere = self._stage.cluster_policies()
        names = (*(f"NetworkPolicy {one}" for one in scene.policies), *scene.everywhere)
        for node in scene.nodes:
            node.policies = names
        if scene.policies:
            self.notes.append(
                f"the cluster has put NetworkPolicies into the namespace: {', '.join(scene.policies)}; where the network "
                "enforces them, they refuse flows"
            )

    # ---- trying ----------------------------------------------------------------------------------------

    def _try_all(self, scene: Scene) -> None:
        hands = PodCommands(self._bench, scene)
        with ThreadPoolExecutor(self._options.workers) as pool:
            for rows in pool.map(partial(self._try_node, hands, scene), scene.nodes):
                self.rows += rows

    def _try_node(self, hands: PodCommands, scene: Scene, node: NodeScene) -> list[FlowRow]:
        if node.server is None or node.client is None:
            return [
                self._made(
                    "pod-start",
                    node.name,
                    "",
                    node.name,
                    "failed",
                    seen=node.problem or "the pods do not run",
                    cause="an image of another build, a failed pull, a network without a free address, or a quota",
                    next="Give another image with --image, or use --keep and `kubectl describe pod`.",
                )
            ]
        rows = [
            self._made(
                "pod-start",
                node.name,
                "",
                node.name,
                "passed",
                seen=f"{node.client.address}, {node.server.address}",
            )
        ]
        blocked = ""
        known: dict[str, tuple[str, str]] = {}
        for trial in self._trials(hands, scene, node):
            if trial.flow not in self._options.flows or self._context.stop.requested:
                continue
            if blocked and not trial.own:
                rows.append(self._untried(trial, blocked))
                continue
            outcome = self._tried(trial)
            if outcome.symptom == "api" and not trial.own:
                rows.append(self._untried(trial, outcome.seen))
                continue
            if trial.flow == "exec" and not outcome.passed:
                blocked = f"winboot could run no command in a pod on {node.name}"
            row = self._judged(trial, outcome, scene, known)
            if row.state == "failed":
                known.setdefault(trial.flow, (row.cause, row.next))
            rows.append(row)
        return rows

    def _trials(self, hands: PodCommands, scene: Scene, node: NodeScene) -> Iterator[Trial]:
        yield from api_trials(hands, node)
        yield from node_trials(hands, scene, node)
        through = node_port_trial(hands, scene, node)
        if through is not None:
            yield through
        yield from self._workloads.trials(scene, node)
        place = self._place(node.spec)
        client = node.client
        if place is not None and client is not None:
            host, port, proxy = place
            yield Trial(
                "egress",
                node,
                f"pod on {node.name}",
                f"{host}:{port}" + (f" by {proxy}" if proxy else ""),
                lambda: egress(hands, client, host, port, proxy),
                at=node,
            )

    def _tried(self, trial: Trial) -> Outcome:
        """Once more where it fails: load balancers and names take some seconds to be everywhere."""
        outcome = _once(trial)
        for _ in range(TRIES - 1):
            if outcome.passed or self._context.stop.wait(PAUSE_S):
                break
            if (
                trial.own
                and trial.flow in ("node-pod", "node-pod-remote", "node-port")
                and trial.at is not None
            ):
                trial.at.reached = {**trial.at.reached, **self._reach(trial.at, _asked(trial))}
            outcome = _once(trial)
        return outcome

    def _judged(
        self, trial: Trial, outcome: Outcome, scene: Scene, known: Mapping[str, tuple[str, str]]
    ) -> FlowRow:
        cause, next_ = ("", "") if outcome.passed else cause_of(trial, outcome, scene, known)
        return self._made(
            trial.flow,
            trial.node.name if trial.node is not None else "",
            trial.source,
            trial.target,
            "passed" if outcome.passed else "failed",
            seen=outcome.seen,
            cause=cause,
            next=next_,
        )

    def _untried(self, trial: Trial, why: str) -> FlowRow:
        name = trial.node.name if trial.node is not None else ""
        return self._made(
            trial.flow, name, trial.source, trial.target, "untried", seen=why, next="First what failed above."
        )

    def _place(self, spec: NodeSpec) -> tuple[str, int, str] | None:
        """Where egress goes: the given place, else the registry of the pause image, through the profile's proxy."""
        if self._options.egress is not None:
            host, port = self._options.egress
        else:
            registry = spec.runtime.pause_image.partition("/")[0]
            urls = spec.runtime.registry_urls.get(registry) or ()
            parts = urlsplit(urls[0] if urls else f"https://{registry}")
            host, port = parts.hostname or registry, parts.port or (80 if parts.scheme == "http" else _HTTPS)
        proxy = spec.proxy.https or spec.proxy.http or ""
        return host, port, "" if _past_proxy(host, spec.proxy.no_proxy) else proxy

    # ---- the machines ----------------------------------------------------------------------------------

    def _look(self, scene: Scene) -> None:
        """Ask every machine what it says of itself, and to connect to what only it can try."""
        with ThreadPoolExecutor(self._options.workers) as pool:
            for rows in pool.map(partial(self._look_at, scene), scene.nodes):
                self.rows += rows

    def _look_at(self, scene: Scene, node: NodeScene) -> list[FlowRow]:
        try:
            with self._context.connect(node.spec) as transport:
                probes, node.look = probe_and_look(
                    node.spec,
                    transport,
                    self._cluster.node(node.name),
                    services=self._service_ports(),
                    changed_s=self._since_change(node.name),
                    wait=self._context.stop.wait,
                    now=self._cluster.server_time,
                )
                wanted = targets(scene, node)
                if wanted:
                    node.reached = _connections(
                        transport.run(reach_script(), {"Targets": ",".join(wanted)}, {})
                    )
        except Exception as error:  # noqa: BLE001 - a bug at one node must not cost the others their answers
            failure = Failure.of(error if isinstance(error, WinbootError) else InternalError.about(error))
            return [
                self._made(id, node.name, node.name, "", "untried", seen=failure.message, next=failure.hint)
                for id in PROBES
                if id in self._options.flows
            ]
        return [self._probe_row(node, one) for one in probes if one.id in self._options.flows]

    def _since_change(self, name: str) -> float | None:
        """How many seconds ago a node was changed; None where it was not."""
        before = self._options.changed_s.get(name)
        if before is None or self._began is None:
            return None
        return before + (self._cluster.server_time() - self._began).total_seconds()

    def _reach(self, node: NodeScene, target: str) -> Mapping[str, str]:
        if not target:
            return {}
        try:
            with self._context.connect(node.spec) as transport:
                return _connections(transport.run(reach_script(), {"Targets": target}, {}))
        except WinbootError:
            return {}

    def _probe_row(self, node: NodeScene, probe: Probe) -> FlowRow:
        states: Mapping[bool | None, State] = {True: "passed", False: "failed", None: "untried"}
        state = "left-out" if probe.left_out else states[probe.passed]
        return FlowRow(
            probe.id,
            node.name,
            node.name,
            "",
            state,
            probe.expected,
            probe.seen,
            probe.cause,
            probe.next,
        )

    def _service_ports(self) -> list[ServicePort] | None:
        """The ports of services that have ready backends; None where they cannot be read."""
        try:
            services, slices = self._bench.listed("Service"), self._bench.listed("EndpointSlice")
        except ClusterError:
            return None
        ready = {
            (
                one["metadata"]["namespace"],
                (one["metadata"].get("labels") or {}).get("kubernetes.io/service-name"),
            )
            for one in slices
            if any((e.get("conditions") or {}).get("ready", True) for e in one.get("endpoints") or [])
        }
        return [
            ServicePort(
                f"{one['metadata']['namespace']}/{one['metadata']['name']}",
                str(one["spec"]["clusterIP"]),
                int(port["port"]),
                17 if port.get("protocol") == "UDP" else 6,
            )
            for one in services
            if one["spec"].get("clusterIP") not in (None, "", "None")
            and (one["metadata"]["namespace"], one["metadata"]["name"]) in ready
            for port in one["spec"].get("ports") or []
        ]

    # ---- rows ------------------------------------------------------------------------------------------

    def _made(
        self,
        id: str,
        node: str,
        source: str,
        target: str,
        state: State,
        *,
        seen: str = "",
        cause: str = "",
        next: str = "",
    ) -> FlowRow:
        expected = PROBES[id] if id in PROBES else flow(id).expected
        return FlowRow(id, node, source, target, state, expected, seen, cause, next)

    def _row(self, id: str, node: str, source: str, target: str, state: State, *, seen: str = "") -> None:
        self.rows.append(self._made(id, node, source, target, state, seen=seen))

    def _left_out(self, scene: Scene, linux: str) -> None:
        """What there is no pair for, by name; where the Linux ends are; what Windows does not have."""
        running = [node for node in scene.nodes if node.server is not None]
        for one in FLOWS:
            if one.id not in self._options.flows:
                continue
            if one.linux and scene.linux is None:
                why = scene.linux_problem or "the cluster has no Linux node that is Ready"
                self._row(one.id, "", "", "", "left-out", seen=why)
            if (
                one.pair
                and len(running) < 2
                and not (one.id == "node-pod-remote" and any(n.overlay for n in running))
            ):
                self._row(one.id, "", "", "", "left-out", seen="only one Windows node takes part")
        for node in running:
            for id, why in self._workloads.missing(node.spec).items():
                if id in self._options.flows:
                    self._row(id, node.name, "", "", "left-out", seen=why)
        if len(running) == 1 and scene.linux is None and "node-port" in self._options.flows:
            self._row("node-port", "", "", "", "left-out", seen="no other machine takes part")
        if scene.linux is not None:
            self.notes.append(f"the Linux pods of the flows run on {linux}")
        builds = {node.spec.machine.os for node in running}
        if len(builds) == 1:
            self.notes.append(
                f"all nodes have Windows Server {builds.pop()}: winboot tried no flow between builds"
            )
        for id, why in LIMITATIONS.items():
            if id != "node-pod-overlay" or any(node.overlay for node in running):
                self.rows.append(FlowRow(id, "", "", "", "limitation", "not on this OS", why))

    def _ended_early(self, error: ClusterError) -> None:
        self.notes.append(f"{error.problem}" + (f"; next: {error.hint}" if error.hint else ""))

    def _say(self, text: str) -> None:
        for spec in self._specs:
            self._context.listener.say(spec.node.name, text)


_ORDER: Final = {id: number for number, id in enumerate((*IDS, *LIMITATIONS))}


def _once(trial: Trial) -> Outcome:
    try:
        return trial.run()
    except ClusterError as error:
        return Outcome(False, error.problem, "api")


def _asked(trial: Trial) -> str:
    """What the machine itself connects to in this trial."""
    if trial.flow == "node-port":
        return trial.target if trial.to is None else f"{trial.to.address}:{trial.to.node_port}"
    return f"{trial.address}:80"


def _connections(lines: Iterable[str]) -> dict[str, str]:
    return {str(one["target"]): str(one.get("state", "")) for one in said(lines, "target")}


def _linux_node(nodes: Iterable[NodeFacts]) -> str:
    """The Linux node for the Linux ends: one that takes ordinary pods before one with taints. Empty where it is
    missing."""
    ready = [
        one
        for one in nodes
        if one.ready and not one.unschedulable and one.labels.get("kubernetes.io/os") == "linux"
    ]
    ready.sort(key=lambda one: (len(one.taints), one.name))
    return ready[0].name if ready else ""


def _past_proxy(host: str, no_proxy: Sequence[str]) -> bool:
    """Whether a host is reached past the proxy: itself, or below one of the suffixes."""
    return any(host == one or host.endswith("." + one.lstrip(".")) for one in no_proxy if one)


__all__ = ["IMAGES", "Options", "verify"]
