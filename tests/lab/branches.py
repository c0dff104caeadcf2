"""Many ways from one point: the process splits, and each copy of the lab goes its own way to the end.

A fork copies only the calling thread, so a site must do all its work in one thread at that moment. Then a copy has exactly
the same machines, cluster and controller, even in the middle of a script. The copies run side by side and send their
results.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

CAN_SPLIT = hasattr(os, "fork")
# Seconds after which a copy that does not end prints its stack and is given up, by default.
PATIENCE = 400


@dataclass
class _Branch:
    name: str
    process: int
    answer: int


class Branches:
    """The copies under way, `most` at a time, and the results of those that ended."""

    def __init__(
        self, most: int = 2, say: Callable[[str], None] = lambda text: None, patience: float = PATIENCE
    ) -> None:
        self._most = most
        self._say = say
        self._patience = patience
        self._running: list[_Branch] = []
        self.told: dict[str, Any] = {}

    def split(self, name: str) -> Callable[[object], NoReturn] | None:
        """None in the process that continues; in the copy, a function that sends its result and ends it."""
        assert threading.current_thread() is threading.main_thread(), "a copy of this thread would never end"
        while len(self._running) >= self._most:
            self._take_first()
        reading, writing = os.pipe()
        # A copy's collector would touch, and so copy, every page of this process.
        gc.freeze()
        process = os.fork()
        if process:
            os.close(writing)
            self._running.append(_Branch(name, process, reading))
            return None
        os.close(reading)
        self._running.clear()
        faulthandler.dump_traceback_later(self._patience, exit=True)

        def end(result: object) -> NoReturn:
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(result, pipe)
            os._exit(0)

        return end

    def results(self) -> dict[str, Any]:
        """The results of all copies, by name; waits for those under way."""
        while self._running:
            self._take_first()
        return self.told

    def _take_first(self) -> None:
        branch = self._running.pop(0)
        with os.fdopen(branch.answer, "rb") as pipe:
            raw = pipe.read()
        os.waitpid(branch.process, 0)
        result = self.told[branch.name] = pickle.loads(raw) if raw else ["the copy ended without a word"]
        self._say(f"{branch.name}: {result if isinstance(result, list) and result else 'well'}")


def told(work: Callable[[], object]) -> object:
    """What work gives, or the error it ends with, as text."""
    try:
        return work()
    except BaseException:  # noqa: BLE001  # a copy has nobody above it to tell
        sys.stderr.flush()
        return [traceback.format_exc()]
