"""How often a process with a lab in it looks for circles of objects."""

from __future__ import annotations

import gc

# After so many collections of young objects (100,000 objects), a process with many labs looks for circles.
_MANY = 5
# Searches among new objects alone before one search among all.
_AMONG_NEW = 10


def collect_rarely() -> None:
    """Look every 20,000 new objects instead of every 700.

    The lab's syntax trees live as long as the process, and a join makes millions of objects in addition: the
    collector took a quarter of its time.
    """
    gc.set_threshold(20_000, 20, 100)


class Labs:
    """One lab after another in one process: `forget` frees the circles that they left, some 30 MiB for each join."""

    def __init__(self) -> None:
        self._looked = 0
        self._times = 0

    def forget(self) -> None:
        """Look for circles where many objects are new: among these, and now and then among all. What outlives a look (modules,
        syntax trees, the tests themselves) mostly lives as long as the process."""
        young = gc.get_stats()[0]["collections"]
        if young - self._looked < _MANY:
            return
        self._looked = young
        if self._times % _AMONG_NEW == 0:
            gc.unfreeze()
        self._times += 1
        gc.collect()
        gc.freeze()
