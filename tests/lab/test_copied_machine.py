"""A copy of a joined machine starts none of the services that would contact the cluster as that machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from winboot_lab.up import NodePlan

from tests.lab.clones import clone
from tests.lab.site import Site, differences, only, problems
from tests.lab.state import changes, state

NOTE = r"C:\ProgramData\winboot\machine.json"
OWN = ("kubelet", "flanneld", "kube-proxy")


def test_a_copy_is_known_by_its_uuid_before_its_kubelet_starts(tmp_path: Path) -> None:
    site = Site(tmp_path, wishes={"boot": {"check_machine": True}})
    assert problems(site.join()) == []
    before = state(site)
    template = site.machine

    # The machine itself starts all of them.
    template.reboot()
    site.settle(300)
    assert [template.services.running(name) for name in OWN] == [True] * 3
    assert changes(before, state(site)) == []
    assert differences(site.plan()) == {}
    template.files.delete(NOTE)
    assert differences(site.plan()) == {"registration": ["UUID of the machine that joined"]}
    assert problems(site.join()) == []

    node = site.node()
    copied = clone(site, template, site.plans[0], generalized=False)
    site.machines["win-1"] = site.machine = copied
    assert copied.hardware.uuid != template.hardware.uuid
    site.settle(600)

    assert [copied.services.running(name) for name in OWN] == [False] * 3
    assert site.node()["status"]["nodeInfo"] == node["status"]["nodeInfo"]
    journal = copied.files.read(r"C:\ProgramData\winboot\journal.jsonl").decode()
    assert '"copied-machine"' in journal
    assert f"is a copy of the node win-1 ({template.hardware.uuid})" in journal


@pytest.mark.nightly
def test_a_copy_becomes_a_node_of_its_own_under_another_name(tmp_path: Path) -> None:
    site = Site(tmp_path, wishes={"boot": {"check_machine": True}, "windows": {"rename": True}})
    assert problems(site.join()) == []
    other = NodePlan("win-2", "2022", "10.0.1.12")
    copied = clone(site, site.machine, other, generalized=False)
    site.machines, site.machine, site.plans = {"win-2": copied}, copied, (other,)
    text = site.files.inventory.read_text().replace("win-1", "win-2").replace("10.0.1.11", "10.0.1.12")
    site.files.inventory.write_text(text)
    site.settle(600)

    looked = site.plan()
    assert "work of registration at the start of the machine" in differences(looked)["postboot-task"]
    assert problems(site.join()) == []
    assert only(site.join()).outcome == "ok"
    found = {name: site.node(name)["status"]["nodeInfo"]["systemUUID"].upper() for name in ("win-1", "win-2")}
    assert found["win-2"] == copied.hardware.uuid
    assert found["win-1"] != found["win-2"]
