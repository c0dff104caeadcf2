# What a look, a change and a step that cannot go on have to say.

function New-Difference {
    # One thing that is not as the profile wants it. Null means: is, or shall be, absent.
    param(
        [Parameter(Mandatory = $true)][string]$What,
        [AllowNull()][object]$Is,
        [AllowNull()][object]$Want,
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
    # The text of a value in a difference: lists in one line, null stays null.
    param([AllowNull()][object]$Value)
    if ($null -eq $Value) { return $null }
    if ($Value -is [bool]) { return ([string]$Value).ToLowerInvariant() }
    if ($Value -is [array]) { return ($Value -join ', ') }
    [string]$Value
}

function Compare-Wanted {
    # Emits a difference when two values are not shown alike. Case counts unless -IgnoreCase.
    param(
        [Parameter(Mandatory = $true)][string]$What,
        [AllowNull()][object]$Is,
        [AllowNull()][object]$Want,
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
    # Emitted by a change that is complete only after a restart.
    [pscustomobject]@{ kind = 'reboot' }
}

function Stop-Step {
    # Ends the step with a problem that has a name, a cause and a next step.
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
    # What the controller is told about an error: our own name and hint where there is one.
    param([Parameter(Mandatory = $true)][object]$Caught, [Parameter(Mandatory = $true)][string]$OtherwiseId)
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
    # A failing .NET call is wrapped; the reason is the innermost exception.
    @{ id = $id; message = $Caught.Exception.GetBaseException().Message; hint = $hint; position = $position }
}
