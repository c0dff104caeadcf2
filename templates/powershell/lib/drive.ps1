function New-Run {
    param([string]$Mode, [string]$Id, $Steps, $Secrets, $Facts, $Text)
    $known = @{ NodeIsLive = $false; Drained = $false; TakeOver = $false; Adopt = $false; Holder = ''; Detached = ''; Purpose = ''; Steps = ''; Addresses = @() }
    foreach ($name in $Facts.Keys) { $known[$name] = $Facts[$name] }
    @{
        Mode = $Mode; Id = $Id; Steps = $Steps; Secrets = $Secrets; Facts = $known
        # A signed copy is the same text with a comment behind it.
        Text = ([string]$Text -csplit "`r`n# SIG # Begin signature block`r`n")[0]
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
    try { $script:Run.Fence = Get-Fence } catch { New-FailedEnd -Caught $_; return }
    New-RunEvent
    foreach ($step in Get-ChosenStep) {
        $watch = [Diagnostics.Stopwatch]::StartNew()
        $result = Get-LookResult -Step $step
        $line = New-StepEvent -Step $step -Result $result -Watch $watch
        if ($result.State -eq 'ok') { $quiet.Add($line) } else { $line }
    }
    $quiet.Add((New-EndEvent -Reason 'complete'))
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
        if ($running) { New-DetachedEvent -Run $running -Step $running.step; return }
        if (-not $lock) { New-EndEvent -Reason 'held' -Message (Get-HolderText); return }
        & $Work
        Clear-OldFile
        Save-Journal -Waiting $script:Run.Journal -Tries 6
    }
    catch { New-FailedEnd -Caught $_ }
    finally { if ($lock) { Exit-Run -Lock $lock } }
}

function New-FailedEnd {
    # The last event of a run that could not begin or go on, with the reason.
    param($Caught)
    $script:Run.Cache = @{}
    if ($script:Run.Sequence -eq 0) { New-RunEvent }
    New-EventLine -Fields @{ event = 'done'; reason = 'failed'; message = ''; problem = (ConvertTo-Problem -Caught $Caught -OtherwiseId 'RunFailed') }
}

function Invoke-Step {
    param($Steps, $Drive)
    $rebooting = @()
    foreach ($step in $Steps) {
        if (-not (Test-Fence)) { New-EndEvent -Reason 'superseded' -Message (Get-HolderText); return }
        $watch = [Diagnostics.Stopwatch]::StartNew()
        $result = & $Drive $step
        if ($result.Detached) { New-DetachedEvent -Run $result.Detached -Step $step.Name; return }
        if ($result.Reboot) { $rebooting += $step.Name }
        New-StepEvent -Step $step -Result $result -Watch $watch
    }
    if (-not $rebooting) { New-EndEvent -Reason 'complete'; return }
    Save-RebootMark -Steps $rebooting
    New-EventLine -Fields @{ event = 'reboot'; steps = $rebooting }
    New-EndEvent -Reason 'reboot'
}

function Invoke-Undo {
    # Puts back what was before, last step first, and leaves no trace of winboot when everything is back.
    $steps = @($script:Run.Steps) + @(Get-ForgottenStep)
    [array]::Reverse($steps)
    Invoke-Step -Steps $steps -Drive { param($Step) Get-UndoResult -Step $Step }
    if ([IO.Directory]::GetFiles((Get-StatePath -Name 'former'), '*.jsonl').Count -eq 0) {
        Clear-OldFile
        Remove-StateFolder
    }
}

function Get-ForgottenStep {
    # Steps that an older profile had and that left former values here.
    $known = @($script:Run.Steps | ForEach-Object { $_.Name })
    foreach ($path in [IO.Directory]::GetFiles((Get-StatePath -Name 'former'), '*.jsonl')) {
        $name = [IO.Path]::GetFileNameWithoutExtension($path)
        if ($known -notcontains $name) {
            @{ Name = $name; Needs = @('directories'); Values = {}; Undo = { Restore-FormerValue } }
        }
    }
}

function New-Result {
    @{ State = 'ok'; Differences = @(); Problem = $null; Reboot = $false; Detached = $null }
}

function Set-Failure {
    param($Step, $Result, $Caught, [string]$OtherwiseId)
    $Result.Problem = ConvertTo-Problem -Caught $Caught -OtherwiseId $OtherwiseId
    $Result.State = 'failed'
    if (@('NeedsStep', 'NeedsDrain', 'PendingReboot') -contains $Result.Problem.id) { $Result.State = 'blocked' }
    $script:Run.Unmet[$Step.Name] = $Result.Problem.id
}

function Get-LookResult {
    param($Step)
    $result = New-Result
    try {
        Assert-Dependency -Step $Step
        $result.Differences = @(Read-Difference -Step $Step)
        # What a Group Policy holds is told, and not ours to change.
        if (@($result.Differences | Where-Object { -not $_.policy }).Count -gt 0) { $result.State = 'would-change' }
    }
    catch { Set-Failure -Step $Step -Result $result -Caught $_ -OtherwiseId 'LookFailed' }
    $result
}

function Assert-Dependency {
    param($Step)
    $unmet = @($Step['Needs'] | Where-Object { $_ -and $script:Run.Unmet.ContainsKey($_) })
    if (-not $unmet) { return }
    $names = $unmet -join ', '
    if (@($unmet | Where-Object { $script:Run.Unmet[$_] -ne 'PendingReboot' }).Count -gt 0) {
        Stop-Step -Id 'NeedsStep' -Message "it builds on a step that did not succeed: $names"
    }
    Stop-Step -Id 'PendingReboot' -Message "it goes on after the restart of the machine; it builds on $names"
}

function Get-ChangeResult {
    param($Step)
    $result = Get-LookResult -Step $Step
    if ($result.State -eq 'ok' -and $Step.ContainsKey('Detached')) {
        [void]@(Read-UntoldRun -Step $Step.Name -Purpose @('Change', 'Undo'))
    }
    if ($result.State -ne 'would-change') { return $result }
    try {
        Assert-Allowed -Step $Step -Differences $result.Differences
        Complete-Change -Step $Step -Result $result
        if ($result.Reboot) { $script:Run.Unmet[$Step.Name] = 'PendingReboot' }
    }
    catch { Set-Failure -Step $Step -Result $result -Caught $_ -OtherwiseId 'ChangeFailed' }
    $result
}

function Complete-Change {
    # Only a second look that finds nothing makes it `changed`.
    param($Step, $Result)
    $said = @(Invoke-Block -Step $Step -Block 'Change')
    $script:Run.Cache = @{}
    foreach ($thing in $said) { Receive-Said -Step $Step -Result $Result -Thing $thing }
    if ($Result.Detached) { return }
    # What takes effect with the restart still differs before it.
    $left = @(Read-Difference -Step $Step | Where-Object { -not $_.policy -and -not ($Result.Reboot -and $_.reboot) })
    if ($left) { Stop-Step -Id 'StillDifferent' -Message "after the change this is still different: $($left.what -join '; ')" }
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
        Assert-NothingAbove -Step $Step
        $hadFormer = Test-FormerValue
        foreach ($thing in Invoke-Block -Step $Step -Block 'Undo') {
            # What cannot be as it was.
            if ($thing -is [Management.Automation.PSCustomObject] -and $thing.kind -eq 'difference') { $result.Differences += $thing }
            else { Receive-Said -Step $Step -Result $result -Thing $thing }
        }
        if ($hadFormer -and $null -eq $result.Detached) {
            $result.State = 'changed'
            Clear-FormerValue
        }
    }
    catch { Set-Failure -Step $Step -Result $result -Caught $_ -OtherwiseId 'ChangeFailed' }
    $result
}

function Assert-NothingAbove {
    # An undo goes the other way: what builds on a step goes before it, or the step stays and so do its notes.
    param($Step)
    $above = @($script:Run.Steps) + @(Get-ForgottenStep) |
        Where-Object { $script:Run.Unmet.ContainsKey($_.Name) -and @($_['Needs']) -contains $Step.Name }
    if ($above) {
        Stop-Step -Id 'NeedsStep' -Message "what builds on it was not taken back: $(@($above | ForEach-Object { $_.Name }) -join ', ')"
    }
}

function Read-Difference {
    param($Step)
    $seen = @{}
    foreach ($thing in Invoke-Block -Step $Step -Block 'Look') {
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
        Stop-Step -Id 'NeedsDrain' -Message "this would disturb a live node: $($rough.what -join '; ')"
    }
    $missing = @($Step['Secrets'] | Where-Object { $_ -and -not $script:Run.Secrets.ContainsKey($_) })
    if ($missing) {
        Stop-Step -Id 'SecretMissing' -Message "the change needs a secret that was not sent: $($missing -join ', ')"
    }
}

function New-RunEvent {
    $identity = Get-MachineIdentity
    New-EventLine -Fields @{
        event = 'run'; boot_id = $identity.BootId; smbios_uuid = $identity.Uuid; build = $identity.Build
        computer_name = $identity.Name; fence = $script:Run.Fence; node_ip = Get-NodeIp
    }
}

function New-StepEvent {
    param($Step, $Result, [Diagnostics.Stopwatch]$Watch)
    New-EventLine -Fields @{
        event = 'step'; step = $Step.Name; state = $Result.State; ms = [int]$Watch.ElapsedMilliseconds
        differences = [object[]]@($Result.Differences); problem = $Result.Problem
    }
}

function New-DetachedEvent {
    param($Run, [string]$Step)
    New-EventLine -Fields @{ event = 'detached'; id = $Run.id; step = $Step; timeout_s = $Run.timeout_s }
    New-EndEvent -Reason 'detached'
}

function New-EndEvent {
    param([string]$Reason, [string]$Message = '')
    New-EventLine -Fields @{ event = 'done'; reason = $Reason; message = $Message }
}

function New-EventLine {
    # ASCII only: no code page on the way can change it.
    param($Fields)
    $script:Run.Sequence++
    $all = [ordered]@{ v = 1; event = $Fields.event; seq = $script:Run.Sequence; run = $script:Run.Id }
    foreach ($name in $Fields.Keys | Sort-Object) { $all[$name] = $Fields[$name] }
    $line = ConvertTo-AsciiJson -Value $all
    if ($script:Run.Mode -ne 'Look') { Write-Journal -Line $line -Waiting $script:Run.Journal }
    $line
}

function ConvertTo-AsciiJson {
    param($Value)
    $json = ConvertTo-Json -InputObject $Value -Depth 8 -Compress
    [regex]::Replace($json, '[^\x20-\x7e]', { param($match) '\u{0:x4}' -f [int][char]$match.Value })
}
