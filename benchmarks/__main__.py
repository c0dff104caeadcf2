"""`python -m benchmarks [NAME …]`: run all benchmarks, or those named, and print their ratios."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main(names: list[str]) -> int:
    """Run the benchmarks and print a line for each ratio, below 1 is faster than the peer."""
    known = [info.name for info in pkgutil.iter_modules(benchmarks.__path__) if info.name != "__main__"]
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 64
    for name in names or known:
        print(f"\n{name}")
        for ratio in importlib.import_module(f"benchmarks.{name}").measure():
            print(ratio)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
