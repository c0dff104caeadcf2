function Get-SettingDifference {
    # Registry values, each a hashtable: path, name, value, kind, reboot, reason. What a Group Policy of the domain
    # may write (below SOFTWARE\Policies) is its own on a domain member: reported, never changed.
    param($Settings)
    foreach ($setting in $Settings) {
        $is = Read-Registry $setting.path $setting.name
        if ((ConvertTo-Shown $is) -ceq (ConvertTo-Shown $setting.value)) { continue }
        New-Difference -What "registry HKLM\$($setting.path): $($setting.name)" -Is $is -Want $setting.value `
            -Reboot:$setting.reboot -Policy:(Test-PolicyOwned $setting.path)
    }
}

function Test-PolicyOwned {
    param([string]$Path)
    $Path -like 'SOFTWARE\Policies\*' -and (Get-MachineIdentity).Domain
}

function Set-Setting {
    param($Settings)
    $reboot = $false
    foreach ($setting in $Settings) {
        $is = Read-Registry $setting.path $setting.name
        if ((ConvertTo-Shown $is) -ceq (ConvertTo-Shown $setting.value) -or (Test-PolicyOwned $setting.path)) { continue }
        Set-RegistryValue $setting.path $setting.name -Value $setting.value -Kind $setting.kind
        if ($setting.reboot) { $reboot = $true }
    }
    if ($reboot) { New-Reboot }
}

function Get-PageFileDifference {
    # Without any, memory runs out in a crash: Windows has no out-of-memory killer.
    param($MiB)
    $is = ConvertTo-Shown (Read-Registry 'SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management' 'PagingFiles')
    if ($MiB -isnot [string]) { Compare-Wanted -What 'page file' -Is $is -Want "C:\pagefile.sys $MiB $MiB" -IgnoreCase -Reboot }
    elseif (-not $is) { New-Difference -What 'page file' -Is 'none' -Want '?:\pagefile.sys' -Reboot }
}

function Set-PageFile {
    param($MiB)
    if (-not (Get-PageFileDifference $MiB)) { return }
    $value = if ($MiB -is [string]) { '?:\pagefile.sys' } else { "C:\pagefile.sys $MiB $MiB" }
    Set-RegistryValue 'SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management' 'PagingFiles' -Value @($value) -Kind 'MultiString'
    New-Reboot
}

function Get-PowerPlan {
    Read-Registry 'SYSTEM\CurrentControlSet\Control\Power\User\PowerSchemes' 'ActivePowerScheme'
}

function Get-PowerPlanDifference {
    param([string]$Plan)
    if (-not $Plan) { return }
    Compare-Wanted -What 'power plan' -Is (Get-PowerPlan) -Want $Plan -IgnoreCase
}

function Set-PowerPlan {
    param([string]$Plan)
    if (-not (Get-PowerPlanDifference $Plan)) { return }
    Save-FormerValue 'PowerPlan' 'active' @{ plan = (Get-PowerPlan) }
    [void](Assert-Program (Get-SystemProgram 'powercfg.exe') @('/setactive', $Plan))
}

function Restore-PowerPlan {
    param([object]$Former)
    if ($Former.plan) { [void](Assert-Program (Get-SystemProgram 'powercfg.exe') @('/setactive', $Former.plan)) }
}

function Get-TimeDifference {
    # Certificates and tokens need the right time. A domain member keeps the source that the domain gives it.
    param([string[]]$Servers)
    if ($Servers.Count -eq 0 -or (Get-MachineIdentity).Domain) { return }
    $parameters = 'SYSTEM\CurrentControlSet\Services\W32Time\Parameters'
    Compare-Wanted -What 'time source: type' -Is (Read-Registry $parameters 'Type') -Want 'NTP'
    Compare-Wanted -What 'time source: servers' -Is (Read-Registry $parameters 'NtpServer') -Want (ConvertTo-PeerList $Servers)
    # Off the domain Windows starts the service by a trigger and stops it again.
    Compare-Wanted -What 'service w32time: start type' -Is (Read-Service 'w32time').start -Want 'auto'
    Compare-Wanted -What 'service w32time: state' -Is (Get-ServiceState 'w32time') -Want 'Running'
}

function ConvertTo-PeerList {
    # 0x8: ask as a client does, at the interval of the service.
    param([string[]]$Servers)
    @($Servers | ForEach-Object { "$_,0x8" }) -join ' '
}

function Set-TimeSource {
    param([string[]]$Servers)
    if (-not (Get-TimeDifference $Servers)) { return }
    $parameters = 'SYSTEM\CurrentControlSet\Services\W32Time\Parameters'
    Set-RegistryValue $parameters 'Type' -Value 'NTP' -Kind 'String'
    Set-RegistryValue $parameters 'NtpServer' -Value (ConvertTo-PeerList $Servers) -Kind 'String'
    # Start is noted like a value and set through the control manager, which keeps its own copy.
    $start = Read-Registry (Get-ServicePath 'w32time') 'Start'
    Set-RegistryValue (Get-ServicePath 'w32time') 'Start' -Value $start
    Invoke-ServiceControl @('config', 'w32time', 'start=', 'auto')
    Restart-Service -Name 'w32time' -Force
    Wait-ServiceState 'w32time' 'Running' -Seconds 30
}
