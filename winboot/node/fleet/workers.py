"""Work on many items side by side: a thread each, as many as help, one result an item, whatever happens to the others."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from winboot.node.run import Stop

Item = TypeVar("Item")
Result = TypeVar("Result")

# Threads beyond this only queue for the interpreter lock: measured at 45 to 80 nodes a second with any larger number.
MOST_WORKERS: Final = 64
# How long a run that is to stop waits for its nodes: a script that says something ends within this.
GRACE_S: Final = 3.0
# When a script that says nothing is ended on its machine, after a request to stop.
NUDGE_S: Final = 0.5
_LOOK_S: Final = 0.1


def each(
    items: Sequence[Item],
    work: Callable[[Item], Result],
    *,
    stop: Stop,
    workers: int = MOST_WORKERS,
    late: Callable[[Item], Result] | None = None,
    nudge: Callable[[Item], None] | None = None,
    grace: float = GRACE_S,
) -> list[Result]:
    """`work(item)` for every item, side by side; results in the order of the items.

    `work` turns its own expected errors into a result; an error that escapes it is a bug and is raised here. When `stop`
    is requested, items have `grace` seconds (none after a second request) to end. One that does not, because its
    machine neither answers nor goes away, is left to its thread, and `late(item)` is its result. Without `late` every
    item is waited for. `nudge(item)` is called early in these seconds, in a thread of its own, to help an item to its
    end. Ctrl-C is such a request.
    """
    pool = _Pool(items, work, workers)
    asked: float | None = None
    while not pool.finished:
        try:
            pool.wait(_LOOK_S)
        except KeyboardInterrupt:
            stop.request()
        if not stop.requested:
            continue
        asked = asked if asked is not None else time.monotonic()
        since = time.monotonic() - asked
        if nudge is not None and (stop.urgent or since >= min(NUDGE_S, grace)):
            pool.side_by_side(nudge)
            nudge = None
        if late is not None and (stop.urgent or since >= grace):
            break
    return pool.results(late)


class _Pool(Generic[Item, Result]):
    """Threads that take one item after the other; daemons, so that one which hangs in a socket ends with the process."""

    def __init__(self, items: Sequence[Item], work: Callable[[Item], Result], workers: int) -> None:
        self._items = items
        self._work = work
        self._next: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._begun: set[int] = set()
        self._results: dict[int, Result] = {}
        self._bug: BaseException | None = None
        self._changed = threading.Condition()
        for index in range(len(items)):
            self._next.put(index)
        for number in range(min(workers, len(items))):
            threading.Thread(target=self._run, name=f"node_{number}", daemon=True).start()

    @property
    def finished(self) -> bool:
        """Whether every item has its result, or one has met a bug."""
        return len(self._results) == len(self._items) or self._bug is not None

    def wait(self, seconds: float) -> None:
        """Sleep until something has changed, at most so long."""
        with self._changed:
            if not self.finished:
                self._changed.wait(seconds)

    def side_by_side(self, work: Callable[[Item], None]) -> None:
        """Start `work` for every item that is worked on now; this does not wait for it."""
        with self._changed:
            running = self._begun - self._results.keys()
        for index in sorted(running):
            threading.Thread(
                target=work, args=(self._items[index],), name=f"nudge_{index}", daemon=True
            ).start()

    def results(self, late: Callable[[Item], Result] | None) -> list[Result]:
        """One for each item; raises the error that escaped the work."""
        with self._changed:
            if self._bug is not None:
                raise self._bug
            known = dict(self._results)
        missing = [index for index in range(len(self._items)) if index not in known]
        assert late is not None or not missing
        if late is not None:
            known |= self._all_late(missing, late)
        return [known[index] for index in range(len(self._items))]

    def _all_late(self, missing: Sequence[int], late: Callable[[Item], Result]) -> dict[int, Result]:
        """`late` of each, side by side: it may wait for a silent cluster, a second for all of them and not for each."""
        found: dict[int, Result] = {}

        def one(index: int) -> None:
            found[index] = late(self._items[index])

        waiting = [index for index in missing if index not in self._begun]
        threads = [
            threading.Thread(target=one, args=(index,), name=f"late_{index}", daemon=True)
            for index in missing
            if index in self._begun
        ]
        for thread in threads:
            thread.start()
        for index in waiting:
            one(index)
        for thread in threads:
            thread.join()
        return found

    def _run(self) -> None:
        while True:
            try:
                index = self._next.get_nowait()
            except queue.Empty:
                return
            with self._changed:
                self._begun.add(index)
            try:
                result = self._work(self._items[index])
            except BaseException as error:  # noqa: BLE001 - raised in the thread that asked for the results
                with self._changed:
                    self._bug = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._results[index] = result
                self._changed.notify_all()
