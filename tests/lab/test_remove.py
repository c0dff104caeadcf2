"""`winboot remove`: the machine is as it was before the join, and nothing of the node is left in the cluster."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from winboot_lab.cluster.identity import ADMIN
from winboot_lab.cluster.kinds import CSRS, LEASES, NODES, PODS, SECRETS
from winboot_lab.console import run_command
from winboot_lab.windows.session import StandardStreams
from winboot_lab.windows.snapshot import Tree, diff, without_chance

from tests.lab import actions
from tests.lab.site import Site, differences, only, problems
from tests.lab.test_networks import BY_NAME, a_site, run_pod
from tests.matrix import first
from winboot.remote.cluster import rights
from winboot.report.results import NodeReport
from winboot.script.first_boot import FOLDER
from winboot.script.rendering import small_script

STATE: Final = r"C:\ProgramData\winboot"
# What a removal leaves, as patterns of the lines of a difference; docs/remove.md says it in words.
WRITTEN: Final = (
    # What Windows keeps of an interface that is gone; and the default route, which is there as before, as a lasting one.
    r"\\Tcpip6?\\Parameters\\(Interfaces\\\{|PersistentRoutes)",
)


def tree(site: Site) -> Tree:
    """The machine without what happens by itself."""
    return without_chance(site.machine.snapshot())


def unwritten(before: Tree, site: Site) -> list[str]:
    """What differs from before and stands on no list."""
    found = [line for line in diff(before, tree(site)) if not line.endswith(": {}")]
    return [line for line in found if not any(re.search(pattern, line) for pattern in WRITTEN)]


def in_cluster(site: Site) -> dict[str, list[str]]:
    """What the cluster has of the node."""
    store = site.cluster.store
    return {
        "nodes": [name for one in store.all(NODES) if (name := one["metadata"]["name"]) != "control-plane"],
        "requests": [one["metadata"]["name"] for one in store.all(CSRS)],
        "leases": [one["metadata"]["name"] for one in store.all(LEASES, "kube-node-lease")],
        "tokens": [
            one["metadata"]["name"]
            for one in store.all(SECRETS, "kube-system")
            if one["metadata"]["name"].startswith("bootstrap-token-")
        ],
        "pods": [one["metadata"]["name"] for one in store.all(PODS, "default")],
    }


NOTHING: Final[dict[str, list[str]]] = {
    name: [] for name in ("nodes", "requests", "leases", "tokens", "pods")
}


def found_by(node: NodeReport, step: str) -> dict[str, Any]:
    """The differences of a step by their keys."""
    return {one.key: one for report in node.steps if report.name == step for one in report.differences}


CASES: Final = [
    ("flannel-host-gw", "sc"),
    ("win-overlay", "nssm"),
    ("flannel-vxlan", "sc"),
    ("azure", "sc"),
    ("calico-node", "nssm"),
    ("calico", "sc"),
    ("win-bridge", "sc"),
    ("none", "nssm"),
]


@pytest.mark.parametrize(("name", "manager"), first(0, CASES, daily=1))
def test_a_machine_is_as_before_the_join_and_the_cluster_forgets_it(
    name: str, manager: str, tmp_path: Path
) -> None:
    site = a_site(tmp_path, BY_NAME[name], services={"manager": manager})
    before = tree(site)
    report = site.join()
    assert (problems(report), only(report).ready) == ([], True)
    run_pod(site, "web")
    address = site.machine.network.own_addresses()

    seen = only(site.controller().survey_removal())
    assert seen.outcome == "would-change"
    assert list(found_by(seen, "drain")) == ["pod:default/web"]
    assert in_cluster(site)["pods"] == ["web"], "a dry run changes nothing"

    removed = site.controller().remove()

    assert (problems(removed), only(removed).outcome, removed.exit_code) == ([], "changed", 0)
    assert in_cluster(site) == NOTHING
    if BY_NAME[name].ours:
        assert unwritten(before, site) == []
    assert site.machine.reachable()
    assert set(address) >= {"10.0.1.11"} <= set(site.machine.network.own_addresses())
    again = site.controller().remove()
    assert (differences(again), only(again).pipelines, again.exit_code) == ({}, 1, 0)
    assert not site.refusals


BUDGET: Final = {
    "metadata": {"name": "stays"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
BUDGETS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.mark.check
def test_a_drain_that_is_blocked_ends_in_time_and_leaves_all_as_it_was(
    joined_site: Callable[[str], Site],
) -> None:
    site = joined_site("plain")
    pod = {
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"nodeName": "win-1", "containers": []},
    }
    site.admin("POST", "/api/v1/namespaces/default/pods", pod)
    site.admin("POST", BUDGETS, BUDGET)
    site.settle(30)
    before = tree(site)

    report = site.controller().remove(drain_timeout=5.0)

    failure = only(report).failure
    assert failure is not None
    assert "default/web" in failure.message
    assert "The disruption budget stays needs 1 healthy pods and has 1 currently" in failure.message
    assert site.node()["spec"].get("unschedulable") is None
    assert [line for line in diff(before, tree(site)) if "winboot" in line] == []

    site.admin("DELETE", f"{BUDGETS}/stays")
    report = site.controller().remove(keep_node=True)
    assert (problems(report), report.exit_code) == ([], 0)
    assert site.node()["spec"]["unschedulable"] is True
    assert site.machine.services.find("kubelet") is None
    site.settle(300)
    ready = site.controller().remove(cluster_only=True)
    assert (problems(ready), in_cluster(site)) == ([], NOTHING)


def test_what_was_not_noted_is_listed_and_goes_and_what_is_another_ones_stays(
    joined_site: Callable[[str], Site],
) -> None:
    site = joined_site("plain")
    for step in ("kubelet", "artifacts", "firewall-rules"):
        site.machine.files.delete(rf"{STATE}\former\{step}.jsonl")
    actions.write(r"C:\k\somebodys.txt", b"theirs")(site)
    another_version = r"C:\k\versions\kubernetes-1.35.9\kubelet.exe"
    site.machine.files.make_directory(r"C:\k\versions\kubernetes-1.35.9")
    site.machine.files.write(another_version, b"program")
    actions.sc("description", "flanneld", "Of another tool.")(site)
    site.machine.files.delete(rf"{STATE}\former\flanneld.jsonl")

    seen = only(site.controller().survey_removal())

    assert "unnoted:Service:kubelet" in found_by(seen, "kubelet")
    assert r"unnoted:File:C:\k\versions\kubernetes-1.36.5\kubelet.exe" in found_by(seen, "artifacts")
    assert f"unnoted:File:{another_version}" in found_by(seen, "artifacts")
    assert "unnoted:FirewallRule:winboot-kubelet" in found_by(seen, "firewall-rules")
    assert found_by(seen, "flanneld") == {}

    site.cluster.audit = []
    assert problems(site.controller().remove()) == []

    granted = {
        (need.verb, need.resource, need.namespace)
        for need in (*rights.REMOVE, *rights.REMOVE_LEASES, *rights.DRAIN)
    }
    asked = {
        (one.verb, one.resource, one.namespace)
        for who, one in site.cluster.audit
        if who.name == ADMIN.name and not one.path
    }
    assert {one for one in asked if one not in granted and one[2] != ""} == set()
    assert {one[:2] for one in asked if one[2] == ""} <= {*(one[:2] for one in granted), ("patch", "nodes")}
    assert site.machine.services.find("kubelet") is None
    for path in (another_version, r"C:\k\versions\kubernetes-1.36.5\kubelet.exe"):
        assert not site.machine.files.exists(path)
    assert site.machine.files.read(r"C:\k\somebodys.txt") == b"theirs"
    assert site.machine.services.find("flanneld") is not None


FIRST_BOOT: Final = (
    rf"unnoted:FirstBootFolder:{FOLDER}",
    "unnoted:Task:first-boot",
    "unnoted:EventSource:winboot",
)


def first_booted(site: Site) -> None:
    """What first boot leaves on a machine that is not Ready yet: its task waits for the next start."""
    files = [("first-boot.ps1", "exit 0"), ("result.json", "{}")]
    text = small_script("_first_boot_setup.ps1.j2", folder=FOLDER, files=files, secrets="", failed=1)
    said: list[bytes] = []
    actions.write(r"C:\boot.ps1", text)(site)
    streams = StandardStreams(b"", said.append, said.append)
    assert run_command(site.machine, r"powershell.exe -File C:\boot.ps1", streams) == 0, said
    with site.machine.lock:
        site.machine.events.create_source("winboot", "Application")


def test_what_first_boot_left_is_listed_and_goes(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")
    first_booted(site)

    seen = only(site.controller().survey_removal())
    shown = [one.key for step in seen.steps for one in step.differences]
    assert set(FIRST_BOOT) <= set(shown)
    assert site.machine.files.exists(FOLDER), "a look changes nothing"

    assert problems(site.controller().remove()) == []
    again = site.controller().remove()

    assert not site.machine.files.exists(FOLDER)
    assert site.machine.events.log_of("winboot") is None
    assert (differences(again), again.exit_code) == ({}, 0)


def test_a_folder_of_a_user_at_the_place_of_first_boot_stays(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")
    with site.machine.lock:
        site.machine.accounts.add("alice", administrator=False)
        site.machine.files.make_directory(FOLDER)
        site.machine.files.need(FOLDER)[1].acl.owner = site.machine.accounts.token("alice").sid

    assert problems(site.controller().remove()) == []
    assert site.machine.files.exists(FOLDER)


def test_a_machine_that_is_gone_leaves_the_cluster_and_a_ready_one_does_not(
    joined_site: Callable[[str], Site],
) -> None:
    site = joined_site("plain")
    refused = site.controller().remove(cluster_only=True)
    assert (only(refused).outcome, refused.exit_code) == ("skipped", 2)
    assert "the Node is Ready" in str(only(refused).failure)

    site.machine.power_off()
    # What the cluster's controllers write of a kubelet that has been silent for long.
    node = site.node()
    ready = next(one for one in node["status"]["conditions"] if one["type"] == "Ready")
    ready |= {"status": "Unknown", "reason": "NodeStatusUnknown"}
    site.admin("PUT", "/api/v1/nodes/win-1/status", node)
    report = site.controller().remove(cluster_only=True)

    assert (problems(report), report.exit_code, in_cluster(site)) == ([], 0, NOTHING)
