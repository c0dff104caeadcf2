"""Many nodes side by side: one thread a node, one report a node, whatever happens to the others.

    context   what a run needs from outside, and what the command line asked for
    node      one node while it is worked on: session, journal, report
    workers   the threads

`run_nodes` is what every command that works on machines calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from winboot.fleet.context import Options, PreparedNode, RunContext, prepare
from winboot.fleet.node import NodeRun
from winboot.fleet.workers import each
from winboot.plan import make_plan
from winboot.report import Report
from winboot.script import helpers
from winboot.spec import NodeSpec
from winboot.steps import STEPS


def run_nodes(
    command: str,
    work: Callable[[NodeRun], None],
    specs: Sequence[NodeSpec],
    context: RunContext,
    options: Options,
) -> Report:
    """`work` on every node, side by side. Wrong names of steps are refused before any machine is contacted."""
    started, clock = datetime.now(UTC), time.monotonic()
    small = helpers()
    nodes = [
        NodeRun(spec, make_plan(spec, STEPS, only=options.only, skip=options.skip), context, options, small)
        for spec in specs
    ]
    reports = each(
        nodes,
        lambda node: node.reported(work),
        stop=context.stop,
        workers=options.workers,
        late=NodeRun.abandoned,
        nudge=NodeRun.interrupt,
    )
    return Report(
        command=command,
        run=context.run,
        started=started.isoformat(timespec="seconds"),
        nodes=tuple(reports),
        seconds=time.monotonic() - clock,
    )


__all__ = ["NodeRun", "Options", "PreparedNode", "RunContext", "each", "prepare", "run_nodes"]
