"""A look at nodes that are right, as `winboot plan` does it, against the floor: a bare pypsrp pipeline with the same text.

The endpoints' answers are canned, so that a figure covers only the controller. It measures the time with and without a
latency model, and processor, requests, bytes and memory for each node. The API server's part is left out.
"""

from __future__ import annotations

import gc
import multiprocessing
import resource
import shutil
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from benchmarks import Figure, beside, interleaved, quotients
from benchmarks.bare import WORKERS, fleet
from benchmarks.canned import PASSWORD, USER, Peers, endpoints
from winboot.base.secret import Secret
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import NodeSpec, resolve
from winboot.node.fleet import Options, RunContext, run_nodes
from winboot.node.fleet.node import NodeRun
from winboot.node.fleet.workers import MOST_WORKERS
from winboot.node.run import Quiet, Stop
from winboot.remote.transport.base import Endpoint
from winboot.remote.transport.psrp import PsrpTransport
from winboot.script.plan import make_plan
from winboot.script.rendering import Script, render
from winboot.script.steps import STEPS

ROOT: Final = Path(__file__).parent.parent
CA: Final = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
ROUNDS: Final = 5
FEW, SOME, MANY = 10, 100, 1000
_MB: Final = 1e6


@dataclass(frozen=True, slots=True)
class Site:
    """Specs of nodes that differ in their name, the script of the first, and a folder for journals."""

    specs: list[NodeSpec]
    script: Script
    steps: tuple[str, ...]
    folder: Path


@contextmanager
def site(hosts: int) -> Iterator[Site]:
    """An inventory of so many hosts with the shipped profile of flannel host-gw."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "profiles", folder / "profiles")
        (folder / "profiles" / "ca.crt").write_text(CA, encoding="ascii")
        rows = "".join(f"      win-{n}: {{address: 10.{n // 250}.1.{n % 250 + 1}}}\n" for n in range(hosts))
        head = "groups:\n  pool:\n    profile: profiles/flannel-host-gw.yaml\n    os: '2022'\n"
        login = "    connection: {user: a, password: {env: P}}\n    hosts:\n"
        inventory = folder / "inventory.yaml"
        inventory.write_text(head + login + rows, encoding="utf-8")
        specs = [resolve(machine.profile, machine) for machine in load_inventory(inventory)]
        plan = make_plan(specs[0], STEPS)
        steps = tuple(step.name for step in plan.node_side)
        yield Site(specs, render(plan.complete, specs[0]), steps, folder)


def ours(
    place: Site, ports: Sequence[int], *, repeat: bool = False, workers: int = WORKERS
) -> Callable[[], None]:
    """A look at as many nodes as there are ports; `repeat` for machines that keep the library."""
    dial = dict(zip((spec.node.name for spec in place.specs), ports, strict=False))

    def connect(spec: NodeSpec) -> PsrpTransport:
        name = spec.node.name
        end = Endpoint("127.0.0.1", dial[name], USER, lambda: Secret(PASSWORD), auth="ntlm")
        return PsrpTransport(end, name=name)

    def work(run: NodeRun) -> None:
        if repeat:
            run.runner.expect_library()
        run.look(None)

    def run() -> None:
        context = RunContext(
            connect=connect,
            cluster=lambda spec: None,
            listener=Quiet(),
            journals=place.folder / "runs",
            run=f"bench-{time.monotonic_ns()}",
            holder="bench",
            stop=Stop(),
        )
        report = run_nodes(
            "plan", work, place.specs[: len(ports)], context, replace(Options(), workers=workers)
        )
        assert [node.failure for node in report.nodes] == [None] * len(ports)

    return run


def measure() -> Iterator[Figure]:
    """See the module."""
    with site(MANY) as place:
        yield from _time(place)
        yield from _first(place)
        yield from _repeat(place)
        yield from _large(place)
        yield from _memory(place)


def _time(place: Site) -> Iterator[Figure]:
    for label, latency in (("fast host", False), ("latency", True)):
        with endpoints(50, place.steps, latency=latency) as peers:
            costs = interleaved(
                {
                    "ours": ours(place, peers.ports),
                    "floor": lambda ports=peers.ports: fleet(ports, place.script.text),  # type: ignore[misc]
                },
                ROUNDS,
            )
        found, floor = costs["ours"].wall_ms, costs["floor"].wall_ms
        note = beside(found, floor, "ms", "bare pypsrp")
        yield Figure(f"first look at 50 nodes, {label}: time", quotients(found, floor), 1.25, note)


def _first(place: Site) -> Iterator[Figure]:
    script = place.script.text
    with endpoints(SOME, place.steps) as peers:
        few = peers.ports[:FEW]
        costs = interleaved(
            {
                "few": ours(place, few),
                "all": ours(place, peers.ports),
                "bare few": lambda: fleet(few, script),
                "bare all": lambda: fleet(peers.ports, script),
            },
            ROUNDS,
        )
        spent = [_spent(peers, one) for one in (ours(place, few), lambda: fleet(few, script))]
    found = _marginal(costs["few"].cpu_ms, costs["all"].cpu_ms, SOME - FEW)
    floor = _marginal(costs["bare few"].cpu_ms, costs["bare all"].cpu_ms, SOME - FEW)
    note = beside(found, floor, "ms a node, 10 to 100 nodes", "bare pypsrp")
    yield Figure("first look: processor of a further node", quotients(found, floor), 1.25, note)
    (requests, _), (bare, _) = spent
    note = f"{requests / FEW:g} : {bare / FEW:g} requests of a node, against bare pypsrp with the same text"
    yield Figure("first look: requests", [requests / bare], 1.0, note)


def _repeat(place: Site) -> Iterator[Figure]:
    kept = place.script.kept
    with endpoints(SOME, place.steps) as peers:
        few = peers.ports[:FEW]

        def bare() -> None:
            fleet(peers.ports, kept.loader, NodePart=kept.node_part)

        costs = interleaved({"ours": ours(place, peers.ports, repeat=True), "floor": bare}, ROUNDS)
        (_, first), (_, again) = (
            _spent(peers, one) for one in (ours(place, few), ours(place, few, repeat=True))
        )
    found, floor = costs["ours"].cpu_ms, costs["floor"].cpu_ms
    note = beside(found, floor, "ms for 100 nodes", "bare pypsrp with the loader's text")
    yield Figure("repeat look: processor", quotients(found, floor), 1.25, note)
    note = f"{again / FEW / 1000:.0f} : {first / FEW / 1000:.0f} KB of a node, against its first look"
    yield Figure("repeat look: bytes", [again / first], 0.25, note)


def _large(place: Site) -> Iterator[Figure]:
    with endpoints(MANY, place.steps) as peers:
        counts = (FEW, SOME, MANY)
        runs = {str(count): ours(place, peers.ports[:count], repeat=True) for count in counts}
        costs = interleaved(runs, 2)
    few, some, many = (costs[str(count)].cpu_ms for count in counts)
    near, far = _marginal(few, some, SOME - FEW), _marginal(some, many, MANY - SOME)
    note = beside(far, near, "ms a node, 100 to 1,000 nodes", "10 to 100 nodes")
    yield Figure("repeat look: processor of a node among 1,000", quotients(far, near), 1.25, note)


def _memory(place: Site) -> Iterator[Figure]:
    """Sessions that wait for events, in a process of its own: what 50 more of them take, without the script's text.

    What their objects hold is what is ours to save. The process has more: stacks and caches of threads, and what the C library
    keeps of the buffers from which a first script was sent.
    """
    # A process works on at most 64 nodes, whatever number the caller gives.
    counts = (MOST_WORKERS - 50, MOST_WORKERS)
    text = len(place.script.node_part)
    note = (
        f"MB, {counts[0]} to {counts[1]} nodes, without the {text / 1000:.0f} KB that are a script's own part"
    )
    for what, measured in (("objects", _held), ("process", _resident)):
        few, many = (_waiting(place, count, measured) for count in counts)
        each = (many - few) / (counts[1] - counts[0]) - text
        yield Figure(f"memory of a node with an open session: {what}", [each / _MB], 0.15, note)


def _waiting(place: Site, count: int, measured: Callable[[], int]) -> int:
    """What is measured of a process in which so many looks, first ones, wait for their first event."""
    here, there = multiprocessing.Pipe()
    with endpoints(count, place.steps, held=True) as peers:
        process = multiprocessing.get_context("spawn").Process(
            target=_wait, args=(there, peers.ports, measured)
        )
        process.start()
        while peers.waiting() < count:
            time.sleep(0.5)
        here.send("all wait")
        grown: int = here.recv()
        process.kill()
        process.join()
    return grown


def _wait(line: Connection, ports: tuple[int, ...], measured: Callable[[], int]) -> None:
    """Start looks that get no answer, and report this process's memory on request."""
    if measured is _held:
        tracemalloc.start()
    with site(len(ports)) as place:
        threading.Thread(target=ours(place, ports, workers=len(ports)), daemon=True).start()
        line.recv()
        gc.collect()
        line.send(measured())
        time.sleep(600)


def _held() -> int:
    """Bytes that objects of Python take now, since tracemalloc began."""
    return tracemalloc.get_traced_memory()[0]


def _resident() -> int:
    """Bytes of this process in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def _marginal(few: Sequence[float], many: Sequence[float], more: int) -> list[float]:
    return [(all_ - some) / more for some, all_ in zip(few, many, strict=True)]


def _spent(peers: Peers, run: Callable[[], object]) -> tuple[int, int]:
    peers.spent()
    run()
    return peers.spent()
