"""`winboot init`: from a kubeconfig and a few answers to files that check out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from winboot.cli import run
from winboot.lab.cluster import LabCluster
from winboot.lab.cluster.server import ClusterServer
from winboot.lab.mirror import MirrorServer


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """An administrator's kubeconfig of a cluster that answers."""
    with ClusterServer(LabCluster()) as server:
        path = tmp_path / "kubeconfig"
        server.write_admin_kubeconfig(path)
        yield path


def an_init(kubeconfig: Path, folder: Path, mirror: str, *more: str) -> int:
    """Run init with everything it would ask for."""
    return run(
        [
            "init",
            "--kubeconfig",
            str(kubeconfig),
            "--host",
            "win-1=10.0.1.1,2022",
            "--host",
            "win-2=10.0.1.2,2025",
            "--user",
            r".\Administrator",
            "--mirror",
            mirror,
            "--folder",
            str(folder),
            *more,
        ]
    )


def test_init_asks_the_cluster_and_the_mirror_and_writes_files_that_check_out(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Version, network and pod CIDR are the cluster's; every download has its hash, and so has every program in it."""
    monkeypatch.setenv("WINBOOT_PASSWORD", "x")
    with MirrorServer() as mirror:
        assert an_init(kubeconfig, tmp_path / "out", mirror.url) == 0
    profile = (tmp_path / "out" / "profile.yaml").read_text()
    assert 'version: "1.34.2"' in profile
    assert 'mode: "host-gw"' in profile
    assert "kubernetes-node-windows-amd64.tar.gz!kubernetes/node/bin/kubelet.exe" in profile
    assert (tmp_path / "out" / "ca.crt").read_text().startswith("-----BEGIN CERTIFICATE-----")

    assert run(["check", str(tmp_path / "out" / "inventory.yaml")]) == 0
    assert "good" in capsys.readouterr().out


def test_init_names_the_download_that_failed(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Out of reach is 69, with the address and what else there is."""
    assert an_init(kubeconfig, tmp_path / "out", "http://127.0.0.1:9") == 69
    assert "127.0.0.1:9" in capsys.readouterr().err


def test_init_does_not_overwrite_what_is_there(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only --force does."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "profile.yaml").write_text("mine")

    assert an_init(kubeconfig, tmp_path / "out", "http://127.0.0.1:9") == 64
    assert (tmp_path / "out" / "profile.yaml").read_text() == "mine"
    assert "--force" in capsys.readouterr().err


def test_init_refuses_a_download_that_is_not_what_its_publisher_says(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mirror that gives other bytes than its own checksum is not pinned."""
    with MirrorServer() as mirror:
        mirror.mirror.faults.wrong.add("kubectl.exe")
        assert an_init(kubeconfig, tmp_path / "out", mirror.url) == 1
    assert "kubectl.exe: its sha256 is" in capsys.readouterr().err
