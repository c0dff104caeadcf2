"""An image holds every program and nothing of the machine that it was baked on; its clones join from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from winboot_lab.up import NodePlan
from winboot_lab.windows.machine import Machine

from tests.lab.clones import clone
from tests.lab.site import Site, differences, only, problems
from winboot.cli import run
from winboot.node.fleet import NodeRun

MORE = "mcr.microsoft.com/oss/kubernetes/pause:3.9"
IDENTITY = {"computer-name", "postboot-task", "kubelet-credentials", "kubelet-config", "registration"}


def baked(folder: Path, patch: pytest.MonkeyPatch, *plans: NodePlan) -> Site:
    """A site whose first machine became an image."""
    site = Site(folder, *plans, wishes={"runtime": {"images": [MORE]}})
    # Without a cluster the controller's clock counts, which here is not the lab's.
    patch.setattr(NodeRun, "_cluster_time", lambda run: site.time.datetime())
    before = site.cluster.snapshot()
    report = site.controller().bake("win-1")
    assert problems(report) == []
    assert only(report).reboots == 1
    assert site.cluster.snapshot() == before
    return site


def own_words(machine: Machine) -> set[str]:
    """What distinguishes this machine from its clones."""
    adapters = [word for one in machine.network.adapters for word in (one.guid, one.mac)]
    guid = machine.registry.text(r"HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Cryptography", "MachineGuid")
    hardware = machine.hardware
    words = {machine.name, hardware.uuid, hardware.serial, hardware.machine_sid, guid, *adapters}
    return words - {""}


def test_an_image_holds_nothing_of_its_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, certificates, names, HNS networks, adapter GUIDs, and the journal of the runs; sysprep deletes the event logs."""
    site = baked(tmp_path, monkeypatch)
    template = site.machine
    words = own_words(template)
    run_ids = {one.run for one in site.controllers}

    made = clone(site, template, site.plans[0])

    shown = json.dumps({**made.registry.tree(), **made.services.tree(), **made.tasks.tree()}, default=str)
    files = {path: node.content for path, node in made.files.walk("C:\\") if not node.directory}
    shown += "".join(content.decode("utf-8", "replace") for content in files.values())
    assert sorted(word for word in words | run_ids if word.lower() in shown.lower()) == []
    names = {path.lower() for path in files}
    assert [
        one for one in names if one.endswith((".pem", ".key", "kubeconfig", "journal.jsonl", "fence.json"))
    ] == []
    assert not any(name.startswith(r"c:\programdata\winboot\detached") for name in names)
    assert template.hns.networks == {}
    assert "me@laptop" not in shown
    assert site.password not in shown

    # The second bake finds nothing to do.
    template.power_on()
    assert only(site.controller().bake("win-1")).outcome == "ok"


@pytest.mark.parametrize("count", [2, pytest.param(10, marks=pytest.mark.nightly)])
def test_clones_join_without_a_download_or_a_restart(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = [NodePlan(f"win-{number}", "2022", f"10.0.1.{10 + number}") for number in range(1, count + 1)]
    site = baked(tmp_path, monkeypatch, *plans)
    template = site.machine
    site.machines = {plan.name: clone(site, template, plan) for plan in plans}
    site.machine = site.machines["win-1"]
    site.mirror.log.clear()

    planned = site.plan()
    assert all(any("the image has all programs and" in note for note in node.notes) for node in planned.nodes)
    assert not differences(planned).keys() & {
        "artifacts",
        "containerd",
        "pause-image",
        "windows-features",
        "directories",
    }
    report = site.join()

    assert problems(report) == []
    assert [(node.ready, node.reboots) for node in report.nodes] == [(True, 0)] * count
    assert site.mirror.log == []
    machines = {site.node(plan.name)["status"]["nodeInfo"]["systemUUID"].upper() for plan in plans}
    assert machines == {machine.hardware.uuid for machine in site.machines.values()}
    assert len(machines) == count


def test_a_plan_names_what_an_older_image_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = baked(tmp_path, monkeypatch)
    profile = yaml.safe_load(site.files.profile.read_text())
    profile["runtime"] |= {"containerd": "2.2.9", "images": []}
    profile["artifacts"]["sha256"] = {
        key: value for key, value in profile["artifacts"]["sha256"].items() if "containerd" not in key
    }
    site.files.profile.write_text(yaml.safe_dump(profile))

    (note,) = [note for note in only(site.plan()).notes if "baked at" in note]

    assert "containerd 2.3.6 (wanted: 2.2.9); bake a new image" in note


def test_a_node_is_no_template(joined_site, capsys: pytest.CaptureFixture[str]) -> None:
    report = joined_site("plain").controller().bake("win-1")

    (problem,) = problems(report)
    assert "the machine is or was a node: " in problem
    assert r"C:\k\kubeconfig" in problem


def test_packer_gets_its_provisioners(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = Site(tmp_path)

    assert run(["bake", "win-1", "-i", str(site.files.inventory), "--for", "packer"]) == 0
    told = capsys.readouterr().out
    assert "winboot bake win-1 -i" in told
    assert "--address ${build.Host} --port ${build.Port}" in told
    assert told.index("winboot bake") < told.index("/generalize /oobe")
