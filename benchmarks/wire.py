"""The wire: winboot's transport against pypsrp used directly, on the same canned endpoint in another process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pypsrp.powershell import PowerShell

from benchmarks import Figure, beside, interleaved, quotients
from benchmarks.bare import look, pool
from benchmarks.canned import PASSWORD, USER, endpoints
from winboot.base.secret import Secret
from winboot.remote.transport.base import Endpoint
from winboot.remote.transport.psrp import PsrpTransport

ROUNDS: Final = 20
STEPS: Final = ("one", "two", "three")
# About the size of a repeat look.
SCRIPT: Final = "# a look that finds nothing to do\n" * 1500
ARGUMENTS: Final = {"Mode": "Look", "RunId": "bare", "Facts": {}}


def _ours(port: int) -> PsrpTransport:
    endpoint = Endpoint("127.0.0.1", port, USER, lambda: Secret(PASSWORD), auth="ntlm")
    return PsrpTransport(endpoint, name="bench")


def measure() -> Iterator[Figure]:
    """A cold run and one in an open session: time, processor, requests. NTLM, sealed."""
    with endpoints(1, STEPS) as peers:
        (port,) = peers.ports

        def ours() -> None:
            with _ours(port) as wire:
                assert len(list(wire.run(SCRIPT, ARGUMENTS, {}))) == len(STEPS) + 2

        def bare() -> None:
            assert len(look(port, SCRIPT, {})) == len(STEPS) + 2

        costs = interleaved({"ours": ours, "bare": bare}, ROUNDS)
        for what, found, floor in (
            ("time", costs["ours"].wall_ms, costs["bare"].wall_ms),
            ("processor", costs["ours"].cpu_ms, costs["bare"].cpu_ms),
        ):
            note = beside(found, floor, "ms", "bare pypsrp")
            yield Figure(f"cold run: {what}", quotients(found, floor), 1.0, note)
        requests, floor_requests = (_requests(peers.spent, run) for run in (ours, bare))
        note = f"{requests} : {floor_requests} requests, against bare pypsrp"
        yield Figure("cold run: requests", [requests / floor_requests], 1.0, note)
        yield _warm(port)


def _requests(spent: Callable[[], tuple[int, int]], run: Callable[[], None]) -> int:
    spent()
    run()
    return spent()[0]


def _warm(port: int) -> Figure:
    with _ours(port) as wire, pool(port) as opened:

        def ours() -> None:
            assert len(list(wire.run(SCRIPT, ARGUMENTS, {}))) == len(STEPS) + 2

        def bare() -> None:
            shell = PowerShell(opened)
            shell.add_script(SCRIPT).add_parameters(ARGUMENTS)
            assert len(shell.invoke()) == len(STEPS) + 2
            shell.close()

        costs = interleaved({"ours": ours, "bare": bare}, ROUNDS)
    found, floor = costs["ours"].wall_ms, costs["bare"].wall_ms
    return Figure(
        "run in an open session: time",
        quotients(found, floor),
        1.0,
        beside(found, floor, "ms", "bare pypsrp"),
    )
