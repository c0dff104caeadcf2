"""What an ordinary user had put at the paths that a join, a start of the machine and its tasks use is ours afterwards."""

from __future__ import annotations

import pytest

from tests.lab.scenes import Scenes
from tests.lab.site import Site, only, problems
from tests.lab.strangers import (
    WINDOWS_OWN,
    depth,
    doubts,
    guard,
    in_state,
    plant,
    trace,
    untouched,
    worth_attacking,
)
from tests.matrix import first

DAILY = [("plain", "writable", 3)]
# Azure's and Calico's paths are in folders of their own.
ALL = [
    (scene, state, deep)
    for scene in ("plain", "azure", "own calico")
    for state in ("owned", "writable", "hard_link", "held")
    for deep in range(1, 9)
]


@pytest.mark.parametrize(
    ("scene", "state", "deep"), first(0, DAILY + [one for one in ALL if one not in DAILY], daily=len(DAILY))
)
def test_what_was_hers_is_ours_after_a_join_and_no_program_of_hers_has_run(
    scene: str, state: str, deep: int, scenes: Scenes
) -> None:
    """At each such path at once; the paths are those that a join and a restart touch."""
    twin, touched = scenes.bare(scene), set[str]()
    trace(twin.machine.files, twin.machine.processes, touched)
    _lives(twin)
    attacked = [path for path in worth_attacking(touched) if not in_state(path) and path not in WINDOWS_OWN]
    site = scenes.bare(scene)
    planted, done = plant(site, twin, state, [path for path in attacked if depth(path) == deep])
    if not done:
        pytest.skip(f"Windows lets nobody do that {deep} folders deep")
    seen = guard(site.machine, planted.user)

    site.plan()
    _lives(site)

    assert seen.started and seen.wrong == []
    assert untouched(site.machine) == []
    assert [one for path in attacked for one in doubts(site.machine.files, path, planted.user)] == []


STATES_OF_FILES = ("owned", "writable", "hard_link", "held", "symbolic_link")


@pytest.mark.parametrize(
    ("state", "part"),
    first(0, [(one, part) for one in STATES_OF_FILES for part in ("all", *range(6))], daily=1),
)
def test_what_is_hers_in_the_state_folder_is_named_and_not_believed(
    state: str, part: str | int, scenes: Scenes
) -> None:
    """An administrator had made the folders; in them files are hers that winboot keeps there: all at once, and one by one
    (a sixth of them at a time)."""
    twin, touched = scenes.bare("plain"), set[str]()
    trace(twin.machine.files, twin.machine.processes, touched)
    _lives(twin)
    kept = [path for path in worth_attacking(touched) if in_state(path) and depth(path) > 2]
    assert len(kept) > 20
    for paths in [kept] if part == "all" else [[path] for path in kept[int(part) :: 6]]:
        site = scenes.bare("plain")
        planted, done = plant(site, twin, state, paths)
        if not done:
            continue
        seen = guard(site.machine, planted.user)

        told = problems(site.plan()) + problems(site.join())

        assert [one for one in told if planted.user.sid in one or "link" in one or "second name" in one], (
            paths
        )
        assert seen.wrong == [] and untouched(site.machine) == []


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
