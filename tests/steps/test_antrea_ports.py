"""Open vSwitch's ports of an earlier start: removed before Antrea's agent works, and never while its network is there."""

from __future__ import annotations

from collections.abc import Callable

from winboot_lab.programs.antrea import DATABASE, NETWORK

from tests.lab.actions import remove_network
from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.library import call
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
    assert node.machine.services.need("kubelet").status == "Running"


def test_a_database_of_an_ordinary_user_stays(bench: Bench) -> None:
    """Every user may make C:\\openvswitch, and lead SYSTEM by a junction to another file of that name."""
    bench.machine.accounts.add("alice", administrator=False)
    alice = bench.machine.accounts.token("alice")
    bench.machine.files.make_directory(DATABASE.rpartition("\\")[0], alice)
    bench.machine.files.write(DATABASE, b"x", alice)
    bench.spec = a_spec_of("antrea")

    told = bench.run(STEP)

    assert bench.file(DATABASE) == b"x"
    assert f"file {DATABASE}: taken for absent" in told.differences(STEP)


def test_the_kubelet_runs_again_when_the_ports_stay(bench: Bench) -> None:
    parts = (
        "function Test-StalePort { $true }",
        "function Get-ServiceState { param([string]$Name) if ($Name -eq 'kubelet') { 'Running' } }",
        "function Stop-RunningService { $script:Did = @('stopped') }",
        "function Stop-AntreaPod { }",
        "function Start-CurrentService { $script:Did += 'started' }",
        "function Remove-File { throw 'held' }",
        "try { Clear-StalePort -Network 'n' } catch { $script:Did += $_.Exception.Message }",
        "$script:Did",
    )

    assert call(bench, "\n".join(parts)).objects == ["stopped", "started", "held"]


def test_the_owner_of_the_daemons_program_is_checked_before_the_kubelet_stops(bench: Bench) -> None:
    ended = call(
        bench,
        "function Test-StalePort { $true }\nfunction Get-ServiceState { 'Running' }\n"
        "function Stop-RunningService { 'stopped' }\nfunction Assert-OwnProgram { throw 'not ours' }\n"
        "Clear-StalePort -Network 'n'",
    )

    assert (ended.objects, ended.message) == ([], "not ours")
