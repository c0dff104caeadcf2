"""Services: their state, their errors, and what the manager does when they die."""

from __future__ import annotations

import pytest
from winboot_lab.windows.door import MachineStopped
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.programs_api import Died
from winboot_lab.windows.scm import AUTO, SERVICES, FailureActions, Service, unpack_failure_actions

from lab_windows.conftest import ask, one, refused, shown
from lab_windows.programs import Daemon, with_daemon

LINE = r'"C:\k\daemon.exe" --service'


@pytest.fixture
def daemon(machine: Machine) -> Daemon:
    """The test daemon."""
    return with_daemon(machine)


def make(machine: Machine, name: str = "d", line: str = LINE, **more: object) -> Service:
    """A service of the daemon."""
    return machine.services.create(name, line, **more)  # type: ignore[arg-type]


def code_of(machine: Machine, service: Service) -> int:
    """The Win32 error of a start."""
    with pytest.raises(Failure) as caught:
        machine.services.start(service)
    return caught.value.win32


def test_a_service_starts_runs_and_stops_in_good_order(machine: Machine, daemon: Daemon) -> None:
    """The program receives both requests; its process starts and ends."""
    ask(machine, "New-Service", Name="d", BinaryPathName=LINE)
    ask(machine, "Start-Service", Name=["d"])
    assert shown(one(machine, "Get-Service", Name=["d"]), "Status") == "Running"
    assert [p.name for p in machine.processes.named("daemon")] == ["daemon"]
    ask(machine, "Stop-Service", Name=["d"])
    assert (daemon.stopped, machine.processes.named("daemon")) == (1, [])


def test_a_program_without_service_support_fails_with_1053_after_thirty_seconds(
    machine: Machine, daemon: Daemon
) -> None:
    """The manager waits for it to connect, gives up and ends it."""
    service = make(machine, line=r"C:\k\daemon.exe --console")
    before = machine.time.seconds
    assert code_of(machine, service) == 1053
    assert machine.time.seconds - before == pytest.approx(30)
    assert machine.processes.named("daemon") == []
    assert [e.id for e in machine.events.query("System")[:2]] == [7000, 7009]


def test_the_errors_of_the_service_manager(machine: Machine, daemon: Daemon) -> None:
    """1056 runs already, 1058 disabled, 1062 does not run, 1068 dependency, 1075 no such dependency, 2 no file."""
    service = make(machine)
    machine.services.start(service)
    assert code_of(machine, service) == 1056
    machine.services.stop(service)
    with pytest.raises(Failure) as caught:
        machine.services.stop(service)
    assert caught.value.win32 == 1062
    machine.services.change(service, start=4)
    assert code_of(machine, service) == 1058
    assert code_of(machine, make(machine, "needs", depends=["d"])) == 1068
    assert code_of(machine, make(machine, "lost", depends=["nothing"])) == 1075
    assert code_of(machine, make(machine, "nofile", r"C:\k\none.exe")) == 2
    assert code_of(machine, make(machine, "text", r"C:\Windows\System32\drivers\etc\hosts")) == 193
    with pytest.raises(Failure) as caught:
        make(machine)
    assert caught.value.win32 == 1073


def test_dependencies_are_started_first_and_stopped_last(machine: Machine, daemon: Daemon) -> None:
    """Stopping the lower one needs -Force."""
    make(machine, "low")
    make(machine, "high", depends=["low"])
    ask(machine, "Start-Service", Name=["high"])
    assert machine.services.running("low")
    problem = refused(machine, "Stop-Service", Name=["low"])
    assert problem.id == "ServiceHasDependentServices,Microsoft.PowerShell.Commands.StopServiceCommand"
    ask(machine, "Stop-Service", Name=["low"], Force=True)
    assert not machine.services.running("high")


def test_a_missing_service_is_an_error_with_its_id(machine: Machine) -> None:
    """Unless a wildcard asked for it."""
    problem = refused(machine, "Get-Service", Name=["nope"])
    assert problem.id == "NoServiceFoundForGivenName,Microsoft.PowerShell.Commands.GetServiceCommand"
    assert ask(machine, "Get-Service", Name=["nope*"]) == []


def test_an_unquoted_path_with_spaces_runs_the_wrong_program(machine: Machine, daemon: Daemon) -> None:
    """C:\\k\\daemon.exe is found where C:\\k\\daemon two.exe was meant."""
    machine.files.copy(r"C:\k\daemon.exe", r"C:\k\daemon two.exe")
    service = make(machine, line=r"C:\k\daemon two.exe --service")
    machine.services.start(service)
    assert machine.processes.named("daemon")


def test_a_service_that_fails_at_its_start_stops_with_its_code(machine: Machine, daemon: Daemon) -> None:
    """Start-Service says that it failed."""
    make(machine, line=LINE + " --fail")
    problem = refused(machine, "Start-Service", Name=["d"])
    assert problem.id == "StartServiceFailed,Microsoft.PowerShell.Commands.StartServiceCommand"
    service = machine.services.need("d")
    assert (service.exit_code, service.specific_code) == (1066, 1)


def test_a_crashed_service_is_restarted_after_its_delay(machine: Machine, daemon: Daemon) -> None:
    """Delays are milliseconds; the last action repeats."""
    service = make(machine)
    machine.services.set_recovery(service, FailureActions(900, ((1, 5000), (1, 20000))))
    machine.services.start(service)
    daemon.death = Died(2)
    machine.settle(2)
    assert service.status == "Stopped"
    machine.settle(6)
    assert service.status == "Running"
    assert 7031 in [e.id for e in machine.events.query("System")]


def test_without_actions_a_crashed_service_stays_down(machine: Machine, daemon: Daemon) -> None:
    """Only the event log reports the crash."""
    service = make(machine)
    machine.services.start(service)
    daemon.death = Died(2)
    machine.settle(60)
    assert (service.status, service.exit_code) == ("Stopped", 1067)
    assert 7034 in [e.id for e in machine.events.query("System")]


def test_a_stop_with_an_error_only_counts_with_the_failure_flag(machine: Machine, daemon: Daemon) -> None:
    """FailureActionsOnNonCrashFailures."""
    service = make(machine)
    machine.services.set_recovery(service, FailureActions(900, ((1, 1000),)))
    machine.services.start(service)
    daemon.death = Died(1, 5)
    machine.settle(5)
    assert service.status == "Stopped"
    machine.services.set_recovery_flag(service, True)
    machine.services.start(service)
    daemon.death = Died(1, 5)
    machine.settle(5)
    assert service.status == "Running"


def test_failure_actions_are_packed_as_windows_packs_them() -> None:
    """A header of twenty bytes, then pairs."""
    actions = FailureActions(86400, ((1, 15000), (1, 15000), (0, 0)))
    raw = actions.packed()
    assert len(raw) == 44
    assert raw[12:20] == b"\x03\0\0\0\x14\0\0\0"
    assert unpack_failure_actions(raw) == actions


def test_a_fault_kills_a_service_so_many_times(machine: Machine, daemon: Daemon) -> None:
    """Then it lives."""
    service = make(machine)
    machine.services.set_recovery(service, FailureActions(0xFFFFFFFF, ((1, 1000),)))
    machine.faults.dies("d", times=2, after=0.5)
    machine.services.start(service)
    machine.settle(30)
    assert (service.status, service.failures) == ("Running", 2)


def test_a_raw_edit_of_the_image_path_waits_for_the_next_boot(machine: Machine, daemon: Daemon) -> None:
    """The manager keeps its own copy; Win32_Service.Change changes both."""
    make(machine)
    machine.registry.set(SERVICES + r"\d", "ImagePath", "ExpandString", r'"C:\k\daemon.exe" --service --new')
    machine.services.start(machine.services.need("d"))
    assert "--new" not in daemon.started[-1].process.command_line
    machine.reboot()
    machine.settle(60)
    machine.services.start(machine.services.need("d"))
    assert "--new" in daemon.started[-1].process.command_line


def test_the_environment_of_a_service_is_read_at_each_start(machine: Machine, daemon: Daemon) -> None:
    """So a proxy reaches one service without a reboot."""
    service = make(machine)
    machine.registry.set(
        service.key, "Environment", "MultiString", ["HTTPS_PROXY=http://p:3128", "path=C:\\x"]
    )
    machine.services.start(service)
    env = daemon.started[-1].env
    assert env["HTTPS_PROXY"] == "http://p:3128"
    assert [v for k, v in env.items() if k.lower() == "path"] == ["C:\\x"]


def test_a_deleted_service_that_is_held_is_only_marked(machine: Machine, daemon: Daemon) -> None:
    """1072 until the holder lets go."""
    service = make(machine)
    service.held_by.add("services.msc")
    machine.services.delete(service)
    with pytest.raises(Failure) as caught:
        make(machine)
    assert caught.value.win32 == 1072
    machine.services.release(service, "services.msc")
    make(machine)


def test_automatic_services_start_at_boot_in_order_and_delayed_ones_later(
    machine: Machine, daemon: Daemon
) -> None:
    """A service on demand stays down."""
    make(machine, "late", start=AUTO, delayed=True)
    make(machine, "second", start=AUTO, depends=["first"])
    make(machine, "first", start=AUTO)
    make(machine, "manual")
    machine.reboot()
    machine.settle(60)
    assert [s.process.command_line.count("--service") for s in daemon.started] == [1, 1]
    states = {n: machine.services.need(n).status for n in ("first", "second", "late", "manual")}
    assert states == {"first": "Running", "second": "Running", "late": "Stopped", "manual": "Stopped"}
    machine.settle(130)
    assert machine.services.running("late")


def test_change_by_cim_returns_numbers_instead_of_errors(machine: Machine, daemon: Daemon) -> None:
    """0 done, 21 wrong value, 22 wrong account."""
    make(machine)
    found = one(machine, "Get-CimInstance", ClassName="Win32_Service", Filter="Name='d'")
    assert (found["StartMode"], found["PathName"]) == ("Manual", LINE)

    def change(**arguments: str) -> int:
        answer = one(
            machine, "Invoke-CimMethod", InputObject=found, MethodName="Change", Arguments=dict(arguments)
        )
        return int(answer["ReturnValue"].value)

    assert change(StartMode="Automatic", PathName=LINE + " -v") == 0
    assert machine.registry.number(SERVICES + r"\d", "Start") == AUTO
    assert change(StartMode="Sometimes") == 21
    assert change(StartName="nobody") == 22


def test_set_service_changes_start_type_and_description(machine: Machine, daemon: Daemon) -> None:
    """5.1 knows Automatic, Manual and Disabled."""
    make(machine, start=AUTO, delayed=True)
    ask(machine, "Set-Service", Name="d", StartupType="Manual", Description="mine")
    key = SERVICES + r"\d"
    assert machine.registry.number(key, "Start") == 3
    assert machine.registry.text(key, "Description") == "mine"
    assert machine.registry.number(key, "DelayedAutostart") == 0


def test_a_service_controller_waits_for_a_status(machine: Machine, daemon: Daemon) -> None:
    """And gives up with a TimeoutException."""
    record = one(machine, "Get-Service", Name=["WinRM"])
    done = machine.invoke(
        "object.call", {"object": record, "member": "WaitForStatus", "arguments": ["Running", "00:00:05"]}
    )
    assert done.errors == []
    assert done.refreshed is not None
    late = machine.invoke(
        "object.call", {"object": record, "member": "WaitForStatus", "arguments": ["Stopped", "00:00:05"]}
    )
    assert late.errors[0].exception == "System.ServiceProcess.TimeoutException"


def test_a_reboot_while_a_service_starts_ends_the_start(machine: Machine, daemon: Daemon) -> None:
    """Nothing of it reaches into the new boot."""
    make(machine, line=r"C:\k\daemon.exe --console")
    session = machine.session()
    machine.after(10, machine.reboot)
    with pytest.raises(MachineStopped):
        session.invoke("Start-Service", {"Name": ["d"]})
    machine.settle(60)
    assert machine.services.need("d").status == "Stopped"
