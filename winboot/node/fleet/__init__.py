"""Many nodes side by side: one thread a node, one report a node, whatever happens to the others.

    context   what a run needs from outside, and what the command line asked for
    ownership which nodes it may change: a claim on each
    budget    how fast a run goes over its nodes, and when it stops by itself
    node      one node while it is worked on: session, journal, report
    workers   the threads
    processes more than one process for the nodes of one run

`run_nodes` is what every command that works on machines calls; `conduct` is the same for nodes that are worked on elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from winboot.config.node_spec import NodeSpec
from winboot.node.fleet.budget import Budget, Pace, Share
from winboot.node.fleet.context import Keep, Options, PreparedNode, RunContext, prepare
from winboot.node.fleet.node import NodeRun
from winboot.node.fleet.ownership import Ownership
from winboot.node.fleet.processes import Line, NodeElsewhere, Processes
from winboot.node.fleet.workers import MOST_WORKERS, each
from winboot.report.finding import Finding
from winboot.report.notices import NodeEnded
from winboot.report.results import NodeReport, Report
from winboot.script.plan import make_plan
from winboot.script.rendering import helpers
from winboot.script.steps import STEPS


class Worked(Protocol):
    """One node of a run, wherever it is worked on; any thread may call it."""

    @property
    def name(self) -> str:
        """The node's."""
        ...

    @property
    def spec(self) -> NodeSpec:
        """What it is to be."""
        ...

    def abandoned(self) -> NodeReport:
        """What is known of it when the run was stopped and it did not end."""
        ...

    def unfinished(self) -> NodeReport:
        """What is known of it while the work continues, for a report that may be the last."""
        ...

    def interrupt(self) -> None:
        """Help it to its end, after a request to stop."""
        ...


N = TypeVar("N", bound=Worked)


def run_nodes(
    command: str,
    work: Callable[[NodeRun], None],
    specs: Sequence[NodeSpec],
    context: RunContext,
    options: Options,
    findings: Callable[[], tuple[Finding, ...]] = tuple,
) -> Report:
    """`work` on every node, side by side; `findings` gives what preflight has found so far, and does not wait.

    Wrong names of steps are refused before any machine is contacted.
    """
    small = helpers()
    nodes = [
        NodeRun(spec, make_plan(spec, STEPS, only=options.only, skip=options.skip), context, options, small)
        for spec in specs
    ]

    def reported(node: NodeRun, begin: Callable[[str], None]) -> NodeReport:
        return node.reported(work, begin)

    workers = min(options.workers, MOST_WORKERS)
    return conduct(command, nodes, reported, context, replace(options, workers=workers), findings)


def conduct(
    command: str,
    nodes: Sequence[N],
    reported: Callable[[N, Callable[[str], None]], NodeReport],
    context: RunContext,
    options: Options,
    findings: Callable[[], tuple[Finding, ...]],
) -> Report:
    """Have every node `reported`, side by side, as the budget lets it in; each calls what it is given to be let in."""
    plan = options.approved.sha256 if options.approved is not None else ""
    chosen = {"only": ",".join(options.only), "skip": ",".join(options.skip)}
    asked = {**context.about, **{name: said for name, said in chosen.items() if said}}
    so_far = PartialReport(command, context.run, nodes, findings, by=context.holder, plan=plan, asked=asked)
    context.keep(so_far.report)
    order = _order(command, nodes, context)
    specs = [node.spec for node in nodes]
    pace = pace_of(specs, [node.name for node in order], context, options.budget)

    def ended(node: N) -> NodeReport:
        report = so_far.ended(node, reported(node, pace.begin))
        pace.ended(report)
        context.listener.event(node.name, NodeEnded(report))
        context.keep(so_far.report, report)
        return report

    reports = each(
        order,
        ended,
        stop=context.stop,
        workers=options.workers,
        late=lambda node: node.abandoned(),
        nudge=lambda node: node.interrupt(),
    )
    by_name = {report.node: report for report in reports}
    return so_far.whole([by_name[node.name] for node in nodes])


def _order(command: str, nodes: Sequence[N], context: RunContext) -> list[N]:
    """The nodes in the order of the inventory, but those last whose claim says that a run has ended well with them.
    Every node is looked at, and what is left to do comes first."""
    if context.claims is None or len(nodes) < 2 or command not in ("join", "repair", "upgrade"):
        return list(nodes)
    done = context.claims.done([node.spec for node in nodes])
    return sorted(nodes, key=lambda node: node.name in done)


def pace_of(
    specs: Sequence[NodeSpec],
    order: Sequence[str],
    context: RunContext,
    budget: Budget,
    *,
    elapsed: float = 0.0,
) -> Pace:
    """The budget of a run over these nodes, which begin in this order; `elapsed` is how long it has lasted already."""

    def unavailable() -> dict[str, str]:
        clusters = {id(one): one for spec in specs if (one := context.cluster(spec)) is not None}
        down = (node for cluster in clusters.values() for node in cluster.nodes())
        return {
            node.name: "cordoned" if node.ready else "NotReady"
            for node in down
            if not node.ready or node.unschedulable
        }

    return Pace(
        budget,
        order,
        context.groups,
        unavailable,
        context.stop,
        say=context.listener.say,
        elapsed=elapsed,
    )


class PartialReport:
    """The report of a run that continues: nodes that have ended, what the others have reported, and which ones
    wait."""

    def __init__(
        self,
        command: str,
        run: str,
        nodes: Sequence[Worked],
        findings: Callable[[], tuple[Finding, ...]],
        *,
        by: str,
        plan: str,
        asked: Mapping[str, str],
    ) -> None:
        self._command = command
        self._by = by
        self._plan = plan
        self._asked = asked
        self._run = run
        self._nodes = nodes
        self._findings = findings
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._clock = time.monotonic()
        self._ended: dict[str, NodeReport] = {}

    def ended(self, node: Worked, report: NodeReport) -> NodeReport:
        """Note how a node has ended; gives its report."""
        self._ended[node.name] = report
        return report

    def report(self) -> Report:
        """As it is now; from any thread."""
        return self.whole([self._ended.get(node.name) or node.unfinished() for node in self._nodes])

    def whole(self, nodes: Sequence[NodeReport]) -> Report:
        """The report of these nodes."""
        return Report(
            command=self._command,
            run=self._run,
            started=self._started,
            nodes=tuple(nodes),
            seconds=time.monotonic() - self._clock,
            preflight=self._findings(),
            by=self._by,
            plan=self._plan,
            asked=self._asked,
        )


__all__ = [
    "Budget",
    "Keep",
    "Line",
    "NodeElsewhere",
    "NodeRun",
    "Options",
    "Ownership",
    "PreparedNode",
    "Processes",
    "RunContext",
    "Share",
    "conduct",
    "each",
    "pace_of",
    "prepare",
    "run_nodes",
]
