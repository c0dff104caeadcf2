"""Run at each start of the machine: note the boot, put back what a restart takes away."""

import pytest

from tests.steps.bench import Bench

STEP = "postboot-task"


def test_the_task_is_made_once(bench: Bench):
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}


def test_a_stored_script_that_was_touched_is_put_right(bench: Bench):
    bench.run(STEP)
    bench.machine.console.invoke(
        "file.append", {"path": r"C:\ProgramData\winboot\boot.ps1", "content": b"# mine"}
    )

    assert bench.run(STEP).states == {STEP: "changed"}


def test_each_start_of_the_machine_is_noted_with_the_id_that_a_run_tells(bench: Bench):
    bench.run(STEP)
    bench.reboot()

    assert bench.state("boot.json")["boot_id"] == bench.look().events[0]["boot_id"]


def test_whoever_opens_the_task_sees_what_it_runs_and_why(bench: Bench):
    bench.run(STEP)
    task = bench.machine.tasks.find("boot", "\\winboot\\")

    assert task.actions[0].arguments == (
        r'-NoLogo -NoProfile -NonInteractive -File "C:\ProgramData\winboot\boot.ps1" -Mode Boot'
    )
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
    bench.machine.console.invoke(
        "file.append", {"path": r"C:\ProgramData\winboot\boot.ps1", "content": b"# mine"}
    )
    bench.reboot()

    assert bench.state("boot.json") is None


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
    assert bench.file(r"C:\ProgramData\winboot\boot.ps1").decode("utf-8-sig") == text


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
