# Work that may cut its session: a task that puts back what the network lost.


function Start-DetachedRun {
    param([int]$Seconds = 300, $Guard)
    Assert-NoFailure
    $run = $script:Run
    $id = "$($run.Step)-$([Guid]::NewGuid().ToString('N').Substring(0, 8))"
    $path = Get-StatePath "detached\$id.ps1"
    Write-FileText $path (ConvertTo-ScriptFile $run.Text)
    Write-StateJson "detached\$id.json" @{
        id = $id; step = $run.Step; state = 'running'; run = $run.Id; fence = $run.Fence; purpose = $run.Mode; guard = $Guard
        boot_id = (Get-MachineIdentity).BootId; timeout_s = $Seconds; message = ''; told = $false; ended = 0; hint = 'DetachedFailed'
        deadline = [DateTime]::UtcNow.AddSeconds($Seconds).Ticks
    }
    $task = New-SystemTask -Path $path -Text $run.Text -Arguments "-Mode Detached -RunId `"$($run.Id)`" -Detached `"$id`"" -Priority 4 `
        -Seconds ($Seconds + 300) -Description "winboot: changes the network for step $($run.Step) and puts it back if that fails; removes itself."
    Set-Task "detached-$id" $task
    Start-ScheduledTask -TaskName "detached-$id" -TaskPath '\winboot\'
    [pscustomobject]@{ kind = 'detached'; id = $id; timeout_s = $Seconds }
}

function Assert-NoFailure {
    # A failed one fails the step once, one that a restart cut off does not.
    foreach ($status in Read-UntoldRun $script:Run.Step $script:Run.Mode) {
        $longAgo = [DateTime]::UtcNow.AddMinutes(-15).Ticks -gt [long]$status.ended
        if ($status.state -eq 'running' -or ($status.state -eq 'done' -and $longAgo)) { continue }
        if ($status.state -eq 'done') { $status.message = 'but the step is not as wanted' }
        Stop-Step 'DetachedFailed' "the detached run $($status.id) ended as $($status.state): $($status.message)" -Hint $status.hint
    }
}

function Read-UntoldRun {
    # Purpose is the mode that started it.
    param([string]$Step, [string[]]$Purpose)
    foreach ($status in Read-DetachedRun "$Step-") {
        if ($status.told -or $Purpose -notcontains $status.purpose) { continue }
        $status.told = $true
        Write-StateJson "detached\$($status.id).json" $status
        $status
    }
}

function Invoke-Detached {
    $id = $script:Run.Facts.Detached
    $status = Read-StateJson "detached\$id.json"
    $ended = @{ State = 'failed'; Message = '' }
    $lock = Wait-Mutex -Seconds 120
    try {
        try {
            if (-not $lock) { throw "the mutex stayed held by $(Get-HolderText)" }
            if ((Get-Fence) -ne $status.fence) { throw "superseded by $(Get-HolderText)" }
            $script:Run.Fence = $status.fence
            # That event is still on its way through the network.
            Start-Sleep -Seconds 2
            $ended = Invoke-Guarded $status
        }
        catch { $ended.Message = $_.Exception.GetBaseException().Message }
        $status.state = $ended.State
        $status.message = $ended.Message
        $status.ended = [DateTime]::UtcNow.Ticks
        Write-StateJson "detached\$id.json" $status
    }
    finally { if ($lock) { Exit-Run $lock } }
    Remove-File (Get-StatePath "detached\$id.ps1") -Tries 4
    Unregister-ScheduledTask -TaskName "detached-$id" -TaskPath '\winboot\' -Confirm:$false
}

function Invoke-Guarded {
    # Only what the node itself can see is a reason to go back.
    param($Status)
    $script:Run.Facts.Purpose = $Status.purpose
    $snapshot = Read-NetworkSnapshot (Get-NodeAddress)
    Write-StateJson "detached\$($Status.id)-network.snapshot" $snapshot
    $script:Run['Snapshot'] = $snapshot
    $state = 'done'
    $message = ''
    $step = @($script:Run.Steps | Where-Object { $_.Name -eq $Status.step })[0]
    try { [void]@(Invoke-Block $step 'Detached') }
    catch {
        $state = 'failed'
        $problem = ConvertTo-Problem $_ 'DetachedFailed'
        $message = $problem.message
        $Status.hint = "$($problem.id) DetachedFailed"
    }
    $lost = Wait-Network $snapshot $Status.guard
    if (-not $lost) { return @{ State = $state; Message = $message } }
    Undo-Rewiring $Status.guard
    $after = Wait-Network $snapshot $Status.guard
    if ($after) { $after = "still lost: $after" }
    @{ State = 'restored'; Message = @("$lost was lost and the change taken back", $message, $after | Where-Object { $_ }) -join '; ' }
}

function Wait-Network {
    # Names what could not be put back.
    param($Snapshot, $Guard)
    $intact = {
        Restore-NetworkSnapshot $Snapshot
        -not (Get-MissingLink $Snapshot $Guard)
    }
    if (Wait-Until $intact -Seconds 120 -Pause 3000) { return }
    $missing = Get-MissingLink $Snapshot $Guard
    if ($missing) { "$missing $($script:Run.Trouble)".Trim() }
}

function Get-MissingLink {
    param($Snapshot, $Guard)
    if (-not (Test-SettledAddress $Snapshot.ip)) { return "the address $($Snapshot.ip)" }
    $wanted = @($Snapshot.routes | Where-Object { $_.prefix -eq '0.0.0.0/0' })
    if ($wanted.Count -gt 0 -and @(Get-DefaultRoute).Count -eq 0) { return 'the default route' }
    if (-not (Get-AddressTowardsServer)) { return 'the way to the API server' }
    # Port 0: winboot runs on the machine itself.
    $port = $Guard.management_port
    if ($port -ne 0 -and -not (Get-NetTCPConnection -State Listen -LocalPort $port -ErrorAction SilentlyContinue)) { "the listener on port $port" }
}

function Undo-Rewiring {
    param($Guard)
    if ($Guard.agent -ne '' -and $null -ne (Get-ServiceState $Guard.agent)) {
        Stop-RunningService $Guard.agent
        Invoke-ServiceControl @('config', $Guard.agent, 'start=', 'disabled')
    }
    foreach ($network in Get-HnsObject networks $Guard.network) { Remove-HnsObject networks $network.Id }
}
