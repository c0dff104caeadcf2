"""A join's own decisions, held against a machine and a cluster that answer at once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.config.scene import a_spec
from tests.join.fakes import CUT, STARTING, FakeCluster, Found, Scene, a_node, states
from winboot.base.errors import ConnectionLost, InvalidInput
from winboot.node.fleet.context import Options
from winboot.node.fleet.node import NodeRun
from winboot.report.results import NodeReport
from winboot.script.plan import make_plan
from winboot.script.rendering import helpers
from winboot.script.steps import STEPS

TOKEN_STEP = "kubelet-credentials"


def test_a_node_that_is_right_costs_one_look_and_no_token(tmp_path: Path) -> None:
    scene = Scene(tmp_path, cluster=FakeCluster(a_node()))

    report = scene.join()

    assert (report.outcome, report.ready, scene.machine.modes) == ("changed", True, ["Look"])
    assert states(report) == {"node-labels": "changed"}
    assert scene.cluster.names == ["change_node"]


def test_a_bare_machine_is_changed_admitted_and_then_opened_for_pods(tmp_path: Path) -> None:
    """The startup taint goes last, when the labels are there and the node is Ready."""
    scene = Scene(tmp_path, Found("directories"))

    report = scene.join()

    assert (scene.machine.modes, report.ready) == (["Look", "Change"], True)
    assert scene.cluster.names == ["change_node", "lift_taint", "uncordon"]


@pytest.mark.parametrize(
    ("server", "reason"), [("1.35.9", "must not be newer"), ("1.40.0", "3 minors older")]
)
def test_a_kubelet_that_does_not_fit_the_api_server_is_not_installed(
    server: str, reason: str, tmp_path: Path
) -> None:
    """The look has run, and winboot changed nothing: no secret made, no change begun."""
    scene = Scene(tmp_path, Found(TOKEN_STEP), cluster=FakeCluster(server=server))

    report = scene.join()

    assert report.failure is not None
    assert reason in report.failure.message
    assert (scene.machine.modes, scene.cluster.names) == (["Look"], [])


def test_a_ready_node_on_another_machine_keeps_its_name(tmp_path: Path) -> None:
    other = a_node(system_uuid="00000000-0000-0000-0000-000000000001")
    scene = Scene(tmp_path, Found("directories"), cluster=FakeCluster(other))

    report = scene.join()

    assert report.failure is not None
    assert report.failure.name == "WrongMachine"
    assert (scene.machine.modes, scene.cluster.names) == (["Look"], [])


@pytest.mark.parametrize("ready", [True, False], ids=["Ready", "NotReady"])
@pytest.mark.parametrize("tainted", [True, False], ids=["startup taint", "no taint"])
@pytest.mark.parametrize("uuid", ["ours", "00000000-0000-0000-0000-000000000001", ""])
def test_a_node_that_was_admitted_keeps_its_name_from_another_machine(
    ready: bool, tainted: bool, uuid: str, tmp_path: Path
) -> None:
    """Also while it is not Ready: its pods may answer in its place. One that no kubelet registered has no pods."""
    taints = (STARTING,) if tainted else ()
    node = a_node(system_uuid=a_node().system_uuid if uuid == "ours" else uuid, ready=ready, taints=taints)
    failure = Scene(tmp_path, Found("directories"), cluster=FakeCluster(node)).join().failure

    kept = uuid != "ours" and (ready or (not tainted and uuid != ""))
    assert (failure is not None and failure.name == "WrongMachine") == kept
    assert failure is None or "kubectl delete node win-1" in failure.hint


def test_a_node_whose_own_steps_are_not_done_stays_closed(tmp_path: Path) -> None:
    scene = Scene(
        tmp_path,
        Found("directories"),
        fails_at="directories",
        cluster=FakeCluster(a_node(taints=(STARTING,))),
    )

    report = scene.join()

    assert states(report) == {"directories": "failed", "node-labels": "blocked", "startup-taint": "blocked"}
    assert scene.cluster.names == []


def test_a_node_with_a_step_that_waits_for_a_drain_stays_closed(tmp_path: Path) -> None:
    """Blocked is not done: no label says that the node is as its profile wants it."""
    scene = Scene(
        tmp_path,
        Found("directories", flags=("disturbs",)),
        needs_drain="directories",
        cluster=FakeCluster(a_node()),
    )

    report = scene.join()

    assert states(report) == {"directories": "blocked", "node-labels": "blocked", "startup-taint": "blocked"}
    assert scene.cluster.names == []


def test_what_the_plan_shows_is_what_differs_and_nothing_is_changed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Found("directories"))

    report = scene.plan()

    assert states(report) == {
        "directories": "would-change",
        "node-labels": "would-change",
        "startup-taint": "would-change",
    }
    assert scene.cluster.names == []


def test_a_cluster_that_is_away_is_the_nodes_failure(tmp_path: Path) -> None:
    report = Scene(tmp_path, cluster=FakeCluster(fails={"node": CUT})).join()

    assert report.failure is not None
    assert (report.failure.name, report.failure.exit_code) == ("ClusterError", 69)


def test_an_error_in_mid_change_keeps_what_was_seen(tmp_path: Path) -> None:
    """The report has the look's steps, and the failure."""

    def cut() -> None:
        raise ConnectionLost("cut", hint="")

    report = Scene(tmp_path, Found("directories"), during=cut).join()

    assert report.failure is not None
    assert report.failure.name == "ConnectionLost"
    assert states(report) == {"directories": "would-change"}


def test_a_join_with_a_hash_missing_does_not_even_look(tmp_path: Path) -> None:
    """Nothing is downloaded that is not pinned; every missing value is named at once."""
    scene = Scene(tmp_path)
    scene.spec = a_spec(tmp_path)

    with pytest.raises(InvalidInput, match="still missing") as caught:
        scene.join()

    assert any("containerd" in problem for problem in caught.value.problems)
    assert (scene.machine.modes, scene.cluster.calls) == ([], [])


def test_a_node_that_has_not_ended_has_the_time_that_it_took_and_none_before_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report of interrupted nodes said 0 seconds of each."""
    now = 100.0
    monkeypatch.setattr("winboot.node.fleet.node.time", SimpleNamespace(monotonic=lambda: now))
    scene = Scene(tmp_path)
    plan = make_plan(scene.spec, STEPS, only=(), skip=())
    node = NodeRun(scene.spec, plan, scene._context(), Options(), helpers())
    before = node.unfinished()
    reports: list[NodeReport] = []

    def work(node: NodeRun) -> None:
        nonlocal now
        now += 7.5
        reports.extend([node.unfinished(), node.abandoned()])

    now += 30
    node.reported(work, lambda name: None)

    assert [one.seconds for one in (before, *reports)] == [0.0, 7.5, 7.5]
    assert {one.outcome for one in (before, *reports)} == {"interrupted"}
