# SUMMARY Registers and runs the task that repairs the node at each start of Windows.

function Get-BootTaskDifference {
    # The stored script, its task, and the record that it works from; the library, for the next run of the controller.
    Get-FileDifference -Path (Get-BootScriptPath) -Text (ConvertTo-ScriptFile -Text $script:Run.Text)
    Get-LibraryDifference
    Get-TaskDifference -Name 'boot' -Task (New-BootTask)
    Get-TaskDifference -Name 'guard' -Task (New-GuardTask)
    Get-StartDifference
    Get-RecordDifference
}

function Get-BootScriptPath {
    # Where the script of the startup task is stored. Its name comes from its content: a cut between script and task
    # leaves the older pair, which still fits together.
    Get-StatePath -Name "boot-$((Get-TextHash -Text $script:Run.Text).Substring(0, 16)).ps1"
}

function New-BootTask {
    # The startup task, as an object that Set-Task registers. It has to be registered before an address can be lost.
    New-SystemTask -Path (Get-BootScriptPath) -Text $script:Run.Text -Arguments '-Mode Boot' -Seconds 2400 -Priority 4 `
        -Trigger (New-ScheduledTaskTrigger -AtStartup) `
        -Description 'winboot: after each start of this machine puts back what a Kubernetes node loses with it.'
}

function Set-BootTask {
    # What the task works from comes before the task.
    Save-FormerValue -Kind 'BootTask' -Key 'boot' -Value @{ name = 'boot' }
    Update-NetworkRecord
    Write-FileText -Path (Get-BootScriptPath) -Text (ConvertTo-ScriptFile -Text $script:Run.Text) -Private
    Set-Task -Name 'boot' -Task (New-BootTask)
    if (Get-TaskDifference -Name 'guard' -Task (New-GuardTask)) {
        # One that runs has the older script.
        Remove-Task -Name 'guard'
        Set-Task -Name 'guard' -Task (New-GuardTask)
    }
    Save-Library
    # The step reported what failed at the start; from here on it is the steps' own looks that count.
    Save-Start
    Remove-BootScript -But (Get-BootScriptPath)
}

function Remove-BootScript {
    # Stored scripts of the startup, all but one.
    param([string]$But = '')
    foreach ($path in [IO.Directory]::GetFiles((Get-StatePath), 'boot*.ps1')) {
        if ($path -ne $But) { Remove-File -Path $path }
    }
}

function Restore-BootTask {
    # Removes the startup task, the stored scripts and the tasks that detached runs left. Returns nothing.
    param([object]$Former)
    Remove-Task -Name 'guard'
    Remove-Task -Name $Former.name
    Remove-BootScript
    Remove-Library
    # What a restart cut off is over, also before a start has noted that.
    Remove-StrayTask -Running @(Get-RunningDetached)
}

function Invoke-Boot {
    # What each start of the machine needs. A failure, or a file that another program holds, does not keep the rest from it:
    # this is when scanners and agents are busiest.
    $script:Run.BootFailed = @()
    Invoke-BootWork -Name '' -Work {
        Write-StateJson -Name 'boot.json' -Value @{ boot_id = (Get-BootId); stamp = (Get-BootStamp) } -Tries 4
    }
    Invoke-BootWork -Name '' -Work { New-EventLine -Fields @{ event = 'boot'; boot_id = (Get-BootId) } }
    if (Test-CopiedMachine -Tries 4) { return }
    # Before an agent that a cut left half way makes its network unwatched.
    Invoke-BootWork -Name '' -Work { Complete-InterruptedRun }
    Invoke-BootWork -Name '' -Work { Restore-AgentHold }
    Invoke-BootWork -Name '' -Work { Clear-OldFile }
    foreach ($step in $script:Run.Steps) { Invoke-BootStep -Step $step }
    if (-not $script:Run.Known -and (Test-CopiedMachine -Tries 60)) { return }
    if (-not $script:Run.Known) { Add-BootFault -Name 'registration' -Caught $script:Run.Unknown }
    Invoke-BootWork -Name '' -Work { Save-Start -Failed $script:Run.BootFailed }
    Invoke-BootWork -Name '' -Work { Watch-OwnService -Seconds 600 }
    Invoke-BootWork -Name '' -Work { Remove-StrayTask -Running @(Read-DetachedRun | Where-Object { $_.state -eq 'running' }) }
    # Last: it reads some hundred megabytes, and nothing waits for it.
    Invoke-BootWork -Name '' -Work { Update-HashMemory }
}

function Test-CopiedMachine {
    # Whether this machine is a copy of the one that joined; then the start is over. On the machine itself the services start that wait
    # for the answer. While the machine is unknown they do not start, and the rest of the start does not wait.
    param([int]$Tries)
    $script:Run.Known = $false
    try { $copy = Wait-CopyText -Tries $Tries }
    catch {
        $script:Run.Unknown = $_
        return $false
    }
    $script:Run.Known = $true
    Invoke-BootWork -Name '' -Work {
        if (-not $copy) { return (Start-HeldService) }
        Save-Start -Failed @(@{ step = 'registration'; message = $copy })
        New-EventLine -Fields @{ event = 'copied-machine'; message = $copy }
    }
    [bool]$copy
}

function Invoke-BootStep {
    # What a step does at the start of the machine, unless one that it needs failed: where the first switch did not come back, taking
    # the network above it away would take the last one. Returns nothing.
    param([hashtable]$Step)
    try { Assert-Dependency -Step $Step }
    catch {
        $script:Run.Unmet[$Step.Name] = 'NeedsStep'
        if ($Step.ContainsKey('Boot')) { Add-BootFault -Name $Step.Name -Caught $_ }
        return
    }
    try { [void]@(Invoke-Block -Step $Step -Block 'Boot') }
    catch {
        $script:Run.Unmet[$Step.Name] = 'BootFailed'
        Add-BootFault -Name $Step.Name -Caught $_
        return
    }
    if ($Step.ContainsKey('Boot')) { Invoke-BootWork -Name $Step.Name -Work { Save-Reached -Name $Step.Name } }
}

function Save-Reached {
    # Notes that a step has done its work at this start: where the startup task is ended before its own end, the rest is known. Returns nothing.
    param([string]$Name)
    $done = @(Get-ReachedStep) + $Name
    Write-StateJson -Name 'starting.json' -Value @{ boot_id = (Get-BootId); done = @($done | Sort-Object -Unique) } -Tries 4
}

function Get-ReachedStep {
    # The steps that have done their work at this start. Returns nothing if none exists.
    $noted = Read-StateJson -Name 'starting.json'
    if ($noted -and (Read-Member -Object $noted -Names 'boot_id') -eq (Get-BootId)) { Read-Item -Object $noted -Name 'done' }
}

function Get-UnreachedStep {
    # The steps whose work at this start is not done. Nothing where all is.
    $done = @(Get-ReachedStep)
    $script:Run.Steps | Where-Object { $_.ContainsKey('Boot') -and $done -notcontains $_.Name } | ForEach-Object { $_.Name }
}

function Test-StartOver {
    # Whether the startup task has come to its end, whichever: the scheduler starts it in the first minutes.
    $started = Get-BootTime
    $null -ne $started -and $started.AddMinutes(5) -lt [DateTime]::UtcNow -and -not (Test-TaskRunning -Name 'boot')
}

function Add-BootFault {
    # Tells the journal why a step's work at the start failed or was left out, and keeps it for the next look. Returns nothing.
    param([string]$Name, [System.Management.Automation.ErrorRecord]$Caught)
    $problem = ConvertTo-Problem -Caught $Caught -OtherwiseId 'BootFailed'
    $script:Run.BootFailed += @{ step = $Name; message = $problem.message }
    [void](New-EventLine -Fields @{ event = 'boot-failed'; step = $Name; problem = $problem })
}

function Save-Start {
    # Notes that this start's work was done or is not to be done, and what of it failed. Returns nothing.
    param([object[]]$Failed = @())
    Write-StateJson -Name 'started.json' -Value @{ boot_id = (Get-BootId); failed = @($Failed) } -Tries 4
}

function Get-StartDifference {
    # What the startup task was to do in this start and did not. Nothing where all went well, and while there is time for it.
    $noted = Read-StateJson -Name 'started.json'
    if (-not $noted) { return }
    if ((Read-Member -Object $noted -Names 'boot_id') -eq (Get-BootId)) {
        foreach ($one in Read-Item -Object $noted -Name 'failed') {
            New-Difference -Key "start:$($one.step)" -What "work of $($one.step) at the start of the machine" -Is $one.message -Want 'done'
        }
        return
    }
    $started = Get-BootTime
    if ($null -eq $started -or $started.AddMinutes(40) -gt [DateTime]::UtcNow) { return }
    New-Difference -Key 'start:missed' -What 'work of the startup task at the start of the machine' -Is 'not done' -Want 'done'
}

function Invoke-BootWork {
    # One piece of work at the start of the machine. Returns nothing; why it failed is in the journal.
    param([string]$Name, [scriptblock]$Work)
    try { [void]@(& $Work) }
    catch {
        $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'BootFailed'
        [void](New-EventLine -Fields @{ event = 'boot-failed'; step = $Name; problem = $problem })
    }
}

function Watch-OwnService {
    # For Seconds after a boot: starts those of our services that the control manager gave up on. It has 30 seconds of
    # patience with a service, and containerd reports itself only when it has looked at what every pod left behind (see
    # pkg/shim/util_windows.go of containerd); what depends on it is given up as well, and recovery actions do not help a
    # service that never ran. Ends when all run for a minute.
    param([int]$Seconds)
    $watch = [Diagnostics.Stopwatch]::StartNew()
    $calm = [Diagnostics.Stopwatch]::StartNew()
    while ($watch.Elapsed.TotalSeconds -lt $Seconds -and $calm.Elapsed.TotalSeconds -lt 60) {
        if (@(Start-FailedService).Count -gt 0) { $calm.Restart() }
        Start-Sleep -Seconds 10
    }
    $late = @(Get-AwaitedService | ForEach-Object { "$($_): $(Get-ServiceState -Name $_)$(Get-ServiceEnd -Name $_)" })
    if ($late) {
        [void](New-EventLine -Fields @{ event = 'services-down'; services = $late; seconds = [int]$watch.Elapsed.TotalSeconds })
    }
}

function Start-HeldService {
    # Starts, without waiting, what waits for this task to know the machine. Watch-OwnService starts again what falls. Returns nothing.
    foreach ($name in $script:Node['held']) {
        if (Get-ServiceDoubt -Name $name) { continue }
        Start-ProgramWithoutWait -Path (Get-SystemProgram -Name 'sc.exe') -Arguments @('start', $name)
    }
}

function Start-FailedService {
    # Starts what can be started now, without waiting for it; emits the names of all that do not run yet. Each is
    # reported in the journal once.
    $awaited = @(Get-AwaitedService)
    $awaited
    Save-LateStart -Awaited $awaited
    if ($awaited.Count -eq 0) { return }
    # A run that works on this machine starts services itself, in its own order and with a guard.
    $lock = Wait-MutexIfPossible -Seconds 0
    if (-not $lock) { return }
    try {
        foreach ($name in $awaited) {
            # What it depends on comes first.
            if (-not (Test-ServiceFailed -Name $name) -or (Get-ServiceDoubt -Name $name) -or @((Read-Service -Name $name).depends | Where-Object { $awaited -contains $_ })) {
                continue
            }
            if (-not $script:Run.ContainsKey("Fallen $name")) {
                $script:Run["Fallen $name"] = $true
                [void](New-EventLine -Fields @{ event = 'service-fallen'; service = $name; why = (Get-ServiceEnd -Name $name).Trim() })
            }
            Start-ProgramWithoutWait -Path (Get-SystemProgram -Name 'sc.exe') -Arguments @('start', $name)
        }
    }
    finally { Exit-Run -Lock $lock }
}

function Save-LateStart {
    # Notes of each service that was awaited and runs now how long that took since it was first asked for.
    param([string[]]$Awaited)
    if (-not $script:Run.ContainsKey('Late')) { $script:Run.Late = @{} }
    $late = $script:Run.Late
    foreach ($name in @($late.Keys | Where-Object { $Awaited -notcontains $_ })) {
        # Of one that fell, the control manager had waited for half a minute before.
        $before = if ($script:Run.ContainsKey("Fallen $name")) { 31 } else { 0 }
        if ((Get-ServiceState -Name $name) -eq 'Running') { Save-SlowStart -Name $name -Seconds ($before + $late[$name].Elapsed.TotalSeconds) }
        $late.Remove($name)
    }
    foreach ($name in $Awaited) { if (-not $late.ContainsKey($name)) { $late[$name] = [Diagnostics.Stopwatch]::StartNew() } }
}

function Start-ProgramWithoutWait {
    # Starts a program and does not wait: sc.exe may take 30 seconds, and the guard of the address must not.
    param([string]$Path, [string[]]$Arguments)
    (Start-Program -Path $Path -Arguments $Arguments).Dispose()
}

function Get-AwaitedService {
    # Our services that start with the machine and do not run yet. An administrator, or a run that was rolled back, holds one that is
    # disabled; one that a person stopped has no such exit code. Nothing when all run.
    foreach ($name in Get-OwnService) {
        $start = (Read-Service -Name $name).start
        $held = $start -eq 'demand' -and @($script:Node['held']) -contains $name
        if (-not $held -and @('auto', 'delayed-auto') -notcontains $start) { continue }
        if ((Get-ServiceState -Name $name) -eq 'StartPending' -or (Test-ServiceFailed -Name $name)) { $name }
    }
}

function Test-ServiceFailed {
    # Whether the control manager gave up on starting it: no answer in time (1053, 1070), a dependency failed (1068), or its program was not
    # there yet (2, 3; a power cut may leave it under another name, see Complete-OldFile). A start ends with these two
    # (MS-SCMR 3.1.4.19, RStartServiceW); of a driver `sc query` shows 2 afterwards (a recording). Unsourced: that it does so
    # of a service, too; its program moved away, `sc start`, `sc query` show it.
    # After a crash (1067) it has recovery actions; another program is about to start what was never tried (1077).
    param([string]$Name)
    if ((Get-ServiceState -Name $Name) -ne 'Stopped') { return $false }
    $found = Get-CimInstance -ClassName 'Win32_Service' -Filter "Name='$Name'" -Property 'ExitCode'
    $null -ne $found -and @(2, 3, 1053, 1068, 1070) -contains [int]$found.ExitCode
}

function Get-OwnService {
    # The services that winboot made or changed, in the order of their steps: those that have a note.
    if (-not $script:Run.ContainsKey('OwnServices')) {
        $current = $script:Run.Step
        $script:Run.OwnServices = @(foreach ($step in $script:Run.Steps) {
                $script:Run.Step = $step.Name
                foreach ($line in Get-FormerLine) { if ($line.kind -eq 'Service') { $line.key } }
            })
        $script:Run.Step = $current
    }
    $script:Run.OwnServices
}
