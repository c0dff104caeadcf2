"""The pods' network: made in a detached run, kept while it is right, and removed again."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from winboot_lab.programs import hcn
from winboot_lab.windows.network import Adapter, Network

from tests.lab.actions import (
    Hand,
    endpoint,
    forwarding_off,
    guard_away,
    network,
    remove_network,
    replace,
    stop,
)
from tests.lab.site import Site
from tests.matrix import first
from tests.steps.bench import Bench, Release
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node
from tests.steps.test_fallen_services import journal
from winboot.config.networks import NETWORKS
from winboot.report.hints import HINTS

STEP = "pod-network"
SUBNET_ENV = r"C:\run\flannel\subnet.env"
CBR0 = "HNS network cbr0"
EP = "HNS endpoint cbr0_ep"
# Both make their objects in HNS again for a new network.
ABOVE = ("flanneld", "kube-proxy")


def test_a_node_whose_operator_makes_the_network_has_no_such_step():
    assert STEP not in Bench(spec=a_spec_of("calico")).look(STEP).states


@pytest.mark.parametrize(
    ("profile", "whats"),
    [
        ("flannel-host-gw", {CBR0, EP, f"file {SUBNET_ENV}: subnet", "HNS network External"}),
        ("win-bridge", {"HNS network l2bridge", "HNS endpoint l2bridge_ep"}),
        ("azure", {"HNS network ext"}),
    ],
)
def test_a_bare_machine_lacks_the_network_and_what_belongs_to_it(profile: str, whats: set[str]):
    found = Bench(spec=a_spec_of(profile)).look(STEP).step(STEP)["differences"]

    assert {one["what"] for one in found} == whats
    assert all(one["disrupts"] for one in found), "sessions break when it is made"


def test_it_is_removed_and_made_again_by_its_agent(node: Node):
    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.machine.hns.networks == {}
    assert {CBR0, EP} <= set(node.look(STEP).differences(STEP))
    assert node.change(STEP).states == {STEP: "ok"}, "the detached run has done it"
    assert node.machine.hns.by_name(node.machine.hns.networks, "cbr0") is not None
    assert node.machine.reachable()


def test_it_is_removed_and_made_again_by_winboot_where_there_is_no_agent(joined: Callable[[str], Node]):
    node = joined("own network")
    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.machine.hns.networks == {}
    assert node.change(STEP).states == {STEP: "ok"}
    assert node.look(STEP).states == {STEP: "ok"}


def test_a_network_that_was_there_before_is_not_winboots_to_take_away(node: Node):
    """Another tool joined the node: winboot found the network as it should be and noted nothing."""
    node.machine.files.delete(rf"C:\ProgramData\winboot\former\{STEP}.jsonl")

    assert node.undo(STEP).states == {STEP: "ok"}
    assert node.differs == []


def other_type(found: dict[str, Any]) -> None:
    found["Type"] = "L2Tunnel"


def other_address(found: dict[str, Any]) -> None:
    found["ManagementIP"] = "169.254.17.42"


@pytest.mark.parametrize(
    ("hand", "whats"),
    [
        (network(other_type), {f"{CBR0}: type"}),
        pytest.param(network(other_address), {f"{CBR0}: management address"}, marks=pytest.mark.check),
        pytest.param(
            endpoint(lambda hns, found: hns.detach(found)),
            {f"{EP}: attached to the host"},
            marks=pytest.mark.check,
        ),
        pytest.param(endpoint(lambda hns, found: hns.remove_endpoint(found)), {EP}, marks=pytest.mark.check),
        (replace(SUBNET_ENV, "FLANNEL_SUBNET=10", "FLANNEL_SUBNET=11"), {f"file {SUBNET_ENV}: subnet"}),
        pytest.param(
            forwarding_off("10.0.1.11"),
            {"forwarding on the interface of 10.0.1.11"},
            marks=pytest.mark.check,
        ),
    ],
    ids=["type", "management address", "detached", "no endpoint", "subnet.env", "forwarding"],
)
def test_a_difference_is_reported_and_corrected(node: Node, hand: Hand, whats: set[str]):
    node.after(hand)

    assert set(node.look(STEP).differences(STEP)) == whats
    node.change(STEP)
    assert node.look(STEP).states == {STEP: "ok"}
    node.change(*ABOVE)
    node.site.settle(90)
    assert node.differs == []


def test_forwarding_alone_needs_no_detached_run_and_disturbs_no_pod(node: Node):
    node.after(forwarding_off("10.0.1.11"))

    told = node.run(STEP, facts={"NodeIsLive": True})

    assert (told.states, told.ended) == ({STEP: "changed"}, "complete")
    assert node.differs == []


def test_a_live_node_keeps_a_wrong_network_until_it_is_drained(node: Node):
    node.after(network(other_address))

    problem = node.run(STEP, facts={"NodeIsLive": True}).problem(STEP)

    assert (problem.id, f"{CBR0}: management address" in problem.message) == ("NeedsDrain", True)


def theirs(kind: str, name: str = "theirs") -> Hand:
    """Another owner's network, on the same adapter if possible."""

    def hand(site: Site) -> None:
        subnet = {"AddressPrefix": "172.20.0.0/16", "GatewayAddress": "172.20.0.1"}
        uplink = {} if kind == "NAT" else {"NetworkAdapterName": "Ethernet"}
        hcn.call(
            site.machine,
            "POST",
            "/networks/",
            {"Name": name, "Type": kind, "Subnets": [subnet], **uplink},
        )
        site.settle(10)

    return hand


def test_networks_of_others_stay(joined: Callable[[str], Node]):
    node = joined("own network").after(network(other_address, "l2bridge"), theirs("NAT"))

    node.change(STEP)

    assert {one["Name"] for one in node.machine.hns.networks.values()} == {"l2bridge", "theirs"}


def known(owner: str) -> list[str]:
    """The names of all HNS networks that the solutions make, but for one's."""
    names = [one.name for solution in NETWORKS for one in solution.hns_names if solution.cni != owner]
    return sorted({name.replace("*", "7") for name in names} | {"nat", "antrea-hnsnetwork"})


def test_no_repair_and_no_undo_touches_another_solutions_network(joined: Callable[[str], Node]):
    node = joined("own network")
    names = [name for name in known("win-bridge") if name != "l2bridge"]
    for name in names:
        node.after(theirs("NAT", name))

    node.after(network(other_address, "l2bridge"))
    node.change(STEP)
    repaired = {one["Name"] for one in node.machine.hns.networks.values()}
    node.undo(STEP)

    assert repaired == {*names, "l2bridge"}
    assert {one["Name"] for one in node.machine.hns.networks.values()} == set(names)


def test_a_network_of_the_wanted_name_that_another_program_made_is_no_leftover(joined: Callable[[str], Node]):
    node = joined("own credential")
    node.undo(STEP)
    node.after(theirs("Transparent", "cbr0"))

    assert node.change(STEP).problem(STEP).id == "NetworkConflict"
    assert [one["Type"] for one in node.machine.hns.networks.values()] == ["Transparent"]


def test_load_balancers_of_another_network_outlive_the_pods_network(joined: Callable[[str], Node]):
    node = joined("own network").after(theirs("NAT", "nat"))
    hns = node.machine.hns
    (own,) = (one for one in hns.networks.values() if one["Name"] == "nat")
    endpoint = hcn.call(node.machine, "POST", "/endpoints/", {"VirtualNetwork": own["ID"]})
    kept = hcn.call(
        node.machine,
        "POST",
        "/policylists/",
        {"References": [f"/endpoints/{endpoint['ID']}"], "Policies": []},
    )

    node.undo(STEP)

    assert list(hns.policy_lists) == [kept["ID"]]


def test_a_network_of_another_kind_on_the_adapter_is_named_before_anything_is_cut(
    joined: Callable[[str], Node],
):
    node = joined("own credential")
    node.undo(STEP)
    node.after(theirs("Transparent"))

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "NetworkConflict"
    assert problem.message.startswith("the HNS network theirs on Ethernet is of type Transparent")
    assert "Remove-HnsNetwork" in problem.hint


def team(network: Network, uplink: Adapter) -> None:
    """What Get-NetAdapter shows of a team of the old kind."""
    uplink.team = True


def their_switch(network: Network, uplink: Adapter) -> None:
    """An administrator's Hyper-V switch `Virtual Machines`: the host's own interface in it has the address."""
    uplink.name, uplink.physical = "vEthernet (Virtual Machines)", False
    network.add_adapter("NIC 1", "Intel(R) Ethernet Converged Network Adapter", mac=uplink.mac)


def their_switch_of_the_adapters_name(network: Network, uplink: Adapter) -> None:
    """New-VMSwitch -Name Ethernet -NetAdapterName Ethernet: named as HNS would name its own."""
    uplink.name, uplink.physical = "vEthernet (Ethernet)", False
    network.add_adapter("Ethernet", "Intel(R) Ethernet Converged Network Adapter", mac=uplink.mac)


def converged(network: Network, uplink: Adapter) -> None:
    """A switch over two cards (SET) with an interface for storage and one for management."""
    their_switch(network, uplink)
    network.add_adapter("NIC 2", "Intel(R) Ethernet Converged Network Adapter #2")
    network.add_adapter("vEthernet (SMB)", "Hyper-V Virtual Ethernet Adapter #2", physical=False)


@pytest.mark.parametrize("release", first(1, ["2022", "2025"]))
@pytest.mark.parametrize("profile", ["win-bridge", "flannel-host-gw", "azure"])
@pytest.mark.parametrize(
    ("furnish", "says"),
    [
        (team, "the node's address is on Ethernet, a team of the kind LBFO"),
        (
            their_switch,
            "the node's address is on vEthernet (Virtual Machines), an interface of a Hyper-V switch",
        ),
        (
            their_switch_of_the_adapters_name,
            "the node's address is on vEthernet (Ethernet), an interface of a Hyper-V switch that is not of HNS",
        ),
        (
            converged,
            "the node's address is on vEthernet (Virtual Machines), an interface of a Hyper-V switch",
        ),
    ],
)
def test_an_adapter_that_carries_no_switch_is_refused_before_anything_is_cut(
    furnish: Callable[[Network, Adapter], None], says: str, profile: str, release: Release
):
    bench = Bench(spec=a_spec_of(profile), release=release)
    uplink = bench.machine.network.management()
    assert uplink is not None
    furnish(bench.machine.network, uplink)
    before = bench.machine.network.tree()

    problem = bench.run(STEP).problem(STEP)

    assert (problem.id, problem.message[: len(says)]) == ("AdapterRefused", says)
    assert HINTS["AdapterRefused"] in problem.hint
    assert bench.machine.network.tree() == before
    assert not [one.name for one in bench.machine.tasks.all() if one.name.startswith("detached-")]


def below(site: Site) -> Adapter:
    """The adapter below the switch."""
    (found,) = (one for one in site.machine.network.adapters if one.switch is not None)
    return found


def above(site: Site) -> Adapter:
    """The interface that has the node's address."""
    found = site.machine.network.management()
    assert found is not None
    return found


def adapter_renamed(site: Site) -> None:
    """Rename-NetAdapter Ethernet LAN."""
    below(site).name = "LAN"


def interface_renamed(site: Site) -> None:
    """Rename-NetAdapter 'vEthernet (Ethernet)' Management."""
    above(site).name = "Management"


def name_given_to_a_new_card(site: Site) -> None:
    """Windows calls a card by the first name that is free."""
    adapter_renamed(site)
    site.machine.network.plug_in_another("Ethernet", "172.20.0.5")


def test_a_network_on_the_right_adapter_needs_no_first_switch(node: Node):
    """HNS was cleaned up, and flanneld made cbr0 alone: to make the switch below now would only rewire the adapter."""
    node.after(remove_network("External"))

    assert node.look(STEP).states == {STEP: "ok"}


@pytest.mark.parametrize("scene", first(1, ["plain", "own network", "azure"], daily=2))
def test_the_nodes_address_is_settled_before_the_adapter_is_rewired(
    scene: str, joined: Callable[[str], Node]
):
    """While a switch takes the adapter, another one that has a way to the API server answers it."""
    node = joined(scene)
    node.undo(STEP)
    node.after(remove_all_networks)
    told = node.run(STEP)
    node.machine.network.plug_in_another("Second", "10.0.2.11", 16)
    node.site.settle(300)

    status = node.state(rf"detached\{told.events[-2]['id']}.json")
    assert (status["state"], status["message"]) == ("done", "")
    assert above(node.site).name == "vEthernet (Ethernet)"
    assert node.machine.network.reachable("10.0.2.11")


def remove_all_networks(site: Site) -> None:
    """Get-HnsNetwork | Remove-HnsNetwork."""
    for name in [one["Name"] for one in site.machine.hns.networks.values()]:
        remove_network(name)(site)


@pytest.mark.parametrize(
    ("scene", "hand", "state"),
    [
        ("plain", adapter_renamed, "ok"),
        pytest.param("plain", interface_renamed, "ok", marks=pytest.mark.check),
        # flanneld makes its overlay again by itself, while the change waits for an agent that runs (Wait-RunningAgent).
        pytest.param("vxlan", adapter_renamed, "changed", marks=pytest.mark.matrix),
        pytest.param("azure", interface_renamed, "ok", marks=pytest.mark.check),
        pytest.param("azure", name_given_to_a_new_card, "ok", marks=pytest.mark.check),
    ],
)
def test_a_name_that_differs_is_no_difference_and_no_trouble(
    scene: str, hand: Hand, state: str, joined: Callable[[str], Node]
):
    """An adapter is its MAC address and GUID. winboot makes a new network on the same adapter, under any new name."""
    node = joined(scene).after(hand)
    card = below(node.site)

    looked = node.look(STEP).states
    # Nor does the guard make them again before the change is there.
    node.machine.tasks.end_residents()
    made = node.after(remove_all_networks).change(STEP).states

    assert (looked, made) == ({STEP: "ok"}, {STEP: state})
    assert (below(node.site), above(node.site).mac) == (card, card.mac)
    assert node.look(STEP).states == {STEP: "ok"}


@pytest.mark.parametrize(
    ("scene", "name"),
    first(
        2,
        [
            ("vxlan", "10G `fast`"),
            ("azure", "10G (Prod)"),
            ("plain", "Ethernet"),
            ("vxlan", "Ethernet"),
            ("azure", "Ethernet"),
            ("plain", "LAN [Prod]"),
        ],
    ),
)
def test_a_switch_is_made_on_an_adapter_of_any_name(scene: str, name: str, joined: Callable[[str], Node]):
    """Windows numbers the new interface's name where a hidden device has it; a pattern in a name is plain text."""
    node = joined(scene)
    network = node.machine.network
    node.undo(STEP)
    node.after(remove_all_networks)
    above(node.site).name = name
    network.kept_names.add("vEthernet (Ethernet)")

    made = node.change(STEP).states

    assert made == {STEP: "ok"}
    assert above(node.site).name == (
        "vEthernet (Ethernet) 2" if name == "Ethernet" else f"vEthernet ({name})"
    )
    assert node.look(STEP).states == {STEP: "ok"}
    assert node.machine.reachable()


def test_a_team_carries_a_switch_on_windows_2019():
    bench = Bench(spec=a_spec_of("win-bridge"), release="2019")
    uplink = bench.machine.network.management()
    assert uplink is not None
    team(bench.machine.network, uplink)

    assert bench.run(STEP).ended == "detached"


@pytest.mark.matrix
def test_an_agent_that_makes_no_network_is_reported_with_what_is_missing_and_what_it_said(node: Node):
    """It gets no answer from the API server, or may not read its Node: its log says which, and the problem says it."""
    node.undo(STEP)
    node.after(stop("flanneld"), replace(r"C:\k\flanneld.kubeconfig", "10.0.0.10", "10.9.9.9"))

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "DetachedFailed"
    assert f"{CBR0} is missing" in problem.message
    assert "flanneld said last: E" in problem.message
    assert "10.9.9.9" in problem.message
    assert HINTS["NoPodNetwork"] in problem.hint


def test_an_endpoint_that_hns_is_not_ready_to_attach_is_attached_some_seconds_later(
    joined: Callable[[str], Node],
):
    """Right after it made the network it refuses (flannel-io/flannel#1112); flanneld tries again, too."""
    node = joined("own network")
    node.after(remove_network("l2bridge"))
    node.machine.hns.busy_attachments = 3

    assert node.change(STEP, "kube-proxy").states[STEP] == "ok", "after its detached run"

    assert node.machine.hns.busy_attachments == 0
    node.site.settle(60)
    assert node.look(STEP).states == {STEP: "ok"}


def test_an_endpoint_is_made_when_hns_knows_the_machines_address(joined: Callable[[str], Node]):
    """Before that a network is not ready (flannel hostgw_windows.go waits for ManagementIP)."""
    node = joined("own network")
    node.after(remove_network("l2bridge"))
    node.machine.hns.management_delay = 12.0

    assert node.change(STEP, "kube-proxy").states[STEP] == "ok", "after its detached run"
    node.machine.hns.management_delay = 1.0
    node.site.settle(60)
    assert node.look(STEP).states == {STEP: "ok"}


@pytest.mark.parametrize(("seconds", "made"), first(0, [(100, True), (2000, False)], daily=1))
def test_a_run_that_holds_the_machine_right_after_its_start_delays_the_repair_and_is_named(
    joined: Callable[[str], Node], seconds: float, made: bool
):
    """It may make the network itself, or be busy with something else."""
    node = joined("own network")
    node.spoiled = True
    machine = node.machine

    def hold() -> None:
        run = machine.session("SYSTEM")
        handle = run.invoke("mutex.create", {"name": r"Global\winboot"}).objects[0]["handle"]
        assert run.invoke("mutex.wait", {"handle": handle, "milliseconds": 0}).objects == ["acquired"]
        machine.after(seconds, run.close)

    # What is looked at is the startup task.
    node.after(guard_away, remove_network("l2bridge"))
    machine.reboot(seconds=1)
    machine.faults.before_command("file.read", hold)
    node.site.settle(900)

    # The first start came before the join.
    assert len(journal(node, "boot")) == machine.boot_count - 1
    assert (machine.hns.by_name(machine.hns.networks, "l2bridge") is not None) is made
    problems = [event["problem"] for event in journal(node, "boot-failed")]
    # The startup task tries again within its limit.
    assert {problem["id"] for problem in problems} == (set() if made else {"MachineHeld"})
    node.site.settle(2000)
    assert node.change(STEP, "kube-proxy").ended == "complete"
    assert node.look(STEP).states == {STEP: "ok"}


def test_hns_that_refuses_is_reported_with_its_message(joined: Callable[[str], Node]):
    node = joined("own network")
    node.undo(STEP)
    node.machine.hns.fail_next(0x80070057, "The parameter is incorrect.")

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "DetachedFailed"
    assert "HNS refused POST /networks/: The parameter is incorrect." in problem.message
    assert HINTS["HnsRefused"] in problem.hint


def test_a_network_without_the_firewalls_service_names_the_service(joined: Callable[[str], Node]):
    node = joined("own network")
    node.undo(STEP)
    node.machine.services.need("mpssvc").status = "Stopped"

    problem = node.change(STEP).problem(STEP)

    assert "service mpssvc does not run; HNS refused POST /networks/: There are no more" in problem.message
    assert HINTS["FirewallServiceOff"] in problem.hint


def test_one_that_is_gone_already_is_no_trouble_for_an_undo(node: Node):
    node.after(remove_network())

    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.file(rf"C:\ProgramData\winboot\former\{STEP}.jsonl") is None


def test_one_that_an_older_profile_brought_is_left_to_a_person(node: Node):
    """Today's profile does not show how to remove it without losing the machine."""
    problem = node.undo("dynamic-ports", forgotten=STEP).problem(STEP)

    assert (problem.id, problem.message) == ("NetworkLeft", "the HNS network cbr0 is still there")
    assert "Remove-HnsNetwork" in problem.hint
    node.change("dynamic-ports")


@pytest.mark.matrix
def test_an_agent_whose_run_failed_makes_no_switch_alone_when_the_cause_goes_away(node: Node):
    """The static address would go with it, and no guard would watch."""
    answering = node.file(r"C:\k\flanneld.kubeconfig")
    assert answering is not None
    node.undo(STEP)
    node.after(stop("flanneld"), replace(r"C:\k\flanneld.kubeconfig", "10.0.0.10", "10.9.9.9"))
    assert node.change(STEP).problem(STEP).id == "DetachedFailed"

    node.write(r"C:\k\flanneld.kubeconfig", answering)
    node.site.settle(600)
    node.machine.reboot()
    node.site.settle(600)

    assert node.machine.reachable()
    assert node.machine.services.need("flanneld").status == "Stopped"
    assert "cbr0" not in {one["Name"] for one in node.machine.hns.networks.values()}
    assert "service flanneld: kept from starting" in node.look(STEP).differences(STEP)
    assert node.change(STEP).states == {STEP: "ok"}
    assert node.registry(r"SYSTEM\CurrentControlSet\Services\flanneld", "Start") == 3
    assert node.machine.reachable()


@pytest.mark.matrix
def test_an_api_server_that_goes_away_in_a_guarded_run_costs_no_network_and_no_agent(node: Node):
    """The host's endpoint is missing, and only flanneld, which needs the API server, makes it."""
    node.after(stop("flanneld"), endpoint(lambda hns, found: hns.remove_endpoint(found)))
    machine, before = node.machine, set(node.machine.hns.networks)
    told = node.run(STEP)
    node.site.cluster.faults.unreachable = True
    node.site.settle(1500)

    assert told.ended == "detached"
    status = node.state(rf"detached\{told.events[-2]['id']}.json")
    assert status["state"] == "failed"
    assert "HNS endpoint cbr0_ep is missing" in status["message"]
    assert set(machine.hns.networks) == before
    assert node.registry(r"SYSTEM\CurrentControlSet\Services\flanneld", "Start") == 3
    assert machine.reachable()
    node.site.cluster.faults.unreachable = False
    node.site.settle(120)
    node.change(STEP)
    assert node.look(STEP).states == {STEP: "ok"}
    assert set(machine.hns.networks) == before


def test_the_guard_makes_no_network_again_that_is_there(joined: Callable[[str], Node]):
    """Pods may be on it: one that is otherwise than wanted waits for a join."""
    node = joined("own network").after(network(other_address, "l2bridge"))
    before = list(node.machine.hns.networks)

    node.site.settle(200)

    assert list(node.machine.hns.networks) == before
    assert node.look(STEP).states == {STEP: "would-change"}


def test_a_network_that_hns_does_not_remove_does_not_keep_the_machine_from_its_address(
    joined: Callable[[str], Node],
):
    """Each call has a limit of its own, and what hangs is named."""
    node = joined("own network").after(network(other_address, "l2bridge"))
    node.machine.hns.hang("DELETE", "/networks/")

    problem = node.change(STEP).problem(STEP)

    assert "HNS has not answered DELETE /networks/" in problem.message
    assert HINTS["HnsHangs"] in problem.hint
    assert node.machine.reachable()


@pytest.mark.check
def test_a_run_that_is_killed_is_taken_back_by_the_second_line(joined: Callable[[str], Node]):
    node = joined("own network").after(guard_away)
    node.undo(STEP)
    assert node.run(STEP).ended == "detached"
    # From the detached run's own first question on: a run in the session would wait for it as well.
    node.machine.hns.hang("GET", "/networks/", seconds=50, times=100)
    node.site.machine.settle(30)
    (task,) = [one for one in node.machine.tasks.all() if one.running is not None]
    id_ = task.name.removeprefix("detached-")
    node.machine.tasks.stop(task)
    node.machine.hns.forget_hangs()
    node.site.settle(3000)

    assert node.state(rf"detached\{id_}.json")["state"] == "failed"
    assert node.machine.reachable()
    assert not [one.name for one in node.machine.tasks.all() if one.name.startswith("detached-")]


def test_a_run_in_which_each_call_of_hns_takes_nearly_its_limit_ends_by_itself(
    joined: Callable[[str], Node],
):
    """The task's own limit is above the sum of what its parts may take."""
    node = joined("own network").after(stop("kube-proxy"), stop("kubelet"))
    node.undo(STEP)
    for method, path in itertools.product(
        ("GET", "POST", "DELETE"), ("/networks/", "/endpoints/", "/policylists/")
    ):
        node.machine.hns.hang(method, path, seconds=50, times=100)
    told = node.run(STEP)
    node.site.settle(1600)
    node.machine.hns.forget_hangs()

    status = node.state(rf"detached\{told.events[-2]['id']}.json")
    assert status["state"] in ("done", "failed")
    assert "killed" not in status["message"]
    assert status["ended"] < status["deadline"]
    assert node.machine.reachable()


def test_an_agent_that_a_cut_left_half_way_is_not_started_by_what_depends_on_it(node: Node):
    """The control manager starts kube-proxy with the machine, and before it whatever it depends on, by hand or not."""
    node.undo(STEP)
    machine, flanneld = node.machine, node.machine.services.need("flanneld")
    cuts: list[float] = []

    def look() -> None:
        if flanneld.status == "Running":
            cuts.append(machine.time.seconds)
            machine.power_off()
            machine.after(20, machine.power_on, lasting=True)
        else:
            machine.after(0.2, look, lasting=True)

    machine.after(0.2, look, lasting=True)
    node.run(STEP)
    node.site.settle(300)

    assert len(cuts) == 1
    flanneld = machine.services.need("flanneld")
    assert flanneld.status == "Stopped"
    assert machine.reachable()
    assert node.change(STEP).states == {STEP: "ok"}
    started = {
        one: node.registry(rf"SYSTEM\CurrentControlSet\Services\{one}", "Start")
        for one in ("flanneld", "kube-proxy")
    }
    assert started == {"flanneld": 3, "kube-proxy": 3}


@pytest.mark.parametrize(
    ("command", "call"),
    first(
        1,
        [("Get-NetRoute", 4), ("Get-DnsClient", 2), ("Get-DnsClient", 4), ("Get-NetAdapterBinding", 3)],
    ),
)
def test_an_interface_may_be_gone_for_a_moment_while_its_settings_are_put_back(
    node: Node, command: str, call: int
):
    """A switch takes the IP from an adapter at any moment, and gives it to an interface of its own seconds later. The guard
    would make the network before the detached run does."""
    node.after(guard_away, remove_network("cbr0"))
    machine, network = node.machine, node.machine.network
    gone: list[Adapter] = []

    def leave() -> None:
        carrier = network.management()
        assert carrier is not None
        gone.append(carrier)
        network.adapters.remove(carrier)
        machine.after(2, lambda: network.adapters.append(carrier))

    machine.faults.before_command(
        "Start-ScheduledTask", lambda: machine.faults.before_command(command, leave, call=call)
    )

    assert node.change(STEP).states == {STEP: "ok"}
    assert gone
    assert node.look(STEP).states == {STEP: "ok"}
    assert network.holder("10.0.1.11") is not None
