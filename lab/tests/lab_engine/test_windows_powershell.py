"""Where Windows PowerShell 5.1 is not like other languages, or not like newer PowerShells."""

import pytest
from winboot_lab.engine.refusal import Refusal


def test_redirected_output_is_utf_16_with_a_mark(run):
    ran = run(
        r"'a' > C:\r.txt; $null > C:\n.txt; [IO.File]::ReadAllBytes('C:\r.txt') -join ' '; (Get-Item C:\n.txt).Length"
    )

    assert ran.output == ["255 254 97 0 13 0 10 0", 2]


def test_what_a_getter_throws_is_swallowed(run):
    ran = run(r"$null -eq [IO.FileInfo]::new('C:\absent').Length; $Error.Count")

    assert (ran.output, ran.errors) == ([True, 0], [])


def test_an_empty_subexpression_is_null_and_goes_down_the_pipe(run):
    assert run("$() | ForEach-Object { 'once' }").output == ["once"]


def test_output_that_is_nothing_does_not_go_down_the_pipe(run):
    assert run("$(if ($false) { 1 }) | ForEach-Object { 'never' }").output == []


def test_a_failing_expression_in_an_array_takes_the_whole_statement_with_it(run):
    ran = run("@(1/0).Count; 'after'; @(1; 1/0).Count")

    assert (ran.output, ran.errors) == (["after", 1], ["RuntimeException", "RuntimeException"])


@pytest.mark.parametrize("value", ["Ignore", "Suspend", "Inquire"])
def test_preferences_that_5_1_does_not_support_are_refused_when_they_matter(run, value):
    with pytest.raises(Refusal, match=f"ErrorActionPreference = '{value}'"):
        run(f"$ErrorActionPreference = '{value}'; Get-Item C:\\absent")


@pytest.mark.parametrize("text", ["class A { }", "enum A { B }", "function A { clean { } }", "10u"])
def test_newer_or_unsupported_syntax_is_refused_and_not_blamed_on_the_script(run, text):
    with pytest.raises(Refusal, match="line 1, column"):
        run(f"try {{ [scriptblock]::Create('{text}') }} catch {{ 'caught' }}")


def test_stopping_upstream_runs_no_more_of_it_but_every_finally(run):
    script = """
        function Source { try { foreach ($i in 1..9) { $script:made = $i; $i } } finally { $script:closed = $true } }
        Source | Select-Object -First 2
        "$made $closed"
    """

    assert run(script).output == [1, 2, "2 True"]


def test_begin_process_and_end_of_a_pipeline_interleave(run):
    script = """
        function A { begin { 'A begin' } process { "A $_" } end { 'A end' } }
        function B { begin { 'B begin' } process { "B($_)" } end { 'B end' } }
        1, 2 | A | B
    """

    assert run(script).output == [
        "B begin",
        "B(A begin)",
        "B(A 1)",
        "B(A 2)",
        "B(A end)",
        "B end",
    ]


def test_a_function_sees_the_variables_of_its_caller_but_does_not_change_them(run):
    script = """
        function Inner { $x; $x = 'inner'; $x }
        function Outer { $x = 'outer'; Inner; $x }
        $x = 'script'; Outer; $x
    """

    assert run(script).output == ["outer", "inner", "outer", "script"]


def test_break_reaches_a_loop_outside_of_the_function(run):
    script = "function Stop-It { break }; foreach ($i in 1..3) { $i; Stop-It }; 'after'"

    assert run(script).output == [1, "after"]


def test_the_unary_comma_keeps_an_array_whole(run):
    assert run("function F { ,@(1, 2) }; @(F).Count; (F).Count").output == [1, 2]


def test_single_objects_are_no_arrays(run):
    assert run("function F { 'abc' }; (F)[0]; @(F)[0]").output[1] == "abc"
