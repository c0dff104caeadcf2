"""The examples as they are in a fresh clone: checked, rendered, and none earns a warning of winboot's own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.test_check import KUBECONFIG
from tests.shape import lines_of
from winboot.cli import run

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(file for folder in ("profiles", "inventories") for file in (ROOT / folder).glob("*.yaml"))
# What only a site can bring: its CA, and the hashes of what it downloads. `winboot init` fetches both.
OF_THE_SITE = {"cluster.ca", "artifacts.sha256"}
# No supported Kubernetes lists Windows Server 2019, and containerd 1.7 has ended: what those examples are about.
OF_2019 = {
    "ltsc-2019.yaml": ["support of this release line ended on 2026-09"],
    "mixed.yaml": [
        "Kubernetes lists this Windows up to 1.34",
        "support of this release line ended on 2026-09",
    ],
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The examples in a folder of their own, and a home without anything in it."""
    for folder in ("profiles", "inventories"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)
    (tmp_path / "inventories" / "winrm-ca.crt").write_text("", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    return tmp_path


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_check_accepts_every_example_and_warns_of_what_the_site_brings_alone(
    site: Path, capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    assert run(["check", "-o", "json", str(site / file.relative_to(ROOT))]) == 0

    *found, last = lines_of(capsys.readouterr().out)
    own = [
        one
        for one in found
        if one["path"] not in OF_THE_SITE
        and "there is no file" not in (one["wrong"] or "")
        and one["level"] != "info"
    ]
    assert last["errors"] == 0
    expected = OF_2019.get(file.name, [])
    assert len(own) == len(expected), own
    for complaint, words in zip(own, expected, strict=True):
        assert complaint["level"] == "warning" and words in complaint["wrong"]


@pytest.mark.parametrize("name", ["minimal.yaml", "canonical.yaml", "mixed.yaml"])
def test_an_example_can_be_rendered_and_the_text_says_that_it_cannot_run_yet(
    site: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(["render", "-i", str(site / "inventories" / name), "--out", str(site / "out")]) == 0

    scripts = list((site / "out").glob("*/winboot.ps1"))
    assert scripts
    for script in scripts:
        head = script.read_text(encoding="utf-8-sig")[:400]
        assert "CANNOT RUN YET" in head and "cluster.ca" in head


@pytest.mark.parametrize("command", ["plan", "join"])
def test_plan_and_join_refuse_while_the_ca_is_missing(
    site: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (site / "home/.kube/config").write_text(KUBECONFIG, encoding="utf-8")

    assert run([command, "-i", str(site / "inventories/minimal.yaml")]) == 64
    assert "cluster.ca" in capsys.readouterr().err
