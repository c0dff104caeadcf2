# Mode Boot: a task at each start of the machine.

function Get-BootTaskDifference {
    Get-FileDifference -Path (Get-StatePath 'boot.ps1') -Text $script:Run.Text
    Get-TaskDifference -Name 'boot' -Task (New-BootTask)
}

function New-BootTask {
    $loader = New-ScriptLoader -Path (Get-StatePath 'boot.ps1') -Arguments '-Mode Boot'
    New-SystemTask -Command $loader -Seconds 1800 -Trigger (New-ScheduledTaskTrigger -AtStartup)
}

function Set-BootTask {
    Save-FormerValue 'BootTask' 'boot' @{ name = 'boot' }
    Write-FileText (Get-StatePath 'boot.ps1') $script:Run.Text
    Set-Task -Name 'boot' -Task (New-BootTask)
}

function Restore-BootTask {
    param([object]$Former)
    Remove-Task $Former.name
    [IO.File]::Delete((Get-StatePath 'boot.ps1'))
}

function Invoke-Boot {
    # A step that fails does not keep the others from their turn.
    Write-StateJson 'boot.json' @{ boot_id = (Get-BootId) }
    [void](New-EventLine @{ event = 'boot'; boot_id = (Get-BootId) })
    Clear-OldFiles
    Remove-CutRuns
    foreach ($step in $script:Run.Steps) {
        try { [void]@(Invoke-Block $step 'Boot') }
        catch { [void](New-EventLine @{ event = 'boot-failed'; step = $step.Name; problem = (ConvertTo-Problem $_ 'BootFailed') }) }
    }
}

function Remove-CutRuns {
    # One that a restart cut off cannot end its own task.
    foreach ($path in [IO.Directory]::GetFiles((Get-StatePath 'detached'), '*.json')) {
        $status = Read-StateJson ('detached\' + [IO.Path]::GetFileName($path))
        if ($status.state -eq 'running' -and $status.boot_id -ne (Get-BootId)) { Remove-Task "detached-$($status.id)" }
    }
}

function Restore-BootRoutes {
    # What a restart took from the adapter, a cloud's metadata route for one.
    $snapshot = Read-StateJson 'network.json'
    if ($null -eq $snapshot) { return }
    $ready = {
        Restore-NetworkSnapshot $snapshot
        Test-SettledAddress $snapshot.ip
    }
    if (Wait-Until -Seconds 120 -Pause 2000 -Test $ready) { Restore-Routes -Snapshot $snapshot -Index (Find-Uplink $snapshot) }
}
