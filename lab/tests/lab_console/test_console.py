"""powershell.exe and other programs of a lab machine by their command line, with standard streams."""

from __future__ import annotations

import base64
import re

import pytest
from winboot_lab.cli.breaking import EXAMPLE, at_console
from winboot_lab.console import run_command
from winboot_lab.programs import install_programs
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.programs import Programs
from winboot_lab.windows.session import StandardStreams
from winboot_lab.windows.sockets import World


class Console:
    """A machine, and what a command wrote on it."""

    def __init__(self) -> None:
        world, programs = World(), Programs()
        install_programs(programs, Outside(world))
        self.machine = Machine(world=world, programs=programs)
        self.output = b""
        self.error = b""

    def run(self, command_line: str, given: bytes = b"") -> int:
        self.output = self.error = b""
        return run_command(self.machine, command_line, StandardStreams(given, self._out, self._err))

    def _out(self, content: bytes) -> None:
        self.output += content

    def _err(self, content: bytes) -> None:
        self.error += content


@pytest.fixture
def console() -> Console:
    return Console()


def encoded(script: str) -> str:
    return (
        f"powershell.exe -NoProfile -EncodedCommand {base64.b64encode(script.encode('utf-16-le')).decode()}"
    )


@pytest.mark.parametrize(
    "script, code, output",
    [
        ("'one'; 2", 0, b"one\r\n2\r\n"),
        ("'before'; exit 7", 7, b"before\r\n"),
        ("'before'; throw 'no'", 1, b"before\r\n"),
        ("Write-Error 'no'; 'after'", 0, b"after\r\n"),
        ("Write-Host 'seen'", 0, b"seen\r\n"),
        ("Write-Warning 'careful'", 0, b"WARNING: careful\r\n"),
    ],
)
def test_a_script_prints_its_text_and_ends_with_the_code_of_powershell(
    console: Console, script: str, code: int, output: bytes
) -> None:
    assert console.run(encoded(script)) == code
    assert console.output == output


def test_a_script_reads_its_standard_input_and_writes_bytes_as_they_are(console: Console) -> None:
    script = """
        $reader = [IO.StreamReader]::new([Console]::OpenStandardInput(), [Text.UTF8Encoding]::new($false))
        $first = $reader.ReadLine()
        $bytes = [Text.Encoding]::UTF8.GetBytes("$first|$($reader.ReadToEnd())")
        $output = [Console]::OpenStandardOutput()
        $output.Write($bytes, 0, $bytes.Length)
    """
    assert console.run(encoded(script), "häd\nline\nend".encode()) == 0
    assert console.output.decode() == "häd|line\nend"


def test_the_script_may_come_on_standard_input(console: Console) -> None:
    assert console.run("powershell -Command -", b"'given'") == 0
    assert console.output == b"given\r\n"


def test_standard_output_cannot_be_read(console: Console) -> None:
    assert console.run(encoded("[Console]::OpenStandardOutput().ReadByte()")) == 0
    assert b"does not support reading" in console.error


def test_an_object_that_would_need_formatting_is_refused(console: Console) -> None:
    assert console.run(encoded("@{ a = 1 }")) == 1
    assert b"the lab refuses" in console.error
    assert [str(each) for each in console.machine.refusals]


def test_another_program_runs_by_its_command_line(console: Console) -> None:
    assert console.run("sc.exe query NoSuchService") == 1060


@pytest.mark.parametrize("script", [EXAMPLE, "Get-Content -LiteralPath C:\\Windows\\win.ini"])
def test_the_example_that_lab_up_prints_runs(console: Console, script: str) -> None:
    """A string of Get-Content carries members, and is text all the same."""
    console.machine.files.write(r"C:\Windows\win.ini", b"first\r\n")

    code, told = at_console(console.machine, script)

    assert code == 0
    assert re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}|first", told.strip())
