"""The strict check names what must not go to a node, and lets the rest alone."""

from __future__ import annotations

import pytest
from winboot_lab.language import commands
from winboot_lab.language.check import Finding, check_script, check_template


def findings(text: str) -> tuple[Finding, ...]:
    """What is found in a script."""
    return check_script(text, origin="test.ps1")


def ids(text: str) -> list[str]:
    """The ids of what is found."""
    return [finding.id for finding in findings(text)]


@pytest.mark.parametrize(
    ("text", "finding_id"),
    [
        ("gci C:\\", "Alias"),
        ("1 | % { $_ }", "Alias"),
        ("sc query", "Alias"),
        ("curl https://x", "Alias"),
        ("Get-Service -Na kubelet", "AbbreviatedParameter"),
        ("Get-Service -Name x -ea Stop", "UnknownParameter"),
        ("Get-Service -Cn x", "ParameterAlias"),
        ("Remove-Item -LiteralPath x -wi", "ParameterAlias"),
        ("Get-Kubelet", "UnknownCommand"),
        ("Get-Uptime", "UnknownCommand"),
        ("ConvertFrom-Json -AsHashtable -InputObject '{}'", "UnknownParameter"),
        ("Get-Content -AsByteStream -Path x", "UnknownParameter"),
        ("Get-WinHttpProxy", "NotEverywhere"),
        ("Invoke-Expression 'Get-Item x'", "InvokeExpression"),
        ("function Get-It { param([string] $Password) $Password }", "PlainTextSecret"),
        ("ConvertTo-SecureString 'hunter2' -AsPlainText -Force", "PlainTextSecret"),
        ("$x = $y", "UnsetVariable"),
        ('"$y"', "UnsetVariable"),
        ("function Get-It { $inner = 1; $inner }\n$inner", "UnsetVariable"),
        ("$n += 1", "UnsetVariable"),
        ("$late; $late = 1", "UnsetVariable"),
        ("$n = $n + 1", "UnsetVariable"),
        ("function Get-It { $y; $y = 1 }", "UnsetVariable"),
        ("$o.p = 1; $o = @{}", "UnsetVariable"),
        ("if ($IsWindows) { 1 }", "NewerVariable"),
        ("[semver] '1.2.3'", "NewerType"),
        ("[Text.Json.JsonDocument]::Parse('{}')", "NewerType"),
        ("[Convert]::ToHexString([byte[]] (1, 2))", "NewerMember"),
        ("[IO.File]::Move('a', 'b', $true)", "NewerMember"),
        ("'a||b'.Split('||')", "NewerMember"),
        ("[Security.Cryptography.SHA256]::HashData($null)", "NewerMember"),
        ("$d = @{}; $d.TryAdd('a', 1)", "NewerMember"),
        ("function Get-It { param([ValidateSet('a', ErrorMessage = 'x')] $Mode) $Mode }", "NewerMember"),
        ("#requires -Version 7.2\n1", "NewerRequires"),
        ("function Fetch-It { 1 }", "UnapprovedVerb"),
        ("function DoIt { 1 }", "FunctionName"),
        ("Set-Content -LiteralPath x -Value y -Encoding UTF8", "FileEncoding"),
        ("Set-Content -LiteralPath x -Value y", "FileEncoding"),
        ("'x' | Out-File -FilePath y", "FileEncoding"),
        ("'x' > y.txt", "FileRedirection"),
        ("Get-Item x 2>> y.txt", "FileRedirection"),
        ("sc.exe query kubelet", "ExitCodeIgnored"),
        ("& 'C:\\k\\nssm.exe' start kubelet", "ExitCodeIgnored"),
        ("$exe = 'C:\\k\\kubectl.exe'; & $exe get node", "ExitCodeIgnored"),
        ("if ($LASTEXITCODE) { 1 }\ntar.exe -xf a.tgz", "ExitCodeIgnored"),
        ("$x = $true ? 1 : 2", "UnexpectedToken"),
    ],
)
def test_each_bad_habit_has_its_name(text: str, finding_id: str) -> None:
    assert ids(text) == [finding_id]


@pytest.mark.parametrize(
    "text",
    [
        "Get-ChildItem -LiteralPath C:\\ -Directory -ErrorAction SilentlyContinue",
        "Get-WindowsFeature -Name Containers",
        "Get-HnsNetwork | ForEach-Object { $_.Name }",
        "sc.exe query kubelet\nif ($LASTEXITCODE -ne 0) { throw 'x' }",
        "function Start-It { netsh.exe winhttp show proxy; $code = $LASTEXITCODE; $code }",
        "Get-Item x 2>$null",
        "$x = 1; function Get-It { $x }",
        "foreach ($a in 1, 2) { $a }",
        "param($Mode) $Mode; $args; $env:PATH; $PSVersionTable",
        "try { 1 } catch { $_.Exception; $PSItem }",
        "Get-Item x -OutVariable found; $found",
        "Set-Variable -Name made -Value 1; $made",
        "1 | ForEach-Object { $sum = $_ }; $sum",
        "$script:state = 1; function Get-It { $script:state }",
        "function Set-It { $script:state = 1 }; $script:state",
        "$a, $b = 1, 2; $a; $b",
        "[int] $n = 1; $n++",
        "while ($true) { if ($seen) { break }; $seen = 1 }",
        "$block = { $late }; $late = 1; & $block",
        "$z = 1; function Get-It { $z; $z = 2; $z }",
        "function Get-It { param($p = $q, $q) $p }",
        "do { $w = Get-Item x } until ($w)",
        "$h = @{}; $h.x = 1; $h['y'] = 2",
        "$Secrets = 1; ConvertTo-SecureString -String $Secrets.x -AsPlainText -Force",
        "function Get-It { param([string] $Name, [securestring] $Password) $Name; $Password }",
        "function Get-It { param([string[]] $Secrets) $Secrets }",
        "Export-Csv -Path x -Encoding ASCII",
        "'a,b'.Split(','); 'ab'.Replace('a', 'b'); 'ab'.Contains('a')",
        "& { param($a) $a } 1",
        "$look = { 1 }; & $look",
        "switch -Regex ('a') { 'x' { $switch } }",
        "#requires -Version 5.1\n1",
    ],
)
def test_good_habits_are_let_alone(text: str) -> None:
    assert findings(text) == ()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Get-It -Name a -All", []),
        ("Get-It a", []),
        ("Get-It -N a", ["AbbreviatedParameter"]),
        ("Get-It -Alias a", []),
        ("Get-It -Nothing", ["UnknownParameter"]),
        ("Get-It -ErrorAction Stop", ["UnknownParameter"]),
        ("Get-It a b", ["TooManyArguments"]),
        ("Get-It -All a b", ["TooManyArguments"]),
        ("Get-It @arguments a b", []),
    ],
)
def test_a_call_of_an_own_function_is_held_to_its_param_block(call: str, expected: list[str]) -> None:
    function = "function Get-It { param([Alias('Alias')] [string] $Name, [switch] $All) $Name; $All }\n$arguments = @{}\n"
    assert ids(function + call) == expected


def test_an_advanced_function_takes_the_common_parameters() -> None:
    assert ids("function Get-It { [CmdletBinding()] param($Name) $Name }\nGet-It a -ErrorAction Stop") == []


def test_a_function_that_reads_args_takes_anything() -> None:
    assert ids("function Get-It { $args }\nGet-It a b -Any") == []


def test_a_finding_says_where_what_and_what_instead() -> None:
    (finding,) = findings("$x = 1\n  gci $x")
    assert str(finding) == "test.ps1:2:3: gci is an alias; write Get-ChildItem (Alias)"


@pytest.mark.parametrize(
    "text",
    [
        "$x = {{ value }}",
        "Get-Item -LiteralPath {{ path }} -Force",
        "{{ library }}",
        "if ({{ a }} -and {{ b }}) { @{ 'k' = {{ c }} } }",
        "{% for item in items %}\nGet-Item {{ item }}\n{% endfor %}",
        "{# a comment with {{ braces }} #}\n1",
        "$x = {% if a %}{{ one }}{% else %}{{ two }}{% endif %}",
        "{% if a %}\nif ($x) {\n{% else %}\nif ($y) {\n{% endif %}\n1 }",
        "& {{ program }} a",
    ],
)
def test_markers_may_stand_where_an_expression_may(text: str) -> None:
    assert check_template(text, origin="t.ps1.j2") == ()


@pytest.mark.parametrize(
    "text",
    [
        "# {{ value }}",
        "<# {{ value }} #>",
        '"a {{ value }} b"',
        "'a {{ value }} b'",
        '@"\n{{ value }}\n"@',
        "@'\n{{ value }}\n'@",
        "Get-{{ noun }} x",
        "Get-Item C:\\{{ name }}",
        "Get-Item {{ name }}.txt",
        "{{ verb }}-Item x",
        '"$({{ value }})"',
    ],
)
def test_a_marker_anywhere_else_is_found(text: str) -> None:
    found = check_template(text, origin="t.ps1.j2")
    assert found != ()


def test_a_misplaced_marker_is_shown_where_the_template_has_it() -> None:
    (finding,) = check_template("{% extends 'x' %}\n$x = {{ fine }}\n  # {{ wrong }}\n", origin="t.ps1.j2")
    assert (finding.id, finding.line, finding.column) == ("MarkerMisplaced", 3, 5)


def test_facts_about_a_cmdlet_are_found_in_any_case() -> None:
    facts = commands.find("get-SERVICE")
    assert facts is not None
    assert (facts.name, facts.module) == ("Get-Service", "Microsoft.PowerShell.Management")
    assert facts.parameter("dependentservices") == ("DependentServices", ())
    assert facts.parameter("ErrorAction") == ("ErrorAction", ())
    assert facts.parameter("Nope") is None
    assert facts.beginning_with("Depend") == ["DependentServices"]


def test_what_a_system_lacks_is_known() -> None:
    facts = commands.find("Get-WinHttpProxy")
    assert facts is not None
    assert facts.missing_systems() == ("2019", "2022")


def test_no_alias_leads_to_an_unknown_cmdlet() -> None:
    aliases = {**commands.ALIASES, **commands.MODULE_ALIASES}
    advice = [*aliases.values(), *(commands.alias(name) or "" for name in aliases)]
    targets = {word for text in advice for word in text.split() if "-" in word and word[0] != "-"}
    gone = {target for target in targets if commands.find(target) is None}
    assert gone == set()
