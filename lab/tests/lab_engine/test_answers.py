"""Answers of Windows PowerShell 5.1 that no recording pins: a script in one row, what it writes in the next column."""

import pytest
from winboot_lab.engine.refusal import Refusal

ANSWERS = [
    # One object may be indexed like a list of one; other places hold nothing.
    # A member that a collection lacks is read from each item, and each item counts as one.
    # Several dimensions: from the end, outside, and several elements at once.
    # A new entry takes the place of the last one that was removed.
    ("(1, 2).ForEach({ $_ + $args[0] }, 10)", [11, 12]),
    # Conversions.
    ("[int]::TryParse('5', [ref]$null)", [True]),
    ("([bigint]'12345678901234567890' + 1).ToString()", ["12345678901234567891"]),
    ("([IO.FileInfo]'C:\\a\\b.c').Name", ["b.c"]),
    # Numbers: a logarithm is a quotient, a decimal gets no digits by rounding, halves of milliseconds go away from zero.
    # Text.
    ("'abc' -replace '(b)', '$10'; 'abc' -replace '(b)', '${1}0'", ["a$10c", "ab0c"]),
    # The culture en-US, where it is named.
    # What exceptions say of themselves.
    # Names of static members do not prevent member enumeration.
    # The attributes of a parameter are all there.
    # Files.
    (
        "'l1', 'x' | Set-Content C:\\sw.txt; switch -Regex -File C:\\sw.txt { 'l(\\d)' { $Matches[1] } default { $_ } }",
        ["1", "x"],
    ),
]


@pytest.mark.parametrize(("script", "output"), ANSWERS, ids=[script[:60] for script, _ in ANSWERS])
def test_the_lab_answers_like_windows_powershell(run, script, output):
    ran = run(script)

    assert (ran.output, ran.errors) == (output, [])


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("$h = @{ a = 1 }; foreach ($k in $h.Keys) { $h[$k] = 0 }", "System.InvalidOperationException"),
        ("[bigint]'x'", "InvalidCastParseTargetInvocation"),
        ("[IO.Path]::GetFullPath('x:y:z')", "NotSupportedException"),
        ("switch -File C:\\absent.txt { a { } }", "PathNotFound"),
    ],
)
def test_the_lab_fails_like_windows_powershell(run, script, error):
    assert run(script).errors == [error]


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("[Collections.Generic.List[int]]::new().Capacity", "Capacity"),
        ("[Text.UTF32Encoding]::new()", "new"),
        ("([pscustomobject]@{}).PSObject.Methods | % Name", "Methods"),
        ("Set-StrictMode -Version 7.0", "StrictMode"),
        ("Rename-Item env:OS OSX", "Rename-Item"),
        ("[cultureinfo]::CurrentCulture = 'en-US'", "CurrentCulture"),
    ],
)
def test_what_the_lab_does_not_know_for_sure_is_refused(run, script, what):
    with pytest.raises(Refusal, match=what):
        run(script)
