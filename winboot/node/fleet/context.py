"""What a run is given: the options of the command line, the ways to machines and cluster, and the nodes' scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from winboot.config.inventory import Machine
from winboot.config.node_spec import NodeSpec
from winboot.node.fleet.budget import Budget
from winboot.node.fleet.ownership import Claims
from winboot.node.run import Listener, Patience, Stop
from winboot.remote.cluster.base import ALL_PODS, Cluster, DrainRules
from winboot.remote.transport.base import Transport
from winboot.report.plan_file import PlanFile
from winboot.report.results import NodeReport, Report
from winboot.script.plan import Plan, make_plan
from winboot.script.rendering import Script, render
from winboot.script.steps import STEPS


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for. Times are in seconds; `ready` bounds the wait for the Ready condition."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    drain: bool = False
    take_over: bool = False
    adopt: bool = False
    # Deletes the images of a runtime that an adoption leaves.
    purge: bool = False
    skip_preflight: tuple[str, ...] = ()
    workers: int = 32
    ready: float = 300.0
    drain_timeout: float = 600.0
    patience: Patience = field(default_factory=Patience)
    # What was approved: nothing else is done. Without it, whatever differs is changed.
    approved: PlanFile | None = None
    # False: a step that needs a restart of the machine stays blocked.
    restart: bool = True
    budget: Budget = field(default_factory=Budget)
    # The script of `remove` instead of `join`.
    undo: bool = False
    drain_rules: DrainRules = ALL_PODS
    # Asks a changed node whether it works, before pods may come: its NodeRun, and when its change began by the clock of
    # time.monotonic. Raises NodeFailed.
    prove: Callable[[Any, float], None] | None = None
    # What becomes of versions that a rollback holds on a machine: they stay, or are given up for the profile's; back: there the
    # node goes (again).
    versions: Literal["kept", "released", "back"] = "kept"


class Keep(Protocol):
    """Is called when a run begins and whenever a node has `ended`; `current` gives the report as it is at that
    moment.

    Called from the nodes' threads. An error that escapes it ends the run.
    """

    def __call__(self, current: Callable[[], Report], ended: NodeReport | None = None) -> None:
        """Take note."""


def _nobody(current: Callable[[], Report], ended: NodeReport | None = None) -> None:
    """Ignore the report: it is read only at its end."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run needs from outside: ways to the machines and the cluster, a listener, and a place for its journal."""

    connect: Callable[[NodeSpec], Transport]
    cluster: Callable[[NodeSpec], Cluster | None]
    listener: Listener
    journals: Path
    run: str
    holder: str
    stop: Stop
    keep: Keep = _nobody
    # The group of every host of the inventory, those outside of this run, too.
    groups: Mapping[str, str] = field(default_factory=dict)
    # The request, in words, for the report: inventory, profile, limit.
    about: Mapping[str, str] = field(default_factory=dict)
    # The machines of the inventory by name: what is rendered again where a rollback holds other versions.
    machines: Mapping[str, Machine] = field(default_factory=dict)
    # Which run may change which node; None: the caller has seen to it.
    claims: Claims | None = None


@dataclass(frozen=True, slots=True)
class PreparedNode:
    """One node with its plan and its script, as `render` and `check` show them."""

    spec: NodeSpec
    plan: Plan
    script: Script


def prepare(specs: Sequence[NodeSpec], options: Options) -> list[PreparedNode]:
    """Plan and render every node; nothing is contacted. Raises UsageError and ScriptError."""
    prepared = []
    for spec in specs:
        plan = make_plan(spec, STEPS, only=options.only, skip=options.skip)
        prepared.append(PreparedNode(spec, plan, render(plan.complete, spec)))
    return prepared
