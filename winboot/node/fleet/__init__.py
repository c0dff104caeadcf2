"""Many nodes side by side: one thread a node, one report a node, whatever happens to the others.

    context   what a run needs from outside, and what the command line asked for
    ownership which nodes it may change: a claim on each
    budget    how fast a run goes over its nodes, and when it stops by itself
    node      one node while it is worked on: session, journal, report
    workers   the threads

`run_nodes` is what every command that works on machines calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from winboot.config.node_spec import NodeSpec
from winboot.node.fleet.budget import Budget, Pace, Share
from winboot.node.fleet.context import Keep, Options, PreparedNode, RunContext, prepare
from winboot.node.fleet.node import NodeRun
from winboot.node.fleet.ownership import Ownership
from winboot.node.fleet.workers import each
from winboot.report.finding import Finding
from winboot.report.notices import NodeEnded
from winboot.report.results import NodeReport, Report
from winboot.script.plan import make_plan
from winboot.script.rendering import helpers
from winboot.script.steps import STEPS


def run_nodes(
    command: str,
    work: Callable[[NodeRun], None],
    specs: Sequence[NodeSpec],
    context: RunContext,
    options: Options,
    findings: Callable[[], tuple[Finding, ...]] = tuple,
) -> Report:
    """`work` on every node, side by side; `findings` gives what preflight has found so far, and waits for nobody.

    Wrong names of steps are refused before any machine is contacted.
    """
    small = helpers()
    nodes = [
        NodeRun(spec, make_plan(spec, STEPS, only=options.only, skip=options.skip), context, options, small)
        for spec in specs
    ]
    plan = options.approved.sha256 if options.approved is not None else ""
    chosen = {"only": ",".join(options.only), "skip": ",".join(options.skip)}
    asked = {**context.about, **{name: said for name, said in chosen.items() if said}}
    so_far = SoFar(command, context.run, nodes, findings, by=context.holder, plan=plan, asked=asked)
    context.keep(so_far.report)
    order = _order(command, nodes, context)
    pace = pace_of(specs, [node.name for node in order], context, options.budget)

    def ended(node: NodeRun) -> NodeReport:
        report = so_far.ended(node, node.reported(work, pace.begin))
        pace.ended(report)
        context.listener.event(node.name, NodeEnded(report))
        context.keep(so_far.report, report)
        return report

    reports = each(
        order,
        ended,
        stop=context.stop,
        workers=options.workers,
        late=NodeRun.abandoned,
        nudge=NodeRun.interrupt,
    )
    by_name = {report.node: report for report in reports}
    return so_far.whole([by_name[node.name] for node in nodes])


def _order(command: str, nodes: Sequence[NodeRun], context: RunContext) -> list[NodeRun]:
    """The nodes in the order of the inventory, but those last whose claim says that a run has ended well with them: every
    node is looked at, and what is left to do comes first."""
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


class SoFar:
    """The report of a run that goes on: nodes that have ended, what the others have told, and who waits."""

    def __init__(
        self,
        command: str,
        run: str,
        nodes: Sequence[NodeRun],
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

    def ended(self, node: NodeRun, report: NodeReport) -> NodeReport:
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
    "NodeRun",
    "Options",
    "Ownership",
    "PreparedNode",
    "RunContext",
    "Share",
    "each",
    "pace_of",
    "prepare",
    "run_nodes",
]
