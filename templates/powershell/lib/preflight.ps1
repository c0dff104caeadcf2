# SUMMARY Checks whether this machine can become a node.

function Assert-NoFault {
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

function Test-Clock {
    # A fault where the clock is off. A live node has its certificates: there it is a notice.
    $off = Get-ClockText
    if ($off -and -not $script:Run.Facts.NodeIsLive) { New-Fault -Id 'ClockOff' -Message "the machine's clock is $off" }
}

function Get-ClockOffset {
    # How many seconds this machine's clock is ahead of the cluster's. Now: the cluster's time when this script was sent, in seconds
    # since 1970 (UTC); nothing without it.
    param([object]$Now)
    if ($null -eq $Now) { return }
    [Math]::Round(([DateTime]::UtcNow - [DateTime]::new(1970, 1, 1, 0, 0, 0, [DateTimeKind]::Utc)).TotalSeconds - $Now)
}

function Get-ClockText {
    # How far this machine's clock is off, in words; nothing within five minutes (winboot/base/clock.py, CLOCK_FAILS) or where
    # the controller sent no time.
    $offset = [int]$script:Run.ClockOffset
    if ([Math]::Abs($offset) -le 300) { return }
    if ($offset -lt 0) { "$(-$offset) s behind the API server's" } else { "$offset s ahead of the API server's" }
}

function Test-FirewallService {
    # A fault where a service of Windows Firewall does not run, or (without Now) is disabled. Without it firewall cmdlets fail
    # with Windows error 1753 (prometheus-community/windows_exporter#2105; docs of basil00/WinDivert on BFE), and so does what
    # HNS makes (docker/for-win#9474). Microsoft supports disabled profiles, and not a stopped service (MicrosoftDocs/
    # windows-itpro-docs, "Stopping the Windows Firewall service isn't supported by Microsoft").
    param([switch]$Now)
    $off = @(foreach ($name in @('BFE', 'mpssvc')) {
            $disabled = -not $Now -and 4 -eq (Read-Registry -Path "SYSTEM\CurrentControlSet\Services\$name" -Name 'Start')
            if ($disabled) { "$name is disabled" } elseif ((Get-ServiceState -Name $name) -ne 'Running') { "$name does not run" }
        })
    if ($off) { New-Fault -Id 'FirewallServiceOff' -Message "Windows Firewall: service $($off -join ', service ')" }
}

function Test-Space {
    # A fault where a drive has too little space. FreeGib: what is needed by drive letter.
    param([hashtable]$FreeGib)
    foreach ($letter in $FreeGib.Keys | Sort-Object) {
        $drive = [IO.DriveInfo]::new($letter)
        if (-not [IO.Directory]::Exists($drive.Name)) { continue }
        $free = [Math]::Floor($drive.AvailableFreeSpace / 1GB)
        if ($free -lt $FreeGib[$letter]) { New-Fault -Id 'DiskSpace' -Message "$($drive.Name) has $free GiB free, $($FreeGib[$letter]) are needed" }
    }
}

function Test-LastingDrive {
    # A fault where the drive is the temporary disk of Azure, which comes back empty after a redeployment: Azure's file on it warns
    # (learn.microsoft.com/azure/virtual-machines/managed-disks-overview#temporary-disk; cloud-init, DataSourceAzure.py).
    param([string]$Root)
    $warning = [IO.Path]::GetPathRoot($Root) + 'DATALOSS_WARNING_README.txt'
    if ([IO.File]::Exists($warning)) { New-Fault -Id 'EphemeralDrive' -Message "$Root is on a temporary disk: $warning" }
}

function Test-FileSystem {
    # A fault where image layers cannot lie: containerd unpacks them on NTFS alone (plugins/snapshots/windows/windows.go,
    # NewWindowsSnapshotter), and the disks of containers may not be compressed or encrypted (moby/moby#26947, docker/for-win#13920).
    # What is made in a folder takes both from it.
    param([string]$Root, [string]$Layers)
    $drive = [IO.DriveInfo]::new($Root.Substring(0, 1))
    if (-not [IO.Directory]::Exists($drive.Name)) { return (New-Fault -Id 'NoDrive' -Message "there is no drive $($drive.Name) for $Root") }
    # Layers that are there show that the folder is fit for them.
    if ([IO.Directory]::Exists($Layers)) { return }
    if ($drive.DriveFormat -ne 'NTFS') {
        return (New-Fault -Id 'FileSystem' -Message "$($drive.Name) has the file system $($drive.DriveFormat), and images need NTFS")
    }
    $nearest = @(@($drive.Name) + @(Get-ParentPath -Path $Root) + @($Root) | Where-Object { [IO.Directory]::Exists($_) })[-1]
    $attributes = [int][IO.File]::GetAttributes($nearest)
    $form = if ($attributes -band 0x800) { 'compressed' } elseif ($attributes -band 0x4000) { 'encrypted' }
    if ($form) { New-Fault -Id 'FileSystem' -Message "$nearest is $form, and so would be the disks of containers in $Root" }
}

function Test-Addressing {
    # Faults of the machine's addresses and of its way to the API server.
    $adapters = @(Get-DefaultAdapter)
    $settled = Test-KnownOwnAddress
    if ($adapters.Count -gt 1 -and -not $settled) {
        New-Fault -Id 'DefaultRoutes' -Message "default routes lead through $($adapters.Count) adapters: $(Get-DefaultRouteText)"
    }
    $address = Get-NodeAddress
    if (-not $address) {
        New-Fault -Id 'NoAddress' -Message 'no IPv4 address of this machine can be the node address'
        return
    }
    if ($address.state -ne 'Preferred' -or $address.ip -like '169.254.*') {
        New-Fault -Id 'AddressState' -Message "the address $($address.ip) is $($address.state)"
    }
    if ($adapters.Count -le 1 -and -not $settled) { Test-OtherWay }
    if (Get-WayToServer) { return }
    New-Fault -Id 'NoServer' -Message "$($script:Node.server_host):$($script:Node.server_port) does not answer by TCP from this machine"
}

function Test-KnownOwnAddress {
    # True if node_ip, or the life of the node until now, has settled the node's address: winboot makes switches on its adapter alone.
    [bool]$script:Node.node_ip -or $script:Run.Facts.NodeIsLive
}

function Get-DefaultAdapter {
    # The indexes of the interfaces that the machine's own default routes lead through. Returns nothing if none exists.
    Get-DefaultRoute | ForEach-Object { $_.ifIndex } | Sort-Object -Unique
}

function Get-DefaultRouteText {
    # The machine's own default routes in words: interface, next hop, metric.
    @(Get-DefaultRoute | ForEach-Object {
            "$($_.InterfaceAlias) by $($_.NextHop) (metric $([int]$_.RouteMetric + [int]$_.InterfaceMetric))"
        }) -join ' and '
}

function Test-OtherWay {
    # A fault where routes lead to the API server from two interfaces: which address is the node's would change with what is up.
    foreach ($way in Get-WayToServer) {
        $from = @(Read-Route | Where-Object { $_.AddressFamily.ToString() -eq 'IPv4' } |
                Where-Object { (Test-CidrMember -Cidr $_.DestinationPrefix -Address $way.server) -and (Test-OwnRoute -Route $_) } |
                ForEach-Object { $_.ifIndex } | Sort-Object -Unique |
                ForEach-Object { Read-InterfaceAddress -Index $_ | Where-Object { Test-UsableAddress -Address $_ } | Select-Object -First 1 })
        if ($from.Count -lt 2) { continue }
        $texts = @($from | ForEach-Object { "$($_.IPAddress) ($($_.InterfaceAlias))" }) -join ' and '
        New-Fault -Id 'SeveralWays' -Message "routes lead to the API server $($way.server) from $texts, and no node_ip says which is the node's"
    }
}

function Get-PreflightNotice {
    # What is worth knowing and not winboot's to change: bad updates, a pending restart, other software, the clock, the firewall.
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
    $other = -not $script:Node['docker']
    if ($docker -and $other) { New-Difference -Key 'docker' -What 'competing software: service docker' -Is $docker -Want $null -Policy }
    foreach ($network in Get-HnsObject -Kind networks -Name 'nat' | Where-Object { $other }) {
        New-Difference -Key 'nat-network' -What 'competing software: HNS network nat' -Is $network.Type -Want $null -Policy
    }
    $off = Get-ClockText
    if ($off -and $script:Run.Facts.NodeIsLive) {
        New-Difference -Key 'clock' -What 'clock' -Is $off -Want 'within 300 s' -Policy
    }
    foreach ($fault in Test-FirewallService) {
        New-Difference -Key 'firewall-service' -What 'firewall service' -Is $fault.message -Want 'running' -Policy
    }
    if ((Test-KnownOwnAddress) -and @(Get-DefaultAdapter).Count -gt 1) {
        New-Difference -Key 'default-routes' -What 'default routes' -Is (Get-DefaultRouteText) -Want 'through one adapter' -Policy
    }
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
