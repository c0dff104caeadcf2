"""Many workers, one run: killed and paused ones cost no node and no step, and a node costs two writes.

The nodes are simulated (`simulated.py`); claims are Leases of the lab's API, the workers are processes of their own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cluster import ApiFailure, ClusterServer, LabCluster
from winboot_lab.cluster.identity import ADMIN

from tests.fleet.simulated import STEPS
from tests.join.fakes import Found, Scene
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import Options
from winboot.operations.fleet import RunId, View
from winboot.operations.join import join
from winboot.remote.cluster import connect
from winboot.remote.cluster.claims import NAMESPACE

ROOT = Path(__file__).parents[2]


class Run:
    """One run of simulated workers on a lab's API, which counts what is written."""

    def __init__(self, folder: Path, open_until_the_end: ExitStack, **settings: Any) -> None:
        self.folder = folder
        self.lab = LabCluster()
        self.lab.request(ADMIN, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self.writes: Counter[str] = Counter()
        self._counted()
        server = open_until_the_end.enter_context(ClusterServer(self.lab))
        kubeconfig = folder / "admin.conf"
        server.write_admin_kubeconfig(kubeconfig)
        self.cluster = open_until_the_end.enter_context(connect(kubeconfig))
        self.settings = {"folder": str(folder), "kubeconfig": str(kubeconfig), "run": "r1", **settings}
        self.workers: dict[int, subprocess.Popen[str]] = {}
        open_until_the_end.callback(self.end)

    def start(self, *indexes: int, **changes: Any) -> None:
        """Start these workers."""
        self.settings |= changes
        path = self.folder / f"settings-{indexes[0]}-{self.settings.get('attempt', 1)}.json"
        path.write_text(json.dumps(self.settings), encoding="utf-8")
        for index in indexes:
            (self.folder / f"worker-{index}.begun").unlink(missing_ok=True)
            words = [sys.executable, "-m", "tests.fleet.simulated", str(path), str(index)]
            self.workers[index] = subprocess.Popen(words, cwd=ROOT, text=True, stderr=subprocess.PIPE)

    def end(self) -> None:
        """Whatever still runs."""
        for one in self.workers.values():
            if one.poll() is None:
                one.kill()
            one.wait()
            assert one.stderr is not None
            one.stderr.close()

    def until(self, what: Callable[[], bool]) -> None:
        """Wait until it is so; a worker that ended by itself too early has its say."""
        while not what():
            time.sleep(0.05)

    def nodes(self) -> dict[str, dict[str, Any]]:
        """What the nodes have seen, by name."""
        found = {}
        for path in self.folder.glob("win-*.json"):
            text = path.read_text(encoding="utf-8")
            if text:
                found[path.stem] = json.loads(text)
        return found

    def working(self, index: int) -> bool:
        """Whether a worker has nodes in its hands."""
        return any(
            node["runs"][-1] == f"worker-{index}" and len(node["done"]) < len(STEPS)
            for node in self.nodes().values()
            if node["runs"]
        )

    def stolen_from(self, index: int) -> bool:
        """Whether another worker has begun with a node that this one had in its hands."""
        return any(
            f"worker-{index}" in node["runs"][:-1] and node["runs"][-1] != f"worker-{index}"
            for node in self.nodes().values()
        )

    def codes(self) -> dict[int, int]:
        """How the workers ended."""
        return {index: one.wait() for index, one in self.workers.items()}

    def view(self, attempt: int = 1) -> View:
        """What the claims say."""
        return View.of(RunId("r1", attempt), self.cluster.leases(NAMESPACE).all())

    def _counted(self) -> None:
        """Count what is written to claims, by kind, and what is refused."""
        plain: Callable[..., Any] = self.lab.request

        def request(who: Any, method: str, path: str, *rest: Any, **more: Any) -> Any:
            _, _, name = path.partition("/leases")
            counts = (name and method in ("POST", "PUT", "DELETE")) or (
                path.endswith("/leases") and method == "POST"
            )
            kind = name.strip("/").partition("-")[0] or "created"
            try:
                answer = plain(who, method, path, *rest, **more)
            except ApiFailure:
                self.writes["refused"] += bool(counts)
                raise
            self.writes[kind] += bool(counts)
            return answer

        self.lab.request = request  # type: ignore[method-assign]


@pytest.fixture
def run_of(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    with ExitStack() as stack:
        yield lambda **settings: Run(tmp_path, stack, **settings)


@pytest.mark.parametrize(
    ("nodes", "processes", "killed", "paused", "pause_s", "duration", "step_s"),
    [
        pytest.param(60, 3, (0,), 1, 0.0, 4, 0.1, id="60 nodes, 3 workers", marks=pytest.mark.check),
        pytest.param(
            1000, 6, (0, 3), 1, 60.0, 40, 1.0, id="1,000 nodes, 6 workers", marks=pytest.mark.matrix
        ),
    ],
)
def test_killed_and_paused_workers_cost_no_node_and_no_step(
    run_of: Callable[..., Run],
    nodes: int,
    processes: int,
    killed: tuple[int, ...],
    paused: int,
    pause_s: float,
    duration: int,
    step_s: float,
) -> None:
    run = run_of(
        nodes=nodes, processes=processes, workers=8, duration=duration, step_s=step_s, poll=duration / 8
    )
    run.start(*range(processes))
    run.until(lambda: all(run.working(index) for index in (*killed, paused)))
    asleep = run.workers[paused]
    os.kill(asleep.pid, signal.SIGSTOP)
    for index in killed:
        run.workers[index].kill()
    time.sleep(pause_s)
    # The others have taken over what it holds.
    run.until(lambda: run.stolen_from(paused))
    os.kill(asleep.pid, signal.SIGCONT)

    codes = run.codes()

    found = run.nodes()
    view = run.view()
    assert [code for index, code in codes.items() if index not in killed] == [0] * (processes - len(killed))
    assert len(found) == nodes
    for name, node in found.items():
        assert [done["step"] for done in node["done"]] == list(STEPS), name
        # A step of a later run is never followed by one of an older: the fence refuses it.
        fences = [done["fence"] for done in node["done"]]
        assert fences == sorted(fences), name
        assert view.result(name) == "ok", name
    taken_over = [name for name, node in found.items() if len(set(node["runs"])) > 1]
    assert taken_over, "no worker had to take a node over"
    assert sum(node["refused"] for node in found.values()), "the one that woke up was refused by no node"
    assert not any(claim.holder for claim in view.claims.values() if "/" not in claim.node)
    refused = run.writes.pop("refused", 0)
    print(f"writes: {dict(run.writes)}, refused {refused}; taken over: {len(taken_over)}")
    # One to take it, one to give it back; and whatever sessions and the run itself cost. Of few nodes those are a large part.
    of_nodes = run.writes["created"] + run.writes["node"]
    assert of_nodes <= 2.1 * nodes + (len(taken_over) + 2 * processes if nodes < 1000 else 0)
    assert refused <= 1.3 * nodes


@pytest.mark.check
def test_a_budget_holds_over_all_workers_and_another_try_begins_with_what_failed(
    run_of: Callable[..., Run],
) -> None:
    """The release is one worker's; the others begin nothing beyond the wave."""
    failing = ["win-0002", "win-0003"]
    run = run_of(
        nodes=12, processes=2, workers=4, duration=30, step_s=0.01, poll=0.05, max_failed=1, failing=failing
    )
    run.start(0, 1, max_unavailable=2)

    codes = run.codes()

    assert set(codes.values()) == {4}
    assert run.view().stopped == "win-0002, win-0003 failed, but --max-failed allows only 1"
    begun = sorted(run.nodes())
    assert begun[:4] == ["win-0000", "win-0001", *failing] and len(begun) <= 6

    run.start(0, 1, failing=[], attempt=2)

    assert set(run.codes().values()) == {0}
    assert {run.view(2).result(f"win-{number:04}") for number in range(12)} == {"ok"}
    # Those that were done are not begun again.
    assert len(run.nodes()["win-0000"]["runs"]) == 1
    assert len(run.nodes()["win-0002"]["runs"]) == 2


def test_a_node_that_a_rollback_holds_keeps_the_way_to_the_cluster_that_its_pod_has(tmp_path: Path) -> None:
    """Its script is made of the profile again, which names a kubeconfig that no pod has."""
    held = {"name": "containerd", "version": "2.3.5", "archive": "0" * 64}
    scene = Scene(tmp_path, Found("directories"), says={"versions": {"held": {"artifacts": [held]}}})
    spec = replace(scene.spec, cluster=replace(scene.spec.cluster, kubeconfig=None))
    asked: list[NodeSpec] = []

    def cluster(of: NodeSpec) -> Any:
        asked.append(of)
        return scene.cluster

    machine = load_inventory(tmp_path / "inventory.yaml")["win-1"]
    context = replace(scene._context(), cluster=cluster, machines={"win-1": machine})

    (node,) = join([spec], context, Options(patience=scene.patience, workers=1)).nodes

    assert machine.profile.cluster.kubeconfig is not None
    assert [step.name for step in node.steps if step.state == "blocked"] == ["held-versions"]
    assert {one.cluster.kubeconfig for one in asked} == {None}
