"""A worker process whose nodes are simulated: `python -m tests.fleet.simulated SETTINGS.json INDEX`.

A node is a file that processes share under a lock: its mutex, its fence, and the steps done. Like a real node, it lets a
second run wait for its mutex unless that run takes over. It raises its fence for each run, refuses a step of an older run,
and does no step twice.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winboot.node.fleet import Budget, Share
from winboot.node.fleet.budget import Pace
from winboot.node.run import Stop
from winboot.operations.fleet import FleetWorker, RunId, Shard
from winboot.operations.fleet.release import Release
from winboot.remote.cluster import connect
from winboot.remote.cluster.claims import NAMESPACE, Claimant
from winboot.remote.cluster.sessions import Held, Session
from winboot.report.results import Failure, NodeReport

STEPS = ("programs", "services", "network", "registration")


@dataclass(frozen=True)
class SimulatedNode:
    """One node, in its file. `step_s` is how long a step takes; `fails` where it always fails."""

    path: Path
    step_s: float
    fails: bool = False

    def _changed(self, change: Callable[[dict[str, Any]], bool]) -> bool:
        with self.path.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            state = json.loads(
                file.read() or '{"mutex": 0, "fence": 0, "done": [], "refused": 0, "runs": []}'
            )
            said = change(state)
            file.seek(0)
            file.truncate()
            file.write(json.dumps(state))
            file.flush()
        return said

    def join(self, who: str, *, take_over: bool) -> str:
        """A run of all steps: empty, or why it failed."""
        mine = 0

        def begin(state: dict[str, Any]) -> bool:
            nonlocal mine
            if not take_over and _lives(state["mutex"]):
                return False
            mine = state["fence"] = state["fence"] + 1
            state["mutex"] = os.getpid()
            state["runs"].append(who)
            return True

        while not self._changed(begin):
            time.sleep(0.05)
        try:
            return self._steps(who, mine)
        finally:
            self._changed(lambda state: state.update(mutex=0) is None if state["fence"] == mine else False)

    def _steps(self, who: str, mine: int) -> str:
        for step in STEPS:
            time.sleep(self.step_s)

            def do(state: dict[str, Any], step: str = step) -> bool:
                if state["fence"] != mine:
                    state["refused"] += 1
                    return False
                if not any(done["step"] == step for done in state["done"]):
                    state["done"].append({"step": step, "by": who, "fence": mine})
                return True

            if not self._changed(do):
                return "Superseded"
            if self.fails and step == "network":
                return "NoNetwork"
        return ""


def _lives(process: int) -> bool:
    """Whether this process is there, asleep or not: a mutex dies with its session."""
    if not process:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A killed process whose parent has not read its exit code yet.
    return " Z " not in f" {Path(f'/proc/{process}/stat').read_text(encoding='utf-8')}"


def main(settings: Mapping[str, Any], index: int) -> int:
    """Work as one of the workers; the exit code is the worker's."""
    who, stop, folder = f"worker-{index}", Stop(), Path(settings["folder"])
    names = [f"win-{number:04}" for number in range(settings["nodes"])]
    cluster = connect(Path(settings["kubeconfig"]))
    leases = cluster.leases(NAMESPACE)
    run = RunId(settings["run"], settings.get("attempt", 1))
    claimant = Claimant(who, time.monotonic, settings["duration"], run.name)
    session = Session(leases, claimant, f"{run.name}-{run.attempt}-{index}")
    unavailable = Share(settings["max_unavailable"]) if "max_unavailable" in settings else None
    failed = Share(settings["max_failed"]) if "max_failed" in settings else None
    budget = Budget(canary=Share(1), max_unavailable=unavailable, max_failed=failed)

    def pace(order: Any, elapsed: float) -> Pace:
        return Pace(budget, order, {}, dict, stop, elapsed=elapsed)

    def work(node: str, held: Held) -> NodeReport:
        sick = node in settings.get("failing", ())
        problem = SimulatedNode(folder / f"{node}.json", settings["step_s"], sick).join(
            who, take_over=held.claim.taken_over
        )
        failure = Failure(problem, problem, "", 75 if problem == "Superseded" else 1) if problem else None
        return NodeReport(node, "", "2022", failure=failure, ready=not problem)

    worker = FleetWorker(
        run,
        names,
        Shard(index, settings["processes"], settings["workers"], settings["poll"]),
        leases,
        session,
        Release(run, names, session, pace),
        work,
        stop,
    )
    (folder / f"{who}.begun").touch()
    return worker.run()


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), int(sys.argv[2])))
