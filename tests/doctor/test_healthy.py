"""No rule fires on a healthy node, whatever its profile, system and network."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doctor.documents import documents, verdict
from tests.lab.scenes import SCENES
from tests.lab.site import Site
from tests.matrix import first
from winboot.operations.doctor import judge


@pytest.mark.parametrize("scene", first(2, SCENES, daily=3))
def test_no_rule_fires_on_a_healthy_node(scene: str, joined_site: Callable[[str], Site]) -> None:
    site = joined_site(scene)

    found = verdict(site)

    assert [(one.rule.id, one.evidence) for one in found.findings] == []
    assert found.unread == ()
    assert not site.refusals


@pytest.mark.parametrize("kind", first(1, ["bridge", "overlay"], daily=1))
def test_no_rule_fires_on_healthy_siblings(kind: str, pairs: Callable[[str], Site]) -> None:
    found = judge(documents(pairs(kind)))

    assert [(one.node, two.rule.id, two.evidence) for one in found for two in one.findings] == []
