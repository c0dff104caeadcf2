# What a person should know of a machine before it becomes a node; winboot changes none of it.

function Get-SurroundingNotices {
    param([bool]$OwnMacs)
    $encryption = Get-DiskEncryption
    if ($encryption -ne 'on') {
        New-Difference -What 'BitLocker' -Is $encryption -Want 'on: access rules do not keep the keys of the node on a copied disk' -Policy
    }
    $port = Get-PortSetting
    # Pods on a bridge speak from MAC addresses of their own; only the hypervisor knows whether it lets them.
    if ($OwnMacs -and $port -ne '') {
        New-Difference -What 'hypervisor port: other MAC addresses' -Is 'not visible from inside' -Want $port -Policy
    }
    foreach ($name in Get-ScanFilter) {
        New-Difference -What "competing software: virus scanner $name" -Is 'present' -Want 'image layers and CNI files left alone by it' -Policy
    }
    if (Test-TeamedAdapter) {
        New-Difference -What 'competing software: NIC team' -Is 'LBFO' -Want 'one adapter: a virtual switch on such a team is not supported' -Policy
    }
}

function Get-DiskEncryption {
    # The class comes with the feature BitLocker.
    $of = @{ Namespace = 'root\cimv2\Security\MicrosoftVolumeEncryption'; ClassName = 'Win32_EncryptableVolume' }
    $drive = [Environment]::SystemDirectory.Substring(0, 2)
    $volumes = @(Get-CimInstance @of -ErrorAction SilentlyContinue | Where-Object { $_.DriveLetter -eq $drive })
    if ($volumes.Count -eq 0) { return 'not installed' }
    if ($volumes[0].ProtectionStatus -eq 1) { return 'on' }
    'off'
}

function Get-PortSetting {
    switch -Regex ((Get-MachineIdentity).Model) {
        'VMware' { return 'the port group accepts forged transmits, MAC address changes, and promiscuous mode or MAC learning' }
        'Virtual' { return 'MacAddressSpoofing is on: Set-VMNetworkAdapter on the Hyper-V host' }
    }
    ''
}

function Get-ScanFilter {
    # A scanner that holds the files of a layer open makes it fail to unpack. Defender's own has a step.
    $path = 'SYSTEM\CurrentControlSet\Services'
    $services = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($path)
    try {
        foreach ($name in $services.GetSubKeyNames()) {
            try { $group = Read-Registry "$path\$name" 'Group' }
            # Some products let nobody look at their keys.
            catch [Security.SecurityException] { continue }
            if ($name -ne 'WdFilter' -and $group -eq 'FSFilter Anti-Virus') { $name }
        }
    }
    finally { $services.Dispose() }
}

function Test-TeamedAdapter {
    $address = Get-NodeAddress
    if ($null -eq $address) { return $false }
    @(Get-NetAdapter -InterfaceIndex $address.index -IncludeHidden | Where-Object { $_.InterfaceDescription -like '*Multiplexor*' }).Count -gt 0
}
