"""What an ordinary user had put at the paths that a join, a start of the machine and its tasks use is ours afterwards."""

from __future__ import annotations

import pytest

from tests.lab.scenes import Scenes
from tests.lab.site import Site, only, problems
from tests.lab.strangers import depth, doubts, guard, in_state, plant, trace, untouched, worth_attacking
from tests.matrix import first


@pytest.mark.parametrize(
    ("state", "deep"), first(0, [("writable", 3), ("hard_link", 3), ("owned", 2), ("held", 3)], daily=2)
)
def test_what_was_hers_is_ours_after_a_join_and_no_program_of_hers_has_run(
    state: str, deep: int, scenes: Scenes
) -> None:
    """At each such path at once; the paths are those that a join and a restart touch."""
    twin, touched = scenes.bare("plain"), set[str]()
    trace(twin.machine.files, twin.machine.processes, touched)
    _lives(twin)
    attacked = [path for path in worth_attacking(touched) if not in_state(path)]
    site = scenes.bare("plain")
    planted, done = plant(site, twin, state, [path for path in attacked if depth(path) == deep])
    assert len(done) > 10
    seen = guard(site.machine, planted.user)

    site.plan()
    _lives(site)

    assert seen.started and seen.wrong == []
    assert untouched(site.machine) == []
    assert [one for path in attacked for one in doubts(site.machine.files, path, planted.user)] == []


def _lives(site: Site) -> None:
    report = site.join()
    assert (problems(report), only(report).ready) == ([], True)
    site.machine.reboot()
    site.settle(600)


@pytest.mark.parametrize("state", first(0, ["junction", "symbolic_link"], daily=1))
def test_links_of_hers_in_the_place_of_our_folders_are_named_and_not_followed(
    state: str, scenes: Scenes
) -> None:
    twin, touched = scenes.bare("plain"), set[str]()
    trace(twin.machine.files, twin.machine.processes, touched)
    _lives(twin)
    attacked = [path for path in worth_attacking(touched) if not in_state(path) and depth(path) == 3]
    site = scenes.bare("plain")
    planted, done = plant(site, twin, state, attacked)
    assert len(done) > 10
    seen = guard(site.machine, planted.user)

    report = site.join()

    assert any("FolderIsLink" in one for one in problems(report))
    assert seen.wrong == []
    assert untouched(site.machine) == []
