"""`winboot csr` against a lab's API: its approvals, output and exit codes."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cluster import ClusterServer, LabCluster
from winboot_lab.cluster.authority import Subject, new_key, request_pem
from winboot_lab.cluster.controllers import CLIENT_SIGNER, SERVING_SIGNER
from winboot_lab.cluster.identity import ADMIN, Identity, user

from tests.config.scene import GOOD, an_inventory
from tests.shape import lines_of
from winboot.cli import run
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import resolve
from winboot.node.roster import Roster
from winboot.remote.cluster import kubeconfig as kubeconfigs

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
INVENTORY = """
groups:
  pool:
    profile: profile.yaml
    os: "2022"
    hosts:
      win-1: {address: 10.0.1.11}
      win-2: {address: win-2.example.com, node_ip: 10.0.1.12}
      win-3: {address: 192.168.7.7, connection: {port: 5985}}
      win-4: {address: 192.168.7.7, connection: {port: 5987}}
"""


@dataclass
class Desk:
    """A lab cluster, an inventory for it, and the command."""

    lab: LabCluster
    inventory: Path

    def ask(
        self, name: str, node: str, address: str, *, who: Identity | None = None, client: bool = False
    ) -> None:
        """A kubelet asks for a certificate."""
        names = () if client else ((node,), (address,))
        pem = request_pem(new_key(), Subject(f"system:node:{node}", ("system:nodes",), *names))
        usage = "client auth" if client else "server auth"
        spec = {
            "request": base64.b64encode(pem.encode()).decode(),
            "signerName": CLIENT_SIGNER if client else SERVING_SIGNER,
            "usages": ["digital signature", usage],
        }
        body = {"metadata": {"name": name}, "spec": spec}
        self.lab.request(who or user(f"system:node:{node}", "system:nodes"), "POST", CSRS, body)

    def states(self) -> dict[str, list[str]]:
        """Each request's conditions."""
        items = self.lab.request(ADMIN, "GET", CSRS).body["items"]
        return {
            one["metadata"]["name"]: [c["type"] for c in one["status"].get("conditions") or []]
            for one in items
        }

    def csr(self, *arguments: str) -> int:
        return run(["csr", *arguments, "-i", str(self.inventory)])


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    lab = LabCluster()
    lab.controllers.paused.add("csrapproving")
    with ClusterServer(lab) as server:
        inventory = an_inventory(tmp_path, INVENTORY)
        server.write_admin_kubeconfig(tmp_path / "kubeconfig")
        yield Desk(lab, inventory)


def test_what_is_in_order_is_approved_and_a_second_time_there_is_nothing_to_do(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.ask("one", "win-1", "10.0.1.11")
    desk.ask("two", "win-2", "10.0.1.12")

    assert desk.csr("approve") == 0
    assert capsys.readouterr().out.splitlines() == [
        "win-1: serving certificate request one: approved",
        "win-2: serving certificate request two: approved",
    ]
    assert desk.states() == {"one": ["Approved"], "two": ["Approved"]}
    assert (desk.csr("approve"), capsys.readouterr().out) == (0, "")


def test_what_is_not_is_refused_with_its_reason_and_stays(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.ask("bad", "win-1", "10.0.1.12")
    desk.ask("stranger", "win-9", "10.0.1.19")
    desk.ask("client", "win-2", "", client=True)

    assert desk.csr("approve", "-o", "json") == 2
    (row,) = lines_of(capsys.readouterr().out)
    assert (row["request"], row["node"], row["decision"]) == ("bad", "win-1", "refused")
    assert "the address 10.0.1.12 is not one of this machine's (10.0.1.11)" in row["reasons"][0]
    assert desk.states() == {"bad": [], "stranger": [], "client": []}


def test_the_list_says_what_would_become_of_each_and_changes_nothing(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.csr("list") == 0
    assert "the cluster has no certificate requests" in capsys.readouterr().out
    desk.ask("good", "win-1", "10.0.1.11")
    desk.ask("bad", "win-2", "10.0.1.11")
    desk.ask("client", "win-2", "", client=True)
    desk.ask("stranger", "win-9", "10.0.1.19")

    assert desk.csr("list", "-o", "json") == 0
    rows = {row["request"]: row for row in lines_of(capsys.readouterr().out)}
    assert {name: row["decision"] for name, row in rows.items()} == {
        "good": "approve",
        "bad": "refuse",
        "client": "leave",
        "stranger": "leave",
    }
    assert desk.csr("list") == 0
    table = capsys.readouterr().out
    assert "REQUEST" in table and "leave: the cluster's controller-manager" in table
    assert desk.states() == {"good": [], "bad": [], "client": [], "stranger": []}


def test_the_list_shows_what_is_decided_too(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.ask("good", "win-1", "10.0.1.11")
    desk.csr("approve")
    desk.lab.settle()
    capsys.readouterr()

    desk.csr("list", "-o", "json")

    (row,) = lines_of(capsys.readouterr().out)
    assert (row["state"], row["decision"]) == ("issued", "leave")


def test_the_watch_sees_a_machine_that_comes_by_itself_and_outlives_the_api_server(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.ask("bad", "win-2", "10.0.1.11")
    codes: list[int] = []
    watching = threading.Thread(target=lambda: codes.append(desk.csr("watch", "--every", "1", "--for", "3")))
    watching.start()
    desk.lab.faults.unreachable = True
    watching.join(0.7)
    desk.lab.faults.unreachable = False
    desk.ask("late", "win-1", "10.0.1.11")
    watching.join(30)

    assert codes == [2]
    assert desk.states()["late"] == ["Approved"]
    said = capsys.readouterr().out
    assert said.count("request bad: refused") == 1
    assert said.count("request late: approved") == 1


def test_a_shared_address_or_name_belongs_to_no_machine(tmp_path: Path) -> None:
    """What leads to two machines is a NAT's; a Node's own claim is never asked for."""
    inventory = load_inventory(an_inventory(tmp_path, INVENTORY))
    roster = Roster.of([resolve(machine.profile, machine) for machine in inventory])

    assert {node.name: set(node.addresses) for node in roster.nodes} == {
        "win-1": {"10.0.1.11"},
        "win-2": {"10.0.1.12"},
        "win-3": set(),
        "win-4": set(),
    }


def test_without_a_kubeconfig_it_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = GOOD.replace("  kubeconfig: {file: kubeconfig}\n", "  bootstrap_token: {env: TOKEN}\n")
    inventory = an_inventory(tmp_path, INVENTORY, profile)

    assert run(["csr", "list", "-i", str(inventory)]) == 64
    assert "has no cluster.kubeconfig" in capsys.readouterr().err
    assert run(["csr", "approve", "-i", str(inventory), "-o", "junit"]) == 64
    assert run(["csr", "deny", "-i", str(inventory)]) == 64


def test_in_a_pod_its_service_account_is_used(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a kubeconfig, winboot uses the pod's token and CA; a pod without a service account gets an error."""
    account: Any = {"metadata": {"name": "csr"}}
    desk.lab.request(ADMIN, "POST", "/api/v1/namespaces/kube-system/serviceaccounts", account)
    binding = {
        "metadata": {"name": "csr"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "csr", "namespace": "kube-system"}],
    }
    desk.lab.request(ADMIN, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    made = desk.lab.request(ADMIN, "POST", "/api/v1/namespaces/kube-system/serviceaccounts/csr/token", {})
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text(made.body["status"]["token"])
    (folder / "ca.crt").write_text(desk.lab.authority.pem)
    server = json.loads((tmp_path / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
    monkeypatch.setattr(kubeconfigs, "SERVICE_ACCOUNT", folder)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", server.rpartition(":")[2])
    (tmp_path / "profile.yaml").write_text(
        GOOD.replace("  kubeconfig: {file: kubeconfig}\n", "  bootstrap_token: {env: TOKEN}\n")
    )
    desk.ask("good", "win-1", "10.0.1.11")

    assert desk.csr("approve") == 0
    assert "request good: approved" in capsys.readouterr().out
    (folder / "token").unlink()
    assert desk.csr("list") == 64
    assert "this pod has no" in capsys.readouterr().err


def test_a_watch_that_could_not_ask_at_its_end_says_so(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.lab.faults.unreachable = True

    assert desk.csr("watch", "--every", "1", "--for", "0.5") == 69
    assert "request" not in capsys.readouterr().out
