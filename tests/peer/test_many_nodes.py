"""What a node costs while it waits, works and has ended: no file, no script, and no memory for what it says.

The nodes are fakes of the transport: figures of winboot alone.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.join.fakes import FakeMachine, Scene, Silent
from winboot.base.errors import Unreachable
from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import NodeRun, Options, RunContext, run_nodes
from winboot.node.run import Patience, Stop
from winboot.operations.join import join
from winboot.report.results import Report

QUICK: Final = Patience(poll=0.01, first=0.2)


class Chatty(FakeMachine):
    """Says ten kilobytes a line for as long as it may."""

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Any) -> Iterator[str]:
        while True:
            yield "x" * 10_000


class Gone(FakeMachine):
    """Nothing answers."""

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Any) -> Iterator[str]:
        raise Unreachable("nothing answers", hint="Is it up?")


class Fleet:
    """So many nodes of one profile, all of one kind."""

    def __init__(self, folder: Path, kind: Callable[[list[str]], FakeMachine], count: int) -> None:
        scene = Scene(folder)
        self.machine = kind(scene.machine.steps)
        self.specs = [
            replace(scene.spec, node=replace(scene.spec.node, name=f"n{number:03}"))
            for number in range(count)
        ]
        self.context = RunContext(
            connect=self._connect,
            cluster=lambda spec: None,
            listener=Silent(),
            journals=folder / "journals",
            run="r1",
            holder="me@laptop",
            stop=Stop(),
        )

    def join(self, workers: int) -> Report:
        """`winboot join`."""
        return join(self.specs, self.context, Options(patience=QUICK, workers=workers))

    def _connect(self, spec: NodeSpec) -> Any:
        return self.machine


def test_what_chatty_nodes_send_is_not_kept(tmp_path: Path) -> None:
    tracemalloc.start()

    report = Fleet(tmp_path, Chatty, 2).join(workers=2)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [node.failure.name for node in report.nodes if node.failure is not None] == ["ExcessiveOutput"] * 2
    assert peak < 60_000_000
    assert sum(file.stat().st_size for file in (tmp_path / "journals").rglob("*.jsonl")) < 12_000_000


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_a_fleet_needs_no_file_for_a_node_that_waits(tmp_path: Path) -> None:
    """A Mac allows 256 open files: more nodes than that must not be more files.

    Each worker has a journal, and reads templates the first time. So few workers stay far below the limit, also with the
    other open files of this process. So many nodes are far above it.
    """
    resource = pytest.importorskip("resource")
    fleet = Fleet(tmp_path, Gone, 150)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = len(list(Path("/proc/self/fd").iterdir())) + 48
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        report = fleet.join(workers=4)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert {
        node.failure for node in report.nodes if node.failure and node.failure.name != "Unreachable"
    } == set()
    assert len(report.nodes) == 150


def test_a_node_holds_its_script_only_while_it_is_worked_on(tmp_path: Path) -> None:
    """A thousand of them would be 40 megabytes; and the first is at work before the last has one."""
    fleet = Fleet(tmp_path, Gone, 20)
    nodes: list[NodeRun] = []
    held: list[int] = []

    def work(run: NodeRun) -> None:
        nodes.append(run)
        held.append(sum(bool(one.runner._script.node_part) for one in nodes))
        assert len(run.runner._script.node_part) > 20_000

    run_nodes("plan", work, fleet.specs, fleet.context, Options(patience=QUICK, workers=1))

    assert held == [1] * 20
    assert [node.runner._script.node_part for node in nodes] == [""] * 20
