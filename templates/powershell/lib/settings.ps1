# SUMMARY Compares and sets registry settings, page file, power plan and time source.

function Get-SettingDifference {
    # A difference for each registry value that is not as wanted. Registry values, each a hashtable: path, name, value,
    # kind, reboot, reason. What a Group Policy of the domain may write (below SOFTWARE\Policies) is its own on a domain
    # member: reported, never changed.
    param([hashtable[]]$Settings)
    foreach ($setting in $Settings) {
        $is = Read-SettingValue -Setting $setting
        $want = Get-WantedValue -Setting $setting
        if ((ConvertTo-Shown -Value $is) -ceq (ConvertTo-Shown -Value $want)) { continue }
        New-Difference -Key "registry:$($setting.path)\$($setting.name)" -What "registry HKLM\$($setting.path): $($setting.name)" -Is $is -Want $want `
            -Reboot:$setting.reboot -Policy:(Test-PolicyOwned -Path $setting.path)
    }
}

function Read-SettingValue {
    # The value of a setting as it is, with its kind where that is not the wanted one: a reader of a DWord takes no text for
    # it, and `reg add` writes a text unless a type is named. Returns nothing if none exists.
    param([hashtable]$Setting)
    $is = Read-Registry -Path $Setting.path -Name $Setting.name
    $kind = Read-RegistryKind -Path $Setting.path -Name $Setting.name
    if ($null -eq $is -or $kind -eq $Setting.kind) { return $is }
    "$(ConvertTo-Shown -Value $is) (as $kind, not $($Setting.kind))"
}

function Get-WantedValue {
    # The value of a setting in the form in which the registry gives it back.
    param([hashtable]$Setting)
    if ($Setting.kind -eq 'DWord') { ConvertTo-SignedNumber -Value $Setting.value } else { $Setting.value }
}

function Test-PolicyOwned {
    # Whether a Group Policy of the domain may write this key.
    param([string]$Path)
    $Path -like 'SOFTWARE\Policies\*' -and (Get-MachineIdentity).Domain
}

function Set-Setting {
    # Writes the registry values that differ, and asks for a restart where one of them needs it.
    param([hashtable[]]$Settings)
    $reboot = $false
    foreach ($setting in $Settings) {
        $is = Read-SettingValue -Setting $setting
        if ((ConvertTo-Shown -Value $is) -ceq (ConvertTo-Shown -Value (Get-WantedValue -Setting $setting)) -or (Test-PolicyOwned -Path $setting.path)) {
            continue
        }
        Set-RegistryValue -Path $setting.path -Name $setting.name -Value $setting.value -Kind $setting.kind
        if ($setting.reboot) { $reboot = $true }
    }
    if ($reboot) { New-Reboot }
}

function Get-PageFileDifference {
    # A difference where the page file is not as wanted. Without any, memory runs out in a crash: Windows has no
    # out-of-memory killer.
    param([object]$MiB)
    $is = ConvertTo-Shown -Value (Read-Registry -Path 'SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management' -Name 'PagingFiles')
    if ($MiB -isnot [string]) {
        Compare-Wanted -Key 'page-file' -What 'page file' -Is $is -Want "C:\pagefile.sys $MiB $MiB" -IgnoreCase -Reboot
    }
    elseif (-not $is) { New-Difference -Key 'page-file' -What 'page file' -Is 'none' -Want '?:\pagefile.sys' -Reboot }
}

function Set-PageFile {
    # Sets the page file and asks for the restart.
    param([object]$MiB)
    if (-not (Get-PageFileDifference -MiB $MiB)) { return }
    $value = if ($MiB -is [string]) { '?:\pagefile.sys' } else { "C:\pagefile.sys $MiB $MiB" }
    Set-RegistryValue -Path 'SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management' -Name 'PagingFiles' -Value @($value) -Kind 'MultiString'
    New-Reboot
}

function Get-PowerPlan {
    # The id of the power plan in use. Nothing where none was ever chosen.
    Read-Registry -Path 'SYSTEM\CurrentControlSet\Control\Power\User\PowerSchemes' -Name 'ActivePowerScheme'
}

function Get-PowerPlanDifference {
    # A difference where another power plan is in use.
    param([string]$Plan)
    if (-not $Plan) { return }
    Compare-Wanted -Key 'power-plan' -What 'power plan' -Is (Get-PowerPlan) -Want $Plan -IgnoreCase
}

function Set-PowerPlan {
    # Changes the power plan (undone by Restore-PowerPlan).
    param([string]$Plan)
    if (-not (Get-PowerPlanDifference -Plan $Plan)) { return }
    Save-FormerValue -Kind 'PowerPlan' -Key 'active' -Value @{ plan = (Get-PowerPlan) }
    [void](Assert-Program -Path (Get-SystemProgram -Name 'powercfg.exe') -Arguments @('/setactive', $Plan))
}

function Restore-PowerPlan {
    # Puts the former power plan back.
    param([object]$Former)
    if ($Former.plan) {
        [void](Assert-Program -Path (Get-SystemProgram -Name 'powercfg.exe') -Arguments @('/setactive', $Former.plan))
    }
}

function Get-TimeDifference {
    # How the source of the time and its service differ from what is wanted. Certificates and tokens need the right
    # time. A domain member keeps the source that the domain gives it.
    param([string[]]$Servers)
    if ($Servers.Count -eq 0 -or (Get-MachineIdentity).Domain) { return }
    $parameters = 'SYSTEM\CurrentControlSet\Services\W32Time\Parameters'
    Compare-Wanted -Key 'time:type' -What 'time source: type' -Is (Read-Registry -Path $parameters -Name 'Type') -Want 'NTP'
    $peers = Read-Registry -Path $parameters -Name 'NtpServer'
    Compare-Wanted -Key 'time:servers' -What 'time source: servers' -Is $peers -Want (ConvertTo-PeerList -Servers $Servers)
    # Off the domain Windows starts the service by a trigger and stops it again.
    Compare-Wanted -Key 'time:service-start' -What 'service w32time: start type' -Is (Read-Service -Name 'w32time').start -Want 'auto'
    Compare-Wanted -Key 'time:service-state' -What 'service w32time: state' -Is (Get-ServiceState -Name 'w32time') -Want 'Running'
}

function ConvertTo-PeerList {
    # Time servers as W32Time's NtpServer value has them. 0x8: ask as a client does, at the interval of the service.
    param([string[]]$Servers)
    @($Servers | ForEach-Object { "$_,0x8" }) -join ' '
}

function Set-TimeSource {
    # Has the time service ask these servers, and keeps it running.
    param([string[]]$Servers)
    if (-not (Get-TimeDifference -Servers $Servers)) { return }
    $parameters = 'SYSTEM\CurrentControlSet\Services\W32Time\Parameters'
    Set-RegistryValue -Path $parameters -Name 'Type' -Value 'NTP' -Kind 'String'
    Set-RegistryValue -Path $parameters -Name 'NtpServer' -Value (ConvertTo-PeerList -Servers $Servers) -Kind 'String'
    # Start is noted like a value and set through the control manager, which keeps its own copy.
    $start = Read-Registry -Path (Get-ServicePath -Name 'w32time') -Name 'Start'
    Set-RegistryValue -Path (Get-ServicePath -Name 'w32time') -Name 'Start' -Value $start
    Invoke-ServiceControl -Arguments @('config', 'w32time', 'start=', 'auto')
    Restart-Service -Name 'w32time' -Force
    Wait-ServiceState -Name 'w32time' -State 'Running' -Seconds 30
}
