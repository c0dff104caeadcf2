function Get-PortRange {
    param([string]$Protocol)
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
        Write-PortRange $protocol $Start $Count
    }
}

function Write-PortRange {
    param([string]$Protocol, [int]$Start, [int]$Count)
    $arguments = @('int', 'ipv4', 'set', 'dynamicportrange', $Protocol, "startport=$Start", "numberofports=$Count")
    [void](Assert-Program (Get-SystemProgram 'netsh.exe') $arguments)
}

function Restore-PortRange {
    param([object]$Former)
    if ($null -eq $Former.range) { return }
    $parts = $Former.range.Split('+')
    Write-PortRange $Former.protocol ([int]$parts[0]) ([int]$parts[1])
}
