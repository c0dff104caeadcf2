# SUMMARY Runs the steps of a script in order and writes their events.

function New-Run {
    # What this run is and knows, as the table that all functions share as $script:Run. Facts is what the controller
    # found out; what it did not send is as in the table below.
    param([string]$Mode, [string]$Id, [hashtable[]]$Steps, [hashtable]$Secrets, [hashtable]$Facts, [string]$Text, [hashtable]$Plan)
    $known = @{
        NodeIsLive = $false; Drained = $false; Drains = $false; TakeOver = $false; Adopt = $false; Purge = $false
        Holder = ''; Detached = ''; Purpose = ''; Steps = ''; Addresses = @(); NoRestart = $false; Plan = ''; Unnoted = @()
        NodeIsReady = $false; Versions = ''; Now = $null; Alone = $false; PodImages = @()
    }
    foreach ($name in $Facts.Keys) { $known[$name] = $Facts[$name] }
    @{
        Mode = $Mode; Id = $Id; Plan = $Plan; Steps = $Steps; Secrets = $Secrets; Facts = $known
        # A signed copy is the same text with a comment behind it.
        Text = ($Text -csplit "`r`n# SIG # Begin signature block`r`n")[0]
        # Steps not to build upon, with the id of the reason.
        Unmet = @{}
        # Whether all chosen steps were gone through, and nothing waits for a restart.
        Complete = $false
        # Answers that cost something: read once, forgotten after each change.
        Cache = @{}
        # How far this machine's clock is ahead of the cluster's, in seconds; $null where the controller sent no time.
        ClockOffset = Get-ClockOffset -Now $known.Now
        Step = ''; Fence = 0; Sequence = 0
        # Lines of the journal that could not be written yet.
        Journal = [Collections.Generic.List[string]]::new()
    }
}

function Get-ChosenStep {
    # All steps, or those that the controller names (--only, --skip). The text has all of them whatever is chosen,
    # because this machine keeps it for its boot task. Nothing where none of these is chosen.
    $chosen = [string]$script:Run.Facts.Steps
    $script:Run.Steps | Where-Object { $chosen -eq '' -or $chosen.Split(',') -contains $_.Name }
}

function Invoke-Block {
    # Runs one block of a step after its Values; returns what the block returns, nothing where the step has no such
    # block.
    param([hashtable]$Step, [string]$Block)
    $script:Run.Step = $Step.Name
    if (-not $Step.ContainsKey($Block)) { return }
    # Values sets variables, whatever their names: in a scope without the typed ones of this function, and what runs after it
    # is kept where they cannot reach.
    $script:Run.Prepare = $Step.Values
    $script:Run.Action = $Step[$Block]
    & {
        . $script:Run.Prepare
        & $script:Run.Action
    }
}

function Invoke-Look {
    # What is fine goes out in one batch at the end: the fewest messages.
    $quiet = [Collections.Generic.List[string]]::new()
    try {
        Assert-StateFolder
        $script:Run.Fence = Get-Fence
        Update-LiveFact
    }
    catch { New-FailedEnd -Caught $_; return }
    New-RunEvent
    $forgotten = @(if ($script:Run.Plan.Modes -contains 'Undo') { Get-ForgottenStep })
    foreach ($step in @(Get-ChosenStep) + $forgotten) {
        $watch = [Diagnostics.Stopwatch]::StartNew()
        $result = Get-LookResult -Step $step
        $line = New-StepEvent -Step $step -Result $result -Watch $watch
        if ($result.State -eq 'ok') { $quiet.Add($line) } else { $line }
    }
    $quiet.Add((New-EndEvent -Reason 'complete'))
    $quiet.ToArray()
}

function Invoke-Locked {
    # Runs Work under the machine's mutex and returns the lines of its events. What fails outside of a step is reported as
    # the end of the run.
    param([scriptblock]$Work)
    $lock = $null
    try {
        # Taking the mutex would supersede it.
        $running = Get-RunningDetached
        if (-not $running) { $lock = Enter-Run }
        New-RunEvent
        if ($running) { New-DetachedEvent -Run $running -Step $running.step; return }
        if (-not $lock) { New-EndEvent -Reason 'held' -Message (Get-HolderText); return }
        if ($script:Run.Mode -eq 'Change') { Update-LiveFact; Start-VersionChange }
        & $Work
        if ($script:Run.Mode -eq 'Change' -and $script:Run.Complete -and $script:Run.Unmet.Count -eq 0) {
            Complete-VersionChange
            Clear-OldVersion
        }
        Clear-OldFile
        Save-Journal -Waiting $script:Run.Journal -Tries 6
    }
    catch { New-FailedEnd -Caught $_ }
    finally { if ($lock) { Exit-Run -Lock $lock } }
}

function New-FailedEnd {
    # The last event of a run that could not begin or go on, with the reason.
    param([Management.Automation.ErrorRecord]$Caught)
    $script:Run.Cache = @{}
    if ($script:Run.Sequence -eq 0) { New-RunEvent }
    $problem = ConvertTo-Problem -Caught $Caught -OtherwiseId 'RunFailed'
    New-EventLine -Fields @{ event = 'done'; reason = 'failed'; message = ''; problem = $problem }
}

function Invoke-Step {
    # Runs Drive for one step after the other and returns the lines of their events. At the end it asks for one restart
    # for all steps that need it. A run that took the machine over meanwhile ends this one before its next step.
    param([hashtable[]]$Steps, [scriptblock]$Drive)
    $rebooting = @()
    foreach ($step in $Steps) {
        if (-not (Test-Fence)) { New-EndEvent -Reason 'superseded' -Message (Get-HolderText); return }
        $watch = [Diagnostics.Stopwatch]::StartNew()
        $result = & $Drive $step
        if ($result.Detached) { New-DetachedEvent -Run $result.Detached -Step $step.Name; return }
        if ($result.Reboot) { $rebooting += $step.Name }
        New-StepEvent -Step $step -Result $result -Watch $watch
    }
    if (-not $rebooting) {
        $script:Run.Complete = $true
        New-EndEvent -Reason 'complete'
        return
    }
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
    # Steps that an older profile had and that left former values here. Returns nothing if none exist.
    $known = @($script:Run.Steps | ForEach-Object { $_.Name })
    $folder = Get-StatePath -Name 'former'
    if (-not [IO.Directory]::Exists($folder)) { return }
    foreach ($path in [IO.Directory]::GetFiles($folder, '*.jsonl')) {
        $name = [IO.Path]::GetFileNameWithoutExtension($path)
        if ($known -notcontains $name) {
            @{ Name = $name; Needs = @('directories'); Values = {}; Look = { Get-RemovalDifference }; Undo = { Restore-FormerValue } }
        }
    }
}

function New-Result {
    # The result of a step before anything has happened, as a table.
    @{ State = 'ok'; Differences = @(); Problem = $null; Reboot = $false; Detached = $null }
}

function Set-Failure {
    # Writes an error into the result of a step, and remembers that nothing may build on this step. Returns nothing.
    # Blocked is what was not tried: it waits for another step, a drain or a restart.
    param([hashtable]$Step, [hashtable]$Result, [Management.Automation.ErrorRecord]$Caught, [string]$OtherwiseId)
    $Result.Problem = ConvertTo-Problem -Caught $Caught -OtherwiseId $OtherwiseId
    $Result.State = 'failed'
    if (@('NeedsStep', 'NeedsDrain', 'NeedsRestart', 'PendingReboot') -contains $Result.Problem.id) { $Result.State = 'blocked' }
    $script:Run.Unmet[$Step.Name] = $Result.Problem.id
}

function Get-LookResult {
    # The result of looking at a step, as a table: ok, would-change, failed or blocked.
    param([hashtable]$Step)
    $result = New-Result
    try {
        Assert-Dependency -Step $Step
        $result.Differences = @(Read-Difference -Step $Step) + @(Get-DoubtNotice)
        # What a Group Policy sets is reported; it is not ours to change.
        if (@($result.Differences | Where-Object { -not $_.policy }).Count -gt 0) { $result.State = 'would-change' }
    }
    catch { Set-Failure -Step $Step -Result $result -Caught $_ -OtherwiseId 'LookFailed' }
    $result
}

function Assert-Dependency {
    # Stops a step that needs one which failed or waits for a restart; returns nothing otherwise.
    param([hashtable]$Step)
    $unmet = @($Step['Needs'] | Where-Object { $_ -and $script:Run.Unmet.ContainsKey($_) })
    if (-not $unmet) { return }
    $names = $unmet -join ', '
    if (@($unmet | Where-Object { $script:Run.Unmet[$_] -ne 'PendingReboot' }).Count -gt 0) {
        Stop-Step -Id 'NeedsStep' -Message "it builds on a step that did not succeed: $names"
    }
    Stop-Step -Id 'PendingReboot' -Message "it continues after the restart of the machine; it builds on $names"
}

function Get-ChangeResult {
    # The result of changing a step where its look finds a difference, as a table; where it finds none, the result of
    # the look.
    param([hashtable]$Step)
    $result = Get-LookResult -Step $Step
    if ($result.State -eq 'ok' -and $Step.ContainsKey('Detached')) {
        [void]@(Read-UnreportedRun -Step $Step.Name -Purpose @('Change', 'Undo'))
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
    # Runs a step's change and looks again: only a second look that finds nothing makes the result `changed`. Returns
    # nothing.
    param([hashtable]$Step, [hashtable]$Result)
    $said = @(Invoke-Block -Step $Step -Block 'Change')
    $script:Run.Cache = @{}
    foreach ($thing in $said) { Save-StepOutput -Step $Step -Result $Result -Thing $thing }
    if ($Result.Detached) { return }
    # What takes effect with the restart still differs before it.
    $left = @(Read-Difference -Step $Step | Where-Object { -not $_.policy -and -not ($Result.Reboot -and $_.reboot) })
    if ($left) { Stop-Step -Id 'StillDifferent' -Message "after the change this is still different: $($left.what -join '; ')" }
    $Result.State = 'changed'
}

function Save-StepOutput {
    # Writes what a change or an undo emitted into the result: a wanted restart or a detached run. Anything else is an
    # error of the step. Returns nothing.
    param([hashtable]$Step, [hashtable]$Result, [object]$Thing)
    $kind = ''
    if ($Thing -is [Management.Automation.PSCustomObject]) { $kind = $Thing.kind }
    switch ($kind) {
        'reboot' { $Result.Reboot = $true }
        'detached' { $Result.Detached = $Thing }
        default { throw "the step $($Step.Name) emitted something it must not: $Thing" }
    }
}

function Get-UndoResult {
    # The result of putting back what a step noted, as a table: changed where there were notes, ok where there were
    # none. The notes go last, so that an undo that is cut off is done again.
    param([hashtable]$Step)
    $result = New-Result
    try {
        $script:Run.Step = $Step.Name
        Assert-NothingAbove -Step $Step
        $hadFormer = Test-FormerValue
        # What was shown, and nothing that has come to look like it since: an undo puts back things that carry our names.
        $shown = @($script:Run.Facts.Unnoted)
        $unnoted = @(if ($shown.Count -gt 0) { Get-UnnotedThing | Where-Object { $shown -contains "$($_.kind):$($_.key)" } })
        foreach ($thing in Invoke-Block -Step $Step -Block 'Undo') {
            # What cannot be as it was.
            if ($thing -is [Management.Automation.PSCustomObject] -and $thing.kind -eq 'difference') { $result.Differences += $thing }
            else { Save-StepOutput -Step $Step -Result $result -Thing $thing }
        }
        if ($null -eq $result.Detached) {
            Remove-UnnotedThing -Things $unnoted
            if ($hadFormer -or $unnoted.Count -gt 0) { $result.State = 'changed' }
            Clear-FormerValue
        }
    }
    catch { Set-Failure -Step $Step -Result $result -Caught $_ -OtherwiseId 'ChangeFailed' }
    $result
}

function Assert-NothingAbove {
    # An undo goes the other way: what builds on a step goes before it, or the step stays and so do its notes.
    param([hashtable]$Step)
    $above = @($script:Run.Steps) + @(Get-ForgottenStep) |
        Where-Object { $script:Run.Unmet.ContainsKey($_.Name) -and @($_['Needs']) -contains $Step.Name }
    if ($above) {
        Stop-Step -Id 'NeedsStep' -Message "what builds on it was not taken back: $(@($above | ForEach-Object { $_.Name }) -join ', ')"
    }
}

function Read-Difference {
    # The differences that a step's look emits, one by one; nothing where it finds none. Anything else in its output is
    # an error: a line that a program printed must not pass for "nothing differs".
    param([hashtable]$Step)
    $seen = @{}
    foreach ($thing in Invoke-Block -Step $Step -Block 'Look') {
        if ($thing -isnot [Management.Automation.PSCustomObject] -or $thing.kind -ne 'difference') {
            throw "the look of step $($Step.Name) emitted something that is not a difference: $thing"
        }
        if ($seen.ContainsKey($thing.key)) { throw "the look of step $($Step.Name) names two differences alike: $($thing.key)" }
        $seen[$thing.key] = $true
        $thing
    }
}

function Assert-Allowed {
    # Stops a change that would disturb the pods of a live node that is not drained, or that lacks a secret; returns
    # nothing otherwise.
    param([hashtable]$Step, [object[]]$Differences)
    $facts = $script:Run.Facts
    $rough = @($Differences | Where-Object { -not $_.policy -and ($_.reboot -or $_.disrupts -or $_.disturbs) })
    if ($facts.NodeIsLive -and -not $facts.Drained -and $rough.Count -gt 0) {
        Stop-Step -Id 'NeedsDrain' -Message "this would disturb a live node: $($rough.what -join '; ')"
    }
    $restarting = @($Differences | Where-Object { $_.reboot -and -not $_.policy })
    if ($facts.NoRestart -and $restarting.Count -gt 0) {
        Stop-Step -Id 'NeedsRestart' -Message "this needs a restart of the machine, which --no-restart forbids: $($restarting.what -join '; ')"
    }
    $missing = @($Step['Secrets'] | Where-Object { $_ -and -not $script:Run.Secrets.ContainsKey($_) })
    if ($missing) {
        Stop-Step -Id 'SecretMissing' -Message "the change needs a secret that was not sent: $($missing -join ', ')"
    }
}

function New-RunEvent {
    # The line of the first event: which machine this is and which boot of it; what runs, and for which owner.
    $identity = Get-MachineIdentity
    # A run that fails has to say so, too. What cannot be read here ends a change before its first step (Start-VersionChange).
    $versions = try { Read-VersionNote } catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] { $null }
    $image = try { Read-ImageNote } catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] { $null }
    New-EventLine -Fields @{
        event = 'run'; boot_id = $identity.BootId; smbios_uuid = $identity.Uuid; build = $identity.Build
        computer_name = $identity.Name; fence = $script:Run.Fence; node_ip = Get-NodeIp
        winboot = $script:Run.Plan.Winboot; digest = $script:Run.Plan.Digest; library = $script:Run.Plan.Library
        script = Get-TextHash -Text $script:Run.Text; by = $script:Run.Facts.Holder; plan = $script:Run.Facts.Plan
        versions = $versions; image = $image
    }
}

function New-StepEvent {
    # The line of a step's event, with its differences and its problem.
    param([hashtable]$Step, [hashtable]$Result, [Diagnostics.Stopwatch]$Watch)
    New-EventLine -Fields @{
        event = 'step'; step = $Step.Name; state = $Result.State; ms = [int]$Watch.ElapsedMilliseconds
        differences = [object[]]@($Result.Differences); problem = $Result.Problem
    }
}

function New-DetachedEvent {
    # The two lines that end this session while a detached run continues.
    param([object]$Run, [string]$Step)
    New-EventLine -Fields @{ event = 'detached'; id = $Run.id; step = $Step; timeout_s = $Run.timeout_s }
    New-EndEvent -Reason 'detached'
}

function New-EndEvent {
    # The line of the last event, with the reason why this run ends.
    param([string]$Reason, [string]$Message = '')
    New-EventLine -Fields @{ event = 'done'; reason = $Reason; message = $Message }
}

function New-EventLine {
    # An event as one line of JSON, which is also kept in the journal unless this is a look.
    # ASCII only: no code page on the way can change it.
    param([hashtable]$Fields)
    $script:Run.Sequence++
    $all = [ordered]@{ v = 1; event = $Fields.event; seq = $script:Run.Sequence; run = $script:Run.Id }
    foreach ($name in $Fields.Keys | Sort-Object) { $all[$name] = $Fields[$name] }
    $line = ConvertTo-AsciiJson -Value $all
    if ($script:Run.Mode -ne 'Look') { Write-Journal -Line $line -Waiting $script:Run.Journal }
    $line
}

function ConvertTo-AsciiJson {
    # A value as JSON on one line in which every character beyond ASCII is escaped: no code page on the way can change
    # it.
    param([object]$Value)
    $json = ConvertTo-Json -InputObject $Value -Depth 8 -Compress
    [regex]::Replace($json, '[^\x20-\x7e]', { param($match) '\u{0:x4}' -f [int][char]$match.Value })
}
