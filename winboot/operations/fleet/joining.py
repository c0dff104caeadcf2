"""The work of a fleet's worker on one node, `winboot join` of it, under the claim that the worker has; and the join of many by
several processes of this computer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import Budget, NodeElsewhere, Options, Processes, RunContext, conduct, run_nodes
from winboot.node.preflight import Preflight, refuse_unknown
from winboot.operations.join.story import refuse_unresolved, work_of
from winboot.remote.cluster.sessions import Held
from winboot.remote.transport.logins import Logins
from winboot.report.finding import Finding
from winboot.report.results import NodeReport, Report
from winboot.script.plan import make_plan
from winboot.script.rendering import helpers
from winboot.script.steps import STEPS


@dataclass(frozen=True, slots=True)
class GivenClaims:
    """The claims of a run whose node is ours already, by another run's doing; see `winboot.node.fleet.ownership`."""

    held: Held

    def take(
        self,
        spec: NodeSpec,
        *,
        by_force: bool,
        patience: float,
        poll: float,
        wait: Callable[[float], bool],
        say: Callable[[str, float], None],
    ) -> tuple[Held, bool]:
        """What was given, at once."""
        return self.held, False

    def give_back(self, spec: NodeSpec, held: Held, result: str, *, leave: bool = True) -> None:
        """The worker that gave it does."""

    def done(self, specs: Sequence[NodeSpec]) -> frozenset[str]:
        """There is one node alone."""
        return frozenset()


class Joining:
    """Joins one node at a time, from any thread. Raises InvalidInput while a hash or a CA is missing."""

    def __init__(
        self, specs: Sequence[NodeSpec], context: RunContext, options: Options, *, command: str = "join"
    ) -> None:
        refuse_unresolved(specs)
        self._command = command
        self._specs = {spec.node.name: spec for spec in specs}
        self._context = context
        # The worker that gives the nodes keeps the budget.
        self._options = replace(options, workers=1, budget=Budget())
        self._preflight = Preflight(specs, context.cluster, skip=options.skip_preflight, drains=options.drain)
        # The first call reads the whole library: nodes that begin at the same moment would each do it.
        helpers()

    def __call__(self, node: str, held: Held | None = None) -> NodeReport:
        """Join it; its report. Without a claim that is `held` for it, it takes one as any run does."""
        context = self._context if held is None else replace(self._context, claims=GivenClaims(held))
        work = partial(work_of(self._command), preflight=self._preflight)
        report = run_nodes(
            self._command, work, [self._specs[node]], context, self._options, self._preflight.so_far
        )
        return report.nodes[0]

    def findings(self) -> tuple[Finding, ...]:
        """What preflight has found so far."""
        return self._preflight.so_far()


def join_in_processes(
    specs: Sequence[NodeSpec],
    context: RunContext,
    options: Options,
    processes: Processes,
    logins: Logins,
    command: str,
) -> Report:
    """`join` of all nodes, by processes that call `Joining` for the nodes that they are given.

    `options.workers` nodes at a time in each. Raises InvalidInput while a hash or a CA is missing, UsageError for wrong names.
    """
    refuse_unresolved(specs)
    refuse_unknown(options.skip_preflight)
    for spec in specs:
        make_plan(spec, STEPS, only=options.only, skip=options.skip)
    nodes = [NodeElsewhere(spec, processes, logins) for spec in specs]
    wide = replace(options, workers=options.workers * processes.count)
    return conduct(command, nodes, NodeElsewhere.reported, context, wide, processes.findings)
