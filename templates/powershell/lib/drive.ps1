function New-Run {
    param([string]$Mode, [string]$Id, $Steps, $Secrets, $Facts, $Text)
    $known = @{ NodeIsLive = $false; Drained = $false; TakeOver = $false; Adopt = $false; Holder = ''; Detached = ''; Purpose = ''; Steps = ''; Addresses = @() }
    foreach ($name in $Facts.Keys) { $known[$name] = $Facts[$name] }
    @{
        Mode = $Mode; Id = $Id; Steps = $Steps; Secrets = $Secrets; Facts = $known; Text = [string]$Text
        # Steps not to build upon, with the id of the reason.
        Unmet = @{}
        # Answers that cost something: read once, forgotten after each change.
        Cache = @{}
        Step = ''; Fence = 0; Sequence = 0
        # Lines of the journal that could not be written yet.
        Journal = [Collections.Generic.List[string]]::new()
    }
}

function Get-ChosenStep {
    # All steps, or those that the controller names (--only, --skip). The text has all of them whatever is chosen, because
    # this machine keeps it for its boot task.
    $chosen = [string]$script:Run.Facts.Steps
    $script:Run.Steps | Where-Object { $chosen -eq '' -or $chosen.Split(',') -contains $_.Name }
}

function Invoke-Block {
    param($Step, [string]$Block)
    $script:Run.Step = $Step.Name
    if (-not $Step.ContainsKey($Block)) { return }
    # Values sets variables here, whatever their names: what runs after it is kept where they cannot reach.
    $script:Run.Action = $Step[$Block]
    . $Step.Values
    & $script:Run.Action
}

function Invoke-Look {
    # What is fine goes out in one batch at the end: the fewest messages.
    $quiet = [Collections.Generic.List[string]]::new()
    try { $script:Run.Fence = Get-Fence } catch { New-FailedEnd $_; return }
    New-RunEvent
    foreach ($step in Get-ChosenStep) {
        $watch = [Diagnostics.Stopwatch]::StartNew()
        $result = Get-LookResult $step
        $line = New-StepEvent $step $result $watch
        if ($result.State -eq 'ok') { $quiet.Add($line) } else { $line }
    }
    $quiet.Add((New-EndEvent 'complete'))
    $quiet.ToArray()
}

function Invoke-Locked {
    # Does Work under the machine's mutex. Whatever goes wrong outside of a step is told as the end of the run.
    param($Work)
    $lock = $null
    try {
        # Taking the mutex would supersede it.
        $running = Get-RunningDetached
        if (-not $running) { $lock = Enter-Run }
        New-RunEvent
        if ($running) { New-DetachedEvent $running $running.step; return }
        if (-not $lock) { New-EndEvent 'held' (Get-HolderText); return }
        & $Work
        Clear-OldFile
        Save-Journal $script:Run.Journal -Tries 6
    }
    catch { New-FailedEnd $_ }
    finally { if ($lock) { Exit-Run $lock } }
}

function New-FailedEnd {
    # The last event of a run that could not begin or go on, with the reason.
    param($Caught)
    $script:Run.Cache = @{}
    if ($script:Run.Sequence -eq 0) { New-RunEvent }
    New-EventLine @{ event = 'done'; reason = 'failed'; message = ''; problem = (ConvertTo-Problem $Caught 'RunFailed') }
}

function Invoke-Step {
    param($Steps, $Drive)
    $rebooting = @()
    foreach ($step in $Steps) {
        if (-not (Test-Fence)) { New-EndEvent 'superseded' (Get-HolderText); return }
        $watch = [Diagnostics.Stopwatch]::StartNew()
        $result = & $Drive $step
        if ($result.Detached) { New-DetachedEvent $result.Detached $step.Name; return }
        if ($result.Reboot) { $rebooting += $step.Name }
        New-StepEvent $step $result $watch
    }
    if (-not $rebooting) { New-EndEvent 'complete'; return }
    Save-RebootMark $rebooting
    New-EventLine @{ event = 'reboot'; steps = $rebooting }
    New-EndEvent 'reboot'
}

function Invoke-Undo {
    # Puts back what was before, last step first, and leaves no trace of winboot when everything is back.
    $steps = @($script:Run.Steps) + @(Get-ForgottenStep)
    [array]::Reverse($steps)
    Invoke-Step -Steps $steps -Drive { param($Step) Get-UndoResult $Step }
    if ([IO.Directory]::GetFiles((Get-StatePath 'former'), '*.jsonl').Count -eq 0) {
        Clear-OldFile
        Remove-StateFolder
    }
}

function Get-ForgottenStep {
    # Steps that an older profile had and that left former values here.
    $known = @($script:Run.Steps | ForEach-Object { $_.Name })
    foreach ($path in [IO.Directory]::GetFiles((Get-StatePath 'former'), '*.jsonl')) {
        $name = [IO.Path]::GetFileNameWithoutExtension($path)
        if ($known -notcontains $name) { @{ Name = $name; Needs = @('directories'); Values = {}; Undo = { Restore-FormerValue } } }
    }
}

function New-Result {
    @{ State = 'ok'; Differences = @(); Problem = $null; Reboot = $false; Detached = $null }
}

function Set-Failure {
    param($Step, $Result, $Caught, [string]$OtherwiseId)
    $Result.Problem = ConvertTo-Problem $Caught $OtherwiseId
    $Result.State = 'failed'
    if (@('NeedsStep', 'NeedsDrain', 'PendingReboot') -contains $Result.Problem.id) { $Result.State = 'blocked' }
    $script:Run.Unmet[$Step.Name] = $Result.Problem.id
}

function Get-LookResult {
    param($Step)
    $result = New-Result
    try {
        Assert-Dependency $Step
        $result.Differences = @(Read-Difference $Step)
        # What a Group Policy holds is told, and not ours to change.
        if (@($result.Differences | Where-Object { -not $_.policy }).Count -gt 0) { $result.State = 'would-change' }
    }
    catch { Set-Failure $Step $result $_ 'LookFailed' }
    $result
}

function Assert-Dependency {
    param($Step)
    $unmet = @($Step['Needs'] | Where-Object { $_ -and $script:Run.Unmet.ContainsKey($_) })
    if (-not $unmet) { return }
    $names = $unmet -join ', '
    if (@($unmet | Where-Object { $script:Run.Unmet[$_] -ne 'PendingReboot' }).Count -gt 0) {
        Stop-Step 'NeedsStep' "it builds on a step that did not succeed: $names"
    }
    Stop-Step 'PendingReboot' "it goes on after the restart of the machine; it builds on $names"
}

function Get-ChangeResult {
    param($Step)
    $result = Get-LookResult $Step
    if ($result.State -eq 'ok' -and $Step.ContainsKey('Detached')) { [void]@(Read-UntoldRun $Step.Name @('Change', 'Undo')) }
    if ($result.State -ne 'would-change') { return $result }
    try {
        Assert-Allowed $Step $result.Differences
        Complete-Change $Step $result
        if ($result.Reboot) { $script:Run.Unmet[$Step.Name] = 'PendingReboot' }
    }
    catch { Set-Failure $Step $result $_ 'ChangeFailed' }
    $result
}

function Complete-Change {
    # Only a second look that finds nothing makes it `changed`.
    param($Step, $Result)
    $said = @(Invoke-Block $Step 'Change')
    $script:Run.Cache = @{}
    foreach ($thing in $said) { Receive-Said $Step $Result $thing }
    if ($Result.Detached) { return }
    # What takes effect with the restart still differs before it.
    $left = @(Read-Difference $Step | Where-Object { -not $_.policy -and -not ($Result.Reboot -and $_.reboot) })
    if ($left) { Stop-Step 'StillDifferent' "after the change this is still different: $($left.what -join '; ')" }
    $Result.State = 'changed'
}

function Receive-Said {
    param($Step, $Result, $Thing)
    $kind = ''
    if ($Thing -is [Management.Automation.PSCustomObject]) { $kind = $Thing.kind }
    switch ($kind) {
        'reboot' { $Result.Reboot = $true }
        'detached' { $Result.Detached = $Thing }
        default { throw "the step $($Step.Name) emitted something it must not: $Thing" }
    }
}

function Get-UndoResult {
    param($Step)
    $result = New-Result
    try {
        $script:Run.Step = $Step.Name
        Assert-NothingAbove $Step
        $hadFormer = Test-FormerValue
        foreach ($thing in Invoke-Block $Step 'Undo') { Receive-Said $Step $result $thing }
        if ($hadFormer -and $null -eq $result.Detached) {
            $result.State = 'changed'
            Clear-FormerValue
        }
    }
    catch { Set-Failure $Step $result $_ 'ChangeFailed' }
    $result
}

function Assert-NothingAbove {
    # An undo goes the other way: what builds on a step goes before it, or the step stays and so do its notes.
    param($Step)
    $above = @($script:Run.Steps) + @(Get-ForgottenStep) |
        Where-Object { $script:Run.Unmet.ContainsKey($_.Name) -and @($_['Needs']) -contains $Step.Name }
    if ($above) { Stop-Step 'NeedsStep' "what builds on it was not taken back: $(@($above | ForEach-Object { $_.Name }) -join ', ')" }
}

function Read-Difference {
    param($Step)
    $seen = @{}
    foreach ($thing in Invoke-Block $Step 'Look') {
        if ($thing -isnot [Management.Automation.PSCustomObject] -or $thing.kind -ne 'difference') {
            throw "the look of step $($Step.Name) emitted something that is no difference: $thing"
        }
        if ($seen.ContainsKey($thing.key)) { throw "the look of step $($Step.Name) names two differences alike: $($thing.key)" }
        $seen[$thing.key] = $true
        $thing
    }
}

function Assert-Allowed {
    param($Step, $Differences)
    $facts = $script:Run.Facts
    $rough = @($Differences | Where-Object { -not $_.policy -and ($_.reboot -or $_.disrupts -or $_.disturbs) })
    if ($facts.NodeIsLive -and -not $facts.Drained -and $rough.Count -gt 0) {
        Stop-Step 'NeedsDrain' "this would disturb a live node: $($rough.what -join '; ')"
    }
    $missing = @($Step['Secrets'] | Where-Object { $_ -and -not $script:Run.Secrets.ContainsKey($_) })
    if ($missing) { Stop-Step 'SecretMissing' "the change needs a secret that was not sent: $($missing -join ', ')" }
}

function New-RunEvent {
    $identity = Get-MachineIdentity
    New-EventLine @{
        event = 'run'; boot_id = $identity.BootId; smbios_uuid = $identity.Uuid; build = $identity.Build
        computer_name = $identity.Name; fence = $script:Run.Fence; node_ip = Get-NodeIp
    }
}

function New-StepEvent {
    param($Step, $Result, [Diagnostics.Stopwatch]$Watch)
    New-EventLine @{
        event = 'step'; step = $Step.Name; state = $Result.State; ms = [int]$Watch.ElapsedMilliseconds
        differences = [object[]]@($Result.Differences); problem = $Result.Problem
    }
}

function New-DetachedEvent {
    param($Run, [string]$Step)
    New-EventLine @{ event = 'detached'; id = $Run.id; step = $Step; timeout_s = $Run.timeout_s }
    New-EndEvent 'detached'
}

function New-EndEvent {
    param([string]$Reason, [string]$Message = '')
    New-EventLine @{ event = 'done'; reason = $Reason; message = $Message }
}

function New-EventLine {
    # ASCII only: no code page on the way can change it.
    param($Fields)
    $script:Run.Sequence++
    $all = [ordered]@{ v = 1; event = $Fields.event; seq = $script:Run.Sequence; run = $script:Run.Id }
    foreach ($name in $Fields.Keys | Sort-Object) { $all[$name] = $Fields[$name] }
    $line = ConvertTo-AsciiJson $all
    if ($script:Run.Mode -ne 'Look') { Write-Journal -Line $line -Waiting $script:Run.Journal }
    $line
}

function ConvertTo-AsciiJson {
    param($Value)
    $json = ConvertTo-Json -InputObject $Value -Depth 8 -Compress
    [regex]::Replace($json, '[^\x20-\x7e]', { param($match) '\u{0:x4}' -f [int][char]$match.Value })
}
