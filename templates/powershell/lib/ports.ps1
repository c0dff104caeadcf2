# SUMMARY Compares, sets and restores the range of client ports.

function Get-PortRange {
    # The range of client ports as start+count. Nothing where Windows does not say.
    param([string]$Protocol)
    $settings = if ($Protocol -eq 'tcp') { Get-NetTCPSetting | Where-Object { $_.DynamicPortRangeNumberOfPorts } }
    else { Get-NetUDPSetting }
    foreach ($one in $settings) { return "$($one.DynamicPortRangeStartPort)+$($one.DynamicPortRangeNumberOfPorts)" }
}

function Get-PortRangeDifference {
    # A difference where TCP or UDP clients take other ports.
    param([int]$Start, [int]$Count)
    foreach ($protocol in @('tcp', 'udp')) {
        Compare-Wanted -Key "ports:$protocol" -What "dynamic ports: $protocol" -Is (Get-PortRange -Protocol $protocol) -Want "$Start+$Count"
    }
}

function Set-PortRange {
    # Sets the range of client ports for TCP and UDP (undone by Restore-PortRange).
    param([int]$Start, [int]$Count)
    foreach ($protocol in @('tcp', 'udp')) {
        Save-FormerValue -Kind 'PortRange' -Key $protocol -Value @{ protocol = $protocol; range = (Get-PortRange -Protocol $protocol) }
        Write-PortRange -Protocol $protocol -Start $Start -Count $Count
    }
}

function Write-PortRange {
    # Sets the range for one protocol.
    param([string]$Protocol, [int]$Start, [int]$Count)
    $arguments = @('int', 'ipv4', 'set', 'dynamicportrange', $Protocol, "startport=$Start", "numberofports=$Count")
    [void](Assert-Program -Path (Get-SystemProgram -Name 'netsh.exe') -Arguments $arguments)
}

function Restore-PortRange {
    # Puts the former range back.
    param([object]$Former)
    if ($null -eq $Former.range) { return }
    $parts = $Former.range.Split('+')
    Write-PortRange -Protocol $Former.protocol -Start ([int]$parts[0]) -Count ([int]$parts[1])
}
