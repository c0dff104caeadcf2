# SUMMARY Compares, sets and restores the computer name.

function Get-ComputerNameDifference {
    # A domain member is never renamed: its account would be left behind.
    param([string]$Want)
    $active = "$(Read-Registry -Path 'SYSTEM\CurrentControlSet\Control\ComputerName\ActiveComputerName' -Name 'ComputerName')"
    if ($active -ieq $Want) { return }
    if ((Get-MachineIdentity).Domain) {
        New-Difference -Key 'computer-name' -What 'computer name' -Is "$active (domain member)" -Want $Want -Policy
    }
    else { New-Difference -Key 'computer-name' -What 'computer name' -Is $active -Want $Want -Reboot }
}

function Set-ComputerName {
    # Renames the machine and asks for the restart.
    param([string]$Name)
    $names = 'SYSTEM\CurrentControlSet\Control\ComputerName\'
    Save-FormerValue -Kind 'ComputerName' -Key 'name' -Value @{ name = (Read-Registry -Path "${names}ActiveComputerName" -Name 'ComputerName') }
    # One that waits for the restart would be refused a second time.
    if ((Read-Registry -Path "${names}ComputerName" -Name 'ComputerName') -ine $Name) {
        Rename-Computer -NewName $Name -Force -WarningAction SilentlyContinue
    }
    New-Reboot
}

function Restore-ComputerName {
    # Gives the machine its former name back.
    param([object]$Former)
    $names = 'SYSTEM\CurrentControlSet\Control\ComputerName\'
    if ((Read-Registry -Path "${names}ActiveComputerName" -Name 'ComputerName') -ine $Former.name) {
        Rename-Computer -NewName $Former.name -Force -WarningAction SilentlyContinue
        New-Reboot
        return
    }
    # Rename-Computer refuses the name that the machine still has: the new one is taken back where it waits.
    $network = 'SYSTEM\CurrentControlSet\Services\Tcpip\Parameters'
    Write-Registry -Path "${names}ComputerName" -Name 'ComputerName' -Value $Former.name -Kind 'String'
    Write-Registry -Path $network -Name 'NV Hostname' -Value (Read-Registry -Path $network -Name 'Hostname') -Kind 'String'
}
