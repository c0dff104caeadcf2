"""A user creates winboot's paths first, at any operation: winboot runs none of those programs and believes no file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from tests.lab.scenes import Scenes
from tests.lab.site import only, problems
from tests.lab.strangers import doubts, guard, in_state, race, untouched
from tests.matrix import first

PARTS: Final = 12


def part(wanted: int) -> Callable[[int, str], bool]:
    """Forty operations, and then not for a while; the state folder is among them."""
    return lambda number, path: number // 40 % PARTS == wanted


SHE: Final[dict[str, Callable[[int, str], bool]]] = {
    "at every operation": lambda number, path: not in_state(path),
    "in the state folder": lambda number, path: in_state(path),
    **{f"part {one}": part(one) for one in range(PARTS)},
}


@pytest.mark.parametrize("she", first(0, list(SHE), daily=1))
def test_a_quicker_user_is_named_or_loses(she: str, scenes: Scenes) -> None:
    """The user ends with the first join; the second join corrects everything that the first has named."""
    twin = scenes.bare("plain")
    assert only(twin.join()).ready
    site = scenes.bare("plain")
    racer = race(site, twin, SHE[she])
    user, files = racer.plant.user, site.machine.files
    seen = guard(site.machine, user)

    told = problems(site.join())

    assert seen.wrong == [] and untouched(site.machine) == []
    racer.at = lambda number, path: False
    assert racer.done or she.startswith("part")
    if any(in_state(path) for _, path in racer.done):
        # That folder is refused by name, until an administrator has looked at it.
        assert any(user.sid in one for one in told), told
        return
    report = site.join()
    assert (problems(report), only(report).ready) == ([], True)
    assert seen.wrong == []
    assert [one for _, path in racer.done for one in doubts(files, path, user)] == []
