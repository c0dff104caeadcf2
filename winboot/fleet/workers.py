"""Many nodes side by side: one thread a node, one result a node, whatever happens to the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from winboot.run import Stop

Item = TypeVar("Item")
Result = TypeVar("Result")

# Threads beyond this only queue for the interpreter lock: measured at 45 to 80 nodes a second with any larger number.
MOST_WORKERS: Final = 64


def each(
    items: Sequence[Item], work: Callable[[Item], Result], *, stop: Stop, workers: int = MOST_WORKERS
) -> list[Result]:
    """`work(item)` for every item, side by side; results in the order of the items.

    `work` turns its own expected errors into a result; an error that escapes it is a bug and is raised here. Ctrl-C
    asks all work to stop and still collects every result, so that the report is complete.
    """
    if not items:
        return []
    with ThreadPoolExecutor(
        max_workers=min(workers, len(items), MOST_WORKERS), thread_name_prefix="node"
    ) as pool:
        futures = [pool.submit(work, item) for item in items]
        while True:
            try:
                return [future.result() for future in futures]
            except KeyboardInterrupt:
                stop.request()
