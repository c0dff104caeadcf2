"""A whole join in the lab against the same command once more, which changes nothing; and what a script weighs.

The lab's engine is in both times, and most of them: this is the figure of the whole, not of the controller.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from winboot_lab.cli.staging import stage
from winboot_lab.up import Lab

from benchmarks import Figure, beside, quotients
from benchmarks.look import site
from winboot import cli

ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds, and bytes that the machine has got. Requests are more the longer the waits are: no figure."""

    time: float
    bytes: float


def measure() -> Iterator[Figure]:
    """See the module."""
    yield from _sizes()
    pairs = [_joined() for _ in range(ROUNDS)]
    whole, again = [one for one, _ in pairs], [one for _, one in pairs]
    for what, unit, goal in (("time", "ms", 12.0), ("bytes", "bytes", 25.0)):
        ours, floor = ([getattr(cost, what) for cost in costs] for costs in (whole, again))
        note = beside(ours, floor, unit, "the join that changes nothing")
        yield Figure(f"whole join in the lab: {what}", quotients(ours, floor), goal, note)


def _sizes() -> Iterator[Figure]:
    with site(1) as place:
        script = place.script
    loader, part, whole = (len(text.encode()) for text in (script.kept.loader, script.node_part, script.text))
    note = f"{loader / 1000:.0f} + {part / 1000:.0f} : {whole / 1000:.0f} KB, against the whole script"
    yield Figure("loader and node's part: size", [(loader + part) / whole], 0.25, note)


def _joined() -> tuple[Cost, Cost]:
    """A join of a bare machine of the lab, and the same command once more."""
    with tempfile.TemporaryDirectory() as name, Lab(nodes=1) as lab:
        folder = Path(name)
        os.environ["WINBOOT_STATE"] = str(folder / "state")
        inventory = stage(lab, folder).inventory
        return _cost(lab, inventory), _cost(lab, inventory)


def _cost(lab: Lab, inventory: Path) -> Cost:
    end = lab.nodes["win-1"].endpoint
    end.recount()
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        code = cli.run(["join", "-i", str(inventory), "--yes"])
    assert code == 0, said.getvalue()
    return Cost((time.perf_counter() - began) * 1000, sum(one.received for one in end.requests))
