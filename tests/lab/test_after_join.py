"""After the join: a node gets another version, goes back, gets it again, is repaired and removed; the machine is as before."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.lab.site import differences, only, problems
from tests.lab.test_networks import MANAGERS, SOLUTIONS, Solution, a_site, restaged, run_pod
from tests.lab.test_remove import NOTHING, in_cluster, tree, unwritten
from tests.matrix import Matrix

# The second is that of the shipped profiles.
OLD, NEW = "1.35.9", "1.36.5"

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
    site = a_site(tmp_path, solution, services=services, kubernetes={"version": OLD})
    before = tree(site)
    assert problems(site.join()) == []
    run_pod(site, "web")
    site.settle(1800)

    def runs() -> str:
        site.settle(1800)
        node = site.node()
        assert node["spec"].get("unschedulable") is None
        return str(node["status"]["nodeInfo"]["kubeletVersion"])

    wishes = {**solution.wishes, "services": services, "kubernetes": {"version": NEW}}
    site.files = restaged(site, {"mode": None, **solution.network}, **wishes)
    assert problems(site.controller().upgrade(flows=True)) == []
    assert runs() == f"v{NEW}"
    assert problems(site.controller().rollback(flows=True)) == []
    assert runs() == f"v{OLD}"
    assert problems(site.controller().upgrade(flows=True)) == []
    assert runs() == f"v{NEW}"
    site.machine.services.stop(site.machine.services.need(solution.services[-1]))
    repaired = site.join()
    assert (problems(repaired), only(repaired).ready) == ([], True)

    assert problems(site.controller().remove()) == []

    assert in_cluster(site) == NOTHING
    if solution.ours:
        assert unwritten(before, site) == []
    assert (differences(site.controller().remove()), site.refusals) == ({}, [])
