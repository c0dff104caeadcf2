"""How fast a run goes over its nodes, and when it stops by itself: canary, what may be down at once, and deadline.

Without a budget every node is begun as soon as a worker is free. What is under way is never ended by a budget: nothing new
begins (exit code 4), and the same command continues with the nodes that are left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from winboot.base.errors import BudgetUsedUp, ClusterError, Interrupted
from winboot.node.run import Stop
from winboot.report.results import NodeReport

# So many nodes that fail one after the other by the same cause are not an accident.
SAME_FAILURES: Final = 3
# How old the answer about Nodes may be, in seconds: a list of 3,000 Nodes is some 16 MB (cloud-and-fleet notes, 6.1).
_FRESH_S: Final = 5.0
# A node that waits looks this often whether it may begin, if nothing else wakes it.
_LOOK_S: Final = 0.5
_GOES_ON: Final = "Look at the nodes in the reason; the same command continues with the remaining nodes."


@dataclass(frozen=True, slots=True)
class Share:
    """A number of nodes, or so many percent of them."""

    number: int
    percent: bool = False

    def __str__(self) -> str:
        return f"{self.number}%" if self.percent else str(self.number)

    def of(self, count: int, *, least: int = 0) -> int:
        """Of `count` nodes; parts of a node do not count, and it is at least `least`."""
        return max(least, self.number * count // 100 if self.percent else self.number)


@dataclass(frozen=True, slots=True)
class Budget:
    """What the command line asked for. Times are in seconds, `deadline` from the start of the run.

    Up to `max_failed` nodes may fail, one more ends the run; `max_unavailable` holds for each group of the inventory.
    """

    canary: Share | None = None
    max_unavailable: Share | None = None
    max_failed: Share | None = None
    deadline: float | None = None

    @property
    def given(self) -> bool:
        """Whether the user set any limit; the rule of the same failure holds only then."""
        return self != Budget()


# Names of Nodes that are NotReady or cordoned, each with which of the two. Raises ClusterError.
Unavailable = Callable[[], Mapping[str, str]]


class _Availability:
    """Which nodes are down, by an answer that is some seconds old at most, and those that ended since the question.
    What became of them is not known before the next one."""

    def __init__(self, ask: Unavailable, clock: Callable[[], float]) -> None:
        self._ask = ask
        self._clock = clock
        self._asked: float | None = None
        self._ended: set[str] = set()
        self.down: Mapping[str, str] = {}
        self._asking = threading.Lock()

    def renew(self) -> None:
        """Ask where the answer is old, or a node has ended since. A cluster that is away for a moment leaves what was
        known; raises ClusterError where nothing ever was."""
        with self._asking:
            now = self._clock()
            if self._asked is not None and now - self._asked < _FRESH_S and not self._ended:
                return
            settled = set(self._ended)
            try:
                self.down = self._ask()
            except ClusterError:
                if self._asked is None:
                    raise
                return
            self._asked = now
            self._ended -= settled

    def ended(self, node: str) -> None:
        """This node is no longer worked on."""
        self._ended.add(node)

    @property
    def unsettled(self) -> frozenset[str]:
        """Nodes that ended after the last answer."""
        return frozenset(self._ended)


class Pace:
    """The budget of one run while it is spent. `begin` is called by each node's thread, in the order of the nodes."""

    def __init__(
        self,
        budget: Budget,
        nodes: Sequence[str],
        groups: Mapping[str, str],
        unavailable: Unavailable,
        stop: Stop,
        *,
        say: Callable[[str, str], None] = lambda node, text: None,
        clock: Callable[[], float] = time.monotonic,
        elapsed: float = 0.0,
    ) -> None:
        """`groups` names the group of every host of the inventory, those outside of this run, too; `elapsed` is how long the
        work has lasted already, in seconds."""
        self._budget = budget
        self._groups = {**dict.fromkeys(nodes, ""), **groups}
        self._availability = _Availability(unavailable, clock)
        self._stop = stop
        self._say = say
        self._clock = clock
        self._started = clock() - elapsed
        self._count = len(nodes)
        first = budget.canary.of(len(nodes), least=1) if budget.canary is not None else 0
        self._canaries = nodes[:first]
        self._canaries_first = first > 0
        self._running: set[str] = set()
        self._ended: list[NodeReport] = []
        self._closed = ""
        self._changed = threading.Condition()

    def let_in(self, node: str) -> str | None:
        """The same without waiting: what this node has to wait for, None once it may begin."""
        return self._waits_for(node)

    def begun(self, node: str) -> None:
        """Count a node that is admitted already."""
        with self._changed:
            self._running.add(node)

    def begin(self, node: str) -> None:
        """Wait until this node may be begun. Raises BudgetUsedUp once nothing new may, and Interrupted when the run is
        stopped."""
        told = ""
        while (waits_for := self._waits_for(node)) is not None:
            if waits_for != told:
                self._say(node, f"waits: {waits_for}")
                told = waits_for
            with self._changed:
                self._changed.wait(_LOOK_S)

    def ended(self, report: NodeReport) -> None:
        """Take note of how a node ended; what waits looks again."""
        with self._changed:
            if report.node in self._running:
                self._running.remove(report.node)
                self._availability.ended(report.node)
                self._ended.append(report)
                self._hold_against_limits()
            self._changed.notify_all()

    def _hold_against_limits(self) -> None:
        if self._canaries_first:
            self._judge_canaries()
        if self._budget.max_failed is not None:
            failed = [report.node for report in self._ended if report.outcome == "failed"]
            most = self._budget.max_failed.of(self._count)
            if len(failed) > most:
                self._close(f"{_named(failed)} failed, but --max-failed allows only {most}")
        last = self._ended[-SAME_FAILURES:]
        causes = {cause_of(report) for report in last}
        if self._budget.given and len(last) == SAME_FAILURES and len(causes) == 1 and "" not in causes:
            names = _named([report.node for report in last])
            self._close(f"{names} failed in a row for the same reason, {causes.pop()}")

    def _judge_canaries(self) -> None:
        canaries = [report for report in self._ended if report.node in self._canaries]
        for report in canaries:
            if report.outcome not in ("ok", "changed"):
                self._close(f"the canary {report.node} ended as {report.outcome}")
            elif report.ready is False:
                self._close(f"the canary {report.node} is not Ready")
        if len(canaries) == len(self._canaries):
            self._canaries_first = False

    def _close(self, reason: str) -> None:
        self._closed = self._closed or reason

    def _waits_for(self, node: str) -> str | None:
        """What this node has to wait for; None when it has been let in."""
        if self._stop.requested:
            raise _interrupted(node)
        if self._budget.max_unavailable is not None:
            self._availability.renew()
        with self._changed:
            waits_for = None
            if not self._closed:
                self._hold_against_time()
                waits_for = self._canary_first(node) or self._room_for(node)
            if self._closed:
                raise BudgetUsedUp(f"{node}: not started: {self._closed}", hint=_GOES_ON, node=node)
            if waits_for is None:
                self._running.add(node)
            return waits_for

    def _hold_against_time(self) -> None:
        deadline = self._budget.deadline
        if deadline is not None and self._clock() - self._started >= deadline:
            self._close("the deadline has passed")

    def _canary_first(self, node: str) -> str | None:
        if not self._canaries_first or node in self._canaries:
            return None
        return f"winboot starts with the canary {_named(self._canaries)}"

    def _room_for(self, node: str) -> str | None:
        """What keeps this node out of its group's share of nodes that may be down at once. Nodes that are down already
        take a place each; one of them may be begun all the same."""
        down = self._availability.down
        if self._budget.max_unavailable is None or node in down:
            return None
        group = self._groups[node]
        members = {one for one, of in self._groups.items() if of == group}
        most = self._budget.max_unavailable.of(len(members), least=1)
        away = members & (down.keys() | self._running | self._availability.unsettled)
        if len(away) < most:
            return None
        where = f"the group {group}" if group else "this run"
        if not (self._running or self._availability.unsettled):
            states = ", ".join(f"{one} is {down[one]}" for one in sorted(away))
            self._close(f"in {where} only {most} may be unavailable, and {states}")
        return f"in {where} only {most} may be unavailable at once: {_named(sorted(away))}"


def cause_of(report: NodeReport) -> str:
    """Why a node failed: its step and the problem's name, or the error's; empty where it did not fail."""
    if report.outcome != "failed":
        return ""
    for step in report.steps:
        if step.state == "failed" and step.problem is not None:
            return f"{step.name}: {step.problem.id}"
    return report.failure.name if report.failure is not None else "failed"


def _interrupted(node: str) -> Interrupted:
    return Interrupted(
        f"{node}: interrupted before the start of this node",
        hint="Run the same command again: it continues where it stopped.",
        node=node,
    )


def _named(nodes: Sequence[str]) -> str:
    """The first few of them by name."""
    shown = ", ".join(nodes[:5])
    return shown if len(nodes) <= 5 else f"{shown} and {len(nodes) - 5} more"
