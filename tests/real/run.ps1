<#
Holds winboot's PowerShell to the PowerShell that runs this file: Windows PowerShell 5.1, or a later one, with other words where they differ.

  every script under tests\golden, and in the folder -Scripts, is read by the engine's own parser;
  every case of cases\*.json calls a function of the library and compares what it writes, or the id of its error;
  PSScriptAnalyzer, where it is installed, reads every script below templates with PSScriptAnalyzerSettings.psd1.

A case is an object: `name` (a sentence, unique in its file), `function`, `arguments` (by name), and one of `expected` (a list: all
that the function writes), `like` (a wildcard for each object) and `error` (its FullyQualifiedErrorId). It may have
`tables` (objects in the arguments are hashtables), `known` (what Get-Known has found out: place to value), `node` (what the script
knows of its node), `instead` (function to what it writes here; {"by": parameter} takes it from the member that the parameter
names), `windows` (only there), `desktop` (only with the .NET Framework of Windows PowerShell) and `source` (where the expectation comes from, when it is not in the function's own comment).

Cases that need Windows use a folder, a registry key and a service of their own, which are gone afterwards; they follow one another. What
differs is written, and the exit code is then 1.
#>
param([string]$Root = '', [string]$Scripts = '', [switch]$NoAnalyzer)

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

function Test-Member {
    # Whether an object has a member of this name.
    param($Object, [string]$Name)
    $null -ne $Object.PSObject.Properties[$Name]
}

function ConvertTo-CaseText {
    # A value as one text that is alike in all versions: JSON's escapes and number types are not.
    param($Value)
    if ($null -eq $Value) { return 'null' }
    if ($Value -is [string]) { return "'$Value'" }
    if ($Value -is [bool]) { return "$Value".ToLowerInvariant() }
    if ($Value -is [DateTime]) { return "'" + $Value.ToString('yyyy-MM-dd HH:mm:ss', [Globalization.CultureInfo]::InvariantCulture) + "'" }
    if ($Value -is [Security.Cryptography.X509Certificates.X509Certificate2]) { return "'$($Value.Thumbprint)'" }
    if ($Value -is [Collections.IDictionary]) {
        $parts = foreach ($key in @($Value.Keys) | Sort-Object) { "$key=" + (ConvertTo-CaseText $Value[$key]) }
        return '{' + (@($parts) -join ' ') + '}'
    }
    if ($Value -is [Management.Automation.PSCustomObject]) {
        $parts = foreach ($property in @($Value.PSObject.Properties) | Sort-Object -Property Name) {
            "$($property.Name)=" + (ConvertTo-CaseText $property.Value)
        }
        return '{' + (@($parts) -join ' ') + '}'
    }
    if ($Value -is [Collections.IEnumerable]) {
        $parts = foreach ($item in $Value) { ConvertTo-CaseText $item }
        return '[' + (@($parts) -join ', ') + ']'
    }
    [string]$Value
}

function ConvertTo-CaseValue {
    # A value of a case as the function gets it: the scratch folder put in, objects as hashtables if the case says tables.
    param($Value, [string]$Folder, [bool]$Tables)
    if ($Value -is [string]) { return $Value.Replace('<<SCRATCH>>', $Folder) }
    if ($Value -is [array]) {
        $list = @(foreach ($item in $Value) { ConvertTo-CaseValue $item $Folder $Tables })
        return , $list
    }
    if (-not $Tables -or $Value -isnot [Management.Automation.PSCustomObject]) { return $Value }
    $table = @{}
    foreach ($property in $Value.PSObject.Properties) { $table[$property.Name] = ConvertTo-CaseValue $property.Value $Folder $true }
    $table
}

function Get-CaseArgument {
    # The arguments of a case, for splatting.
    param($Case, [string]$Folder)
    $tables = Test-Member $Case 'tables'
    $table = @{}
    foreach ($property in $Case.arguments.PSObject.Properties) { $table[$property.Name] = ConvertTo-CaseValue $property.Value $Folder $tables }
    $table
}

function Get-InsteadValue {
    # The output of a function in a case with `instead`: the value, or the member that the call's parameter `by` names. In a
    # call by position the second word names the member.
    param($Value, $Words)
    if ($Value -isnot [Management.Automation.PSCustomObject]) { return $Value }
    $at = [Array]::IndexOf([string[]]$Words, "-$($Value.by)")
    $name = if ($at -ge 0) { $Words[$at + 1] } else { $Words[1] }
    $Value.$name
}

function Get-CaseAnswer {
    # What a case gives, as one text; of a case with `like`, each object that it writes as one.
    param($Case, [string]$Folder)
    $script:Run = @{ Mode = 'Change'; Step = 'real'; Cache = @{} }
    $script:Node = @{}
    if (Test-Member $Case 'known') { $script:Run.Cache.Known = ConvertTo-CaseValue $Case.known $Folder $true }
    if (Test-Member $Case 'node') { $script:Node = ConvertTo-CaseValue $Case.node $Folder $true }
    $instead = @{}
    if (Test-Member $Case 'instead') {
        foreach ($property in $Case.instead.PSObject.Properties) {
            $instead[$property.Name] = $property.Value
            # In the scope of this function, and so for whatever it calls.
            . ([scriptblock]::Create("function $($property.Name) { Get-InsteadValue `$instead['$($property.Name)'] `$args }"))
        }
    }
    $arguments = Get-CaseArgument $Case $Folder
    try { $written = @(& $Case.function @arguments) }
    catch { return "error $($_.FullyQualifiedErrorId)" }
    if (Test-Member $Case 'like') { foreach ($one in $written) { ConvertTo-CaseText $one }; return }
    ConvertTo-CaseText $written
}

function Test-Case {
    # What differs in a case, in words; nothing where it gives what is expected.
    param($Case, [string]$Folder)
    $answer = @(Get-CaseAnswer $Case $Folder)
    if (Test-Member $Case 'like') {
        $wanted = @($Case.like)
        $same = $answer.Count -eq $wanted.Count
        for ($at = 0; $same -and $at -lt $wanted.Count; $at++) { $same = $answer[$at] -clike $wanted[$at] }
        if ($same) { return }
        return "gave $($answer -join ', '), expected something like $($wanted -join ', ')"
    }
    $expected = if (Test-Member $Case 'error') { "error $($Case.error)" } else { ConvertTo-CaseText @($Case.expected) }
    # Not by -eq, which overlooks characters without width.
    if (-not $answer[0].Equals($expected)) { "gave $($answer[0]), expected $expected" }
}

function Remove-RealKey {
    # The registry key of the cases. A function of its own: PowerShell 7 reads a static field when it compiles what names it, and
    # elsewhere than on Windows this one throws.
    [Microsoft.Win32.Registry]::LocalMachine.DeleteSubKeyTree('SOFTWARE\winboot-real', $false)
}

# Not as a default value: Windows PowerShell has no $PSScriptRoot yet when it works those out for -File.
if (-not $Root) { $Root = [IO.Path]::GetFullPath([IO.Path]::Combine($PSScriptRoot, '..', '..')) }
$templates = [IO.Path]::Combine($Root, 'templates')
$library = [IO.Path]::Combine($templates, 'powershell', 'lib')
$golden = [IO.Path]::Combine($Root, 'tests', 'golden')
$real = [IO.Path]::Combine($Root, 'tests', 'real')
$differences = 0

$read = 0
$folders = @($golden)
if ($Scripts) { $folders += $Scripts }
foreach ($file in $folders | ForEach-Object { [IO.Directory]::GetFiles($_, '*.ps1') }) {
    $read++
    try { [void][scriptblock]::Create([IO.File]::ReadAllText($file)) }
    catch {
        $differences++
        "does not parse: ${file}: $($_.Exception.Message)"
    }
}

$text = foreach ($file in [IO.Directory]::GetFiles($library, '*.ps1') | Sort-Object) { [IO.File]::ReadAllText($file) }
. ([scriptblock]::Create($text -join "`n"))

$onWindows = $env:OS -eq 'Windows_NT'
$onDesktop = $PSVersionTable.PSEdition -eq 'Desktop'
$folder = [IO.Path]::Combine([IO.Path]::GetTempPath(), "winboot-real-$PID")
[void][IO.Directory]::CreateDirectory($folder)
$called = 0
$left = 0
try {
    foreach ($file in [IO.Directory]::GetFiles([IO.Path]::Combine($real, 'cases'), '*.json') | Sort-Object) {
        $list = ConvertFrom-Json -InputObject ([IO.File]::ReadAllText($file))
        foreach ($case in $list) {
            if (((Test-Member $case 'windows') -and -not $onWindows) -or ((Test-Member $case 'desktop') -and -not $onDesktop)) { $left++; continue }
            $called++
            $differs = Test-Case $case $folder
            if ($differs) {
                $differences++
                "differs: $($case.name): $($case.function) $differs"
            }
        }
    }
}
finally {
    [IO.Directory]::Delete($folder, $true)
    if ($onWindows) {
        Remove-RealKey
        # The last case deletes it; here it is left only after an error.
        if (Test-RegistryKey -Path (Get-ServicePath -Name 'winboot-real')) { Invoke-ServiceControl -Arguments @('delete', 'winboot-real') }
    }
}

if (-not $NoAnalyzer) {
    if (Get-Module -Name PSScriptAnalyzer -ListAvailable) {
        $settings = [IO.Path]::Combine($real, 'PSScriptAnalyzerSettings.psd1')
        # Templates with values are read as the golden scripts that they give. What a Values block sets, other blocks of its step read:
        # tests/powershell/test_style.py finds those that none reads.
        $found = @(Invoke-ScriptAnalyzer -Path $templates -Recurse -Settings $settings)
        $found += @(Invoke-ScriptAnalyzer -Path $golden -Settings $settings | Where-Object { $_.RuleName -ne 'PSUseDeclaredVarsMoreThanAssignments' })
        foreach ($one in $found) {
            $differences++
            "$($one.ScriptName):$($one.Line): $($one.RuleName): $($one.Message)"
        }
    }
    else { 'PSScriptAnalyzer is not installed: Install-Module -Name PSScriptAnalyzer -Scope CurrentUser' }
}

"PowerShell $($PSVersionTable.PSVersion): $read scripts read, $called cases called, $left left to Windows PowerShell, $differences differences"
if ($differences) { exit 1 }
exit 0
