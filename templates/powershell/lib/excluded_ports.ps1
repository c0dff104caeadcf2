# SUMMARY Excludes port ranges from the ports that Windows gives to clients.

function Get-ExcludedRange {
    # The ranges of ports that Windows keeps from clients, each as a table; nothing if none exist. Only netsh
    # knows them. A line that is two numbers is a range, in every language.
    param([string]$Protocol)
    $lines = (Invoke-ExcludedRange -Verb 'show' -Protocol $Protocol) -split '\r?\n'
    foreach ($line in $lines) {
        if ($line -match '^\s*(\d+)\s+(\d+)\s*\*?\s*$') { @{ first = [int]$Matches[1]; last = [int]$Matches[2] } }
    }
}

function Get-ExcludedPortDifference {
    # A difference for each wanted range that is not excluded. Each wanted one is a hashtable: protocol, first, last. A
    # range around it is as good.
    param([hashtable[]]$Wanted)
    foreach ($one in $Wanted) {
        $around = { $_.first -le $one.first -and $_.last -ge $one.last }
        if (Get-ExcludedRange -Protocol $one.protocol | Where-Object $around) { continue }
        $range = "$($one.protocol) $($one.first)-$($one.last)"
        New-Difference -Key "excluded:$range" -What "excluded ports: $range" -Is $null -Want 'excluded'
    }
}

function Add-ExcludedRange {
    # Keeps the wanted ranges from clients (undone by Restore-ExcludedRange).
    param([hashtable[]]$Wanted)
    foreach ($one in $Wanted) {
        if (-not (Get-ExcludedPortDifference -Wanted $one)) { continue }
        Save-FormerValue -Kind 'ExcludedRange' -Key "$($one.protocol) $($one.first)-$($one.last)" -Value $one
        [void](Invoke-ExcludedRange -Verb 'add' -Protocol $one.protocol -Range $one)
    }
}

function Restore-ExcludedRange {
    # Gives back a range that winboot excluded.
    param([object]$Former)
    $same = { $_.first -eq $Former.first -and $_.last -eq $Former.last }
    if (-not (Get-ExcludedRange -Protocol $Former.protocol | Where-Object $same)) { return }
    [void](Invoke-ExcludedRange -Verb 'delete' -Protocol $Former.protocol -Range $Former)
}

function Invoke-ExcludedRange {
    # Runs netsh for excluded port ranges, and returns what it prints.
    param([string]$Verb, [string]$Protocol, [object]$Range)
    $arguments = @('int', 'ipv4', $Verb, 'excludedportrange', "protocol=$Protocol")
    if ($null -ne $Range) { $arguments += @("startport=$($Range.first)", "numberofports=$($Range.last - $Range.first + 1)") }
    Assert-Program -Path (Get-SystemProgram -Name 'netsh.exe') -Arguments $arguments
}
