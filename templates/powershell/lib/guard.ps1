# The machine's own address while an operator makes, or after a restart remakes, the network. The operator's work is left
# alone; only what the machine had before is put back.

function Get-GuardDifference {
    # Nothing to guard with DHCP, or where the network stands; else the task of the startup has to be running.
    param([hashtable]$Wanted)
    $address = Get-NodeAddress
    if ($null -eq $address -or -not (Test-StaticAddress -Ip $address.ip)) { return }
    if (-not (Test-OperatorAwaited -Wanted $Wanted)) { return }
    $task = @(Get-ScheduledTask -TaskName 'boot' -TaskPath '\winboot\' -ErrorAction SilentlyContinue)
    if ($task.Count -gt 0 -and $task[0].State.ToString() -eq 'Running') { return }
    New-Difference -What ('guard of the static address {0}' -f $address.ip) -Is 'nobody' -Want 'the startup task'
}

function Test-StaticAddress {
    param([string]$Ip)
    @(Find-Address $Ip | Where-Object { $_.PrefixOrigin.ToString() -eq 'Manual' }).Count -gt 0
}

function Test-OperatorAwaited {
    # True while something is missing that only the network's owner makes.
    param([hashtable]$Wanted)
    @(Get-OperatorDifference -Wanted $Wanted | Where-Object { -not $_.policy }).Count -gt 0
}

function Protect-Address {
    # Watches until the owner's network has stood for two minutes without costing the machine its address.
    param([hashtable]$Wanted, [int]$TimeoutSeconds)
    $snapshot = Read-StateJson 'network.json'
    if ($null -eq $snapshot -or -not $snapshot.static) { return }
    $until = [DateTime]::UtcNow.AddSeconds($TimeoutSeconds)
    $calm = [DateTime]::UtcNow.AddSeconds(120)
    while ([DateTime]::UtcNow -lt $until -and [DateTime]::UtcNow -lt $calm) {
        $script:Run.Cache = @{}
        $lost = @(Find-Address $snapshot.ip).Count -eq 0
        if ($lost) { Restore-NetworkSnapshot -Snapshot $snapshot }
        if ($lost -or (Test-OperatorAwaited -Wanted $Wanted)) { $calm = [DateTime]::UtcNow.AddSeconds(120) }
        Start-Sleep -Milliseconds 2000
    }
}
