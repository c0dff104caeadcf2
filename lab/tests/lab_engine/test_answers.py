"""Answers of Windows PowerShell 5.1 that no recording pins: a script in one row, what it writes in the next column."""

import pytest
from winboot_lab.engine.refusal import Refusal

ANSWERS = [
    # One object may be indexed like a list of one; other places hold nothing.
    ("(5)[0]; (5)[-1]; @((5)[1]).Count", [5, 5, 0]),
    ("([datetime]'2020-01-01')[0].Year", [2020]),
    # What a collection lacks is asked of its items, and each of them counts as one.
    ("$l = [Collections.Generic.List[int]](1, 2); $l.Length", [1, 1]),
    ("function f { $input.Count; 'then' }; 7, 8 | f", [1, 1, "then"]),
    # Several dimensions: from the end, outside, and several elements at once.
    (
        "$a = [int[,]]::new(2, 2); $a[1, 1] = 7; $a[-1, -1]; $null -eq $a[5, 5]; $a[(0, 0), (1, 1)]",
        [7, True, 0, 7],
    ),
    # A new entry takes the place of the last one that was removed.
    (
        "$d = [Collections.Generic.Dictionary[string, int]]::new(); 'a', 'b', 'c' | % { $d[$_] = 1 };"
        "[void]$d.Remove('a'); [void]$d.Remove('b'); $d['x'] = 1; $d['y'] = 1; $d['z'] = 1; $d.Keys -join ','",
        ["y,x,c,z"],
    ),
    (
        '$s = [Collections.Generic.SortedSet[int]]::new([int[]](3, 1, 2)); "$s $($s.Min) $($s.Max)"',
        ["1 2 3 1 3"],
    ),
    (
        "$l = [Collections.Generic.List[string]]('b', 'a'); $l.ConvertAll([Converter[string, int]]{ $args[0].Length })",
        [1, 1],
    ),
    ("(1, 2).ForEach({ $_ + $args[0] }, 10)", [11, 12]),
    ("@{ a = 1 }.Keys[0]; @{ a = 1 }.get_Item('a')", ["a", 1]),
    # Conversions.
    ("[int]::TryParse('5', [ref]$null)", [True]),
    ("([bigint]'12345678901234567890' + 1).ToString()", ["12345678901234567891"]),
    ("[bigint]::Pow(2, 64).ToString()", ["18446744073709551616"]),
    ("([IO.FileInfo]'C:\\a\\b.c').Name", ["b.c"]),
    ("([datetime]'14:30').Hour; ([datetime]'14:30').Date -eq [datetime]::Today", [14, True]),
    ("([ipaddress]'1.2.3.4').MapToIPv6().ToString(); [string][ipaddress]'::1'", ["::ffff:1.2.3.4", "::1"]),
    # Numbers: a logarithm is a quotient, a decimal gets no digits by rounding, halves of milliseconds go away from zero.
    (
        "[math]::Log(1000, 10) -lt 3; [math]::Log10(1000); [math]::Round(1.5d, 3).ToString()",
        [True, 3.0, "1.5"],
    ),
    ("([datetime]'2020-01-01').AddMilliseconds(0.5).Millisecond", [1]),
    # Text.
    ("'abc' -replace '(b)', '$10'; 'abc' -replace '(b)', '${1}0'", ["a$10c", "ab0c"]),
    ("([xml]'<r><e/><f></f></r>').OuterXml", ["<r><e /><f></f></r>"]),
    ("[guid]::Empty.Guid", ["00000000-0000-0000-0000-000000000000"]),
    # The culture en-US, where it is named.
    ("(-5).ToString('C', [cultureinfo]'en-US'); (5).ToString('C')", ["($5.00)", "\u00a45.00"]),
    ("([datetime]'2024-03-05 14:05:06').ToString([cultureinfo]'en-US')", ["3/5/2024 2:05:06 PM"]),
    # What exceptions say of themselves.
    ("[IO.FileNotFoundException]::new().Message", ["Unable to find the specified file."]),
    (
        "[ObjectDisposedException]::new('x').Message",
        ["Cannot access a disposed object.\r\nObject name: 'x'."],
    ),
    ("[Management.Automation.RuntimeException]::new().Message", ["System error."]),
    # Names of static members do not stand in the way of member enumeration.
    ("$a = [pscustomobject]@{ Empty = 1 }, [pscustomobject]@{ Empty = 2 }; $a.Empty -join ','", ["1,2"]),
    # The attributes of a parameter are all there.
    (
        "function f { param([Parameter(Mandatory)][ValidateSet('a')][string]$X) }"
        "$a = (Get-Command f).Parameters['X'].Attributes; $a.Count; $a.ValidValues; $a.Mandatory",
        [3, "a", True],
    ),
    ("data d -SupportedCommand Get-Date { Get-Date '2020-01-01' }; $d.Year", [2020]),
    ("$o = [pscustomobject]@{ a = 1 }; [object]::Equals($o, $o); [object]::Equals(1, 1)", [True, True]),
    # Files.
    (
        "'l1', 'x' | Set-Content C:\\sw.txt; switch -Regex -File C:\\sw.txt { 'l(\\d)' { $Matches[1] } default { $_ } }",
        ["1", "x"],
    ),
    (
        "function g { 'x' }; (Get-Content function:g).ToString(); Get-Content alias:dir",
        [" 'x' ", "Get-ChildItem"],
    ),
]


@pytest.mark.parametrize(("script", "output"), ANSWERS, ids=[script[:60] for script, _ in ANSWERS])
def test_the_lab_answers_like_windows_powershell(run, script, output):
    ran = run(script)

    assert (ran.output, ran.errors) == (output, [])


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("Set-StrictMode -Version 2; (5)[1]", "CannotIndex"),
        ("$a = [int[,]]::new(2, 2); $a[0]", "NeedMultidimensionalIndex"),
        ("$h = @{ a = 1 }; foreach ($k in $h.Keys) { $h[$k] = 0 }", "System.InvalidOperationException"),
        ("[bigint]'x'", "InvalidCastParseTargetInvocation"),
        ("[IO.Path]::GetFullPath('x:y:z')", "NotSupportedException"),
        ("switch -File C:\\nobody.txt { a { } }", "PathNotFound"),
    ],
)
def test_the_lab_fails_like_windows_powershell(run, script, error):
    assert run(script).errors == [error]


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("[Collections.Generic.List[int]]::new().Capacity", "Capacity"),
        ("[regex]::new('a').Replace('aa', 'b', 1, 1)", "Replace"),
        ("[Text.UTF32Encoding]::new()", "new"),
        ("[Collections.Generic.Dictionary[string, int]]::new().Item('a')", "Item"),
        ("([pscustomobject]@{}).PSObject.Methods | % Name", "Methods"),
        ("Set-StrictMode -Version 7.0", "StrictMode"),
        ("Rename-Item env:OS OSX", "Rename-Item"),
        ("[cultureinfo]::CurrentCulture = 'en-US'", "CurrentCulture"),
        (
            "function f { param([ValidateRange(1, 2)]$X) }; (Get-Command f).Parameters['X'].Attributes",
            "Attributes",
        ),
    ],
)
def test_what_the_lab_does_not_know_for_sure_is_refused(run, script, what):
    with pytest.raises(Refusal, match=what):
        run(script)
