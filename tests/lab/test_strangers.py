"""What an ordinary user had put at the paths that a join, a start of the machine and its tasks use is ours afterwards."""

from __future__ import annotations

import pytest
from winboot_lab.windows.acl import FULL, Rule

from tests.lab.scenes import Scenes
from tests.lab.site import Site, only, problems
from tests.lab.strangers import (
    SHUT,
    WINDOWS_OWN,
    alice,
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
def test_winboot_owns_a_users_paths_after_a_join_and_no_program_of_the_user_has_run(
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
        pytest.skip(f"Windows allows that to no account {deep} folders deep")
    seen = guard(site.machine, planted.user)

    site.plan()
    _lives(site)

    assert seen.started and seen.wrong == []
    assert untouched(site.machine) == []
    assert [one for path in attacked for one in doubts(site.machine.files, path, planted.user)] == []


@pytest.mark.matrix
@pytest.mark.parametrize("deep", range(1, 5))
@pytest.mark.parametrize("state", ["owned", "writable"])
def test_what_was_given_away_after_a_join_is_ours_again_or_named(
    state: str, deep: int, scenes: Scenes
) -> None:
    """Only an administrator can do that. Windows renames no folder that the node itself runs from.

    There an administrator corrects the rights by hand, and a restart closes the user's handles, as the hint says."""
    site, touched = scenes.bare("plain"), set[str]()
    files, user = site.machine.files, alice(site.machine)
    trace(files, site.machine.processes, touched)
    _lives(site)
    ours = [path for path in worth_attacking(touched) if not in_state(path) and path not in WINDOWS_OWN]
    given = [path for path in ours if depth(path) == deep and files.find(path, follow=False)]
    before = {path: files.need(path, follow=False)[1].acl.copy() for path in given}
    for path in given:
        acl = files.need(path, follow=False)[1].acl
        if state == "owned":
            acl.owner = user.sid
        else:
            acl.explicit.append(Rule(user.sid, FULL, inheritance=3))
    seen = guard(site.machine, user)

    told = problems(site.plan()) + problems(site.join(drain=True))

    assert given and seen.wrong == []
    if told:
        assert any("FolderInUse" in one and "remove the account's rights there" in one for one in told), told
        for path in given:
            if files.find(path, follow=False):
                files.set_acl(path, before[path])
        report = site.join(drain=True)
        assert (problems(report), only(report).ready) == ([], True)
    assert [one for path in ours for one in doubts(files, path, user)] == []


STATES_OF_FILES = (
    "owned", "writable", "hard_link", "held", "symbolic_link", f"{SHUT}hard_link", f"{SHUT}symbolic_link",
)  # fmt: skip


@pytest.mark.parametrize(
    ("state", "part"),
    first(0, [(one, part) for one in STATES_OF_FILES for part in ("all", *range(6))], daily=1),
)
def test_a_users_files_in_the_state_folder_are_named_and_not_believed(
    state: str, part: str | int, scenes: Scenes
) -> None:
    """An administrator had made the folders; the user owns files in them that winboot keeps there.

    All at once, and one by one (a sixth of them at a time)."""
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


@pytest.mark.parametrize(
    "state",
    first(0, [f"{shut}{one}" for one in ("junction", "symbolic_link") for shut in ("", SHUT)], daily=0),
)
def test_a_users_links_instead_of_winboots_folders_are_named_and_not_followed(
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
