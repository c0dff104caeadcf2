# SUMMARY Runs work that may cut its own session as a task, and restores the network if it fails.
# Seconds that its parts may take besides the work itself: the mutex, the watch after the work, the way back, the watch after that.
#   120 + 120 + 360 + 120 = 720

function Start-DetachedRun {
    # Stores this script and starts it as a task of SYSTEM; Seconds is what the work itself may take.
    param([int]$Seconds = 300, [object]$Guard)
    Assert-NoFailure
    $run = $script:Run
    $id = "$($run.Step)-$([Guid]::NewGuid().ToString('N').Substring(0, 8))"
    $whole = $Seconds + 720
    $path = Get-StatePath -Name "detached\$id.ps1"
    Write-FileText -Path $path -Text (ConvertTo-ScriptFile -Text $run.Text) -Private
    Write-StateJson -Name "detached\$id.json" -Value @{
        id = $id; step = $run.Step; state = 'running'; run = $run.Id; fence = $run.Fence; purpose = $run.Mode; guard = $Guard
        boot_id = (Get-MachineIdentity).BootId; timeout_s = $whole; message = ''; told = $false; ended = 0; hint = 'DetachedFailed'
        deadline = [DateTime]::UtcNow.AddSeconds($whole).Ticks; reached = @(Get-ReachedEndpoint -Port $Guard.management_port)
    }
    $common = @{ Path = $path; Text = $run.Text; Priority = 4 }
    # The second line: it finds the run still noted as running only when that one was killed or hangs, and ends it.
    $late = New-ScheduledTaskTrigger -Once -At ([DateTime]::Now.AddSeconds($whole + 60))
    Set-Task -Name "detached-$id-rescue" -Task (New-SystemTask @common -Arguments "-Mode Rescue -Detached `"$id`"" -Seconds 900 -Trigger $late `
            -Description "winboot: puts the network back if the run for step $($run.Step) was killed; removes itself.")
    Set-Task -Name "detached-$id" -Task (New-SystemTask @common -Arguments "-Mode Detached -RunId `"$($run.Id)`" -Detached `"$id`"" -Seconds $whole `
            -Description "winboot: changes the network for step $($run.Step) and puts it back if that fails; removes itself.")
    Start-ScheduledTask -TaskName "detached-$id" -TaskPath '\winboot\'
    [pscustomobject]@{ kind = 'detached'; id = $id; timeout_s = $whole }
}

function Get-ReachedEndpoint {
    # Where the controller comes in: own addresses, each with a port that something listens on now; nothing for port 0 (winboot runs
    # on the machine itself). Behind NAT, a tunnel or a jump host the machine does not have the address or port that was dialled: winboot
    # does not ask after the rewiring for what did not answer before it.
    param([int]$Port)
    if ($Port -eq 0) { return }
    # sshd names the connection: client, its port, own address, own port (w32-doexec.c of PowerShell/openssh-portable, setup_session_env).
    $words = "$($env:SSH_CONNECTION)".Split(' ')
    if ($words.Count -eq 4 -and (Test-ReachedEndpoint -Ip $words[2] -Port $words[3])) {
        return @{ ip = $words[2]; port = [int]$words[3] }
    }
    $own = @($script:Run.Facts.Addresses | Where-Object { Test-OuterAddress -Ip $_ })
    if ($own.Count -eq 0) { $own = @(Get-NodeAddress | ForEach-Object { $_.ip }) }
    foreach ($ip in $own) {
        # A port that is forwarded leads to one of WinRM's own.
        foreach ($one in @($Port, 5986, 5985)) {
            if (Test-Listener -Ip $ip -Port $one) { @{ ip = $ip; port = $one }; break }
        }
    }
}

function Test-ReachedEndpoint {
    # Whether others reach the machine at this address and port.
    param([string]$Ip, [int]$Port)
    (Test-OuterAddress -Ip $Ip) -and (Test-Listener -Ip $Ip -Port $Port)
}

function Test-OuterAddress {
    # Whether an address is one of the machine's, and not the loopback.
    param([string]$Ip)
    $Ip -ne '' -and $Ip -notlike '127.*' -and $Ip -ne '::1' -and $null -ne (Find-Address -Ip $Ip)
}

function Assert-NoFailure {
    # A failed one fails the step once; one that a restart cut off, or that ended well before this start, does not.
    foreach ($status in Read-UnreportedRun -Step $script:Run.Step -Purpose $script:Run.Mode) {
        $over = [DateTime]::UtcNow.AddMinutes(-15).Ticks -gt [long]$status.ended -or $status.boot_id -ne (Get-MachineIdentity).BootId
        if ($status.state -eq 'running' -or ($status.state -eq 'done' -and $over)) { continue }
        if ($status.state -eq 'done') { $status.message = 'but the step is not as wanted' }
        Stop-Step -Id 'DetachedFailed' -Message "the detached run $($status.id) ended as $($status.state): $($status.message)" -Hint $status.hint
    }
}

function Read-UnreportedRun {
    # The detached runs of a step whose end no run has received yet, each once; nothing if none exist. Purpose
    # is the mode that started it.
    param([string]$Step, [string[]]$Purpose)
    foreach ($status in Read-DetachedRun -Step "$Step-") {
        if ($status.told -or $Purpose -notcontains $status.purpose) { continue }
        $status.told = $true
        Write-StateJson -Name "detached\$($status.id).json" -Value $status
        $status
    }
}

function Invoke-Detached {
    # The task's own work, or, with Rescue, what is left of a run that was killed.
    param([switch]$Rescue)
    $id = $script:Run.Facts.Detached
    $status = Read-OwnNote -Id $id
    # Without it no run knows what is to be done; the rescue finds it as it is, or a start of the machine does.
    if (-not $status) { return }
    # One that hangs still runs and holds the mutex: Windows ends no task that was started on demand, whatever its time limit.
    if ($Rescue) { Stop-ScheduledTask -TaskName "detached-$id" -TaskPath '\winboot\' -ErrorAction SilentlyContinue }
    $ended = @{ State = 'failed'; Message = '' }
    $lock = Wait-MutexIfPossible -Seconds 120
    try {
        try {
            if ($Rescue) { $ended = Invoke-Rescue -Status $status }
            else {
                if (-not $lock) { throw "the mutex stayed held by $(Get-HolderText)" }
                if ((Get-Fence) -ne $status.fence) { throw "superseded by $(Get-HolderText)" }
                $script:Run.Fence = $status.fence
                # That event is still on its way through the network.
                Start-Sleep -Seconds 2
                $ended = Invoke-Guarded -Status $status
            }
        }
        catch { $ended.Message = $_.Exception.GetBaseException().Message }
        # Two minutes of patience: no other process can report how it ended.
        try { Complete-DetachedRun -Status $status -Ended $ended -Tries 12 }
        catch {
            # The run stays noted as running: its script and its rescue stay too, which settle it when the file is free.
            $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'DetachedFailed'
            [void](New-EventLine -Fields @{ event = 'detached-unsaved'; id = $id; state = $ended.State; problem = $problem })
            if (-not $Rescue) { return }
        }
    }
    finally { if ($lock) { Exit-Run -Lock $lock } }
    Remove-File -Path (Get-StatePath -Name "detached\$id.ps1") -Tries 4
    Remove-Task -Name "detached-$id-rescue"
    Remove-Task -Name "detached-$id"
}

function Read-OwnNote {
    # The note of this very run; nothing where it is held or torn, which the journal says.
    param([string]$Id)
    try {
        $status = Read-DetachedNote -Name "detached\$Id.json"
        if (-not $status) { Stop-Step -Id 'DetachedFailed' -Message "the note of the run $Id cannot be read" }
        $status
    }
    catch {
        $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'DetachedFailed'
        [void](New-EventLine -Fields @{ event = 'detached-unread'; id = $Id; problem = $problem })
    }
}

function Complete-DetachedRun {
    # Notes how a run ended, once.
    param([object]$Status, [object]$Ended, [int]$Tries = 9)
    $Status.state = $Ended.State
    $Status.message = $Ended.Message
    $Status.ended = [DateTime]::UtcNow.Ticks
    Write-StateJson -Name "detached\$($Status.id).json" -Value $Status -Tries $Tries
}

function Invoke-Guarded {
    # The step's work under watch. Only what the node itself can see is a reason to go back: an API server that is away is not.
    param([object]$Status)
    $script:Run.Facts.Purpose = $Status.purpose
    $snapshot = Get-CurrentSnapshot
    $snapshot.node = Get-NodeAddress
    $snapshot.reached = @($Status.reached)
    $snapshot.networks = @(Get-HnsObject -Kind networks | ForEach-Object { $_.ID })
    Write-StateJson -Name "detached\$($Status.id)-network.snapshot" -Value $snapshot
    $script:Run['Snapshot'] = $snapshot
    $step = @($script:Run.Steps | Where-Object { $_.Name -eq $Status.step })[0]
    $problem = $null
    try { [void]@(Invoke-Block -Step $step -Block 'Detached') }
    catch {
        $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'DetachedFailed'
        $Status.hint = "$($problem.id) DetachedFailed"
    }
    Complete-Guarded -Status $Status -Step $step -Snapshot $snapshot -Problem $problem
}

function Complete-Guarded {
    # What the work left: the machine as before and the network as wanted, or the way back.
    param([object]$Status, [hashtable]$Step, [object]$Snapshot, [object]$Problem)
    $message = ''
    if ($null -ne $Problem) { $message = $Problem.message }
    $lost = Wait-Network -Snapshot $Snapshot
    if ($lost -or ($null -ne $Problem -and $Problem.id -eq 'WrongAdapter')) {
        Undo-Rewiring -Guard $Status.guard -Snapshot $Snapshot
        $after = Wait-Network -Snapshot $Snapshot
        if ($after) { $after = "still lost: $after" }
        $lost = if ($lost) { "$lost was lost and the change taken back" } else { 'the change was taken back' }
        return @{ State = 'restored'; Message = @($lost, $message, $after | Where-Object { $_ }) -join '; ' }
    }
    $state = if ($null -eq $Problem) { 'done' } else { 'failed' }
    if ($Status.purpose -eq 'Change') {
        if (Test-StepDone -Step $Step) { Enable-NetworkAgent -Name $Status.guard.agent }
        else { Disable-NetworkAgent -Name $Status.guard.agent -Why "the run $($Status.id) ended as ${state}: $message" }
    }
    Save-NetworkRecord
    @{ State = $state; Message = $message }
}

function Test-StepDone {
    # Whether nothing is left of the step that only another rewiring could correct. What the API server alone knows is not a fault
    # while it is away.
    param([hashtable]$Step)
    $script:Run.Cache = @{}
    @(Read-Difference -Step $Step | Where-Object { $_.disrupts -and -not $_.unknown }).Count -eq 0
}

function Invoke-Rescue {
    # A run that was killed in the middle: back to what it had noted.
    param([object]$Status)
    if ($Status.state -ne 'running') { return @{ State = $Status.state; Message = $Status.message } }
    $script:Run.Facts.Purpose = $Status.purpose
    $snapshot = Read-StateJson -Name "detached\$($Status.id)-network.snapshot"
    Invoke-RollbackPart -Part { Disable-NetworkAgent -Name $Status.guard.agent -Why "the run $($Status.id) was killed" }
    if (-not $snapshot) { return @{ State = 'failed'; Message = 'killed before its work began' } }
    $lost = Wait-Network -Snapshot $snapshot
    if (-not $lost) { return @{ State = 'failed'; Message = 'killed' } }
    Undo-Rewiring -Guard $Status.guard -Snapshot $snapshot
    $after = Wait-Network -Snapshot $snapshot
    @{ State = 'restored'; Message = @("killed; $lost was lost and the change taken back", $after | Where-Object { $_ }) -join '; still lost: ' }
}

function Complete-InterruptedRun {
    # At the start of the machine: a run that the restart cut off has ended, and its agent waits for the next guarded run.
    # A note that another process holds does not stop it from settling the others.
    $script:Run['Cut'] = @()
    foreach ($note in Get-DetachedNote) { Invoke-BootWork -Name '' -Work { Complete-CutRun -Note $note } }
}

function Complete-CutRun {
    # The same for one note. Returns nothing.
    param([string]$Note)
    $status = Read-DetachedNote -Name $Note
    if (-not $status -or $status.state -ne 'running' -or $status.boot_id -eq (Get-BootId)) { return }
    $script:Run.Cut += "detached\$($status.id)-network.snapshot"
    if ($status.purpose -eq 'Change') {
        Invoke-BootWork -Name '' -Work { Disable-NetworkAgent -Name $status.guard.agent -Why "a restart cut the run $($status.id) off" }
    }
    # This is not a failure: the next run continues.
    $status.told = $true
    Complete-DetachedRun -Status $status -Ended @{ State = 'failed'; Message = 'a restart cut it off' }
}

function Get-InterruptedRecord {
    # The interfaces as the runs that this start cut off had found them. Nothing where none was cut off.
    if (-not $script:Run.ContainsKey('Cut')) { return }
    foreach ($name in $script:Run.Cut) { Read-NetworkRecord -Name $name }
}

function Remove-StrayTask {
    # Tasks of detached runs, but for those that are Running; a restart or a kill keeps a run from removing its own.
    param([object[]]$Running)
    $names = @($Running | ForEach-Object { "detached-$($_.id)"; "detached-$($_.id)-rescue" })
    foreach ($task in Get-ScheduledTask -TaskPath '\winboot\' -ErrorAction SilentlyContinue) {
        if ($task.TaskName -like 'detached-*' -and $names -notcontains $task.TaskName) { Remove-Task -Name $task.TaskName }
    }
}

function Wait-Network {
    # Names what could not be put back.
    param([object]$Snapshot)
    $intact = {
        (Invoke-NetworkRestore -Snapshot $Snapshot) -and -not (Get-MissingLink -Snapshot $Snapshot)
    }
    if (Wait-Until -Test $intact -Seconds 120 -Pause 3000) { return }
    $missing = Get-MissingLink -Snapshot $Snapshot
    if ($missing) { "$missing $($script:Run.Trouble)".Trim() }
}

function Get-MissingLink {
    # What keeps others from the machine: an address, the default route, or a listener on the address that the
    # controller came in by. Nothing when nothing is missing.
    param([object]$Snapshot)
    $missing = Get-MissingWay -Snapshot $Snapshot
    if ($missing) { return $missing }
    foreach ($end in $Snapshot.reached) {
        if (-not (Test-Listener -Ip $end.ip -Port $end.port)) { return "the listener on $($end.ip), port $($end.port)" }
    }
}

function Test-Listener {
    # Whether something answers at this very address: a listener on all addresses says nothing about one of them.
    param([string]$Ip, [int]$Port)
    $client = New-TcpClient -Address $Ip
    try { Test-TaskEnd -Task $client.ConnectAsync($Ip, $Port) -Seconds 3 }
    catch [AggregateException] { $false }
    finally { $client.Close() }
}

function Undo-Rewiring {
    # Takes away what the run made, agent first, load balancers before networks.
    param([object]$Guard, [object]$Snapshot)
    Invoke-RollbackPart -Part { Disable-NetworkAgent -Name $Guard.agent -Why 'the network was lost' }
    foreach ($name in $Guard.networks) {
        Invoke-RollbackPart -Part {
            if (Get-HnsObject -Kind networks -Name $name | Where-Object { $Snapshot.networks -notcontains $_.ID }) {
                Remove-PodNetwork -Name $name
            }
        }
    }
}

function Invoke-RollbackPart {
    # One part that fails or hangs does not keep the others from it.
    param([scriptblock]$Part)
    try { & $Part }
    catch {
        $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'DetachedFailed'
        [void](New-EventLine -Fields @{ event = 'rollback-trouble'; problem = $problem })
    }
}

function Disable-NetworkAgent {
    # Keeps an agent from making the switch unwatched: disabled, stopped and noted. Only a guarded run enables it.
    param([string]$Name, [string]$Why)
    if ($Name -eq '' -or $null -eq (Get-ServiceState -Name $Name)) { return }
    $dependents = @(Get-StartingDependent -Name $Name)
    $since = [DateTime]::UtcNow.ToString('s') + 'Z'
    # The note is for the next run: where another process holds its file, the agent is stopped all the same.
    Invoke-ServiceControl -Arguments @('config', $Name, 'start=', 'disabled')
    foreach ($one in $dependents) { Invoke-ServiceControl -Arguments @('config', $one.name, 'start=', 'demand') }
    Stop-RunningService -Name $Name
    Write-StateJson -Name 'held.json' -Value @{ agent = $Name; why = $Why; since = $since; dependents = $dependents }
}

function Get-StartingDependent {
    # What starts with the machine and depends on the agent, as noted before or as it is: the control manager would
    # start the agent for it, also one that does not start by itself (a guarded run that a cut ends). Returns nothing if
    # none exists.
    param([string]$Name)
    $noted = @(Get-AgentHold | ForEach-Object { Read-Item -Object $_ -Name 'dependents' })
    if ($noted.Count -gt 0) { return $noted }
    $service = Read-Service -Name 'kube-proxy'
    if ($null -eq $service -or $service.depends -notcontains $Name -or @('auto', 'delayed-auto') -notcontains $service.start) {
        return
    }
    @{ name = 'kube-proxy'; start = $service.start }
}

function Enable-NetworkAgent {
    # After a guarded run: from now on the guard starts it with the machine, and what depends on it.
    param([string]$Name)
    if ($Name -eq '' -or $null -eq (Get-ServiceState -Name $Name)) { return }
    $dependents = @(Get-AgentHold | ForEach-Object { Read-Item -Object $_ -Name 'dependents' })
    Invoke-ServiceControl -Arguments @('config', $Name, 'start=', 'demand')
    foreach ($one in $dependents) {
        if ($null -ne (Get-ServiceState -Name $one.name)) {
            Invoke-ServiceControl -Arguments @('config', $one.name, 'start=', $one.start)
        }
    }
    Remove-File -Path (Get-StatePath -Name 'held.json')
}

function Get-AgentHold {
    # The services that may not start, and why; nothing where all may.
    $hold = Read-StateJson -Name 'held.json'
    if ($hold -and (Read-Member -Object $hold -Names 'agent')) { $hold }
}

function Restore-AgentHold {
    # Keeps an agent from starting that was kept from it before the start of the machine. Returns nothing.
    foreach ($hold in Get-AgentHold) { Disable-NetworkAgent -Name $hold.agent -Why $hold.why }
}
