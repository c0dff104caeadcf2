function Get-ComputerNameDifference {
    # A domain member is never renamed: its account would be left behind.
    param([string]$Want)
    $active = "$(Read-Registry 'SYSTEM\CurrentControlSet\Control\ComputerName\ActiveComputerName' 'ComputerName')"
    if ($active -ieq $Want) { return }
    if ((Get-MachineIdentity).Domain) { New-Difference -What 'computer name' -Is "$active (domain member)" -Want $Want -Policy }
    else { New-Difference -What 'computer name' -Is $active -Want $Want -Reboot }
}

function Set-ComputerName {
    param([string]$Name)
    $names = 'SYSTEM\CurrentControlSet\Control\ComputerName\'
    Save-FormerValue 'ComputerName' 'name' @{ name = (Read-Registry "${names}ActiveComputerName" 'ComputerName') }
    # One that waits for the restart would be refused a second time.
    if ((Read-Registry "${names}ComputerName" 'ComputerName') -ine $Name) { Rename-Computer -NewName $Name -Force -WarningAction SilentlyContinue }
    New-Reboot
}

function Restore-ComputerName {
    param([object]$Former)
    $names = 'SYSTEM\CurrentControlSet\Control\ComputerName\'
    if ((Read-Registry "${names}ActiveComputerName" 'ComputerName') -ine $Former.name) {
        Rename-Computer -NewName $Former.name -Force -WarningAction SilentlyContinue
        New-Reboot
        return
    }
    # Rename-Computer refuses the name that the machine still has: the new one is taken back where it waits.
    $network = 'SYSTEM\CurrentControlSet\Services\Tcpip\Parameters'
    Write-Registry "${names}ComputerName" 'ComputerName' -Value $Former.name -Kind 'String'
    Write-Registry $network 'NV Hostname' -Value (Read-Registry $network 'Hostname') -Kind 'String'
}
