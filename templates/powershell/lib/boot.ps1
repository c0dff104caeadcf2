function Get-BootTaskDifference {
    Get-FileDifference (Get-StatePath 'boot.ps1') (ConvertTo-ScriptFile $script:Run.Text)
    Get-TaskDifference 'boot' (New-BootTask)
}

function New-BootTask {
    # It must be there before an address vanishes.
    New-SystemTask -Path (Get-StatePath 'boot.ps1') -Text $script:Run.Text -Arguments '-Mode Boot' -Seconds 1800 -Priority 4 `
        -Trigger (New-ScheduledTaskTrigger -AtStartup) `
        -Description 'winboot: after each start of this machine puts back what a Kubernetes node loses with it.'
}

function Set-BootTask {
    Save-FormerValue 'BootTask' 'boot' @{ name = 'boot' }
    Write-FileText (Get-StatePath 'boot.ps1') (ConvertTo-ScriptFile $script:Run.Text)
    Set-Task 'boot' (New-BootTask)
}

function Restore-BootTask {
    param([object]$Former)
    Remove-Task $Former.name
    Remove-File (Get-StatePath 'boot.ps1')
}

function Invoke-Boot {
    # What each start of the machine needs. Nothing that fails, and no file that somebody holds, keeps the rest from it:
    # this is when scanners and agents are busiest.
    Invoke-BootWork '' { Write-StateJson 'boot.json' @{ boot_id = (Get-BootId); stamp = (Get-BootStamp) } -Tries 4 }
    Invoke-BootWork '' { New-EventLine @{ event = 'boot'; boot_id = (Get-BootId) } }
    Invoke-BootWork '' { Clear-OldFile }
    foreach ($step in $script:Run.Steps) { Invoke-BootWork $step.Name { Invoke-Block $step 'Boot' } }
    Invoke-BootWork '' { Remove-CutRun }
}

function Invoke-BootWork {
    # One piece of that. Why it failed is in the journal.
    param([string]$Name, $Work)
    try { [void]@(& $Work) }
    catch { [void](New-EventLine @{ event = 'boot-failed'; step = $Name; problem = (ConvertTo-Problem $_ 'BootFailed') }) }
}

function Remove-CutRun {
    # One that a restart cut off cannot end its own task.
    foreach ($status in Read-DetachedRun) {
        if ($status.state -eq 'running' -and $status.boot_id -ne (Get-BootId)) { Remove-Task "detached-$($status.id)" }
    }
}

function Restore-BootRoute {
    $snapshot = Read-StateJson 'network.json'
    if (-not $snapshot) { return }
    $ready = {
        Restore-NetworkSnapshot $snapshot
        Test-SettledAddress $snapshot.ip
    }
    if (Wait-Until $ready -Seconds 120 -Pause 2000) { Restore-Route $snapshot (Find-Uplink $snapshot) }
}
