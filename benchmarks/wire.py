"""The wire: winboot's transport against pypsrp used directly, on the same lab endpoints in another process."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pypsrp.powershell import PowerShell, RunspacePool
from pypsrp.wsman import WSMan
from winboot_lab.wsman.endpoint import Settings
from winboot_lab.wsman.executor import Emit, Ended
from winboot_lab.wsman.farm import Farm
from winboot_lab.wsman.faults import Delay

from benchmarks import Ratio, interleaved
from winboot.base.secret import Secret
from winboot.remote.transport.base import Endpoint, Tls
from winboot.remote.transport.psrp import PsrpTransport

USER, PASSWORD = "Administrator", "bench"
ROUNDS = 30
NODES = 24
SHELL_START_S = (
    0.1  # a real host takes longer to start a shell; without it only this host's processor is measured
)
SCRIPT = "# a look that finds nothing to do\n" * 2400  # 80 KB, the size of a real one


class NoOp:
    """A machine on which every script says one line."""

    def run(
        self, script: str, parameters: Mapping[str, object], emit: Emit, cancelled: Callable[[], bool]
    ) -> Ended:
        emit("output", "{}")
        return Ended()


@dataclass(frozen=True, slots=True)
class Peers:
    """Endpoints in another process, and a line to it: `count` asks for the requests seen since the last call."""

    http: tuple[int, ...]
    https: int
    ca_pem: str
    line: Connection

    def count(self) -> int:
        """Requests of the first endpoint since the last call."""
        self.line.send("count")
        answer: int = self.line.recv()
        return answer


def _serve(line: Connection) -> None:
    with Farm() as farm:
        settings = Settings(users={USER: PASSWORD}, https_port=0, gather_s=0.5)
        first = farm.add("bench-0", NoOp(), settings)
        rest = [
            farm.add(f"bench-{n}", NoOp(), Settings(users={USER: PASSWORD}, gather_s=0.5))
            for n in range(1, NODES)
        ]
        for endpoint in rest:
            endpoint.faults.on("Create", Delay(SHELL_START_S), times=1000)
        ports = tuple(endpoint.http_port for endpoint in (first, *rest))
        line.send((ports, first.https_port, farm.authority.pem.decode()))
        while line.recv() == "count":
            line.send(len(first.requests))
            first.recount()


@contextmanager
def _endpoints() -> Iterator[Peers]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    process.start()
    http, https, ca_pem = here.recv()
    yield Peers(http, https, ca_pem, here)
    here.send("end")
    process.join()


def _ours(peers: Peers, *, tls: bool, port: int | None = None) -> PsrpTransport:
    endpoint = Endpoint(
        "127.0.0.1",
        port or (peers.https if tls else peers.http[0]),
        USER,
        lambda: Secret(PASSWORD),
        auth="ntlm",
        tls=Tls(ca_pem=peers.ca_pem) if tls else None,
    )
    return PsrpTransport(endpoint, name="bench")


def _bare(peers: Peers, ca_file: str | None) -> RunspacePool:
    port = peers.https if ca_file else peers.http[0]
    trust: dict[str, Any] = {"cert_validation": ca_file} if ca_file else {}
    connection = WSMan(
        "127.0.0.1", port=port, username=USER, password=PASSWORD, ssl=bool(ca_file), auth="ntlm", **trust
    )
    return RunspacePool(connection)


def _one_shot(peers: Peers, tls: bool, ca_file: str | None) -> dict[str, Callable[[], object]]:
    def ours() -> None:
        with _ours(peers, tls=tls) as wire:
            assert list(wire.run(SCRIPT, {"Mode": "Look"}, {})) == ["{}"]

    def bare() -> None:
        with _bare(peers, ca_file) as pool:
            shell = PowerShell(pool)
            shell.add_script(SCRIPT).add_parameter("Mode", "Look")
            assert shell.invoke() == ["{}"]
        pool.connection.close()

    return {"ours": ours, "bare": bare}


def measure() -> list[Ratio]:
    """One-shot runs in both ways of encryption, a run in an open session, requests, and a small fleet."""
    found: list[Ratio] = []
    with _endpoints() as peers, _written(peers.ca_pem) as ca_file:
        for label, tls in (("NTLM sealed", False), ("NTLM over TLS", True)):
            runs = _one_shot(peers, tls, ca_file if tls else None)
            costs = interleaved(runs, ROUNDS)
            ours, bare = costs["ours"], costs["bare"]
            found.append(Ratio(f"cold run, {label}: time", ours.wall_ms, bare.wall_ms, "ms", "bare pypsrp"))
            found.append(
                Ratio(f"cold run, {label}: processor", ours.cpu_ms, bare.cpu_ms, "ms", "bare pypsrp")
            )
            counts = {}
            for name, run in runs.items():
                peers.count()
                run()
                counts[name] = peers.count()
            found.append(
                Ratio(f"cold run, {label}: requests", counts["ours"], counts["bare"], "", "bare pypsrp")
            )
        found += _warm(peers)
        found += _fleet(peers)
    return found


def _warm(peers: Peers) -> list[Ratio]:
    with _ours(peers, tls=False) as wire, _bare(peers, None) as pool:

        def ours() -> None:
            assert list(wire.run(SCRIPT, {}, {})) == ["{}"]

        def bare() -> None:
            shell = PowerShell(pool)
            shell.add_script(SCRIPT)
            assert shell.invoke() == ["{}"]
            shell.close()

        costs = interleaved({"ours": ours, "bare": bare}, ROUNDS)
    return [
        Ratio(
            "run in an open session: time", costs["ours"].wall_ms, costs["bare"].wall_ms, "ms", "bare pypsrp"
        )
    ]


def _fleet(peers: Peers) -> list[Ratio]:
    def visit(port: int) -> None:
        with _ours(peers, tls=False, port=port) as wire:
            assert list(wire.run("'x'", {}, {})) == ["{}"]

    def side_by_side() -> None:
        with ThreadPoolExecutor(32) as threads:
            list(threads.map(visit, peers.http[1:]))

    def one_by_one() -> None:
        for port in peers.http[1:]:
            visit(port)

    costs = interleaved({"ours": side_by_side, "bare": one_by_one}, 2)
    return [
        Ratio(
            f"{NODES - 1} cold nodes with 32 threads: time",
            costs["ours"].wall_ms,
            costs["bare"].wall_ms,
            "ms",
            "one after the other",
        )
    ]


@contextmanager
def _written(pem: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ca.pem"
        path.write_text(pem)
        yield str(path)
