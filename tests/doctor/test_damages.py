"""Every rule has a damage in the lab of which it is the first cause."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doctor.damages import DAMAGES, ELSEWHERE, Damage
from tests.doctor.documents import verdict
from tests.lab.site import Site
from tests.matrix import first
from tests.verify.test_damages import in_copy
from winboot.operations.doctor.rules import RULES

PAIRS = ("bridge", "overlay")


def first_cause(site: Site, damage: Damage) -> tuple[str, list[str]]:
    """The rule that doctor names first after a damage, and what the lab refused."""
    damage.do(site)
    found = verdict(site)
    return found.first.rule.id if found.first is not None else "", [str(one) for one in site.refusals]


ALONE = [one for one in DAMAGES if one.site not in PAIRS]


@pytest.mark.parametrize("damage", first(3, ALONE, lambda one: one.rule, daily=15))
def test_doctor_names_the_first_cause(damage: Damage, joined_site: Callable[[str], Site]) -> None:
    assert first_cause(joined_site(damage.site), damage) == (damage.rule, [])


@pytest.mark.parametrize(
    "damage", first(1, [one for one in DAMAGES if one.site in PAIRS], lambda one: one.rule, daily=1)
)
def test_doctor_compares_siblings(damage: Damage, pairs: Callable[[str], Site]) -> None:
    site = pairs(damage.site)

    assert in_copy(lambda: first_cause(site, damage)) == (damage.rule, [])


def test_every_rule_has_a_damage_and_a_source() -> None:
    ids = [one.id for one in RULES]

    assert len(set(ids)) == len(ids)
    assert set(ids) == {one.rule for one in DAMAGES} | set(ELSEWHERE)
    assert [one.id for one in RULES if not one.source or not one.fix] == []
