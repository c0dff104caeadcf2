"""The floor: pypsrp used directly, by as many threads as winboot takes, carrying the same text and hearing the same events."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pypsrp.powershell import PowerShell, RunspacePool
from pypsrp.wsman import WSMan

from benchmarks.canned import PASSWORD, USER

WORKERS = 32


def pool(port: int) -> RunspacePool:
    """A pool that is not open yet: NTLM, sealed."""
    connection = WSMan(
        "127.0.0.1", port=port, username=USER, password=PASSWORD, ssl=False, auth="ntlm", no_proxy=True
    )
    return RunspacePool(connection)


def look(port: int, script: str, arguments: dict[str, object]) -> list[object]:
    """One session, one pipeline, its output."""
    with pool(port) as opened:
        shell = PowerShell(opened)
        shell.add_script(script).add_parameters({"Mode": "Look", "RunId": "bare", "Facts": {}, **arguments})
        said: list[object] = shell.invoke()
    opened.connection.close()
    return said


def fleet(ports: Sequence[int], script: str, **arguments: object) -> None:
    """The same on many machines side by side."""
    with ThreadPoolExecutor(WORKERS) as threads:
        for said in threads.map(lambda port: look(port, script, arguments), ports):
            assert len(said) > 2
