"""Mutexes, tasks, programs, web requests, Defender, events, CIM, and the door itself."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from winboot_lab.engine.refusal import Refusal
from winboot_lab.language import commands
from winboot_lab.windows.call import CMDLETS
from winboot_lab.windows.clock import LabTime
from winboot_lab.windows.door import ALL_SETS, CommandSignature
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.processes import split_arguments
from winboot_lab.windows.session import Session
from winboot_lab.windows.sockets import serve_files

from lab_windows.conftest import ask, one, refused, shown, still
from lab_windows.programs import with_daemon
from tests.every import assert_none_wrong

# ---- mutexes -------------------------------------------------------------------------------------------


def test_a_mutex_is_held_across_sessions_until_it_is_released(machine: Machine) -> None:
    """Others wait, and get a timeout in lab time."""
    first, second = machine.session(), machine.session()
    held = one(first, "mutex.create", name=r"Global\winboot", initially_owned=True)
    assert (held["created_new"], held["owned"]) == (True, True)
    other = one(second, "mutex.create", name=r"Global\winboot")
    assert other["created_new"] is False
    before = machine.time.seconds
    assert one(second, "mutex.wait", handle=other["handle"], milliseconds=20_000) == "timeout"
    assert machine.time.seconds - before == pytest.approx(20)
    ask(first, "mutex.release", handle=held["handle"])
    assert one(second, "mutex.wait", handle=other["handle"], milliseconds=0) == "acquired"


def test_a_mutex_whose_owner_died_is_abandoned_once(machine: Machine) -> None:
    """The next session owns the mutex and learns that it was abandoned."""
    first, second = machine.session(), machine.session()
    one(first, "mutex.create", name=r"Global\winboot", initially_owned=True)
    mine = one(second, "mutex.create", name=r"Global\winboot")["handle"]
    first.close()
    assert one(second, "mutex.wait", handle=mine, milliseconds=0) == "abandoned"
    assert one(second, "mutex.wait", handle=mine, milliseconds=0) == "acquired"


def test_a_mutex_made_by_system_cannot_be_opened_by_an_administrator(machine: Machine) -> None:
    """UnauthorizedAccessException; the other way round it can."""
    one(machine, "mutex.create", name=r"Global\winboot")
    session = machine.session()
    assert (
        refused(session, "mutex.create", name=r"Global\winboot").exception
        == "System.UnauthorizedAccessException"
    )
    one(session, "mutex.create", name=r"Global\mine")
    assert one(machine, "mutex.create", name=r"Global\mine")["created_new"] is False


def test_only_the_owner_releases_a_mutex(machine: Machine) -> None:
    """ApplicationException otherwise."""
    handle = one(machine, "mutex.create", name="x")["handle"]
    assert refused(machine, "mutex.release", handle=handle).exception == "System.ApplicationException"


def test_a_backslash_in_the_name_of_a_mutex_looks_like_a_folder(machine: Machine) -> None:
    """Only the prefixes may have one."""
    problem = refused(machine, "mutex.create", name=r"winboot\lock")
    assert problem.exception == "System.IO.DirectoryNotFoundException"


# ---- tasks ---------------------------------------------------------------------------------------------


def a_task(machine: Machine, name: str, argument: str, **more: object) -> None:
    """Register a one-shot SYSTEM task."""
    action = one(machine, "New-ScheduledTaskAction", Execute="powershell.exe", Argument=argument)
    principal = one(machine, "New-ScheduledTaskPrincipal", UserId="S-1-5-18", RunLevel="Highest")
    settings = one(machine, "New-ScheduledTaskSettingsSet", ExecutionTimeLimit=timedelta(seconds=600))
    ask(
        machine,
        "Register-ScheduledTask",
        TaskName=name,
        TaskPath="\\winboot\\",
        Action=[action],
        Principal=principal,
        Settings=settings,
        Force=True,
        **more,  # type: ignore[arg-type]
    )


def test_a_system_task_really_runs_its_powershell(machine: Machine) -> None:
    """On a thread of its own, in a session of SYSTEM, outliving the session that started it."""
    seen: list[tuple[str, list[str], str]] = []
    release = threading.Event()

    def run(session: Session, words: list[str]) -> int:
        release.wait(5)
        seen.append((session.token.name, words, threading.current_thread().name))
        return 7

    machine.run_powershell = run
    session = machine.session()
    a_task(machine, "detached-1", "-NoProfile -EncodedCommand QQA=")
    ask(session, "Start-ScheduledTask", TaskName=["detached-1"], TaskPath=["\\winboot\\"])
    session.close()
    assert shown(one(machine, "Get-ScheduledTask", TaskName=["detached-1"]), "State") == "Running"
    release.set()
    machine.tasks.wait_idle()
    assert seen == [("NT AUTHORITY\\SYSTEM", ["-NoProfile", "-EncodedCommand", "QQA="], "task detached-1")]
    assert shown(one(machine, "Get-ScheduledTaskInfo", TaskName=["detached-1"]), "LastTaskResult") == "7"


@pytest.mark.parametrize(("on_demand", "result"), [(False, "267014"), (True, "0")])
def test_the_limit_of_a_task_holds_for_a_start_by_a_trigger_alone(
    machine: Machine, on_demand: bool, result: str
) -> None:
    """ITaskSettings::get_ExecutionTimeLimit; 267014 is SCHED_S_TASK_TERMINATED."""

    def run(session: Session, words: list[str]) -> int:
        session.wait(700)
        return 0

    machine.run_powershell = run
    a_task(machine, "t", "-x")
    if on_demand:
        ask(machine, "Start-ScheduledTask", TaskName=["t"], TaskPath=["\\winboot\\"])
    else:
        found = machine.tasks.find("t", "\\winboot\\")
        assert found is not None
        machine.tasks.start(found)
    machine.settle(800)
    machine.tasks.wait_idle()

    assert shown(one(machine, "Get-ScheduledTaskInfo", TaskName=["t"]), "LastTaskResult") == result


def test_a_poll_loop_does_not_outrun_a_busy_task(machine: Machine) -> None:
    """Lab time stands while the task computes, and jumps while all wait."""
    machine.time.scale = 0
    began = threading.Event()

    def run(session: Session, words: list[str]) -> int:
        began.set()
        session.wait(100)
        session.invoke("file.write", {"path": r"C:\done", "content": b""})
        return 0

    machine.run_powershell = run
    a_task(machine, "t", "-x")
    session = machine.session()
    with session.acting():
        ask(session, "Start-ScheduledTask", TaskName=["t"])
        start = machine.time.seconds
        while not session.invoke("file.stat", {"path": r"C:\done"}).objects:
            session.wait(3)
    machine.tasks.wait_idle()
    assert began.is_set()
    assert machine.time.seconds - start == pytest.approx(102, abs=3)


def test_a_task_dies_with_the_machine_and_a_startup_task_runs_after_it(machine: Machine) -> None:
    """The one-shot task is not started again."""
    started: list[str] = []

    def run(session: Session, words: list[str]) -> int:
        started.append(words[0])
        session.wait(10_000)
        return 0

    machine.run_powershell = run
    a_task(machine, "once", "-once")
    a_task(machine, "boot", "-boot", Trigger=[one(machine, "New-ScheduledTaskTrigger", AtStartup=True)])
    ask(machine, "Start-ScheduledTask", TaskName=["once"])
    machine.settle(5)
    machine.reboot()
    machine.settle(100)
    assert started == ["-once", "-boot"]
    assert shown(one(machine, "Get-ScheduledTask", TaskName=["once"]), "State") == "Ready"
    machine.power_off()
    machine.tasks.wait_idle()


def test_a_refusal_inside_a_task_is_kept_for_the_user_of_the_lab(machine: Machine) -> None:
    """No script sees it, but it must not get lost."""

    def run(session: Session, words: list[str]) -> int:
        raise Refusal("command", "Get-Moon")

    machine.run_powershell = run
    a_task(machine, "t", "-x")
    ask(machine, "Start-ScheduledTask", TaskName=["t"])
    machine.tasks.wait_idle()
    assert [r.name for r in machine.refusals] == ["Get-Moon"]


def test_a_task_is_only_replaced_with_force_and_a_missing_one_is_an_error(machine: Machine) -> None:
    """0x800700b7; Get-ScheduledTask says CmdletizationQuery_NotFound."""
    a_task(machine, "t", "-x")
    action = one(machine, "New-ScheduledTaskAction", Execute="powershell.exe")
    problem = refused(
        machine,
        "Register-ScheduledTask",
        TaskName="t",
        TaskPath="\\winboot\\",
        Action=[action],
        User="SYSTEM",
    )
    assert problem.id == "HRESULT 0x800700b7,Register-ScheduledTask"
    ask(machine, "Unregister-ScheduledTask", TaskName=["t"], TaskPath=["\\winboot\\"])
    assert refused(machine, "Get-ScheduledTask", TaskName=["t"]).category == "ObjectNotFound"


# ---- programs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        (r'"C:\a b\x.exe" one "two words" thr\"ee', [r"C:\a b\x.exe", "one", "two words", 'thr"ee']),
        (r'x.exe "C:\k\\" end', ["x.exe", "C:\\k\\", "end"]),
        (r'x.exe "C:\k\" end', ["x.exe", 'C:\\k" end']),
        ('x.exe "" a""b "say ""hi"""', ["x.exe", "", "ab", 'say "hi"']),
    ],
)
def test_command_lines_are_split_by_the_rules_of_windows(line: str, argv: list[str]) -> None:
    """CommandLineToArgvW."""
    assert split_arguments(line) == argv


def test_a_console_program_runs_to_its_end(machine: Machine) -> None:
    """Output, error output and exit code come back."""
    with_daemon(machine)
    ended = one(machine, "program.run", command_line=r'C:\k\echo.exe a "b c" --exit 3', stdin=b"in")
    assert (ended["exit_code"], ended["stdout"], ended["stderr"]) == (3, b"a\nb c\n--exit\n3", b"in")


def test_what_is_no_program_cannot_be_started(machine: Machine) -> None:
    """Win32 errors 2 and 193; a stand-in the lab has no program for is a refusal."""
    assert refused(machine, "program.run", command_line=r"C:\none.exe").hresult == 0x80070002
    assert (
        refused(machine, "program.run", command_line=r"C:\Windows\System32\drivers\etc\hosts").hresult
        == 0x800700C1
    )
    with pytest.raises(Refusal, match="tar"):
        machine.invoke("program.run", {"command_line": r"C:\Windows\System32\tar.exe -h"})


def test_a_program_is_found_in_the_path(machine: Machine) -> None:
    """With or without its ending."""
    session = machine.session()
    assert one(session, "program.find", name="sc.exe").lower() == r"c:\windows\system32\sc.exe"
    assert one(session, "program.find", name="tar").lower() == r"c:\windows\system32\tar.exe"
    assert ask(session, "program.find", name="kubelet") == []


def test_children_of_a_session_die_with_it(machine: Machine) -> None:
    """Unless WMI made them."""
    with_daemon(machine)
    session = machine.session()
    ask(session, "program.start", command_line=r"C:\k\daemon.exe --a")
    made = one(
        session,
        "Invoke-CimMethod",
        ClassName="Win32_Process",
        MethodName="Create",
        Arguments={"CommandLine": r"C:\k\daemon.exe --b"},
    )
    assert made["ReturnValue"].value == 0
    session.close()
    assert [p.command_line for p in machine.processes.named("daemon")] == [r"C:\k\daemon.exe --b"]


def test_a_missing_process_is_an_error_with_its_id(machine: Machine) -> None:
    """By id and by name."""
    problem = refused(machine, "Get-Process", Id=[99999])
    assert problem.id == "NoProcessFoundForGivenId,Microsoft.PowerShell.Commands.GetProcessCommand"
    assert refused(machine, "Get-Process", Name=["kubelet"]).category == "ObjectNotFound"


# ---- network from inside -------------------------------------------------------------------------------


def test_a_mirror_answers_with_ranges_and_faults(machine: Machine) -> None:
    """Whole, from an offset, broken off, and damaged."""
    url = "http://mirror.example/a.tgz"
    machine.world.serve("mirror.example", 80, serve_files({"/a.tgz": b"0123456789"}))
    whole = one(machine, "http.get", url=url)
    assert (whole["status"], whole["content"], whole["complete"]) == (200, b"0123456789", True)
    rest = one(machine, "http.get", url=url, headers={"Range": "bytes=4-"})
    assert (rest["status"], rest["content"], rest["headers"]["Content-Range"]) == (
        206,
        b"456789",
        "bytes 4-9/10",
    )
    machine.world.break_after(url, 3)
    cut = one(machine, "http.get", url=url)
    assert (cut["content"], cut["complete"]) == (b"012", False)
    machine.world.damage(url, b"evil")
    assert one(machine, "http.get", url=url)["content"] == b"evil"
    assert one(machine, "http.get", url="http://mirror.example/none")["status"] == 404


def test_what_is_not_there_is_refused_silent_or_unknown(machine: Machine) -> None:
    """10061, 10060 after its time, 11001, and web requests with their status."""
    machine.world.listen("10.0.0.10", 6443)
    assert one(machine, "socket.connect", host="10.0.0.10", port=6443)["remote_address"] == "10.0.0.10"
    assert refused(machine, "socket.connect", host="10.0.0.10", port=1).target == 10061
    before = machine.time.seconds
    assert refused(machine, "socket.connect", host="10.0.0.77", port=1).target == 10060
    assert machine.time.seconds - before == pytest.approx(21)
    late = refused(machine, "socket.connect", host="10.0.0.77", port=1, milliseconds=5000)
    assert late.exception == "System.TimeoutException"
    assert refused(machine, "dns.resolve", name="nowhere.example").target == 11001
    assert refused(machine, "http.get", url="http://nowhere.example/").target == "NameResolutionFailure"


def test_without_a_route_the_network_is_unreachable(machine: Machine) -> None:
    """10051, and no name resolves."""
    machine.world.listen("10.9.0.10", 6443)
    machine.network.routes.clear()
    assert refused(machine, "socket.connect", host="10.9.0.10", port=6443).target == 10051


def test_a_server_certificate_has_to_be_trusted(machine: Machine) -> None:
    """By the machine's Root store."""
    pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
    machine.world.serve("mirror.example", 443, serve_files({"/": b"ok"}), issuer=pem)
    assert refused(machine, "http.get", url="https://mirror.example/").target == "TrustFailure"
    ask(machine, "certificate.add", store=r"LocalMachine\Root", raw=b"0\x00")
    assert one(machine, "http.get", url="https://mirror.example/")["content"] == b"ok"


def test_some_hosts_are_only_reached_through_the_proxy(machine: Machine) -> None:
    """And the proxy has to be one."""
    machine.world.serve("far.example", 80, serve_files({"/": b"far"}))
    machine.world.behind_proxy.add("far.example")
    machine.world.proxy("proxy.corp.example", 3128)
    assert refused(machine, "http.get", url="http://far.example/").target == "ConnectFailure"
    through = one(machine, "http.get", url="http://far.example/", proxy="http://proxy.corp.example:3128")
    assert through["content"] == b"far"


def test_a_proxy_has_to_be_an_http_one(machine: Machine) -> None:
    """The .NET Framework throws before it resolves the proxy's name."""
    problem = refused(machine, "http.get", url="http://far.example/", proxy="https://nowhere.example:3128")
    assert problem.exception == "System.NotSupportedException"
    assert "does not support proxies with the https scheme" in problem.message


# ---- Defender, events, CIM -----------------------------------------------------------------------------


def test_exclusions_are_added_read_and_removed(machine: Machine) -> None:
    """An empty list is null."""
    assert one(machine, "Get-MpPreference")["ExclusionProcess"] is None
    ask(machine, "Add-MpPreference", ExclusionProcess=[r"C:\k\kubelet.exe"])
    assert one(machine, "Get-MpPreference")["ExclusionProcess"] == [r"C:\k\kubelet.exe"]
    ask(machine, "Remove-MpPreference", ExclusionProcess=[r"C:\K\kubelet.exe"])
    assert one(machine, "Get-MpPreference")["ExclusionProcess"] is None


def test_tamper_protection_swallows_changes(machine: Machine) -> None:
    """Without a word."""
    machine.defender.state.deaf = True
    ask(machine, "Add-MpPreference", ExclusionPath=[r"C:\k"])
    assert one(machine, "Get-MpPreference")["ExclusionPath"] is None


def test_without_defender_its_cmdlets_fail(machine: Machine) -> None:
    """0x800106ba."""
    machine.features.remove_now("Windows-Defender")
    assert refused(machine, "Get-MpPreference").hresult == 0x800106BA


def test_events_are_found_by_what_the_table_says(machine: Machine) -> None:
    """And their absence is an error."""
    ask(machine, "New-EventLog", LogName="Application", Source=["winboot"])
    ask(machine, "Write-EventLog", LogName="Application", Source="winboot", EventId=7, Message="hello")
    found = one(
        machine, "Get-WinEvent", FilterHashtable=[{"LogName": "Application", "ProviderName": "winboot"}]
    )
    assert (found["Message"], found["Id"]) == ("hello", 7)
    missing = refused(machine, "Get-WinEvent", FilterHashtable=[{"LogName": "Application", "Id": 8}])
    assert missing.id == "NoMatchingEventsFound,Microsoft.PowerShell.Commands.GetWinEventCommand"
    with pytest.raises(Refusal, match="Colour"):
        machine.invoke("Get-WinEvent", {"FilterHashtable": [{"Colour": 1}]})


def test_cim_filters_compare_like_wql(machine: Machine) -> None:
    """LIKE, AND, numbers and parentheses."""
    query = "SELECT Name FROM Win32_Service WHERE (Name LIKE 'Win%' AND State = 'Running') OR Name = 'RpcSs'"
    found = ask(machine, "Get-CimInstance", Query=query)
    assert [r["Name"] for r in found] == ["RpcSs", "WinDefend", "Winmgmt", "WinRM"]
    assert found[0]["State"] is None


def test_unknown_classes_namespaces_and_properties_are_refused(machine: Machine) -> None:
    """By name."""
    for parameters, word in (
        ({"ClassName": "Win32_Moon"}, "Win32_Moon"),
        ({"ClassName": "Win32_Service", "Namespace": "root/moon"}, "root/moon"),
        ({"ClassName": "Win32_Service", "Filter": "Colour = 'red'"}, "Colour"),
        ({"ClassName": "Win32_Service", "Property": ["Colour"]}, "Colour"),
    ):
        with pytest.raises(Refusal, match=word):
            machine.invoke("Get-CimInstance", parameters)  # type: ignore[arg-type]


def test_the_machine_knows_its_uuid_and_model(machine: Machine) -> None:
    """The same name always makes the same machine."""
    uuid = one(machine, "Get-CimInstance", ClassName="Win32_ComputerSystemProduct")["UUID"]
    assert uuid == Machine("WIN-1", time=still()).hardware.uuid
    assert one(machine, "Get-CimInstance", ClassName="Win32_ComputerSystem")["Model"] == "Virtual Machine"


# ---- the door ------------------------------------------------------------------------------------------


def test_unknown_commands_and_parameters_are_refused_by_name(machine: Machine) -> None:
    """Never answered by default."""
    for command, parameters, word in (
        ("Get-Moon", {}, "Get-Moon"),
        ("file.paint", {}, "file.paint"),
        ("file.read", {"path": r"C:\x", "colour": 1}, "colour"),
        ("Get-Service", {"ComputerName": "x"}, "ComputerName"),
    ):
        with pytest.raises(Refusal, match=word):
            machine.invoke(command, parameters)


def undocumented(name: str, signature: CommandSignature) -> list[str]:
    """What the documentation's data has not of the cmdlet: name and module, or parameters."""
    facts = commands.find(name)
    if facts is None or (signature.name, signature.module) != (facts.name, facts.module):
        return [f"documented: {facts and (facts.name, facts.module)}"]
    known = {one.name: facts.parameter(one.name) for one in signature.parameters}
    return [parameter for parameter, found in known.items() if found is None or found[0] != parameter]


def test_a_cmdlet_declares_only_parameters_that_windows_has() -> None:
    """Held against the documentation's data."""
    assert_none_wrong({name: undocumented(name, one.signature) for name, one in CMDLETS.items()})


def test_waiting_costs_real_time_by_the_scale() -> None:
    """A minute at a thousandth is over at once, and the clock has moved on."""
    machine = Machine(time=LabTime(scale=0.001))
    before = machine.now()
    machine.session().clock.sleep(60)
    assert (machine.now() - before).total_seconds() == pytest.approx(60, abs=1)


def test_the_default_set_of_a_cmdlet_is_one_of_its_sets() -> None:
    """Else the binder could not choose where only common parameters are given."""
    signatures = {name: one.signature for name, one in CMDLETS.items()}
    sets = {
        name: {s.name for p in one.parameters for s in p.sets} - {ALL_SETS}
        for name, one in signatures.items()
    }

    assert any(sets.values())
    assert [name for name, own in sets.items() if own and signatures[name].default_set not in own] == []
