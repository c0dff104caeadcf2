"""One run by several processes: each node once, whatever ends in the middle; and one report.

Where nothing has to die, a "process" is a thread at the far end of a genuine pipe.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cli.staging import stage
from winboot_lab.up import Lab

from tests.join.fakes import Scene
from winboot import cli
from winboot.base.errors import LoginRefused
from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import Budget, Line, Options, Processes, RunContext, Share
from winboot.node.fleet.processes import Begin
from winboot.node.run import Stop
from winboot.operations.fleet.joining import join_in_processes
from winboot.remote.transport.logins import MOST_AT_ONCE, Logins
from winboot.report.events import RunStarted, StepDone
from winboot.report.finding import Finding
from winboot.report.results import Failure, NodeReport, Report

Work = Callable[[str, int, Line, Stop], NodeReport]
STARTED = RunStarted("r1", "boot-1", "uuid-1", "20348", "WIN-1", 1)


class Thread:
    """In the place of a process."""

    def __init__(self, connection: Connection, number: int, work: Work) -> None:
        self._line, self._stop = Line(connection), Stop()
        self._thread = threading.Thread(
            target=self._line.serve,
            args=(
                lambda node: work(node, number, self._line, self._stop),
                lambda: (Finding("kubelet-rights", "warning", "", ""),),
                self._stop,
            ),
        )
        self._connection = connection
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def kill(self) -> None:
        raise AssertionError("it does not end by itself")


@dataclass
class Run:
    """A run of several processes over these nodes."""

    folder: Path
    names: tuple[str, ...]
    host: str = "{address: 10.0.1.11}"
    stop: Stop = field(default_factory=Stop)
    heard: list[tuple[str, str]] = field(default_factory=list)

    def specs(self) -> list[NodeSpec]:
        spec = Scene(self.folder, host=self.host).spec
        return [replace(spec, node=replace(spec.node, name=name)) for name in self.names]

    def context(self) -> RunContext:
        scene = Scene(self.folder)
        return replace(scene._context(), listener=self, stop=self.stop)

    def event(self, node: str, event: Any) -> None:
        self.heard.append((node, type(event).__name__))

    def say(self, node: str, text: str) -> None:
        self.heard.append((node, text))

    def __call__(self, work: Work, count: int = 2, **options: Any) -> Report:
        """By threads."""

        def start(number: int, connection: Connection) -> Any:
            # A copy of its own, as another process has it: this side closes what it was given.
            return Thread(Connection(os.dup(connection.fileno())), number, work)

        return self.by(start, count, **options)

    def by(self, start: Callable[[int, Connection], BaseProcess], count: int = 2, **options: Any) -> Report:
        wanted = Options(**{"workers": 2, **options})
        with Processes(count, start, self, self.stop) as processes:
            return join_in_processes(self.specs(), self.context(), wanted, processes, Logins(), "join")


def done(node: str, number: int = 0, line: Line | None = None, stop: Stop | None = None) -> NodeReport:
    """Work that is done at once."""
    if line is not None:
        line.event(node, STARTED)
        line.say(node, f"in {number}")
    return NodeReport(node, "10.0.1.11", "2022", ready=True)


def test_all_processes_share_the_nodes_and_one_report_has_them_in_the_order_of_the_inventory(
    tmp_path: Path,
) -> None:
    names = tuple(f"win-{number}" for number in range(8))
    run, meet = Run(tmp_path, names), threading.Barrier(4)

    def work(node: str, number: int, line: Line, stop: Stop) -> NodeReport:
        # Two nodes at a time in each of two processes.
        meet.wait()
        return done(node, number, line)

    report = run(work)

    assert [node.node for node in report.nodes] == list(names)
    assert ({node.outcome for node in report.nodes}, report.exit_code) == ({"ok"}, 0)
    assert {text for _, text in run.heard} == {"RunStarted", "in 0", "in 1", "NodeEnded"}
    # The report has each finding once.
    assert [one.id for one in report.preflight] == ["kubelet-rights"]
    # In milliseconds, which one node alone may not need.
    assert sum(node.seconds for node in report.nodes) > 0


def test_the_budget_is_one_for_all_processes(tmp_path: Path) -> None:
    run = Run(tmp_path, tuple(f"win-{number}" for number in range(6)))

    def work(node: str, number: int, line: Line, stop: Stop) -> NodeReport:
        return replace(done(node), failure=Failure("NodeFailed", "no", "", 1))

    report = run(work, budget=Budget(canary=Share(1)))

    assert [node.outcome for node in report.nodes] == ["failed", *["skipped"] * 5]
    assert report.exit_code == 4


def test_a_request_to_stop_reaches_the_nodes_of_all_processes(tmp_path: Path) -> None:
    run, begun = Run(tmp_path, ("win-1", "win-2", "win-3")), threading.Barrier(3)

    def work(node: str, number: int, line: Line, stop: Stop) -> NodeReport:
        begun.wait()
        assert stop.wait(60)
        return NodeReport(node, "", "", failure=Failure("Interrupted", f"by {stop.exit_code}", "", 130))

    def ask() -> None:
        begun.wait()
        run.stop.request(15)

    threading.Thread(target=ask).start()
    report = run(work, count=2, budget=Budget(max_unavailable=Share(2)))

    assert [node.failure.message for node in report.nodes if node.failure] == [
        "by 143",
        "by 143",
        "win-3: interrupted before the start of this node",
    ]


def test_when_the_process_of_the_run_is_gone_the_others_end_at_their_next_safe_point() -> None:
    here, there = Pipe()
    stop, ended = Stop(), threading.Event()

    def work(node: str) -> NodeReport:
        assert stop.wait(60)
        ended.set()
        return done(node)

    run = threading.Thread(target=Line(there).serve, args=(work, tuple, stop))
    run.start()

    here.send(Begin("win-1"))
    here.close()
    run.join()

    assert ended.is_set()


@pytest.mark.parametrize("good", [False, True])
def test_a_domain_account_is_tried_by_few_until_one_machine_takes_it(tmp_path: Path, good: bool) -> None:
    """The processes together: each has a guard of its own that knows of its own nodes only."""
    names = tuple(f"win-{number}" for number in range(12))
    run = Run(
        tmp_path, names, host=r"{address: 10.0.1.11, connection: {user: 'CORP\admin', password: {env: P}}}"
    )
    tried: list[str] = []

    def work(node: str, number: int, line: Line, stop: Stop) -> NodeReport:
        tried.append(node)
        if good:
            return done(node, number, line)
        return NodeReport(node, "", "", failure=Failure.of(LoginRefused("no", hint="", node=node)))

    report = run(work, count=4)

    assert len(tried) == 12 if good else len(tried) <= MOST_AT_ONCE
    assert {node.failure.name for node in report.nodes if node.failure} == (
        set() if good else {"LoginRefused"}
    )


def _at_first_dies(connection: Connection, number: int, folder: str) -> None:
    """A process that dies of win-1 once, and of win-2 each time, as by the kernel's hand."""
    line = Line(connection)

    def work(node: str) -> NodeReport:
        first = Path(folder) / f"{node}.begun"
        if node == "win-2" or (node == "win-1" and not first.exists()):
            first.touch()
            line.event(node, STARTED)
            line.event(node, StepDone("r1", "directories", "changed", 5))
            os._exit(9)
        return done(node, number, line)

    line.serve(work, tuple, Stop())


@pytest.mark.check
def test_a_process_that_dies_costs_no_node_and_a_node_that_each_dies_of_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path, ("win-1", "win-2", "win-3"))

    def start(number: int, connection: Connection) -> BaseProcess:
        process = get_context("spawn").Process(
            target=_at_first_dies, args=(connection, number, str(tmp_path))
        )
        process.start()
        return process

    report = run.by(start, count=1, workers=1)

    assert [node.outcome for node in report.nodes] == ["ok", "failed", "ok"]
    failure = report.nodes[1].failure
    assert (
        failure is not None
        and "3 processes ended unexpectedly while they worked on this node" in failure.message
    )
    assert [step.name for step in report.nodes[1].steps] == ["directories"]


@pytest.mark.check
def test_a_machine_of_a_lab_is_joined_by_another_process_as_by_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sessions, claims and journals are those of the processes; the report is this one's."""
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    words = ["join", "--yes", "--processes", "2", "-o", "json", "-i"]
    with Lab(nodes=1) as lab:
        inventory = stage(lab, tmp_path).inventory
        codes = [cli.run([*words, str(inventory)]) for _ in range(2)]
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    nodes = [(row["node"], row["outcome"], row["ready"]) for row in rows if row["kind"] == "node"]
    (run, _) = [row["run"] for row in rows if row["kind"] == "run"]
    assert codes == [0, 0]
    assert nodes == [("win-1", "changed", True), ("win-1", "ok", True)]
    assert {file.stem for file in (tmp_path / "state" / "runs" / run).glob("win-*")} == {"win-1"}
