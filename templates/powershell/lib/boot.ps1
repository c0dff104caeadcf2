# Mode Boot: a SYSTEM task at each start of the machine.

function Get-BootTaskDifference {
    Get-FileDifference -Path (Get-StatePath 'boot.ps1') -Text $script:Run.Text
    Get-TaskDifference -Name 'boot' -Task (New-BootTask)
}

function New-BootTask {
    $path = Get-StatePath 'boot.ps1'
    New-SystemTask -Command (New-ScriptLoader -Path $path -Hash (Get-TextHash $script:Run.Text) -Arguments '-Mode Boot') -Seconds 1800
}

function Set-BootTask {
    Save-FormerValue 'BootTask' 'boot' @{ name = 'boot' }
    Write-FileText (Get-StatePath 'boot.ps1') $script:Run.Text
    Set-Task -Name 'boot' -Task (New-BootTask) -Trigger (New-ScheduledTaskTrigger -AtStartup)
}

function Restore-BootTask {
    param([object]$Former)
    Remove-Task $Former.name
    [IO.File]::Delete((Get-StatePath 'boot.ps1'))
}

function Invoke-Boot {
    # A step that fails is noted and does not keep the others from their turn.
    Write-StateJson 'boot.json' @{ boot_id = (Get-BootId) }
    [void](New-EventLine @{ event = 'boot'; boot_id = (Get-BootId) })
    Clear-OldFiles
    foreach ($step in $script:Run.Steps) {
        try { [void]@(Invoke-Block $step 'Boot') }
        catch {
            $problem = ConvertTo-Problem $_ 'BootFailed'
            [void](New-EventLine @{ event = 'boot-failed'; step = $step.Name; problem = $problem })
        }
    }
}

function Restore-BootRoutes {
    # The address and the routes that a restart took from the node's adapter, a cloud's metadata route for one.
    $snapshot = Read-StateJson 'network.json'
    if ($null -eq $snapshot) { return }
    $ready = {
        Restore-NetworkSnapshot $snapshot
        @(Find-Address $snapshot.ip | Where-Object { $_.AddressState.ToString() -eq 'Preferred' }).Count -gt 0
    }
    if (Wait-Until -Seconds 120 -Pause 2000 -Test $ready) { Restore-Routes -Snapshot $snapshot -Index (Find-Uplink $snapshot) }
}
