"""What a script block raises inside a cmdlet, and what the cmdlet hands on (ManageInvocationException)."""

import pytest

AT = "$_.FullyQualifiedErrorId"
OF_FOREACH = "Microsoft.PowerShell.Commands.ForEachObjectCommand"


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("1 | ForEach-Object { [int]'x' }", f"InvalidCastFromStringToInteger,{OF_FOREACH}"),
        ("1 | ForEach-Object { 1 / 0 }", f"RuntimeException,{OF_FOREACH}"),
        ("1 | ForEach-Object { No-SuchCommand }", f"CommandNotFoundException,{OF_FOREACH}"),
        ("1 | ForEach-Object { Get-Item -Foo }", f"NamedParameterNotFound,{OF_FOREACH}"),
        (
            "1 | Where-Object { [int]'x' }",
            "InvalidCastFromStringToInteger,Microsoft.PowerShell.Commands.WhereObjectCommand",
        ),
        (
            "1 | ForEach-Object { 1 | ForEach-Object { [int]'x' } }",
            f"InvalidCastFromStringToInteger,{OF_FOREACH}",
        ),
        ("1 | ForEach-Object { throw 'x' }", "x"),
        (
            "1 | ForEach-Object { Get-Item nope -ErrorAction Stop }",
            "PathNotFound,Microsoft.PowerShell.Commands.GetItemCommand",
        ),
        ("& { [int]'x' }", "InvalidCastFromStringToInteger"),
        (
            "function f { process { [int]'x' } }; 1 | ForEach-Object { 1 } | f",
            "InvalidCastFromStringToInteger",
        ),
        (
            "function f { process { [int]'x' } }; 1 | ForEach-Object { 1 | ForEach-Object { 1 } | f }",
            f"InvalidCastFromStringToInteger,{OF_FOREACH}",
        ),
        (
            "function g { process { [int]'x' } }; function f { 1 | ForEach-Object { 1 } }; f | g",
            "InvalidCastFromStringToInteger",
        ),
    ],
)
def test_the_id_of_an_error_names_the_cmdlet_that_ran_the_block(run, text, id):
    assert run(f"try {{ {text} }} catch {{ {AT} }}").output == [id]


def test_reported_where_it_happened_it_names_no_cmdlet(run):
    ran = run("1 | ForEach-Object { [int]'x'; 'after' }")

    assert (ran.output, ran.errors) == (["after"], ["InvalidCastFromStringToInteger"])
