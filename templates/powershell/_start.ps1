#region Start: runs the steps of the node's part in the mode that the controller named.
# The text of this script, for the tasks that store it: what a loader says, the file that a task runs, or what came over the wire.
$text = $Whole
if ($text -eq '') { $text = if ($PSCommandPath) { [IO.File]::ReadAllText($PSCommandPath) } else { [string]$MyInvocation.MyCommand.ScriptBlock } }
if ($Detached -ne '') { $Facts.Detached = $Detached }
if ($plan.Modes -cnotcontains $Mode) { throw "this script has no mode $Mode" }
$script:Run = New-Run -Mode $Mode -Id $RunId -Steps $steps -Secrets $Secrets -Facts $Facts -Text $text -Plan $plan

switch ($Mode) {
    'Look' { Invoke-Look }
    'Change' { Invoke-Locked -Work { Invoke-Step -Steps @(Get-ChosenStep) -Drive { param($Step) Get-ChangeResult -Step $Step } } }
    'Undo' { Invoke-Locked -Work { Invoke-Undo } }
    'Boot' { Invoke-Boot }
    'Guard' { Invoke-Guard }
    'Detached' { Invoke-Detached }
    'Rescue' { Invoke-Detached -Rescue }
}
#endregion
