# SUMMARY Reports software and settings around the machine that can break a node.

function Get-SurroundingNotice {
    # What around this machine can break a node and is not winboot's: encryption, hypervisor port, scanners, teams.
    param([bool]$OwnMacs)
    $encryption = Get-DiskEncryption
    if ($encryption -ne 'on') {
        New-Difference -Key 'bitlocker' -What 'BitLocker' -Is $encryption -Want 'on: access rules keep no key on a copied disk' -Policy
    }
    # Pods on a bridge have MAC addresses of their own.
    $port = ''
    switch -Regex ((Get-MachineIdentity).Model) {
        'VMware' { $port = 'forged transmits, MAC address changes, and promiscuous mode or MAC learning accepted by the port group' }
        '^Virtual Machine' { $port = 'MacAddressSpoofing on, by Set-VMNetworkAdapter on the Hyper-V host' }
    }
    if ($OwnMacs -and $port) {
        New-Difference -Key 'hypervisor-port' -What 'hypervisor port: other MAC addresses' -Is 'not visible from inside' -Want $port -Policy
    }
    foreach ($name in Get-ScanFilter) {
        $what = "competing software: virus scanner $name"
        New-Difference -Key "scanner:$name" -What $what -Is 'present' -Want 'image layers left alone by it' -Policy
    }
    $index = (Get-NodeAddress).index
    $teamed = @(Read-Adapter | Where-Object { $_.ifIndex -eq $index -and $_.InterfaceDescription -like '*Multiplexor*' })
    if ($teamed) {
        New-Difference -Key 'nic-team' -What 'competing software: NIC team' -Is 'LBFO' -Want 'one adapter: a virtual switch needs it' -Policy
    }
}

function Get-DiskEncryption {
    # Whether BitLocker protects the system drive: on, off or not installed.
    $of = @{ Namespace = 'root\cimv2\Security\MicrosoftVolumeEncryption'; ClassName = 'Win32_EncryptableVolume' }
    $drive = [Environment]::SystemDirectory.Substring(0, 2)
    $volumes = @(Get-CimInstance @of -ErrorAction SilentlyContinue | Where-Object { $_.DriveLetter -eq $drive })
    if (-not $volumes) { return 'not installed' }
    if ($volumes[0].ProtectionStatus -eq 1) { 'on' } else { 'off' }
}

function Get-ScanFilter {
    # The names of virus scanners' file filters, besides Defender's own, which has a step; nothing if none exist.
    # Such a filter may hold files of an image layer open.
    $path = 'SYSTEM\CurrentControlSet\Services'
    $services = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($path)
    foreach ($name in $services.GetSubKeyNames()) {
        try { $group = Read-Registry -Path "$path\$name" -Name 'Group' }
        catch [Security.SecurityException] { continue }
        if ($group -eq 'FSFilter Anti-Virus' -and $name -ne 'WdFilter') { $name }
    }
    $services.Dispose()
}
