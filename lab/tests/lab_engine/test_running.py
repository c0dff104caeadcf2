"""Running one script: what the caller sees of output, errors, refusals, and the end."""

import gc
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from winboot_lab.engine.binder import Binding
from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.run import Ended, run_script
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.session import Activation
from winboot_lab.engine.stages import Stage
from winboot_lab.engine.values import SecureString
from winboot_lab.engine.variables import Variable


def run(session: Any, text: str, **parameters: object) -> tuple[list[object], list[str], Ended]:
    """The output, the ids of the errors, and the end of a script."""
    output: list[object] = []
    errors: list[str] = []

    def emit(stream: str, value: Any) -> None:
        if stream == "output":
            output.append(value)
        elif stream == "error":
            errors.append(value.id)

    ended = run_script(session, text, parameters, emit=emit)
    return output, errors, ended


def test_objects_are_emitted_the_moment_they_fall(session):
    seen: list[object] = []

    def emit(stream: str, value: Any) -> None:
        seen.append(value)
        if value == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_script(session, "1; 2; 3", {}, emit=emit)
    assert seen == [1, 2]


def test_parameters_arrive_by_name_with_nested_tables_and_secrets(session):
    script = """
        param([string]$Mode = 'Look', [hashtable]$Secrets = @{}, [hashtable]$Facts = @{})
        "$Mode $($Secrets.token.GetType().Name) $($Facts.list.Count) $($Facts.inner.deep)"
    """
    output, _, _ = run(
        session,
        script,
        Mode="Change",
        Secrets={"token": SecureString("x")},
        Facts={"list": [1, 2], "inner": {"deep": True}},
    )

    assert output == ["Change SecureString 2 True"]


def test_a_refusal_is_seen_by_no_try_trap_or_preference(session):
    script = """
        $ErrorActionPreference = 'SilentlyContinue'
        trap { 'trapped'; continue }
        try { Export-Clixml -Path x -InputObject 1 -ErrorAction Ignore } catch { 'caught' } finally { 'finally' }
        'after'
    """
    output: list[object] = []

    with pytest.raises(Refusal) as refused:
        run_script(session, script, {}, emit=lambda stream, value: output.append(value))

    assert output == []
    assert (refused.value.kind, refused.value.name, refused.value.line, refused.value.column) == (
        "command",
        "Export-Clixml",
        4,
        15,
    )


def test_a_parameter_that_only_windows_has_is_refused_by_name(session):
    with pytest.raises(Refusal, match=r"line 1, column 5: .* parameter 'Sort-Object -Culture'"):
        run(session, "1 | Sort-Object -Culture de")


def test_an_unknown_command_name_is_powershells_own_error(session):
    output, errors, ended = run(session, "No-SuchThing; 'after'")

    assert (output, errors, ended.state) == (["after"], ["CommandNotFoundException"], "completed")


def test_an_uncaught_throw_ends_the_run_as_failed(session):
    output, errors, ended = run(session, "'before'; throw 'no disk'; 'after'")

    assert (output, errors, ended.state) == (["before"], [], "failed")
    assert ended.error.exception.message == "no disk"


def test_exit_gives_its_code(session):
    _, _, ended = run(session, "exit 3")

    assert (ended.state, ended.exit_code) == ("completed", 3)


def test_a_script_that_does_not_parse_fails_without_running(session):
    output, _, ended = run(session, "'before'\nif (")

    assert (output, ended.state, ended.error.category) == ([], "failed", "ParserError")


def test_a_cancelled_run_stops_between_statements(session):
    output: list[object] = []

    ended = run_script(
        session,
        "foreach ($i in 1..1000) { $i }",
        {},
        emit=lambda stream, value: output.append(value),
        cancelled=lambda: len(output) >= 3,
    )

    assert (ended.state, output) == ("stopped", [1, 2, 3])


def test_a_loop_without_a_body_can_be_cancelled_too(session):
    asked: list[int] = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 50

    ended = run_script(session, "while ($true) { }", {}, emit=lambda stream, value: None, cancelled=cancelled)

    assert ended.state == "stopped"


def test_each_run_is_a_fresh_session(session):
    run(session, "$leak = 1; function Leak { }")
    output, errors, _ = run(session, "$null -eq $leak; Leak")

    assert (output, errors) == ([True], ["CommandNotFoundException"])


def test_the_same_text_is_compiled_once(session):
    from winboot_lab.engine.programs import compiled

    assert compiled("'some text'") is compiled("'some text'")


def test_a_script_file_and_a_block_from_text_use_what_is_compiled(session):
    from winboot_lab.engine.invoke import code_of
    from winboot_lab.engine.programs import compiled
    from winboot_lab.engine.values import ScriptBlock

    once = compiled("'text of a file'")
    named = once.named("file.ps1")

    assert (named.display, once.display) == ("file.ps1", "<ScriptBlock>")
    assert named.phase("end") is once.phase("end")
    assert code_of(ScriptBlock("'text of a file'")) == (once, None)


def test_lines_of_a_library_in_a_script_file_are_those_of_the_whole_text(session):
    from winboot.script.pieces import BOUNDARY

    failing = "try { throw 'x' } catch { $_.InvocationInfo.ScriptLineNumber }"
    text = f"'above'\n\n\n{BOUNDARY}\n\n{failing}\n"
    session.machine.files.write(r"C:\lines.ps1", text.encode())

    output, _, _ = run(session, r"& C:\lines.ps1")

    assert output == ["above", 6]


SCOPES = """
    function Get-Plain([int]$Number, [string[]]$Names) { $Number; $Names | ForEach-Object { "$_" } }
    function Get-Advanced {
        [CmdletBinding()] param([Parameter(Mandatory, ValueFromPipeline)][ValidateSet('a', 'b')][string]$Name)
        begin { [int]$count = 0 }
        process { $count++; Get-Plain -Number $count -Names $Name 3>$null | Select-Object -First 1 }
    }
    foreach ($turn in 1..50) {
        'a', 'b' | Get-Advanced | Where-Object { $_ -gt 0 } | Out-Null
        & { param([int]$Turn) . { param([string]$Text) $Text } -Text $Turn } -Turn $turn | Out-Null
        try { Get-Advanced -Name c } catch { $null = $_ }
    }
"""


def test_what_has_run_is_gone_without_the_collector(session):
    """Each call's scope, stage and variables: they were a million objects of a join."""
    run(session, SCOPES)
    gc.collect()
    gc.disable()
    try:
        before = alive()
        run(session, SCOPES)
        after = alive()
    finally:
        gc.enable()

    # In each of the 50 turns one call fails, whose frames its error keeps.
    assert {kind: after[kind] - before[kind] for kind in after if after[kind] - before[kind] > 75} == {}


def alive() -> Counter[str]:
    """How many of what a call makes are there."""
    kinds = (Scope, Variable, Stage, Call, Binding, Activation)
    return Counter(kind.__name__ for one in gc.get_objects() for kind in kinds if isinstance(one, kind))


def test_endless_recursion_is_powershells_own_error(session):
    _, _, ended = run(session, "function F { F }; try { F } catch { $_.FullyQualifiedErrorId; throw }")

    assert ended.error.exception.type_name == "System.Management.Automation.ScriptCallDepthException"


@pytest.mark.parametrize("text", ["1", "throw 'x'", "}"])
def test_after_a_script_calls_nest_as_deep_as_before(session, text):
    before = sys.getrecursionlimit()

    run(session, text)

    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_deep_brackets_end_no_process_in_which_a_script_runs(text: str) -> None:
    """A process of its own: the mistake is a segmentation fault."""
    code = (
        "import sys, msgspec; from winboot_lab.engine.room import deep_calls\n"
        "with deep_calls():\n try: msgspec.json.decode(sys.stdin.read())\n except RecursionError: print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True
    )

    assert done.stdout == "refused\n"
