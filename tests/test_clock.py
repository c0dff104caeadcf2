"""The one comparison of clocks, and what ping and the cloud's check make of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.steps.builders import a_spec
from winboot.base.clock import CLOCK_FAILS, clock_level
from winboot.cli.ping import _clock
from winboot.script.steps.node_preflight import NODE_PREFLIGHT


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(
    ("seconds", "level"),
    [(0, "ok"), (5, "ok"), (6, "warning"), (300, "warning"), (301, "error"), (86_400, "error")],
)
def test_a_clock_is_judged_by_its_distance(seconds: int, sign: int, level: str) -> None:
    offset = timedelta(seconds=sign * seconds)

    assert (clock_level(offset), _clock(offset, "ours").level) == (level, level)


def test_the_machine_compares_with_the_same_limit() -> None:
    assert NODE_PREFLIGHT.inputs(a_spec())["clock_s"] == CLOCK_FAILS.total_seconds()
