"""Give the machine its name before anything remembers the old one."""

from winboot_lab.engines import run_script

from tests.steps.bench import Bench
from winboot.script.rendering import helpers

STEP = "computer-name"


def test_a_rename_takes_a_restart_and_is_then_done(bench: Bench):
    told = bench.run(STEP)

    assert told.states == {STEP: "changed"}
    assert told.ended == "reboot"
    bench.reboot()
    again = bench.run(STEP)
    assert again.states == {STEP: "ok"}
    assert again.events[0]["computer_name"] == "WIN-A1"


def test_the_boot_id_changes_with_the_restart_and_with_nothing_else(bench: Bench):
    first, second = bench.look().events[0], bench.look().events[0]
    bench.reboot()
    third = bench.look().events[0]

    assert first["boot_id"] == second["boot_id"]
    assert third["boot_id"] != first["boot_id"]
    assert len(third["boot_id"]) == 36


def test_a_machine_whose_event_log_was_cleared_still_names_its_boot(bench: Bench):
    """The log is cleared when a golden image is made, and it wraps; the startup task need not be there yet."""
    bench.machine.events.clear("System")

    first, second = bench.look().events[0], bench.look().events[0]
    bench.reboot()
    bench.machine.events.clear("System")
    third = bench.look().events[0]

    assert len(first["boot_id"]) == len(third["boot_id"]) == 36
    assert first["boot_id"] == second["boot_id"] != third["boot_id"]


def test_a_clock_that_is_set_does_not_look_like_a_restart(bench: Bench):
    bench.machine.events.clear("System")
    first = bench.look().events[0]

    bench.machine.faults.skew(3 * 3600)

    assert bench.look().events[0]["boot_id"] == first["boot_id"]


def test_the_boot_id_that_the_startup_task_noted_holds_when_the_log_is_cleared_later(bench: Bench):
    bench.run("postboot-task")
    bench.reboot()
    before = bench.look().events[0]
    bench.machine.events.clear("System")

    assert bench.look().events[0]["boot_id"] == before["boot_id"]


def test_a_note_of_an_earlier_boot_is_not_taken_for_this_one(bench: Bench):
    """The startup task may be disabled, and then the note stays as it was."""
    bench.run("postboot-task")
    bench.reboot()
    before = bench.look().events[0]
    task = bench.machine.tasks.find("boot", "\\winboot\\")
    assert task is not None
    task.enabled = False
    bench.reboot()
    bench.machine.events.clear("System")

    assert bench.look().events[0]["boot_id"] not in ("", before["boot_id"])


def test_the_restart_helper_restarts_a_machine_whose_event_log_was_cleared(bench: Bench):
    bench.machine.events.clear("System")
    named = bench.look().events[0]["boot_id"]
    session = bench.machine.session("Administrator")

    ended = run_script(session, helpers().restart, {"Reason": "test", "BootId": named}, emit=lambda *_: None)

    assert ended.state == "completed", ended.error
    assert next(event.id for event in bench.machine.events.query("System")) == 1074, (
        "Restart-Computer was called"
    )


def test_a_restart_that_is_pending_for_winboot_is_not_reported_as_anothers(bench: Bench):
    bench.run(STEP)

    assert "pending restart" not in bench.look(STEP).differences("node-preflight")


def test_a_second_run_before_the_restart_asks_for_it_again(bench: Bench):
    bench.run(STEP)

    assert bench.run(STEP).ended == "reboot"


def test_undo_gives_the_former_name_back_with_a_restart(bench: Bench):
    bench.run(STEP)
    bench.reboot()

    told = bench.undo(STEP)

    assert (told.states[STEP], told.ended) == ("changed", "reboot")
    bench.reboot()
    assert bench.look(STEP).differences(STEP) == {"computer name": ("WIN-OLD", "WIN-A1")}


def test_undo_before_the_restart_takes_the_rename_back(bench: Bench):
    bench.run(STEP)

    assert bench.undo(STEP).states[STEP] == "changed"
    bench.reboot()
    assert bench.machine.name == "WIN-OLD"


def test_a_member_of_a_domain_keeps_its_name(bench: Bench):
    """Its account in the domain would be left behind."""
    bench.machine.power.join_domain("corp.example", netbios="CORP")

    told = bench.run(STEP)

    assert told.states == {STEP: "ok"}, "reported, not counted"
    assert told.differences(STEP) == {"computer name": ("WIN-OLD (domain member)", "WIN-A1")}
