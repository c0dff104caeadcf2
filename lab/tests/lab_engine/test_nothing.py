"""A command that writes nothing leaves AutomationNull, which is not $null (sharp facts, "Nothing is not $null")."""

import pytest
from winboot_lab.engine.refusal import Refusal

F = "function f { if ($false) { 1 } }\n"


@pytest.mark.parametrize(
    "text",
    [
        "$null -eq [string](f)",
        "$v = f; $null -eq [string]$v",
        "$h = @{ a = f }; $null -eq [string]$h.a",
        "$o = [pscustomobject]@{ a = f }; $null -eq [string]$o.a",
        "$null -eq [string](1, 2 | Where-Object { $_ -gt 5 })",
        "& { [string]$s = f; $null -eq $s }",
        "$null -ne [string]$null",
        "$h = @{ a = f }; @($h.a).Count -eq 0",
        "$t = @{}; $t['x'] = f; @($t.x).Count -eq 0",
        "@(@('a', (f)) | ForEach-Object { 1 }).Count -eq 1",
        "@('a', (f)).Count -eq 2",
        "\"$(@('a', (f), 'b'))\" -eq 'a b'",
        "-not ((f) -notlike 'x*')",
        "-not ((f) -contains $null)",
        "(f) -notcontains 'x'",
        "@(switch (f) { default { 1 } }).Count -eq 0",
        "@(, (f) | ForEach-Object { 1 }).Count -eq 0",
        "\"$(f)\" -eq ''",
        "(& { param([string]$x) $null -ne $x } (f))",
        "(& { param([string]$x) $null -ne $x } -x:(f))",
        "'abc'.Replace('b', (f)) -eq 'ac'",
        "$null -eq (f).PSObject.Properties['a']",
    ],
)
def test_it_is_null_and_no_item_wherever_no_parameter_takes_it(run, text):
    ran = run(F + text)

    assert (ran.output, ran.errors) == ([True], [])


@pytest.mark.parametrize(
    "text",
    [
        "[regex]::Match((f), 'x')",
        "$x = f; [regex]::Match($x, 'x')",
        "[IO.File]::ReadAllText((f))",
        "[Net.IPAddress]::Parse((f))",
        "[Text.Encoding]::UTF8.GetBytes((f))",
        "[Text.Encoding]::UTF8.GetBytes($null)",
    ],
)
def test_a_method_that_needs_text_refuses_it_as_null(run, text):
    assert run(F + text).errors == ["ArgumentNullException"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[IO.File]::ReadAllBytes((f))", "Path cannot be null.\r\nParameter name: path"),
        ("[IO.File]::Copy((f), 'x')", "File name cannot be null.\r\nParameter name: sourceFileName"),
    ],
)
def test_it_says_what_the_reference_source_says(run, text, message):
    assert run(F + f"try {{ {text} }} catch {{ $_.Exception.InnerException.Message }}").output == [message]


def test_a_member_of_it_is_a_member_of_null(run):
    assert run(F + "([string](f)).Split('.')").errors == ["InvokeMethodOnNull"]


@pytest.mark.parametrize("text", ["[Math]::Max(1, (f))", "[TimeSpan]::FromSeconds((f))"])
def test_no_number_takes_its_place(run, text):
    assert run(F + text).errors == ["System.ArgumentException"]


def test_a_time_has_no_null(run):
    with pytest.raises(Refusal, match="a cast of a command without output"):
        run(F + "[datetime](f)")


def test_foreach_takes_what_a_function_wrote_and_walks_what_stands_in_parentheses(run):
    script = (
        "function g { , @(1, 2, 3) }; @(foreach ($i in g) { 1 }).Count; @(foreach ($i in (g)) { 1 }).Count"
    )

    assert run(script).output == [1, 3]


def test_null_among_texts_stays_null_in_a_positional_argument_and_not_in_a_cast(run):
    script = """
        function g([string[]]$List) { foreach ($item in $List) { $null -eq $item } }
        g @('a', $null)
        foreach ($item in [string[]]@('a', $null)) { $null -eq $item }
    """

    assert run(script).output == [False, True, False, False]


def test_a_switch_without_a_value_is_off(run):
    assert run(F + "function g([switch]$On) { [bool]$On }; g -On:(f); g -On:$null").output == [False, False]


def test_a_format_with_too_few_arguments_has_no_inner_exception(run):
    script = (
        "try { '{0} {1}' -f 'a' } catch { $_.FullyQualifiedErrorId; $null -eq $_.Exception.InnerException }"
    )

    assert run(script).output == ["FormatError", True]
