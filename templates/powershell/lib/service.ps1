# Read from the registry, written by sc.exe: the control manager keeps its own copy.

function Get-ServicePath {
    param([string]$Name)
    "SYSTEM\CurrentControlSet\Services\$Name"
}

function Get-ServiceDifference {
    param($Service)
    $name = $Service.name
    $flags = @{ Disrupts = (Test-RestartDisruption $name) }
    $is = Read-Service $name
    $what = "service ${name}:"
    Compare-Wanted -Key 'service:command-line' -What "$what command line" -Is $is.command_line -Want $Service.command_line -Unknown:($Service.unknown -contains 'command_line') @flags
    Compare-Wanted -Key 'service:start' -What "$what start type" -Is $is.start -Want $Service.start
    Compare-Wanted -Key 'service:depends' -What "$what depends on" -Is $is.depends -Want $Service.depends -IgnoreCase
    Compare-Wanted -Key 'service:account' -What "$what account" -Is $is.account -Want 'LocalSystem' -IgnoreCase @flags
    Compare-Wanted -Key 'service:environment' -What "$what environment" -Is $is.environment -Want $Service.environment -Unknown:($Service.unknown -contains 'environment') @flags
    Compare-Wanted -Key 'service:recovery' -What "$what recovery" -Is $is.recovery -Want (ConvertTo-Recovery $Service)
    # 0: only after a crash. A kubelet that is told to stop may end with an error.
    if ($null -ne $is.recovery) { Compare-Wanted -Key 'service:recovery-after-error' -What "$what recovery after a stop with an error" -Is $is.failure_flag -Want 0 }
    foreach ($key in $Service.parameters.Keys | Sort-Object) {
        Compare-Wanted -Key "service:parameter:$key" -What "$what $key" -Is (Read-ServiceParameter $name $key) -Want $Service.parameters[$key] `
            -Unknown:($Service.unknown -contains $key) @flags
    }
    if (-not (Test-NssmWanted $Service) -and (Test-NssmService $name)) { New-Difference -Key 'service:nssm' -What "$what values of NSSM" -Is 'present' -Want $null @flags }
    if (Test-RestartNeed $name) { New-Difference -Key 'service:in-use' -What "$what configuration in use" -Is 'older' -Want 'current' @flags }
    Compare-Wanted -Key 'service:state' -What "$what state" -Is (Get-ServiceState $name) -Want 'Running'
}

function Test-RestartDisruption {
    # kube-proxy stops with every one of them, and makes all load balancers anew.
    param([string]$Name)
    (Get-ServiceState $Name) -eq 'Running' -and (Get-ServiceState 'kube-proxy') -eq 'Running'
}

function Read-Service {
    param([string]$Name)
    $path = Get-ServicePath $Name
    $is = @{ command_line = $null; start = $null; depends = $null; account = $null; environment = $null; recovery = $null; failure_flag = $null }
    if (-not (Test-RegistryKey $path)) { return $is }
    $is.command_line = Read-Registry $path 'ImagePath'
    $start = [int](Read-Registry $path 'Start')
    $is.start = @{ 0 = 'boot'; 1 = 'system'; 2 = 'auto'; 3 = 'demand'; 4 = 'disabled' }[$start]
    if ($start -eq 2 -and 1 -eq (Read-Registry $path 'DelayedAutoStart')) { $is.start = 'delayed-auto' }
    $is.depends = @((Read-Registry $path 'DependOnService') | Where-Object { $_ })
    $is.account = Read-Registry $path 'ObjectName'
    $is.environment = @((Read-Registry $path 'Environment') | Where-Object { $_ })
    $is.recovery = ConvertFrom-FailureAction (Read-Registry $path 'FailureActions')
    $is.failure_flag = [int](Read-Registry $path 'FailureActionsOnNonCrashFailures')
    $is
}

function ConvertFrom-FailureAction {
    # Reset period, two unused, count, offset; then pairs of action (1: restart) and delay.
    param($Bytes)
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
    param($Service)
    "$(@($Service.restart_ms | ForEach-Object { "restart/$_" }) -join ' ') reset=$($Service.reset_s)"
}

function Get-ServiceState {
    param([string]$Name)
    $found = @(Get-Service -Name $Name -ErrorAction SilentlyContinue)
    if ($found.Count -eq 1) { $found[0].Status.ToString() }
}

function Set-ServiceDefinition {
    param($Service)
    $name = $Service.name
    if ($Service.unknown) { Stop-Unknown }
    Save-FormerValue 'Service' $name (Read-FormerService $name)
    # These take effect without a restart of the service.
    $light = @('service:state', 'service:start', 'service:depends', 'service:recovery', 'service:recovery-after-error')
    if (Get-ServiceDifference $Service | Where-Object { $light -notcontains $_.key }) { Save-RestartNeed $name }
    # Else its process goes on.
    if ((Test-NssmWanted $Service) -ne (Test-NssmService $name)) { Stop-RunningService $name }
    $verb = if (Test-RegistryKey (Get-ServicePath $name)) { 'config' } else { 'create' }
    $actions = @($Service.restart_ms | ForEach-Object { "restart/$_" }) -join '/'
    Invoke-ServiceControl @($verb, $name, 'binPath=', $Service.command_line, 'start=', $Service.start,
        'depend=', (ConvertTo-DependList $Service.depends), 'obj=', 'LocalSystem', 'DisplayName=', $Service.display)
    Invoke-ServiceControl @('description', $name, $Service.description)
    Invoke-ServiceControl @('failure', $name, 'reset=', $Service.reset_s, 'actions=', $actions)
    Invoke-ServiceControl @('failureflag', $name, '0')
    Write-ServiceEnvironment $name $Service.environment
    Set-ServiceParameter $Service
}

function ConvertTo-DependList {
    # sc.exe clears the list at a lone slash.
    param($Names)
    $list = @($Names | Where-Object { $_ }) -join '/'
    if ($list) { $list } else { '/' }
}

function Write-ServiceEnvironment {
    # Machine variables would be seen only after a reboot.
    param([string]$Name, $Environment)
    $lines = @($Environment | Where-Object { $_ })
    if ($lines.Count -eq 0) { $lines = $null }
    Write-Registry (Get-ServicePath $Name) 'Environment' -Value $lines -Kind 'MultiString'
}

function Invoke-ServiceControl {
    param([string[]]$Arguments)
    $ended = Invoke-Program (Get-SystemProgram 'sc.exe') $Arguments
    if ($ended.ExitCode -ne 0) {
        Stop-Step 'ServiceControl' "sc.exe $($Arguments[0]) $($Arguments[1]) ended with code $($ended.ExitCode)"
    }
}

function Save-RestartNeed {
    # Noted before the first write: the run may die in between.
    param([string]$Name)
    if ((Get-ServiceState $Name) -eq 'Running') { Write-StateJson "restart-$Name.json" @{ boot_id = (Get-MachineIdentity).BootId } }
}

function Test-RestartNeed {
    param([string]$Name)
    $noted = Read-StateJson "restart-$Name.json"
    $null -ne $noted -and $noted.boot_id -eq (Get-MachineIdentity).BootId
}

function Start-CurrentService {
    param([string]$Name)
    # NSSM calls paused what dies at once, and that cannot be started.
    if ((Test-RestartNeed $Name) -or (Get-ServiceState $Name) -eq 'Paused') { Stop-RunningService $Name }
    if ((Get-ServiceState $Name) -ne 'Running') {
        $refused = @()
        Start-Service -Name $Name -ErrorAction SilentlyContinue -ErrorVariable refused
        if ($refused.Count -gt 0) { Stop-Step 'ServiceState' "service $Name does not start: $($refused[0].Exception.GetBaseException().Message)" }
    }
    Wait-ServiceState $Name 'Running' -Seconds 60
    Remove-File (Get-StatePath "restart-$Name.json")
}

function Wait-ServiceState {
    param([string]$Name, [string]$State, [int]$Seconds)
    if (Wait-Until { (Get-ServiceState $Name) -eq $State } -Seconds $Seconds -Pause 500) { return }
    Stop-Step 'ServiceState' "service $Name is $(Get-ServiceState $Name) and not $State after $Seconds seconds"
}

function Stop-RunningService {
    param([string]$Name, [int]$Seconds = 60)
    if (@('Running', 'Paused', 'StartPending') -notcontains (Get-ServiceState $Name)) { return }
    $process = [int](Get-CimInstance -ClassName 'Win32_Service' -Filter "Name='$Name'" -Property 'ProcessId').ProcessId
    Stop-Service -Name $Name -Force -NoWait
    Wait-ServiceState $Name 'Stopped' -Seconds $Seconds
    $gone = { $process -eq 0 -or $null -eq (Get-Process -Id $process -ErrorAction SilentlyContinue) }
    if (-not (Wait-Until $gone -Seconds $Seconds -Pause 300)) { Stop-Process -Id $process -Force }
}

function Read-FormerService {
    param([string]$Name)
    $path = Get-ServicePath $Name
    $former = @{ name = $Name; exists = (Test-RegistryKey $path); parameters = @(); running = (Get-ServiceState $Name) -eq 'Running' }
    if ($former.exists) {
        $former.definition = Read-Service $Name
        $former.display = Read-Registry $path 'DisplayName'
        $former.description = Read-Registry $path 'Description'
        $former.parameters = @(Read-ParameterTree "$path\Parameters")
    }
    $former
}

function Restore-Service {
    param([object]$Former)
    Stop-RunningService $Former.name
    $path = Get-ServicePath $Former.name
    if (-not $Former.exists) {
        if (Test-RegistryKey $path) { Invoke-ServiceControl @('delete', $Former.name) }
        return
    }
    $was = $Former.definition
    $display = Read-Member $Former 'display'
    # A service without a display name is shown by its name.
    if (-not $display) { $display = $Former.name }
    Invoke-ServiceControl @('config', $Former.name, 'binPath=', $was.command_line, 'start=', $was.start,
        'depend=', (ConvertTo-DependList $was.depends), 'DisplayName=', $display)
    Invoke-ServiceControl @('description', $Former.name, "$(Read-Member $Former 'description')")
    $actions = ''
    $reset = '0'
    # Kind 0 is "take no action", which sc.exe reads from an empty word: restart/15000//0. A command or a restart of
    # the machine (kinds 2 and 3) is not put back: what it ran and said was not noted.
    if ($was.recovery -match '^((?:(?:restart|0)/\d+ )+)reset=(-1|\d+)$') {
        $actions = ($Matches[1].Trim() -replace '(^| )0/', '$1/').Replace(' ', '/')
        $reset = $Matches[2].Replace('-1', 'INFINITE')
    }
    Invoke-ServiceControl @('failure', $Former.name, 'reset=', $reset, 'actions=', $actions)
    Invoke-ServiceControl @('failureflag', $Former.name, [string]$was.failure_flag)
    # Windows forgot the password of any other account.
    if ($was.account -like 'NT *') { Invoke-ServiceControl @('config', $Former.name, 'obj=', $was.account) }
    Write-ServiceEnvironment $Former.name $was.environment
    Restore-ServiceParameter $Former
    if ($Former.running) { Start-Service -Name $Former.name }
}
