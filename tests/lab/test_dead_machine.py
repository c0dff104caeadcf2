"""A machine that is off: the cluster says so after its grace period, and takes it back when it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.lab.site import Site

UNREACHABLE = "node.kubernetes.io/unreachable"


def seen(site: Site) -> tuple[str, set[str]]:
    """Ready's status, and the keys of the taints."""
    node: Any = site.node("win-1")
    (ready,) = [one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"]
    return ready, {one["key"] for one in node["spec"].get("taints") or []}


def test_a_node_whose_machine_is_off_is_unreachable_until_it_is_back(
    joined_site: Callable[[str], Site],
) -> None:
    site = joined_site("everything")
    before = seen(site)

    site.machine.power_off()
    for _ in range(7):
        site.settle(10)
        ready, taints = seen(site)

    assert before[0] == "True"
    assert (ready, taints) == ("Unknown", before[1] | {UNREACHABLE})

    site.machine.power_on()
    site.settle(600)
    assert seen(site) == before
