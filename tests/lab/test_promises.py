"""What docs/architecture.md promises of a run, held against whole joins where no other test does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from winboot_lab.cluster.kinds import NODES, SECRETS
from winboot_lab.windows.snapshot import diff, without_chance

from tests.lab import actions
from tests.lab.scenes import Scenes
from tests.lab.site import Controller, NodePlan, Site, differences, only, problems
from tests.lab.test_network_undo import undo
from winboot.cli import run
from winboot.operations.join import Options, prepare
from winboot.report.events import RebootWanted
from winboot.script.library import library
from winboot.script.rendering import kept_loader

PODS: Final = "/api/v1/namespaces/default/pods"
STARTING: Final = "winboot.io/starting"


def main_scripts(controller: Controller) -> list[tuple[str, str]]:
    """Mode and text of each pipeline, without the small ones that restart the machine or name its boot."""
    sent = zip(controller.pipelines, controller.scripts, strict=True)
    return [
        (str(arguments["Mode"]), _whole(arguments, text)) for arguments, text in sent if "Mode" in arguments
    ]


def _whole(arguments: Mapping[str, object], text: str) -> str:
    """The text that ran: the text that was sent, or the node's part with the library that the machine keeps."""
    part = arguments.get("NodePart")
    if part is None:
        return text
    assert text == kept_loader(library().sha256)
    return f"{part}{library().text}"


def nodes_over_time(site: Site) -> list[Any]:
    """Every state of the Node object that there ever was."""
    log = site.cluster.store._log
    return [change.object for change in log if change.key[1] == NODES.plural and change.key[3] == "win-1"]


def tokens_made(site: Site) -> int:
    """How many bootstrap tokens were made."""
    log = site.cluster.store._log
    return sum(change.type == "ADDED" and change.key[1] == SECRETS.plural for change in log)


def run_pod(site: Site, name: str) -> None:
    """A user's deployment puts a pod on the node."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    metadata = {"name": name, "labels": {"app": name}, "ownerReferences": [owner]}
    site.admin("POST", PODS, {"metadata": metadata, "spec": {"nodeName": "win-1", "containers": []}})
    site.settle(30)


def pods(site: Site) -> set[str]:
    """The pods that are left on the node."""
    return {pod["metadata"]["name"] for pod in site.admin("GET", PODS)["items"]}


@dataclass
class Joined:
    """A bare machine that was planned, then joined, and all that was sent to it on the way."""

    site: Site
    rendered: str
    controller: Controller


@pytest.fixture(scope="module")
def joined(scenes: Scenes) -> Joined:
    site = scenes.bare("plain")
    (task,) = prepare(site.specs(), Options())
    controller = site.controller()
    controller.plan()
    report = controller.join()
    assert (problems(report), only(report).ready) == ([], True)
    return Joined(site, task.script.text, controller)


# ---- the preview is the run ----------------------------------------------------------------------------


def test_what_render_shows_is_what_every_pipeline_of_a_join_runs(
    joined: Joined, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["render", "-i", str(joined.site.files.inventory)]) == 0
    shown = capsys.readouterr().out

    sent = main_scripts(joined.controller)
    assert [mode for mode, _ in sent][:3] == ["Look", "Look", "Change"]
    assert {text.strip() for _, text in sent} == {shown.strip()} == {joined.rendered.strip()}


def test_a_look_is_given_no_secret_and_a_change_only_those_it_needs(joined: Joined) -> None:
    """A token is made for a node that has no certificate, and for no other one."""
    site = joined.site
    made = tokens_made(site)
    actions.delete(r"C:\k\crictl.yaml")(site)
    repairing = site.controller()

    report = repairing.join(drain=True)

    for one in (joined.controller, repairing):
        for arguments, secrets in zip(one.pipelines, one.secrets, strict=True):
            assert not secrets or arguments["Mode"] == "Change"
    assert any("bootstrap-token" in secrets for secrets in joined.controller.secrets)
    assert not any(repairing.secrets)
    assert (problems(report), differences(site.plan())) == ([], {})
    assert report.changed
    assert (made, tokens_made(site)) == (1, 1)


def test_no_pod_is_let_in_before_everything_is_ready(joined: Joined) -> None:
    """The kubelet registers with the startup taint, and it goes last."""
    seen = nodes_over_time(joined.site)

    free = [STARTING not in {taint["key"] for taint in node["spec"].get("taints") or []} for node in seen]
    assert free == sorted(free)
    first = seen[free.index(True)]
    conditions = {one["type"]: one["status"] for one in first["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert first["metadata"]["labels"]["pool"] == "windows"
    assert joined.site.machine.services.need("kube-proxy").status == "Running"


# ---- which machine, which node -------------------------------------------------------------------------


@pytest.mark.check
def test_a_name_that_a_ready_node_has_is_not_given_to_another_machine(tmp_path: Path) -> None:
    site = Site(tmp_path, NodePlan("win-1", "2022", "10.0.1.11"), NodePlan("win-2", "2022", "10.0.1.12"))
    assert only_of(site, "win-1").ready
    site.machines["win-1"], site.machines["win-2"] = site.machines["win-2"], site.machines["win-1"]
    before = site.machines["win-1"].snapshot()

    refused = only_of(site, "win-1")

    assert refused.failure is not None
    assert (refused.failure.name, refused.exit_code) == ("WrongMachine", 1)
    assert diff(before, site.machines["win-1"].snapshot()) == []


def only_of(site: Site, name: str) -> Any:
    """What a join says of one of several nodes."""
    controller = site.controller()
    specs = [spec for spec in site.specs() if spec.node.name == name]
    site.specs = lambda: specs  # type: ignore[method-assign]
    try:
        return only(controller.join())
    finally:
        del site.specs


# ---- a live node ---------------------------------------------------------------------------------------


@pytest.mark.check
def test_a_live_node_is_not_disturbed_unless_it_may_be_drained(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")
    run_pod(site, "web")
    actions.remove_network()(site)
    before = without_chance(site.machine.snapshot())

    held_back = site.join()

    blocked = [step for step in only(held_back).steps if step.problem and step.problem.id == "NeedsDrain"]
    assert {step.name for step in blocked} >= {"pod-network"}
    assert (held_back.exit_code, held_back.changed, pods(site)) == (2, 0, {"web"})
    after = without_chance(site.machine.snapshot())
    assert [line for line in diff(before, after) if r"\ProgramData\winboot" not in line] == []

    mended = site.join(drain=True)

    assert (problems(mended), only(mended).ready, pods(site)) == ([], True, set())
    assert not site.node()["spec"].get("unschedulable")
    assert differences(site.plan()) == {}


def test_only_our_own_cordon_is_lifted(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")
    actions.patch_node({"spec": {"unschedulable": True}})(site)
    actions.remove_network()(site)

    report = site.join(drain=True)

    assert (problems(report), only(report).ready) == ([], True)
    assert site.node()["spec"]["unschedulable"] is True
    actions.patch_node({"spec": {"unschedulable": None}})(site)


def test_a_pod_that_may_not_go_stops_the_drain_before_anything_is_changed(
    joined_site: Callable[[str], Site],
) -> None:
    site = joined_site("plain")
    run_pod(site, "web")
    budget = {
        "metadata": {"name": "all"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    site.admin("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    actions.remove_network()(site)

    report = site.join(drain=True)

    (told,) = problems(report)
    assert "could not drain the node, and changed nothing: default/web: " in told
    assert "disruption budget" in told
    assert (report.exit_code, only(report).pipelines, pods(site)) == (1, 1, {"web"})


# ---- interrupted, continued, removed -------------------------------------------------------------------


@pytest.mark.check
def test_ctrl_c_ends_a_run_at_its_next_event_and_the_next_run_continues(scenes: Scenes) -> None:
    site = scenes.bare("plain")

    def hear(line: str) -> None:
        if '"step":"artifacts"' in line and controller.pipelines[-1]["Mode"] == "Change":
            controller.stop.request()

    controller = site.controller(hear=hear)
    stopped = controller.join()
    again = site.join()

    assert stopped.exit_code == 130
    assert only(stopped).failure is not None and only(stopped).failure.name == "Interrupted"
    assert {"directories", "artifacts"} <= {step.name for step in only(stopped).steps}
    assert (problems(again), only(again).ready) == ([], True)
    assert site.cluster.store.all(SECRETS) == [] or tokens_made(site) <= 2


# What stays of an interface that is gone; and the default route, which the machine has as before, as a lasting one.
LEFT: Final = re.compile(r"\\Tcpip\\Parameters\\(Interfaces\\\{|PersistentRoutes: \{'0\.0\.0\.0,0\.0\.0\.0,)")


def test_everything_takes_one_restart_and_remove_puts_back_all_that_was_there(scenes: Scenes) -> None:
    """Features, name, page file, ports, services, files, tasks, trust, exclusions, network: all of it."""
    site = scenes.bare("everything")
    before = without_chance(site.machine.snapshot())
    controller = site.controller()
    joined = controller.join()
    (wanted,) = [event for event in controller.ears.events if isinstance(event, RebootWanted)]
    assert not problems(joined)
    # One restart serves all steps that need one.
    assert {"computer-name", "windows-features", "system-settings"} <= set(wanted.steps)
    assert (only(joined).reboots, site.machine.boot_count) == (1, 2)

    states = undo(site)

    assert {step: state for step, state in states.items() if state not in ("ok", "changed")} == {}
    found = diff(before, without_chance(site.machine.snapshot()))
    # An empty key or store says nothing.
    assert [line for line in found if not line.endswith(": {}") and not LEFT.search(line)] == []
