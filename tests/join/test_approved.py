"""What was approved is run, and nothing else: a node whose settings, script or look differ is left alone and named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from tests.join.fakes import FakeCluster, Found, Scene, a_node
from winboot.base.errors import InvalidInput
from winboot.report.plan_file import PlanFile, Selection, differing_digests, plan_of, plan_schema, read_plan
from winboot.report.results import Report

DIRECTORIES = Found("directories")


def planned(scene: Scene) -> PlanFile:
    """The plan file of a look at the scene, as it is read again."""
    report = Report("plan", "r1", "2026-01-01T00:00:00+00:00", (scene.plan(),), by="me@here")
    plan = plan_of(report, Selection(), report.by)
    assert read_plan(plan.text(), "plan.json") == plan
    return plan


def of_node(plan: PlanFile, **digests: str) -> PlanFile:
    """The plan as it would be with other digests."""
    node = structs.replace(plan.nodes["win-1"], **digests)
    return structs.replace(plan, nodes={"win-1": node})


def test_a_plan_that_still_holds_is_run_and_named_in_the_report(tmp_path: Path) -> None:
    scene = Scene(tmp_path, DIRECTORIES)
    plan = planned(scene)

    report = scene.join(approved=plan)

    assert (report.outcome, report.ready) == ("changed", True)
    assert scene.machine.facts[-1]["Plan"] == plan.sha256
    assert not differing_digests(plan.nodes["win-1"], report.digests)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"library": "0" * 64, "script": "0" * 64}, "winboot's library"),
        ({"settings": "0" * 64, "script": "0" * 64}, "the settings of this node"),
        ({"settings": "0" * 64}, "the settings of this node"),
        ({"script": "0" * 64}, "its script"),
    ],
)
def test_a_node_with_another_script_is_left_alone_before_any_contact(
    changed: dict[str, str], why: str, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, DIRECTORIES)
    plan = planned(scene)
    scene.machine.modes.clear()
    scene.cluster.calls.clear()

    report = scene.join(approved=of_node(plan, **changed))

    assert (report.outcome, report.exit_code) == ("skipped", 2)
    assert report.failure is not None
    assert report.failure.message.endswith(f"{why} changed after the plan")
    assert (scene.machine.modes, scene.cluster.calls) == ([], [])


@pytest.mark.parametrize(
    ("now", "named"),
    [
        ((Found("directories", is_="other"),), "directories (thing)"),
        ((DIRECTORIES, Found("firewall-rules")), "firewall-rules (thing)"),
        ((), "directories (thing)"),
    ],
)
def test_a_machine_that_changed_since_is_left_alone_with_the_difference(
    now: tuple[Found, ...], named: str, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, DIRECTORIES)
    plan = planned(scene)
    scene.machine.modes.clear()
    scene.machine.found = list(now)

    report = scene.join(approved=plan)

    assert (report.outcome, scene.machine.modes) == ("skipped", ["Look"])
    assert report.failure is not None
    assert named in report.failure.message


def test_what_others_hold_is_no_part_of_what_is_approved(tmp_path: Path) -> None:
    scene = Scene(tmp_path, DIRECTORIES, Found("system-settings", flags=("policy",)))
    plan = planned(scene)
    scene.machine.found[-1].is_ = "later"

    assert scene.join(approved=plan).outcome != "skipped"


def test_a_node_that_the_plan_does_not_have_or_did_not_see_is_left_alone(tmp_path: Path) -> None:
    scene = Scene(tmp_path, DIRECTORIES)
    plan = planned(scene)
    unseen = structs.replace(
        plan, nodes={"win-1": structs.replace(plan.nodes["win-1"], failure="it was off")}
    )

    for other, why in ((structs.replace(plan, nodes={}), "does not have this node"), (unseen, "it was off")):
        report = scene.join(approved=other)
        assert report.failure is not None
        assert why in report.failure.message


@pytest.mark.parametrize(
    "edit", [('"adopt": false', '"adopt": true'), ("win-1", "win-2"), ('"version": 1', '"version": 2')]
)
def test_a_plan_that_was_edited_is_refused(edit: tuple[str, str], tmp_path: Path) -> None:
    text = planned(Scene(tmp_path, DIRECTORIES)).text()

    with pytest.raises(InvalidInput, match=r"plan\.json: this file is not a plan") as refused:
        read_plan(text.replace(*edit), "plan.json")
    assert refused.value.exit_code == 64


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"kind": "winboot plan"}', "[" * 100_000])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a plan"):
        read_plan(text, "plan.json")


def test_a_plan_of_another_winboot_is_refused_by_both_versions(tmp_path: Path) -> None:
    plan = structs.replace(planned(Scene(tmp_path, DIRECTORIES)), winboot="0.0.9")

    with pytest.raises(InvalidInput, match=r"winboot 0\.0\.9 made this plan"):
        read_plan(plan.text(), "plan.json")


def test_a_plan_is_what_its_published_schema_says(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is missing")
    plan = planned(Scene(tmp_path, DIRECTORIES))

    jsonschema.validate(json.loads(plan.text()), plan_schema())


def test_what_join_would_refuse_is_in_the_plan_with_the_flag_that_it_needs(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Found("kubelet", is_="old", flags=("disturbs",)), cluster=FakeCluster(a_node()))

    report = scene.plan()

    assert [need.flag for need in report.needs] == ["--drain"]
    assert "kubelet" in report.needs[0].why
