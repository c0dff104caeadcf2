<#
Holds winboot's PowerShell to the PowerShell that runs this file: Windows PowerShell 5.1, or 7 with other words where they differ.

  every script under tests/golden is read by the engine's own parser;
  every case of cases\*.json calls a function of the library and compares what it writes, or the id of its error;
  PSScriptAnalyzer, where it is installed, reads the library with PSScriptAnalyzerSettings.psd1.

Cases that need Windows use a folder and a registry key of their own, which are gone afterwards. What differs is written, and the
exit code is then 1.
#>
param([string]$Root = '', [switch]$NoAnalyzer)

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

function ConvertTo-CaseText {
    # A value as one text that is alike in all versions: JSON's escapes and number types are not.
    param($Value)
    if ($null -eq $Value) { return 'null' }
    if ($Value -is [string]) { return "'$Value'" }
    if ($Value -is [bool]) { return "$Value".ToLowerInvariant() }
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

function Get-CaseArgument {
    # The arguments of a case, for splatting, with the scratch folder put in. Objects in them stay objects, unless the case says tables.
    param($Case, [string]$Folder)
    $table = @{}
    foreach ($property in $Case.arguments.PSObject.Properties) {
        $value = $property.Value
        if ($value -is [string]) { $value = $value.Replace('<<SCRATCH>>', $Folder) }
        if (($Case.PSObject.Properties | ForEach-Object { $_.Name }) -contains 'tables') {
            $inner = @{}
            foreach ($entry in $value.PSObject.Properties) { $inner[$entry.Name] = $entry.Value }
            $value = $inner
        }
        $table[$property.Name] = $value
    }
    $table
}

function Get-CaseAnswer {
    # What a case gives, as one text.
    param($Case, [string]$Folder)
    $arguments = Get-CaseArgument $Case $Folder
    try {
        $written = @(& $Case.function @arguments)
        ConvertTo-CaseText $written
    }
    catch { "error $($_.FullyQualifiedErrorId)" }
}

function Get-CaseExpected {
    # What a case is to give, as one text.
    param($Case)
    $names = @($Case.PSObject.Properties | ForEach-Object { $_.Name })
    if ($names -contains 'error') { return "error $($Case.error)" }
    ConvertTo-CaseText @($Case.expected)
}

# Not as a default value: Windows PowerShell has no $PSScriptRoot yet when it works those out for -File.
if (-not $Root) { $Root = [IO.Path]::GetFullPath([IO.Path]::Combine($PSScriptRoot, '..', '..')) }
$library = [IO.Path]::Combine($Root, 'templates', 'powershell', 'lib')
$golden = [IO.Path]::Combine($Root, 'tests', 'golden')
$real = [IO.Path]::Combine($Root, 'tests', 'real')
$differences = 0
$script:Run = @{}
$script:Node = @{}

$read = 0
foreach ($file in [IO.Directory]::GetFiles($golden, '*.ps1')) {
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
$folder = [IO.Path]::Combine([IO.Path]::GetTempPath(), "winboot-real-$PID")
[void][IO.Directory]::CreateDirectory($folder)
$called = 0
$left = 0
try {
    foreach ($file in [IO.Directory]::GetFiles([IO.Path]::Combine($real, 'cases'), '*.json') | Sort-Object) {
        $list = ConvertFrom-Json -InputObject ([IO.File]::ReadAllText($file))
        foreach ($case in $list) {
            $names = @($case.PSObject.Properties | ForEach-Object { $_.Name })
            if (($names -contains 'windows') -and -not $onWindows) { $left++; continue }
            $called++
            $answer = Get-CaseAnswer $case $folder
            $expected = Get-CaseExpected $case
            if (-not $answer.Equals($expected)) {
                $differences++
                "differs: $($case.name): $($case.function) gave $answer, expected $expected"
            }
        }
    }
}
finally {
    [IO.Directory]::Delete($folder, $true)
    if ($onWindows) { [Microsoft.Win32.Registry]::LocalMachine.DeleteSubKeyTree('SOFTWARE\winboot-real', $false) }
}

if (-not $NoAnalyzer) {
    if (Get-Module -Name PSScriptAnalyzer -ListAvailable) {
        $settings = [IO.Path]::Combine($real, 'PSScriptAnalyzerSettings.psd1')
        foreach ($one in Invoke-ScriptAnalyzer -Path $library -Settings $settings) {
            $differences++
            "$($one.ScriptName):$($one.Line): $($one.RuleName): $($one.Message)"
        }
    }
    else { 'PSScriptAnalyzer is not installed: Install-Module -Name PSScriptAnalyzer -Scope CurrentUser' }
}

"PowerShell $($PSVersionTable.PSVersion): $read scripts read, $called cases called, $left left to Windows, $differences differences"
if ($differences) { exit 1 }
exit 0
