"""The restart that a controller asks for: its reason is in the event log, and one that is under way is no failure."""

from __future__ import annotations

from typing import Any

import pytest
from winboot_lab.engines import run_script
from winboot_lab.programs import install_programs
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.programs import Programs
from winboot_lab.windows.programs_api import Exit
from winboot_lab.windows.sockets import World

from winboot.script import rendering as script


def a_machine() -> Machine:
    """A machine with Windows' own programs."""
    programs = Programs()
    install_programs(programs, Outside(World()))
    return Machine("WIN-A1", programs=programs)


def restart(machine: Machine, reason: str = "winboot: windows-features", boot: str = "") -> Any:
    """The controller's restart script, and how it ended."""
    session = machine.session()
    ended = run_script(
        session, script.helpers().restart, {"Reason": reason, "BootId": boot}, emit=lambda stream, value: None
    )
    session.close()
    return ended


def told(machine: Machine) -> list[str]:
    """The texts of event 1074."""
    found = machine.console.invoke("eventlog.query", {"log": "System", "ids": [1074]}).objects
    return [str(event) for event in found]


def test_the_event_log_says_why_a_machine_restarts():
    machine = a_machine()
    ended = restart(machine)
    assert ended.state == "completed", ended.error
    boots = machine.boot_count
    machine.settle(120)

    assert machine.boot_count == boots + 1
    (event,) = told(machine)
    assert "winboot: windows-features" in event


def test_a_restart_that_is_already_under_way_is_no_failure():
    """1190, ERROR_SHUTDOWN_IS_SCHEDULED: Windows Update was first."""
    machine = a_machine()
    boots = machine.boot_count
    assert restart(machine, "of somebody").state == "completed"
    assert restart(machine).state == "completed"
    machine.settle(120)

    assert machine.boot_count == boots + 1
    assert len(told(machine)) == 1


def test_a_reason_longer_than_windows_takes_is_cut():
    machine = a_machine()

    assert restart(machine, "winboot: " + "x" * 600).state == "completed"


def test_a_machine_that_has_restarted_meanwhile_is_not_restarted():
    machine = a_machine()
    restart(machine, boot="00000000-0000-0000-0000-000000000000")
    boots = machine.boot_count
    machine.settle(120)

    assert machine.boot_count == boots


def test_a_restart_that_is_past_its_delay_is_no_failure():
    """1115, ERROR_SHUTDOWN_IN_PROGRESS (winerror.h): the services of the machine are being stopped already."""
    machine = a_machine()
    machine.programs.add("shutdown", _Refusing(1115))

    assert restart(machine).state == "completed"


@pytest.mark.parametrize("code", [5, 1314])
def test_a_restart_that_is_refused_says_so(code: int):
    """5 access denied, 1314 a privilege is not held: InitiateShutdown returns them to an account without the right."""
    machine = a_machine()
    machine.programs.add("shutdown", _Refusing(code))
    ended = restart(machine)

    assert ended.state != "completed"
    assert f"ended with code {code}" in ended.error.message


class _Refusing:
    """A shutdown.exe that ends with a code."""

    def __init__(self, code: int) -> None:
        self._code = code

    def run(self, machine: Any, process: Any, argv: list[str], env: Any, stdin: bytes) -> Any:
        """Nothing but the code."""
        return Exit(self._code)
