"""`python -m benchmarks [NAME …]`: run all benchmarks, or those named, and print their figures."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Final

import benchmarks

# Modules of the package that are no benchmarks.
HELPERS: Final = frozenset({"__main__", "canned", "bare"})


def main(names: list[str]) -> int:
    """Run the benchmarks and print a line for each figure. A goal that is missed is no failure: machines are busy."""
    known = [info.name for info in pkgutil.iter_modules(benchmarks.__path__) if info.name not in HELPERS]
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 64
    for name in names or known:
        print(f"\n{name}")
        for figure in importlib.import_module(f"benchmarks.{name}").measure():
            print(figure, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
