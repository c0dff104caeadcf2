"""The runner for a real PowerShell, with a lab machine in its place: the same file, the same cases."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from winboot_lab.console import run_command
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.session import StandardStreams

from tests.steps.builders import ROOT
from tests.transport.test_shells import stand_in

REAL = ROOT / "tests" / "real"
CALL = r"powershell.exe -NoProfile -File C:\w\tests\real\run.ps1 -NoAnalyzer"


def a_machine() -> Machine:
    """A lab machine with the part of the repository that the runner reads."""
    machine = Machine()
    for folder, pattern in (
        ("templates/powershell/lib", "*.ps1"),
        ("tests/golden", "*.ps1"),
        ("tests/real", "*.ps1"),
        ("tests/real/cases", "*.json"),
    ):
        there = "C:\\w\\" + folder.replace("/", "\\")
        machine.files.make_directory(there)
        for path in sorted((ROOT / folder).glob(pattern)):
            machine.files.write(f"{there}\\{path.name}", path.read_bytes())
    return machine


def run(machine: Machine) -> tuple[int, str, str]:
    """Exit code, output and errors of the runner."""
    output, errors = bytearray(), bytearray()
    code = run_command(machine, CALL, StandardStreams(b"", output.extend, errors.extend))
    return code, output.decode(), errors.decode()


def test_every_case_holds_on_the_lab() -> None:
    code, output, errors = run(a_machine())

    count = sum(len(json.loads(path.read_text())) for path in (REAL / "cases").glob("*.json"))
    assert (code, errors) == (0, ""), output + errors
    assert re.search(rf": \d+ scripts read, {count} cases called, 0 left to Windows, 0 differences", output)


@pytest.mark.parametrize(
    ("path", "content", "told"),
    [
        (
            r"C:\w\tests\real\cases\wrong.json",
            b'[{"name": "n", "function": "Join-Argument", "arguments": {"Arguments": ["a"]}, "expected": ["b"]}]',
            "differs: n: Join-Argument gave ['a'], expected ['b']",
        ),
        (r"C:\w\tests\golden\broken.ps1", b"if (", "does not parse: "),
    ],
)
def test_what_differs_is_told_and_ends_with_1(path: str, content: bytes, told: str) -> None:
    machine = a_machine()
    machine.files.write(path, content)

    code, output, _ = run(machine)

    assert code == 1
    assert told in output


def test_without_a_powershell_make_says_how_to_get_one() -> None:
    ended = subprocess.run(
        ["sh", str(REAL / "run.sh"), "/nowhere/pwsh"], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 69
    assert "aka.ms/powershell" in ended.stderr


def test_the_runner_calls_the_powershell_that_it_is_given(tmp_path: Path) -> None:
    shell = tmp_path / "pwsh"
    shell.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
    shell.chmod(0o755)

    ended = subprocess.run(
        ["sh", str(REAL / "run.sh"), str(shell), "-NoAnalyzer"], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stdout.strip()) == (
        7,
        f"-NoProfile -NonInteractive -File {REAL}/run.ps1 -NoAnalyzer",
    )


def test_the_stand_in_of_the_lab_takes_the_place_of_pwsh(tmp_path: Path) -> None:
    """`make real PWSH=winboot-lab-powershell`: -File with a path of this host."""
    shell = stand_in(tmp_path)
    ended = subprocess.run(
        ["sh", str(REAL / "run.sh"), str(shell), "-NoAnalyzer"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert (ended.returncode, "0 differences" in ended.stdout) == (0, True), ended.stdout + ended.stderr
