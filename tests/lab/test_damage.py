"""Whatever happens to a node, the next join puts exactly that back, and nothing else."""

from __future__ import annotations

import re

import pytest

from tests.lab.damages import DAMAGES, Damage
from tests.lab.scenes import Scenes
from tests.lab.site import Controller, Site, differences, problems
from tests.lab.state import changes, state
from tests.lab.whats import ANY


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.name)
def test_repair_puts_exactly_that_back(damage: Damage, scenes: Scenes) -> None:
    site = scenes.take(damage.scene)
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
    scenes.give_back(damage.scene, site)


def _repairing(site: Site, damage: Damage) -> Controller:
    """A controller during whose change somebody else acts, too."""
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
