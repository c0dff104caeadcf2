"""From nothing but the line that kubeadm prints to a Ready node: no kubeconfig, and what that costs is in the report."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
import yaml
from winboot_lab.cluster.identity import ADMIN
from winboot_lab.cluster.server import ClusterServer

from tests.cli.test_init import key_hash
from tests.lab.actions import patch_node, stop, taints
from tests.lab.site import Site, only, problems
from winboot.cli import run
from winboot.node.fleet import NodeRun

TOKEN = "abcdef.9876543210fedcba"


def give_token(site: Site, token: str = TOKEN) -> None:
    """As `kubeadm token create` makes one."""
    name, _, secret = token.partition(".")
    data = {
        "token-id": name,
        "token-secret": secret,
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    }
    meta = {"name": f"bootstrap-token-{name}"}
    body = {"metadata": meta, "type": "bootstrap.kubernetes.io/token", "stringData": data}
    site.cluster.request(ADMIN, "POST", "/api/v1/namespaces/kube-system/secrets", body)


def init(site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch, token: str = TOKEN) -> int:
    """`winboot init --join-command -`, at an address of the server that this computer reaches."""
    with ClusterServer(site.cluster) as server:
        place = server.url.removeprefix("https://")
        pin = key_hash(site.cluster.authority.pem)
        line = f"kubeadm join {place} --token {token} --discovery-token-ca-cert-hash sha256:{pin}"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
        options = [
            "--user",
            r".\Administrator",
            "--host",
            "win-1=10.0.1.11,2022",
            "--mirror",
            site.mirror_url,
        ]
        return run(["init", "--join-command", "-", "--no-hashes", "--folder", str(folder), *options])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Site:
    """A site whose profile is what init wrote, but for the hashes and the server's address for machines."""
    site = Site(tmp_path / "site")
    # Without a cluster the controller's clock counts, which here is not the lab's.
    monkeypatch.setattr(NodeRun, "_cluster_time", lambda run: site.time.datetime())
    give_token(site)
    assert init(site, tmp_path / "out", monkeypatch) == 0, capsys.readouterr().err
    profile = yaml.safe_load((tmp_path / "out" / "profile.yaml").read_text())
    staged = yaml.safe_load(site.files.profile.read_text())
    assert "kubeconfig" not in profile["cluster"]
    assert profile["cluster"]["pod_cidr"] == "10.244.0.0/16"
    profile["cluster"]["server"] = site.cluster.plan.server
    profile["cluster"]["bootstrap_token"]["file"] = str(tmp_path / "out" / "bootstrap-token")
    profile["artifacts"]["sha256"] = staged["artifacts"]["sha256"]
    site.files.profile.write_text(yaml.safe_dump(profile))
    return site


def test_a_join_from_the_printed_command_alone(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = capsys.readouterr()
    assert "pod CIDR: 10.244.0.0/16 (from kubeadm's ConfigMap kube-system/kubeadm-config)" in told.err
    assert "winboot manifests operator" in told.out
    written = {one.name: one for one in (tmp_path / "out").iterdir()}
    assert [name for name, one in written.items() if one.is_file() and TOKEN in one.read_text()] == [
        "bootstrap-token"
    ]
    assert written["bootstrap-token"].stat().st_mode & 0o077 == 0

    report = site.join()

    assert problems(report) == []
    assert (only(report).ready, taints(site)) == (
        True,
        [{"key": "os", "value": "windows", "effect": "NoSchedule"}],
    )
    assert any("takes no Lease" in note for note in only(report).notes)
    assert TOKEN not in str(report) + "".join(site.controllers[-1].scripts)
    again = site.join()
    assert (only(again).outcome, only(again).pipelines, only(again).ready) == ("ok", 1, True)

    # A live node is not disturbed by surprise, and the administrator's own drain counts.
    profile = yaml.safe_load(site.files.profile.read_text())
    profile["kubelet"]["config"]["maxPods"] = 60
    site.files.profile.write_text(yaml.safe_dump(profile))
    (held,) = {one for one in problems(site.join()) if "NeedsDrain" in one}
    assert "kubectl drain" in held
    patch_node({"spec": {"unschedulable": True}})(site)
    assert problems(site.join()) == []

    stop("kubelet")(site)
    site.settle(120)
    looked = site.plan()
    assert only(looked).ready is False
    removed = site.controller().remove()
    assert any("kubectl delete node win-1" in note for note in only(removed).notes)
    assert site.node()["metadata"]["name"] == "win-1"


def test_a_second_command_renews_the_token_alone(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    before = (folder / "profile.yaml").read_text()
    # kubeadm's address of the server, and not the one that --server has put into the profile.
    line = "kubeadm join 10.9.9.9:6443 --token uvwxyz.0123456789abcdef --discovery-token-ca-cert-hash sha256:"
    command = folder / "command"
    command.write_text(line + key_hash(site.cluster.authority.pem))

    assert run(["init", "--join-file", str(command), "--folder", str(folder)]) == 0
    assert (folder / "bootstrap-token").read_text() == "uvwxyz.0123456789abcdef\n"
    assert (folder / "profile.yaml").read_text() == before

    command.write_text(line + "0" * 64)
    assert run(["init", "--join-file", str(command), "--folder", str(folder)]) == 64
    assert "is for another cluster" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--join-command", f"kubeadm join 10.0.0.10:6443 --token {TOKEN}"], "accepts only `-`"),
        (["--join-command", "-", "--join-file", "x"], "do not go together"),
        (["--join-file", "nowhere"], "nowhere cannot be read"),
        (["--join-command", "-", "--kubeconfig", "x"], "--kubeconfig and --context do not go together"),
        (["--join-file", "nowhere", "--context", "x"], "--kubeconfig and --context do not go together"),
    ],
)
def test_a_token_is_taken_from_no_argument(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--folder", str(tmp_path), *arguments]) == 64
    said = capsys.readouterr().err
    assert told in said
    assert TOKEN not in said


def test_commands_name_what_they_cannot_do_without_a_kubeconfig(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = str(site.files.inventory)

    assert run(["status", "-i", inventory]) == 2
    assert "has no cluster.kubeconfig" in capsys.readouterr().out
    assert run(["verify", "-i", inventory]) == 64
    assert "winboot manifests verifier" in capsys.readouterr().err
