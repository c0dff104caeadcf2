"""Joined pairs of nodes, and the sites of tests/lab."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from winboot_lab.up import NodePlan

from tests.lab.conftest import joined_site, pytest_runtest_protocol, secrets_of_the_profiles
from tests.lab.scenes import PROFILES, SCENES
from tests.lab.site import Site, problems

__all__ = ["joined_site", "pytest_runtest_protocol", "secrets_of_the_profiles"]
PAIR = (NodePlan("win-1", "2022", "10.0.1.11"), NodePlan("win-2", "2025", "10.0.1.12"))
SITES: dict[str, Callable[[Path], Site]] = {
    "bridge": lambda folder: Site(folder, *PAIR),
    "overlay": lambda folder: Site(
        folder, *PAIR, profile=PROFILES / "flannel-vxlan.yaml", cluster=SCENES["vxlan"].cluster()
    ),
}


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Site]]:
    """A joined pair of a kind. The threads that keep its machines going are not in copies."""
    made: dict[str, Site] = {}

    def pair(kind: str) -> Site:
        if kind not in made:
            site = SITES[kind](tmp_path_factory.mktemp(kind))
            report = site.join()
            assert not problems(report), problems(report)
            site.settle(60)
            for machine in site.machines.values():
                machine.tasks.end_residents()
            made[kind] = site
        return made[kind]

    yield pair


@pytest.fixture(scope="session")
def pair(pairs: Callable[[str], Site]) -> Site:
    """Two nodes of different builds on an L2 bridge. Tests leave it as it was."""
    return pairs("bridge")
