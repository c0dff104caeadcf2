"""A fleet in which some nodes are silent, chatty, lying, slow, redirecting or gone: the others join.

winboot names each of these with its cause and the next step. Real sockets; `make matrix` takes 200 nodes, `make check` fewer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.join.fakes import Silent
from tests.peer.guest import NAMED, Guest, a_room, conducts
from tests.peer.outsider import OUTSIDERS
from tests.peer.room import PASSWORD, USER
from winboot.base.secret import Secret
from winboot.cli.targets import Clusters
from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import Options, RunContext
from winboot.node.run import Patience, Stop
from winboot.operations.join import join
from winboot.remote.transport.base import Endpoint, Timeouts, Transport
from winboot.remote.transport.psrp import PsrpTransport
from winboot.report.results import Report

# winboot waits for a machine that is late because this one is busy, but not for one that never answered. Each empty answer
# to a read of the script's output is a chance to notice silence.
PATIENT: Final = Timeouts(operation=2)
QUICK: Final = Timeouts(connect=2, operation=1, read=2, open=0, resume=0, close=1)


@dataclass
class Run:
    """One join of a room's nodes, here: the patience of the command line is an hour."""

    guest: Guest
    stop: Stop

    def join(self, patience: Patience) -> Report:
        """`winboot join`."""
        with self._clusters() as clusters:
            context = RunContext(
                connect=self._connect,
                cluster=clusters,
                listener=Silent(),
                journals=self.guest.folder / "journals",
                run="r1",
                holder="me@laptop",
                stop=self.stop,
            )
            return join(self.guest.specs(), context, Options(patience=patience))

    @contextmanager
    def _clusters(self) -> Iterator[Clusters]:
        clusters = Clusters(self.stop.wait)
        try:
            yield clusters
        finally:
            clusters.close()

    def _connect(self, spec: NodeSpec) -> Transport:
        name, connection = spec.node.name, spec.machine.connection
        timeouts = QUICK if self.guest.nodes[name] in OUTSIDERS else PATIENT
        endpoint = Endpoint(
            connection.host, connection.port_number, USER, lambda: Secret(PASSWORD), "ntlm", timeouts=timeouts
        )
        return PsrpTransport(endpoint, name=name)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Callable[[dict[str, str]], Run]]:
    """Makes a room, whose process ends with the test."""
    opened: list[Any] = []

    def make(nodes: dict[str, str]) -> Run:
        opened.append(a_room(tmp_path, nodes))
        return Run(opened[-1].__enter__(), Stop())

    yield make
    for one in opened:
        one.__exit__(None, None, None)


def _check_named(report: Report, guest: Guest) -> None:
    """Each of the bad has its name, its cause and the next step; each of the good is done and Ready."""
    for node in report.nodes:
        if node.node not in guest.bad:
            assert (node.outcome, node.ready, node.failure) == ("changed", True, None), node.node
            continue
        failure = node.failure
        assert failure is not None
        assert failure.name == guest.bad[node.node], (node.node, guest.nodes[node.node], failure)
        assert failure.message
        assert failure.hint


SIZES: Final = [
    # The silent ones are among the 200, and below. A good node that is late on a busy machine must not pass for one of them,
    # nor for one that does not come back.
    pytest.param(
        16, 2, [one for one in NAMED if one not in ("silent", "chatty", "never back")], 3600.0, id="16"
    ),
    pytest.param(200, 10, [*NAMED], 60.0, id="200", marks=pytest.mark.matrix),
]


@pytest.mark.parametrize(("count", "every", "bad", "quiet"), SIZES)
def test_the_good_are_done_and_each_of_the_bad_is_named(
    count: int,
    every: int,
    bad: list[str],
    quiet: float,
    room: Callable[[dict[str, str]], Run],
    record_property: Callable[[str, object], None],
) -> None:
    """And nothing is left at the machines and in the cluster."""
    run = room(conducts(count, bad, every))
    begun, before = time.monotonic(), _peak_mb()

    report = run.join(Patience(poll=0.5, quiet=quiet, restart=120.0))

    seconds, grown = time.monotonic() - begun, _peak_mb() - before
    record_property(f"join of {count} nodes, 1 in {every} bad", f"{seconds:.0f} s, {grown} MB more")
    _check_named(report, run.guest)
    assert report.exit_code == 3
    if count > 100:
        assert len(bad) == 10 and len(run.guest.bad) == 20
        # No node holds its script, its session or what it has said: what is left is its report.
        assert grown < 0.75 * count
    left = run.guest.left()
    assert (left["tokens"], left["shells"], left["crashes"]) == ([], {}, [])
    good = [name for name in run.guest.nodes if name not in run.guest.bad]
    assert left["nodes"] == ["control-plane", *good]


def _peak_mb() -> int:
    """The peak memory of this process; 0 where the system does not count it."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)


def test_a_silent_machine_is_named_with_the_step_that_was_due(
    room: Callable[[dict[str, str]], Run],
) -> None:
    """Chatter is nothing. It is not kept, either."""
    run = room(conducts(4, ["silent", "chatty"], 1))

    report = run.join(Patience(poll=0.5, quiet=1.0))

    _check_named(report, run.guest)
    assert all("node-preflight" in node.failure.message for node in report.nodes if node.failure)
    journals = (run.guest.folder / "journals").rglob("*.jsonl")
    assert sum(file.stat().st_size for file in journals) < 4 * 6_000_000
