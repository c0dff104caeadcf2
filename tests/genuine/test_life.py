"""A whole life of a node on a genuine control plane: join, verify, a minor's upgrade, rollback, repair and remove.

The machine's time is held at real time: the upgrade's proof asks the node's clock, and certificates are of the cluster's time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from winboot_lab.cli.staging import Staged, stage
from winboot_lab.up import Lab

from tests.genuine.conftest import Genuine
from tests.genuine.machines import Forwarded
from tests.genuine.test_lab_machines import prepare, specs
from winboot import cli
from winboot.remote.manifests import manifest

pytestmark = pytest.mark.genuine
OLD, NEW = "1.35.9", "1.36.2"
NODE: Final = "/api/v1/nodes/win-1"
LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/win-1"


class Life:
    """One machine of the lab in real time, and the commands of a user with an operator's rights."""

    def __init__(self, lab: Lab, plane: Genuine, folder: Path) -> None:
        self.lab, self.plane, self._folder = lab, plane, folder
        self.staged = self._stage(OLD)
        prepare(plane, self.staged)
        for name in ("verifier-anywhere", "remover"):
            plane.apply(manifest(name, specs(self.staged)))
        self._kubeconfig = self.staged.kubeconfig.read_text()

    def _stage(self, version: str) -> Staged:
        return stage(self.lab, self._folder, wishes={"kubernetes": {"version": version}})

    def wants(self, version: str) -> None:
        """The profile wants this version from now on."""
        self._stage(version)
        self.staged.kubeconfig.write_text(self._kubeconfig)

    def __call__(self, command: str, *words: str) -> None:
        """The command ends well."""
        assert cli.run([command, "-i", str(self.staged.inventory), *words]) == 0

    def node(self) -> tuple[str, bool]:
        """The kubelet's version as the Node has it, and whether the Node is Ready."""
        status = self.plane.ask("GET", NODE).json()["status"]
        ready = {one["type"]: one["status"] for one in status["conditions"]}["Ready"]
        return status["nodeInfo"]["kubeletVersion"], ready == "True"


@pytest.fixture
def life(fresh: Genuine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    monkeypatch.setenv("WINBOOT_STATE", str(tmp_path / "state"))
    with closing(Forwarded(fresh, tmp_path)) as cluster, Lab(nodes=1, cluster=cluster, real_time=True) as lab:
        yield Life(lab, fresh, tmp_path / "site")


def test_a_node_joins_changes_its_minor_goes_back_is_repaired_and_leaves(
    life: Life, capsys: pytest.CaptureFixture[str]
) -> None:
    life("join")
    assert life.node() == (f"v{OLD}", True)
    capsys.readouterr()
    life("verify", "--flows", "pod-start,node-clock", "-o", "json")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    flows = {one["flow"]: one["state"] for one in rows if one["kind"] == "flow"}
    assert (flows["pod-start"], flows["node-clock"]) == ("passed", "passed")

    life.wants(NEW)
    life("upgrade", "--yes")
    assert life.node() == (f"v{NEW}", True)
    life("rollback", "win-1", "--yes")
    assert life.node() == (f"v{OLD}", True)

    # The profile wants what the rollback brought back: else a repair ends with 2 and names the difference.
    life.wants(OLD)
    services = life.lab.nodes["win-1"].machine.services
    services.stop(services.need("kube-proxy"))
    life("repair")
    assert services.running("kube-proxy")
    assert life.node() == (f"v{OLD}", True)

    life("remove", "--yes")
    assert [life.plane.ask("GET", path).status_code for path in (NODE, LEASE)] == [404, 404]
    assert [str(one) for one in life.lab.nodes["win-1"].refusals] == []
