"""verify on lab machines: a healthy pair passes all flows, and nothing of a run is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from winboot_lab.programs.flanneld import Flanneld

from tests.lab.site import NodePlan, Site, problems
from winboot.operations.verify import Options, verify
from winboot.report.flows import FlowReport


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("verify")
    site = Site(folder, NodePlan("win-1", "2022", "10.0.1.11"), NodePlan("win-2", "2025", "10.0.1.12"))
    report = site.join()
    assert not problems(report), problems(report)
    site.settle(60)
    yield site


def verified(site: Site) -> FlowReport:
    return verify(site.specs(), site.controller().context, Options(workers=1))


def spaces(site: Site) -> list[str]:
    return [one["metadata"]["name"] for one in site.admin("GET", "/api/v1/namespaces")["items"]]


@pytest.mark.check
def test_a_healthy_pair_passes_all_flows_and_nothing_is_left(pair: Site) -> None:
    report = verified(pair)

    assert [row for row in report.rows if row.state not in ("passed", "limitation")] == []
    assert report.exit_code == 0
    assert not any(name.startswith("winboot-verify") for name in spaces(pair))
    assert pair.refusals == []


def test_a_route_that_is_wrong_breaks_the_ways_that_need_it_and_names_the_node(
    pair: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """flanneld hangs: otherwise it would put the route right while verify looks."""
    monkeypatch.setattr(Flanneld, "_keep_up", lambda self: None)
    network = pair.machines["win-1"].network
    routes = [one for one in network.routes if one.next_hop == "10.0.1.12"]
    assert routes
    for one in routes:
        network.remove_route(one)
    try:
        report = verified(pair)
    finally:
        for one in routes:
            network.add_route(one)

    failed = [row for row in report.rows if row.state == "failed"]
    assert {row.flow for row in failed} == {
        "pod-pod-remote",
        "pod-pod-large",
        "node-pod-remote",
        "pod-service",
        "service-pod",
    }
    assert {row.cause.rpartition(".")[0] for row in failed} == {"win-1 has no route to 10.244.2"}
