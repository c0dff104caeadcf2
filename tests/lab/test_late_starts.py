"""What a node needs comes late or goes wrong at a start: no address is lost, and the node comes back without a controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from winboot_lab.programs import hcn
from winboot_lab.windows.hns import HnsError

from tests.lab.late import CAUSES, Late, Start, pairwise, theirs
from tests.lab.server_room import NODE, reached
from tests.lab.site import Site, differences, only
from tests.lab.test_networks import BY_NAME, SOLUTIONS, Solution, joined
from tests.matrix import first


@pytest.fixture(autouse=True)
def time_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is outside the lab: on a slow computer, too, its time waits for a task that is at work."""
    monkeypatch.setattr("winboot_lab.windows.clock.PATIENCE", 60.0)


def ready(site: Site) -> bool:
    """What the cluster says of the node now."""
    return {"type": "Ready", "status": "True"}.items() <= next(
        one for one in site.node()["status"]["conditions"] if one["type"] == "Ready"
    ).items()


@pytest.mark.parametrize("manager", first(0, ["sc", "nssm"], daily=0))
def test_a_control_plane_that_comes_up_after_the_node_costs_it_nothing_but_time(
    manager: str, tmp_path: Path
) -> None:
    """flanneld makes its overlay again at each start, once the API server answers (vxlan_windows.go: AcquireLease comes before
    newVXLANDevice): winboot does not wait a quarter of an hour for it."""
    site = joined(tmp_path, BY_NAME["flannel-vxlan"], services={"manager": manager})
    cluster = site.cluster
    site.outside.clusters.clear()
    site.machine.reboot()
    site.settle(1200)
    assert NODE in reached(site)

    site.outside.attach(cluster)
    site.settle(300)

    assert NODE in reached(site)
    assert ready(site)
    assert (differences(site.join()), site.refusals) == ({}, [])


@pytest.mark.parametrize("late", first(0, [200.0, 1700.0], daily=1))
def test_a_network_made_late_in_a_boot_costs_no_address(late: float, tmp_path: Path) -> None:
    """The modern way: flannel's HostProcess image in a DaemonSet makes its overlay after each start, whenever its pod comes."""

    since = [0.0]

    def overlay(site: Site) -> None:
        machine = site.machine
        if hcn.network(machine, "corp") is None and machine.uptime() >= since[0]:
            subnets = [{"AddressPrefix": "10.77.0.0/24", "GatewayAddress": "10.77.0.1"}]
            asked = {"Name": "corp", "Type": "Overlay", "Flags": 8, "Subnets": subnets}
            hcn.call(machine, "POST", "/networks/", asked)
        if hcn.network(machine, "corp") is None:
            return
        BY_NAME["none"].somebody(site)  # type: ignore[misc]

    site = joined(
        tmp_path, Solution("none", {"cni": "none"}, wishes=BY_NAME["none"].wishes, somebody=overlay)
    )
    since[0] = late
    site.machine.reboot()
    site.settle(late + 120)

    assert hcn.network(site.machine, "corp") is not None
    assert NODE in reached(site)
    assert (differences(site.join()), site.refusals) == ({}, [])


@pytest.mark.parametrize("solution", first(0, ["win-overlay", "azure", "calico-node", "win-bridge"], daily=0))
def test_one_refusal_of_hns_at_a_start_takes_no_network_and_no_address_away(
    solution: str, tmp_path: Path
) -> None:
    """An administrator cleaned HNS up, and its first answer after the start is a refusal."""
    site = joined(tmp_path, BY_NAME[solution])
    machine, name = site.machine, {"azure": "ext", "calico-node": "External"}.get(solution)
    site.settle(200)
    first = next(one for one in machine.hns.networks.values() if name is None or one["Name"] == name)
    machine.hns.remove_network(first)
    make, refused = machine.hns.create_network, list[str]()

    def create(body: dict[str, object]) -> dict[str, object]:
        if not refused and body.get("Name") == first["Name"]:
            refused.append(str(first["Name"]))
            raise HnsError(0x80070490, "Element not found.")
        return make(body)

    machine.hns.create_network = create  # type: ignore[method-assign]
    machine.reboot()
    site.settle(1500)

    assert refused
    assert NODE in reached(site)
    assert ready(site)
    assert (differences(site.join()), site.refusals) == ({}, [])


# Of the pairs, one of those that lost a machine or its network's rest before: every day. The other is
# "HNS hangs 14 min-azure-cns-2022-static-nssm".
EVERYDAY = ("HNS forgets 5 min-azure-tunnel-2019-static-sc",)


def _cases() -> list[object]:
    """All pairs of two values that can meet; a sample in `make check`."""
    return [
        pytest.param(
            start, id=str(start), marks=pytest.mark.check if str(start) in EVERYDAY else pytest.mark.matrix
        )
        for start in pairwise()
    ]


@pytest.mark.parametrize("start", _cases())
def test_what_is_late_or_wrong_at_a_start_costs_no_address_and_no_node(start: Start, tmp_path: Path) -> None:
    """The node's address has no gap of more than 30 seconds after it first appears, or after HNS answers.

    When the cause is gone: Ready without a controller, and nothing left for the next run."""
    late = Late(tmp_path, start)
    late.join()
    late.begin()

    assert late.wrong() == []


def test_the_table_of_late_starts_leaves_out_only_what_cannot_be() -> None:
    """Every cause meets every solution that has it, and everything else meets everything."""
    met = {(start.cause, start.solution) for start in pairwise()}
    never = {(cause, one.name) for cause in CAUSES for one in SOLUTIONS} - met

    assert never == {("owner", one.name) for one in SOLUTIONS if not theirs(one)}
    assert set(EVERYDAY) <= {str(start) for start in pairwise()}


@pytest.mark.matrix
def test_hns_that_restarts_takes_no_rules_for_good(tmp_path: Path) -> None:
    """kube-proxy writes its rules again only when it starts; AKS restarts it for that (AgentBaker, hnsremediator.ps1)."""
    site = joined(tmp_path, BY_NAME["flannel-host-gw"])
    site.settle(120)
    lists = len(site.machine.hns.policy_lists)
    assert lists > 0
    hns = site.machine.services.need("hns")
    site.machine.services.stop(hns)
    site.settle(5)
    site.machine.services.start(hns)
    assert len(site.machine.hns.policy_lists) == 0
    site.settle(400)

    assert len(site.machine.hns.policy_lists) == lists
    assert NODE in reached(site)
    assert ready(site)
    assert (differences(site.join()), site.refusals) == ({}, [])
    assert only(site.join()).ready


@pytest.mark.matrix
def test_while_the_task_scheduler_does_not_run_no_agent_rewires_anything(tmp_path: Path) -> None:
    """The address would have no guard: the node waits for the scheduler, and is then Ready by itself."""
    site = joined(tmp_path, BY_NAME["flannel-vxlan"])
    tasks = [task for task in site.machine.tasks.all() if task.path.startswith("\\winboot")]
    for task in tasks:
        task.enabled = False
    site.machine.reboot()
    site.settle(900)
    assert NODE in reached(site)
    assert not ready(site)

    for task in tasks:
        task.enabled = True
    site.settle(600)

    assert NODE in reached(site)
    assert ready(site)
