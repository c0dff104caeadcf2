"""The one comparison of clocks, and what ping and the cloud's check make of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from winboot.base.clock import CLOCK_FAILS, clock_level
from winboot.cli.ping import _clock

LIB = Path(__file__).parents[1] / "templates" / "powershell" / "lib"


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(
    ("seconds", "level"),
    [(0, "ok"), (5, "ok"), (6, "warning"), (300, "warning"), (301, "error"), (86_400, "error")],
)
def test_a_clock_is_judged_by_its_distance(seconds: int, sign: int, level: str) -> None:
    offset = timedelta(seconds=sign * seconds)

    assert (clock_level(offset), _clock(offset, "ours").level) == (level, level)


def test_the_machine_compares_with_the_same_limit() -> None:
    text = (LIB / "preflight.ps1").read_text(encoding="utf-8")

    assert f"[Math]::Abs($offset) -le {CLOCK_FAILS.total_seconds():.0f}) {{ return }}" in text
    assert f"-Want 'within {CLOCK_FAILS.total_seconds():.0f} s'" in text
