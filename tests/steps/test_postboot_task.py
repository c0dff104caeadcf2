"""Run at each start of the machine: note the boot, restore what a restart removes."""

import json

import pytest
from winboot_lab.windows.door import MachineStopped
from winboot_lab.windows.network import Address

from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of

STEP = "postboot-task"
FOLDER = r"C:\ProgramData\winboot"
RECORD = rf"{FOLDER}\network.json"


def scripts(bench: Bench) -> list[str]:
    """The stored scripts of the startup."""
    return [
        rf"{FOLDER}\{one.name}" for one in bench.machine.files.list(FOLDER) if one.name.startswith("boot-")
    ]


def touch(bench: Bench) -> None:
    """Add a line to the stored script."""
    (path,) = scripts(bench)
    bench.machine.console.invoke("file.append", {"path": path, "content": b"# mine"})


def test_the_task_is_made_once(bench: Bench):
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}


def test_a_stored_script_that_was_touched_is_put_right(bench: Bench):
    bench.run(STEP)
    touch(bench)

    assert bench.run(STEP).states == {STEP: "changed"}


def test_each_start_of_the_machine_is_noted_with_the_id_that_a_run_reports(bench: Bench):
    bench.run(STEP)
    bench.reboot()

    assert bench.state("boot.json")["boot_id"] == bench.look().events[0]["boot_id"]


def test_the_task_shows_its_command_and_its_reason(bench: Bench):
    bench.run(STEP)
    task = bench.machine.tasks.find("boot", "\\winboot\\")

    (path,) = scripts(bench)
    assert task.actions[0].arguments == f'-NoLogo -NoProfile -NonInteractive -File "{path}" -Mode Boot'
    assert task.description.startswith("winboot: after each start of this machine")
    assert (task.author, task.priority, task.user) == ("winboot", 4, "SYSTEM")


@pytest.mark.parametrize("scope", ["MachinePolicy", "LocalMachine"])
def test_where_scripts_must_be_signed_a_loader_runs_the_stored_script(bench: Bench, scope: str):
    demand_signatures(bench, scope)
    bench.run(STEP)
    task = bench.machine.tasks.find("boot", "\\winboot\\")
    assert " -EncodedCommand " in task.actions[0].arguments

    bench.reboot()

    assert bench.state("boot.json")["boot_id"] == bench.look().events[0]["boot_id"]


def test_where_scripts_must_be_signed_a_touched_script_is_not_run(bench: Bench):
    demand_signatures(bench)
    bench.run(STEP)
    touch(bench)
    bench.reboot()

    assert bench.state("boot.json") is None


@pytest.mark.parametrize(("seconds", "code"), [(3, 0), (900, 66)])
def test_a_loader_waits_for_a_script_that_is_held_and_its_exit_code_says_that_it_gave_up(
    bench: Bench, seconds: float, code: int
):
    """65 would mean that the script was changed."""
    demand_signatures(bench)
    bench.run(STEP)
    (path,) = scripts(bench)
    bench.machine.faults.before_command(
        "file.read", lambda: bench.machine.faults.hold(path, seconds, share="None")
    )
    bench.machine.reboot(seconds=1)
    bench.machine.settle(200)
    bench.machine.tasks.wait_idle()

    assert bench.machine.faults.held == [(path, "None")]
    assert bench.machine.tasks.find("boot", "\\winboot\\").last_result == code
    assert (bench.state("boot.json") is None) == bool(code)


def test_a_signed_copy_of_the_script_stores_the_same_startup_script(bench: Bench):
    """The signature is a comment behind the text, and no part of what is compared."""
    bench.run(STEP)
    signed = (
        bench.text(STEP) + "\r\n# SIG # Begin signature block\r\n# bm8=\r\n# SIG # End signature block\r\n"
    )

    assert bench.run_text(signed).states == {STEP: "ok"}


def test_a_policy_that_comes_later_is_a_difference(bench: Bench):
    bench.run(STEP)
    demand_signatures(bench)
    bench.reboot()
    assert bench.state("boot.json") is None

    assert r"task \winboot\boot: command" in bench.look(STEP).differences(STEP)
    assert bench.run(STEP).states == {STEP: "changed"}


def test_a_script_with_letters_that_the_ansi_code_page_lacks_runs_as_it_was_written(bench: Bench):
    text = bench.text(STEP).replace(
        "switch ($Mode) {", "$script:Node.city = '\u0141\u00f3d\u017a'\nswitch ($Mode) {", 1
    )
    assert text != bench.text(STEP)
    assert bench.run_text(text).states == {STEP: "changed"}
    assert bench.run_text(text).states == {STEP: "ok"}
    bench.reboot()

    assert bench.state("boot.json")["boot_id"] == bench.look().events[0]["boot_id"]
    assert bench.file(scripts(bench)[0]).decode("utf-8-sig") == text


def demand_signatures(bench: Bench, scope: str = "MachinePolicy") -> None:
    keys = {
        "MachinePolicy": r"SOFTWARE\Policies\Microsoft\Windows\PowerShell",
        "LocalMachine": r"SOFTWARE\Microsoft\PowerShell\1\ShellIds\Microsoft.PowerShell",
    }
    key = rf"HKEY_LOCAL_MACHINE\{keys[scope]}"
    bench.machine.registry.create(key)
    bench.machine.registry.put(key, "ExecutionPolicy", "String", "AllSigned")


def test_a_route_that_does_not_outlive_the_restart_is_put_back(bench: Bench):
    """A cloud's metadata route is the usual one."""
    index = next(one.index for one in bench.machine.network.adapters if one.physical)
    route = {
        "DestinationPrefix": "169.254.169.254/32",
        "InterfaceIndex": index,
        "NextHop": "10.0.0.1",
        "RouteMetric": 25,
        "PolicyStore": "ActiveStore",
    }
    bench.machine.console.invoke("New-NetRoute", route)
    bench.run(STEP)
    bench.reboot()

    assert "169.254.169.254/32" in {route.prefix for route in bench.machine.network.routes}


def test_undo_removes_task_and_script(bench: Bench):
    bench.run(STEP)
    bench.undo(STEP)

    assert bench.look(STEP).states == {STEP: "would-change"}


@pytest.mark.parametrize("content", [None, b"", b"\0" * 300, b'{"ip":"10.0.0.21"}'])
def test_a_record_of_the_network_that_is_missing_or_cannot_be_read_is_missed(
    bench: Bench, content: bytes | None
) -> None:
    """A cut before it was written, or one that left its length alone."""
    bench.run(STEP)
    bench.machine.files.delete(RECORD)
    if content is not None:
        bench.write(RECORD, content)

    assert bench.look(STEP).states == {STEP: "would-change"}
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.state("network.json")["adapters"][0]["addresses"][0]["ip"] == "10.0.0.21"


def test_what_the_task_works_from_is_written_before_the_task(bench: Bench) -> None:
    bench.machine.faults.before_command("Register-ScheduledTask", bench.machine.power_off)
    with pytest.raises(MachineStopped):
        bench.run(STEP)
    bench.machine.power_on()

    assert bench.state("network.json")["adapters"]


def test_a_cut_between_the_new_script_and_its_task_leaves_the_older_pair_which_still_runs(
    bench: Bench,
) -> None:
    bench.run(STEP)
    # Another profile: its script is another text.
    bench.spec = a_spec_of("win-bridge")
    bench.machine.faults.before_command("Register-ScheduledTask", bench.machine.power_off)
    with pytest.raises(MachineStopped):
        bench.run(STEP)
    bench.machine.power_on()
    bench.machine.settle(5)

    assert bench.state("boot.json") is not None, "the older script ran"
    assert len(scripts(bench)) == 2
    assert bench.run(STEP).states == {STEP: "changed"}
    assert len(scripts(bench)) == 1


def test_an_address_that_an_operator_changed_stays_changed(bench: Bench) -> None:
    bench.run(STEP)
    network = bench.machine.network
    uplink = network.management()
    assert uplink is not None
    uplink.addresses = [a for a in uplink.addresses if a.version == 6]
    network.add_address(uplink, Address("10.0.0.77", 24))
    uplink.dns, uplink.category, uplink.mtu, uplink.ipv6 = ["10.9.9.9"], "Private", 1400, False
    (route,) = [r for r in network.routes if r.prefix == "0.0.0.0/0"]
    route.next_hop = "10.0.0.254"
    network.publish(uplink)
    bench.machine.settle(5)
    before = network.tree()
    bench.reboot()
    bench.machine.settle(300)

    assert network.tree() == before


def test_a_record_that_is_older_than_a_change_by_hand_is_renewed_by_the_next_run(bench: Bench) -> None:
    bench.run(STEP)
    uplink = bench.machine.network.management()
    assert uplink is not None
    uplink.dns = ["10.9.9.9"]
    bench.machine.network.publish(uplink)

    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    assert bench.state("network.json")["adapters"][0]["dns"] == ["10.9.9.9"]


def test_interfaces_of_one_mac_address_are_known_apart(bench: Bench) -> None:
    """A team's interfaces for two VLANs, and all of a switch: each is in the record with its own settings."""
    network = bench.machine.network
    uplink = network.management()
    assert uplink is not None
    other = network.plug_in_another("Team - VLAN 42", "10.42.0.11")
    other.mac = uplink.mac
    bench.run(STEP)

    assert bench.run(STEP).states == {STEP: "ok"}
    other.dns = ["10.9.9.9"]
    network.publish(other)
    told = bench.look(STEP)
    assert [one["what"] for one in told.step(STEP)["differences"]] == [
        "record of the network settings: Team - VLAN 42"
    ]


def test_a_lost_address_is_not_given_to_another_interface_of_the_same_mac_address(bench: Bench) -> None:
    """HNS took the adapter of the node's address and a cut came: the other interface of the team keeps what it has."""
    network = bench.machine.network
    uplink = network.management()
    assert uplink is not None
    other = network.plug_in_another("Ethernet - VLAN 42", "10.42.0.11")
    other.mac = uplink.mac
    bench.run(STEP)
    before = [(one.ip, one.prefix_length) for one in other.ipv4]
    uplink.up, uplink.addresses = False, []
    network.publish(uplink)

    bench.reboot()
    bench.machine.settle(300)

    assert [(one.ip, one.prefix_length) for one in other.ipv4] == before


@pytest.mark.parametrize(
    ("found", "wanted"),
    [("169.254.17.42", ["169.254.17.42", "10.0.0.21"]), ("10.0.0.88", ["10.0.0.88"])],
    ids=["none that others reach", "one that an administrator gave it"],
)
def test_what_a_switch_took_comes_back_unless_its_interface_has_a_good_address(
    bench: Bench, found: str, wanted: list[str]
) -> None:
    """A start finds the adapter below a switch; each write is in the journal."""
    bench.run(STEP)
    network = bench.machine.network
    uplink = network.management()
    assert uplink is not None
    behind = network.plug_in_another("vEthernet (Ethernet)", found, 16)
    behind.mac, behind.physical = uplink.mac, False
    uplink.switch, uplink.addresses = "a switch", []
    network.publish(uplink)

    bench.reboot()
    bench.machine.settle(300)

    assert [one.ip for one in behind.ipv4] == wanted
    journal = (bench.file(r"C:\ProgramData\winboot\journal.jsonl") or b"").decode()
    assert ("network-restored" in journal, "address 10.0.0.21" in journal) == (len(wanted) == 2,) * 2


def leave_a_task(bench: Bench, name: str) -> None:
    """A task of winboot or of another program, without a trigger."""
    task = bench.machine.tasks.find("boot", "\\winboot\\")
    assert task is not None
    bench.machine.tasks.register(type(task)(name, "\\winboot\\", task.actions, []))


def tasks(bench: Bench) -> set[str]:
    """The tasks in our folder."""
    return {one.name for one in bench.machine.tasks.all() if one.path == "\\winboot\\"}


def test_tasks_of_detached_runs_that_are_over_do_not_stay(bench: Bench) -> None:
    bench.run(STEP)
    leave_a_task(bench, "detached-pod-network-1234")

    bench.reboot()
    bench.machine.settle(30)
    # It goes last, after the watch over the services.
    bench.machine.tasks.wait_idle(60)

    assert tasks(bench) == {"boot", "guard"}


def test_an_undo_leaves_no_task_of_a_detached_run_and_all_of_others(bench: Bench) -> None:
    """Power cuts between the end of a run and the removal of its task, and of its rescue."""
    bench.run(STEP)
    for name in ("detached-pod-network-1234", "detached-pod-network-1234-rescue", "somebody's"):
        leave_a_task(bench, name)

    assert bench.undo(STEP).states == {STEP: "changed"}
    assert tasks(bench) == {"somebody's"}
    assert bench.undo(STEP).states == {STEP: "ok"}


def test_an_undo_leaves_no_task_of_a_run_that_a_restart_cut_off_before_a_start_could_note_it(
    bench: Bench,
) -> None:
    """The power went while the run wrote how it had ended, and the removal went on before the startup task."""
    bench.run(STEP)
    members = dict.fromkeys(("message", "hint", "step", "purpose", "guard", "told", "ended", "fence"), "")
    note = {**members, "id": "pod-network-1234", "state": "running", "boot_id": "another", "deadline": 2**62}
    bench.write(r"C:\ProgramData\winboot\detached\pod-network-1234.json", json.dumps(note).encode())
    for name in ("detached-pod-network-1234", "detached-pod-network-1234-rescue"):
        leave_a_task(bench, name)

    assert bench.undo(STEP).states == {STEP: "changed"}
    assert tasks(bench) == set()


def keep(bench: Bench, prefix: str, hop: str = "10.0.0.254", store: str = "") -> None:
    """Set a route on the adapter as an administrator; it is lasting unless `store` is the active store."""
    uplink = bench.machine.network.management()
    assert uplink is not None
    asked = {"DestinationPrefix": prefix, "InterfaceIndex": uplink.index, "NextHop": hop, "RouteMetric": 25}
    bench.machine.console.invoke("New-NetRoute", {**asked, **({"PolicyStore": store} if store else {})})


def kept(bench: Bench) -> list[str]:
    """The routes of the record, without the default one."""
    routes = bench.state("network.json")["adapters"][0]["routes"]
    return sorted(one["prefix"] for one in routes if one["prefix"] != "0.0.0.0/0")


def test_a_route_set_or_removed_by_hand_renews_the_record(bench: Bench) -> None:
    bench.run(STEP)
    keep(bench, "10.99.0.0/16")
    keep(bench, "fd99::/64", "fd00::1")

    assert list(bench.look(STEP).differences(STEP)) == ["record of the network settings: Ethernet"]
    assert [bench.run(STEP).states[STEP] for _ in range(2)] == ["changed", "ok"]
    assert kept(bench) == ["10.99.0.0/16", "fd99::/64"]

    bench.machine.console.invoke("Remove-NetRoute", {"DestinationPrefix": "10.99.0.0/16"})
    assert [bench.run(STEP).states[STEP] for _ in range(2)] == ["changed", "ok"]
    assert kept(bench) == ["fd99::/64"]


@pytest.mark.parametrize(
    ("prefix", "store"),
    [
        ("169.254.169.254/32", ""),
        ("169.254.169.254/32", "ActiveStore"),
        ("10.244.7.0/24", ""),
        ("10.99.0.0/16", "ActiveStore"),
    ],
)
def test_a_route_that_comes_and_goes_by_itself_does_not(bench: Bench, prefix: str, store: str) -> None:
    """A cloud's metadata service, another node's pods, what ends with the boot."""
    bench.run(STEP)
    keep(bench, prefix, store=store)

    assert bench.run(STEP).states == {STEP: "ok"}


def test_a_run_that_is_there_before_the_startup_task_keeps_the_routes_that_ended_with_the_start(
    bench: Bench,
) -> None:
    """The interface of flannel's overlay went with its switch; that is not a change by an administrator."""
    keep(bench, "10.99.0.0/16")
    bench.run(STEP)
    # Nor is the guard: to it, an interface that changes under its eyes is a switch that takes the adapter.
    for task in bench.machine.tasks.all():
        task.enabled = False
    bench.reboot()
    network = bench.machine.network
    uplink = network.management()
    assert uplink is not None
    uplink.guid = uplink.guid.replace(uplink.guid[1:9], "0F0F0F0F")
    network.publish(uplink)
    bench.machine.console.invoke("Remove-NetRoute", {"DestinationPrefix": "10.99.0.0/16"})

    assert bench.run(STEP).states == {STEP: "changed"}
    assert kept(bench) == ["10.99.0.0/16"]
    assert "10.99.0.0/16" in {one.prefix for one in network.routes}
    bench.machine.console.invoke("Remove-NetRoute", {"DestinationPrefix": "10.99.0.0/16"})
    assert [bench.run(STEP).states[STEP] for _ in range(2)] == ["changed", "ok"]
    assert kept(bench) == []


def test_work_of_a_start_that_the_startup_task_did_not_get_to_is_done_by_the_guard(bench: Bench):
    """HNS hung until Windows ended the task: the node needs no administrator."""
    bench.run(STEP)
    (boot,) = (task for task in bench.machine.tasks.all() if task.name == "boot")
    boot.enabled = False
    bench.reboot()
    bench.machine.settle(2700)
    boot.enabled = True

    assert bench.look(STEP).states == {STEP: "ok"}
