"""Programs: how Windows PowerShell 5.1 writes the command line, and what comes back."""

import pytest
from winboot_lab.engine.binder import Argument
from winboot_lab.engine.native import command_line


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (["a", "b c"], 'p.exe a "b c"'),
        (['say "hi"'], 'p.exe "say "hi""'),
        (['{"a":1}'], 'p.exe {"a":1}'),
        (["", "x", None], "p.exe x"),
        (["C:\\a b\\"], 'p.exe "C:\\a b\\"'),
    ],
)
def test_quotes_are_put_round_blanks_and_nothing_else_is_escaped(given, written):
    assert command_line(None, "p.exe", [Argument(None, value, "") for value in given]) == written


def test_a_program_with_blanks_in_its_path_stands_in_quotes():
    assert command_line(None, r"C:\Program Files\p.exe", []) == r'"C:\Program Files\p.exe"'


def test_the_exit_code_is_kept_and_decides_success(run):
    ran = run(
        "sc.exe query Dnscache | Out-Null; $LASTEXITCODE; sc.exe query NoSuchService | Out-Null; $LASTEXITCODE"
    )

    assert ran.output == [0, 1060]


def test_a_failing_program_is_no_error_but_success_is_false(run):
    ran = run("$ErrorActionPreference = 'Stop'; $null = sc.exe query NoSuchService; \"$?\"")

    assert (ran.output, ran.errors) == (["False"], [])
