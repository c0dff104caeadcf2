# SUMMARY Checks whether this machine can become a node.

function Assert-Preflight {
    # Stops the step where there is a fault, by the id of the first; the ids of all travel as the hint. Returns nothing
    # otherwise.
    param([object[]]$Problems)
    if ($Problems) { Stop-Step -Id $Problems[0].id -Message ($Problems.message -join '; ') -Hint ($Problems.id -join ' ') }
}

function New-Fault {
    # One reason why this machine does not fit.
    param([string]$Id, [string]$Message)
    [pscustomobject]@{ id = $Id; message = $Message }
}

function Test-Build {
    # Faults where this is another Windows than the inventory says.
    param([int]$Build)
    $version = 'SOFTWARE\Microsoft\Windows NT\CurrentVersion'
    $is = [int](Read-Registry -Path $version -Name 'CurrentBuildNumber')
    $kind = "$(Read-Registry -Path $version -Name 'InstallationType')"
    if ($is -ne $Build) { New-Fault -Id 'WrongBuild' -Message "Windows build $is, but the inventory says $Build" }
    if ($kind -notlike 'Server*') { New-Fault -Id 'NotServer' -Message "this is Windows $kind, not Windows Server" }
    if (-not [Environment]::Is64BitProcess) { New-Fault -Id 'Not64Bit' -Message 'this PowerShell is a 32-bit process' }
}

function Get-Revision {
    # The revision of this Windows build.
    [int](Read-Registry -Path 'SOFTWARE\Microsoft\Windows NT\CurrentVersion' -Name 'UBR')
}

function Test-PendingUpdate {
    # A fault for each update that is needed and missing.
    param([hashtable[]]$Updates)
    $is = Get-Revision
    foreach ($update in $Updates) {
        if ($is -ge $update.revision) { continue }
        New-Fault -Id 'UpdateMissing' -Message "revision $is of Windows is older than $($update.revision) ($($update.kb)): $($update.why)"
    }
}

function Test-Session {
    # A fault where the session has no rights of an administrator.
    $identity = [Security.Principal.WindowsIdentity]::GetCurrent()
    $role = [Security.Principal.WindowsBuiltInRole]::Administrator
    if ([Security.Principal.WindowsPrincipal]::new($identity).IsInRole($role)) { return }
    New-Fault -Id 'NotAdministrator' -Message "$($identity.Name) has no administrator token here"
}

function Test-Space {
    # A fault where the system drive has too little space.
    param([int]$FreeGib)
    $drive = [IO.DriveInfo]::new([Environment]::SystemDirectory.Substring(0, 1))
    $free = [Math]::Floor($drive.AvailableFreeSpace / 1GB)
    if ($free -lt $FreeGib) { New-Fault -Id 'DiskSpace' -Message "$($drive.Name) has $free GiB free, $FreeGib are needed" }
}

function Test-Addressing {
    # Faults of the machine's addresses and of its way to the API server.
    $adapters = @(Get-DefaultRoute | ForEach-Object { $_.ifIndex } | Sort-Object -Unique)
    if ($adapters.Count -gt 1) {
        New-Fault -Id 'DefaultRoutes' -Message "default routes lead through $($adapters.Count) adapters"
    }
    $address = Get-NodeAddress
    if (-not $address) {
        New-Fault -Id 'NoAddress' -Message 'no IPv4 address of this machine can be the node address'
        return
    }
    if ($address.state -ne 'Preferred' -or $address.ip -like '169.254.*') {
        New-Fault -Id 'AddressState' -Message "the address $($address.ip) is $($address.state)"
    }
    # A live node has settled its address: it is not stopped for a second way.
    if ($adapters.Count -le 1 -and -not $script:Node.node_ip -and -not $script:Run.Facts.NodeIsLive) { Test-OtherWay }
    if (Get-WayToServer) { return }
    New-Fault -Id 'NoServer' -Message "$($script:Node.server_host):$($script:Node.server_port) does not answer by TCP from this machine"
}

function Test-OtherWay {
    # A fault where routes lead to the API server from two interfaces: which address is the node's would change with what is up.
    foreach ($way in Get-WayToServer) {
        $from = @(Get-NetRoute -AddressFamily IPv4 |
                Where-Object { (Test-CidrMember -Cidr $_.DestinationPrefix -Address $way.server) -and (Test-OwnRoute -Route $_) } |
                ForEach-Object { $_.ifIndex } | Sort-Object -Unique |
                ForEach-Object { Read-InterfaceAddress -Index $_ | Where-Object { Test-UsableAddress -Address $_ } | Select-Object -First 1 })
        if ($from.Count -lt 2) { continue }
        $texts = @($from | ForEach-Object { "$($_.IPAddress) ($($_.InterfaceAlias))" }) -join ' and '
        New-Fault -Id 'SeveralWays' -Message "routes lead to the API server $($way.server) from $texts, and no node_ip says which is the node's"
    }
}

function Get-PreflightNotice {
    # What is worth knowing and not winboot's to change: bad updates, a pending restart, other software, the clock.
    param([hashtable[]]$BadUpdates)
    $is = Get-Revision
    foreach ($update in $BadUpdates) {
        if ($is -lt $update.first -or $is -ge $update.fixed) { continue }
        New-Difference -Key "update:$($update.kb)" -What "Windows update $($update.kb)" -Is "revision ${is}: $($update.what)" `
            -Want "revision $($update.fixed) or later ($($update.fixed_kb))" -Policy
    }
    $pending = Get-PendingReboot
    if ($pending) { New-Difference -Key 'pending-restart' -What 'pending restart' -Is $pending -Want $null -Policy }
    $patching = Get-ServicingState
    if ($patching) { New-Difference -Key 'servicing' -What 'servicing in progress' -Is $patching -Want $null -Policy }
    $docker = Get-ServiceState -Name 'docker'
    if ($docker) { New-Difference -Key 'docker' -What 'competing software: service docker' -Is $docker -Want $null -Policy }
    foreach ($network in Get-HnsObject -Kind networks -Name 'nat') {
        New-Difference -Key 'nat-network' -What 'competing software: HNS network nat' -Is $network.Type -Want $null -Policy
    }
    $year = [DateTime]::UtcNow.Year
    if ($year -lt 2025) { New-Difference -Key 'clock' -What 'clock' -Is "the year $year" -Want 'the time of day' -Policy }
}

function Get-ServicingState {
    # What Windows' own servicing is at, in words: it replaces files, stops services and may restart; empty when it rests.
    $servicing = 'SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\'
    $signs = @(
        if (Test-RegistryKey -Path "${servicing}RebootInProgress") { 'a restart of servicing is in progress' }
        if (Test-RegistryKey -Path "${servicing}PackagesPending") { 'packages are pending' }
        # It stays for some minutes after DISM, too.
        if ((Get-ServiceState -Name 'TrustedInstaller') -eq 'Running') { 'the Windows Modules Installer is running' }
    )
    $signs -join ', '
}

function Get-PendingReboot {
    # Why a restart is pending that winboot did not ask for, in words; empty without one.
    $noted = Read-StateJson -Name 'reboot.json'
    if ($noted -and $noted.boot_id -eq (Get-MachineIdentity).BootId) { return }
    $keys = 'SOFTWARE\Microsoft\Windows\CurrentVersion\'
    $names = 'SYSTEM\CurrentControlSet\Control\ComputerName\'
    $active = Read-Registry -Path "${names}ActiveComputerName" -Name 'ComputerName'
    $waiting = @(
        if (Test-RegistryKey -Path "${keys}Component Based Servicing\RebootPending") { 'servicing' }
        if (Test-RegistryKey -Path "${keys}WindowsUpdate\Auto Update\RebootRequired") { 'Windows Update' }
        if ($active -ine (Read-Registry -Path "${names}ComputerName" -Name 'ComputerName')) { 'a new computer name' }
    )
    $waiting -join ', '
}
