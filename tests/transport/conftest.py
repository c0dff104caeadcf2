"""A farm for each test, and the ways to log in as parameters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab_wsman.stage import MODES, Mode
from winboot_lab.wsman.farm import Farm


@pytest.fixture
def farm() -> Iterator[Farm]:
    with Farm() as farm:
        yield farm


@pytest.fixture(params=MODES, ids=lambda mode: mode.name)
def mode(request: pytest.FixtureRequest) -> Mode:
    return request.param
