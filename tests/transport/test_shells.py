"""What SSH and the local transport promise, asked of scripts that the lab's PowerShell really runs.

`tests/transport/test_contract.py` asks the same of WinRM.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Protocol

import pytest
from winboot_lab.console_server import ConsoleServer
from winboot_lab.programs import install_programs
from winboot_lab.programs.outside import Outside
from winboot_lab.shell import CONSOLE_VARIABLE
from winboot_lab.ssh import SshServer
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.programs import Programs
from winboot_lab.windows.sockets import World

from winboot.base.errors import ScriptFailed, WinbootError
from winboot.base.secret import Secret
from winboot.config.inventory import Connection
from winboot.config.profile.reference import LoginReference
from winboot.remote.transport.base import Transport
from winboot.remote.transport.connect import connect
from winboot.remote.transport.console import ARGUMENTS, command_line
from winboot.remote.transport.local import PROGRAM_VARIABLE

PASSWORD = "correct horse"
NASTY = "quotes ' \" ` ‘’ “” „ · ünïcödé · 漢字 · 🎉 · \t \r\n \x1b · _x0041_ · <&> ]]> · $(x) · \ufeff"


class Way(Protocol):
    """Opens a transport to the machine."""

    def __call__(self) -> Transport: ...


@pytest.fixture
def machine() -> Iterator[Machine]:
    world, programs = World(), Programs()
    install_programs(programs, Outside(world))
    machine = Machine(world=world, programs=programs)
    machine.live()
    yield machine
    machine.rest()


@pytest.fixture(params=["ssh", "local"])
def way(
    request: pytest.FixtureRequest, machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Way]:
    monkeypatch.setenv("TEST_SSH_PASSWORD", PASSWORD)
    if request.param == "ssh":
        with SshServer(machine, user="Administrator", password=PASSWORD) as server:
            yield lambda: connect(ssh_connection(server), name="win-a1")
    else:
        with ConsoleServer(machine) as server:
            monkeypatch.setenv(CONSOLE_VARIABLE, server.address)
            monkeypatch.setenv(PROGRAM_VARIABLE, str(stand_in(tmp_path)))
            yield lambda: connect(Connection(transport="local"), name="win-a1")


def ssh_connection(server: SshServer, **more: object) -> Connection:
    settings: dict[str, object] = {
        "transport": "ssh",
        "host": "127.0.0.1",
        "port": server.port,
        "user": server.user,
        "password": LoginReference(env="TEST_SSH_PASSWORD"),
        "host_key": server.fingerprint,
        **more,
    }
    return Connection.model_validate(settings)


def stand_in(folder: Path) -> Path:
    """The lab's powershell.exe as one file that a transport can start, wherever this Python is installed."""
    file = folder / "powershell"
    file.write_text(f"#!{sys.executable}\nfrom winboot_lab.shell import main\nmain()\n", encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def test_output_arrives_while_the_script_still_runs(way: Way) -> None:
    with closing(way()) as transport:
        lines = transport.run(
            "'first'; while (-not (Test-Path 'C:\\go')) { Start-Sleep -Milliseconds 50 }; 'second'", {}, {}
        )
        assert next(lines) == "first"
        with closing(way()) as other:
            assert list(other.run("$null = New-Item -ItemType 'File' -Path 'C:\\go'", {}, {})) == []
        assert list(lines) == ["second"]


def test_other_streams_come_in_between_with_a_label(way: Way) -> None:
    script = """
        'one'
        Write-Error -Message 'no such thing' -ErrorId 'PathNotFound'
        Write-Warning -Message 'careful'
        'two'
        Write-Verbose -Message 'chatty' -Verbose
        Write-Information -MessageData 'by the way'
    """
    with closing(way()) as transport:
        lines = list(transport.run(script, {}, {}))

    assert lines == [
        "one",
        "error: no such thing [PathNotFound]",
        "warning: careful",
        "two",
        "verbose: chatty",
        "information: by the way",
    ]


def test_a_terminating_error_is_reported_with_its_place_and_the_next_script_runs(way: Way) -> None:
    with closing(way()) as transport:
        with pytest.raises(ScriptFailed) as caught:
            list(transport.run("'before'\nthrow 'it broke'", {}, {}))
        assert list(transport.run("'again'", {}, {})) == ["again"]

    assert str(caught.value) == "win-a1: it broke"
    assert caught.value.error_id == "it broke"
    assert "line:2 char:1" in caught.value.position


def test_a_script_that_does_not_parse_is_a_failed_script(way: Way) -> None:
    with closing(way()) as transport, pytest.raises(ScriptFailed, match="win-a1"):
        list(transport.run("'open", {}, {}))


def test_a_big_script_arrives_whole(way: Way) -> None:
    script = "".join(f"# line {number} äöü\n" for number in range(20_000)) + "'done'"

    with closing(way()) as transport:
        assert list(transport.run(script, {}, {})) == ["done"]


def test_a_long_line_arrives_whole(way: Way) -> None:
    with closing(way()) as transport:
        assert list(transport.run("'äb' * 200000; 'end'", {}, {})) == ["äb" * 200_000, "end"]


def test_no_character_is_changed_on_the_way(way: Way) -> None:
    """Neither in the script, nor in arguments, nor in output, in events of any kind."""
    with closing(way()) as transport:
        said = list(transport.run("param($Text) $Text; # " + NASTY.replace("\r\n", ""), {"Text": NASTY}, {}))

    assert said == [NASTY]


def test_arguments_keep_their_types(way: Way) -> None:
    arguments = {
        "Nothing": None,
        "Yes": True,
        "Small": -7,
        "Big": 2**40,
        "Fraction": 0.1,
        "Bytes": b"\x00\xff",
        "Facts": {"Deep": {"Numbers": [1, 2, 3]}, "Empty": {}, "One": ["only"]},
    }
    script = """
        param($Nothing, $Yes, $Small, $Big, $Fraction, $Bytes, $Facts)
        $null -eq $Nothing
        foreach ($value in $Yes, $Small, $Big, $Fraction) { $value.GetType().Name }
        $Bytes.GetType().Name + $Bytes.Length
        $Facts.GetType().Name + $Facts.Deep.Numbers.Count + $Facts.Empty.GetType().Name + $Facts.Empty.Count
        $Facts.One.GetType().Name + $Facts.One.Count
    """
    with closing(way()) as transport:
        said = list(transport.run(script, arguments, {}))

    assert said == [
        "True",
        *("Boolean", "Int32", "Int64", "Double"),
        "Byte[]2",
        "Hashtable3Hashtable0",
        "Object[]1",
    ]


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, Secret("x"), [Secret("x")]], ids=lambda value: type(value).__name__
)
def test_an_argument_without_a_plain_form_is_the_callers_mistake(way: Way, value: object) -> None:
    with closing(way()) as transport, pytest.raises(TypeError):
        list(transport.run("'never'", {"A": value}, {}))


def test_secrets_arrive_as_secure_strings(way: Way) -> None:
    script = """
        param($Secrets)
        $Secrets['registry/x'].GetType().Name
        [Net.NetworkCredential]::new('', $Secrets['registry/x']).Password
    """
    with closing(way()) as transport:
        said = list(transport.run(script, {}, {"registry/x": Secret("pä🎉ss")}))

    assert said == ["SecureString", "pä🎉ss"]


def test_a_secret_is_in_no_command_line_and_no_log(
    way: Way, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    script = "param($Secrets) 'SCRIPT-TEXT'"
    with closing(way()) as transport:
        lines = transport.run(script, {}, {"token": Secret("TOP-SECRET")})
        assert next(lines) == "SCRIPT-TEXT"
        words = [process.command_line for process in machine.processes.all()]
        assert list(lines) == []

    heard = caplog.text + str(words) + command_line() + " ".join(ARGUMENTS)
    for hidden in ("TOP-SECRET", "SCRIPT-TEXT", PASSWORD):
        assert hidden not in heard


def test_leaving_early_stops_the_script(way: Way, machine: Machine) -> None:
    script = "'started'; while ($true) { Start-Sleep -Seconds 1; [IO.File]::AppendAllText('C:\\ticks', 'x') }"
    with closing(way()) as transport:
        lines = transport.run(script, {}, {})
        assert next(lines) == "started"
        lines.close()
        assert eventually(lambda: not running(machine))


def running(machine: Machine) -> list[str]:
    return [process.name for process in machine.processes.all() if process.name == "powershell"]


def eventually(claim, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if claim():
            return True
        threading.Event().wait(0.02)
    return bool(claim())


def test_a_probe_reports_the_facts_of_the_machine(way: Way) -> None:
    with closing(way()) as transport:
        probe = transport.probe()

    assert probe.language_mode == "FullLanguage"
    assert probe.administrator
    assert probe.os_build.startswith("20348.")
    assert probe.certificate is None


def test_the_command_line_means_the_same_to_every_default_shell() -> None:
    """cmd.exe, powershell.exe and sh read these letters alike, and cmd.exe takes 8,191 of them."""
    line = command_line()

    assert len(line) < 8191
    assert set(line) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 -.+/=")


def test_noise_is_passed_on_and_never_taken_for_output(machine: Machine) -> None:
    """A banner of sshd, a greeting of the profile, half a frame."""
    from winboot.remote.transport.console import Conversation

    class Noisy:
        def __init__(self) -> None:
            self.pieces = [b"Welcome!\r\n#winboot:output:!!!\n#winb", b"oot:output:aGk=\n#winboot:end:e30=\n"]

        def receive(self) -> bytes:
            return self.pieces.pop(0) if self.pieces else b""

        def finish(self) -> tuple[int | None, str]:
            return 0, ""

    assert list(Conversation("n", Noisy()).lines()) == ["noise: Welcome!", "noise: #winboot:output:!!!", "hi"]


def test_nothing_of_ours_is_left_in_the_environment() -> None:
    assert "TEST_SSH_PASSWORD" not in os.environ


def test_a_script_is_ended_from_another_thread(way: Way) -> None:
    with closing(way()) as transport:
        lines = transport.run("'first'; Start-Sleep -Seconds 600; 'never'", {}, {})
        assert next(lines) == "first"
        threading.Timer(0.2, transport.interrupt).start()

        # It comes back long before the script would.
        with pytest.raises(WinbootError):
            list(lines)


def test_nothing_runs_and_nothing_is_ended(way: Way) -> None:
    with closing(way()) as transport:
        transport.interrupt()
        assert list(transport.run("'one'", {}, {})) == ["one"]
        transport.interrupt()
