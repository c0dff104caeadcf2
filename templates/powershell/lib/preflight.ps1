# Can this machine become this node at all?

function Get-PreflightProblems {
    param([int]$Build, [int]$FreeGib, [object[]]$Updates)
    Test-Build -Build $Build
    Test-Updates -Updates $Updates
    Test-Session
    Test-Space -FreeGib $FreeGib
    Test-Addressing
}

function New-PreflightProblem {
    param([string]$Id, [string]$Message, [string]$Hint)
    [pscustomobject]@{ id = $Id; message = $Message; hint = $Hint }
}

function Test-Build {
    param([int]$Build)
    $version = 'SOFTWARE\Microsoft\Windows NT\CurrentVersion'
    $is = [int](Read-Registry $version 'CurrentBuildNumber')
    if ($is -ne $Build) {
        New-PreflightProblem -Id 'WrongBuild' -Message ('Windows build {0}, but the inventory says {1}' -f $is, $Build) `
            -Hint 'Set `os` of this host in the inventory to what the machine is.'
    }
    $kind = [string](Read-Registry $version 'InstallationType')
    if ($kind -notlike 'Server*') {
        New-PreflightProblem -Id 'NotServer' -Message ('this is Windows {0}, not Windows Server' -f $kind) `
            -Hint 'Kubernetes supports Windows Server only.'
    }
    if (-not [Environment]::Is64BitProcess) {
        New-PreflightProblem -Id 'Not64Bit' -Message 'this PowerShell is a 32-bit process' -Hint 'Use the 64-bit endpoint Microsoft.PowerShell.'
    }
}

function Get-Revision {
    [int](Read-Registry 'SOFTWARE\Microsoft\Windows NT\CurrentVersion' 'UBR')
}

function Test-Updates {
    param([object[]]$Updates)
    $is = Get-Revision
    foreach ($update in $Updates) {
        if ($is -ge $update.revision) { continue }
        New-PreflightProblem -Id 'UpdateMissing' -Message ('revision {0} of Windows is older than {1} ({2}): {3}' -f `
                $is, $update.revision, $update.kb, $update.why) `
            -Hint 'Install the current cumulative update and restart.'
    }
}

function Test-Session {
    $identity = [Security.Principal.WindowsIdentity]::GetCurrent()
    $administrator = [Security.Principal.WindowsPrincipal]::new($identity).IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)
    if (-not $administrator) {
        New-PreflightProblem -Id 'NotAdministrator' -Message ('{0} has no administrator token here' -f $identity.Name) `
            -Hint 'Use a domain account or the built-in Administrator, or set LocalAccountTokenFilterPolicy to 1.'
    }
    $mode = $ExecutionContext.SessionState.LanguageMode.ToString()
    if ($mode -ne 'FullLanguage') {
        New-PreflightProblem -Id 'LanguageMode' -Message ('PowerShell runs in {0} mode' -f $mode) `
            -Hint 'AppLocker or Device Guard restricts scripts: allow this account, or use another one.'
    }
}

function Test-Space {
    param([int]$FreeGib)
    $drive = [IO.DriveInfo]::new([IO.Path]::GetPathRoot([Environment]::SystemDirectory))
    $free = [Math]::Floor($drive.AvailableFreeSpace / 1GB)
    if ($free -lt $FreeGib) {
        New-PreflightProblem -Id 'DiskSpace' -Message ('{0} has {1} GiB free, {2} are needed' -f $drive.Name, $free, $FreeGib) `
            -Hint 'Make room or extend the volume: a Server Core image alone takes 2 to 5 GB.'
    }
}

function Test-Addressing {
    $adapters = @(Get-DefaultRoute | ForEach-Object { $_.ifIndex } | Sort-Object -Unique)
    if ($adapters.Count -gt 1) {
        New-PreflightProblem -Id 'DefaultRoutes' -Message ('default routes lead through {0} adapters' -f $adapters.Count) `
            -Hint 'Keep the gateway on one adapter: HNS follows the wrong one otherwise.'
    }
    $address = Get-NodeAddress
    if ($null -eq $address) {
        New-PreflightProblem -Id 'NoAddress' -Message 'no IPv4 address of this machine can be the node address' `
            -Hint 'An IPv6-only adapter cannot carry Windows pods; or correct node_ip in the inventory.'
        return
    }
    if ($address.state -ne 'Preferred' -or $address.ip -like '169.254.*') {
        New-PreflightProblem -Id 'AddressState' -Message ('the address {0} is {1}' -f $address.ip, $address.state) `
            -Hint 'Wait for DHCP, or mend the address: HNS would latch on to this one.'
    }
    if (-not (Get-AddressTowardsServer)) {
        New-PreflightProblem -Id 'NoServer' -Message ('{0}:{1} does not answer by TCP from this machine' -f $script:Node.server_host, $script:Node.server_port) `
            -Hint 'Check DNS, routes and firewalls between this node and the control plane.'
    }
}

function Get-PreflightNotices {
    param([object[]]$BadUpdates, [bool]$OwnMacs)
    $is = Get-Revision
    foreach ($update in $BadUpdates) {
        if ($is -lt $update.first -or $is -ge $update.fixed) { continue }
        New-Difference -What ('Windows update {0}' -f $update.kb) -Is ('revision {0}: {1}' -f $is, $update.what) `
            -Want ('revision {0} or later ({1})' -f $update.fixed, $update.fixed_kb) -Policy
    }
    $pending = Get-PendingReboot
    if ($pending -ne '') { New-Difference -What 'pending restart' -Is $pending -Want $null -Policy }
    if ($null -ne (Get-ServiceState -Name 'docker')) {
        New-Difference -What 'competing software: service docker' -Is (Get-ServiceState -Name 'docker') -Want $null -Policy
    }
    foreach ($network in @(Get-HnsObject -Kind networks -Name 'nat')) {
        New-Difference -What 'competing software: HNS network nat' -Is $network.Type -Want $null -Policy
    }
    $year = [DateTime]::UtcNow.Year
    if ($year -lt 2025) { New-Difference -What 'clock' -Is ('the year {0}' -f $year) -Want 'the time of day' -Policy }
    # Pods on a bridge speak from MAC addresses of their own; only the hypervisor knows whether it lets them.
    if ($OwnMacs -and -not $script:Run.Facts.NodeIsLive -and (Get-MachineIdentity).Model -match 'Virtual|VMware') {
        New-Difference -What 'hypervisor port: other MAC addresses' -Is 'not visible from inside' `
            -Want 'MAC spoofing (Hyper-V) or forged transmits (VMware) allowed' -Policy
    }
}

function Get-PendingReboot {
    $noted = Read-StateJson 'reboot.json'
    if ($null -ne $noted -and $noted.boot_id -eq (Get-MachineIdentity).BootId) { return '' }
    $waiting = @()
    if (Test-RegistryKey 'SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending') { $waiting += 'servicing' }
    if (Test-RegistryKey 'SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update\RebootRequired') { $waiting += 'Windows Update' }
    $names = 'SYSTEM\CurrentControlSet\Control\ComputerName\'
    $active = Read-Registry ($names + 'ActiveComputerName') 'ComputerName'
    if ($active -ine (Read-Registry ($names + 'ComputerName') 'ComputerName')) { $waiting += 'a new computer name' }
    $waiting -join ', '
}
