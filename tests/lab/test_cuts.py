"""A cut before any operation of a join, a start of the machine, an undo and the commands after a join; see cuts.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab.branches import CAN_SPLIT
from tests.lab.cuts import STRIKES
from tests.matrix import first

pytestmark = pytest.mark.skipif(not CAN_SPLIT, reason="this system cannot copy a process")

ROOT = Path(__file__).parents[2]
SOLUTIONS = ("flannel-host-gw", "flannel-vxlan", "win-bridge", "win-overlay", "azure", "calico-node")
# In parts, none of which takes as long as a test that hangs.
PARTS = {"join": 24, "start": 4, "undo": 12}
# Of the commands after a join: thirty places each, over so many operations (as many as they have on this machine, in tens).
LATER = {"upgrade": 240, "rollback": 120, "remove": 230}
PLACES = 30


def cuts(act: str, strike: str, solution: str, *, every: int, first: int) -> dict[str, Any]:
    """What was wrong with each copy, by where it was cut."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.cuts", act, strike, solution, str(every), str(first)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(done.stdout)
    return results


@pytest.mark.parametrize(
    ("act", "solution", "every", "begin"),
    first(0, [("undo", "flannel-vxlan", 70, 25), ("join", "flannel-host-gw", 170, 145)], daily=1),
)
def test_a_node_outlives_a_cut_and_an_undo_leaves_what_was_there(
    act: str, solution: str, every: int, begin: int
) -> None:
    """A sample; `make matrix` cuts before every operation."""
    results = cuts(act, "power", solution, every=every, first=begin)

    print(f"{act} of {solution}: {len(results)} cuts")
    assert len(results) >= 2
    assert {where: wrong for where, wrong in results.items() if wrong} == {}


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("act", "part"), [(act, part) for act in PARTS for part in range(PARTS[act])], ids=str
)
@pytest.mark.parametrize("strike", ["power", "network"])
@pytest.mark.parametrize("solution", SOLUTIONS)
def test_a_node_outlives_a_cut_before_every_operation(
    solution: str, strike: str, act: str, part: int
) -> None:
    results = cuts(act, strike, solution, every=PARTS[act], first=part + 1)

    assert results
    assert {where: wrong for where, wrong in results.items() if wrong} == {}


@pytest.mark.parametrize(
    ("act", "strike", "part"),
    first(
        0,
        [(act, strike, part) for part in range(PLACES // 2) for act in LATER for strike in sorted(STRIKES)],
        daily=0,
    ),
    ids=str,
)
def test_the_next_run_ends_right_after_a_cut_of_a_command_after_the_join(
    act: str, strike: str, part: int
) -> None:
    """Two places of each part."""
    count = LATER[act]
    results = cuts(act, strike, "flannel-host-gw", every=count // 2, first=count * part // PLACES + 1)

    assert len(results) >= 2, "it has fewer operations than it had"
    assert {where: wrong for where, wrong in results.items() if wrong} == {}
