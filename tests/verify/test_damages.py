"""Each damage breaks the flows that it must, and no other; the probable cause is named.

The pairs are joined once; each damage happens in a copy of the process.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab.site import Site
from tests.verify.damages import DAMAGES, Damage
from winboot.node.probes import PROBES
from winboot.operations.verify import Options, verify
from winboot.report.flows import FlowRow


def in_copy(work: Callable[[], Any]) -> Any:
    """What some work gives in a copy of this process, which may spoil everything. Raises what it raises, as text."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        try:
            told = (work(), "")
        except Exception as e:  # noqa: BLE001 - whatever it is, the process above tells it
            told = (None, f"{type(e).__name__}: {e}")
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(told, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found, error = pickle.load(pipe)
    os.waitpid(process, 0)
    assert not error, error
    return found


def seen(site: Site, damage: Damage) -> list[FlowRow]:
    """What verify finds after a damage."""
    damage.do(site)
    rows = verify(site.specs(), site.controller().context, Options(workers=1)).rows
    assert site.refusals == []
    return [row for row in rows if row.state == "failed"]


@pytest.mark.matrix
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: f"{one.site}, {one.name}")
def test_a_damage_breaks_its_flows_and_no_other(damage: Damage, pairs: Callable[[str], Site]) -> None:
    site = pairs(damage.site)

    failed = in_copy(lambda: seen(site, damage))

    flows = [row for row in failed if row.flow not in PROBES]
    assert {row.flow for row in flows} == damage.flows
    assert {row.flow for row in failed} & set(PROBES) == damage.probes
    assert [(row.flow, row.cause) for row in flows if damage.cause not in row.cause] == []
    assert all(row.next for row in failed)
