"""A cut of the power before any operation of a join, of its detached run and of the startup task."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.lab.site import Site, differences, only, problems
from tests.lab.test_networks import BY_NAME, a_site

SOLUTIONS = ("flannel-host-gw", "flannel-vxlan", "win-bridge", "azure")


def bare(solution: str, folder: Path) -> Site:
    """A bare machine of 2019 with a static address, which a switch takes away."""
    return a_site(folder, BY_NAME[solution], release="2019")


@cache
def operations(solution: str) -> int:
    """How many operations of an undisturbed join change something."""
    site = bare(solution, Path(mkdtemp()))
    assert problems(site.join()) == []
    return site.machine.faults.writes


def goes_on(site: Site, before: int) -> None:
    """Cut, run again, look, restart: a Ready node that is reached."""
    machine = site.machine

    def cut() -> None:
        machine.power_off()
        machine.after(20, machine.power_on, lasting=True)

    machine.faults.before_write(before, cut)
    site.join()
    site.settle(60)
    report = site.join()
    assert (problems(report), only(report).ready) == ([], True)
    assert differences(site.join()) == {}

    machine.reboot()
    site.settle(900)

    assert machine.reachable()
    assert problems(site.join()) == []
    assert only(site.plan()).ready
    assert site.refusals == []


@pytest.mark.parametrize(("solution", "share"), [("flannel-vxlan", 0.3), ("flannel-host-gw", 0.75)])
def test_a_join_that_loses_its_power_goes_on_and_the_node_survives_a_restart(
    solution: str, share: float, tmp_path: Path
) -> None:
    """A sample; `make matrix` cuts at every fifth operation."""
    number = int(operations(solution) * share)
    print(f"{solution}: cut before operation {number} of {operations(solution)}")
    goes_on(bare(solution, tmp_path), number)


@pytest.mark.matrix
@pytest.mark.parametrize("part", range(120))
@pytest.mark.parametrize("solution", SOLUTIONS)
def test_a_join_cut_at_every_fifth_operation_goes_on(solution: str, part: int, tmp_path: Path) -> None:
    number = 5 * part + 1
    if number > operations(solution):
        pytest.skip(f"a join of {solution} has {operations(solution)} operations")
    goes_on(bare(solution, tmp_path), number)
