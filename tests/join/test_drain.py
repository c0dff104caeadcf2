"""What would disturb pods waits for --drain; with it pods go first, and the cordon goes last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.join.fakes import STARTING, FakeCluster, Found, Scene, a_node, states
from winboot.base.errors import ClusterRefused
from winboot.node.drain import disturbs_pods
from winboot.report.events import KNOWN_LATER, Difference
from winboot.script.plan import make_plan
from winboot.script.steps import STEPS


@pytest.mark.parametrize("flag", ["reboot", "disrupts", "disturbs"])
def test_a_rough_difference_on_a_live_node_is_drained_for(flag: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, Found("directories", flags=(flag,)), cluster=FakeCluster(a_node()))

    scene.join(drain=True)

    assert scene.cluster.names[:2] == ["cordon", "drain"]
    assert scene.machine.facts[1]["Drained"] is True


@pytest.mark.parametrize(
    ("why", "node", "flags", "drain"),
    [
        ("not allowed", a_node(), ("reboot",), False),
        ("it disturbs no pod", a_node(), (), True),
        ("a policy holds it, and it is not changed", a_node(), ("reboot", "policy"), True),
        ("no pod was ever let on it", a_node(taints=(STARTING,)), ("reboot",), True),
        ("there is no Node", None, ("reboot",), True),
    ],
)
def test_nothing_is_drained_when(
    why: str, node: object, flags: tuple[str, ...], drain: bool, tmp_path: Path
) -> None:
    found = Found("directories", flags=flags), Found("directories")
    scene = Scene(tmp_path, *found, cluster=FakeCluster(node))  # type: ignore[arg-type]

    scene.join(drain=drain)

    assert not {"cordon", "drain"} & set(scene.cluster.names), why
    assert scene.machine.facts[1]["Drained"] is False


def test_the_script_learns_whether_the_node_is_live(tmp_path: Path) -> None:
    live = Scene(tmp_path, cluster=FakeCluster(a_node()))
    starting = Scene(tmp_path, cluster=FakeCluster(a_node(taints=(STARTING,))))
    for scene in (live, starting):
        scene.plan()

    assert [scene.machine.facts[0]["NodeIsLive"] for scene in (live, starting)] == [True, False]


GONE = Found("pod-network", "HNS network cbr0", flags=("disrupts",), key="network:present")


@pytest.mark.parametrize(
    ("why", "ready", "found", "runs", "fails", "live"),
    [
        ("its network is gone, and nothing runs", False, GONE, False, {}, False),
        ("a container runs", False, GONE, True, {}, True),
        ("the Node is Ready", True, GONE, False, {}, True),
        ("its network is otherwise, and there", False, replace(GONE, is_="2 of that name"), False, {}, True),
        ("its network is there", False, replace(GONE, key="endpoint:present"), False, {}, True),
        ("another step misses one", False, replace(GONE, step="directories"), False, {}, True),
        (
            "the cluster does not say what runs",
            False,
            GONE,
            False,
            {"containers": ClusterRefused("forbidden")},
            True,
        ),
    ],
)
def test_a_node_on_which_nothing_is_left_to_disturb_needs_no_drain(
    why: str,
    ready: bool,
    found: Found,
    runs: bool,
    fails: Mapping[str, Exception],
    live: bool,
    tmp_path: Path,
) -> None:
    cluster = FakeCluster(a_node(ready=ready), running_containers=runs, fails=fails)
    scene = Scene(tmp_path, found, cluster=cluster)

    scene.join()

    assert scene.machine.facts[1]["NodeIsLive"] is live, why


@pytest.mark.parametrize(("runs", "needs"), [(False, []), (True, ["--drain"])])
def test_a_plan_asks_for_a_drain_only_where_something_runs(
    runs: bool, needs: list[str], tmp_path: Path
) -> None:
    cluster = FakeCluster(a_node(ready=False), running_containers=runs)

    report = Scene(tmp_path, GONE, cluster=cluster).plan()

    assert [need.flag for need in report.needs] == needs


@pytest.mark.parametrize(
    ("is_", "want", "unknown", "disturbs"),
    [
        ("cbr0", f"subnet {KNOWN_LATER}", True, False),
        # There is no network yet: making it disturbs no pod, but the change is made.
        (None, KNOWN_LATER, True, True),
        ("cbr0", "other", False, True),
        # Words that a profile may hold decide nothing.
        ("cbr0", f"--name={KNOWN_LATER}", False, True),
    ],
)
def test_what_is_there_and_cannot_be_judged_yet_is_left_alone(
    is_: str | None, want: str, unknown: bool, disturbs: bool
) -> None:
    assert disturbs_pods(Difference("network", is_, want, disrupts=True, unknown=unknown)) is disturbs


def test_pods_that_stay_stop_the_join_before_anything_is_changed(tmp_path: Path) -> None:
    stays = FakeCluster(a_node(), pods_left=(("default/web", "a disruption budget forbids it"),))
    scene = Scene(tmp_path, Found("directories", flags=("reboot",)), cluster=stays)

    report = scene.join(drain=True)

    assert report.failure is not None
    assert (
        "winboot could not drain the node, and changed nothing: default/web: a disruption budget forbids it"
        in report.failure.message
    )
    assert scene.machine.modes == ["Look"]


def test_what_a_look_could_not_know_is_drained_for_when_it_shows(tmp_path: Path) -> None:
    """The script held a change back: pods go, and the same script runs again."""
    shows_late = Found("directories", flags=("disturbs", "policy"))
    scene = Scene(tmp_path, shows_late, cluster=FakeCluster(a_node()), needs_drain="directories")
    # A change that its look marks as disturbing, and that the controller's look did not.
    scene.machine.found = [Found("directories")]
    original = scene.machine._state

    def state(step: str, mode: str, facts: object) -> dict[str, object]:
        told = original(step, mode, facts)  # type: ignore[arg-type]
        if mode == "Change" and told["state"] == "blocked":
            told["differences"] = [Found("directories", flags=("disturbs",)).data]
        return told

    scene.machine._state = state  # type: ignore[method-assign, assignment]

    report = scene.join(drain=True)

    assert scene.cluster.names[:2] == ["cordon", "drain"]
    assert [facts["Drained"] for facts in scene.machine.facts] == [False, False, True]
    assert states(report)["directories"] == "changed"


def test_a_part_of_the_plan_lifts_its_own_cordon(tmp_path: Path) -> None:
    """With `--only` the startup taint's step, which would lift it, is not there."""
    scene = Scene(tmp_path, Found("directories", flags=("reboot",)), cluster=FakeCluster(a_node()))
    plan = make_plan(scene.spec, STEPS, only=("directories",), skip=())
    scene.machine.steps = [step.name for step in plan.node_side]

    scene.join(drain=True, only=("directories",))

    assert scene.cluster.names == ["cordon", "drain", "uncordon"]
