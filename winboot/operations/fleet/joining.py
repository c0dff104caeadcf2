"""The work of a fleet's worker on one node: `winboot join` of it, under the claim that the worker has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import Options, RunContext, run_nodes
from winboot.node.preflight import Preflight
from winboot.operations.join.story import join_node, refuse_unresolved
from winboot.remote.cluster.sessions import Held
from winboot.report.results import NodeReport


@dataclass(frozen=True, slots=True)
class Given:
    """The claims of a run whose node is ours already, by somebody else's doing; see `winboot.node.fleet.ownership`."""

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
        """Whoever gave it does."""

    def done(self, specs: Sequence[NodeSpec]) -> frozenset[str]:
        """There is one node alone."""
        return frozenset()


class Joining:
    """Joins one node at a time, from any thread. Raises InvalidInput while a hash or a CA is missing."""

    def __init__(self, specs: Sequence[NodeSpec], context: RunContext, options: Options) -> None:
        refuse_unresolved(specs)
        self._specs = {spec.node.name: spec for spec in specs}
        self._context = context
        self._options = replace(options, workers=1)
        self._preflight = Preflight(specs, context.cluster, skip=options.skip_preflight, drains=options.drain)

    def __call__(self, node: str, held: Held) -> NodeReport:
        """Join it; its report."""
        context = replace(self._context, claims=Given(held))
        work = partial(join_node, preflight=self._preflight)
        report = run_nodes("join", work, [self._specs[node]], context, self._options, self._preflight.so_far)
        return report.nodes[0]
