"""`winboot compat learn`, and `check` with what it wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.config.scene import GOOD, an_inventory
from tests.node.test_knowledge import Here
from tests.steps.test_artifacts import Site
from winboot.cli import run
from winboot.config.compat import load
from winboot.config.node_spec import NodeSpec

INVENTORY = """
groups:
  pool:
    profile: profile.yaml
    os: "2022"
    hosts: {win-1: {address: 10.0.1.11}}
"""
FLAG = "kubelet: {flags: {vendor-node-pool: blue}}\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A machine whose kubelet is built with a flag more."""
    built = tmp_path_factory.mktemp("built") / "built.yaml"
    built.write_text('kubelet_flags: {vendor-node-pool: {type: text, added: "1.36"}}\n', encoding="utf-8")
    site = Site()
    site.run("directories", "artifacts")
    site.outside.compat = load(built)
    return site


@pytest.fixture
def inventory(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    @contextmanager
    def here(spec: NodeSpec) -> Iterator[Here]:
        yield Here(site)

    monkeypatch.setattr("winboot.cli.targets.open_transport", here)
    return an_inventory(tmp_path, INVENTORY)


def test_what_is_learned_lets_check_pass(
    inventory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learned, profile = tmp_path / "learned.yaml", tmp_path / "profile.yaml"

    profile.write_text(GOOD + FLAG, encoding="utf-8")
    assert run(["check", "-i", str(inventory)]) == 64
    assert "vendor-node-pool" in capsys.readouterr().err

    profile.write_text(GOOD, encoding="utf-8")
    assert run(["compat", "learn", "win-1", "-i", str(inventory), "--out", str(learned)]) == 0
    told = capsys.readouterr()
    assert "win-1: kubelet 1.36.5, kube-proxy 1.36.5: 1 entry differs from winboot's data" in told.err
    assert told.out == ""

    with_overlay = GOOD.replace('{version: "1.36.5"}', '{version: "1.36.5", overlay: ./learned.yaml}')
    profile.write_text(with_overlay + FLAG, encoding="utf-8")
    assert run(["check", "-i", str(inventory)]) == 0


def test_without_a_file_the_overlay_is_printed(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compat", "learn", "win-1", "-i", str(inventory)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("# Learned on 20")
    assert lines[0].endswith("from win-1: kubelet 1.36.5, kube-proxy 1.36.5.")
    assert lines[-2:] == ["kubelet_flags:", "  vendor-node-pool: {type: text, added: '1.36'}"]


@pytest.mark.parametrize(
    ("node", "out", "code", "says"),
    [("nobody", None, 64, "nobody"), ("win-1", "no/such/folder/learned.yaml", 64, "cannot be written")],
)
def test_what_cannot_be_done_is_reported(
    inventory: Path, node: str, out: str | None, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compat", "learn", node, "-i", str(inventory)]
    assert run(words + (["--out", out] if out else [])) == code
    assert says in capsys.readouterr().err
