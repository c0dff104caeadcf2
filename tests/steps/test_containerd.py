"""The service of containerd: as the profile says, running, and answering."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable

import pytest
from winboot_lab.windows.accounts import USERS
from winboot_lab.windows.acl import Rule

from tests.lab.actions import SERVICES, Hand, delete, program, regedit, replace, sc, write
from tests.steps.bench import Bench
from tests.steps.nodes import Node

STEP = "containerd"
TOML = r"C:\Program Files\containerd\config.toml"
# All of a node stands on it: with containerd these stop, and their own steps start them again.
ABOVE = ("kubelet", "flanneld", "kube-proxy")
PARTS = ("command line", "start type", "depends on", "account", "environment", "recovery", "state")


def test_a_bare_machine_has_no_such_service(bench: Bench):
    found = bench.look(STEP).differences(STEP)

    assert set(found) == {f"service containerd: {part}" for part in PARTS}
    assert found["service containerd: state"] == (None, "Running")
    assert (found["service containerd: command line"][1] or "").startswith(
        r'"C:\k\versions\containerd-2.3.6\containerd.exe"'
    ), "a path with spaces is quoted"


def test_it_is_registered_and_started_once_removed_and_made_again(node: Node):
    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.machine.services.find("containerd") is None
    assert set(node.look(STEP).differences(STEP)) == {f"service containerd: {part}" for part in PARTS}
    assert node.change(STEP, *ABOVE).states == {STEP: "changed", **dict.fromkeys(ABOVE, "changed")}
    assert node.change(STEP, *ABOVE).states == {STEP: "ok", **dict.fromkeys(ABOVE, "ok")}
    node.site.settle(60)
    assert node.differs == []


@pytest.mark.parametrize(
    ("reset", "actions"),
    [
        ("60", "restart/5000/restart/7000"),
        # What containerd, dockerd and kube-proxy register themselves: twice a restart, then no action.
        ("86400", "restart/15000/restart/15000//0"),
        pytest.param("INFINITE", "restart/15000", marks=pytest.mark.check),
        pytest.param("60", "/0/restart/15000", marks=pytest.mark.check),
        pytest.param("0", "", marks=pytest.mark.check),
    ],
)
def test_a_service_of_before_comes_back_as_it_was(node: Node, reset: str, actions: str):
    """An administrator had containerd in another place, started by hand."""
    node.undo(STEP)
    sc("create", "containerd", "binPath=", r"C:\tools\containerd.exe --mine", "start=", "demand")(node.site)
    sc("config", "containerd", "DisplayName=", "my containers")(node.site)
    sc("description", "containerd", "Runs my containers.")(node.site)
    sc("failure", "containerd", "reset=", reset, "actions=", actions)(node.site)
    sc("failureflag", "containerd", "1")(node.site)
    before = node.machine.services.recovery(node.machine.services.need("containerd"))

    assert node.change(STEP, *ABOVE).states[STEP] == "changed"
    node.undo(STEP)

    key = rf"{SERVICES}\containerd"
    assert node.registry(key, "ImagePath") == r"C:\tools\containerd.exe --mine"
    assert node.registry(key, "Start") == 3
    assert node.registry(key, "DisplayName") == "my containers"
    assert node.registry(key, "Description") == "Runs my containers."
    assert node.registry(key, "FailureActionsOnNonCrashFailures") == 1
    assert node.machine.services.recovery(node.machine.services.need("containerd")) == before


def test_under_nssm_a_stop_of_containerd_sends_no_ctrl_c_to_its_shims(
    joined: Callable[[str], Node],
):
    """kill_console of NSSM's process.cpp signals every process on the console; the shims hold the pods."""
    node = joined("own credential")
    parameters = rf"{SERVICES}\containerd\Parameters"
    folder = r"C:\k\versions\containerd-2.3.6"
    processes = node.machine.processes
    (containerd,) = processes.named("containerd")
    shim = processes.spawn(
        f'"{folder}\\containerd-shim-runhcs-v1.exe" -namespace k8s.io -id 1', parent=containerd.pid
    )
    assert node.registry(parameters, "AppStopMethodSkip") == 1

    program(node.site, r"C:\k\versions\nssm-2.24\nssm.exe", "restart", "containerd")
    node.site.settle(60)
    assert shim.pid in {one.pid for one in processes.all()}

    regedit(parameters, "AppStopMethodSkip", "DWord", 0)(node.site)
    (found,) = node.look(STEP).step(STEP)["differences"]
    assert (found["what"], found["is"], found["want"]) == ("service containerd: AppStopMethodSkip", "0", "1")
    assert found["disturbs"], "this one stop would still end the pods"


def test_a_description_and_values_of_others_stay(node: Node):
    node.machine.registry.set(rf"HKEY_LOCAL_MACHINE\{SERVICES}\containerd", "Monitoring", "String", "agent 7")
    sc("config", "containerd", "start=", "demand")(node.site)

    assert set(node.look(STEP).differences(STEP)) == {"service containerd: start type"}
    assert node.change(STEP).states == {STEP: "changed"}

    assert node.registry(rf"{SERVICES}\containerd", "Monitoring") == "agent 7"


@pytest.mark.parametrize(
    "hand",
    [
        delete(r"C:\k\versions\containerd-2.3.6\containerd.exe"),
        replace(TOML, "version = ", "version = 9"),
    ],
    ids=["its program is missing", "it does not understand its configuration"],
)
def test_a_service_that_does_not_start_is_reported_with_what_windows_said(node: Node, hand: Hand):
    node.undo(STEP)
    node.after(hand)

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "ServiceState"
    assert re.match(r"service containerd does not start \((its own )?exit code \d+\): ", problem.message)
    assert "log" in problem.hint


def test_one_that_runs_and_does_not_answer_is_reported_with_its_log(node: Node):
    write(r"C:\k\crictl.yaml", "runtime-endpoint: npipe:////./pipe/nobody\n")(node.site)
    sc("config", "containerd", "start=", "demand")(node.site)

    problem = node.change(STEP).problem(STEP)

    assert (problem.id, problem.message) == (
        "ContainerdSilent",
        "containerd does not answer after 60 seconds",
    )
    assert "log" in problem.hint


def test_a_service_marked_for_deletion_is_reported_with_the_code(node: Node):
    """A user holds it open in services.msc while it is deleted."""
    service = node.machine.services.need("containerd")
    service.held_by.add("services.msc")
    node.undo(STEP)

    problem = node.change(STEP).problem(STEP)

    assert problem.id == "ServiceControl"
    assert problem.message == "sc.exe config containerd ended with code 1072"
    assert "1072" in problem.hint


def test_a_service_of_another_account_stays_down_after_an_undo_and_is_named(node: Node):
    """Windows does not reveal its password, and as LocalSystem its program would have rights that it never had."""
    node.spoiled = True
    node.undo(STEP)
    node.machine.accounts.add("keeper", administrator=False, password="a password")
    sc("create", "containerd", "binPath=", r"C:\tools\containerd.exe", "start=", "auto")(node.site)
    sc("config", "containerd", "obj=", r".\keeper", "password=", "a password")(node.site)
    node.change(STEP, *ABOVE)
    assert node.registry(rf"{SERVICES}\containerd", "ObjectName") == "LocalSystem"

    told = node.undo(STEP).step(STEP)

    assert told["state"] == "changed"
    assert [(one["what"], one["want"]) for one in told["differences"]] == [
        ("service containerd: account", r".\keeper, with its password")
    ]
    assert node.registry(rf"{SERVICES}\containerd", "ImagePath") == r"C:\tools\containerd.exe"
    assert node.registry(rf"{SERVICES}\containerd", "Start") == 4
    assert node.machine.services.need("containerd").status == "Stopped"


def test_an_account_of_windows_comes_back_with_the_service_of_before(node: Node):
    node.undo(STEP)
    sc("create", "containerd", "binPath=", r"C:\tools\containerd.exe", "obj=", r"NT AUTHORITY\LocalService")(
        node.site
    )
    node.change(STEP, *ABOVE)
    assert node.registry(rf"{SERVICES}\containerd", "ObjectName") == "LocalSystem"

    node.undo(STEP)

    assert node.registry(rf"{SERVICES}\containerd", "ObjectName") == r"NT AUTHORITY\LocalService"


def test_a_pipe_that_another_account_serves_is_named_before_any_program_uses_it(node: Node):
    """Any user can be the first to make one of that name; kubelet and crictl would send that user the secrets of all pods."""
    node.undo(STEP)
    node.machine.accounts.add("alice", administrator=False)
    hers = node.machine.processes.spawn(
        r"C:\Windows\System32\cmd.exe", token=node.machine.accounts.token("alice")
    )
    node.machine.files.pipes["containerd-containerd"] = hers.pid

    assert r"pipe \\.\pipe\containerd-containerd" in node.look(STEP).differences(STEP)
    problem = node.change(STEP).problem(STEP)
    assert problem.id == "PipeTaken"
    assert node.machine.processes.named("containerd") == []

    node.machine.processes.kill(hers.pid)
    assert node.change(STEP, *ABOVE).states[STEP] == "changed"
    assert r"containerd-containerd" in node.machine.files.pipes


def _sid(text: str) -> bytes:
    """MS-DTYP 2.4.2.2."""
    _, revision, authority, *parts = text.split("-")
    numbers = struct.pack(f"<{len(parts)}I", *map(int, parts))
    return bytes([int(revision), len(parts)]) + int(authority).to_bytes(6, "big") + numbers


def _descriptor(*rules: tuple[int, str, int]) -> bytes:
    """A self-relative one of SYSTEM with these entries: type, SID, rights (MS-DTYP 2.4.6)."""
    owner = _sid("S-1-5-18")
    aces = b"".join(
        struct.pack("<BBHI", kind, 0, 8 + len(_sid(sid)), rights) + _sid(sid) for kind, sid, rights in rules
    )
    acl = struct.pack("<BBHHH", 2, 0, 8 + len(aces), len(rules), 0) + aces
    head = struct.pack("<BBHIIII", 1, 0, 0x8004, 20, 20, 0, 20 + len(owner))
    return head + owner + acl


# Windows' rights on all services: SYSTEM, administrators, users logged in on the machine, and services may read.
USUAL = (
    (0, "S-1-5-18", 0x2009D),
    (0, "S-1-5-32-544", 0xF01FF),
    (0, "S-1-5-4", 0x2008D),
    (0, "S-1-5-6", 0x2008D),
)


@pytest.mark.parametrize(
    ("rules", "who"),
    [
        (USUAL, None),
        # SERVICE_START and SERVICE_STOP, as for agents of monitoring.
        ((*USUAL, (0, "S-1-5-32-545", 0x30)), None),
        ((*USUAL, (1, "S-1-1-0", 0xF01FF)), None),
        ((*USUAL, (0, "S-1-5-32-545", 0x2)), "S-1-5-32-545"),
        ((*USUAL, (0, "S-1-5-11", 0x40000), (0, "S-1-1-0", 0x10000000)), "S-1-1-0, S-1-5-11"),
    ],
)
def test_other_accounts_that_may_change_a_service_are_named(
    node: Node, rules: tuple[tuple[int, str, int], ...], who: str | None
):
    """SYSTEM would run the account's text in the command line. winboot reports it only: the owner decides on these rights."""
    security = rf"HKEY_LOCAL_MACHINE\{SERVICES}\containerd\Security"
    node.machine.registry.set(security, "Security", "Binary", _descriptor(*rules))

    told = node.look(STEP).differences(STEP)

    assert told == ({"service containerd: other accounts that may change it": (who, None)} if who else {})
    assert node.look(STEP).states == {STEP: "ok"}


def _a_shim(node: Node, folder: str) -> str:
    """The path of a shim in this folder."""
    files, name = node.machine.files, "containerd-shim-runhcs-v1.exe"
    files.make_directory(folder)
    files.write(rf"{folder}\{name}", files.read(rf"C:\k\versions\containerd-2.3.6\{name}"))
    return rf"{folder}\{name}"


def _of_containerd(node: Node, version: str) -> int:
    """Programs of this version as winboot placed them, and a pod that its shim holds; the id of the shim's process."""
    shim = _a_shim(node, rf"C:\k\versions\containerd-{version}")
    placed = r"C:\ProgramData\winboot\placed.json"
    noted = json.loads(node.machine.files.read(placed))
    files = [{"destination": shim, "sha256": "0" * 64}]
    noted["artifacts"].append(
        {"name": "containerd", "version": version, "archive": version.ljust(64, "0"), "files": files}
    )
    write(placed, json.dumps(noted))(node.site)
    return node.machine.processes.spawn(f'"{shim}" -namespace k8s.io -id {version}').pid


def test_pods_of_another_major_end_before_it_starts_and_those_of_its_own_go_on(node: Node):
    """containerd 1.x cannot speak to shims of 2.x (containerd/containerd#11720), nor 2.x add to a 1.7 pod (#10888)."""
    own = _of_containerd(node, "2.2.1")
    shim = _a_shim(node, r"C:\docker")
    theirs = node.machine.processes.spawn(f'"{shim}" -namespace moby -id 9').pid
    assert node.look(STEP).differences(STEP) == {}
    former = _of_containerd(node, "1.7.29")

    (found,) = node.look(STEP).step(STEP)["differences"]
    assert (found["key"], found["is"], found["want"], found["disturbs"]) == (
        "containerd:shims",
        "1",
        None,
        True,
    )
    assert node.change(STEP, *ABOVE).states[STEP] == "changed"

    running = {one.pid for one in node.machine.processes.all()}
    assert (own in running, theirs in running, former in running) == (True, True, False)
    assert node.change(STEP, *ABOVE).states == {STEP: "ok", **dict.fromkeys(ABOVE, "ok")}


def test_a_pod_of_another_major_that_does_not_end_stops_the_step_before_the_switch(
    node: Node, monkeypatch: pytest.MonkeyPatch
):
    former = _of_containerd(node, "1.7.29")
    kill = node.machine.processes.kill
    monkeypatch.setattr(node.machine.processes, "kill", lambda pid: pid != former and kill(pid))

    assert node.change(STEP).problem(STEP).id == "PodLeft"


@pytest.mark.parametrize(
    ("key", "rule", "named"),
    [
        ("", Rule(USERS, 0x20019, inheritance=1), False),
        # KEY_SET_VALUE, KEY_CREATE_SUB_KEY, WRITE_DAC, GENERIC_ALL of winnt.h.
        ("", Rule(USERS, 0x2), True),
        (r"\Parameters", Rule(USERS, 0x4), True),
        (r"\Security", Rule(USERS, 0x40000), True),
        ("", Rule(USERS, 0x10000000), True),
        ("", Rule(USERS, 0x2, "Deny"), False),
        # For subkeys alone, and the key has no subkeys.
        (r"\Security", Rule(USERS, 0xF003F, inheritance=1, propagation=2), False),
        (r"\Parameters", USERS, True),
    ],
)
def test_other_accounts_that_may_write_the_registry_key_of_a_service_are_named(
    node: Node, key: str, rule: Rule | str, named: bool
):
    """The command line is a value there. winboot reports it only, as with the service's own rules."""
    path = rf"HKEY_LOCAL_MACHINE\{SERVICES}\containerd{key}"
    node.machine.registry.create(path)
    rules = node.machine.registry.acl(path)
    if isinstance(rule, str):
        rules.owner = rule
    else:
        rules.explicit.append(rule)
    node.machine.registry.set_acl(path, rules)

    told = node.look(STEP).differences(STEP)

    what = "service containerd: other accounts that may write its registry key"
    assert told == ({what: (USERS, None)} if named else {})
    assert node.look(STEP).states == {STEP: "ok"}
