"""How long the command line takes to start, against an interpreter that does nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

from benchmarks import Figure, beside, interleaved, quotients

ROUNDS = 15
_HELP = "from winboot.cli import run; raise SystemExit(run(['--help']))"


def measure() -> Iterator[Figure]:
    """`winboot --help` and `python -c pass`, in turn."""
    found = interleaved({"help": _python(_HELP), "nothing": _python("pass")}, ROUNDS)
    ours, floor = found["help"].wall_ms, found["nothing"].wall_ms
    yield Figure(
        "winboot --help: time", quotients(ours, floor), 8, beside(ours, floor, "ms", "python -c pass")
    )


def _python(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
