"""A machine that an older winboot made a node: commit 1e2b18f, whose programs lie in C:\\k, in containerd's own folder and in
C:\\opt\\cni\\bin. Its very script runs, made by its own code out of this repository's history."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final
from unittest import mock

import pytest

from tests.lab.site import Site, differences, only, problems
from tests.lab.test_networks import BY_NAME, a_site, restaged, run_pod
from tests.lab.test_remove import NOTHING, in_cluster, tree, unwritten
from winboot.node.run import ScriptRunner

ROOT: Final = Path(__file__).parents[2]
OLDER: Final = "1e2b18f"
# With this containerd, which is not the default of that winboot.
OLD, NEW = "1.35.9", "1.36.5"
SOLUTION: Final = BY_NAME["flannel-host-gw"]


def older_script(site: Site, folder: Path) -> str:
    """What `winboot render` of that commit makes of the site's files. Skips where the history is not here."""
    found = subprocess.run(
        ["git", "-C", str(ROOT), "archive", OLDER, "winboot", "templates", "pyproject.toml"],
        check=False,
        capture_output=True,
    )
    if found.returncode != 0:
        pytest.skip(f"the commit {OLDER} is not in this copy of the repository")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    files = shutil.copytree(
        site.files.inventory.parent, folder / "files", ignore=shutil.ignore_patterns("older")
    )
    # Its hashes went by the name of the file alone.
    profile = files / site.files.profile.name
    text = re.sub(
        r"(?m)^(\s+)[\w-]+/[^/\s]+/(\S+: [0-9a-f]{64})$", r"\1\2", profile.read_text(encoding="utf-8")
    )
    profile.write_text(text, encoding="utf-8")
    out = folder / "out"
    inventory = files / site.files.inventory.name
    subprocess.run(
        [sys.executable, "-m", "winboot", "render", "-i", str(inventory), "--out", str(out)],
        check=True,
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(folder), site.files.password_variable: site.password},
    )
    return (out / "win-1" / "winboot.ps1").read_text(encoding="utf-8")


def join_as_older(site: Site, folder: Path) -> None:
    """The join, with the script of that commit in the place of today's: it has fewer steps."""
    older = older_script(site, folder)

    def rewrite(script: str) -> str:
        return older if "$script:Node = " in script else script

    with mock.patch.object(ScriptRunner, "_refuse_incomplete", lambda *_: None):
        report = site.controller(rewrite=rewrite).join()
    assert (problems(report), only(report).ready) == ([], True)


@pytest.mark.matrix
def test_a_node_of_an_older_winboot_is_repaired_upgraded_taken_back_and_removed(tmp_path: Path) -> None:
    site = a_site(tmp_path, SOLUTION, kubernetes={"version": OLD}, runtime={"containerd": "2.2.9"})
    before = tree(site)
    join_as_older(site, tmp_path / "older")
    run_pod(site, "web")
    site.settle(1800)
    files = site.machine.files
    assert files.exists(r"C:\k\kubelet.exe")

    # No program moves while its version is the wanted one.
    planned = site.plan()
    found = [what for each in differences(planned).values() for what in each]
    assert [what for what in found if "C:\\k\\versions\\" in what] == []
    site.machine.services.stop(site.machine.services.need("kube-proxy"))
    files.delete(r"C:\k\kube-proxy.exe")
    repaired = site.join(drain=True)
    assert (problems(repaired), only(repaired).ready) == ([], True)
    assert files.exists(r"C:\k\kube-proxy.exe")
    assert (site.plan().exit_code, files.exists(r"C:\k\versions\kubernetes-1.35.9")) == (0, False)

    def runs() -> str:
        site.settle(1800)
        return str(site.node()["status"]["nodeInfo"]["kubeletVersion"])

    site.files = restaged(site, {"mode": None, **SOLUTION.network}, kubernetes={"version": NEW})
    assert problems(site.controller().upgrade()) == []
    assert (runs(), files.exists(r"C:\k\versions\kubernetes-1.36.5\kubelet.exe")) == (f"v{NEW}", True)
    assert problems(site.controller().rollback()) == []
    assert runs() == f"v{OLD}"
    assert not files.exists(r"C:\k\versions\kubernetes-1.35.9"), "the older place serves"
    assert problems(site.controller().upgrade()) == []
    assert runs() == f"v{NEW}"

    assert problems(site.controller().remove()) == []
    assert (in_cluster(site), unwritten(before, site), site.refusals) == (NOTHING, [], [])
