"""How often a process with a lab in it looks for circles of objects."""

from __future__ import annotations

import gc

# Collections of the young, after which whoever runs one lab after another looks for circles among all: 100,000 objects.
_MANY = 5


def collect_rarely() -> None:
    """Look every 20,000 new objects instead of every 700.

    The lab's syntax trees live as long as the process, and a join makes millions of objects beside them: the collector
    took a quarter of its time.
    """
    gc.set_threshold(20_000, 20, 100)


class Labs:
    """One lab after another in one process: `forget` takes away the circles that they left, some 30 MiB for each join."""

    def __init__(self) -> None:
        self._looked = 0

    def forget(self) -> None:
        """Look among all objects, where many are new. What was there the first time (modules, syntax trees, the tests
        themselves) lives as long as the process, and is not looked at again."""
        young = gc.get_stats()[0]["collections"]
        if young - self._looked < _MANY:
            return
        first = self._looked == 0
        self._looked = young
        gc.collect()
        if first:
            gc.freeze()
