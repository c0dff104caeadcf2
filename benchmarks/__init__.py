"""How fast winboot is, as ratios: each figure against a floor or a peer measured in the same run.

Milliseconds of one laptop say nothing on another one, and less on a busy one. So every benchmark runs its competitors in
turn, round by round, and reports the quotient of each round: the median, the least and the most. `make bench` runs them all;
a module of this package with a function `measure() -> Iterable[Figure]` is a benchmark.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result: a value of each round, and what it should be. `note` names its parts and the peer."""

    name: str
    values: Sequence[float]
    goal: float
    note: str
    sense: Literal["at most", "at least"] = "at most"

    @property
    def value(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def met(self) -> bool:
        """Whether the median is what it should be."""
        return self.value <= self.goal if self.sense == "at most" else self.value >= self.goal

    def __str__(self) -> str:
        sign = "<=" if self.sense == "at most" else ">="
        low, high = min(self.values), max(self.values)
        return (
            f"bench: {self.name} {self.value:.2f} ({low:.2f}–{high:.2f}) goal {sign} {self.goal:g}"
            f" {'met' if self.met else 'missed'}  {self.note}"
        )


@dataclass(slots=True)
class Cost:
    """What each round took: wall-clock and this process's own time, in milliseconds."""

    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)


def interleaved(competitors: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Cost]:
    """Run each competitor `rounds` times, taking turns, so that a noisy moment hits them all. The first round is thrown
    away: it pays for imports and caches.
    """
    costs = {name: Cost() for name in competitors}
    for turn in range(rounds + 1):
        for name, run in competitors.items():
            began, busy = time.perf_counter(), time.process_time()
            run()
            if turn:
                costs[name].wall_ms.append((time.perf_counter() - began) * 1000)
                costs[name].cpu_ms.append((time.process_time() - busy) * 1000)
    return costs


def quotients(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Our times divided by the times of the others, round by round."""
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def beside(ours: Sequence[float], theirs: Sequence[float], unit: str, against: str) -> str:
    """The medians behind a quotient, for its note."""
    return (
        f"{_figure(statistics.median(ours))} : {_figure(statistics.median(theirs))} {unit}, against {against}"
    )


def _figure(value: float) -> str:
    return f"{value:.0f}" if value == int(value) or value >= 100 else f"{value:.1f}"
