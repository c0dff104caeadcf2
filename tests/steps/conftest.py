"""Lab machines for the tests: fresh ones, and nodes that were joined once and are lent to one test after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.lab.conftest import scenes, secrets_of_the_profiles
from tests.lab.scenes import Scenes
from tests.steps.bench import Bench
from tests.steps.nodes import Node

__all__ = ["scenes", "secrets_of_the_profiles"]


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def joined(scenes: Scenes) -> Iterator[Callable[[str], Node]]:
    """A joined node of a scene. It is given back only when it is as it was: a test may do to it what it likes."""
    taken: list[tuple[str, Node]] = []

    def take(scene: str = "plain") -> Node:
        node = Node(scenes.take(scene))
        taken.append((scene, node))
        return node

    yield take
    for scene, node in taken:
        if not node.spoiled and not node.site.refusals and (not node.differs or node.tidy()):
            scenes.give_back(scene, node.site)


@pytest.fixture
def node(joined: Callable[[str], Node]) -> Node:
    """A joined node of the lab's own profile: flannel host-gw."""
    return joined("plain")
