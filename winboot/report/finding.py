"""One thing that preflight has found, before anything is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, why it matters, and what to do next.

    `id` is stable and is what `--skip-preflight` takes; `nodes` are those it concerns, none meaning all of the cluster.
    A finding that was `skipped` stops no node and stays in the report.
    """

    id: str
    level: Level
    reason: str
    fix: str
    nodes: tuple[str, ...] = ()
    skipped: bool = False

    @property
    def stops(self) -> bool:
        """Whether a join must not continue."""
        return self.level == "error" and not self.skipped
