# SUMMARY Compares, writes, starts, stops and restores Windows services.
# They are read from the registry and written by sc.exe: the control manager keeps its own copy.

function Get-ServicePath {
    # The registry key of a service, below HKEY_LOCAL_MACHINE.
    param([string]$Name)
    "SYSTEM\CurrentControlSet\Services\$Name"
}

function Get-ServiceDifference {
    # A difference for each part of a service that is not as Service wants it: its definition, what NSSM reads, and
    # whether it runs and runs with it. Nothing where all is right.
    param([hashtable]$Service)
    $name = $Service.name
    $flags = @{ Disrupts = (Test-RestartDisruption -Name $name); Disturbs = (Test-StopEndsPod -Name $name) }
    $is = Read-Service -Name $name
    $what = "service ${name}:"
    $unknown = $Service.unknown -contains 'command_line'
    $application = Read-ServiceParameter -Service $name -Name 'Application'
    $moves = Test-VersionSwitch -Is "$($is.command_line)|$application" -Want "$($Service.command_line)|$($Service.parameters['Application'])"
    if ($moves -and $null -ne $is.command_line) { $flags.Disturbs = $true }
    Compare-Wanted -Key 'service:command-line' -What "$what command line" -Is $is.command_line -Want $Service.command_line -Unknown:$unknown @flags
    Compare-Wanted -Key 'service:start' -What "$what start type" -Is $is.start -Want $Service.start
    Compare-Wanted -Key 'service:depends' -What "$what depends on" -Is $is.depends -Want $Service.depends -IgnoreCase
    Compare-Wanted -Key 'service:account' -What "$what account" -Is $is.account -Want 'LocalSystem' -IgnoreCase @flags
    $unknown = $Service.unknown -contains 'environment'
    Compare-Wanted -Key 'service:environment' -What "$what environment" -Is $is.environment -Want $Service.environment -Unknown:$unknown @flags
    Compare-Wanted -Key 'service:recovery' -What "$what recovery" -Is $is.recovery -Want (ConvertTo-Recovery -Service $Service)
    # 0: only after a crash. A kubelet that receives a stop may end with an error.
    if ($null -ne $is.recovery) {
        Compare-Wanted -Key 'service:recovery-after-error' -What "$what recovery after a stop with an error" -Is $is.failure_flag -Want 0
    }
    foreach ($key in $Service.parameters.Keys | Sort-Object) {
        $value = Read-ServiceParameter -Service $name -Name $key
        $unknown = $Service.unknown -contains $key
        Compare-Wanted -Key "service:parameter:$key" -What "$what $key" -Is $value -Want $Service.parameters[$key] -Unknown:$unknown @flags
    }
    if (-not (Test-NssmWanted -Service $Service) -and (Test-NssmService -Name $name)) {
        New-Difference -Key 'service:nssm' -What "$what values of NSSM" -Is 'present' -Want $null @flags
    }
    if (Test-RestartNeed -Name $name) {
        New-Difference -Key 'service:in-use' -What "$what configuration in use" -Is 'older' -Want 'current' @flags
    }
    Compare-Wanted -Key 'service:state' -What "$what state" -Is (Get-ServiceState -Name $name) -Want 'Running'
    $account = Get-ServiceWriter -Name $name
    if ($account) { New-Difference -Key 'service:writers' -What "$what other accounts that may change it" -Is $account -Want $null -Policy }
    $account = Get-ServiceKeyWriter -Name $name
    if ($account) { New-Difference -Key 'service:key-writers' -What "$what other accounts that may write its registry key" -Is $account -Want $null -Policy }
    $slow = Get-SlowStart -Name $name
    if ($slow) { New-Difference -Key 'service:slow-start' -What "$what time to start" -Is "$slow seconds" -Want 'at most 30 seconds' -Policy }
}

function Get-ServiceWriter {
    # The accounts, besides administrators, that may have SYSTEM run another program by this service: SIDs, or null. 2: change its settings,
    # 10000: delete, 40000: rules, 80000: owner, 40000000 and 10000000: the generic ones
    # (learn.microsoft.com/windows/win32/services/service-security-and-access-rights). Without a value of its own a service has
    # the rules that Windows gives all of them.
    param([string]$Name)
    # An owner that tightened the key further has left nothing for others to change.
    try { $bytes = Read-Registry -Path "$(Get-ServicePath -Name $Name)\Security" -Name 'Security' }
    catch [Security.SecurityException], [UnauthorizedAccessException] { return $null }
    if ($bytes -isnot [byte[]]) { return $null }
    $security = [Security.AccessControl.RawSecurityDescriptor]::new($bytes, 0)
    $found = @(
        if ($null -ne $security.Owner) { $security.Owner.Value }
        foreach ($rule in $security.DiscretionaryAcl) {
            if ($rule.AceType -eq 'AccessAllowed' -and ($rule.AccessMask -band 0x500d0002)) { $rule.SecurityIdentifier.Value }
        }
    )
    $strange = @($found | Where-Object { -not (Test-Trusted -Sid $_) } | Sort-Object -Unique)
    if ($strange) { $strange -join ', ' } else { $null }
}

function Get-ServiceKeyWriter {
    # The accounts, besides administrators, that may write the registry key of a service, that of its parameters, where NSSM reads what
    # to run, or that of its rules: SIDs, or null. The next start takes what is in them, whatever those rules say now.
    param([string]$Name)
    $path = Get-ServicePath -Name $Name
    $found = @(foreach ($key in @($path, "$path\Parameters", "$path\Security")) { Get-KeyWriter -Path $key })
    if ($found) { @($found | Sort-Object -Unique) -join ', ' } else { $null }
}

function Test-RestartDisruption {
    # Whether a restart of this service disturbs the network for a moment.
    # kube-proxy depends on the others: it stops with each of them, and programs all load balancers again when it starts.
    param([string]$Name)
    (Get-ServiceState -Name $Name) -eq 'Running' -and (Get-ServiceState -Name 'kube-proxy') -eq 'Running'
}

function Test-StopEndsPod {
    # Whether a stop of this service would end the pods of this machine.
    # NSSM stops a program by a Ctrl-C to every process on its console (kill_console of its process.cpp), and the shims of
    # containerd are on that console: with them all pods end, unless NSSM started containerd with a setting against it.
    # Of Docker every pod is a child.
    param([string]$Name)
    if ($Name -eq 'docker') { return (Get-ServiceState -Name $Name) -eq 'Running' -and [bool]$script:Node['docker'] }
    if ($Name -ne 'containerd' -or (Get-ServiceState -Name $Name) -ne 'Running' -or -not (Test-NssmService -Name $Name)) {
        return $false
    }
    1 -ne (Read-ServiceParameter -Service $Name -Name 'AppStopMethodSkip') -or (Test-RestartNeed -Name $Name)
}

function Read-Service {
    # The definition of a service as a table; every member is $null where there is no such service.
    param([string]$Name)
    $path = Get-ServicePath -Name $Name
    $is = @{
        command_line = $null; start = $null; depends = $null; account = $null; environment = $null; recovery = $null
        failure_flag = $null
    }
    if (-not (Test-RegistryKey -Path $path)) { return $is }
    $is.command_line = Read-Registry -Path $path -Name 'ImagePath'
    $start = Read-ServiceNumber -Path $path -Name 'Start'
    $is.start = $start
    if ($start -is [int]) { $is.start = @{ 0 = 'boot'; 1 = 'system'; 2 = 'auto'; 3 = 'demand'; 4 = 'disabled' }[$start] }
    if ($start -eq 2 -and 1 -eq (Read-ServiceNumber -Path $path -Name 'DelayedAutoStart')) { $is.start = 'delayed-auto' }
    $is.depends = @((Read-Registry -Path $path -Name 'DependOnService') | Where-Object { $_ })
    $is.account = Read-Registry -Path $path -Name 'ObjectName'
    $is.environment = @((Read-Registry -Path $path -Name 'Environment') | Where-Object { $_ })
    $is.recovery = ConvertFrom-FailureAction -Bytes (Read-Registry -Path $path -Name 'FailureActions')
    $is.failure_flag = Read-ServiceNumber -Path $path -Name 'FailureActionsOnNonCrashFailures'
    $is
}

function Read-ServiceNumber {
    # A number of a service's key, 0 where it is missing. Of a value of another kind, which the control manager does not
    # read, what it is: a text that is never as wanted.
    param([string]$Path, [string]$Name)
    $value = Read-Registry -Path $Path -Name $Name
    if ($null -eq $value) { return 0 }
    if ($value -is [int]) { return [int]$value }
    "$(ConvertTo-Shown -Value $value) (as $(Read-RegistryKind -Path $Path -Name $Name), not DWord)"
}

function ConvertFrom-FailureAction {
    # The recovery of a service as text: "restart/5000 restart/5000 reset=86400"; '' where it has none. The bytes are a
    # SERVICE_FAILURE_ACTIONS structure of winsvc.h.
    # Reset period, two unused, count, offset; then pairs of action (1: restart) and delay.
    param([object]$Bytes)
    if ($null -ne $Bytes -and ($Bytes -isnot [array] -or $Bytes -is [string[]])) { return "$(ConvertTo-Shown -Value $Bytes) (no Binary)" }
    $raw = [byte[]]@($Bytes)
    if ($raw.Length -lt 20) { return '' }
    # No more than there are bytes for, whatever the count says.
    $count = [Math]::Min([BitConverter]::ToInt32($raw, 12), [Math]::Floor(($raw.Length - 20) / 8))
    $actions = for ($index = 0; $index -lt $count; $index++) {
        $kind = [BitConverter]::ToInt32($raw, 20 + 8 * $index)
        if ($kind -eq 1) { $kind = 'restart' }
        "$kind/$([BitConverter]::ToInt32($raw, 24 + 8 * $index))"
    }
    "$($actions -join ' ') reset=$([BitConverter]::ToInt32($raw, 0))"
}

function ConvertTo-Recovery {
    # The wanted recovery as the text that ConvertFrom-FailureAction makes of the one in force.
    param([hashtable]$Service)
    "$(@($Service.restart_ms | ForEach-Object { "restart/$_" }) -join ' ') reset=$($Service.reset_s)"
}

function Get-ServiceState {
    # Running, Stopped and so on; nothing where there is no such service. Names of this enumeration, never localized text.
    param([string]$Name)
    $one = { Get-Service -Name $Name -ErrorAction SilentlyContinue }
    foreach ($found in Get-Fact -Fact 'Services' -Ask { Get-Service -ErrorAction SilentlyContinue } -Alone $one) {
        if ($found.Name -eq $Name) { return $found.Status.ToString() }
    }
}

function Set-ServiceDefinition {
    # Makes or corrects a service. Returns nothing. It is not started here: Start-CurrentService does that.
    param([hashtable]$Service)
    $name = $Service.name
    if ($Service.unknown) { Stop-Unknown }
    Save-FormerService -Name $name
    # These take effect without a restart of the service.
    $light = @('service:state', 'service:start', 'service:depends', 'service:recovery', 'service:recovery-after-error', 'service:writers', 'service:key-writers', 'service:slow-start')
    if (Get-ServiceDifference -Service $Service | Where-Object { $light -notcontains $_.key }) { Save-RestartNeed -Name $name }
    # When NSSM takes over, or no longer runs it, the old process would keep running.
    if ((Test-NssmWanted -Service $Service) -ne (Test-NssmService -Name $name)) { Stop-RunningService -Name $name }
    # The start type comes last: a service that is only half made must not start at a boot.
    $create = if (Test-RegistryKey -Path (Get-ServicePath -Name $name)) { @('config', $name) } else { @('create', $name, 'start=', 'demand') }
    $actions = @($Service.restart_ms | ForEach-Object { "restart/$_" }) -join '/'
    $depends = ConvertTo-DependList -Names $Service.depends
    Invoke-ServiceControl -Arguments ($create +
        @('binPath=', $Service.command_line, 'depend=', $depends, 'obj=', 'LocalSystem', 'DisplayName=', $Service.display))
    Invoke-ServiceControl -Arguments @('description', $name, $Service.description)
    Invoke-ServiceControl -Arguments @('failure', $name, 'reset=', $Service.reset_s, 'actions=', $actions)
    Invoke-ServiceControl -Arguments @('failureflag', $name, '0')
    Write-ServiceEnvironment -Name $name -Environment $Service.environment
    Set-ServiceParameter -Service $Service
    Invoke-ServiceControl -Arguments @('config', $name, 'start=', $Service.start)
}

function ConvertTo-DependList {
    # What sc.exe takes for the services that one depends on.
    # sc.exe clears the list at a lone slash.
    param([string[]]$Names)
    $list = @($Names | Where-Object { $_ }) -join '/'
    if ($list) { $list } else { '/' }
}

function Write-ServiceEnvironment {
    # Writes the environment of a service, one name=value a line; an empty list deletes it. Returns nothing.
    # Machine variables would be seen only after a reboot.
    param([string]$Name, [string[]]$Environment)
    $lines = @($Environment | Where-Object { $_ })
    if ($lines.Count -eq 0) { $lines = $null }
    Write-Registry -Path (Get-ServicePath -Name $Name) -Name 'Environment' -Value $lines -Kind 'MultiString'
}

function Invoke-ServiceControl {
    # Runs sc.exe, or stops the step with its exit code. Returns nothing. sc.exe is used because Set-Service of Windows
    # PowerShell 5.1 sets neither the program, nor what a service depends on, nor its recovery.
    param([string[]]$Arguments)
    $ended = Invoke-Program -Path (Get-SystemProgram -Name 'sc.exe') -Arguments $Arguments
    if ($ended.ExitCode -ne 0) {
        Stop-Step -Id 'ServiceControl' -Message "sc.exe $($Arguments[0]) $($Arguments[1]) ended with code $($ended.ExitCode)"
    }
}

function Save-RestartNeed {
    # Notes that a running service has to restart, with the boot it runs in. Returns nothing.
    # Noted before the first write: the run may die in between.
    param([string]$Name)
    if ((Get-ServiceState -Name $Name) -eq 'Running') {
        Write-StateJson -Name "restart-$Name.json" -Value @{ boot_id = (Get-MachineIdentity).BootId }
    }
}

function Test-RestartNeed {
    # Whether the service still runs with what it read before a change: noted, and not restarted since in this boot.
    param([string]$Name)
    $noted = Read-StateJson -Name "restart-$Name.json"
    $null -ne $noted -and $noted.boot_id -eq (Get-MachineIdentity).BootId
}

function Start-CurrentService {
    # Starts a service, or starts it again when what it was started with has changed since.
    param([string]$Name)
    $watch = [Diagnostics.Stopwatch]::StartNew()
    # NSSM calls paused what dies at once, and that cannot be started.
    if ((Test-RestartNeed -Name $Name) -or (Get-ServiceState -Name $Name) -eq 'Paused') { Stop-RunningService -Name $Name }
    if ((Get-ServiceState -Name $Name) -ne 'Running') {
        $doubt = Get-ServiceDoubt -Name $Name
        if ($doubt) { Stop-Step -Id 'NotOurs' -Message "service $Name is not started: $doubt" }
        $refused = @()
        Start-Service -Name $Name -ErrorAction SilentlyContinue -ErrorVariable refused
        if ($refused.Count -gt 0) {
            $why = $refused[0].Exception.GetBaseException().Message
            Stop-Step -Id 'ServiceState' -Message "service $Name does not start$(Get-ServiceEnd -Name $Name): $why"
        }
    }
    Wait-ServiceState -Name $Name -State 'Running' -Seconds 60
    Save-SlowStart -Name $Name -Seconds $watch.Elapsed.TotalSeconds
    Remove-File -Path (Get-StatePath -Name "restart-$Name.json")
}

function Get-ServiceDoubt {
    # Why a program that a service runs is not started (see Get-PathDoubt); nothing where all are believed.
    param([string]$Name)
    $line = [Environment]::ExpandEnvironmentVariables("$(Read-Registry -Path (Get-ServicePath -Name $Name) -Name 'ImagePath')")
    $program = [regex]::Match($line, '^\s*(?:"([^"]+)"|(\S+))')
    foreach ($path in @("$($program.Groups[1])$($program.Groups[2])", "$(Read-ServiceParameter -Service $Name -Name 'Application')")) {
        if ($path -match '^[A-Za-z]:\\') { Get-PathDoubt -Path $path -Program }
    }
}

function Save-SlowStart {
    # Notes a start that succeeded and took long, for the looks of this boot. Windows gives up on a service that does not
    # answer within 30 seconds (ServicesPipeTimeout), so the next start may fail.
    param([string]$Name, [int]$Seconds)
    if ($Seconds -le 30) { return }
    try { Write-StateJson -Name "slow-$Name.json" -Value @{ boot_id = (Get-MachineIdentity).BootId; seconds = $Seconds } -Tries 4 }
    # Not worth the failure of a start that succeeded.
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] { return }
}

function Get-SlowStart {
    # How many seconds the last slow start of a service took; nothing without one since the machine started.
    param([string]$Name)
    $noted = Read-StateJson -Name "slow-$Name.json"
    if ($null -ne $noted -and $noted.boot_id -eq (Get-MachineIdentity).BootId) { $noted.seconds }
}

function Wait-ServiceState {
    # Waits until a service is in that state.
    param([string]$Name, [string]$State, [int]$Seconds)
    if (Wait-Until -Test { (Get-ServiceState -Name $Name) -eq $State } -Seconds $Seconds -Pause 500) { return }
    $is = "$(Get-ServiceState -Name $Name)$(Get-ServiceEnd -Name $Name)"
    Stop-Step -Id 'ServiceState' -Message "service $Name is $is and not $State after $Seconds seconds"
}

function Get-ServiceEnd {
    # How a stopped service ended, for a message: " (exit code 1067)". Nothing of one that runs.
    param([string]$Name)
    $found = Get-CimInstance -ClassName 'Win32_Service' -Filter "Name='$Name'" -Property 'State', 'ExitCode', 'ServiceSpecificExitCode'
    if (-not $found -or $found.State -ne 'Stopped' -or $found.ExitCode -eq 0) { return '' }
    # 1066: the service has a code of its own.
    if ($found.ExitCode -eq 1066) { return " (its own exit code $($found.ServiceSpecificExitCode))" }
    " (exit code $($found.ExitCode))"
}

function Stop-RunningService {
    # Stops a service, after those that depend on it. Each has Seconds to stop and as many for its process to end.
    param([string]$Name, [int]$Seconds = 60)
    foreach ($service in Get-Service -Name $Name -ErrorAction SilentlyContinue) {
        foreach ($dependent in $service.DependentServices) { Stop-OneService -Name $dependent.Name -Seconds $Seconds }
        Stop-OneService -Name $Name -Seconds $Seconds
    }
}

function Stop-OneService {
    # Stops one service and waits for the end of its processes. Returns nothing. By sc.exe: Stop-Service would wait 30
    # seconds for a dependent and end by an unnamed time-out.
    param([string]$Name, [int]$Seconds)
    # One that is starting takes no stop (error 1061).
    [void](Wait-Until -Test { (Get-ServiceState -Name $Name) -ne 'StartPending' } -Seconds $Seconds -Pause 500)
    $stopped = { (Get-ServiceState -Name $Name) -eq 'Stopped' }
    if (& $stopped) { return }
    $tree = @(Get-ServiceProcess -Name $Name)
    $code = (Invoke-Program -Path (Get-SystemProgram -Name 'sc.exe') -Arguments @('stop', $Name)).ExitCode
    # 1061: it is stopping already; 1062: it has stopped meanwhile.
    $accepted = @(0, 1061, 1062) -contains $code
    if (-not $accepted -or -not (Wait-Until -Test $stopped -Seconds $Seconds -Pause 500)) {
        Stop-ProcessTree -Tree $tree
        if (-not (Wait-Until -Test $stopped -Seconds 10 -Pause 500)) {
            Stop-Step -Id 'ServiceState' -Message "service $Name is $(Get-ServiceState -Name $Name) and does not stop: sc.exe stop ended with code $code"
        }
    }
    # A process may outlive its service, and a program the process that started it: its port and its file stay in use.
    if (-not (Wait-Until -Test { -not (Get-RunningProcess -Tree $tree) } -Seconds $Seconds -Pause 300)) {
        Stop-ProcessTree -Tree $tree
    }
}

function Get-ServiceProcess {
    # The process of a service and all below it, as id and start time. Nothing of one that shares its process with others.
    param([string]$Name)
    if (([int](Read-Registry -Path (Get-ServicePath -Name $Name) -Name 'Type') -band 0x10) -eq 0) { return }
    $id = [int](Get-CimInstance -ClassName 'Win32_Service' -Filter "Name='$Name'" -Property 'ProcessId').ProcessId
    if ($id -ne 0) { Get-ProcessTree -Id $id }
}

function Save-FormerService {
    # Notes how a service was. Returns nothing. A step that has more to note takes this one first, and makes the service
    # last: as soon as that is there it may start at a boot, and then winboot cannot separate others' things from its own.
    param([string]$Name)
    Save-FormerValue -Kind 'Service' -Key $Name -Value (Read-FormerService -Name $Name)
}

function Read-FormerService {
    # How a service is, as far as winboot changes it: the definition, and as the registry has them the values that
    # sc.exe cannot write back (actions of recovery that run a command or restart the machine, texts from a resource).
    param([string]$Name)
    $path = Get-ServicePath -Name $Name
    $former = @{
        name = $Name; exists = (Test-RegistryKey -Path $path); parameters = @()
        running = (Get-ServiceState -Name $Name) -eq 'Running'
    }
    if ($former.exists) {
        $former.definition = Read-Service -Name $Name
        $former.display = Read-Registry -Path $path -Name 'DisplayName'
        $former.groups = @((Read-Registry -Path $path -Name 'DependOnGroup') | Where-Object { $_ })
        $former.values = @(foreach ($value in @('Description', 'FailureActions', 'FailureActionsOnNonCrashFailures', 'DelayedAutostart')) {
                Read-RegistryNote -Path $path -Name $value
            })
        $former.parameters = @(Read-ParameterTree -Path "$path\Parameters")
    }
    $former
}

function Test-AccountKnown {
    # Whether a service can have this account without a password: LocalSystem, or one of NT AUTHORITY and NT SERVICE.
    param([string]$Account)
    $Account -eq '' -or $Account -eq 'LocalSystem' -or $Account -like 'NT *'
}

function Restore-Service {
    # Puts a service back as it was, or deletes the one that was not there. Automatic comes last.
    param([object]$Former)
    Stop-RunningService -Name $Former.name
    $path = Get-ServicePath -Name $Former.name
    if (-not $Former.exists) {
        if (Test-RegistryKey -Path $path) { Invoke-ServiceControl -Arguments @('delete', $Former.name) }
        return
    }
    $was = $Former.definition
    $display = Read-Member -Object $Former -Names 'display'
    # A service without a display name is shown by its name.
    if (-not $display) { $display = $Former.name }
    # sc.exe knows a group by the plus before it.
    $depends = @($was.depends) + @((Read-Item -Object $Former -Name 'groups') | ForEach-Object { "+$_" })
    $depends = ConvertTo-DependList -Names $depends
    Invoke-ServiceControl -Arguments @('config', $Former.name, 'binPath=', $was.command_line, 'depend=', $depends, 'DisplayName=', $display)
    if ($was.account -like 'NT *') { Invoke-ServiceControl -Arguments @('config', $Former.name, 'obj=', $was.account) }
    # Windows forgot the password of any other account, and as LocalSystem its program would have rights that it never had.
    $known = Test-AccountKnown -Account "$($was.account)"
    Write-ServiceEnvironment -Name $Former.name -Environment $was.environment
    Restore-ServiceParameter -Former $Former
    Invoke-ServiceControl -Arguments @('config', $Former.name, 'start=', $(if ($known) { $was.start } else { 'disabled' }))
    # The control manager reads these from the registry when it needs them.
    foreach ($value in (Read-Item -Object $Former -Name 'values')) {
        Write-Registry -Path $value.path -Name $value.name -Value $value.value -Kind "$($value.kind)"
    }
    if (-not $known) {
        New-Difference -Key "service:account:$($Former.name)" -What "service $($Former.name): account" `
            -Is 'LocalSystem, and therefore disabled' -Want "$($was.account), with its password"
        return
    }
    # What another tool's services need is back when the last step is undone; that one starts them.
    if ($Former.running -and @(Get-AdoptedService) -notcontains $Former.name) { Start-CurrentService -Name $Former.name }
}
