"""Lab machines for the tests: fresh ones, and copies of nodes that were joined once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.conftest import secrets_of_the_profiles
from tests.steps.bench import Bench
from tests.steps.forks import JOINED, run_in_copies
from tests.steps.nodes import Node

__all__ = ["secrets_of_the_profiles"]

HERE = Path(__file__).parent


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Tests of joined nodes run in copies of this process: a join takes seconds, a copy milliseconds."""
    if HERE not in item.path.parents or "joined" not in getattr(item, "fixturenames", ()):
        return None
    run_in_copies(item, nextitem)
    return True


@pytest.fixture
def joined() -> Callable[[str], Node]:
    """A joined node of a scene. A test may do to it what it likes."""
    return lambda scene: Node(JOINED.site(scene))


@pytest.fixture
def node(joined: Callable[[str], Node]) -> Node:
    """A joined node of the lab's own profile: flannel host-gw."""
    return joined("plain")
