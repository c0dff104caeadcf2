# Mode Boot: a SYSTEM task at each start of the machine, before any controller comes by.

function Get-BootTaskDifference {
    $text = [string]$script:Run.Text
    Get-FileDifference -Path (Get-StatePath 'boot.ps1') -Text $text
    $task = @(Get-ScheduledTask -TaskName 'boot' -TaskPath '\winboot\' -ErrorAction SilentlyContinue)
    $is = $null
    if ($task.Count -gt 0) { $is = Get-TextHash ([string]$task[0].Actions[0].Arguments) }
    Compare-Wanted -What 'task \winboot\boot: command' -Is $is -Want (Get-TextHash (New-BootTask).Action.Arguments)
}

function New-BootTask {
    $path = Get-StatePath 'boot.ps1'
    New-SystemTask -Command (New-ScriptLoader -Path $path -Hash (Get-TextHash ([string]$script:Run.Text)) -Arguments '-Mode Boot') -TimeoutSeconds 1800
}

function Set-BootTask {
    Save-FormerValue -Kind 'BootTask' -Key 'boot' -Value @{ name = 'boot' }
    Write-FileText -Path (Get-StatePath 'boot.ps1') -Text ([string]$script:Run.Text)
    $task = New-BootTask
    $trigger = New-ScheduledTaskTrigger -AtStartup
    [void](Register-ScheduledTask -TaskName 'boot' -TaskPath '\winboot\' -Trigger $trigger -Force @task)
}

function Restore-BootTask {
    param([object]$Former)
    if (@(Get-ScheduledTask -TaskName $Former.name -TaskPath '\winboot\' -ErrorAction SilentlyContinue).Count -gt 0) {
        Unregister-ScheduledTask -TaskName $Former.name -TaskPath '\winboot\' -Confirm:$false
    }
    [IO.File]::Delete((Get-StatePath 'boot.ps1'))
}

function Invoke-Boot {
    # A step that fails is noted and does not keep the others from their turn.
    Write-StateJson -Name 'boot.json' -Value @{ boot_id = (Get-BootId) }
    [void](New-EventLine @{ event = 'boot'; boot_id = (Get-BootId) })
    Clear-OldFiles
    foreach ($step in $script:Run.Steps) {
        try { [void]@(Invoke-Block -Step $step -Block 'Boot') }
        catch {
            $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'BootFailed'
            [void](New-EventLine @{ event = 'boot-failed'; step = $step.Name; problem = $problem })
        }
    }
}

function Restore-BootRoutes {
    # Routes that a restart took from the node's adapter, a cloud's metadata route for one.
    $snapshot = Read-StateJson 'network.json'
    if ($null -eq $snapshot) { return }
    $until = [DateTime]::UtcNow.AddSeconds(120)
    while (@(Get-NetIPAddress -IPAddress $snapshot.ip -ErrorAction SilentlyContinue | Where-Object { $_.AddressState.ToString() -eq 'Preferred' }).Count -eq 0) {
        if ([DateTime]::UtcNow -gt $until) { return }
        Start-Sleep -Seconds 2
    }
    Restore-Routes -Snapshot $snapshot -Index (Find-Uplink -Snapshot $snapshot)
}
