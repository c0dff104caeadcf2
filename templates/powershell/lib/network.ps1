# SUMMARY Reads the machine's own interfaces, and restores what a virtual switch took from them.

function Get-WayToServer {
    # The addresses of a connection to the API server; nothing without one. A look asks once.
    if ($script:Run.Mode -ne 'Look') { return (Connect-Server) }
    Get-Cached -Name 'WayToServer' -Read { Connect-Server }
}

function New-TcpClient {
    # A client that can connect to this address or name. In .NET Framework one without a family speaks IPv4 alone
    # (referencesource System/net/System/Net/Sockets/TCPClient.cs: "TcpClient() : this(AddressFamily.InterNetwork)").
    param([string]$Address)
    $family = if ($Address.Contains(':')) { 'InterNetworkV6' } else { 'InterNetwork' }
    [Net.Sockets.TcpClient]::new([Net.Sockets.AddressFamily]::$family)
}

function Connect-Server {
    # The same, looked up now, as texts. Nothing without a connection within 5 seconds. By TCP, because clouds drop ICMP.
    $client = New-TcpClient -Address $script:Node.server_host
    try {
        if (Test-TaskEnd -Task $client.ConnectAsync($script:Node.server_host, $script:Node.server_port) -Seconds 5) {
            [pscustomobject]@{
                own = $client.Client.LocalEndPoint.Address.ToString(); server = $client.Client.RemoteEndPoint.Address.ToString()
            }
        }
    }
    catch [AggregateException] { return }
    finally { $client.Close() }
}

function Find-Address {
    # The objects of one IP address; nothing where no interface has it.
    param([string]$Ip)
    if ($Ip -eq '') { return }
    $one = { Get-NetIPAddress -IPAddress $Ip -ErrorAction SilentlyContinue }
    Read-Address -Alone $one | Where-Object { $_.IPAddress -eq $Ip }
}

function Read-Address {
    # The address objects of all interfaces; nothing while they have none. Alone is the question of Get-Fact.
    param([scriptblock]$Alone)
    Get-Fact -Fact 'Addresses' -Ask { Get-NetIPAddress -ErrorAction SilentlyContinue } -Alone $Alone
}

function Read-Adapter {
    # All adapters, hidden ones too: a switch hides the adapter below it. Returns nothing if none exists.
    Get-Fact -Fact 'Adapters' -Ask { Get-NetAdapter -IncludeHidden }
}

function Read-Route {
    # All routes of this machine; nothing while it has none.
    Get-Fact -Fact 'Routes' -Ask { Get-NetRoute -ErrorAction SilentlyContinue }
}

function Test-SettledAddress {
    # Whether an interface has this address and uses it.
    param([string]$Ip)
    @(Find-Address -Ip $Ip | Where-Object { $_.AddressState.ToString() -eq 'Preferred' }).Count -gt 0
}

function Get-DefaultRoute {
    # The machine's own IPv4 default routes, the best one first. Returns nothing if none exists.
    @(Read-Route | Where-Object { $_.DestinationPrefix -eq '0.0.0.0/0' -and (Test-OwnRoute -Route $_) } |
            Sort-Object -Property { $_.RouteMetric + $_.InterfaceMetric })
}

function Test-OwnRoute {
    # False for a route that leads into a pod network. HNS gives the host's endpoint the subnet's gateway if its owner names none, as flanneld
    # (v0.27.4 hostgw_windows.go, expectedBridgeEndpoint; flannel-io/flannel#1763) and Calico do (projectcalico/calico#4664).
    param([object]$Route)
    -not ((Test-PodPrefix -Prefix "$($Route.NextHop)/128") -or (Test-HostEndpoint -Name $Route.InterfaceAlias))
}

function Get-NodeAddress {
    # The node's address with its interface, as a table; nothing where the machine has none. A look asks once.
    Get-Fact -Fact 'Address' -Ask { Find-NodeAddress }
}

function Find-NodeAddress {
    # That address, as it is now: the one given, else the one settled before a rewiring, else the one that reaches the API server,
    # else the one on the default route. Nothing where the machine has none.
    $ip = $script:Node.node_ip
    if (-not $ip) { $ip = Get-SettledIp }
    if (-not $ip) { $ip = Get-WayToServer | ForEach-Object { $_.own } | Where-Object { Test-OwnAddress -Ip $_ } }
    if (-not $ip) {
        $ip = @(Get-DefaultRoute | Select-Object -First 1 |
                ForEach-Object { Read-InterfaceAddress -Index $_.ifIndex } |
                Where-Object { $_.AddressFamily.ToString() -eq 'IPv4' } | ForEach-Object { $_.IPAddress })[0]
        if (-not $ip) { return }
    }
    foreach ($found in Find-Address -Ip $ip | Select-Object -First 1) {
        $adapter = @(Read-Adapter | Where-Object { $_.ifIndex -eq $found.InterfaceIndex })
        [pscustomobject]@{
            ip = $ip; prefix_length = [int]$found.PrefixLength; state = $found.AddressState.ToString()
            index = [int]$found.InterfaceIndex; alias = $found.InterfaceAlias; guid = [string]($adapter | ForEach-Object { $_.InterfaceGuid })
        }
    }
}

function Test-OwnAddress {
    # Whether an address is the machine's own: while its default route is gone, a connection may leave by the host's endpoint.
    param([string]$Ip)
    $found = @(Find-Address -Ip $Ip)
    $found.Count -gt 0 -and -not (Test-HostEndpoint -Name $found[0].InterfaceAlias -Addresses $found)
}

function Get-SettledIp {
    # The node's address while its adapter is rewired and another one may reach the server. Nothing outside of a rewiring.
    if (-not $script:Run.ContainsKey('Snapshot')) { return }
    foreach ($node in $script:Run.Snapshot['node']) {
        $leased = @($script:Run.Snapshot.adapters | Where-Object { $_.guid -eq $node.guid -and $_.dhcp } | ForEach-Object { Find-Successor -Was $_ } |
                ForEach-Object { Read-InterfaceAddress -Index $_ } | Where-Object { Test-UsableAddress -Address $_ } | ForEach-Object { $_.IPAddress })
        if ($leased.Count -eq 0 -or $leased -contains $node.ip) { return $node.ip }
        return $leased[0]
    }
}

function Get-OwnInterface {
    # The interfaces that carry the machine's own IPv4: not the loopback, not one that a switch took over, not the
    # host's endpoint in the pod network. Nothing while they are all missing.
    foreach ($interface in Get-NetIPInterface -AddressFamily IPv4 -ConnectionState Connected -ErrorAction SilentlyContinue) {
        $adapter = @(Get-NetAdapter -InterfaceIndex $interface.InterfaceIndex -IncludeHidden -ErrorAction SilentlyContinue)
        if ($adapter.Count -eq 0) { continue }
        $own = @(Read-InterfaceAddress -Index $interface.InterfaceIndex)
        if (Test-HostEndpoint -Name $adapter[0].Name -Addresses $own) { continue }
        [pscustomobject]@{ adapter = $adapter[0]; interface = $interface; addresses = $own }
    }
}

function Test-HostEndpoint {
    # Whether an interface is the host's endpoint in a pod network, which is HNS's: by an address of the pods', or, where pods share the
    # nodes' network, by the name of such endpoints (<network>_ep in flannel, SDN's scripts and here).
    param([string]$Name, [object[]]$Addresses = @())
    if ($Name -like 'vEthernet (*_ep)*') { return $true }
    @($Addresses | Where-Object { $_.AddressFamily.ToString() -eq 'IPv4' -and (Test-PodPrefix -Prefix "$($_.IPAddress)/32") }).Count -gt 0
}

function Read-InterfaceAddress {
    # All address objects of one interface. Nothing where it has none.
    param([int]$Index)
    $one = { Get-NetIPAddress -InterfaceIndex $Index -ErrorAction SilentlyContinue }
    Read-Address -Alone $one | Where-Object { $_.InterfaceIndex -eq $Index }
}

function Test-UsableAddress {
    # Whether an address object is one that others can reach the machine at.
    param([object]$Address)
    $Address.AddressFamily.ToString() -eq 'IPv4' -and $Address.AddressState.ToString() -eq 'Preferred' -and $Address.IPAddress -notlike '169.254.*'
}

function Read-NetworkSnapshot {
    # Each interface that is up with its addresses, routes, DNS servers, VLAN, metric and what else a switch can take from it; and which
    # others have the same MAC address. What a switch takes while it is read is not in it.
    $read = @(Get-OwnInterface | ForEach-Object { Read-InterfaceSnapshot -Own $_ })
    $adapters = @($read | Where-Object { Test-CarryingInterface -Guid $_.guid })
    foreach ($one in $adapters) {
        $one.siblings = @($adapters | Where-Object { $_.mac -eq $one.mac -and $_.guid -ne $one.guid } | ForEach-Object { $_.guid })
    }
    $ways = @(Get-DefaultRoute)
    foreach ($one in $adapters) { $one.way_out = @($ways | Where-Object { $_.InterfaceAlias -eq $one.name }).Count -gt 0 }
    @{ boot_id = (Get-BootId); adapters = $adapters }
}

function Read-InterfaceSnapshot {
    # One interface as a table, for JSON.
    param([object]$Own)
    $adapter = $Own.adapter
    $at = @{ InterfaceIndex = [int]$adapter.ifIndex }
    $category = @(Get-NetConnectionProfile @at -ErrorAction SilentlyContinue | ForEach-Object { $_.NetworkCategory.ToString() })
    $ipv6 = @{ Name = (ConvertTo-NamePattern -Name $adapter.Name); ComponentID = 'ms_tcpip6' }
    $bound = @(Get-NetAdapterBinding @ipv6 -ErrorAction SilentlyContinue | Where-Object { $_.Enabled })
    $identity = Read-InterfaceIdentity -Own $Own
    $identity.metric = [int]$Own.interface.InterfaceMetric
    $identity.auto_metric = $Own.interface.AutomaticMetric.ToString() -eq 'Enabled'
    $identity.mtu = [int]$Own.interface.NlMtu
    $identity.suffix = "$(Get-DnsClient @at -ErrorAction SilentlyContinue | ForEach-Object { $_.ConnectionSpecificSuffix })"
    $identity.category = "$($category | Select-Object -First 1)"
    $identity.vlan = "$(Read-Vlan -Names (Find-PhysicalAdapter -Mac $adapter.MacAddress))"
    $identity.ipv6 = $bound.Count -gt 0
    $identity
}

function Read-InterfaceIdentity {
    # Which interface it is, and the addresses, DNS servers and routes that were set on it.
    param([object]$Own)
    $guid = [string]$Own.adapter.InterfaceGuid
    $manual = @($Own.addresses | Where-Object { $_.PrefixOrigin.ToString() -eq 'Manual' })
    @{
        guid = $guid
        name = [string]$Own.adapter.Name
        mac = [string]$Own.adapter.MacAddress
        dhcp = $Own.interface.Dhcp.ToString() -eq 'Enabled'
        settled = @($Own.addresses | Where-Object { Test-UsableAddress -Address $_ }).Count -gt 0
        addresses = @($manual | ForEach-Object {
                @{
                    ip = $_.IPAddress; prefix_length = [int]$_.PrefixLength; skip_as_source = [bool]$_.SkipAsSource
                    settled = $_.AddressState.ToString() -eq 'Preferred'
                }
            })
        dns = @(Read-DnsServer -Guid $guid)
        routes = @(Read-KeptRoute -Index $Own.adapter.ifIndex)
    }
}

function Read-DnsServer {
    # The servers set by hand. DHCP's servers are in another value (DhcpNameServer), and Get-DnsClientServerAddress
    # mixes the two. Returns nothing if none exist.
    param([string]$Guid)
    foreach ($stack in @('Tcpip', 'Tcpip6')) {
        $servers = "$(Read-Registry -Path "SYSTEM\CurrentControlSet\Services\$stack\Parameters\Interfaces\$Guid" -Name 'NameServer')"
        $servers.Split([char[]]@(',', ' '), [StringSplitOptions]::RemoveEmptyEntries)
    }
}

function Find-PhysicalAdapter {
    # The hardware adapters with this MAC address, each as a pattern for -Name. Returns nothing if none exists.
    param([string]$Mac)
    @(Get-NetAdapter -IncludeHidden | Where-Object { $_.MacAddress -eq $Mac -and $_.HardwareInterface } |
            ForEach-Object { ConvertTo-NamePattern -Name $_.Name })
}

function ConvertTo-NamePattern {
    # A name for cmdlets that take patterns. WildcardPattern.Escape of Windows PowerShell leaves backticks as they are.
    param([string]$Name)
    $Name -replace '[`\[\]*?]', '`$0'
}

function Read-Vlan {
    # The VLAN id that the driver tags with, as text; empty where it has none. Names are patterns.
    param([string[]]$Names)
    if (-not $Names) { return '' }
    $found = @(Get-NetAdapterAdvancedProperty -Name $Names -RegistryKeyword 'VlanID' -ErrorAction SilentlyContinue)
    if (-not $found) { return '' }
    [string]@($found[0].RegistryValue)[0]
}

function Read-KeptRoute {
    # The routes of one interface that were set on it, each as a table. Returns nothing if none exists.
    param([int]$Index)
    # A persistent copy of another would outlive the program that set it.
    $stored = @(Get-NetRoute -InterfaceIndex $Index -PolicyStore PersistentStore -ErrorAction SilentlyContinue)
    $persistent = @($stored | ForEach-Object { "$($_.DestinationPrefix) $($_.NextHop)" })
    $routes = @($stored | Where-Object { $_.NextHop -like '*:*' })
    $routes += @(Get-NetRoute -InterfaceIndex $Index -AddressFamily IPv4 -ErrorAction SilentlyContinue)
    foreach ($route in $routes) {
        $prefix = $route.DestinationPrefix
        if ($route.NextHop -eq '0.0.0.0' -and $route.Protocol.ToString() -ne 'NetMgmt') { continue }
        if ($prefix -eq '255.255.255.255/32' -or $prefix -like '224.*' -or (Test-PodPrefix -Prefix $prefix)) { continue }
        # What came with a lease comes back with it.
        if ($route.Protocol.ToString() -eq 'Dhcp') { continue }
        @{
            prefix = $prefix; next_hop = $route.NextHop; metric = [int]$route.RouteMetric
            persistent = $persistent -contains "$prefix $($route.NextHop)"
        }
    }
}

function Test-PodPrefix {
    # Whether a prefix lies in networks that are the pods' alone.
    param([string]$Prefix)
    $base, $length = $Prefix.Split('/')
    foreach ($cidr in $script:Node.pod_cidrs) {
        if ([int]$length -ge [int]$cidr.Split('/')[1] -and (Test-CidrMember -Cidr $cidr -Address $base)) { return $true }
    }
    $false
}

function Find-Successor {
    # The index of the interface that carries today what this one carried: itself, else the one that took its MAC
    # address over. Returns nothing if none exists.
    param([object]$Was)
    foreach ($address in $Was.addresses) {
        foreach ($found in Find-Address -Ip $address.ip) { return [int]$found.InterfaceIndex }
    }
    # A physical adapter below a switch, a member of a team and the virtual function of accelerated networking have the same MAC and no
    # IP; interfaces of the same team or switch have it too, and are themselves.
    $others = @(Read-Noted -Was $Was -Name 'siblings')
    $usable = @(Get-NetAdapter -IncludeHidden | Where-Object {
            $_.MacAddress -eq $Was.mac -and $_.Status -eq 'Up' -and $others -notcontains [string]$_.InterfaceGuid -and
            (Get-NetIPInterface -InterfaceIndex $_.ifIndex -AddressFamily IPv4 -ErrorAction SilentlyContinue)
        })
    $base = Get-BaseName -Name $Was.name
    $order = { if ([string]$_.InterfaceGuid -eq $Was.guid) { 0 } elseif ((Get-BaseName -Name $_.Name) -eq $base) { 1 } else { 2 } }
    foreach ($adapter in $usable | Sort-Object -Property $order | Select-Object -First 1) { [int]$adapter.ifIndex }
}

function Read-Noted {
    # What a snapshot (a table) or a record (an object from JSON) has of an interface. Nothing where an older release made the record.
    param([object]$Was, [string]$Name)
    if ($Was -is [hashtable]) { $Was[$Name] } else { Read-Item -Object $Was -Name $Name }
}

function Get-BaseName {
    # The name that an adapter and its switch's interface share until a rename, as text: it only orders equal MAC addresses.
    param([string]$Name)
    $Name -replace '^vEthernet \((.+)\)( \d+)?$', '$1'
}

function Get-SuccessorGuid {
    # The GUIDs of the interfaces that carry today what those of a snapshot carried. Returns nothing if none exists.
    param([object[]]$Adapters)
    foreach ($was in $Adapters) {
        $index = Find-Successor -Was $was
        if ($null -ne $index) {
            Get-NetAdapter -InterfaceIndex $index -IncludeHidden -ErrorAction SilentlyContinue | ForEach-Object { [string]$_.InterfaceGuid }
        }
    }
}

function Invoke-NetworkRestore {
    # Puts back what the interfaces of a snapshot lost; returns whether it came to its end. An interface may go while this works on it
    # (a switch takes its IP from an adapter at any moment): then the next try finds what came in its place.
    param([object]$Snapshot)
    try {
        Restore-NetworkSnapshot -Snapshot $Snapshot
        $true
    }
    catch {
        $script:Run['Trouble'] = $_.Exception.GetBaseException().Message
        $false
    }
}

function Restore-NetworkSnapshot {
    # Puts back what the interfaces of a snapshot lost; each write is in the journal. Returns nothing. What fails while
    # Windows moves an address succeeds a moment later.
    param([object]$Snapshot)
    $script:Run['Trouble'] = ''
    foreach ($was in $Snapshot.adapters) {
        $index = Find-Successor -Was $was
        if ($null -ne $index) { Restore-Interface -Was $was -Index $index }
    }
}

function Restore-Interface {
    # Puts back what one interface lost. Returns nothing. Addresses first, then the ways out; one setting that cannot be
    # put back does not keep the others from it.
    param([object]$Was, [int]$Index)
    foreach ($address in $Was.addresses) {
        if (Find-Address -Ip $address.ip) { continue }
        Invoke-Restore -What "address $($address.ip)" -Index $Index -Write {
            $wanted = @{
                InterfaceIndex = $Index; IPAddress = $address.ip; PrefixLength = $address.prefix_length
                SkipAsSource = $address.skip_as_source
            }
            [void](New-NetIPAddress @wanted)
        }
    }
    Restore-InterfaceRoute -Was $Was -Index $Index
    Restore-NameServer -Was $Was -Index $Index
    Restore-Link -Was $Was -Index $Index
    Restore-InterfaceSetting -Was $Was -Index $Index
}

function Invoke-Restore {
    # One write of a restore: what it was about goes to the journal, what went wrong to the run's trouble.
    param([string]$What, [int]$Index, [scriptblock]$Write)
    $line = @{ event = 'network-restored'; what = $What; interface = $Index; problem = '' }
    try { & $Write }
    catch {
        $line.problem = $_.Exception.GetBaseException().Message
        $script:Run['Trouble'] = "${What}: $($line.problem)"
    }
    # It is tried again every few seconds: only what is new is reported.
    $key = "restore $What $($line.problem)"
    if ($line.problem -ne '' -and $script:Run.ContainsKey($key)) { return }
    $script:Run[$key] = $true
    [void](New-EventLine -Fields $line)
}

function Restore-InterfaceRoute {
    # Routes that are nowhere any more.
    param([object]$Was, [int]$Index)
    foreach ($route in $Was.routes) {
        if (Get-NetRoute -DestinationPrefix $route.prefix -ErrorAction SilentlyContinue | Where-Object { $_.NextHop -eq $route.next_hop }) {
            continue
        }
        $wanted = @{ DestinationPrefix = $route.prefix; InterfaceIndex = $Index; NextHop = $route.next_hop; RouteMetric = $route.metric }
        if (-not $route.persistent) { $wanted.PolicyStore = 'ActiveStore' }
        Invoke-Restore -What "route $($route.prefix) via $($route.next_hop)" -Index $Index -Write { [void](New-NetRoute @wanted) }
    }
}

function Restore-NameServer {
    # Puts back DNS servers that were set by hand, also next to DHCP, and the suffix. Returns nothing.
    param([object]$Was, [int]$Index)
    $at = @{ InterfaceIndex = $Index }
    $guid = @(Get-NetAdapter @at -IncludeHidden | ForEach-Object { [string]$_.InterfaceGuid })[0]
    $is = @(Read-DnsServer -Guid $guid) -join ' '
    if ($Was.dns -and $is -ne ($Was.dns -join ' ')) {
        Invoke-Restore -What "DNS servers $($Was.dns -join ', ')" -Index $Index -Write {
            Set-DnsClientServerAddress @at -ServerAddresses ([string[]]$Was.dns)
        }
    }
    $suffix = "$(Get-DnsClient @at -ErrorAction SilentlyContinue | ForEach-Object { $_.ConnectionSpecificSuffix })"
    if ($Was.suffix -ne '' -and $suffix -ne $Was.suffix) {
        Invoke-Restore -What "DNS suffix $($Was.suffix)" -Index $Index -Write { Set-DnsClient @at -ConnectionSpecificSuffix $Was.suffix }
    }
}

function Restore-Link {
    # The VLAN tag of the driver, and whether IPv6 is bound.
    param([object]$Was, [int]$Index)
    $physical = @(Find-PhysicalAdapter -Mac $Was.mac)
    if ($Was.vlan -ne '' -and (Read-Vlan -Names $physical) -ne $Was.vlan) {
        Invoke-Restore -What "VLAN $($Was.vlan)" -Index $Index -Write {
            Set-NetAdapterAdvancedProperty -Name $physical -RegistryKeyword 'VlanID' -RegistryValue $Was.vlan
        }
    }
    foreach ($adapter in Get-NetAdapter -InterfaceIndex $Index -IncludeHidden) {
        $bound = @{ Name = (ConvertTo-NamePattern -Name $adapter.Name); ComponentID = 'ms_tcpip6' }
        foreach ($binding in Get-NetAdapterBinding @bound -ErrorAction SilentlyContinue) {
            if ([bool]$binding.Enabled -ne $Was.ipv6) {
                Invoke-Restore -What "IPv6 $($Was.ipv6)" -Index $Index -Write { Set-NetAdapterBinding @bound -Enabled $Was.ipv6 }
            }
        }
    }
}

function Restore-InterfaceSetting {
    # Puts back metric, MTU and the network's category. Returns nothing.
    param([object]$Was, [int]$Index)
    $ipv4 = @{ InterfaceIndex = $Index; AddressFamily = 'IPv4' }
    $interface = @(Get-NetIPInterface @ipv4)[0]
    if (-not $Was.auto_metric -and [int]$interface.InterfaceMetric -ne $Was.metric) {
        Invoke-Restore -What "metric $($Was.metric)" -Index $Index -Write { Set-NetIPInterface @ipv4 -InterfaceMetric $Was.metric }
    }
    # A virtual adapter may not carry the jumbo frames of the one below it (9001 on AWS): then Windows refuses this one setting.
    if ([int]$interface.NlMtu -ne $Was.mtu) {
        Invoke-Restore -What "MTU $($Was.mtu)" -Index $Index -Write { Set-NetIPInterface @ipv4 -NlMtuBytes $Was.mtu }
    }
    if (@('Public', 'Private') -notcontains $Was.category) { return }
    foreach ($found in Get-NetConnectionProfile -InterfaceIndex $Index -ErrorAction SilentlyContinue) {
        if ($found.NetworkCategory.ToString() -eq $Was.category) { continue }
        Invoke-Restore -What "network category $($Was.category)" -Index $Index -Write {
            Set-NetConnectionProfile -InterfaceIndex $Index -NetworkCategory $Was.category
        }
    }
}
