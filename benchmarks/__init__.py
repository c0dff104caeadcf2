"""How fast winboot is, as ratios: each figure against a floor or a peer measured in the same run.

Milliseconds of one laptop say nothing on another one, and less on a busy one. So every benchmark runs its
competitors in turn, round by round, and tells the quotient of their medians. `make bench` runs them all; a
module of this package with a function `measure() -> list[Ratio]` is a benchmark.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ratio:
    """One line of the result: `ours` against `peer`, both in `unit`."""

    what: str
    ours: float
    peer: float
    unit: str
    against: str

    @property
    def ratio(self) -> float:
        """Ours as a multiple of the peer's."""
        return self.ours / self.peer

    def __str__(self) -> str:
        figures = f"{_figure(self.ours)} : {_figure(self.peer)} {self.unit}"
        return f"{self.ratio:6.2f}  {self.what:44}  {figures:26}  against {self.against}"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value == int(value) or value >= 100 else f"{value:.1f}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one round took: medians of wall-clock and of this process's own time, in milliseconds."""

    wall_ms: float
    cpu_ms: float


def interleaved(competitors: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Cost]:
    """Run each competitor `rounds` times, taking turns, so that a noisy moment hits them all. The first round
    is thrown away: it pays for imports and caches.
    """
    wall: dict[str, list[float]] = {name: [] for name in competitors}
    cpu: dict[str, list[float]] = {name: [] for name in competitors}
    for turn in range(rounds + 1):
        for name, run in competitors.items():
            began, busy = time.perf_counter(), time.process_time()
            run()
            if turn:
                wall[name].append((time.perf_counter() - began) * 1000)
                cpu[name].append((time.process_time() - busy) * 1000)
    return {name: Cost(statistics.median(wall[name]), statistics.median(cpu[name])) for name in competitors}
