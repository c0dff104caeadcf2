"""Whatever breaks a join off, the next one goes on and ends in the same state."""

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


def broken_off(every: int, *strikes: str) -> dict[str, Any]:
    """What became of a join that was broken off at every EVERYth event: an empty list where it ended as it should."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.interrupted", str(every), *strikes],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(done.stdout)
    return results


@pytest.mark.parametrize("name", STRIKES)
def test_a_join_that_breaks_off_goes_on(name: str) -> None:
    """At some events; all of them in the nightly run."""
    results = broken_off(9, name)

    assert len(results) >= 5
    assert {where: wrong for where, wrong in results.items() if wrong} == {}


@pytest.mark.nightly
def test_a_join_that_breaks_off_anywhere_goes_on() -> None:
    """At every event, in every way."""
    results = broken_off(1, *STRIKES)

    assert {where: wrong for where, wrong in results.items() if wrong} == {}
