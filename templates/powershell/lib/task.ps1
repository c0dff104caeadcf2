# SUMMARY Creates, compares and removes scheduled tasks of SYSTEM in the folder \winboot.
# A task runs a script in the private state folder.

function New-SystemTask {
    # A task that runs one of our scripts as SYSTEM: the object that Set-Task registers. Text is what the script holds.
    # Priority 7 is Windows' own default, below normal and with slow disk access; 4 is normal, for work that must not wait.
    param([string]$Path, [string]$Text, [string]$Arguments = '', [string]$Description, [int]$Seconds, [int]$Priority = 7, [object]$Trigger)
    $parts = @{
        Action      = New-ScheduledTaskAction -Execute (Get-SystemProgram -Name 'WindowsPowerShell\v1.0\powershell.exe') `
            -Argument (Get-TaskArgument -Path $Path -Text $Text -Arguments $Arguments)
        Principal   = New-ScheduledTaskPrincipal -UserId 'S-1-5-18' -LogonType ServiceAccount -RunLevel Highest
        Settings    = New-ScheduledTaskSettingsSet -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries -Priority $Priority `
            -ExecutionTimeLimit ([TimeSpan]::FromSeconds($Seconds))
        Description = $Description
    }
    if ($Trigger) { $parts.Trigger = $Trigger }
    $task = New-ScheduledTask @parts
    # No cmdlet has a parameter for it.
    $task.Author = 'winboot'
    $task
}

function Get-TaskArgument {
    # The arguments for powershell.exe. A user that opens the task can read what it runs, unless a policy lets no unsigned script
    # file run: then a loader goes into the task that runs the script only while it is the very text that was stored.
    param([string]$Path, [string]$Text, [string]$Arguments)
    $common = '-NoLogo -NoProfile -NonInteractive'
    if (-not (Test-SignaturePolicy)) { return "$common -File `"$Path`" $Arguments".TrimEnd() }
    $loader = New-ScriptLoader -Path $Path -Text $Text -Arguments $Arguments
    "$common -EncodedCommand $([Convert]::ToBase64String([Text.Encoding]::Unicode.GetBytes($loader)))"
}

function Test-SignaturePolicy {
    # Whether a task of SYSTEM is refused an unsigned script file: a Group Policy decides, then the machine's own setting.
    # The scopes of a session and of its user do not reach a task.
    $scopes = @('MachinePolicy', 'LocalMachine')
    foreach ($policy in Get-Fact -Fact 'Policies' -Ask { $scopes | ForEach-Object { "$(Get-ExecutionPolicy -Scope $_)" } }) {
        if ($policy -ne 'Undefined') { return @('AllSigned', 'Restricted') -contains $policy }
    }
    # Undefined everywhere means RemoteSigned on Windows Server, and a file that was written here is not remote.
    $false
}

function ConvertTo-ScriptFile {
    # The text of a script file: with a byte order mark where Windows PowerShell would else read it in the ANSI code page.
    param([string]$Text)
    if ($Text -match '[^\x00-\x7f]') { "$([char]0xfeff)$Text" } else { $Text }
}

function Get-FunctionText {
    # The text of functions of this library, for the script of a task that has no more of it, and no run.
    param([string[]]$Names)
    $texts = foreach ($name in $Names) { "function $name {`n$((Get-Command -Name $name -CommandType Function).ScriptBlock)`n}`n" }
    "`$script:Run = `$null`n$($texts -join '')"
}

function New-ScriptLoader {
    # Text that reads a script file, refuses it with exit code 65 when it no longer holds this Text, and runs it. 66: it
    # could not be read, for five seconds; a scanner may hold it.
    param([string]$Path, [string]$Text, [string]$Arguments)
    @(
        "`$ErrorActionPreference = 'Stop'"
        "`$bytes = `$null"
        "for (`$try = 1; `$null -eq `$bytes; `$try++) {"
        "    try { `$bytes = [IO.File]::ReadAllBytes('$($Path.Replace("'", "''"))') }"
        "    catch [IO.IOException], [UnauthorizedAccessException] { if (`$try -ge 10) { exit 66 }; Start-Sleep -Milliseconds 500 }"
        '}'
        '$hash = [BitConverter]::ToString([Security.Cryptography.SHA256]::Create().ComputeHash($bytes)).Replace(''-'', '''')'
        "if (`$hash -ne '$(Get-TextHash -Text (ConvertTo-ScriptFile -Text $Text))') { exit 65 }"
        "& ([scriptblock]::Create([Text.Encoding]::UTF8.GetString(`$bytes).TrimStart([char]0xfeff))) $Arguments"
    ) -join "`n"
}

function Get-TaskDifference {
    # How the registered task differs from the wanted one: command, account, triggers, priority, description, or that it is
    # disabled. The comparison of the script that it runs has checked its owner (see Get-PathDoubt).
    param([string]$Name, [object]$Task)
    $what = "task \winboot\${Name}:"
    $is = @{ Command = $null; Account = $null; Triggers = $null; Priority = $null; Description = $null }
    $own = Get-Fact -Fact 'Tasks' -Ask { Get-ScheduledTask -TaskPath '\winboot\' -ErrorAction SilentlyContinue }
    foreach ($found in $own | Where-Object { $_.TaskName -eq $Name }) {
        $is = @{
            Command     = Get-TaskCommand -Task $found
            Account     = Get-TaskAccount -Task $found
            Triggers    = Get-TaskTrigger -Task $found
            Priority    = $found.Settings.Priority
            Description = $found.Description
        }
        # Not its state: that of one that is disabled while it runs says Running (ITaskSettings::get_Enabled has both).
        if (-not $found.Settings.Enabled) {
            New-Difference -Key "task:${Name}:state" -What "$what state" -Is 'Disabled' -Want 'Ready'
        }
    }
    Compare-Wanted -Key "task:${Name}:command" -What "$what command" -Is $is.Command -Want (Get-TaskCommand -Task $Task)
    # A missing task is one difference.
    if ($null -eq $is.Command) { return }
    Compare-Wanted -Key "task:${Name}:account" -What "$what account" -Is $is.Account -Want (Get-TaskAccount -Task $Task)
    Compare-Wanted -Key "task:${Name}:triggers" -What "$what triggers" -Is $is.Triggers -Want (Get-TaskTrigger -Task $Task)
    Compare-Wanted -Key "task:${Name}:priority" -What "$what priority" -Is $is.Priority -Want $Task.Settings.Priority
    Compare-Wanted -Key "task:${Name}:description" -What "$what description" -Is $is.Description -Want $Task.Description
}

function Get-TaskCommand {
    # The command line of a task; of an encoded one, which says nothing to a reader, its hash.
    param([object]$Task)
    $action = @($Task.Actions)[0]
    $arguments = "$(Read-Member -Object $action -Names 'Arguments')"
    if ($arguments -match '(?i)-EncodedCommand') { $arguments = "sha256 $(Get-TextHash -Text $arguments)" }
    "$(Read-Member -Object $action -Names 'Execute') $arguments"
}

function Get-TaskAccount {
    # The account of a task, by SID, since names have other words in other languages, and with which of its rights.
    param([object]$Task)
    $account = "$(Read-Member -Object $Task -Names 'Principal', 'UserId')"
    if ($account -and $account -notlike 'S-1-*') {
        try { $account = [Security.Principal.NTAccount]::new($account).Translate([Security.Principal.SecurityIdentifier]).Value }
        # An account that is gone keeps its name.
        catch [Security.Principal.IdentityNotMappedException] { $account = "$account (unknown)" }
    }
    "$account $(Read-Member -Object $Task -Names 'Principal', 'RunLevel')"
}

function Get-TaskTrigger {
    # When a task starts: the kind of each trigger, how often it repeats, and whether it is off.
    param([object]$Task)
    $found = foreach ($trigger in (Read-Member -Object $Task -Names 'Triggers')) {
        if ($null -eq $trigger) { continue }
        $every = Read-Member -Object $trigger -Names 'Repetition', 'Interval'
        $kind = @($trigger.PSObject.TypeNames)[0] -replace '^.*MSFT_Task'
        "$kind$(if ($every) { " every $every" })$(if (-not $trigger.Enabled) { ' off' })"
    }
    @($found | Sort-Object) -join ', '
}

function Set-Task {
    # Registers the task; it replaces one of that name. One that runs as another account goes first: it may have rules by
    # which that account changes it.
    param([string]$Name, [object]$Task)
    foreach ($found in Get-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -ErrorAction SilentlyContinue) {
        if ((Get-TaskAccount -Task $found) -ne (Get-TaskAccount -Task $Task)) { Remove-Task -Name $Name }
    }
    [void](Register-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -InputObject $Task -Force)
}

function Remove-Task {
    # Removes the task if it is there.
    param([string]$Name)
    foreach ($found in Get-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -ErrorAction SilentlyContinue) {
        # A task that is unregistered continues to run. Those that never end are ended; others remove themselves.
        if (@('guard', 'events', 'first-boot') -contains $Name) { Stop-ScheduledTask -TaskName $Name -TaskPath '\winboot\' }
        Unregister-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -Confirm:$false
    }
}
