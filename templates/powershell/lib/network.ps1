function Get-AddressTowardsServer {
    # The local address from which the API server answers. Clouds drop ICMP.
    $client = [Net.Sockets.TcpClient]::new()
    try {
        if ($client.ConnectAsync($script:Node.server_host, $script:Node.server_port).Wait(5000)) { $client.Client.LocalEndPoint.Address.ToString() }
    }
    catch [AggregateException] { return }
    finally { $client.Close() }
}

function Find-Address {
    param([string]$Ip)
    Get-NetIPAddress -IPAddress $Ip -ErrorAction SilentlyContinue
}

function Test-SettledAddress {
    param([string]$Ip)
    @(Find-Address $Ip | Where-Object { $_.AddressState.ToString() -eq 'Preferred' }).Count -gt 0
}

function Get-DefaultRoute {
    @(Get-NetRoute -DestinationPrefix '0.0.0.0/0' -AddressFamily IPv4 -ErrorAction SilentlyContinue |
            Sort-Object -Property { $_.RouteMetric + $_.InterfaceMetric })
}

function Get-NodeAddress {
    # As given, else the one that reaches the API server, else the one on the default route.
    $ip = $script:Node.node_ip
    if (-not $ip) { $ip = Get-AddressTowardsServer }
    if (-not $ip) {
        $ip = @(Get-DefaultRoute | Select-Object -First 1 |
                ForEach-Object { Get-NetIPAddress -InterfaceIndex $_.ifIndex -AddressFamily IPv4 -ErrorAction SilentlyContinue } |
                ForEach-Object { $_.IPAddress })[0]
        if (-not $ip) { return }
    }
    foreach ($found in Find-Address $ip | Select-Object -First 1) {
        $adapter = @(Get-NetAdapter -InterfaceIndex $found.InterfaceIndex -IncludeHidden -ErrorAction SilentlyContinue)
        [pscustomobject]@{
            ip = $ip; prefix_length = [int]$found.PrefixLength; state = $found.AddressState.ToString()
            index = [int]$found.InterfaceIndex; alias = $found.InterfaceAlias; mac = [string]($adapter | ForEach-Object { $_.MacAddress })
        }
    }
}

function Read-NetworkSnapshot {
    param($Address)
    $at = @{ InterfaceIndex = $Address.index }
    $ip = @(Get-NetIPAddress @at -IPAddress $Address.ip)[0]
    $interface = @(Get-NetIPInterface @at -AddressFamily IPv4)[0]
    $profiles = @(Get-NetConnectionProfile @at -ErrorAction SilentlyContinue | ForEach-Object { $_.NetworkCategory.ToString() })
    $bound = @(Get-NetAdapterBinding -Name $Address.alias -ComponentID 'ms_tcpip6' -ErrorAction SilentlyContinue | Where-Object { $_.Enabled })
    @{
        ip = $Address.ip
        prefix_length = $Address.prefix_length
        mac = $Address.mac
        static = $ip.PrefixOrigin.ToString() -eq 'Manual'
        metric = [int]$interface.InterfaceMetric
        auto_metric = $interface.AutomaticMetric.ToString() -eq 'Enabled'
        mtu = [int]$interface.NlMtu
        dns = @((Get-DnsClientServerAddress @at -AddressFamily IPv4).ServerAddresses)
        suffix = [string](Get-DnsClient @at).ConnectionSpecificSuffix
        category = [string]$profiles[0]
        vlan = Read-Vlan (Find-PhysicalAdapter $Address.mac)
        ipv6 = $bound.Count -gt 0
        addresses_v6 = @(Get-NetIPAddress @at -AddressFamily IPv6 -PrefixOrigin Manual -ErrorAction SilentlyContinue |
                ForEach-Object { @{ ip = $_.IPAddress; prefix_length = [int]$_.PrefixLength } })
        routes = @(Read-KeptRoute $Address.index)
    }
}

function Find-PhysicalAdapter {
    param([string]$Mac)
    @(Get-NetAdapter -IncludeHidden | Where-Object { $_.MacAddress -eq $Mac -and $_.HardwareInterface } | ForEach-Object { $_.Name })
}

function Read-Vlan {
    param([string[]]$Names)
    if (-not $Names) { return '' }
    $found = @(Get-NetAdapterAdvancedProperty -Name $Names -RegistryKeyword 'VlanID' -ErrorAction SilentlyContinue)
    if (-not $found) { return '' }
    [string]@($found[0].RegistryValue)[0]
}

function Read-KeptRoute {
    param([int]$Index)
    # A persistent copy of another would outlive who set it.
    $stored = @(Get-NetRoute -InterfaceIndex $Index -PolicyStore PersistentStore -ErrorAction SilentlyContinue)
    $persistent = @($stored | ForEach-Object { "$($_.DestinationPrefix) $($_.NextHop)" })
    $routes = @($stored | Where-Object { $_.NextHop -like '*:*' })
    $routes += @(Get-NetRoute -InterfaceIndex $Index -AddressFamily IPv4 -ErrorAction SilentlyContinue)
    foreach ($route in $routes) {
        $prefix = $route.DestinationPrefix
        if ($route.NextHop -eq '0.0.0.0' -and $route.Protocol.ToString() -ne 'NetMgmt') { continue }
        if ($prefix -eq '255.255.255.255/32' -or $prefix -like '224.*' -or (Test-PodPrefix $prefix)) { continue }
        @{
            prefix = $prefix; next_hop = $route.NextHop; metric = [int]$route.RouteMetric
            persistent = $persistent -contains "$prefix $($route.NextHop)"
        }
    }
}

function Test-PodPrefix {
    param([string]$Prefix)
    $base, $length = $Prefix.Split('/')
    foreach ($cidr in $script:Node.pod_cidrs) {
        if ([int]$length -ge [int]$cidr.Split('/')[1] -and (Test-CidrMember $cidr $base)) { return $true }
    }
    $false
}

function Find-Uplink {
    # When the address is gone, the one that took the MAC over.
    param($Snapshot)
    foreach ($found in Find-Address $Snapshot.ip) { return [int]$found.InterfaceIndex }
    # The physical adapter below a switch has the same MAC: it comes last.
    $adapters = @(Get-NetAdapter -IncludeHidden | Where-Object { $_.MacAddress -eq $Snapshot.mac -and $_.Status -eq 'Up' })
    foreach ($adapter in $adapters | Sort-Object -Property { $_.Name -notlike 'vEthernet*' }) { return [int]$adapter.ifIndex }
}

function Restore-NetworkSnapshot {
    # What fails while Windows moves an address succeeds a moment later.
    param($Snapshot)
    $script:Run['Trouble'] = ''
    try {
        $index = Find-Uplink $Snapshot
        if ($null -ne $index) { Set-NetworkAsBefore $Snapshot $index }
    }
    catch { $script:Run['Trouble'] = $_.Exception.GetBaseException().Message }
}

function Set-NetworkAsBefore {
    param($Snapshot, [int]$Index)
    $at = @{ InterfaceIndex = $Index }
    $ipv4 = @{ InterfaceIndex = $Index; AddressFamily = 'IPv4' }
    if ($Snapshot.static -and -not (Find-Address $Snapshot.ip)) {
        [void](New-NetIPAddress @at -IPAddress $Snapshot.ip -PrefixLength $Snapshot.prefix_length)
    }
    Restore-Link $Snapshot $Index
    Restore-Route $Snapshot $Index
    if ($Snapshot.static) {
        $dns = (Get-DnsClientServerAddress @ipv4).ServerAddresses -join ' '
        if ($Snapshot.dns -and $dns -ne ($Snapshot.dns -join ' ')) { Set-DnsClientServerAddress @at -ServerAddresses ([string[]]$Snapshot.dns) }
        $suffix = [string](Get-DnsClient @at).ConnectionSpecificSuffix
        if ($suffix -ne $Snapshot.suffix) { Set-DnsClient @at -ConnectionSpecificSuffix $Snapshot.suffix }
    }
    $interface = @(Get-NetIPInterface @ipv4)[0]
    if ([int]$interface.NlMtu -ne $Snapshot.mtu) { Set-NetIPInterface @ipv4 -NlMtuBytes $Snapshot.mtu }
    if (-not $Snapshot.auto_metric -and [int]$interface.InterfaceMetric -ne $Snapshot.metric) {
        Set-NetIPInterface @ipv4 -InterfaceMetric $Snapshot.metric
    }
    if (@('Public', 'Private') -notcontains $Snapshot.category) { return }
    foreach ($found in Get-NetConnectionProfile @at -ErrorAction SilentlyContinue) {
        if ($found.NetworkCategory.ToString() -ne $Snapshot.category) { Set-NetConnectionProfile @at -NetworkCategory $Snapshot.category }
    }
}

function Restore-Link {
    param($Snapshot, [int]$Index)
    $physical = @(Find-PhysicalAdapter $Snapshot.mac)
    if ($Snapshot.vlan -ne '' -and (Read-Vlan $physical) -ne $Snapshot.vlan) {
        Set-NetAdapterAdvancedProperty -Name $physical -RegistryKeyword 'VlanID' -RegistryValue $Snapshot.vlan
    }
    foreach ($adapter in Get-NetAdapter -InterfaceIndex $Index -IncludeHidden) {
        $bound = @{ Name = $adapter.Name; ComponentID = 'ms_tcpip6' }
        foreach ($binding in Get-NetAdapterBinding @bound -ErrorAction SilentlyContinue) {
            if ([bool]$binding.Enabled -ne $Snapshot.ipv6) { Set-NetAdapterBinding @bound -Enabled $Snapshot.ipv6 }
        }
    }
    foreach ($address in $Snapshot.addresses_v6) {
        if (Find-Address $address.ip) { continue }
        [void](New-NetIPAddress -InterfaceIndex $Index -IPAddress $address.ip -PrefixLength $address.prefix_length)
    }
}

function Restore-Route {
    param($Snapshot, [int]$Index)
    foreach ($route in $Snapshot.routes) {
        # On DHCP the default route comes back with the lease.
        if (-not $Snapshot.static -and $route.prefix -eq '0.0.0.0/0') { continue }
        if (Get-NetRoute -DestinationPrefix $route.prefix -ErrorAction SilentlyContinue | Where-Object { $_.NextHop -eq $route.next_hop }) { continue }
        $wanted = @{ DestinationPrefix = $route.prefix; InterfaceIndex = $Index; NextHop = $route.next_hop; RouteMetric = $route.metric }
        if (-not $route.persistent) { $wanted.PolicyStore = 'ActiveStore' }
        [void](New-NetRoute @wanted)
    }
}
