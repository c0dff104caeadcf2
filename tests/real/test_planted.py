"""Bugs that are planted in the library: each engine answers to them as the table of planted.py says."""

from __future__ import annotations

import pytest
from winboot_lab import engines
from winboot_lab.windows.machine import Machine

from tests.real.planted import PLANTED, Planted, answer

planted_bugs = pytest.mark.parametrize("planted", PLANTED, ids=lambda one: one.name)


@planted_bugs
def test_without_the_bug_the_call_answers_as_meant(planted: Planted) -> None:
    assert answer(Machine(), planted, bug=False) == planted.healthy


@planted_bugs
def test_the_bug_is_answered_as_the_table_says(planted: Planted) -> None:
    later = planted.later is not None and engines.powershell_in_use() is not None

    assert answer(Machine(), planted, bug=True) == (planted.later if later else planted.told)
