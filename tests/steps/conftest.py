"""Lab machines for the tests: fresh ones, and copies of nodes that were joined once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.lab.conftest import joined_site, pytest_runtest_protocol, secrets_of_the_profiles
from tests.lab.site import Site
from tests.steps.bench import Bench
from tests.steps.nodes import Node

__all__ = ["joined_site", "pytest_runtest_protocol", "secrets_of_the_profiles"]


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.machine.tasks.end_residents()


@pytest.fixture
def joined(joined_site: Callable[[str], Site]) -> Callable[[str], Node]:
    """A joined node of a scene. A test may do to it what it likes."""
    return lambda scene: Node(joined_site(scene))


@pytest.fixture
def node(joined: Callable[[str], Node]) -> Node:
    """A joined node of the lab's own profile: flannel host-gw."""
    return joined("plain")
