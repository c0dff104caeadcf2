# The ports that Windows gives to clients.

function Get-PortRange {
    param([string]$Protocol)
    # All profiles share one range.
    $settings = if ($Protocol -eq 'tcp') { Get-NetTCPSetting | Where-Object { $_.DynamicPortRangeNumberOfPorts } } else { Get-NetUDPSetting }
    foreach ($one in $settings) { return "$($one.DynamicPortRangeStartPort)+$($one.DynamicPortRangeNumberOfPorts)" }
}

function Get-PortRangeDifference {
    param([int]$Start, [int]$Count)
    foreach ($protocol in @('tcp', 'udp')) {
        Compare-Wanted -What "dynamic ports: $protocol" -Is (Get-PortRange $protocol) -Want "$Start+$Count"
    }
}

function Set-PortRange {
    param([int]$Start, [int]$Count)
    foreach ($protocol in @('tcp', 'udp')) {
        Save-FormerValue 'PortRange' $protocol @{ protocol = $protocol; range = (Get-PortRange $protocol) }
        Write-PortRange -Protocol $protocol -Start $Start -Count $Count
    }
}

function Write-PortRange {
    param([string]$Protocol, [int]$Start, [int]$Count)
    $arguments = @('int', 'ipv4', 'set', 'dynamicportrange', $Protocol, "startport=$Start", "numberofports=$Count")
    [void](Assert-Program -Path (Get-SystemProgram 'netsh.exe') -Arguments $arguments)
}

function Restore-PortRange {
    param([object]$Former)
    if ($null -eq $Former.range) { return }
    $parts = $Former.range.Split('+')
    Write-PortRange -Protocol $Former.protocol -Start ([int]$parts[0]) -Count ([int]$parts[1])
}
