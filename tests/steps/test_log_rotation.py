"""Logs of services do not fill the disk: the task is there, cuts off what grows, and keeps as many old ones as it should."""

from typing import Any

import pytest
from winboot_lab.engines import run_script
from winboot_lab.windows.machine import Machine

from tests.steps.bench import Bench, close_folder
from tests.steps.builders import a_spec
from tests.steps.library import call
from winboot.script.library import functions_for, names_for
from winboot.script.steps.log_rotation import LOG_ROTATION

LOG = r"C:\var\log\containerd\containerd.log"
CALL = rf"Invoke-LogRotation -Logs @('{LOG}') -Endless @('{LOG}') -MaxBytes 10 -MaxFiles 2"


@pytest.fixture
def machine() -> Machine:
    machine = Machine()
    close_folder(machine.files, r"C:\var\log\containerd")
    return machine


def run(machine: Machine, text: str) -> list[Any]:
    library = functions_for(text)
    found: list[Any] = []
    session = machine.session()
    ended = run_script(
        session,
        f"Set-StrictMode -Version 2.0\n$ErrorActionPreference = 'Stop'\n{library}\n$script:Run = $null\n{text}\n",
        {},
        emit=lambda stream, value: found.append(value),
    )
    session.close()
    assert ended.state == "completed", getattr(ended.error, "message", "")
    return found


def logs(machine: Machine) -> list[str]:
    return sorted(entry.name for entry in machine.files.list(r"C:\var\log\containerd"))


def test_a_log_that_is_too_large_is_copied_and_begun_again(machine):
    machine.files.write(LOG, b"0123456789ab")

    run(machine, CALL)

    kept, current = logs(machine)
    assert machine.files.read(rf"C:\var\log\containerd\{kept}") == b"0123456789ab"
    assert current == "containerd.log"
    assert machine.files.read(LOG) == b""


def test_a_small_log_stays_as_it_is(machine):
    machine.files.write(LOG, b"012")

    run(machine, CALL)

    assert machine.files.read(LOG) == b"012"


def test_a_log_whose_writer_does_not_append_is_left_alone(machine):
    machine.files.write(LOG, b"\0" * 12)

    run(machine, CALL)

    assert logs(machine) == ["containerd.log"]


def test_only_the_newest_old_logs_stay(machine):
    for hour in range(4):
        machine.files.write(rf"C:\var\log\containerd\containerd-20260102T0{hour}0000.log", b"x")
        machine.settle(60)

    run(machine, CALL)

    assert logs(machine) == ["containerd-20260102T020000.log", "containerd-20260102T030000.log"]


def test_a_file_that_only_begins_like_a_log_is_not_an_old_one(machine):
    beside = ["containerd-shim.log", "containerd.exe", "containerd.yaml", "containerd2-20260102T030000.log"]
    for name in beside:
        machine.files.write(rf"C:\var\log\containerd\{name}", b"x")

    run(machine, CALL.replace("-MaxFiles 2", "-MaxFiles 0"))

    assert logs(machine) == beside


@pytest.mark.parametrize("name", ["containerd-20260102T030000.log", "containerd.log"])
def test_a_log_that_is_held_waits_for_the_next_hour_and_the_others_do_not(machine, name):
    held = rf"C:\var\log\containerd\{name}"
    other = r"C:\var\log\containerd\containerd-20260102T020000.log"
    for path in (LOG, other, held):
        machine.files.write(path, b"0123456789ab")
    machine.faults.hold(held, 60, share="None")

    run(machine, CALL.replace("-MaxFiles 2", "-MaxFiles 0"))

    assert machine.files.exists(held)
    assert not machine.files.exists(other)


def test_a_path_with_an_apostrophe_is_a_path(machine):
    folder = r"C:\var\log\it's"
    close_folder(machine.files, folder)
    machine.files.write(rf"{folder}\a.log", b"0123456789ab")
    log = rf"@('{folder}\a.log')".replace("it's", "it''s")
    functions = ", ".join(f"'{name}'" for name in names_for("Invoke-LogRotation"))
    (text,) = run(
        machine, f"Get-LogScript -Functions {functions} -Logs {log} -Endless {log} -MaxBytes 10 -MaxFiles 2"
    )

    run(machine, text)

    assert machine.files.read(rf"{folder}\a.log") == b""


def test_what_turns_itself_over_is_only_pruned():
    sc = LOG_ROTATION.inputs(a_spec())
    nssm = LOG_ROTATION.inputs(a_spec(**{"manager: sc": "manager: nssm"}))

    assert sc["endless"] == [LOG]
    assert nssm["endless"] == []
    assert sc["logs"] == nssm["logs"]


STEP = "log-rotation"
WHAT = r"task \winboot\logs: command"


SCRIPT = r"C:\ProgramData\winboot\logs.ps1"


def test_the_task_is_made_once_and_removed_again(bench: Bench):
    assert set(bench.look(STEP).differences(STEP)) == {WHAT, rf"file {SCRIPT}: content"}
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    assert bench.undo(STEP).states == {STEP: "changed"}
    assert bench.machine.tasks.find("logs", "\\winboot\\") is None
    assert bench.file(SCRIPT) is None


def test_the_task_runs_every_hour_and_cuts_off_what_grew():
    bench = Bench(spec=a_spec(**{"max_size_mib: 50": "max_size_mib: 1"}))
    bench.run(STEP)
    size = LOG_ROTATION.inputs(bench.spec)["max_bytes"] + 1
    close_folder(bench.machine.files, LOG.rpartition("\\")[0])
    bench.write(LOG, b"x" * size)
    bench.machine.settle(3700)
    bench.machine.tasks.wait_idle()

    task = bench.machine.tasks.find("logs", "\\winboot\\")
    assert task.last_result == 0
    assert task.actions[0].arguments.endswith(f'-File "{SCRIPT}"')
    assert bench.file(LOG) == b""


def test_a_changed_or_disabled_task_is_corrected(bench: Bench):
    bench.run(STEP)
    task = bench.machine.tasks.find("logs", "\\winboot\\")
    task.actions[0].arguments = "-EncodedCommand ZQB4AGkAdAA="
    task.enabled = False

    assert set(bench.look(STEP).differences(STEP)) == {WHAT, r"task \winboot\logs: state"}
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.look(STEP).states == {STEP: "ok"}


def test_tasks_of_others_stay(bench: Bench):
    before = {task.path + task.name for task in bench.machine.tasks.all()}
    bench.run(STEP)
    bench.undo(STEP)

    assert {task.path + task.name for task in bench.machine.tasks.all()} == before


def test_a_task_of_that_name_that_another_user_made_is_not_right(bench: Bench):
    """Same command, priority and description; but it runs as that user, at any time."""
    bench.run(STEP)
    task = bench.machine.tasks.find("logs", "\\winboot\\")
    bench.machine.accounts.add("alice", administrator=False)
    task.user, task.highest, task.triggers = "alice", False, []

    told = bench.look(STEP).differences(STEP)

    assert set(told) == {r"task \winboot\logs: account", r"task \winboot\logs: triggers"}
    assert bench.run(STEP).states == {STEP: "changed"}
    assert bench.run(STEP).states == {STEP: "ok"}
    assert bench.machine.tasks.find("logs", "\\winboot\\").user == "SYSTEM"


FORBIDDEN = 'E1124 07:00:01.000000  42 main.go:332] nodes "win-1" is forbidden'


@pytest.mark.parametrize(
    ("text", "begin", "said"),
    [
        ("", 0, ""),
        (
            f"I1124 07:00:00.000000  42 main.go:1] hello\n{FORBIDDEN}\nI1124 07:00:02.000000  42 x.go:1] retrying\n",
            0,
            FORBIDDEN,
        ),
        (f"{FORBIDDEN}\n", len(FORBIDDEN) + 1, ""),
        (
            "2023-03-04 09:50:19.486 [ERROR][9] startup/k8s.go 1: Unauthorized\nCalico node failed to start\n",
            0,
            "2023-03-04 09:50:19.486 [ERROR][9] startup/k8s.go 1: Unauthorized",
        ),
        # It began a new file.
        ("no route to host\n", 1000, "no route to host"),
        ("first\r\nsecond \u00e9 \u001b[31m\r\n\r\n", 0, "second    [31m"),
        ("x" * 20_000, 0, "x" * 400),
    ],
    ids=["nothing", "the last error", "nothing since", "Calico", "a new file", "no error", "a long line"],
)
def test_what_a_program_said_last_is_its_last_error(bench: Bench, text: str, begin: int, said: str):
    bench.write(LOG, text.encode())
    wanted = f"; flanneld said last: {said}" if said else ""

    assert call(bench, f"Get-LastWord -Name flanneld -Path '{LOG}' -From {begin}").objects == [wanted]


def test_a_log_that_is_held_or_absent_says_nothing_and_fails_nothing(bench: Bench):
    asked = f"Get-LastWord -Name flanneld -Path '{LOG}' -From (Get-LogSize -Path '{LOG}')"
    assert call(bench, asked).objects == [""]
    bench.write(LOG, b"no route\n")
    bench.machine.faults.hold(LOG, share="None")

    assert call(bench, asked).objects == [""]
