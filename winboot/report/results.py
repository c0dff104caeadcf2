"""What happened, as data. The renderers next to this file turn it into a table, JSON lines, JUnit or one HTML page.

A `Report` holds one `NodeReport` for every node of the run, whatever became of it. A node that could not be reached
has its error here and nowhere else, and the other nodes are unaffected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Struct, structs

import winboot
from winboot.base import exits
from winboot.base.errors import WinbootError
from winboot.report.events import Difference, Problem, StepDone, StepState
from winboot.report.finding import Finding
from winboot.report.line import Count, Line, ShaOrNothing, says

Outcome = Literal["ok", "changed", "would-change", "blocked", "skipped", "failed", "interrupted"]


def tenths(seconds: float) -> str:
    """A time as texts show it. Rounded to milliseconds first, as a report keeps it: one that was read back shows the same."""
    return f"{round(seconds, 3):.1f}"


class Failure(Struct, frozen=True):
    """Why a node stopped or was left alone, apart from a failed step: the class of the error, its sentence, and what to do
    next."""

    name: str
    message: str
    hint: str
    exit_code: Count

    @classmethod
    def of(cls, error: WinbootError) -> Failure:
        """The report's form of an error."""
        return cls(type(error).__name__, error.problem, error.hint, error.exit_code)


class StepReport(Struct, frozen=True, rename={"name": "step"}):
    """One step on one node: its last state and what it found. `ms` is the time on the node over all passes, `ended`
    how many seconds after the node's begin it was reported as not as wanted, or no longer. None for one that was
    right."""

    name: str
    state: StepState
    ms: Count = 0
    differences: tuple[Difference, ...] = ()
    problem: Problem | None = None
    why: str = ""
    ended: float | None = None


class Digests(Struct, frozen=True):
    """What ran, or would run, on a node: the SHA-256 of its merged settings, of its script, and of the library in it.

    Empty where the node was not begun.
    """

    settings: ShaOrNothing = ""
    script: ShaOrNothing = ""
    library: ShaOrNothing = ""


class Need(Struct, frozen=True):
    """A flag of `join` without which it would refuse, and what it is for."""

    flag: str
    why: str


class NodeReport(Line, frozen=True, tag="node"):
    """One node, when it has ended."""

    where = "`plan`, `join`, `repair`, `preflight`, and their `--report`"
    node: Annotated[str, says("the host of the inventory")]
    address: Annotated[str, says("the address of the host")]
    os: Annotated[str, says("the release of Windows Server in the inventory")]
    steps: Annotated[
        tuple[StepReport, ...], says("the steps in running order, each with its differences and its problem")
    ] = ()
    failure: Annotated[Failure | None, says("why this node's run stopped, apart from a failed step")] = None
    reboots: Annotated[Count, says("restarts of the machine")] = 0
    detached: Annotated[Count, says("how many runs rewired the node's network")] = 0
    reconnects: Annotated[Count, says("how many connections were lost and made again")] = 0
    pipelines: Annotated[Count, says("how often a script was sent")] = 0
    began: Annotated[float, says("seconds from the begin of the run to the begin of this node")] = 0.0
    seconds: Annotated[float, says("seconds of wall time for this node")] = 0.0
    ready: Annotated[bool | None, says("whether the Node is Ready; null if winboot did not look")] = None
    notes: Annotated[tuple[str, ...], says("warnings, which do not change the result")] = ()
    digests: Annotated[Digests, says("the SHA-256 of settings, script and library")] = Digests()
    needs: Annotated[tuple[Need, ...], says("flags that a join of this node needs")] = ()
    # Pods may run on a Node without the startup taint.
    live: Annotated[bool | None, says("whether pods may run on the Node; null if not checked")] = None
    # Of the others, and set by them alone.
    outcome: Annotated[Outcome, says("the node's result in one word: its worst event")] = "ok"
    skipped: Annotated[Failure | None, says("why winboot skipped the node; `failure` is then null")] = None

    def __post_init__(self) -> None:
        failure = self.failure or self.skipped
        structs.force_setattr(self, "failure", failure)
        structs.force_setattr(self, "outcome", self._outcome())
        structs.force_setattr(self, "skipped", failure if self.outcome == "skipped" else None)
        for name in ("began", "seconds"):
            structs.force_setattr(self, name, round(getattr(self, name), 3))

    @property
    def counts(self) -> Counter[str]:
        """How many steps ended in each state."""
        return Counter(step.state for step in self.steps)

    @property
    def clock(self) -> str | None:
        """How far the clock of a live node is off, in words; None if it is right."""
        found = (
            one.is_ for step in self.steps for one in step.differences if one.policy and one.key == "clock"
        )
        return next(found, None)

    def _outcome(self) -> Outcome:
        """The worst that happened to it. Nothing failed on one that is blocked (it waits for a drain or a restart) or skipped
        (left alone, `failure` says why)."""
        counts = self.counts
        if self.failure is not None and self.failure.exit_code == exits.INTERRUPTED:
            return "interrupted"
        left = (exits.NOT_DONE, exits.STOPPED_ITSELF)
        skipped = self.failure is not None and self.failure.exit_code in left
        if counts["failed"] or (self.failure is not None and not skipped):
            return "failed"
        if skipped:
            return "skipped"
        # A wrong clock stops no step, and winboot does not set it.
        if counts["blocked"] or self.clock:
            return "blocked"
        if counts["would-change"]:
            return "would-change"
        return "changed" if counts["changed"] else "ok"

    @property
    def exit_code(self) -> int:
        """What this node alone would make the command exit with."""
        counts = self.counts
        undone = counts["blocked"] or counts["would-change"] or self.clock
        steps = exits.NOT_DONE if undone else exits.DONE
        if counts["failed"]:
            steps = exits.FAILED
        return exits.foremost((steps,) if self.failure is None else (self.failure.exit_code, steps))


@dataclass(frozen=True, slots=True)
class Report:
    """One run of one command over its nodes. `started` is an ISO 8601 time in UTC, `by` the user that ran it, `plan`
    the SHA-256 of the plan that it ran, if there was one. `asked` is the request, in words: inventory, profile,
    limit, only, skip."""

    command: str
    run: str
    started: str
    nodes: tuple[NodeReport, ...] = field(default=())
    seconds: float = 0.0
    preflight: tuple[Finding, ...] = ()
    winboot: str = winboot.__version__
    by: str = ""
    plan: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        """How many steps were changed, over all nodes."""
        return sum(node.counts["changed"] for node in self.nodes)

    @property
    def exit_code(self) -> int:
        """That of its nodes (see `exits.of_nodes`), and at least 1 where preflight has found an error."""
        found = exits.FAILED if any(one.stops for one in self.preflight) else exits.DONE
        return exits.foremost((exits.of_nodes([node.exit_code for node in self.nodes]), found))


def collect(events: Iterable[StepDone], whys: dict[str, str] | None = None) -> tuple[StepReport, ...]:
    """Fold the step events of all passes into one report a step.

    The state is the last one seen, except that a step which a pass changed stays `changed` when a later pass finds it
    `ok`. The differences are those of the first pass that had any, so that the report shows what was found.
    """
    steps: dict[str, StepReport] = {}
    for event in events:
        before = steps.get(event.step)
        steps[event.step] = _fold(before, event, (whys or {}).get(event.step, ""))
    return tuple(steps.values())


def _fold(before: StepReport | None, event: StepDone, why: str) -> StepReport:
    if before is None:
        return StepReport(event.step, event.state, event.ms, event.differences, event.problem, why)
    state: StepState = event.state
    if state == "ok" and before.state in ("changed", "would-change"):
        # In a Change pass a difference of the look may be gone because an earlier step removed it.
        state = "changed"
    return StepReport(
        name=event.step,
        state=state,
        ms=before.ms + event.ms,
        differences=event.differences or before.differences,
        problem=event.problem,
        why=why,
    )
