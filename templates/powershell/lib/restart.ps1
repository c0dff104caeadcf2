# SUMMARY Restarts the machine.

function Restart-Machine {
    # Restarts this machine in five seconds, so that this session ends first. Event 1074 of the system log carries the reason.
    param([string]$Reason)
    # shutdown.exe takes 512 characters; p:2:4 is planned, operating system, reconfiguration.
    if ($Reason.Length -gt 500) { $Reason = $Reason.Substring(0, 500) }
    $path = Get-SystemProgram -Name 'shutdown.exe'
    $ended = Invoke-Program -Path $path -Arguments @('/r', '/t', '5', '/f', '/d', 'p:2:4', '/c', $Reason)
    # ERROR_SHUTDOWN_IN_PROGRESS and ERROR_SHUTDOWN_IS_SCHEDULED of winerror.h: another program, such as Windows Update, was first.
    if (@(0, 1115, 1190) -contains $ended.ExitCode) { return }
    Stop-Step -Id 'ProgramFailed' -Message "$path ended with code $($ended.ExitCode): $("$($ended.ErrorOutput) $($ended.Output)".Trim())"
}
