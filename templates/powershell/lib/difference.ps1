# SUMMARY Builds the objects in which a step reports differences, problems and restarts.

function New-Difference {
    # One thing that is not as wanted, as an object for Read-Difference. Key names it for code and is unique within a step
    # (`service:state`); What, Is and Want are for people and never decide anything. Unknown: what is wanted cannot be
    # known before the join. Reboot, Disrupts (the network for a moment), Disturbs (running pods) say what correcting it
    # costs; Policy: an administrator's policy holds it, so it is reported and not changed. Texts: a file before (Was) and after (Will).
    param(
        [string]$What, [string]$Key = $What, [object]$Is, [object]$Want,
        [switch]$Unknown, [switch]$Reboot, [switch]$Disrupts, [switch]$Disturbs, [switch]$Policy, [hashtable]$Texts = @{}
    )
    if ($Unknown -and $null -eq $Want) { $Want = Get-UnknownText }
    $difference = [pscustomobject]@{
        kind = 'difference'; key = $Key; what = $What; is = ConvertTo-Shown -Value $Is; want = ConvertTo-Shown -Value $Want
        unknown = [bool]$Unknown; reboot = [bool]$Reboot; disrupts = [bool]$Disrupts; disturbs = [bool]$Disturbs; policy = [bool]$Policy
    }
    foreach ($name in @('was', 'will')) {
        if ($Texts.ContainsKey($name)) { $difference | Add-Member -NotePropertyName $name -NotePropertyValue $Texts[$name] }
    }
    $difference
}

function Get-UnknownText {
    # How a value is shown that exists only after the join.
    '(known after join)'
}

function ConvertTo-Shown {
    # A value as the text that people read: a list with commas, true and false in lower case; $null stays $null.
    param([object]$Value)
    if ($null -eq $Value) { return $null }
    if ($Value -is [bool]) { return ([string]$Value).ToLowerInvariant() }
    if ($Value -is [array]) { return ($Value -join ', ') }
    [string]$Value
}

function Compare-Wanted {
    # A difference (see New-Difference) where Is and Want are not shown alike; nothing where they are.
    param(
        [string]$What, [string]$Key = $What, [object]$Is, [object]$Want, [switch]$IgnoreCase,
        [switch]$Unknown, [switch]$Reboot, [switch]$Disrupts, [switch]$Disturbs
    )
    $isText = ConvertTo-Shown -Value $Is
    $wantText = ConvertTo-Shown -Value $Want
    # By ordinal: -ceq overlooks characters without width, such as U+200B, U+FEFF and NUL.
    $rule = if ($IgnoreCase) { [StringComparison]::OrdinalIgnoreCase } else { [StringComparison]::Ordinal }
    $same = ($null -eq $isText) -eq ($null -eq $wantText) -and [string]::Equals("$isText", "$wantText", $rule)
    if ($same -and -not $Unknown) { return }
    New-Difference -Key $Key -What $What -Is $isText -Want $wantText -Unknown:$Unknown -Reboot:$Reboot -Disrupts:$Disrupts -Disturbs:$Disturbs
}

function New-Reboot {
    # What a change emits when it takes effect only after a restart of the machine.
    [pscustomobject]@{ kind = 'reboot' }
}

function Stop-Step {
    # Ends the step with an error: an id, a message, and a hint where a step of the profile's own has one (the
    # controller has the hints for winboot's ids). The prefix of the error's id sets these errors apart from all others.
    param([string]$Id, [string]$Message, [string]$Hint = '')
    throw [Management.Automation.ErrorRecord]::new([InvalidOperationException]::new($Message), "winboot.$Id", 'InvalidOperation', $Hint)
}

function ConvertTo-Problem {
    # An error as the problem of a step: id, message, hint, and the position where winboot does not define it.
    param([object]$Caught, [string]$OtherwiseId)
    $problem = @{ id = $OtherwiseId; message = $Caught.Exception.GetBaseException().Message; hint = ''; position = '' }
    $at = $Caught.InvocationInfo
    if ($Caught.FullyQualifiedErrorId -like 'winboot.*') {
        $problem.id = $Caught.FullyQualifiedErrorId.Substring(8)
        $problem.hint = [string]$Caught.TargetObject
    }
    elseif ($at) { $problem.position = "line $($at.ScriptLineNumber), column $($at.OffsetInLine)" }
    $problem
}

function Wait-Until {
    # Runs Test every Pause milliseconds until it returns true or the seconds are over; returns which of the two.
    param([scriptblock]$Test, [int]$Seconds, [int]$Pause = 1000)
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    while (-not (& $Test)) {
        if ([DateTime]::UtcNow -gt $until) { return $false }
        Start-Sleep -Milliseconds $Pause
    }
    $true
}
