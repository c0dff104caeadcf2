"""The runner for a real PowerShell, with a lab machine in its place: the same file, the same cases.

The cases are the tests of the library's functions that only compute: here on the lab, by `make real` on a real engine.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from winboot_lab.console import run_command
from winboot_lab.shell import bare_machine
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.processes import split_arguments
from winboot_lab.windows.session import StandardStreams

from tests.steps.builders import ROOT
from tests.transport.test_shells import stand_in

REAL = ROOT / "tests" / "real"
CALL = r"powershell.exe -NoProfile -File C:\w\tests\real\run.ps1 -NoAnalyzer"


def a_machine() -> Machine:
    """A lab machine with the part of the repository that the runner reads."""
    machine = bare_machine()
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


def cases(function: str = "") -> list[dict[str, Any]]:
    """The cases of all files, or those of one function."""
    files = sorted((REAL / "cases").glob("*.json"))
    every = [case for path in files for case in json.loads(path.read_text(encoding="ascii"))]
    return [case for case in every if function in ("", case["function"])]


def test_every_case_holds_on_the_lab_and_leaves_nothing_behind() -> None:
    machine = a_machine()
    before = _left(machine)

    code, output, errors = run(machine)

    assert (code, errors) == (0, ""), output + errors
    assert _left(machine) == before
    told = rf": 2 scripts read, {len(cases())} cases called, 0 left to Windows PowerShell, 0 differences"
    assert re.search(told, output)


def _left(machine: Machine) -> tuple[object, list[str]]:
    """What scripts leave on a machine: the registry, with the services in it, and the paths of files and folders."""
    return machine.registry.tree(), [path for path, _ in machine.files.walk("C:\\")]


def test_names_of_cases_are_unique_and_each_says_what_it_expects() -> None:
    for path in (REAL / "cases").glob("*.json"):
        found = json.loads(path.read_text(encoding="ascii"))
        assert len({case["name"] for case in found}) == len(found), path.name
        assert all(len(case.keys() & {"expected", "like", "error"}) == 1 for case in found), path.name


def test_a_joined_command_line_comes_apart_into_the_same_words() -> None:
    """By the rules of CommandLineToArgvW, which the expectations were not made with."""
    for case in cases("Join-Argument"):
        words = ["" if word is None else word for word in case["arguments"]["Arguments"]]
        assert split_arguments(" ".join(["x.exe", *case["expected"]]))[1:] == words, case["name"]


def test_addresses_are_those_that_python_counts() -> None:
    for case in cases("Get-CidrAddress"):
        given = case["arguments"]
        last = ipaddress.ip_network(given["Cidr"], strict=False).broadcast_address
        first = ipaddress.ip_address(given["Cidr"].partition("/")[0])
        there = int(first) + given["Offset"] <= int(last)
        assert case["expected"] == [str(first + given["Offset"]) if there else None], case["name"]
    for case in cases("Test-CidrMember"):
        given = case["arguments"]
        network = ipaddress.ip_network(given["Cidr"], strict=False)
        assert case["expected"] == [ipaddress.ip_address(given["Address"]) in network], case["name"]


def test_hashes_are_those_that_python_makes() -> None:
    for case in cases("Get-TextHash"):
        text = case["arguments"]["Text"] or ""
        assert case["expected"] == [hashlib.sha256(text.encode()).hexdigest()], case["name"]


WRONG = [
    (
        {"function": "Join-Argument", "arguments": {"Arguments": ["a"]}, "expected": ["b"]},
        "gave ['a'], expected ['b']",
    ),
    (
        {"function": "Join-Argument", "arguments": {"Arguments": ["a"]}, "like": ["*b*"]},
        "gave 'a', expected something like *b*",
    ),
    (
        {"function": "Join-Argument", "arguments": {"Arguments": ["a"]}, "error": "X"},
        "gave ['a'], expected error X",
    ),
    (
        {"function": "Stop-Step", "arguments": {"Id": "A", "Message": "m"}, "expected": []},
        "gave error winboot.A, expected []",
    ),
]


def test_what_differs_is_told_and_ends_with_1() -> None:
    machine = a_machine()
    for path in (REAL / "cases").glob("*.json"):
        machine.files.delete(rf"C:\w\tests\real\cases\{path.name}")
    wrong = [{"name": f"row {at}", **case} for at, (case, _) in enumerate(WRONG)]
    machine.files.write(r"C:\w\tests\real\cases\wrong.json", json.dumps(wrong).encode())
    machine.files.write(r"C:\w\tests\golden\broken.ps1", b"if (")

    code, output, _ = run(machine)

    assert code == 1
    told = [f"differs: row {at}: {case['function']} {said}" for at, (case, said) in enumerate(WRONG)]
    assert [line for line in output.splitlines() if line.startswith("differs")] == told
    assert "does not parse: " in output
    assert f"{len(WRONG)} cases called, 0 left to Windows PowerShell, {len(WRONG) + 1} differences" in output


def test_the_arguments_of_a_case_are_parameters_of_its_function() -> None:
    """A simple function takes any other word without an error, and the case would try nothing."""
    library = "\n".join(path.read_text() for path in (ROOT / "templates/powershell/lib").glob("*.ps1"))
    for case in cases():
        body = re.search(rf"^function {case['function']} \{{(.*?)^\}}", library, re.M | re.S)
        assert body is not None, case["function"]
        head = body[1].partition("param(")[2].partition("\n\n")[0]
        unknown = [name for name in case["arguments"] if not re.search(rf"\${name}\b", head)]
        assert not unknown, case["name"]


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
