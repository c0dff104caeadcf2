"""`winboot remove` of another tool's node: what the dry run shows is what the run does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.join.fakes import FakeCluster, Found, Scene, a_node
from winboot.config.annotations import CORDON, OWNED
from winboot.operations.join import Options
from winboot.operations.remove import OTHERS, Removal, remove, survey_removal
from winboot.remote.cluster.base import PodFacts
from winboot.report.plan_file import Selection, plan_of
from winboot.report.results import NodeReport

THEIRS = Found("directories", flags=("policy",), key=OTHERS)
NOTE = Found("kubelet", key="undo:Service:kubelet")
OWNS = {OWNED: '{"labels":["pool"],"taints":[]}'}
MARKED = {"label:pool", f"annotation:{OWNED}"}
POD = "pod:default/web"


def a_scene(folder: Path, *found: Found, **node: Any) -> Scene:
    """A node of another tool with a pod."""
    cluster = FakeCluster(
        node_facts=a_node(labels={"pool": "windows"}, **node), pods=(PodFacts("default/web"),)
    )
    return Scene(folder, THEIRS, *found, cluster=cluster)


def removed(scene: Scene, *, dry_run: bool = False, approved: Any = None) -> NodeReport:
    work = survey_removal if dry_run else remove
    options = Options(patience=scene.patience, approved=approved)
    (report,) = work([scene.spec], scene._context(), options, Removal()).nodes
    return report


def shown(report: NodeReport) -> set[str]:
    """The keys of what differs in the cluster."""
    steps = [one for one in report.steps if one.name in ("drain", "node-object")]
    return {one.key for step in steps for one in step.differences}


def changes(scene: Scene) -> set[str]:
    """The calls that change the cluster."""
    verbs = {"drain", "change_node", "uncordon", "delete_node"}
    return {call[0] for call in scene.cluster.calls} & verbs


@pytest.mark.parametrize(
    ("found", "node", "plan", "run"),
    [
        ((), {}, set(), {"uncordon"}),
        ((NOTE,), {}, {POD}, {"drain", "uncordon"}),
        ((), {"annotations": OWNS}, MARKED, {"change_node", "uncordon"}),
        ((), {"annotations": {CORDON: "true"}, "unschedulable": True}, {"cordon"}, {"uncordon"}),
        ((NOTE,), {"annotations": OWNS}, {POD, *MARKED}, {"drain", "change_node", "uncordon"}),
    ],
)
def test_the_dry_run_shows_what_the_run_changes_in_the_cluster(
    found: tuple[Found, ...], node: dict[str, Any], plan: set[str], run: set[str], tmp_path: Path
) -> None:
    scene = a_scene(tmp_path, *found, **node)

    assert shown(removed(scene, dry_run=True)) == plan
    assert changes(scene) == set()
    removed(scene)
    assert changes(scene) == run


def test_a_mark_that_came_after_the_look_is_not_removed(tmp_path: Path) -> None:
    scene = a_scene(tmp_path, NOTE)
    context = scene._context()
    looked = survey_removal([scene.spec], context, Options(patience=scene.patience), Removal())
    scene.cluster.node_facts = a_node(labels={"pool": "windows"}, annotations=OWNS)

    report = removed(scene, approved=plan_of(looked, Selection(), "me"))

    assert report.failure is not None
    assert "label" in report.failure.message
    assert changes(scene) == set()
