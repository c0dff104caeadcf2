"""One worker of a run: it claims nodes, works on them and gives them back with what became of them.

Its own shard comes first, then what is left of the others'. A worker that is killed leaves claims that no process
renews: the next worker that looks takes them over. It stays until every node of the run has its result, or nothing
new may begin.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from winboot.base import exits
from winboot.base.errors import ClusterError, Interrupted
from winboot.node.fleet.ownership import OK, result_of
from winboot.node.run import Stop
from winboot.operations.fleet.release import Release
from winboot.operations.fleet.view import ATTEMPT, RunId, View
from winboot.remote.cluster.claims import Leases
from winboot.remote.cluster.sessions import Held, Session
from winboot.report.results import NodeReport


@dataclass(frozen=True, slots=True)
class Shard:
    """Which of the shards is a worker's own, from 0 on, how many nodes it works on at a time, and the seconds
    between two looks at the claims."""

    index: int = 0
    of: int = 1
    workers: int = 8
    poll: float = 2.0


@dataclass(slots=True)
class FleetWorker:
    """One process. `run` returns when there is nothing left to do for it."""

    run_id: RunId
    # In the order of the inventory.
    nodes: Sequence[str]
    shard: Shard
    leases: Leases
    session: Session
    release: Release
    # The work on one node: its claim says whether another run had it, and ends the work when it is lost.
    work: Callable[[str, Held], NodeReport]
    stop: Stop
    notes: Callable[[str], Mapping[str, str]] = lambda node: {}
    say: Callable[[str], None] = lambda text: None
    reports: dict[str, NodeReport] = field(default_factory=dict)
    _running: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _view: View | None = None
    _away: str = ""

    def run(self) -> int:
        """Work until the run is over; the exit code: 3 where a node failed here, 4 where the budget was used up, that of the
        signal where the worker was stopped."""
        try:
            while not self.stop.requested and not self._looked_and_done():
                self.stop.wait(self.shard.poll)
            self._wait_for_own()
        finally:
            self.session.close()
        return self._exit_code()

    def _looked_and_done(self) -> bool:
        """Look at the claims, let nodes in and begin what may begin; whether nothing is left to do here."""
        try:
            view = View.of(self.run_id, self.leases.all())
            for one in view.sessions():
                # From its first look on: whose worker is gone must not wait until this one has nothing else to do.
                self.session.claimant.watch(one)
            self.release.keep(view)
            self._begin(view)
        except ClusterError as error:
            # Work that has begun continues; the claims last as long as their session.
            if error.problem != self._away:
                self.say(f"the claims cannot be read or written: {error.problem}")
            self._away = error.problem
            return False
        except Interrupted:
            # While a node waited for the budget: the loop sees it, and what was begun is waited for.
            return False
        self._away, self._view = "", view
        with self._lock:
            idle = not self._running
        return idle and (bool(view.stopped) or all(view.result(node) for node in self.nodes))

    def _begin(self, view: View) -> None:
        order = view.order(self.nodes)
        released = [] if view.stopped else order[: view.wave]
        places = {node: place for place, node in enumerate(order)}
        own = [node for node in released if places[node] % self.shard.of == self.shard.index]
        others = [node for node in released if places[node] % self.shard.of != self.shard.index]
        # Not all begin with the same one; and from the end, as their own workers come from the beginning.
        first = len(others) * self.shard.index // self.shard.of
        for node in (*own, *reversed(others[first:]), *reversed(others[:first])):
            with self._lock:
                full, here = len(self._running) >= self.shard.workers, node in self._running
            if full:
                return
            if here or view.result(node):
                continue
            notes = {**self.notes(node), ATTEMPT: str(self.run_id.attempt)}
            held = self.session.take(node, notes, seen=view.claims)
            if held is not None:
                self._start(node, held)
            elif node not in view.claims and places[node] % self.shard.of != self.shard.index:
                # Another worker was quicker since this look: the next look shows what is left.
                return

    def _start(self, node: str, held: Held) -> None:
        with self._lock:
            self._running.add(node)
        threading.Thread(target=self._do, args=(node, held), name=f"fleet-{node}", daemon=True).start()

    def _do(self, node: str, held: Held) -> None:
        result = "failed:InternalError"
        try:
            report = self.work(node, held)
            # One that was interrupted, or that a run without a claim has taken over, belongs to the next worker that
            # takes it.
            undecided = report.outcome == "interrupted" or report.exit_code == exits.SUPERSEDED
            result = "" if undecided else result_of(report)
            with self._lock:
                self.reports[node] = report
        finally:
            with suppress(ClusterError):
                self.session.give_back(held, result)
            with self._lock:
                self._running.discard(node)

    def _wait_for_own(self) -> None:
        while True:
            with self._lock:
                if not self._running or self.stop.urgent:
                    return
            threading.Event().wait(min(0.1, self.shard.poll))

    def _exit_code(self) -> int:
        if self.stop.requested:
            return self.stop.exit_code
        with self._lock:
            failed = [
                one
                for one in self.reports.values()
                if result_of(one) != OK and one.exit_code != exits.SUPERSEDED
            ]
        if self._view is not None and self._view.stopped:
            return exits.STOPPED_ITSELF
        return exits.SOME_FAILED if failed else exits.DONE
