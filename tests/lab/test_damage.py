"""Whatever happens to a node, the next join puts exactly that back, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.lab.damages import DAMAGES, ELSEWHERE, Damage
from tests.lab.difference_patterns import ANY, all_whats, pattern_of
from tests.lab.notices import NOTICES, Notice
from tests.lab.scenes import SCENES, Scenes
from tests.lab.site import Controller, Site, differences, only, problems
from tests.lab.state import changes, state
from tests.matrix import Matrix, first

ROOT: Final = Path(__file__).parents[2]
# Six kinds of things that can differ, each day: the damage's step holds every one of its differences in tests/steps.
KINDS: Final = Matrix(
    "kinds of damage",
    DAMAGES,
    lambda one: (
        {"scene": one.scene, "meanwhile": one.meanwhile is not None}
        | {words(what): True for what in one.whats}
    ),
    strength=1,
    core=1,
    daily=3,
)


def words(what: str) -> str:
    """What a difference is about, without the thing's own name."""
    found = re.match("[A-Za-z ]*", what)
    assert found is not None
    return found[0].strip()


@pytest.mark.parametrize(
    "damage",
    KINDS.params(lambda one: one.name),
)
def test_repair_puts_exactly_that_back(damage: Damage, joined_site: Callable[[str], Site]) -> None:
    site = joined_site(damage.scene)
    before = state(site)

    damage.do(site)
    plan = site.plan()
    repair = _repairing(site, damage)
    report = repair.join(drain=True)

    found = {what for whats in differences(plan).values() for what in whats}
    assert _unmatched(found, damage.whats) == ([], [])
    assert not problems(report), problems(report)
    site.settle(60)
    assert changes(before, state(site)) == []
    assert not site.refusals


@pytest.mark.parametrize("notice", first(2, NOTICES, lambda one: one.name, daily=3))
def test_what_is_not_winboots_is_reported_and_left_alone(
    notice: Notice, scenes: Scenes, joined_site: Callable[[str], Site]
) -> None:
    """It is no reason to start, and counts for nothing."""
    site = joined_site("everything") if notice.joined else scenes.bare("everything")
    notice.do(site)
    before = state(site)

    plan = site.plan()

    told = {d.what for step in only(plan).steps for d in step.differences if d.policy}
    assert _unmatched(told, notice.whats)[1] == []
    assert [what for what in told if pattern_of(what, all_whats()) is None] == []
    if notice.joined:
        assert (plan.exit_code, differences(plan)) == (notice.exit_code, {})
        assert site.join().changed == 0
        assert changes(before, state(site)) == []


def test_whatever_a_look_can_say_is_in_the_tables(
    record_property: Callable[[str, object], None],
) -> None:
    """Every place of templates and controller that emits a difference, found in their syntax trees.

    That each line of the tables is seen in a look, the tests above hold.
    """
    in_tables = {_pattern(what.replace(ANY, "any")) for line in (*DAMAGES, *NOTICES) for what in line.whats}

    missing = sorted(what.text for what in all_whats() if what.text not in in_tables | set(ELSEWHERE))

    record_property("damage", f"{len(in_tables)} of {len(all_whats())}")
    assert missing == []
    assert sorted(set(ELSEWHERE) & in_tables) == [], "the table has it now"
    for what, (file, words) in ELSEWHERE.items():
        assert words in (ROOT / file).read_text(encoding="utf-8"), what


@pytest.mark.parametrize("scene", first(2, SCENES, daily=3))
def test_the_plan_of_a_bare_machine_has_nothing_that_no_damage_shows(scene: str, scenes: Scenes) -> None:
    """What is put together at run time, too, comes from a pattern of the tables."""
    plan = scenes.bare(scene).plan()

    found = [d.what for step in only(plan).steps for d in step.differences]

    assert found
    assert [what for what in found if pattern_of(what, all_whats()) is None] == []


def _pattern(what: str) -> str:
    found = pattern_of(what, all_whats())
    assert found is not None, what
    return found.text


def _repairing(site: Site, damage: Damage) -> Controller:
    """A controller during whose change another actor acts, too."""
    acts = [damage.meanwhile] if damage.meanwhile is not None else []

    def hear(line: str) -> None:
        if acts and controller.pipelines[-1]["Mode"] == "Change":
            acts.pop()(site)

    controller = site.controller(hear=hear)
    return controller


def _unmatched(found: set[str], whats: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """What was found and not expected, and what was expected and not found."""
    patterns = {what: re.compile(".+".join(map(re.escape, what.split(ANY)))) for what in whats}
    return (
        sorted(one for one in found if not any(p.fullmatch(one) for p in patterns.values())),
        sorted(what for what, p in patterns.items() if not any(p.fullmatch(one) for one in found)),
    )
