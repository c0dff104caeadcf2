"""What an ordinary user had put at the paths that a join, a start of the machine and its tasks use is ours afterwards."""

from __future__ import annotations

import pytest

from tests.lab.scenes import Scenes
from tests.lab.site import Site, only, problems
from tests.lab.strangers import depth, doubts, guard, in_state, plant, trace, untouched, worth_attacking


@pytest.mark.check
@pytest.mark.parametrize("deep", [2])
def test_what_was_hers_is_ours_after_a_join_and_no_program_of_hers_has_run(deep: int, scenes: Scenes) -> None:
    """At each such path at once; the paths are those that a join and a restart touch."""
    twin, touched = scenes.bare("plain"), set[str]()
    trace(twin.machine.files, twin.machine.processes, touched)
    _lives(twin)
    attacked = [path for path in worth_attacking(touched) if not in_state(path)]
    site = scenes.bare("plain")
    planted, done = plant(site, twin, "owned", [path for path in attacked if depth(path) == deep])
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
