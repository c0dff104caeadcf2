"""verify on lab machines: a healthy pair passes all flows, and nothing of a run is left."""

from __future__ import annotations

import pytest
from winboot_lab.programs.flanneld import Flanneld

from tests.lab.site import Site
from winboot.operations.verify import Options, verify, verify_changed
from winboot.report.flows import FlowReport
from winboot.report.results import NodeReport, Report, StepReport


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


def changed(*names: str) -> Report:
    """The report of a join that has changed these nodes, and found win-1 and win-2 Ready."""
    return Report(
        "join",
        "run",
        "now",
        tuple(
            NodeReport(
                name, "", "", (StepReport("cni-config", "changed" if name in names else "ok"),), ready=True
            )
            for name in ("win-1", "win-2")
        ),
    )


def test_join_verify_tries_what_was_changed_with_another_node_as_the_other_end(pair: Site) -> None:
    """A service that ended before the change had ended is none of the change's."""
    events = pair.machines["win-1"].events
    events.write("System", "Service Control Manager", 7034, "It ended", "Error", ("kubelet",))
    pair.settle(5)

    report = verify_changed(changed("win-1"), pair.specs(), pair.controller().context)

    assert report is not None
    assert {row.node for row in report.rows if row.state != "limitation"} == {"win-1"}
    assert [row for row in report.rows if row.state not in ("passed", "limitation")] == []
    assert "pod-pod-remote" in {row.flow for row in report.rows}
    assert "win-2 was not changed, and takes part as the other end" in report.notes


def test_join_verify_tries_nothing_where_nothing_was_changed(pair: Site) -> None:
    context = pair.controller().context

    assert verify_changed(changed(), pair.specs(), context) is None
