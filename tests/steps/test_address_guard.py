"""The guard watches the machine's static address while another program makes a network on its adapter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from winboot_lab.programs import hcn

from tests.lab.actions import remove_network, sc
from tests.matrix import first
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.library import call
from tests.steps.nodes import Node
from tests.steps.test_operator_network import CONFLIST, back, gone
from tests.steps.ways import host_endpoint, nothing, second_gateway

STEP = "address-guard"
JOURNAL = r"C:\ProgramData\winboot\journal.jsonl"
WHAT = "guard of the static address 10.0.1.11"


@pytest.mark.parametrize("profile", ["flannel-host-gw", "win-bridge", "azure"])
def test_a_network_that_winboot_makes_itself_has_no_such_step(profile: str):
    assert STEP not in Bench(spec=a_spec_of(profile)).look(STEP).states


def test_a_bare_machine_has_no_address_guard():
    bench = Bench(spec=a_spec_of("calico"))

    assert bench.look(STEP).differences(STEP) == {
        "guard of the static address 10.0.0.21": ("nobody", "the task guard")
    }


def test_an_address_from_dhcp_comes_back_by_itself():
    bench = Bench(spec=a_spec_of("calico"), dhcp=True)

    assert bench.look(STEP).states == {STEP: "ok"}


def test_while_nothing_happens_the_guard_starts_no_program_but_every_five_minutes(
    joined: Callable[[str], Node], monkeypatch: pytest.MonkeyPatch
):
    """Each kubectl is a process and a request to the API server, from each node."""
    node = joined("plain")
    node.site.settle(600)
    started: list[str] = []
    spawn = node.machine.processes.spawn

    def noted(command_line: str, *more: Any, **named: Any) -> Any:
        started.append(command_line)
        return spawn(command_line, *more, **named)

    monkeypatch.setattr(node.machine.processes, "spawn", noted)
    node.site.settle(600)

    assert len(started) == 2, started
    sc("stop", "kube-proxy")(node.site)
    node.site.settle(90)
    assert [line for line in started[2:] if "kubectl" in line], "something changed"


@pytest.mark.check
def test_an_existing_network_needs_no_guard(joined: Callable[[str], Node]):
    node = joined("operator")

    assert node.look(STEP).states == {STEP: "ok"}
    assert node.undo(STEP).states == {STEP: "ok"}
    assert node.differs == []


def test_the_task_watches_while_the_network_is_missing_and_puts_the_address_back(
    joined: Callable[[str], Node],
):
    node = joined("operator").after(gone, remove_network("Calico"), remove_network("External"))
    assert node.look(STEP).differences(STEP) == {WHAT: ("nobody", "the task guard")}

    assert node.change(STEP).states == {STEP: "changed"}
    assert node.look(STEP).states == {STEP: "ok"}, "it is running"
    lose(node)
    node.after(back("operator"))
    node.site.settle(600)

    assert node.machine.network.holder("10.0.1.11") is not None
    assert node.look(STEP).states == {STEP: "ok"}


# What a round of the watch reads: whatever of it was just read, a switch may take the adapter before the next.
MOMENTS = [
    (command, call)
    for command in (
        "Get-NetIPInterface",
        "Get-NetAdapter",
        "Get-NetIPAddress",
        "Get-NetRoute",
    )
    for call in (2, 5)
] + [
    ("Get-DnsClient", 1),
    ("Get-DnsClient", 2),
    ("Get-NetAdapterBinding", 1),
    ("hns.call", 1),
    ("hns.call", 3),
]


@pytest.mark.parametrize(("command", "call"), first(4, MOMENTS))
def test_a_switch_may_take_the_adapter_in_the_midst_of_a_round(
    joined: Callable[[str], Node], command: str, call: int
):
    node = joined("operator").after(gone, remove_network("Calico"), remove_network("External"))
    taken: list[str] = []

    def take() -> None:
        lose(node)
        node.after(back("operator"))
        taken.append(command)

    node.machine.faults.before_command(command, take, call=call)
    (task,) = (task for task in node.machine.tasks.all() if task.name == "guard")
    node.machine.tasks.start(task)
    node.site.settle(600)

    assert taken
    assert holds_all(node)
    assert node.look(STEP).states[STEP] == "ok"


def hns_hangs(node: Node) -> None:
    node.machine.hns.hang("GET", "/networks/", seconds=70)


def hns_restarts(node: Node) -> None:
    """It is stopped between a look at the service and the call."""

    def stop() -> None:
        services = node.machine.services
        hns = services.find("hns")
        assert hns is not None
        services.stop(hns)
        node.machine.after(5, lambda: services.start(hns))

    node.machine.faults.before_command("hns.call", stop)


def configuration_is_held(node: Node) -> None:
    assert node.machine.faults.hold(CONFLIST, 30, share="None")


def journal_is_held(node: Node) -> None:
    assert node.machine.faults.hold(JOURNAL, 30, share="None")


def disk_is_full(node: Node) -> None:
    node.machine.faults.disk_full()


def guard_is_ended(node: Node) -> None:
    """Windows starts it again within a minute; what happens meanwhile it knows from the record."""
    tasks = node.machine.tasks
    (task,) = (task for task in tasks.all() if task.name == "guard")
    node.machine.after(89, lambda: tasks.stop(task))


@pytest.mark.parametrize(
    "trouble",
    [
        hns_hangs,
        pytest.param(hns_restarts, marks=pytest.mark.check),
        pytest.param(configuration_is_held, marks=pytest.mark.check),
        pytest.param(journal_is_held, marks=pytest.mark.check),
        pytest.param(disk_is_full, marks=pytest.mark.matrix),
        guard_is_ended,
    ],
)
def test_a_round_that_fails_does_not_end_the_watch(
    joined: Callable[[str], Node], trouble: Callable[[Node], None]
):
    """While HNS does not answer or a file is held, the guard tries again in a few seconds: the machine needs its address."""
    node = joined("operator").after(gone, remove_network("Calico"), remove_network("External"))
    trouble(node)
    (task,) = (task for task in node.machine.tasks.all() if task.name == "guard")
    node.machine.tasks.start(task)
    node.machine.settle(90)
    lose(node)
    node.after(back("operator"))
    node.site.settle(600)

    assert holds_all(node)
    assert node.look(STEP).states[STEP] == "ok"


def holds_all(node: Node) -> bool:
    """Whether some adapter has the address, the DNS server and the way out that were set by hand."""
    network = node.machine.network
    holder = network.holder("10.0.1.11")
    assert holder is not None
    assert holder.dns == ["10.0.0.2"]
    assert [route.next_hop for route in network.routes if route.prefix == "0.0.0.0/0"] == ["10.0.0.1"]
    return True


NODE = (
    "$script:Node = @{ pod_cidrs = @('10.244.0.0/16'); node_ip = '10.0.0.21' }; $script:Run.Mode = 'Guard'; $script:Run += @{ "
    "Sequence = 0; Id = ''; Journal = [Collections.Generic.List[string]]::new() }; "
)


def ways_out(bench: Bench) -> set[str]:
    return {route.next_hop for route in bench.machine.network.routes if route.prefix == "0.0.0.0/0"}


def a_switch_took_the_way_out(bench: Bench) -> None:
    """The addresses are back on its interface, and the default route is not."""
    network = bench.machine.network
    uplink = network.management()
    assert uplink is not None
    carrier = network.bind_switch(uplink, "a switch", keep_static=True)
    network.routes = [route for route in network.routes if route.interface != carrier.index]


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        pytest.param(nothing, host_endpoint, {"10.0.0.1", "10.244.1.1"}, id="the endpoint's is no gateway"),
        pytest.param(second_gateway, nothing, {"10.0.0.1", "172.21.0.1"}, id="each adapter has its own"),
        pytest.param(nothing, second_gateway, {"172.21.0.1"}, id="another one is a person's choice"),
    ],
)
def test_a_start_gives_an_adapter_its_own_default_route_back(
    bench: Bench, before: Callable[[Bench], None], after: Callable[[Bench], None], left: set[str]
):
    before(bench)
    assert call(bench, NODE + "Save-NetworkRecord").id == ""
    a_switch_took_the_way_out(bench)
    after(bench)

    assert call(bench, NODE + "Restore-StartRoute").id == ""

    assert ways_out(bench) == left


def test_a_default_route_that_windows_refuses_at_first_is_not_given_up(bench: Bench):
    """The address came back at once, and the endpoint has a default route."""
    assert call(bench, NODE + "Save-NetworkRecord").id == ""
    a_switch_took_the_way_out(bench)
    host_endpoint(bench)
    refused = "function global:New-NetRoute { throw 'refused' }; $watch = @{ Known = @{ adapters = @() } }; "

    restore = "Restore-MovedInterface -Watch $watch -Moved @(Read-NetworkRecord)"
    assert call(bench, NODE + refused + restore).id == ""

    (known,) = bench.state("network.json")["adapters"]
    assert [route["next_hop"] for route in known["routes"]] == ["10.0.0.1"]


def test_a_route_that_ended_with_the_start_is_awaited_beside_the_endpoints(bench: Bench):
    assert call(bench, NODE + "Save-NetworkRecord").id == ""
    bench.machine.power_off()
    bench.machine.power_on()
    a_switch_took_the_way_out(bench)
    host_endpoint(bench)

    assert call(bench, NODE + "Test-RouteAwaited").objects == [True]


def lose(node: Node) -> None:
    """What the operator's network does: a switch takes the adapter, and its settings are gone."""
    hcn.call(node.machine, "POST", "/networks/", {"Name": "theirs", "Type": "Overlay", "Subnets": []})
    assert node.machine.network.holder("10.0.1.11") is None
