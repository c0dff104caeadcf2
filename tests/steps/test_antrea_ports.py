"""Open vSwitch's ports of an earlier start: removed before Antrea's agent works, and never while its network is there."""

from __future__ import annotations

from collections.abc import Callable

from winboot_lab.programs.antrea import DATABASE, NETWORK

from tests.lab.actions import remove_network
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.nodes import Node

STEP = "antrea-ports"
PORTS = "ports of Open vSwitch"


def test_another_network_has_no_such_step(bench: Bench) -> None:
    assert STEP not in bench.look(STEP).states


def test_a_machine_without_antrea_has_no_stale_ports() -> None:
    assert Bench(spec=a_spec_of("antrea")).look(STEP).states == {STEP: "ok"}


def test_ports_without_their_network_go_and_the_agent_makes_both_again(joined: Callable[[str], Node]) -> None:
    node = joined("antrea")
    assert node.look(STEP).states == {STEP: "ok"}
    node.after(remove_network(NETWORK))

    assert node.look(STEP).differences(STEP) == {PORTS: ("of an earlier start", None)}
    assert node.change(STEP).states == {STEP: "changed"}
    node.site.settle(60)

    assert node.file(DATABASE) is not None
    assert node.machine.hns.by_name(node.machine.hns.networks, NETWORK) is not None
    assert node.machine.services.need("kubelet").status == "Running"


def test_ports_go_by_the_daemon_where_it_is_a_service(joined: Callable[[str], Node]) -> None:
    """Its program is not in the lab: the step names the path that Antrea's scripts install."""
    node = joined("antrea").after(remove_network(NETWORK))
    node.machine.services.create("ovsdb-server", r"C:\openvswitch\usr\sbin\ovsdb-server.exe", start=2)
    node.machine.services.need("ovsdb-server").status = "Running"

    problem = node.change(STEP).problem(STEP)

    assert r"C:\openvswitch\usr\bin\ovs-vsctl.exe" in problem.message
    assert node.file(DATABASE) is not None
