function Assert-Preflight {
    # Fails by the id of the first; the others travel where a hint would.
    param($Problems)
    if ($Problems) { Stop-Step $Problems[0].id ($Problems.message -join '; ') -Hint ($Problems.id -join ' ') }
}

function New-Fault {
    param([string]$Id, [string]$Message)
    [pscustomobject]@{ id = $Id; message = $Message }
}

function Test-Build {
    param([int]$Build)
    $version = 'SOFTWARE\Microsoft\Windows NT\CurrentVersion'
    $is = [int](Read-Registry $version 'CurrentBuildNumber')
    $kind = "$(Read-Registry $version 'InstallationType')"
    if ($is -ne $Build) { New-Fault 'WrongBuild' "Windows build $is, but the inventory says $Build" }
    if ($kind -notlike 'Server*') { New-Fault 'NotServer' "this is Windows $kind, not Windows Server" }
    if (-not [Environment]::Is64BitProcess) { New-Fault 'Not64Bit' 'this PowerShell is a 32-bit process' }
}

function Get-Revision {
    [int](Read-Registry 'SOFTWARE\Microsoft\Windows NT\CurrentVersion' 'UBR')
}

function Test-PendingUpdate {
    param($Updates)
    $is = Get-Revision
    foreach ($update in $Updates) {
        if ($is -ge $update.revision) { continue }
        New-Fault 'UpdateMissing' "revision $is of Windows is older than $($update.revision) ($($update.kb)): $($update.why)"
    }
}

function Test-Session {
    $identity = [Security.Principal.WindowsIdentity]::GetCurrent()
    $role = [Security.Principal.WindowsBuiltInRole]::Administrator
    if ([Security.Principal.WindowsPrincipal]::new($identity).IsInRole($role)) { return }
    New-Fault 'NotAdministrator' "$($identity.Name) has no administrator token here"
}

function Test-Space {
    param([int]$FreeGib)
    $drive = [IO.DriveInfo]::new([Environment]::SystemDirectory.Substring(0, 1))
    $free = [Math]::Floor($drive.AvailableFreeSpace / 1GB)
    if ($free -lt $FreeGib) { New-Fault 'DiskSpace' "$($drive.Name) has $free GiB free, $FreeGib are needed" }
}

function Test-Addressing {
    $adapters = @(Get-DefaultRoute | ForEach-Object { $_.ifIndex } | Sort-Object -Unique)
    if ($adapters.Count -gt 1) { New-Fault 'DefaultRoutes' "default routes lead through $($adapters.Count) adapters" }
    $address = Get-NodeAddress
    if (-not $address) {
        New-Fault 'NoAddress' 'no IPv4 address of this machine can be the node address'
        return
    }
    if ($address.state -ne 'Preferred' -or $address.ip -like '169.254.*') { New-Fault 'AddressState' "the address $($address.ip) is $($address.state)" }
    if (Get-AddressTowardsServer) { return }
    New-Fault 'NoServer' "$($script:Node.server_host):$($script:Node.server_port) does not answer by TCP from this machine"
}

function Get-PreflightNotice {
    param($BadUpdates)
    $is = Get-Revision
    foreach ($update in $BadUpdates) {
        if ($is -lt $update.first -or $is -ge $update.fixed) { continue }
        New-Difference -What "Windows update $($update.kb)" -Is "revision ${is}: $($update.what)" `
            -Want "revision $($update.fixed) or later ($($update.fixed_kb))" -Policy
    }
    $pending = Get-PendingReboot
    if ($pending) { New-Difference -What 'pending restart' -Is $pending -Want $null -Policy }
    $docker = Get-ServiceState 'docker'
    if ($docker) { New-Difference -What 'competing software: service docker' -Is $docker -Want $null -Policy }
    foreach ($network in Get-HnsObject networks 'nat') {
        New-Difference -What 'competing software: HNS network nat' -Is $network.Type -Want $null -Policy
    }
    $year = [DateTime]::UtcNow.Year
    if ($year -lt 2025) { New-Difference -What 'clock' -Is "the year $year" -Want 'the time of day' -Policy }
}

function Get-PendingReboot {
    $noted = Read-StateJson 'reboot.json'
    if ($noted -and $noted.boot_id -eq (Get-MachineIdentity).BootId) { return }
    $keys = 'SOFTWARE\Microsoft\Windows\CurrentVersion\'
    $names = 'SYSTEM\CurrentControlSet\Control\ComputerName\'
    $active = Read-Registry "${names}ActiveComputerName" 'ComputerName'
    $waiting = @(
        if (Test-RegistryKey "${keys}Component Based Servicing\RebootPending") { 'servicing' }
        if (Test-RegistryKey "${keys}WindowsUpdate\Auto Update\RebootRequired") { 'Windows Update' }
        if ($active -ine (Read-Registry "${names}ComputerName" 'ComputerName')) { 'a new computer name' }
    )
    $waiting -join ', '
}
