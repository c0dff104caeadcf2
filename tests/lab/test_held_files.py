"""Whoever holds a file open, for a moment or for long: a run ends Ready or by a name, and no file is lost.

A virus scanner, a backup or a log shipper opens what the n-th file operation is about, just before it. The lab's files
keep to the sharing modes of CreateFile, so that a rename, a delete or a write fails as it does on Windows.
"""

from __future__ import annotations

import re

import pytest

from tests.lab.scenes import Scenes
from tests.lab.site import Site, only, problems
from tests.lab.test_network_undo import undo

# Longer than anybody waits for a file, and shorter than it takes to come back.
LONG = 900.0


@pytest.fixture(scope="module")
def reference(scenes: Scenes) -> set[str]:
    """The files that a join which nobody disturbs leaves."""
    site = scenes.bare("plain")
    assert not problems(site.join())
    site.settle(60)
    site.join()
    return paths(site)


def paths(site: Site) -> set[str]:
    """The files of the machine, without what differs from one join to the next in their names: hashes and times."""
    return {re.sub(r"[0-9a-f]{8,}|\d{4}(-\d\d){5}", "*", path) for path, _ in site.machine.files.walk("C:\\")}


def ends_well(site: Site, reference: set[str]) -> list[str]:
    """What is wrong with a join whose files were held: nothing, or what it was told, in the end like the others."""
    report = site.join()
    wrong = [told for told in problems(report) if not re.search(r"FileInUse|DetachedFailed|NeedsStep", told)]
    if not problems(report) and not only(report).ready:
        wrong.append("neither Ready nor named")
    site.settle(LONG)
    wrong += problems(site.join())
    site.settle(60)
    last = site.join()
    wrong += problems(last) + ([f"another join changes {last.changed}"] if last.changed else [])
    wrong += [f"the lab refuses {refusal}" for refusal in site.refusals]
    return wrong + [f"missing: {path}" for path in sorted(reference - paths(site))]


@pytest.mark.parametrize("share", ["Read", "None"])
@pytest.mark.parametrize("call", [90, 290, 470])
def test_a_file_that_is_held_for_a_moment_costs_a_join_nothing(
    scenes: Scenes, reference: set[str], call: int, share: str
) -> None:
    site = scenes.bare("plain")
    site.machine.faults.scan(call, 0.4, share=share)

    report = site.join()

    assert site.machine.faults.held, "nothing was held: this proves nothing"
    assert (problems(report), only(report).ready) == ([], True)
    assert ends_well(site, reference) == []


@pytest.mark.parametrize("call", [150, 380])
def test_a_join_whose_file_stays_held_ends_ready_or_named(
    scenes: Scenes, reference: set[str], call: int
) -> None:
    site = scenes.bare("plain")
    site.machine.faults.scan(call, LONG, share="Read")

    assert ends_well(site, reference) == []


# How many file operations a join has, and in how many tests they are.
OPERATIONS, PARTS = 700, 35


@pytest.mark.matrix
@pytest.mark.parametrize("seconds", [0.4, LONG])
@pytest.mark.parametrize("part", range(PARTS))
def test_a_join_whose_file_is_held_at_any_operation_ends_ready_or_named(
    scenes: Scenes, reference: set[str], part: int, seconds: float
) -> None:
    found = {}
    for call in range(part + 1, OPERATIONS, PARTS):
        site = scenes.bare("plain")
        site.machine.faults.scan(call, seconds, share=("Read", "ReadWrite", "None")[call % 3])
        found[call] = ends_well(site, reference)

    assert {call: wrong for call, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("call", [40, 90])
def test_an_undo_whose_file_is_held_is_finished_by_the_next_one(scenes: Scenes, call: int) -> None:
    site = scenes.take("plain")
    site.machine.faults.scan(call, LONG, share="Read")

    undo(site)
    site.settle(LONG)
    undo(site)
    site.machine.reboot(seconds=1)
    site.settle(30)

    assert site.machine.faults.held, "nothing was held: this proves nothing"
    left = [path for path, _ in site.machine.files.walk("C:\\") if "winboot" in path.lower()]
    assert left == []
    assert not site.machine.files.exists(r"C:\k")
