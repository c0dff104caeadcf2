# Work that may cut its session runs as a one-shot SYSTEM task. A guard puts the network back when the machine lost
# it.

function Start-DetachedRun {
    # Guard says what must hold afterwards, and which agent and network are taken away when it does not.
    param([int]$Seconds = 300, $Guard)
    Assert-NoFailure
    $id = "$($script:Run.Step)-$([Guid]::NewGuid().ToString('N').Substring(0, 8))"
    $path = Get-StatePath "detached\$id.ps1"
    $text = $script:Run.Text
    Write-FileText $path $text
    Write-StateJson "detached\$id.json" @{
        id = $id; step = $script:Run.Step; state = 'running'; run = $script:Run.Id; fence = $script:Run.Fence
        boot_id = (Get-MachineIdentity).BootId; timeout_s = $Seconds; message = ''; told = $false; ended = 0
        deadline = [DateTime]::UtcNow.AddSeconds($Seconds).Ticks; guard = $Guard; purpose = $script:Run.Mode
    }
    $arguments = '-Mode Detached -RunId ''{0}'' -Facts @{{ Detached = ''{1}'' }}' -f $script:Run.Id, $id
    $loader = New-ScriptLoader -Path $path -Hash (Get-TextHash $text) -Arguments $arguments
    Start-SystemTask -Name "detached-$id" -Command $loader -Seconds ($Seconds + 300)
    [pscustomobject]@{ kind = 'detached'; id = $id; timeout_s = $Seconds }
}

function New-ScriptLoader {
    # What a task runs: it refuses a script that is not the one that was stored.
    param([string]$Path, [string]$Hash, [string]$Arguments)
    $lines = @(
        '$bytes = [IO.File]::ReadAllBytes(''{0}'')' -f $Path
        '$hash = [BitConverter]::ToString([Security.Cryptography.SHA256]::Create().ComputeHash($bytes)).Replace(''-'', '''')'
        'if ($hash -ne ''{0}'') {{ exit 65 }}' -f $Hash
        '$script = [scriptblock]::Create([Text.Encoding]::UTF8.GetString($bytes))'
        '& $script {0}' -f $Arguments
    )
    $lines -join "`n"
}

function Get-TaskDifference {
    # Compares what a task runs, by its hash: it is long.
    param([string]$Name, $Task)
    $found = @(Get-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -ErrorAction SilentlyContinue)
    $what = "task \winboot\${Name}:"
    $is = $null
    if ($found.Count -gt 0) { $is = Get-TextHash ([string]$found[0].Actions[0].Arguments) }
    Compare-Wanted -What "$what command" -Is $is -Want (Get-TextHash $Task.Action.Arguments)
    if ($null -ne $is -and $found[0].State.ToString() -eq 'Disabled') { New-Difference -What "$what state" -Is 'Disabled' -Want 'Ready' }
}

function Set-Task {
    param([string]$Name, $Task, $Trigger)
    [void](Register-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -Trigger $Trigger -Force @Task)
}

function Remove-Task {
    param([string]$Name)
    if (@(Get-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -ErrorAction SilentlyContinue).Count -gt 0) {
        Unregister-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -Confirm:$false
    }
}

function Start-SystemTask {
    param([string]$Name, [string]$Command, [int]$Seconds)
    $task = New-SystemTask -Command $Command -Seconds $Seconds
    [void](Register-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -Force @task)
    Start-ScheduledTask -TaskName $Name -TaskPath '\winboot\'
}

function New-SystemTask {
    param([string]$Command, [int]$Seconds)
    # -EncodedCommand is not subject to the execution policy and needs no quoting.
    $encoded = [Convert]::ToBase64String([Text.Encoding]::Unicode.GetBytes($Command))
    $arguments = "-NoLogo -NoProfile -NonInteractive -EncodedCommand $encoded"
    $shell = Get-SystemProgram 'WindowsPowerShell\v1.0\powershell.exe'
    @{
        Action    = New-ScheduledTaskAction -Execute $shell -Argument $arguments
        Principal = New-ScheduledTaskPrincipal -UserId 'S-1-5-18' -LogonType ServiceAccount -RunLevel Highest
        Settings  = New-ScheduledTaskSettingsSet -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries `
            -ExecutionTimeLimit ([TimeSpan]::FromSeconds($Seconds))
    }
}

function Assert-NoFailure {
    # A detached run that failed fails the step once; the change after that tries again. One that a restart cut off is
    # tried again at once.
    $folder = Get-StatePath 'detached'
    foreach ($path in [IO.Directory]::GetFiles($folder, ($script:Run.Step + '-*.json'))) {
        $name = 'detached\' + [IO.Path]::GetFileName($path)
        $status = Read-StateJson $name
        # What an undo did is no failure of a join, and the other way round.
        if ($null -eq $status -or $status.told -or $status.purpose -ne $script:Run.Mode) { continue }
        $status.told = $true
        Write-StateJson $name $status
        $longAgo = [DateTime]::UtcNow.AddMinutes(-15).Ticks -gt [long]$status.ended
        if ($status.state -eq 'running' -or ($status.state -eq 'done' -and $longAgo)) { continue }
        Stop-Step 'DetachedFailed' "the detached run $($status.id) ended as $($status.state): $($status.message)"
    }
}

function Complete-DetachedRun {
    # The step is as wanted: how its earlier runs ended is no reason to stop the next one.
    param([string]$Step)
    foreach ($path in [IO.Directory]::GetFiles((Get-StatePath 'detached'), "$Step-*.json")) {
        $name = 'detached\' + [IO.Path]::GetFileName($path)
        $status = Read-StateJson $name
        if ($null -eq $status -or $status.told) { continue }
        $status.told = $true
        Write-StateJson $name $status
    }
}

function Invoke-Detached {
    $name = "detached\$($script:Run.Facts.Detached).json"
    $status = Read-StateJson $name
    # The pipeline that started us still holds the mutex; it ends as soon as its last event is out.
    $save = @{ Name = $name; Status = $status }
    $lock = Wait-Mutex 120
    if ($null -eq $lock) {
        Save-DetachedState @save -State 'failed' -Message ('the mutex stayed held by ' + (Get-HolderText))
        return
    }
    try {
        if ((Get-Fence) -ne $status.fence) {
            Save-DetachedState @save -State 'failed' -Message ('superseded by ' + (Get-HolderText))
            return
        }
        $script:Run.Fence = $status.fence
        # Those last events are still on their way through the network that we are about to rewire.
        Start-Sleep -Seconds 2
        $ended = Invoke-Guarded $status
        Save-DetachedState @save -State $ended.State -Message $ended.Message
    }
    catch {
        Save-DetachedState @save -State 'failed' -Message $_.Exception.GetBaseException().Message
        throw
    }
    finally {
        Exit-Run $lock
        [IO.File]::Delete((Get-StatePath "detached\$($script:Run.Facts.Detached).ps1"))
        Unregister-ScheduledTask -TaskName ('detached-' + $script:Run.Facts.Detached) -TaskPath '\winboot\' -Confirm:$false
    }
}

function Save-DetachedState {
    param([string]$Name, $Status, [string]$State, [string]$Message)
    $Status.state = $State
    $Status.message = $Message
    $Status.ended = [DateTime]::UtcNow.Ticks
    Write-StateJson $Name $Status
}

function Invoke-Guarded {
    # That nobody is connected is no reason to go back: only what the node itself can see counts.
    param($Status)
    $guard = $Status.guard
    # Change or Undo: the block may need to know what it was started for.
    $script:Run.Facts.Purpose = $Status.purpose
    $address = Get-NodeAddress
    $snapshot = Read-NetworkSnapshot $address
    Write-StateJson "detached\$($Status.id)-network.snapshot" $snapshot
    $script:Run['Snapshot'] = $snapshot
    $message = ''
    $step = @($script:Run.Steps | Where-Object { $_.Name -eq $Status.step })[0]
    try { [void]@(Invoke-Block $step 'Detached') }
    catch { $message = (ConvertTo-Problem $_ 'ChangeFailed').message }
    $missing = Wait-Network -Snapshot $snapshot -Guard $guard -Seconds 120
    if ($missing -ne '') {
        Undo-Rewiring $guard
        $after = Wait-Network -Snapshot $snapshot -Guard $guard -Seconds 120
        return @{ State = 'restored'; Message = "$missing was lost and the change taken back; $message $after".Trim() }
    }
    if ($message -ne '') { return @{ State = 'failed'; Message = $message } }
    @{ State = 'done'; Message = '' }
}

function Wait-Network {
    # Puts back what is missing until the machine has its way out; names what is still missing at the end.
    param($Snapshot, $Guard, [int]$Seconds)
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    do {
        Restore-NetworkSnapshot $Snapshot
        $missing = Get-MissingLink -Snapshot $Snapshot -Guard $Guard
        if ($missing -eq '') { return '' }
        Start-Sleep -Seconds 3
    } while ([DateTime]::UtcNow -lt $until)
    $missing
}

function Get-MissingLink {
    param($Snapshot, $Guard)
    $address = @(Find-Address $Snapshot.ip)
    if ($address.Count -eq 0 -or $address[0].AddressState.ToString() -ne 'Preferred') { return 'the address ' + $Snapshot.ip }
    $wanted = @(@($Snapshot.routes) | Where-Object { $_.prefix -eq '0.0.0.0/0' })
    if ($wanted.Count -gt 0 -and @(Get-DefaultRoute).Count -eq 0) { return 'the default route' }
    $out = Get-AddressTowardsServer
    if (-not $out) { return 'the way to the API server' }
    $listening = @(Get-NetTCPConnection -State Listen -LocalPort $Guard.management_port -ErrorAction SilentlyContinue)
    # Port 0: winboot runs on the machine itself.
    if ($Guard.management_port -ne 0 -and $listening.Count -eq 0) { return "the listener on port $($Guard.management_port)" }
    ''
}

function Undo-Rewiring {
    param($Guard)
    if ($Guard.agent -ne '' -and $null -ne (Get-ServiceState $Guard.agent)) {
        Stop-RunningService $Guard.agent
        Invoke-ServiceControl @('config', $Guard.agent, 'start=', 'disabled')
    }
    foreach ($network in Get-HnsObject networks $Guard.network) {
        Remove-HnsObject networks $network.Id
    }
}
