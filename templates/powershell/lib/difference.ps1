# What a look, a change and a step that cannot go on have to say.

function New-Difference {
    # Null means: is, or shall be, absent.
    param(
        [Parameter(Mandatory = $true)][string]$What,
        [AllowNull()]$Is,
        [AllowNull()]$Want,
        [switch]$Reboot,
        [switch]$Disrupts,
        [switch]$Disturbs,
        [switch]$Policy
    )
    [pscustomobject]@{
        kind     = 'difference'
        what     = $What
        is       = ConvertTo-Shown $Is
        want     = ConvertTo-Shown $Want
        reboot   = [bool]$Reboot
        disrupts = [bool]$Disrupts
        disturbs = [bool]$Disturbs
        policy   = [bool]$Policy
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
    param(
        [Parameter(Mandatory = $true)][string]$What,
        [AllowNull()]$Is,
        [AllowNull()]$Want,
        [switch]$IgnoreCase,
        [switch]$Reboot,
        [switch]$Disrupts,
        [switch]$Disturbs
    )
    $isText = ConvertTo-Shown $Is
    $wantText = ConvertTo-Shown $Want
    if ($IgnoreCase) { $same = $isText -ieq $wantText } else { $same = $isText -ceq $wantText }
    if (-not $same) {
        New-Difference -What $What -Is $isText -Want $wantText -Reboot:$Reboot -Disrupts:$Disrupts -Disturbs:$Disturbs
    }
}

function New-Reboot {
    [pscustomobject]@{ kind = 'reboot' }
}

function Stop-Step {
    param(
        [Parameter(Mandatory = $true)][string]$Id,
        [Parameter(Mandatory = $true)][string]$Message,
        [string]$Hint = ''
    )
    # The hint travels as the target of the error record; the prefix tells our problems from all others.
    throw [Management.Automation.ErrorRecord]::new(
        [InvalidOperationException]::new($Message), ('winboot.' + $Id), 'InvalidOperation', $Hint)
}

function ConvertTo-Problem {
    param([Parameter(Mandatory = $true)]$Caught, [Parameter(Mandatory = $true)][string]$OtherwiseId)
    $id = $OtherwiseId
    $hint = ''
    if ($Caught.FullyQualifiedErrorId -like 'winboot.*') {
        $id = $Caught.FullyQualifiedErrorId.Substring(8)
        $hint = [string]$Caught.TargetObject
    }
    $position = ''
    if ($null -ne $Caught.InvocationInfo) {
        $position = 'line {0}, column {1}' -f $Caught.InvocationInfo.ScriptLineNumber, $Caught.InvocationInfo.OffsetInLine
    }
    # The reason is the innermost exception.
    @{ id = $id; message = $Caught.Exception.GetBaseException().Message; hint = $hint; position = $position }
}

function Wait-Until {
    param([int]$Seconds, [scriptblock]$Test, [int]$Pause = 1000)
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    while (-not (& $Test)) {
        if ([DateTime]::UtcNow -gt $until) { return $false }
        Start-Sleep -Milliseconds $Pause
    }
    $true
}
