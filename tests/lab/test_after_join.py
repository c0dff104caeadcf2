"""After the join: a node gets another version, goes back, gets it again, is repaired and removed; the machine is as before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.lab.site import Site, differences, only, problems
from tests.lab.test_networks import MANAGERS, SOLUTIONS, Solution, a_site, restaged, run_pod
from tests.lab.test_remove import NOTHING, in_cluster, tree, unwritten
from tests.matrix import Matrix
from tests.verify.test_profiles import remote_subnets

# The second is that of the shipped profiles. 1.35 is the last minor that takes containerd 1.7, 1.36 wants 2.
OLD, NEW = "1.35.9", "1.36.5"
FORMER_MAJOR: Final = "1.7.36"
# The solutions whose flows the lab's machines carry. The lab lacks parts of networks and kube-proxy pods of other owners.
CARRIED: Final = (
    "flannel-host-gw",
    "flannel-vxlan",
    "win-bridge",
    "win-overlay",
    "azure",
    "azure-tunnel",
    "calico-node",
)
# The further settings that such a network needs for a join.
ROUTES: Final = {"win-bridge": {"routes": "winboot"}}

CHAINS: Final = Matrix(
    "chains of commands",
    [(solution, manager) for solution in SOLUTIONS for manager in MANAGERS],
    lambda case: {"solution": case[0].name, "manager": case[1]},
    strength=1,
    core=0,
    daily=1,
)


@pytest.mark.parametrize(("solution", "manager"), CHAINS.params(lambda case: f"{case[0].name}-{case[1]}"))
def test_upgrade_rollback_upgrade_repair_and_remove_leave_the_machine_as_before_the_join(
    solution: Solution, manager: str, tmp_path: Path
) -> None:
    services = {"manager": manager}
    former = {"kubernetes": {"version": OLD}, "runtime": {"containerd": FORMER_MAJOR}}
    solution = replace(solution, network={**solution.network, **ROUTES.get(solution.name, {})})
    flows = solution.name in CARRIED
    site = a_site(tmp_path, solution, services=services, **former)
    before = tree(site)
    assert problems(site.join()) == []
    run_pod(site, "web")
    _of_a_daemon_set(site, "agent")
    if solution.name == "win-overlay":
        remote_subnets(site)
    site.settle(1800)

    def runs() -> str:
        """Version of the kubelet, and majors of the containerds that hold pods."""
        site.settle(1800)
        node = site.node()
        assert node["spec"].get("unschedulable") is None
        shims = site.machine.processes.named("containerd-shim-runhcs-v1")
        majors = {one.path.partition("containerd-")[2][:1] for one in shims}
        return f"{node['status']['nodeInfo']['kubeletVersion']} {sorted(majors)}"

    wishes = {**solution.wishes, "services": services, "kubernetes": {"version": NEW}}
    site.files = restaged(site, {"mode": None, **solution.network}, **wishes)
    assert problems(site.controller().upgrade(flows=flows)) == []
    assert runs() == f"v{NEW} ['2']"
    assert problems(site.controller().rollback(flows=flows)) == []
    assert runs() == f"v{OLD} ['1']"
    assert problems(site.controller().upgrade(flows=flows)) == []
    assert runs() == f"v{NEW} ['2']"
    site.machine.services.stop(site.machine.services.need(solution.services[-1]))
    repaired = site.join()
    assert (problems(repaired), only(repaired).ready) == ([], True)

    assert problems(site.controller().remove()) == []
    # The controller of DaemonSets takes a pod away whose Node is gone.
    site.admin("DELETE", "/api/v1/namespaces/default/pods/agent")

    assert in_cluster(site) == NOTHING
    if solution.ours:
        assert unwritten(before, site) == []
    assert (differences(site.controller().remove()), site.refusals) == ({}, [])


def _of_a_daemon_set(site: Site, name: str) -> None:
    """A pod that a drain leaves where it is."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": name, "controller": True}
    metadata = {"name": name, "ownerReferences": [owner]}
    spec = {"nodeName": "win-1", "containers": []}
    site.admin("POST", "/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
    site.settle(30)
