"""How long the command line takes to start, against an interpreter that does nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from benchmarks import Ratio, interleaved

ROUNDS = 15
BAR = 8.0
_HELP = "from winboot.cli import run; raise SystemExit(run(['--help']))"


def measure() -> list[Ratio]:
    """`winboot --help` and `python -c pass`, in turn. The bar is 8."""
    found = interleaved({"help": _python(_HELP), "nothing": _python("pass")}, ROUNDS)
    return [
        Ratio(
            f"winboot --help (bar {BAR:.0f})",
            found["help"].wall_ms,
            found["nothing"].wall_ms,
            "ms",
            "python -c pass",
        )
    ]


def _python(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
