"""Which worker lets the nodes of a run in: one at a time, by the budget of `winboot join`.

It writes the number of the last wave that may begin into the claim of the run. When it is killed, another one takes that claim
over and continues from what the claims on the nodes say; what was let in stays so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from winboot.base.errors import BudgetUsedUp, ClusterConflict
from winboot.node.fleet.budget import Pace
from winboot.node.fleet.ownership import OK
from winboot.operations.fleet.view import ATTEMPT, ORDER, STARTED, STOPPED, WAVE, RunId, View, number, ordered
from winboot.remote.cluster.claims import SESSION
from winboot.remote.cluster.sessions import Held, Session
from winboot.report.results import Failure, NodeReport


@dataclass(slots=True)
class Release:
    """The claim of a run, while it may be this worker's to keep."""

    run: RunId
    nodes: Sequence[str]
    session: Session
    # Makes the budget of the run: from its nodes in order, and how many seconds it has lasted already.
    pace: Callable[[Sequence[str], float], Pace]
    # Which nodes come last in a new run: an earlier one has ended well with them.
    last: Callable[[View], frozenset[str]] = lambda view: frozenset()
    today: Callable[[], datetime] = lambda: datetime.now(UTC)
    _held: Held | None = None
    _pace: Pace | None = None
    _order: list[str] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)

    def keep(self, view: View) -> None:
        """Let in the nodes that the budget allows, where it is ours to do so. Raises ClusterError."""
        if self._held is not None and self._held.taken_by is not None:
            self._drop(self._held)
        if self._held is None:
            self._take(view)
        if self._held is None or self._pace is None:
            return
        notes = self._let_in(view, self._pace)
        if notes == self._held.claim.notes:
            return
        try:
            self._held.claim = self.session.leases.renew(replace(self._held.claim, notes=notes))
        except ClusterConflict:
            # Another one has it, for we were away for too long; or the answer to our own write was lost.
            self._drop(self._held)

    def _drop(self, held: Held) -> None:
        self.session.drop(held)
        self._held = self._pace = None

    def _take(self, view: View) -> None:
        there = view.release
        notes = {key: text for key, text in there.notes.items() if key != SESSION} if there else {}
        self._held = self.session.take(self.run.key, notes or self._new(view), seen=view.claims)
        if self._held is None:
            return
        claim = self._held.claim
        self._order = ordered(claim, self.nodes)
        began = datetime.fromisoformat(claim.notes[STARTED])
        self._pace = self.pace(self._order, max(0.0, (self.today() - began).total_seconds()))
        self._told = set()
        for node in self._order[: number(claim, WAVE)]:
            self._pace.begun(node)

    def _new(self, view: View) -> dict[str, str]:
        done = self.last(view)
        order = sorted(range(len(self.nodes)), key=lambda place: self.nodes[place] in done)
        notes = {STARTED: self.today().isoformat(), ATTEMPT: str(self.run.attempt), WAVE: "0"}
        return notes if order == sorted(order) else notes | {ORDER: json.dumps(order, separators=(",", ":"))}

    def _let_in(self, view: View, pace: Pace) -> dict[str, str]:
        """What the claim of the run is to say now."""
        assert self._held is not None
        notes = dict(self._held.claim.notes)
        wave = number(self._held.claim, WAVE)
        for node in self._order[:wave]:
            result = view.result(node)
            if result and node not in self._told:
                self._told.add(node)
                pace.ended(_report(node, result))
        if notes.get(STOPPED):
            return notes
        while wave < len(self._order):
            node = self._order[wave]
            try:
                if view.result(node):
                    # An earlier try has ended well with it: it needs no place, and may be the canary.
                    pace.begun(node)
                elif pace.let_in(node) is not None:
                    break
            except BudgetUsedUp as error:
                notes[STOPPED] = error.problem.removeprefix(f"{node}: not started: ")
                break
            wave += 1
        return notes | {WAVE: str(wave)}


def _report(node: str, result: str) -> NodeReport:
    """A node's end, as far as a budget asks for it."""
    if result == OK:
        return NodeReport(node, "", "", ready=True)
    return NodeReport(node, "", "", failure=Failure(result.removeprefix("failed:"), "", "", 1))
