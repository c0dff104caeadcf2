"""Which functions can end without output, and where that matters."""

from __future__ import annotations

from pathlib import Path

import pytest
from winboot_lab.language.check import check_script
from winboot_lab.language.parser import parse
from winboot_lab.language.silent import silent_functions

from winboot.cli.own_steps import silent_values
from winboot.config.source import Place


def silent(text: str) -> list[str]:
    return sorted(silent_functions(parse(text)))


@pytest.mark.parametrize(
    "body",
    [
        "if ($a) { 'x' }",
        "return",
        "if ($a) { return }; 'x'",
        "foreach ($i in $a) { $i }",
        "$x = 'a'",
        "switch ($a) { 1 { 'x' } }",
        "try { 'x' } catch { }",
        "Get-Item -Path C:\\",
        "1, 2 | Where-Object { $_ }",
        "$list.ToArray()",
        "[void]'x'",
        "$i++",
        "@(Get-Item -Path C:\\)",
        "$x = Get-Item -Path C:\\; $x",
        "while ($a) { return 'x' }",
        "(Get-Other) -replace 'a', 'b'",
        "process { $_ }",
    ],
)
def test_a_path_without_output_is_found(body: str) -> None:
    assert "Get-It" in silent(f"function Get-Other {{ }}; function Get-It {{ {body} }}")


@pytest.mark.parametrize(
    "body",
    [
        "'x'",
        "if ($a) { 'x' } else { 'y' }",
        "if ($a) { return 'x' }; $null",
        "if ($a) { throw 'x' } else { 'y' }",
        "try { 'x' } catch { throw }",
        "try { 'x' } catch { 'y' }",
        "'x'; return",
        ", @()",
        "param([string]$Text) $Text",
        "$x = 'a'; $x",
        "Get-Other",
        "if ($a) { Stop-It }; 'x'",
        "if ($a) { 'x' } else { Stop-It }",
        "do { 'x' } while ($a)",
        '"$(Get-Item -Path C:\\)"',
        "[string](Get-Item -Path C:\\)",
    ],
)
def test_where_every_path_writes_something_nothing_is_found(body: str) -> None:
    text = f"function Get-Other {{ 1 }}; function Stop-It {{ throw 'x' }}; function Get-It {{ {body} }}"

    assert "Get-It" not in silent(text)


def test_what_writes_only_what_a_silent_function_writes_is_silent_too() -> None:
    text = "function Get-A { Get-B }; function Get-B { Get-C }; function Get-C { if ($x) { 1 } }"

    assert silent(text) == ["Get-A", "Get-B", "Get-C"]


TRAP = "function Get-It { if ($args) { 'x' } }\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[string](Get-It)", (2, 9)),
        ("[regex]::Match((Get-It), 'x')", (2, 16)),
        ("(Get-It).Trim()", (2, 1)),
        ("$x = Get-It; [string]$x", (2, 22)),
        ("$x = Get-It; [regex]::Match($x, 'x')", (2, 29)),
        ("$x = Get-It; $x.Trim()", (2, 14)),
        ("$x = Get-It; if ($x.Trim()) { 'y' }", (2, 18)),
        ("$x = (Get-It)\nif ($y) { $x.Trim() }", (3, 11)),
    ],
)
def test_a_trap_is_named_with_its_place(text: str, place: tuple[int, int]) -> None:
    (found,) = [one for one in check_script(TRAP + text, origin="t.ps1") if one.id == "SilentValue"]

    assert (found.line, found.column) == place
    assert "Get-It can end without output" in found.message
    for form in ('"$(Get-It', "$null before it", "return `$null`".replace("`$null`", "$null")):
        assert form in found.instead


@pytest.mark.parametrize(
    "text",
    [
        '"$(Get-It)"',
        "[int](Get-It)",
        "[bool](Get-It)",
        "$x = Get-It; if ($null -eq $x) { return }; $x.Trim()",
        "$x = Get-It; if ($x) { $x.Trim() }",
        "$x = Get-It; $null -ne $x -and $x.Equals('a')",
        "$x = Get-It; if (-not $x) { $x = 'a' }; $x.Trim()",
        "function Get-Sure { $null }; [string](Get-Sure)",
    ],
)
def test_the_right_forms_are_left_alone(text: str) -> None:
    assert [one for one in check_script(TRAP + text, origin="t.ps1") if one.id == "SilentValue"] == []


def test_a_users_own_step_is_warned_in_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "look.ps1"
    path.write_text("# mine\n$text = [string](Read-Registry 'SOFTWARE\\Corp' 'Zone')\n", encoding="utf-8")

    (found,) = silent_values(path, check_script)

    assert found.place == Place(str(path), 2, 17)
    assert found.wrong.startswith("Read-Registry can end without output")
