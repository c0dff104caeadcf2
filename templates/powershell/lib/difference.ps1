function New-Difference {
    param([string]$What, $Is, $Want, [switch]$Reboot, [switch]$Disrupts, [switch]$Disturbs, [switch]$Policy)
    [pscustomobject]@{
        kind = 'difference'; what = $What; is = ConvertTo-Shown $Is; want = ConvertTo-Shown $Want
        reboot = [bool]$Reboot; disrupts = [bool]$Disrupts; disturbs = [bool]$Disturbs; policy = [bool]$Policy
    }
}

function ConvertTo-Shown {
    param($Value)
    if ($null -eq $Value) { return $null }
    if ($Value -is [bool]) { return ([string]$Value).ToLowerInvariant() }
    if ($Value -is [array]) { return ($Value -join ', ') }
    [string]$Value
}

function Compare-Wanted {
    param([string]$What, $Is, $Want, [switch]$IgnoreCase, [switch]$Reboot, [switch]$Disrupts, [switch]$Disturbs)
    $isText = ConvertTo-Shown $Is
    $wantText = ConvertTo-Shown $Want
    if ($isText -ceq $wantText -or ($IgnoreCase -and $isText -ieq $wantText)) { return }
    New-Difference -What $What -Is $isText -Want $wantText -Reboot:$Reboot -Disrupts:$Disrupts -Disturbs:$Disturbs
}

function New-Reboot {
    [pscustomobject]@{ kind = 'reboot' }
}

function Stop-Step {
    # The prefix tells ours from others. The controller has the hint for an id; a step of the profile's own sends one.
    param([string]$Id, [string]$Message, [string]$Hint = '')
    throw [Management.Automation.ErrorRecord]::new([InvalidOperationException]::new($Message), "winboot.$Id", 'InvalidOperation', $Hint)
}

function ConvertTo-Problem {
    param($Caught, [string]$OtherwiseId)
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
    param($Test, [int]$Seconds, [int]$Pause = 1000)
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    while (-not (& $Test)) {
        if ([DateTime]::UtcNow -gt $until) { return $false }
        Start-Sleep -Milliseconds $Pause
    }
    $true
}
