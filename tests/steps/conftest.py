"""A fresh lab machine for each test that asks for one."""

import pytest

from tests.steps.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
