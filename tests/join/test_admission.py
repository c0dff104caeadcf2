"""Labels and taints, Ready, and last the startup taint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.scene import a_spec
from tests.join.fakes import CUT, STARTING, FakeCluster, Scene, a_node, states
from winboot.config.annotations import CORDON, OWNED
from winboot.config.node_spec import Taint
from winboot.node.admission import Admission
from winboot.remote.cluster.base import NodeFacts, NodeWish
from winboot.remote.cluster.labels import all_of, differences


def test_labels_that_failed_keep_the_node_closed(tmp_path: Path) -> None:
    """Pods would come to a node without the labels and taints that restrict it."""
    scene = Scene(tmp_path, cluster=FakeCluster(a_node(taints=(STARTING,)), fails={"change_node": CUT}))

    report = scene.join()

    assert states(report) == {"node-labels": "failed", "startup-taint": "blocked"}
    assert "lift_taint" not in scene.cluster.names


def test_a_node_that_does_not_become_ready_keeps_its_startup_taint(tmp_path: Path) -> None:
    unwell = a_node(
        ready=False, reason="KubeletNotReady", message="cni config uninitialized", taints=(STARTING,)
    )
    scene = Scene(tmp_path, cluster=FakeCluster(unwell, becomes=unwell))

    report = scene.join()

    (failed,) = [step for step in report.steps if step.name == "startup-taint"]
    assert failed.state == "failed"
    assert failed.problem is not None
    assert "KubeletNotReady: cni config uninitialized" in failed.problem.message
    assert (report.ready, "lift_taint" in scene.cluster.names) == (False, False)


def test_a_ready_node_without_the_taint_is_left_as_it_is(tmp_path: Path) -> None:
    scene = Scene(tmp_path, cluster=FakeCluster(a_node()))

    assert states(scene.join()) == {"node-labels": "changed"}
    assert not {"lift_taint", "uncordon"} & set(scene.cluster.names)


def test_a_cordon_of_ours_that_was_left_is_lifted(tmp_path: Path) -> None:
    ours = a_node(unschedulable=True, annotations={"winboot.io/cordoned": "true"})
    scene = Scene(tmp_path, cluster=FakeCluster(ours))

    scene.join()

    assert "uncordon" in scene.cluster.names


def test_each_difference_has_a_key_of_its_own_whether_the_node_exists_or_not(tmp_path: Path) -> None:
    """Code decides by `key`: the same thing has the same one, before there is a Node, when it differs and when it goes."""
    taint = Taint("os", "windows", "NoSchedule")
    wish = NodeWish({"pool": "windows"}, (taint,))
    ours = '{"labels":["old","pool"],"taints":["os:NoSchedule","was:NoExecute"]}'
    node = a_node(
        labels={"pool": "linux", "old": "yes"},
        taints=(Taint("os", "linux", "NoSchedule"), Taint("was", "", "NoExecute")),
        annotations={OWNED: ours},
    )

    assert [one.key for one in all_of(wish)] == ["label:pool", "taint:os:NoSchedule"]
    assert [one.key for one in differences(node, wish)] == [
        "label:pool",
        "label:old",
        "taint:os:NoSchedule",
        "taint:was:NoExecute",
        f"annotation:{OWNED}",
    ]


def test_the_looks_of_the_controller_give_keys(tmp_path: Path) -> None:
    """A Node that is missing, closed, not ready, or cordoned by us."""
    shut = a_node(taints=(STARTING,))
    late = a_node(ready=False, reason="KubeletNotReady")
    cordoned = a_node(unschedulable=True, annotations={CORDON: "true"})

    assert _keys(tmp_path, None) == ["ready"]
    assert _keys(tmp_path, shut) == ["taint:winboot.io/starting:NoSchedule"]
    assert _keys(tmp_path, late) == ["ready"]
    assert _keys(tmp_path, cordoned) == ["cordon"]


def _keys(folder: Path, node: NodeFacts | None) -> list[str]:
    """Those of the look at startup taint and Ready."""
    cluster, spec = FakeCluster(node), a_spec(folder)
    admission = Admission(cluster, spec, ("startup-taint",), 1, lambda seconds: False, str, str)  # type: ignore[arg-type]
    (done,) = admission.look(node)
    return [one.key for one in done.differences]


def test_no_join_lists_or_deletes_tokens_of_others(tmp_path: Path) -> None:
    """It asks for no right to read Secrets: what a killed run has left is named by the claim, or expires."""
    scene = Scene(tmp_path, cluster=FakeCluster(a_node(taints=(STARTING,))))

    assert states(scene.join())["startup-taint"] == "changed"

    assert scene.cluster.names == ["change_node", "lift_taint", "uncordon"]


def test_a_node_that_runs_another_version_is_not_as_wanted(tmp_path: Path) -> None:
    """Whatever is installed: the kubelet says in its Node what runs."""
    old = a_node(kubelet_version="v1.36.3", runtime_version="containerd://1.7.0")

    report = Scene(tmp_path, cluster=FakeCluster(old)).plan()

    (step,) = [one for one in report.steps if one.name == "startup-taint"]
    assert (report.outcome, report.exit_code) == ("would-change", 2)
    assert [(one.key, one.is_) for one in step.differences] == [
        ("version:kubelet", "v1.36.3"),
        ("version:container runtime", "1.7.0"),
    ]


@pytest.mark.parametrize("says", ["v1.36.5", "v1.36.5-eks-1234", "v1.36.5+k3s1", ""])
def test_a_vendors_build_of_the_version_is_that_version(says: str, tmp_path: Path) -> None:
    report = Scene(tmp_path, cluster=FakeCluster(a_node(kubelet_version=says))).plan()

    assert not [one for step in report.steps for one in step.differences if one.key == "version:kubelet"]


@pytest.mark.parametrize("says", ["v1.36.3", "v1.36.50", "v1.36.5-rc.1"])
def test_a_join_that_ends_with_another_version_has_failed(says: str, tmp_path: Path) -> None:
    """A version that was not changed is never reported as changed."""
    old = a_node(kubelet_version=says)
    scene = Scene(tmp_path, cluster=FakeCluster(old, becomes=old))

    report = scene.join(ready=0.0)

    (step,) = [one for one in report.steps if one.name == "startup-taint"]
    assert (report.outcome, step.state) == ("failed", "failed")
    assert step.problem is not None
    assert f"version of the kubelet is {says} instead of 1.36.5" in step.problem.message


def test_a_kubelet_that_was_just_started_is_given_time_to_say_its_version(tmp_path: Path) -> None:
    scene = Scene(tmp_path, cluster=FakeCluster(a_node(kubelet_version="v1.36.3"), becomes=a_node()))

    assert states(scene.join())["startup-taint"] == "changed"
