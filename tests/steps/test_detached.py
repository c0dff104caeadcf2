"""Work that may cut its own session: winboot stores it, starts it as a task of SYSTEM, guards it and reports its result."""

from collections.abc import Callable
from typing import Any

import pytest
from winboot_lab.windows.sockets import Listener

from tests.steps.bench import Bench, Told
from tests.steps.library import call
from tests.steps.ways import host_endpoint, second_gateway
from winboot.script import rendering as script
from winboot.script.library import library

GUARD = (
    "@{ node_ip = '10.0.0.21'; server_host = '10.0.0.10'; server_port = 6443; "
    "management_port = 5985; agent = ''; networks = @('cbr0') }"
)
FLAG = r"C:\ProgramData\done.txt"


def a_text(detached: str) -> str:
    """A script with one step, done when its flag file is there; `detached` is the work that makes it so."""
    step = (
        f"@{{ Name = 'bounce'; Needs = @(); Secrets = @(); Values = {{ $flag = '{FLAG}' }}\n"
        "Look = { if (-not [IO.File]::Exists($flag)) { New-Difference -What 'flag' -Is $null -Want 'there' } }\n"
        f"Change = {{ Start-DetachedRun -Seconds 300 -Guard {GUARD} }}\n"
        f"Detached = {{ {detached} }} }}"
    )
    frame = script._environment().get_template("_script.ps1.j2")
    node = {"node_ip": None, "server_host": "10.0.0.10", "server_port": 6443, "pod_cidrs": ["10.244.0.0/16"]}
    names = dict.fromkeys(("winboot", "node", "profile", "digest", "library"), "")
    given = {**names, "undoing": False, "modes": script.MODES, "source": node, "steps": script._Code(step)}
    return frame.render(given) + library().text


def go_on(bench: Bench, text: str, **more: Any) -> Told:
    """Run until it is no longer detached, as the controller does."""
    for _ in range(100):
        told = bench.run_text(text, **more)
        if told.ended != "detached":
            return told
        bench.machine.settle(10)
    raise AssertionError("it stays detached")


def test_a_detached_run_does_its_work_and_the_next_look_finds_it_done(bench: Bench):
    text = a_text("[IO.File]::WriteAllText($flag, [Environment]::UserName)")

    assert bench.run_text(text).ended == "detached"
    told = go_on(bench, text)

    assert told.step("bounce")["state"] == "ok"
    assert bench.file(FLAG) == b"SYSTEM"


def test_the_pipeline_reports_the_run_and_its_time(bench: Bench):
    event = bench.run_text(a_text("Start-Sleep -Seconds 60")).events[-2]

    assert event["event"] == "detached"
    assert event["step"] == "bounce"
    assert event["timeout_s"] == 300 + 720
    assert bench.state(rf"detached\{event['id']}.json")["state"] == "running"


def test_while_it_runs_a_second_pipeline_only_reports_that(bench: Bench):
    text = a_text("Start-Sleep -Seconds 60")
    first = bench.run_text(text).events[-2]
    second = bench.run_text(text)

    assert [event["event"] for event in second.events] == ["run", "detached", "done"]
    assert second.events[1]["id"] == first["id"]


def test_a_run_that_fails_is_reported_once_and_then_tried_again(bench: Bench):
    mended = r"[IO.File]::Exists('C:\ProgramData\mended')"
    text = a_text(f"if ({mended}) {{ [IO.File]::WriteAllText($flag, '') }} else {{ throw 'no such thing' }}")

    problem = go_on(bench, text).step("bounce")["problem"]
    assert problem["id"] == "DetachedFailed"
    assert "no such thing" in problem["message"]

    bench.machine.console.invoke("file.write", {"path": r"C:\ProgramData\mended", "content": b""})
    assert go_on(bench, text).step("bounce")["state"] == "ok"


def test_a_run_that_a_restart_cut_off_is_tried_again(bench: Bench):
    text = a_text("[void](Get-WindowsFeature -Name 'Containers'); [IO.File]::WriteAllText($flag, '')")
    bench.machine.faults.before_command("Get-WindowsFeature", bench.machine.power_off)
    first = bench.run_text(text).events[-2]
    bench.machine.tasks.wait_idle()
    bench.machine.power_on()
    assert bench.file(FLAG) is None
    told = bench.run_text(text).events[-2]

    assert told["event"] == "detached"
    assert told["id"] != first["id"]
    assert go_on(bench, text).step("bounce")["state"] == "ok"


def test_a_static_address_that_was_lost_on_the_way_is_put_back(bench: Bench):
    lose = (
        "Remove-NetIPAddress -IPAddress '10.0.0.21' -Confirm:$false; "
        "Remove-NetRoute -DestinationPrefix '0.0.0.0/0' -Confirm:$false; [IO.File]::WriteAllText($flag, '')"
    )
    text = a_text(lose)

    assert go_on(bench, text).step("bounce")["state"] == "ok"
    assert "0.0.0.0/0" in {route.prefix for route in bench.machine.network.routes}


@pytest.mark.parametrize("beside", [host_endpoint, second_gateway])
def test_another_adapters_default_route_does_not_stand_in_for_a_lost_one(
    bench: Bench, beside: Callable[[Bench], None]
):
    beside(bench)
    lose = (
        "Remove-NetRoute -DestinationPrefix '0.0.0.0/0' -NextHop '10.0.0.1' -Confirm:$false; "
        "function global:New-NetRoute { throw 'refused' }"
    )

    problem = go_on(bench, a_text(lose)).step("bounce")["problem"]

    assert "still lost: the default route of Ethernet" in problem["message"]


def test_an_address_that_windows_does_not_take_at_once_is_put_back_a_moment_later(bench: Bench):
    text = a_text(
        "Remove-NetIPAddress -IPAddress '10.0.0.21' -Confirm:$false; [IO.File]::WriteAllText($flag, '')"
    )
    told = bench.run_text(text)
    adapter = bench.machine.network.holder("10.0.0.21")
    assert told.ended == "detached" and adapter is not None
    adapter.settled = bench.machine.time.seconds + 15

    assert go_on(bench, text).step("bounce")["state"] == "ok"
    assert bench.machine.network.holder("10.0.0.21") is not None


WORK = "[IO.File]::WriteAllText($flag, ''); Start-Sleep -Seconds 20"
IDLE = "Start-Sleep -Seconds 20"
# An adapter for management in addition to that of the node's address.
MANAGEMENT = "10.50.0.11"


def listening(bench: Bench, *addresses: str, port: int = 5985) -> None:
    """Nothing listens on a port but on these addresses, from now on."""
    sockets = bench.machine.sockets
    (owner,) = {one.pid for one in sockets.listeners if one.port == port}
    sockets.listeners = [one for one in sockets.listeners if one.port != port]
    sockets.listeners += [Listener("tcp", address, port, owner) for address in addresses]


def test_a_machine_that_does_not_come_back_takes_the_change_back_and_says_what_was_lost(bench: Bench):
    text = a_text(IDLE)
    assert bench.run_text(text).ended == "detached"
    listening(bench)

    problem = go_on(bench, text).step("bounce")["problem"]

    assert "restored" in problem["message"]
    assert "the listener on 10.0.0.21, port 5985" in problem["message"]


CAME_IN: Any = [
    pytest.param({"facts": {"Addresses": [MANAGEMENT]}}, id="WinRM: the address that was dialled"),
    pytest.param(
        {"environment": {"SSH_CONNECTION": f"10.50.0.99 50123 {MANAGEMENT} 22"}}, id="SSH: what sshd says"
    ),
]


@pytest.mark.parametrize("came", CAME_IN)
def test_the_listener_asked_for_is_that_on_the_adapter_the_controller_came_in_by(bench: Bench, came: Any):
    """One on the node's own address says nothing of the other, nor does the address without a listener."""
    bench.machine.network.plug_in_another("Management", MANAGEMENT)
    bench.machine.manage_at(5985, 22)
    port = 22 if "environment" in came else 5985
    text = a_text(IDLE)
    assert bench.run_text(text, **came).ended == "detached"
    listening(bench, "10.0.0.21", port=port)

    problem = go_on(bench, text, **came).step("bounce")["problem"]

    assert (
        f"the listener on {MANAGEMENT}, port {port} was lost and the change taken back" in problem["message"]
    )


@pytest.mark.parametrize("came", CAME_IN)
def test_a_listener_that_others_use_is_ignored_by_the_watch(bench: Bench, came: Any):
    bench.machine.network.plug_in_another("Management", MANAGEMENT)
    bench.machine.manage_at(5985, 22)
    text = a_text(WORK)
    assert bench.run_text(text, **came).ended == "detached"
    listening(bench, MANAGEMENT, port=22 if "environment" in came else 5985)

    assert go_on(bench, text, **came).step("bounce")["state"] == "ok"


FORWARDED: Any = [
    pytest.param({"facts": {"Addresses": ["203.0.113.7"]}}, id="NAT"),
    pytest.param({"facts": {"Addresses": ["127.0.0.1"]}}, id="a tunnel"),
    pytest.param({}, id="a name that the controller cannot resolve"),
    pytest.param({"environment": {"SSH_CONNECTION": "127.0.0.1 50123 127.0.0.1 2222"}}, id="a relay"),
    pytest.param(
        {"environment": {"SSH_CONNECTION": "UNKNOWN 65535 UNKNOWN 65535"}}, id="sshd with no socket"
    ),
]


@pytest.mark.parametrize("came", FORWARDED)
def test_an_address_or_port_of_another_machine_is_not_requested(bench: Bench, came: Any):
    """The inventory's port is that of the forwarder: nothing of the machine listens there, before or after."""
    text = a_text(WORK).replace("= 5985", "= 15999")

    assert go_on(bench, text, **came).step("bounce")["state"] == "ok"


@pytest.mark.check
@pytest.mark.parametrize("came", FORWARDED)
def test_behind_a_forwarder_winrms_own_port_on_the_nodes_address_is_asked_for(bench: Bench, came: Any):
    text = a_text(IDLE).replace("= 5985", "= 15999")
    assert bench.run_text(text, **came).ended == "detached"
    listening(bench)

    problem = go_on(bench, text, **came).step("bounce")["problem"]

    assert "the listener on 10.0.0.21, port 5985 was lost and the change taken back" in problem["message"]


def test_a_run_that_ends_well_and_changes_nothing_is_not_started_without_end(bench: Bench):
    told = go_on(bench, a_text("Start-Sleep -Seconds 1"))

    assert told.step("bounce")["problem"]["id"] == "DetachedFailed"


def test_the_stored_script_does_not_stay_behind(bench: Bench):
    text = a_text("[IO.File]::WriteAllText($flag, '')")
    id_ = bench.run_text(text).events[-2]["id"]
    go_on(bench, text)

    assert bench.file(rf"C:\ProgramData\winboot\detached\{id_}.ps1") is None
    assert not bench.machine.console.invoke("Get-ScheduledTask", {"TaskPath": ["\\winboot\\"]}).objects


def test_a_join_that_just_ended_does_not_stop_an_undo(bench: Bench):
    text = a_text("[IO.File]::WriteAllText($flag, '')")
    go_on(bench, text)
    told = bench.run_text(text.replace("Assert-NoFailure\n", "$script:Run.Mode = 'Undo'; Assert-NoFailure\n"))

    assert told.step("bounce")["state"] == "ok"


def test_a_machine_without_an_adapter_of_its_own_has_no_vlan_to_keep(bench: Bench):
    uplink = bench.machine.network.management()
    assert uplink is not None
    uplink.physical = False

    told = go_on(bench, a_text("[IO.File]::WriteAllText($flag, '')"))

    assert told.step("bounce")["state"] == "ok"


def test_a_vlan_that_was_lost_on_the_way_is_put_back(bench: Bench):
    uplink = bench.machine.network.management()
    assert uplink is not None
    uplink.vlan = 7
    lose = (
        f"Set-NetAdapterAdvancedProperty -Name '{uplink.name}' -RegistryKeyword 'VlanID' -RegistryValue '0'"
    )

    go_on(bench, a_text(f"[IO.File]::WriteAllText($flag, ''); {lose}"))

    assert uplink.vlan == 7


def test_a_setting_that_windows_refuses_keeps_no_other_from_being_put_back(bench: Bench):
    """An IPv6 binding here; jumbo frames that a virtual adapter does not carry are another one."""
    uplink = bench.machine.network.management()
    assert uplink is not None
    uplink.category = "Private"
    lose = (
        f"Set-NetAdapterBinding -Name '{uplink.name}' -ComponentID 'ms_tcpip6' -Enabled $false; "
        "Get-NetConnectionProfile | Set-NetConnectionProfile -NetworkCategory 'Public'; "
        "Remove-NetRoute -DestinationPrefix '0.0.0.0/0' -Confirm:$false; "
        "function global:Set-NetAdapterBinding { throw 'refused' }"
    )

    told = go_on(bench, a_text(f"{lose}; [IO.File]::WriteAllText($flag, '')"))

    assert told.step("bounce")["state"] == "ok"
    assert (uplink.ipv6, uplink.category) == (False, "Private")
    assert "0.0.0.0/0" in {route.prefix for route in bench.machine.network.routes}
    journal = (bench.file(r"C:\ProgramData\winboot\journal.jsonl") or b"").decode()
    assert '"problem":"refused","what":"IPv6 True"' in journal


@pytest.mark.parametrize("text", ["{}", '"text"', "[]", "7", ""])
def test_an_invalid_note_ends_no_run(bench: Bench, text: str):
    """A hand, or another version, wrote it."""
    bench.write(r"C:\ProgramData\winboot\detached\bounce-x.json", text.encode())

    told = go_on(bench, a_text("[IO.File]::WriteAllText($flag, 'x')"))

    assert (told.step("bounce")["state"], told.ended) == ("ok", "complete")


def test_a_task_whose_own_note_is_held_says_so(bench: Bench):
    folder = r"C:\ProgramData\winboot\detached"
    bench.machine.faults.before_command("Start-ScheduledTask", lambda: hold_notes(bench, folder))
    bench.run_text(a_text("[IO.File]::WriteAllText($flag, 'x')"))
    bench.machine.settle(120)
    bench.machine.tasks.wait_idle()

    journal = (bench.file(r"C:\ProgramData\winboot\journal.jsonl") or b"").decode()
    assert '"detached-unread"' in journal
    assert "FileInUse" in journal
    assert bench.file(FLAG) is None


def hold_notes(bench: Bench, folder: str) -> None:
    """Open every note of a detached run without sharing."""
    for entry in bench.machine.files.list(folder):
        if entry.name.endswith(".json"):
            bench.machine.faults.hold(rf"{folder}\{entry.name}", 600, share="None")


def test_a_cut_run_whose_note_is_held_keeps_no_other_from_being_settled(bench: Bench):
    folder = r"C:\ProgramData\winboot\detached"
    bench.run_text(a_text("[IO.File]::WriteAllText($flag, 'x')"))
    (name,) = [entry.name for entry in bench.machine.files.list(folder) if entry.name.endswith(".json")]
    note = (bench.file(rf"{folder}\{name}") or b"").replace(b'"boot_id":"', b'"boot_id":"before-')
    bench.machine.settle(300)
    bench.machine.tasks.wait_idle()
    bench.write(rf"{folder}\a-first.json", note.replace(name[:-5].encode(), b"a-first"))
    bench.write(rf"{folder}\b-second.json", note.replace(name[:-5].encode(), b"b-second"))
    bench.machine.faults.hold(rf"{folder}\a-first.json", share="None")

    run = "$script:Run = New-Run -Mode Boot -Id r -Steps @() -Secrets @{} -Facts @{} -Text ''"
    call(bench, f"{run}; $script:Run.BootFailed = @(); Complete-InterruptedRun")

    assert b"a restart cut it off" in (bench.file(rf"{folder}\b-second.json") or b"")
    journal = (bench.file(r"C:\ProgramData\winboot\journal.jsonl") or b"").decode()
    assert "a-first.json is held open" in journal


def test_a_run_that_hangs_is_ended_by_its_rescue(bench: Bench):
    """Windows ends no task that was started on demand, whatever its limit (ITaskSettings::get_ExecutionTimeLimit)."""
    folder = r"C:\ProgramData\winboot\detached"
    bench.run_text(a_text("Start-Sleep -Seconds 100000; [IO.File]::WriteAllText($flag, 'x')"))
    (status,) = [e.name for e in bench.machine.files.list(folder) if e.name.endswith(".json")]
    bench.machine.settle(300 + 720 + 60 + 300)
    bench.machine.tasks.wait_idle()

    assert b'"failed"' in (bench.file(rf"{folder}\{status}") or b"")
    assert [task.name for task in bench.machine.tasks.all() if "detached" in task.name] == []
    bench.machine.settle(100000)
    assert bench.file(FLAG) is None


def test_a_status_that_is_held_when_a_run_ends_is_settled_by_the_rescue(bench: Bench):
    """Only the rescue can record how a run ended: the note does not stay at running, and the journal has the reason."""
    folder = r"C:\ProgramData\winboot\detached"
    bench.run_text(a_text("[IO.File]::WriteAllText($flag, 'x')"))
    (status,) = [e.name for e in bench.machine.files.list(folder) if e.name.endswith(".json")]
    bench.machine.faults.hold(rf"{folder}\{status}", 600, share="Read")
    bench.machine.settle(500)
    bench.machine.tasks.wait_idle()
    journal = (bench.file(r"C:\ProgramData\winboot\journal.jsonl") or b"").decode()
    assert "detached-unsaved" in journal
    assert status in journal
    bench.machine.settle(1000)
    bench.machine.tasks.wait_idle()

    assert b'"running"' not in (bench.file(rf"{folder}\{status}") or b"")
    assert [task.name for task in bench.machine.tasks.all() if "detached" in task.name] == []
