"""Two hundred nodes of which a tenth is silent, chatty, lying, slow, redirecting or gone: the others are done, each of
these is named, and an interrupted run ends within seconds.

The nodes are canned peers at the transport's protocol: no lab, no engine, a thousand to a process.
"""

from __future__ import annotations

import json
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.join.fakes import FakeMachine, Found, Scene, Silent
from winboot.errors import ConnectionLost, ProtocolError, Unreachable
from winboot.fleet import NodeRun, Options, RunContext, run_nodes
from winboot.join import join
from winboot.report import Report
from winboot.run import Patience, Stop
from winboot.spec import NodeSpec

NODES: Final = 200
PATIENCE: Final = Patience(poll=0.01, reconnect=0.5, restart=1.0, first=0.2, quiet=1.0)
Said = Iterator[str]


class Bad(FakeMachine):
    """A peer that does something else than its script."""

    def __init__(self, steps: list[str], conduct: Callable[[Bad, Mapping[str, Any]], Said]) -> None:
        super().__init__(steps)
        self.conduct = conduct
        self.on_quiet: Callable[[], None] = lambda: None
        self.released = threading.Event()

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Any) -> Said:
        return self.conduct(self, arguments)


def _silent(peer: Bad, arguments: Mapping[str, Any]) -> Said:
    while not peer.released.wait(0.01):
        peer.on_quiet()
    yield ""


def _deaf(peer: Bad, arguments: Mapping[str, Any]) -> Said:
    """A socket that neither answers nor ends: nobody is asked whether to go on."""
    peer.released.wait(60)
    yield ""


def _chatty(peer: Bad, arguments: Mapping[str, Any]) -> Said:
    while True:
        yield "x" * 10_000


def _event(arguments: Mapping[str, Any], **fields: Any) -> str:
    return json.dumps({"v": 1, "run": arguments["RunId"], **fields})


def _begun(arguments: Mapping[str, Any]) -> str:
    fields = {"boot_id": "b1", "smbios_uuid": "u", "build": "1.1", "computer_name": "N", "fence": 1}
    return _event(arguments, event="run", **fields)


def _lying(peer: Bad, arguments: Mapping[str, Any]) -> Said:
    yield _begun(arguments)
    yield _event(arguments, event="done", reason="complete")


def _damaged(peer: Bad, arguments: Mapping[str, Any]) -> Said:
    yield _begun(arguments)
    yield _event(arguments, event="step", step="directories", state="ok", ms=None)


def _dying(peer: Bad, arguments: Mapping[str, Any]) -> Said:
    yield _begun(arguments)
    raise ConnectionLost("reset", hint="Run the command again.")


def _redirecting(peer: Bad, arguments: Mapping[str, Any]) -> Said:
    raise ProtocolError("it redirects elsewhere, which is not followed", hint="A proxy?")
    yield ""


def _gone(peer: Bad, arguments: Mapping[str, Any]) -> Said:
    raise Unreachable("nothing answers", hint="Is it up?")
    yield ""


# Each conduct, and the name that its nodes have in the report.
CONDUCTS: Final[Mapping[str, tuple[Callable[[Bad, Mapping[str, Any]], Said], str]]] = {
    "silent": (_silent, "QuietNode"),
    "chatty": (_chatty, "QuietNode"),
    "lying": (_lying, "IncompleteRun"),
    "damaged": (_damaged, "BadEvent"),
    "dying": (_dying, "ConnectionLost"),
    "redirecting": (_redirecting, "ProtocolError"),
    "gone": (_gone, "Unreachable"),
}


class Fleet:
    """Nodes of one profile; every tenth behaves as one of `conducts`."""

    def __init__(self, folder: Path, conducts: list[str], nodes: int = NODES) -> None:
        model = Scene(folder)
        steps = model.machine.steps
        self.folder = folder
        self.specs = [
            replace(model.spec, node=replace(model.spec.node, name=f"n{number:03}"))
            for number in range(nodes)
        ]
        self.machines: dict[str, FakeMachine] = {}
        self.bad: dict[str, str] = {}
        for number, spec in enumerate(self.specs):
            name = spec.node.name
            if number % 10:
                self.machines[name] = FakeMachine(steps, Found("directories"))
                continue
            self.bad[name] = conducts[number // 10 % len(conducts)]
            conduct = _deaf if self.bad[name] == "deaf" else CONDUCTS[self.bad[name]][0]
            self.machines[name] = Bad(steps, conduct)
        self.stop = Stop()

    def join(self) -> Report:
        return join(self.specs, self.context(), Options(patience=PATIENCE, workers=32))

    def context(self) -> RunContext:
        """The ways to the canned machines; there is no cluster."""
        return RunContext(
            connect=self._connect,
            cluster=lambda spec: None,
            listener=Silent(),
            journals=self.folder / "journals",
            run="r1",
            holder="me@laptop",
            stop=self.stop,
        )

    def release(self) -> None:
        """Let the threads of those that hang end."""
        for machine in self.machines.values():
            if isinstance(machine, Bad):
                machine.released.set()

    def _connect(self, spec: NodeSpec) -> Any:
        return self.machines[spec.node.name]


@pytest.fixture
def fleet_of(tmp_path: Path) -> Iterator[Callable[[list[str]], Fleet]]:
    made: list[Fleet] = []

    def make(conducts: list[str]) -> Fleet:
        made.append(Fleet(tmp_path, conducts))
        return made[-1]

    yield make
    for fleet in made:
        fleet.release()


def test_the_good_are_done_and_each_of_the_bad_is_named(fleet_of: Callable[[list[str]], Fleet]) -> None:
    fleet = fleet_of(list(CONDUCTS))

    report = fleet.join()

    good = [node for node in report.nodes if node.node not in fleet.bad]
    assert {(node.outcome, node.failure) for node in good} == {("changed", None)}
    named = {node.node: node.failure for node in report.nodes if node.node in fleet.bad}
    assert len(named) == NODES // 10
    for name, failure in named.items():
        assert failure is not None
        assert failure.name == CONDUCTS[fleet.bad[name]][1], (name, fleet.bad[name])
        assert failure.message
        assert failure.hint
    assert report.exit_code == 3


def test_what_chatty_nodes_send_is_not_kept(tmp_path: Path) -> None:
    """Each sends ten kilobytes a line for as long as it may."""
    fleet = Fleet(tmp_path, ["chatty"], nodes=20)
    tracemalloc.start()

    report = fleet.join()

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [node.failure.name for node in report.nodes if node.failure is not None] == ["QuietNode"] * 2
    assert peak < 60_000_000
    assert sum(file.stat().st_size for file in (tmp_path / "journals").rglob("*.jsonl")) < 12_000_000


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_a_fleet_needs_no_file_for_a_node_that_waits(tmp_path: Path) -> None:
    """A Mac allows 256 open files: more nodes than that must not be more files."""
    resource = pytest.importorskip("resource")
    fleet = Fleet(tmp_path, ["gone"], nodes=150)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 48, hard))
    try:
        report = fleet.join()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert {node.failure.name for node in report.nodes if node.failure is not None} == {"Unreachable"}


def test_a_node_that_has_ended_holds_no_script(tmp_path: Path) -> None:
    """A thousand of them would be a quarter of a gigabyte."""
    fleet = Fleet(tmp_path, ["gone"], nodes=20)
    ended: list[NodeRun] = []
    sizes: list[int] = []

    def work(run: NodeRun) -> None:
        sizes.append(len(run.runner._script))
        ended.append(run)

    run_nodes("plan", work, fleet.specs, fleet.context(), Options(patience=PATIENCE))

    assert min(sizes) > 100_000
    assert [run.runner._script for run in ended] == [""] * 20


def test_an_interrupted_run_ends_in_seconds_whatever_its_nodes_do(
    fleet_of: Callable[[list[str]], Fleet],
) -> None:
    """Deaf ones cannot even be asked: they are left, and named."""
    fleet = fleet_of(["deaf"])
    asked: list[float] = []

    def interrupt() -> None:
        asked.append(time.monotonic())
        fleet.stop.request(2)

    threading.Timer(1.0, interrupt).start()

    report = fleet.join()

    assert time.monotonic() - asked[0] < 5
    assert len(report.nodes) == NODES
    assert (report.exit_code, fleet.stop.exit_code) == (130, 130)
    left = [node for node in report.nodes if node.node in fleet.bad]
    assert {node.outcome for node in left} == {"interrupted"}
