# The task at each start of the machine.

function Get-BootTaskDifference {
    # The stored script, its task, and the record that it works from.
    Get-FileDifference (Get-BootScriptPath) (ConvertTo-ScriptFile $script:Run.Text)
    Get-TaskDifference 'boot' (New-BootTask)
    Get-RecordDifference
}

function Get-BootScriptPath {
    # Named after its content: a cut between script and task leaves the older pair, which still fits together.
    Get-StatePath "boot-$((Get-TextHash $script:Run.Text).Substring(0, 16)).ps1"
}

function New-BootTask {
    # What Set-Task registers. It must be there before an address vanishes.
    New-SystemTask -Path (Get-BootScriptPath) -Text $script:Run.Text -Arguments '-Mode Boot' -Seconds 2400 -Priority 4 `
        -Trigger (New-ScheduledTaskTrigger -AtStartup) `
        -Description 'winboot: after each start of this machine puts back what a Kubernetes node loses with it.'
}

function Set-BootTask {
    # What the task works from comes before the task.
    Save-FormerValue 'BootTask' 'boot' @{ name = 'boot' }
    Save-NetworkRecord
    Write-FileText (Get-BootScriptPath) (ConvertTo-ScriptFile $script:Run.Text)
    Set-Task 'boot' (New-BootTask)
    Remove-BootScript -But (Get-BootScriptPath)
}

function Remove-BootScript {
    # Stored scripts of the startup, all but one.
    param([string]$But = '')
    foreach ($path in [IO.Directory]::GetFiles((Get-StatePath), 'boot*.ps1')) { if ($path -ne $But) { Remove-File $path } }
}

function Restore-BootTask {
    param([object]$Former)
    Remove-Task $Former.name
    Remove-BootScript
    Remove-StrayTask
}

function Invoke-Boot {
    # What each start of the machine needs. Nothing that fails, and no file that somebody holds, keeps the rest from it:
    # this is when scanners and agents are busiest.
    Invoke-BootWork '' { Write-StateJson 'boot.json' @{ boot_id = (Get-BootId); stamp = (Get-BootStamp) } -Tries 4 }
    Invoke-BootWork '' { New-EventLine @{ event = 'boot'; boot_id = (Get-BootId) } }
    # Before an agent that a cut left half way makes its network with nobody to watch.
    Invoke-BootWork '' { Complete-CutRun }
    Invoke-BootWork '' { Restore-Hold }
    Invoke-BootWork '' { Clear-OldFile }
    foreach ($step in $script:Run.Steps) { Invoke-BootWork $step.Name { Invoke-Block $step 'Boot' } }
    Invoke-BootWork '' { Remove-StrayTask }
}

function Invoke-BootWork {
    # One piece of that. Why it failed is in the journal.
    param([string]$Name, $Work)
    try { [void]@(& $Work) }
    catch { [void](New-EventLine @{ event = 'boot-failed'; step = $Name; problem = (ConvertTo-Problem $_ 'BootFailed') }) }
}
