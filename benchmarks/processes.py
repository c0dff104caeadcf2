"""One and two processes: `winboot join` on nodes that are right, as a command, over canned endpoints.

What a process costs until it works is in the figure: `--processes` is for runs of many minutes, and a look is short.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import yaml

from benchmarks import Figure, beside, interleaved, quotients
from benchmarks.canned import PASSWORD, USER, endpoints
from benchmarks.look import Site, site

NODES: Final = 200
ROUNDS: Final = 3
_SECRETS: Final = {"P": PASSWORD, "T": "abcdef.0123456789abcdef"}


def measure() -> Iterator[Figure]:
    """See the module."""
    with site(NODES) as place, endpoints(NODES, place.steps) as peers:
        inventory = _inventory(place, peers.ports)
        costs = interleaved(
            {count: _join(inventory, place.folder / "state", count) for count in ("1", "2")}, ROUNDS
        )
    one, two = costs["1"].wall_ms, costs["2"].wall_ms
    note = beside(two, one, f"ms for {NODES} nodes", "one process")
    yield Figure("join that changes nothing, two processes: time", quotients(two, one), 1.0, note)


def _inventory(place: Site, ports: Sequence[int]) -> Path:
    """The site's inventory with the endpoints' ports, without a cluster; the hashes are never asked for."""
    path = place.folder / "inventory.yaml"
    groups = yaml.safe_load(path.read_text(encoding="utf-8"))
    pool = groups["groups"]["pool"]
    pool["connection"] = {"user": USER, "password": {"env": "P"}, "auth": "ntlm"}
    pool["cluster"] = {"kubeconfig": None, "bootstrap_token": {"env": "T"}}
    pool["artifacts"] = {"sha256": {one.key: "0" * 64 for one in place.specs[0].artifacts}}
    for host, port in zip(pool["hosts"].values(), ports, strict=True):
        host["connection"] = {"host": "127.0.0.1", "port": port, "scheme": "http"}
    path.write_text(yaml.safe_dump(groups), encoding="utf-8")
    return path


def _join(inventory: Path, state: Path, count: str) -> Callable[[], None]:
    command = [sys.executable, "-m", "winboot", "join", "-i", str(inventory), "--processes", count]
    surroundings = {**os.environ, **_SECRETS, "WINBOOT_STATE": str(state)}

    def run() -> None:
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=surroundings)
        assert done.returncode == 0, done.stderr

    return run
