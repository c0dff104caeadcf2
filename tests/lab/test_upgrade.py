"""`winboot upgrade`: other versions, one node after the other, in the right order, proved before pods come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cluster import ClusterPlan

from tests.lab.site import NodePlan, Site, differences, only, problems
from tests.lab.test_networks import restaged
from winboot.base.errors import PreflightFailed
from winboot.node.probes import Probe
from winboot.operations import upgrade as story
from winboot.report.flows import FlowReport, FlowRow

FLANNEL = {"cni": "flannel", "mode": "host-gw"}
OLD, NEW = "1.33.6", "1.34.2"
NODES = (NodePlan("win-1", "2022", "10.0.1.11"), NodePlan("win-2", "2022", "10.0.1.12"))


def a_site(folder: Path, version: str, *plans: NodePlan, server: str = NEW) -> Site:
    """A bare place whose profile wants this version."""
    wishes = {"network": FLANNEL, "kubernetes": {"version": version}}
    return Site(folder, *plans, cluster=ClusterPlan(version=server), wishes=wishes)


def wants(site: Site, version: str) -> None:
    """The profile wants this version from now on."""
    site.files = restaged(site, FLANNEL, kubernetes={"version": version})


def a_pod(site: Site, **spec: Any) -> None:
    """A pod that nothing makes again."""
    body = {"metadata": {"name": "web"}, "spec": {"nodeName": "win-1", "containers": [], **spec}}
    site.admin("POST", "/api/v1/namespaces/default/pods", body)
    site.settle(30)


def runs(site: Site) -> str:
    """The version that the Node says, and its cordon."""
    node = site.node()
    return f"{node['status']['nodeInfo']['kubeletVersion']} {node['spec'].get('unschedulable')}"


@pytest.mark.check
def test_nodes_go_one_after_the_other_and_the_first_that_does_not_work_is_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = a_site(tmp_path, OLD, *NODES)
    assert problems(site.join()) == []
    a_pod(site)
    wants(site, NEW)

    kept = site.controller().upgrade(unmanaged=False)
    first, second = kept.nodes
    assert first.failure is not None
    assert "default/web: no controller re-creates the pod" in first.failure.message
    assert second.failure is not None
    assert (second.outcome, second.failure.name) == ("skipped", "BudgetUsedUp")
    assert site.node()["status"]["nodeInfo"]["kubeletVersion"] == f"v{OLD}"
    assert site.node()["spec"].get("unschedulable") is None

    late = Probe("node-clock", "the clock is right", False, "within 2 s", "the clock is 16 s off")
    with monkeypatch.context() as patch:
        patch.setattr(story, "probe_node", lambda *_, **__: (late,))
        broken = site.controller().upgrade()
    assert [one.outcome for one in broken.nodes] == ["failed", "skipped"]
    assert "check 'the clock is right' failed: the clock is 16 s off (expected: within 2 s)" in str(
        problems(broken)
    )
    assert site.node()["spec"]["unschedulable"] is True, "no pod comes to a node that does not work"
    back = site.controller().rollback()
    assert [one.outcome for one in back.nodes] == ["changed", "skipped"], "the second was never upgraded"
    assert runs(site) == f"v{OLD} None"

    broken_flow = FlowRow(
        "pod-pod-remote", "win-1", "win-1", "win-2", "failed", "an answer", cause="no route", next="Mend it."
    )
    with monkeypatch.context() as patch:
        patch.setattr(story, "verify_beside", lambda *_: FlowReport("1", "now", (broken_flow,)))
        silent = site.controller().upgrade(flows=True)
    assert [one.outcome for one in silent.nodes] == ["failed", "skipped"]
    assert "pod-pod-remote (win-1 to win-2): no route" in str(problems(silent))
    assert site.node()["spec"]["unschedulable"] is True, "no pod comes to a node without traffic"

    done = site.controller().upgrade(flows=True)

    assert problems(done) == []
    assert [any("tried flows pass" in note for note in one.notes) for one in done.nodes] == [
        True,
        True,
    ]
    for name in ("win-1", "win-2"):
        assert site.node(name)["status"]["nodeInfo"]["kubeletVersion"] == f"v{NEW}"
        assert site.node(name)["spec"].get("unschedulable") is None
    again = site.controller().upgrade()
    assert (differences(again), [one.pipelines for one in again.nodes], again.exit_code) == ({}, [1, 1], 0)
    assert not site.refusals


@pytest.mark.parametrize(
    ("runs", "wanted", "server", "said"),
    [
        ("v1.33.6", "1.34.2", "1.33.9", "the API server 1.33.9: upgrade the API server first"),
        ("v1.32.1", "1.34.2", "1.34.2", "upgrade to 1.33 before 1.34.2"),
        ("v1.34.2", "1.33.6", "1.34.2", "use a rollback"),
        ("v1.33.6-eks-1", "1.34.2", "1.34.2", None),
        ("v1.34.1", "1.34.2", "1.34.2", None),
        ("", "1.34.2", "1.34.2", None),
    ],
)
def test_a_wrong_order_is_refused_before_any_machine_is_contacted(
    runs: str, wanted: str, server: str, said: str | None, tmp_path: Path
) -> None:
    site = a_site(tmp_path, wanted, server=server)
    if runs:
        info = {"kubeletVersion": runs, "systemUUID": "", "operatingSystem": "windows"}
        site.admin("POST", "/api/v1/nodes", {"metadata": {"name": "win-1"}, "status": {"nodeInfo": info}})
        node = site.node()
        node["status"] = {**node.get("status", {}), "nodeInfo": info}
        site.admin("PUT", "/api/v1/nodes/win-1/status", node)
    controller = site.controller()
    if said is None:
        story.refuse_wrong_order(site.specs(), controller.context.cluster)
        return
    with pytest.raises(PreflightFailed) as refused:
        controller.upgrade()
    assert said in refused.value.problem
    assert controller.pipelines == []


def test_a_machine_that_is_no_node_is_left_alone(tmp_path: Path) -> None:
    """As by `repair`."""
    site = a_site(tmp_path, NEW)
    report = site.controller().upgrade()

    assert (only(report).outcome, report.exit_code) == ("skipped", 2)


@pytest.mark.check
def test_a_node_goes_back_and_stays_there_until_it_is_upgraded(tmp_path: Path) -> None:
    site = a_site(tmp_path, OLD)
    assert problems(site.join()) == []
    # What a probe asks of the time since a change must not reach back to the join, however slow this computer is.
    site.settle(1800)
    nowhere = site.controller().rollback()
    assert (only(nowhere).outcome, nowhere.exit_code) == ("skipped", 2)
    assert "the machine has no record" in str(problems(nowhere))
    wants(site, NEW)
    assert problems(site.controller().upgrade()) == []
    assert runs(site) == f"v{NEW} None"

    site.settle(1800)
    assert problems(site.controller().rollback()) == []
    assert runs(site) == f"v{OLD} None"
    again = site.controller().rollback()
    assert (differences(again), again.exit_code) == ({}, 0)

    planned, repaired = site.plan(), site.join()
    for report in (planned, repaired):
        assert report.exit_code == 2
        assert list(differences(report)) == ["held-versions"]
        assert f"the node was rolled back to kubernetes {OLD}" in str(problems(report))
    assert runs(site) == f"v{OLD} None"

    site.settle(1800)
    assert problems(site.controller().upgrade()) == []
    assert runs(site) == f"v{NEW} None"
    assert (site.plan().exit_code, site.refusals) == (0, [])
