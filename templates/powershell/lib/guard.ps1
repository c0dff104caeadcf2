# Puts back what the machine had while somebody makes a network on its adapter.

function Get-GuardDifference {
    # Nothing to guard with DHCP, or where the network stands; else the task of the startup has to be running.
    param($Wanted)
    $address = Get-NodeAddress
    if (-not $address -or -not (Test-StaticAddress $address.ip)) { return }
    if (-not (Test-OperatorAwaited $Wanted)) { return }
    $task = @(Get-ScheduledTask -TaskName 'boot' -TaskPath '\winboot\' -ErrorAction SilentlyContinue)
    if ($task.Count -gt 0 -and $task[0].State.ToString() -eq 'Running') { return }
    New-Difference -What "guard of the static address $($address.ip)" -Is 'nobody' -Want 'the startup task'
}

function Test-StaticAddress {
    param([string]$Ip)
    @(Find-Address $Ip | Where-Object { $_.PrefixOrigin.ToString() -eq 'Manual' }).Count -gt 0
}

function Test-OperatorAwaited {
    # True while something is missing that only the network's owner makes.
    param($Wanted)
    @(Get-OperatorDifference $Wanted | Where-Object { -not $_.policy }).Count -gt 0
}

function Protect-Address {
    param($Awaited, [int]$Seconds)
    $snapshot = Read-StateJson 'network.json'
    if (-not $snapshot -or -not $snapshot.static) { return }
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    $calm = [DateTime]::UtcNow.AddSeconds(120)
    for ($round = 0; [DateTime]::UtcNow -lt $until -and [DateTime]::UtcNow -lt $calm; $round++) {
        $waiting = -not (Find-Address $snapshot.ip)
        if ($waiting) { Restore-NetworkSnapshot $snapshot }
        elseif ($round % 5 -eq 0) {
            $script:Run.Cache = @{}
            $waiting = & $Awaited
        }
        if ($waiting) { $calm = [DateTime]::UtcNow.AddSeconds(120) }
        Start-Sleep -Seconds 2
    }
}
