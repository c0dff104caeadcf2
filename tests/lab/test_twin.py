"""A lab like one's own site, and what can happen there, by commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from winboot_lab.cli import app
from winboot_lab.cli.breaking import KINDS
from winboot_lab.cli.control import Control, ask
from winboot_lab.cli.staging import fitting_cluster, stage, write_environment
from winboot_lab.cli.twin import stage_profile, stage_twin, twin_of
from winboot_lab.cluster import ClusterPlan
from winboot_lab.up import Lab, NodePlan

from tests.config.scene import CA
from tests.shape import lines_of
from winboot.base.errors import Unreachable, UsageError
from winboot.cli import run
from winboot.cli.targets import load_targets
from winboot.config.inventory import load_inventory

PROFILE = """
kubernetes: {version: "1.36.5"}
cluster:
  server: https://k8s.corp.example:6443
  ca: {file: ca.crt}
  kubeconfig: {file: kubeconfig}
  pod_cidr: 10.244.0.0/16
  service_cidr: 10.96.0.0/12
network: {cni: flannel, mode: vxlan}
runtime: {pause_image: registry.corp.example/k8s/pause:3.10.1}
proxy: {http: "http://proxy.corp.example:3128", https: "http://proxy.corp.example:3128"}
artifacts: {source: "https://mirror.corp.example/winboot"}
"""
INVENTORY = """
defaults: {connection: {user: CORP\\winboot, password: {env: CORP_PASSWORD}}}
groups:
  pool:
    profile: pool.yaml
    os: "2022"
    hosts:
      win-a1: {address: 192.0.2.11}
      win-a2:
        address: 10.0.7.12
        connection: {transport: ssh, user: admin, agent: true}
        node: {labels: {rack: r7}}
  edge: {members: [win-a1], kubelet: {config: {maxPods: 60}}}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "pool.yaml").write_text(PROFILE, encoding="utf-8")
    (tmp_path / "ca.crt").write_text(CA, encoding="utf-8")
    path = tmp_path / "inventory.yaml"
    path.write_text(INVENTORY, encoding="utf-8")
    return path


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a lab of two bare machines that answers commands."""
    plans = [NodePlan("win-1", "2022", "10.0.1.11"), NodePlan("win-2", "2019", "10.0.1.12")]
    with Lab(nodes=plans) as lab, Control(lab, tmp_path):
        yield tmp_path


@pytest.mark.matrix
def test_a_site_with_proxy_registry_and_ssh_joins_in_a_lab_like_it(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names, groups and overrides are the site's; the lab starts proxy and registry because the profile names them."""
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("WINBOOT_LAB_PASSWORD", "")
    twin = twin_of(site)
    with Lab(nodes=twin.plans, cluster=fitting_cluster(tmp_path / "pool.yaml")) as lab:
        inventory, invented = stage_twin(lab, twin, tmp_path / "lab")
        code = run(["join", "-i", str(inventory), "--yes"])
        told = capsys.readouterr()
        refusals = [refusal for node in lab.nodes.values() for refusal in node.refusals]

    assert (code, refusals) == (0, []), told.out
    assert any("win-a1: its address is 10.0." in one for one in invented)
    assert any("the proxy proxy.corp.example:3128" in one for one in invented)
    assert any("the registry registry.corp.example" in one for one in invented)
    staged = load_inventory(inventory)
    assert staged["win-a2"].connection.transport == "ssh"
    assert staged["win-a1"].connection.https
    assert staged["win-a1"].groups == ("pool", "edge")
    by_name = {spec.node.name: spec for spec in load_targets(inventory, (), trust=True)}
    assert by_name["win-a1"].kubelet.config["maxPods"] == 60
    assert by_name["win-a2"].node.labels["rack"] == "r7"


def test_a_profile_alone_has_its_proxy_and_its_registry_too(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`lab up --profile`: the first step of a join failed with "the proxy name could not be resolved"."""
    for name in ("WINBOOT_LAB_PASSWORD", "ROBOT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    profile = site.parent / "pool.yaml"
    registry = "{registry.corp.example: {user: robot, password: {env: ROBOT}}}"
    profile.write_text(
        PROFILE.replace("runtime: {", f"runtime: {{registries: {registry}, "), encoding="utf-8"
    )

    with Lab(nodes=1, cluster=fitting_cluster(profile)) as lab:
        invented = stage_profile(lab, profile, tmp_path / "lab")
        code = run(["ping", "-i", str(tmp_path / "lab" / "inventory.yaml"), "-o", "json"])

    (line,) = lines_of(capsys.readouterr().out)
    assert (code, [one["reason"] for one in line["findings"] if one["id"] == "downloads"]) == (
        0,
        ["proxy, artifact source and registries answer, or all programs are here"],
    )
    assert "the proxy proxy.corp.example:3128 reaches everything" in invented
    assert "ROBOT is not set here: the password of registry.corp.example is `lab`" in invented
    assert os.environ["ROBOT"] == "lab"


def test_several_clusters_become_one_and_that_is_reported(site: Path) -> None:
    """And HTTPS, which is the default, stays HTTPS."""
    other = PROFILE.replace("k8s.corp.example", "k8s.edge.example")
    (site.parent / "other.yaml").write_text(other, encoding="utf-8")
    text = site.read_text(encoding="utf-8")
    host = "{win-b1: {address: 10.0.7.20, connection: {port: 5985}}}"
    site.write_text(f'{text}  b: {{profile: other.yaml, os: "2019", hosts: {host}}}\n', encoding="utf-8")

    twin = twin_of(site)

    assert {plan.name: (plan.https, plan.ssh) for plan in twin.plans} == {
        "win-a1": (True, False),
        "win-a2": (False, True),
        "win-b1": (False, False),
    }
    assert (
        "one cluster in place of 2: https://k8s.corp.example:6443, https://k8s.edge.example:6443"
        in twin.invented
    )


def test_a_command_is_run_at_a_machines_console(control: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--folder", str(control)]

    assert run(["lab", "exec", "win-1", "Write-Output 'here'; exit 3", *folder]) == 3
    assert capsys.readouterr().out.strip() == "here"


@pytest.mark.parametrize("kind", sorted(name for name, one in KINDS.items() if one.heal is not None))
def test_what_happens_around_a_machine_is_taken_back(kind: str, control: Path) -> None:
    said = ask(control, {"do": "break", "node": "win-1", "kind": kind})["said"]
    healed = ask(control, {"do": "heal", "node": ""})["said"]

    assert "winboot lab heal win-1" in said
    assert healed == f"win-1: {kind} is taken back\n"
    assert "nothing to take back" in ask(control, {"do": "heal", "node": "win-1"})["said"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["exec", "win-11", "x"], "Did you mean 'win-1'?"),
        (["break", "win-1", "clok"], "Did you mean 'clock'?"),
        (["break", "win-1"], "takes NODE and KIND"),
        (["heal", "nosuch"], "It has win-1, win-2."),
    ],
)
def test_what_the_lab_does_not_have_is_named(
    words: list[str], said: str, control: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lab", *words, "--folder", str(control)]) == 64
    assert said in capsys.readouterr().err


def test_an_inventory_says_itself_how_many_machines_there_are(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lab", "up", "-i", str(site), "--nodes", "3", "--folder", str(tmp_path / "lab")]) == 64

    assert "--inventory and --nodes do not go together" in capsys.readouterr().err


@pytest.mark.parametrize("below", ["", "x"])
def test_a_folder_that_cannot_be_made_is_refused(
    below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("kept", encoding="utf-8")

    assert run(["lab", "up", "--folder", str(tmp_path / "file" / below)]) == 64

    assert "cannot be made: " in capsys.readouterr().err


def test_without_a_lab_that_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "heal", "--folder", str(tmp_path)]) == Unreachable.exit_code
    assert "`winboot lab up`" in capsys.readouterr().err


def test_the_kinds_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "break"]) == 0
    assert all(name in capsys.readouterr().out for name in ("clock",))


def test_the_environment_is_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    path = write_environment(tmp_path, "it's", {"REGISTRY": "lab"})

    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text(encoding="utf-8")
    assert "export WINBOOT_LAB_PASSWORD='it'\"'\"'s'" in text
    assert f"export KUBECONFIG={tmp_path}/kubeconfig" in text


def test_hashes_of_another_version_are_fetched_from_the_mirror_of_the_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade could not be rehearsed: only the machines of the lab know its mirror by name."""
    with Lab(nodes=1) as lab:
        staged = stage(lab, tmp_path, None)
        profile = tmp_path / "profile.yaml"
        text = profile.read_text(encoding="utf-8")
        assert f"kubernetes/{ClusterPlan().version}/" in text
        # urllib reads proxies once a process and keeps them: neither is an earlier one taken, nor is this one left behind.
        monkeypatch.setattr("urllib.request._opener", None)
        monkeypatch.setenv("http_proxy", lab.mirror.url)
        profile.write_text(
            text.replace(f"version: {ClusterPlan().version}", "version: 1.35.9"), encoding="utf-8"
        )

        assert run(["init", "--renew", "-i", str(staged.inventory)]) == 0

    assert "kubernetes/1.35.9/kubernetes-node-windows-amd64.tar.gz!kubernetes/node/bin/kubelet.exe" in (
        profile.read_text(encoding="utf-8")
    )


@pytest.mark.matrix
def test_what_happens_within_a_machine_is_seen_by_plan_and_healed_by_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind, on one node."""
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with Lab(nodes=[NodePlan("win-1", "2022", "10.0.1.11")]) as lab, Control(lab, tmp_path):
        monkeypatch.setenv("WINBOOT_LAB_PASSWORD", lab.password)
        inventory = str(stage(lab, tmp_path).inventory)
        assert run(["join", "-i", inventory, "--yes"]) == 0
        for kind in sorted(name for name, one in KINDS.items() if one.heal is None and name != "restart"):
            ask(tmp_path, {"do": "break", "node": "win-1", "kind": kind})
            assert run(["plan", "-i", inventory]) == 2, kind
            assert run(["repair", "-i", inventory, "--yes", "--drain"]) == 0, kind


def test_two_ways_to_say_what_to_rehearse_are_refused(site: Path) -> None:
    with pytest.raises(UsageError):
        app(["up", "-i", str(site), "--profile", str(site)], standalone_mode=False)
