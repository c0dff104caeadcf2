"""Three lab machines are joined by winboot to a genuine cluster: their kubelets, flanneld and kube-proxy talk to it alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.cli.staging import Staged, stage
from winboot_lab.up import Lab

from tests.genuine.conftest import Genuine
from tests.genuine.machines import Forwarded
from winboot import cli
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import NodeSpec, resolve
from winboot.remote.manifests import OPERATORS, manifest

pytestmark = pytest.mark.genuine
NAMES = ("win-1", "win-2", "win-3")
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Joined:
    """Machines of the lab, a genuine cluster, and the commands of a user with an operator's rights."""

    def __init__(self, lab: Lab, cluster: Forwarded, genuine: Genuine, staged: Staged) -> None:
        self.lab = lab
        self.cluster = cluster
        self.genuine = genuine
        self.staged = staged
        self.first: dict[str, Any] = {}

    def __call__(self, command: str, capsys: Any, *words: str) -> tuple[int, dict[str, Any]]:
        """The exit code, and the report's nodes by name."""
        report = self.staged.inventory.parent / f"{command}.jsonl"
        code = cli.run([command, "-i", str(self.staged.inventory), "--report", str(report), *words])
        rows = map(json.loads, report.read_text(encoding="utf-8").splitlines())
        return code, {row["node"]: row for row in rows if row["kind"] == "node"}

    def get(self, path: str) -> Any:
        """What the cluster has, as its administrator."""
        return self.genuine.ask("GET", path).json()


def specs(staged: Staged) -> list[NodeSpec]:
    return [resolve(machine.profile, machine) for machine in load_inventory(staged.inventory)]


def prepare(genuine: Genuine, staged: Staged) -> None:
    """What an administrator applies once: kubeadm's bindings, flannel's ConfigMap, and winboot's manifests."""
    genuine.bind_joiners()
    genuine.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-flannel}")
    for name in ("flannel", "rbac", "operator"):
        genuine.apply(manifest(name, specs(staged)))
    staged.kubeconfig.write_text(genuine.kubeconfig("joiner", OPERATORS).read_text())


@pytest.fixture(scope="module")
def joined(genuine: Genuine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Joined]:
    folder = tmp_path_factory.mktemp("machines")
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(Forwarded(genuine, folder)) as cluster,
        # The cluster's controllers take the time they take: the machines' time must not run away from it.
        Lab(nodes=3, cluster=cluster, scale=0.05) as lab,
    ):
        patch.setenv("WINBOOT_STATE", str(folder / "state"))
        staged = stage(lab, folder)
        prepare(genuine, staged)
        made = Joined(lab, cluster, genuine, staged)
        code, made.first = made("join", None)
        assert code == 0, made.first
        yield made


def test_every_machine_is_a_ready_node_of_the_genuine_cluster(joined: Joined) -> None:
    assert {name: row["ready"] for name, row in joined.first.items()} == dict.fromkeys(NAMES, True)
    for name in NAMES:
        node = joined.get(f"/api/v1/nodes/{name}")
        conditions = {one["type"]: one["status"] for one in node["status"]["conditions"]}
        assert conditions["Ready"] == "True"
        assert node["metadata"]["labels"]["pool"] == "windows"
        assert node["spec"]["podCIDR"].startswith("10.244.")
        taints = {one["key"] for one in node["spec"].get("taints") or []}
        assert "os" in taints and "winboot.io/starting" not in taints
        assert node["metadata"]["annotations"]["flannel.alpha.coreos.com/kube-subnet-manager"] == "true"


def test_each_has_both_certificates_and_no_token_is_left(joined: Joined) -> None:
    found = joined.get(CSRS)["items"]
    for name in NAMES:
        serving = [
            one
            for one in found
            if one["spec"]["username"] == f"system:node:{name}"
            and one["spec"]["signerName"] == "kubernetes.io/kubelet-serving"
        ]
        assert any(one["status"].get("certificate") for one in serving), name
        reasons = {c["reason"] for one in serving for c in one["status"].get("conditions") or []}
        assert "WinbootApproved" in reasons
    secrets = joined.get(
        "/api/v1/namespaces/kube-system/secrets?labelSelector=app.kubernetes.io/managed-by=winboot"
    )
    assert secrets["items"] == []


def test_their_kubelets_write_as_kubelets_do_and_nothing_is_refused_for_its_form(joined: Joined) -> None:
    written = {
        (method, path.rpartition("/")[0] if name in path.split("/") else path)
        for method, path, _ in joined.cluster.seen
        for name in NAMES
        if method != "GET" and name in path.split("/")
    }
    assert ("PUT", LEASES) in written
    assert [one for one in joined.cluster.seen if one[2] in (400, 415, 422)] == []
    for name in NAMES:
        lease = joined.get(f"{LEASES}/{name}")
        assert lease["spec"]["holderIdentity"] == name


def test_a_second_run_changes_nothing(joined: Joined, capsys: pytest.CaptureFixture[str]) -> None:
    code, again = joined("join", capsys)

    assert code == 0
    assert {name: row["outcome"] for name, row in again.items()} == dict.fromkeys(NAMES, "ok")


def test_a_deleted_node_comes_back(joined: Joined, capsys: pytest.CaptureFixture[str]) -> None:
    joined.genuine.ask("DELETE", "/api/v1/nodes/win-2")

    code, rows = joined("join", capsys, "--limit", "win-2")

    assert (code, rows["win-2"]["ready"]) == (0, True)
    assert joined("join", capsys, "--limit", "win-2")[1]["win-2"]["outcome"] == "ok"


def test_what_the_lab_does_not_know_was_never_needed(joined: Joined) -> None:
    assert [str(one) for node in joined.lab.nodes.values() for one in node.refusals] == []
    assert yaml.safe_load(Path(joined.staged.profile).read_text())["kubernetes"]["version"] == "1.36.2"
