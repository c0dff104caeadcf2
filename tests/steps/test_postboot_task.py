"""Run at each start of the machine: note the boot, put back what a restart takes away."""

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


def test_a_touched_script_is_not_run(bench: Bench):
    bench.run(STEP)
    bench.machine.console.invoke(
        "file.append", {"path": r"C:\ProgramData\winboot\boot.ps1", "content": b"# mine"}
    )
    bench.reboot()

    assert bench.state("boot.json") is None


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
