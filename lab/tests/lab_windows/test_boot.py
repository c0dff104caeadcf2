"""Features, reboots, names, page files, and what faults do to them."""

from __future__ import annotations

import threading

import pytest
from winboot_lab.windows.clock import LabTime
from winboot_lab.windows.door import Interrupted, MachineStopped
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.registry import CBS_PENDING
from winboot_lab.windows.snapshot import diff

from lab_windows.conftest import ask, one, refused, shown, still


def restart(machine: Machine) -> None:
    """Down, and up again."""
    machine.reboot()
    machine.settle(60)
    assert machine.running


def test_the_containers_feature_needs_a_restart_and_brings_services(machine: Machine) -> None:
    """Pending until then; a second request asks for nothing new."""
    result = one(machine, "Install-WindowsFeature", Name=["Containers"])
    assert (shown(result, "RestartNeeded"), shown(result, "ExitCode")) == ("Yes", "SuccessRestartRequired")
    assert (
        shown(one(machine, "Get-WindowsOptionalFeature", Online=True, FeatureName="Containers"), "State")
        == "EnablePending"
    )
    assert machine.registry.exists(CBS_PENDING)
    assert machine.services.find("hns") is None
    restart(machine)
    assert shown(one(machine, "Get-WindowsFeature", Name=["Containers"]), "InstallState") == "Installed"
    assert machine.services.running("hns")
    assert machine.services.running("vmcompute")
    assert not machine.registry.exists(CBS_PENDING)
    assert shown(one(machine, "Install-WindowsFeature", Name=["Containers"]), "ExitCode") == "NoChangeNeeded"


def test_a_feature_without_payload_fails_with_its_code(machine: Machine) -> None:
    """0x800f081f, until a source is named."""
    feature = machine.features.find("Containers")
    assert feature is not None
    feature.payload = False
    found = one(machine, "Get-WindowsOptionalFeature", Online=True, FeatureName="Containers")
    assert shown(found, "State") == "DisabledWithPayloadRemoved"
    problem = refused(
        machine, "Enable-WindowsOptionalFeature", Online=True, FeatureName=["Containers"], NoRestart=True
    )
    assert (problem.hresult, problem.terminating) == (0x800F081F, True)
    ask(machine, "file.make-directory", path=r"C:\sxs")
    given = one(
        machine, "Enable-WindowsOptionalFeature", Online=True, FeatureName=["Containers"], Source=[r"C:\sxs"]
    )
    assert given["RestartNeeded"] is True


def test_an_unknown_feature_is_an_error_for_install_and_nothing_for_get(machine: Machine) -> None:
    """As Server Manager has it."""
    assert ask(machine, "Get-WindowsFeature", Name=["Nope"]) == []
    assert refused(machine, "Install-WindowsFeature", Name=["Nope"]).category == "InvalidArgument"


def test_a_rename_waits_for_the_restart(machine: Machine) -> None:
    """Until then the registry has both names."""
    result = machine.invoke("Rename-Computer", {"NewName": "win-worker-07", "Force": True})
    assert result.warnings != []
    info = one(machine, "computer.info")
    assert (info["name"], info["active_name"]) == ("WIN-WORKER-07", "WIN-1")
    assert machine.power.pending() == ["computer name"]
    restart(machine)
    assert (machine.name, machine.power.pending()) == ("WIN-WORKER-07", [])
    assert one(machine.session(), "environment.get", name="COMPUTERNAME") == "WIN-WORKER-07"


def test_a_reboot_ends_sessions_processes_mutexes_and_open_files(machine: Machine) -> None:
    """Everything volatile goes."""
    session = machine.session()
    one(session, "mutex.create", name=r"Global\winboot", initially_owned=True)
    one(session, "file.open", path=r"C:\open", mode="Create", access="Write", share="None")
    restart(machine)
    with pytest.raises(MachineStopped):
        session.checkpoint()
    with pytest.raises(MachineStopped):
        session.invoke("clock.now", {})
    assert machine.mutexes.holder(r"Global\winboot") is None
    assert ask(machine, "file.read", path=r"C:\open") == [b""]


def test_each_boot_writes_its_records(machine: Machine) -> None:
    """6005 each time; 41 and 6008 after the plug was pulled."""
    filter_ = {"LogName": "System", "ProviderName": "EventLog", "Id": 6005}
    first = one(machine, "Get-WinEvent", FilterHashtable=[filter_], MaxEvents=1)
    restart(machine)
    second = one(machine, "Get-WinEvent", FilterHashtable=[filter_], MaxEvents=1)
    assert second["RecordId"] > first["RecordId"]
    assert 6008 not in [e.id for e in machine.events.query("System")]
    machine.power_off()
    machine.power_on()
    assert {41, 6008} <= {e.id for e in machine.events.query("System")}


def test_the_newest_record_is_the_last_one_whatever_the_clock_says(machine: Machine) -> None:
    filter_ = {"LogName": "System", "ProviderName": "EventLog", "Id": 6005}
    first = one(machine, "Get-WinEvent", FilterHashtable=[filter_], MaxEvents=1)
    machine.faults.skew(-400 * 86400)
    restart(machine)
    second = one(machine, "Get-WinEvent", FilterHashtable=[filter_], MaxEvents=1)
    assert second["RecordId"] > first["RecordId"]


def test_last_boot_time_moves_with_the_clock(machine: Machine) -> None:
    """So it proves nothing; the event record does."""
    before = one(machine, "Get-CimInstance", ClassName="Win32_OperatingSystem")["LastBootUpTime"]
    machine.faults.skew(-3600)
    after = one(machine, "Get-CimInstance", ClassName="Win32_OperatingSystem")["LastBootUpTime"]
    assert (before - after).total_seconds() == pytest.approx(3600)


def test_restart_computer_leaves_the_session_a_moment(machine: Machine) -> None:
    """Its output still arrives."""
    session = machine.session()
    ask(session, "Restart-Computer", Force=True)
    session.checkpoint()
    with pytest.raises(MachineStopped):
        session.wait(10)
    machine.settle(60)
    assert machine.running


def test_a_reboot_in_mid_step_strikes_at_the_statement_asked_for(machine: Machine) -> None:
    """The session dies there, and the machine comes back."""
    session = machine.session()
    machine.faults.at_statement(3, machine.reboot)
    session.checkpoint()
    session.checkpoint()
    with pytest.raises(MachineStopped):
        session.checkpoint()
    machine.settle(60)
    assert machine.boot_count == 2


def test_a_fault_strikes_before_a_command(machine: Machine) -> None:
    """Here the second write of a file."""
    machine.faults.before_command("file.write", machine.power_off, call=2)
    ask(machine, "file.write", path=r"C:\a", content=b"")
    with pytest.raises(MachineStopped):
        machine.invoke("file.write", {"path": r"C:\b", "content": b""})
    assert not machine.running


def test_a_machine_that_never_comes_back(machine: Machine) -> None:
    """It stays down however long one waits."""
    machine.faults.stays_down()
    machine.reboot()
    machine.settle(3600)
    assert not machine.running
    assert not machine.reachable()


def test_a_machine_that_is_cut_off_runs_on(machine: Machine) -> None:
    """The network does not reach it, but its programs run."""
    machine.faults.unreachable()
    assert (machine.running, machine.reachable(), machine.network.online()) == (True, False, False)


def test_a_closed_session_is_interrupted(machine: Machine) -> None:
    """At its next statement."""
    session = machine.session()
    session.interrupt()
    with pytest.raises(Interrupted):
        session.checkpoint()


def test_a_page_file_of_fixed_size_is_used_after_the_restart(machine: Machine) -> None:
    """Automatic management has to be switched off first."""
    system = one(machine, "Get-CimInstance", ClassName="Win32_ComputerSystem")
    assert system["AutomaticManagedPagefile"] is True
    assert ask(machine, "Get-CimInstance", ClassName="Win32_PageFileSetting") == []
    ask(machine, "Set-CimInstance", InputObject=system, Property={"AutomaticManagedPagefile": False})
    setting = one(machine, "Get-CimInstance", ClassName="Win32_PageFileSetting")
    ask(machine, "Set-CimInstance", InputObject=setting, Property={"InitialSize": 8096, "MaximumSize": 8096})
    restart(machine)
    assert one(machine, "Get-CimInstance", ClassName="Win32_PageFileUsage")["AllocatedBaseSize"].value == 8096


def test_files_waiting_for_a_rename_are_renamed_at_boot(machine: Machine) -> None:
    """An empty name deletes."""
    key = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Session Manager"
    for name in "ab":
        ask(machine, "file.write", path=rf"C:\{name}", content=name.encode())
    lines: list[object] = [r"\??\C:\a", r"\??\C:\c", r"\??\C:\b", ""]
    ask(machine, "registry.set", key=key, name="PendingFileRenameOperations", kind="MultiString", value=lines)  # type: ignore[arg-type]
    restart(machine)
    there = [p for p in ("a", "b", "c") if machine.files.exists(rf"C:\{p}")]
    assert (there, machine.power.pending()) == (["c"], [])


def test_two_equal_machines_have_one_digest_and_a_change_shows_in_the_diff() -> None:
    """Times and ids do not count; what differs is named by its path."""
    first, second = Machine("WIN-1", time=still()), Machine("WIN-1", time=still())
    second.settle(500)
    assert first.digest() == second.digest()
    before = second.snapshot()
    ask(second, "file.make-directory", path=r"C:\k")
    ask(second, "file.write", path=r"C:\k\a.txt", content=b"hello")
    ask(second, "Set-Service", Name="wuauserv", StartupType="Disabled")
    assert first.digest() != second.digest()
    lines = diff(before, second.snapshot())
    assert r"+ files/C:\k\a.txt: 'hello'" not in lines
    assert any(line.startswith(r"+ files/C:\k\a.txt") for line in lines)
    assert r"registry/HKEY_LOCAL_MACHINE\SYSTEM\ControlSet001\Services\wuauserv/Start: 3 -> 4" in lines


def test_a_living_machine_comes_up_and_ticks_by_itself() -> None:
    """No actor works on it; in real time a reboot takes a moment."""
    machine = Machine("WIN-6", time=LabTime(scale=0.001))
    up = threading.Event()
    machine.watch(lambda signal: up.set() if signal == "up" else None)
    machine.live(pace=0.002)
    try:
        machine.reboot()
        assert up.wait(5)
    finally:
        machine.rest()
    assert machine.running
