"""After any interruption of a join, the next one continues and ends in the same state."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab.branches import CAN_SPLIT
from tests.lab.interrupted import STRIKES

pytestmark = pytest.mark.skipif(not CAN_SPLIT, reason="this system cannot copy a process")

ROOT = Path(__file__).parents[2]
DAILY = (
    "the controller is killed and its script continues",
    "the connection breaks",
    "the machine loses its power",
)


def broken_off(*strikes: str, every: int, first: int) -> dict[str, Any]:
    """What became of a join that was broken off at every `every`th event: an empty list where it ended as it should."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.interrupted", str(every), str(first), *strikes],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(done.stdout)
    return results


@pytest.mark.check
def test_a_join_that_breaks_off_continues() -> None:
    """At some events, others for each way; all ways and events in the nightly run."""
    results = broken_off(*DAILY, every=251, first=2)

    assert all(sum(where.startswith(name) for where in results) >= 1 for name in DAILY)
    assert {where: wrong for where, wrong in results.items() if wrong} == {}


# In parts, none of which takes as long as a test that hangs.
PARTS = 6


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", STRIKES)
def test_a_join_that_breaks_off_anywhere_continues(name: str, part: int) -> None:
    """At every event."""
    results = broken_off(name, every=PARTS, first=part + 1)

    assert len(results) >= 10
    assert {where: wrong for where, wrong in results.items() if wrong} == {}
