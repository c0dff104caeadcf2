"""runtime.root: images and containers on another drive, from the first join on or from a drain on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from winboot_lab.windows.snapshot import Tree

from tests.lab.site import Site, differences, only, problems
from tests.lab.test_networks import BY_NAME, a_site, run_pod
from tests.lab.test_remove import tree, unwritten

ROOT: Final = r"D:\containerd"
FORMER: Final = r"C:\ProgramData\containerd\root"
STORE: Final = r"io.containerd.snapshotter.v1.windows\snapshots"
GIB: Final = 1024**3


def on(site: Site, folder: str) -> set[str]:
    """The names in a folder; nothing where it is not there."""
    files = site.machine.files
    return {entry.name for entry in files.list(folder)} if files.exists(folder) else set()


def change_profile(site: Site, folder: Path, **sections: Any) -> None:
    """The site's files elsewhere, with these sections: copies of a joined site share their files."""
    shutil.copytree(site.folder, folder, ignore=shutil.ignore_patterns("journals"))
    inventory, profile = folder / site.files.inventory.name, folder / site.files.profile.name
    wanted = yaml.safe_load(profile.read_text(encoding="utf-8"))
    profile.write_text(yaml.safe_dump({**wanted, **sections}), encoding="utf-8")
    site.files = replace(site.files, inventory=inventory, profile=profile)


def test_images_lie_on_the_other_drive_and_a_removal_leaves_it_empty(tmp_path: Path):
    site = a_site(tmp_path, BY_NAME["flannel-host-gw"], runtime={"root": ROOT})
    site.machine.files.attach("D:", 100 * GIB)
    before: Tree = tree(site)

    report = site.join()

    assert (problems(report), only(report).ready) == ([], True)
    assert on(site, "D:\\") == {"containerd", "containerd-temp"}
    assert on(site, rf"{ROOT}\{STORE}")
    assert not on(site, FORMER)
    assert run_pod(site, "web")["phase"] == "Running"
    again = site.join()
    assert (differences(again), only(again).pipelines) == ({}, 1)

    removed = site.controller().remove()

    assert (problems(removed), removed.exit_code) == ([], 0)
    assert on(site, "D:\\") == set()
    assert unwritten(before, site) == []


@pytest.mark.matrix
def test_a_live_node_moves_its_images_in_a_drain(joined_site: Callable[[str], Site], tmp_path: Path):
    site = joined_site("plain")
    site.machine.files.attach("D:", 100 * GIB)
    change_profile(site, tmp_path / "files", runtime={"root": ROOT})
    assert on(site, rf"{FORMER}\{STORE}")

    assert {"containerd root", rf"folder {FORMER}: images of a former root"} <= {
        one.what for step in only(site.plan()).steps for one in step.differences
    }
    undrained = only(site.join())

    assert {
        one.name: one.problem.id
        for one in undrained.steps
        if one.problem is not None and one.name == "containerd-config"
    } == {"containerd-config": "NeedsDrain"}
    assert on(site, rf"{FORMER}\{STORE}")
    assert not on(site, rf"{ROOT}\{STORE}")

    drained = site.join(drain=True)

    assert (problems(drained), only(drained).ready) == ([], True)
    assert on(site, rf"{ROOT}\{STORE}")
    assert not on(site, FORMER)
    assert differences(site.join()) == {}
    assert problems(site.controller().remove()) == []
    assert on(site, "D:\\") == set()
