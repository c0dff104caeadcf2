"""SSH and the local transport when the other side goes away: at each step, by a restart, by a process that ends.

`tests/transport/test_lost_connection.py` asks the same of WinRM.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from winboot_lab.console import silent_powershell
from winboot_lab.ssh import SshServer
from winboot_lab.windows.machine import Machine

from tests.transport.sshd import CuttingRelay
from tests.transport.test_shells import PASSWORD, Way, eventually, machine, running, ssh_connection, way
from winboot.base.errors import Busy, ConnectionLost, ProtocolError, Unreachable
from winboot.config.inventory import Connection
from winboot.remote.transport.base import Transport
from winboot.remote.transport.connect import connect
from winboot.remote.transport.local import PROGRAM_VARIABLE

__all__ = ["machine", "way"]  # fixtures

SAID = [f"line {number}" for number in range(5)]
SCRIPT = 'foreach ($number in 0..4) { "line $number" }'
# More pieces than come from the server in three looks, login and all; a cut behind the last one changes nothing.
MOST_PIECES = 40


@pytest.mark.parametrize("code", [3, 0, -1])
def test_a_process_that_ends_in_mid_run_is_a_lost_connection_with_its_exit_code(way: Way, code: int) -> None:
    with closing(way()) as transport:
        lines = transport.run(f"'begun'; exit {code}", {}, {})
        assert next(lines) == "begun"
        with pytest.raises(ConnectionLost, match=r"ended in the middle of the script \(exit code"):
            list(lines)
        assert list(transport.run(SCRIPT, {}, {})) == SAID


def test_a_program_that_does_not_start_is_named_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "powershell"
    program.write_text("#!/bin/sh\necho 'no such engine' >&2\nexit 5\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM_VARIABLE, str(program))

    with (
        closing(connect(Connection(transport="local"), name="win-a1")) as transport,
        pytest.raises(ProtocolError, match=r"could not be started \(exit code 5\): no such engine"),
    ):
        list(transport.run(SCRIPT, {}, {}))


def test_a_login_shell_that_refuses_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nologin gives its reason on standard output."""
    program = tmp_path / "powershell"
    program.write_text(
        "#!/bin/sh\necho 'This account is currently not available.'\nexit 1\n", encoding="utf-8"
    )
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM_VARIABLE, str(program))

    with (
        closing(connect(Connection(transport="local"), name="win-a1")) as transport,
        pytest.raises(ProtocolError, match=r"\(exit code 1\): This account is currently not available\."),
    ):
        list(transport.run(SCRIPT, {}, {}))


def test_a_killed_process_is_a_lost_connection_and_the_next_script_runs(way: Way, machine: Machine) -> None:
    """As a restart in mid-run ends it: nothing says goodbye for the script."""
    with closing(way()) as transport:
        lines = transport.run("'begun'; while ($true) { Start-Sleep -Milliseconds 50; 'tick' }", {}, {})
        assert next(lines) == "begun"
        with closing(way()) as other:
            kill = "Get-Process -Name 'powershell' | Where-Object { $_.Id -ne $PID } | Stop-Process -Force"
            assert list(other.run(kill, {}, {})) == []
        with pytest.raises(ConnectionLost):
            list(lines)
        assert list(transport.run(SCRIPT, {}, {})) == SAID


def look(transport: Transport) -> bool:
    """One look: whether it came to its end. A line is never lost in the middle, nor there twice."""
    lines: list[str] = []
    try:
        lines.extend(transport.run(SCRIPT, {}, {}))
    except (ConnectionLost, Unreachable, Busy):
        assert lines == SAID[: len(lines)]
        return False
    assert lines == SAID
    return True


def looks_with_a_cut(server: SshServer, at: int) -> bool:
    """Three looks, one of which may end with the connection that breaks at piece `at`; whether it broke."""
    with (
        CuttingRelay(server.port, lambda number: number == at) as relay,
        closing(connect(ssh_connection(server, port=relay.port), name="win-a1")) as transport,
    ):
        ended = [look(transport) for _ in range(3)]
        assert ended.count(False) <= relay.cuts
        return bool(relay.cuts)


@pytest.fixture
def server(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    monkeypatch.setenv("TEST_SSH_PASSWORD", PASSWORD)
    with SshServer(machine, user="Administrator", password=PASSWORD) as server:
        yield server


@pytest.mark.parametrize("at", [1, 2, 4, 6, 8, 10, 13])
def test_a_connection_lost_at_any_step_loses_no_more_than_that_run(server: SshServer, at: int) -> None:
    assert looks_with_a_cut(server, at)


@pytest.mark.nightly
def test_a_connection_lost_at_every_step_loses_no_more_than_that_run(server: SshServer) -> None:
    cuts = [looks_with_a_cut(server, at) for at in range(1, MOST_PIECES)]

    assert all(cuts[:10])
    assert not cuts[-1]


def test_a_restart_of_the_machine_ends_the_script_and_the_next_one_runs(
    server: SshServer, machine: Machine
) -> None:
    with closing(connect(ssh_connection(server), name="win-a1")) as transport:
        lines = transport.run("'begun'; while ($true) { Start-Sleep -Milliseconds 50 }", {}, {})
        assert next(lines) == "begun"
        machine.reboot()
        server.cut()
        with pytest.raises(ConnectionLost):
            list(lines)
        assert eventually(lambda: not running(machine))
        assert list(transport.run(SCRIPT, {}, {})) == SAID


# As `lib/detached.ps1` does: a task of SYSTEM that depends on no session.
DETACHED = r"""
$action = New-ScheduledTaskAction -Execute 'C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe' `
    -Argument '-NoLogo -NoProfile -NonInteractive -File C:\detached.ps1'
$principal = New-ScheduledTaskPrincipal -UserId 'S-1-5-18' -LogonType ServiceAccount -RunLevel Highest
$task = New-ScheduledTask -Action $action -Principal $principal
[void](Register-ScheduledTask -TaskName 'detached' -TaskPath '\winboot\' -InputObject $task -Force)
Start-ScheduledTask -TaskName 'detached' -TaskPath '\winboot\'
'begun'
"""
WORK = r"""
[IO.File]::WriteAllText('C:\status', 'running')
Start-Sleep -Seconds 2
[IO.File]::WriteAllText('C:\status', 'done')
"""
STATUS = r"if ([IO.File]::Exists('C:\status')) { [IO.File]::ReadAllText('C:\status') } else { 'nothing' }"


def test_a_detached_run_outlives_the_session_that_began_it(way: Way, machine: Machine) -> None:
    machine.run_powershell = silent_powershell
    machine.files.write("C:\\detached.ps1", WORK.encode("ascii"))
    with closing(way()) as first:
        assert list(first.run(DETACHED, {}, {})) == ["begun"]

    def status() -> list[str]:
        with closing(way()) as later:
            return list(later.run(STATUS, {}, {}))

    assert eventually(lambda: status() == ["done"])
