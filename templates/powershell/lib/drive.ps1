# Drives the steps and tells the controller what happens: one JSON text per event, nothing else.

function New-Run {
    param([string]$Mode, [string]$Id, [hashtable[]]$Steps, $Secrets, $Facts, $Text)
    $known = @{ NodeIsLive = $false; Drained = $false; TakeOver = $false; Holder = ''; Detached = ''; Purpose = '' }
    foreach ($name in @($Facts.Keys)) { $known[$name] = $Facts[$name] }
    foreach ($step in $Steps) {
        foreach ($name in @('Needs', 'Secrets')) { if (-not $step.ContainsKey($name)) { $step[$name] = @() } }
    }
    @{
        Mode = $Mode; Id = $Id; Steps = $Steps; Secrets = $Secrets; Facts = $known; Text = $Text
        # Steps that others must not build upon, with the reason: failed, blocked or reboot.
        Unmet = @{}
        # Answers that cost something and hold for one step: read once, forgotten after each change.
        Cache = @{}
        Step = ''; Fence = 0; Sequence = 0
    }
}

function Invoke-Block {
    # The values are set anew for each block, so that blocks cannot change them for each other.
    param($Step, [string]$Block)
    $script:Run.Step = $Step.Name
    if (-not $Step.ContainsKey($Block)) { return }
    . $Step.Values
    & $Step[$Block]
}

function Invoke-Look {
    # What is as it should be goes out in one batch at the end: a run that finds nothing to do costs the fewest
    # messages.
    $script:Run.Fence = Get-Fence
    $quiet = [Collections.Generic.List[string]]::new()
    New-RunEvent
    foreach ($step in $script:Run.Steps) {
        $watch = [Diagnostics.Stopwatch]::StartNew()
        $result = Get-LookResult -Step $step
        $line = New-StepEvent -Step $step -Result $result -Watch $watch
        if ($result.State -eq 'ok') { $quiet.Add($line) } else { $line }
    }
    $quiet.Add((New-EndEvent -Reason 'complete'))
    $quiet.ToArray()
}

function Invoke-Locked {
    # Runs the work while holding the machine-wide mutex, or names the one who holds it.
    param([scriptblock]$Work)
    # A detached run that is under way has a claim of its own: taking the mutex before it does would supersede it.
    $running = Get-RunningDetached
    $lock = $null
    if ($null -eq $running) { $lock = Enter-Run }
    New-RunEvent
    if ($null -ne $running) {
        New-DetachedEvents -Id $running.id -Step $running.step -TimeoutSeconds $running.timeout_s
        return
    }
    if ($null -eq $lock) {
        New-EndEvent -Reason 'held' -Message (Get-HolderText)
        return
    }
    try {
        & $Work
        Clear-OldFiles
    }
    finally { Exit-Run -Lock $lock }
}

function Invoke-Steps {
    param([object[]]$Steps, [scriptblock]$Drive)
    $rebooting = @()
    foreach ($step in $Steps) {
        if (-not (Test-Fence)) {
            New-EndEvent -Reason 'superseded' -Message (Get-HolderText)
            return
        }
        $watch = [Diagnostics.Stopwatch]::StartNew()
        $result = & $Drive $step
        if ($null -ne $result.Detached) {
            New-DetachedEvents -Id $result.Detached.id -Step $step.Name -TimeoutSeconds $result.Detached.timeout_s
            return
        }
        if ($result.Reboot) { $rebooting += $step.Name }
        New-StepEvent -Step $step -Result $result -Watch $watch
    }
    if ($rebooting.Count -gt 0) {
        Save-RebootMark -Steps $rebooting
        New-EventLine @{ event = 'reboot'; steps = $rebooting }
        New-EndEvent -Reason 'reboot'
        return
    }
    New-EndEvent -Reason 'complete'
}

function Invoke-Undo {
    # Puts back what was before, last step first, and leaves no trace of winboot when everything is back.
    $steps = @($script:Run.Steps) + @(Get-ForgottenSteps)
    [array]::Reverse($steps)
    Invoke-Steps -Steps $steps -Drive { param($Step) Get-UndoResult -Step $Step }
    if ([IO.Directory]::GetFiles((Get-StatePath 'former'), '*.jsonl').Count -eq 0) {
        Clear-OldFiles
        Remove-StateFolder
    }
}

function Get-ForgottenSteps {
    # Steps that an older profile had and that left former values here.
    $known = @($script:Run.Steps | ForEach-Object { $_.Name })
    foreach ($path in [IO.Directory]::GetFiles((Get-StatePath 'former'), '*.jsonl')) {
        $name = [IO.Path]::GetFileNameWithoutExtension($path)
        if ($known -notcontains $name) { @{ Name = $name; Needs = @(); Secrets = @(); Values = {}; Undo = { Restore-FormerValue } } }
    }
}

function New-Result {
    param([string]$State = 'ok', [object[]]$Differences = @(), $Problem = $null)
    @{ State = $State; Differences = $Differences; Problem = $Problem; Reboot = $false; Detached = $null }
}

function Get-LookResult {
    param($Step)
    $unmet = @($Step.Needs | Where-Object { $script:Run.Unmet.ContainsKey($_) })
    if ($unmet.Count -gt 0) { return (New-BlockedResult -Step $Step -Unmet $unmet) }
    try { $found = @(Read-Differences -Step $Step) }
    catch {
        $script:Run.Unmet[$Step.Name] = 'failed'
        return (New-Result -State 'failed' -Problem (ConvertTo-Problem -Caught $_ -OtherwiseId 'LookFailed'))
    }
    # What a Group Policy holds is told, but it is neither ours to change nor a reason to start.
    if (@($found | Where-Object { -not $_.policy }).Count -eq 0) { return (New-Result -Differences $found) }
    New-Result -State 'would-change' -Differences $found
}

function Get-ChangeResult {
    param($Step)
    $result = Get-LookResult -Step $Step
    if ($result.State -eq 'ok' -and $Step.ContainsKey('Detached')) { Complete-DetachedRun -Step $Step.Name }
    if ($result.State -ne 'would-change') { return $result }
    $problem = Get-Obstacle -Step $Step -Differences $result.Differences
    if ($null -ne $problem) {
        $script:Run.Unmet[$Step.Name] = 'blocked'
        $result.State = 'blocked'
        if ($problem.id -eq 'SecretMissing') { $result.State = 'failed' }
        $result.Problem = $problem
        return $result
    }
    try {
        $result = Complete-Change -Step $Step -Result $result
        if ($result.Reboot) { $script:Run.Unmet[$Step.Name] = 'reboot' }
    }
    catch {
        $script:Run.Unmet[$Step.Name] = 'failed'
        $result.State = 'failed'
        $result.Problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'ChangeFailed'
    }
    $result
}

function Complete-Change {
    # Only a second look that finds nothing makes it `changed`.
    param($Step, $Result)
    $said = @(Invoke-Block -Step $Step -Block 'Change')
    $script:Run.Cache = @{}
    foreach ($thing in $said) { Receive-Said -Step $Step -Result $Result -Thing $thing }
    if ($null -ne $Result.Detached) { return $Result }
    $left = @(Read-Differences -Step $Step | Where-Object { -not $_.policy })
    # What takes effect with the restart may still be seen as different before it.
    if ($Result.Reboot) { $left = @($left | Where-Object { -not $_.reboot }) }
    if ($left.Count -gt 0) {
        $names = @($left | ForEach-Object { $_.what }) -join '; '
        Stop-Step -Id 'StillDifferent' -Message ('after the change this is still different: ' + $names) `
            -Hint 'Something on the machine puts it back or refuses it: a Group Policy, an agent, or the service itself.'
    }
    $Result.State = 'changed'
    $Result
}

function Receive-Said {
    param($Step, $Result, $Thing)
    $kind = ''
    if ($Thing -is [Management.Automation.PSCustomObject]) { $kind = $Thing.kind }
    switch ($kind) {
        'reboot' { $Result.Reboot = $true }
        'detached' { $Result.Detached = $Thing }
        default { throw ('the step {0} emitted something it must not: {1}' -f $Step.Name, $Thing) }
    }
}

function Get-UndoResult {
    param($Step)
    $result = New-Result
    try {
        $script:Run.Step = $Step.Name
        $hadFormer = Test-FormerValue
        foreach ($thing in @(Invoke-Block -Step $Step -Block 'Undo')) {
            Receive-Said -Step $Step -Result $result -Thing $thing
        }
        if ($hadFormer -and $null -eq $result.Detached) {
            $result.State = 'changed'
            Clear-FormerValue
        }
    }
    catch {
        $result.State = 'failed'
        $result.Problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'ChangeFailed'
    }
    $result
}

function Read-Differences {
    param($Step)
    $seen = @{}
    foreach ($thing in @(Invoke-Block -Step $Step -Block 'Look')) {
        if ($thing -isnot [Management.Automation.PSCustomObject] -or $thing.kind -ne 'difference') {
            throw ('the look of step {0} emitted something that is no difference: {1}' -f $Step.Name, $thing)
        }
        if ($seen.ContainsKey($thing.what)) {
            throw ('the look of step {0} names two differences alike: {1}' -f $Step.Name, $thing.what)
        }
        $seen[$thing.what] = $true
        $thing
    }
}

function Get-Obstacle {
    param($Step, [object[]]$Differences)
    $facts = $script:Run.Facts
    if ($facts.NodeIsLive -and -not $facts.Drained) {
        $rough = @($Differences | Where-Object { -not $_.policy -and ($_.reboot -or $_.disrupts -or $_.disturbs) })
        if ($rough.Count -gt 0) {
            $names = @($rough | ForEach-Object { $_.what }) -join '; '
            return @{
                id = 'NeedsDrain'; message = 'this would disturb a live node: ' + $names; position = ''
                hint = 'Run again with --drain: winboot cordons and evicts first, and lifts its own cordon afterwards.'
            }
        }
    }
    $missing = @($Step.Secrets | Where-Object { -not $script:Run.Secrets.ContainsKey($_) })
    if ($missing.Count -gt 0) {
        return @{
            id = 'SecretMissing'; message = 'the change needs a secret that was not sent: ' + ($missing -join ', ')
            hint = 'Check the references in the profile (env, file, command, mint).'; position = ''
        }
    }
}

function New-BlockedResult {
    param($Step, [string[]]$Unmet)
    $reasons = @($Unmet | ForEach-Object { $script:Run.Unmet[$_] })
    $id = 'NeedsStep'
    $message = 'it builds on a step that did not succeed: ' + ($Unmet -join ', ')
    if ($reasons -notcontains 'failed' -and $reasons -notcontains 'blocked') {
        $id = 'PendingReboot'
        $message = 'it goes on after the restart that these steps asked for: ' + ($Unmet -join ', ')
        $script:Run.Unmet[$Step.Name] = 'reboot'
    }
    else { $script:Run.Unmet[$Step.Name] = 'blocked' }
    New-Result -State 'blocked' -Problem @{ id = $id; message = $message; hint = ''; position = '' }
}

function New-RunEvent {
    $identity = Get-MachineIdentity
    New-EventLine @{
        event = 'run'; boot_id = $identity.BootId; smbios_uuid = $identity.Uuid; build = $identity.Build
        computer_name = $identity.Name; fence = $script:Run.Fence
    }
}

function New-StepEvent {
    param($Step, $Result, [Diagnostics.Stopwatch]$Watch)
    New-EventLine @{
        event = 'step'; step = $Step.Name; state = $Result.State; ms = [int]$Watch.ElapsedMilliseconds
        differences = [object[]]@($Result.Differences); problem = $Result.Problem
    }
}

function New-DetachedEvents {
    param([string]$Id, [string]$Step, [int]$TimeoutSeconds)
    New-EventLine @{ event = 'detached'; id = $Id; step = $Step; timeout_s = $TimeoutSeconds }
    New-EndEvent -Reason 'detached'
}

function New-EndEvent {
    param([string]$Reason, [string]$Message = '')
    New-EventLine @{ event = 'done'; reason = $Reason; message = $Message }
}

function New-EventLine {
    # ASCII only, so that no code page between here and the controller can change it.
    param($Fields)
    $script:Run.Sequence++
    $all = [ordered]@{ v = 1; event = $Fields.event; seq = $script:Run.Sequence; run = $script:Run.Id }
    foreach ($name in @($Fields.Keys | Sort-Object)) { $all[$name] = $Fields[$name] }
    $line = ConvertTo-AsciiJson $all
    if ($script:Run.Mode -ne 'Look') { Write-Journal -Line $line }
    $line
}

function ConvertTo-AsciiJson {
    param($Value)
    $json = ConvertTo-Json -InputObject $Value -Depth 8 -Compress
    if ($json -cnotmatch '[^\x20-\x7e]') { return $json }
    $text = [Text.StringBuilder]::new()
    foreach ($character in $json.ToCharArray()) {
        $code = [int]$character
        if ($code -ge 32 -and $code -le 126) { [void]$text.Append($character) }
        else { [void]$text.AppendFormat('\u{0:x4}', $code) }
    }
    $text.ToString()
}
