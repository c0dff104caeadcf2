# SUMMARY Checks, starts and removes the pod network: HNS network, host endpoint, agent, forwarding.

function Get-PodNetworkDifference {
    # The HNS network, the host's endpoint and flannel's file, the first switch below, and an agent that is kept from starting.
    param([hashtable]$Wanted)
    $own = @(Get-HnsNetworkDifference -Wanted $Wanted -Key 'network')
    $own
    if ($Wanted.endpoint -ne '') { Get-HostEndpointDifference -Wanted $Wanted }
    if ($Wanted.subnet_env -ne '') { Get-SubnetFileDifference -Path $Wanted.subnet_env }
    # It chooses the adapter for the agent's network: where that is right, there is nothing to choose.
    if ($Wanted.first -and ($own | Where-Object { -not $_.unknown })) { Get-HnsNetworkDifference -Wanted $Wanted.first -Key 'first-switch' }
    if ($Wanted.agent -eq '') { return }
    foreach ($hold in Get-AgentHold) {
        New-Difference -Key 'agent:held' -What "service $($hold.agent): kept from starting" -Is $hold.why -Want $null
    }
}

function Get-HnsNetworkDifference {
    # One HNS network: that it is there once, and as wanted. Key is the first part of the differences' keys.
    param([hashtable]$Wanted, [string]$Key)
    $networks = @(Get-HnsObject -Kind networks -Name $Wanted.name)
    $what = "HNS network $($Wanted.name)"
    if ($networks.Count -eq 1) { Get-NetworkFault -Network $networks[0] -Wanted $Wanted -What $what -Key $Key; return }
    $is = if ($networks.Count -gt 1) { "$($networks.Count) of that name" }
    New-Difference -Key "${Key}:present" -What $what -Is $is -Want $Wanted.type -Disrupts
}

function Get-NetworkFault {
    # How a network that is there differs. Nothing where all is as wanted.
    param([object]$Network, [hashtable]$Wanted, [string]$What, [string]$Key)
    $flags = @{ Disrupts = $true; Disturbs = $true }
    Compare-Wanted -Key "${Key}:type" -What "${What}: type" -Is $Network.Type -Want $Wanted.type -IgnoreCase @flags
    # No packet travels on an empty network, so an existing one keeps its range.
    if (-not $Wanted.empty) { Get-SubnetFault -Network $Network -Wanted $Wanted -What $What -Key $Key }
    Compare-Wanted -Key "${Key}:adapter" -What "${What}: adapter" -Is (Get-CarrierName -Network $Network) -Want (Get-WantedCarrier) @flags
    Compare-Wanted -Key "${Key}:management-address" -What "${What}: management address" -Is (Get-ManagementAddress -Network $Network) `
        -Want (Complete-Text -Text '<<node_ip>>') -Unknown:(-not (Test-KnownText -Text '<<node_ip>>')) @flags
    if ($Wanted.vni -ne 0) {
        Compare-Wanted -Key "${Key}:vni" -What "${What}: VNI" -Is (Get-NetworkVni -Network $Network) -Want $Wanted.vni @flags
    }
}

function Get-SubnetFault {
    # How the subnets of a network that is there differ. Nothing where all are as wanted.
    param([object]$Network, [hashtable]$Wanted, [string]$What, [string]$Key)
    $is = @(Read-Item -Object $Network -Name 'Subnets' | ForEach-Object {
            "$(Read-Member -Object $_ -Names 'AddressPrefix') via $(Read-Member -Object $_ -Names 'GatewayAddress')"
        })
    $want = @($Wanted.subnets | ForEach-Object { Complete-Text -Text "$($_.prefix) via $($_.gateway)" })
    $unknown = @($Wanted.subnets | Where-Object { -not (Test-KnownText -Text "$($_.prefix) $($_.gateway)") }).Count -gt 0
    Compare-Wanted -Key "${Key}:subnets" -What "${What}: subnets" -Is $is -Want $want -Unknown:$unknown -IgnoreCase -Disrupts -Disturbs
}

function Get-ManagementAddress {
    # The address that HNS works with. On a bridge any other one of the same interface is as good: flanneld only finds the interface
    # by it (hostgw_windows.go, step 7). An overlay sends from it, so there it has to be the node's own.
    param([object]$Network)
    $is = "$(Read-Member -Object $Network -Names 'ManagementIP')"
    $node = Get-NodeAddress
    if ($Network.Type -ieq 'Overlay' -or -not $node -or $is -eq '') { return $is }
    if (Find-Address -Ip $is | Where-Object { $_.InterfaceIndex -eq $node.index -and (Test-UsableAddress -Address $_) }) {
        return $node.ip
    }
    $is
}

function Get-WantedCarrier {
    # The adapter that the node's address is on, below a switch if there is one.
    foreach ($address in Get-NodeAddress) {
        $name = Get-UplinkName -Address $address
        if ($name) { return [string]$name }
    }
    # While Windows moves the address it is nowhere.
    if ($script:Run.ContainsKey('Carrier')) { return $script:Run.Carrier }
    Get-UnknownText
}

function Get-CarrierName {
    # The present name of the adapter below a network. Nothing where its kind is on none. The name that HNS reports may be an old one:
    # it counts while that adapter carries a switch, else the management address leads to it.
    param([object]$Network)
    if (@('NAT', 'ICS', 'Internal') -contains $Network.Type) { return }
    $told = "$(Read-Member -Object $Network -Names 'NetworkAdapterName')"
    foreach ($adapter in Read-Adapter | Where-Object { $_.Name -eq $told }) {
        $name = Find-UplinkName -Index $adapter.ifIndex
        if (Test-SwitchBinding -Name $name) { return $name }
    }
    foreach ($found in Find-Address -Ip "$(Read-Member -Object $Network -Names 'ManagementIP')") {
        return (Find-UplinkName -Index $found.InterfaceIndex)
    }
    Get-WantedCarrier
}

function Get-NetworkVni {
    # The VNI of an overlay network as text.
    param([object]$Network)
    $policies = @(Read-Item -Object $Network -Name 'Subnets' | ForEach-Object { Read-Item -Object $_ -Name 'Policies' })
    @($policies | Where-Object { (Read-Member -Object $_ -Names 'Type') -eq 'VSID' } | ForEach-Object { $_.VSID }) -join ', '
}

function Get-HostEndpointDifference {
    # What differs of the host's own endpoint in the pod network.
    param([hashtable]$Wanted)
    $what = "HNS endpoint $($Wanted.endpoint)"
    $endpoints = @(Get-HnsObject -Kind endpoints -Name $Wanted.endpoint)
    $address = Complete-Text -Text '<<pod_endpoint>>'
    $is = if ($endpoints) { "$(Read-Member -Object $endpoints[0] -Names 'IPAddress')" }
    Compare-Wanted -Key 'endpoint:address' -What $what -Is $is -Want $address -Unknown:(-not (Test-KnownText -Text '<<pod_endpoint>>')) -Disrupts
    if ($is -ne $address) { return }
    if (-not (Find-Address -Ip $address)) {
        New-Difference -Key 'endpoint:attached' -What "${what}: attached to the host" -Is 'no' -Want 'yes' -Disrupts
    }
    foreach ($one in Get-ForwardingAddress -Wanted $Wanted) {
        foreach ($interface in Find-Interface -Address $one) {
            Compare-Wanted -Key "forwarding:$one" -What "forwarding on the interface of $one" -Is $interface.Forwarding.ToString() -Want 'Enabled'
        }
    }
}

function Get-ForwardingAddress {
    # The addresses whose interfaces have to forward packets to the pods. Returns nothing if none exists.
    param([hashtable]$Wanted)
    if ($Wanted.endpoint -eq '') { return }
    foreach ($text in @('<<pod_endpoint>>', '<<node_ip>>', $Wanted.endpoint_v6)) {
        $address = Expand-Known -Text $text
        if ($address) { $address }
    }
}

function Find-Interface {
    # The IP interfaces that have the address. Returns nothing if none exists.
    param([string]$Address)
    $family = Get-AddressFamily -Address $Address
    $on = @(Find-Address -Ip $Address | ForEach-Object { $_.InterfaceIndex })
    Get-Fact -Fact 'Interfaces' -Ask { Get-NetIPInterface -ErrorAction SilentlyContinue } |
        Where-Object { $on -contains $_.InterfaceIndex -and $_.AddressFamily.ToString() -eq $family }
}

function Get-AddressFamily {
    # IPv4 or IPv6.
    param([string]$Address)
    if ($Address.Contains(':')) { 'IPv6' } else { 'IPv4' }
}

function Enable-Forwarding {
    # Turns forwarding on where it is off (undone by Restore-Forwarding).
    param([hashtable]$Wanted)
    foreach ($address in Get-ForwardingAddress -Wanted $Wanted) {
        foreach ($interface in Find-Interface -Address $address) {
            if ($interface.Forwarding.ToString() -ne 'Disabled') { continue }
            Save-FormerValue -Kind 'Forwarding' -Key $address -Value @{ address = $address }
            Set-NetIPInterface -InterfaceIndex $interface.InterfaceIndex -AddressFamily $interface.AddressFamily -Forwarding Enabled
        }
    }
}

function Restore-Forwarding {
    # Turns forwarding off again.
    param([object]$Former)
    foreach ($interface in Find-Interface -Address $Former.address) {
        Set-NetIPInterface -InterfaceIndex $interface.InterfaceIndex -AddressFamily $interface.AddressFamily -Forwarding Disabled
    }
}

function Get-SubnetFileDifference {
    # A difference where flannel's file names another subnet than the Node has, or none.
    param([string]$Path)
    $match = [regex]::Match("$(Read-FileText -Path $Path)", '(?m)^FLANNEL_SUBNET=(\S+)')
    $is = if ($match.Success) { $match.Groups[1].Value }
    $known = Get-Known
    $want = $null
    if ($known.ContainsKey('pod_cidr')) { $want = "$($known.pod_gateway)/$($known.pod_cidr.Split('/')[1])" }
    Compare-Wanted -Key 'subnet-file' -What "file ${Path}: subnet" -Is $is -Want $want -Unknown:($null -eq $want) -Disrupts
}

function Test-PodNetwork {
    # Nothing is left that only making it again can correct.
    param([hashtable]$Wanted)
    -not (Get-PodNetworkDifference -Wanted $Wanted | Where-Object { $_.disrupts })
}

function Start-Rewiring {
    # Notes which networks were there before, and starts the guarded run.
    param([hashtable]$Wanted, [object]$Guard)
    Assert-Uplink -Wanted $Wanted
    foreach ($one in @($Wanted.first, $Wanted) | Where-Object { $_ }) {
        $existed = @(Get-HnsObject -Kind networks -Name $one.name).Count -gt 0
        Save-FormerValue -Kind 'PodNetwork' -Key $one.name -Value @{ name = $one.name; agent = $one.agent; existed = $existed }
    }
    # What its parts may take: the agent's end 120, load balancers and networks 180, an address 60, the first switch 180, the agent
    # and its network 240, and some air.
    Start-DetachedRun -Guard $Guard -Seconds 840
}

function Assert-Uplink {
    # Stops before anything is cut where the adapter cannot carry the network.
    param([hashtable]$Wanted)
    $address = Get-NodeAddress
    if (-not $address) { Stop-Step -Id 'NoAddress' -Message 'this machine has no address that a network can be made on' }
    $uplink = Get-UplinkName -Address $address
    Assert-SwitchableAdapter -Name $uplink
    $networks = @(Get-HnsObject -Kind networks)
    # A Hyper-V switch may have the name of its adapter, as those of HNS do.
    if ($address.alias -ne $uplink -and -not ($networks | Where-Object { (Get-CarrierName -Network $_) -eq $uplink })) {
        Stop-Step -Id 'AdapterRefused' -Message "the node's address is on $($address.alias), an interface of a Hyper-V switch that is not of HNS"
    }
    # Networks of one adapter share its switch.
    foreach ($other in $networks) {
        if ((Get-CarrierName -Network $other) -ne $uplink -or $other.Type -ieq $Wanted.type) { continue }
        # One of the wanted name and another type is made again, if winboot made it.
        if ($other.Name -eq $Wanted.name -and (Test-OwnNetwork -Name $other.Name)) { continue }
        Stop-Step -Id 'NetworkConflict' -Message "the HNS network $($other.Name) on $uplink is of type $($other.Type), and $($Wanted.name) on the same adapter cannot be of type $($Wanted.type)"
    }
}

function Test-OwnNetwork {
    # Whether this step made the HNS network: one of its name that was there before is another program's.
    param([string]$Name)
    @(Get-FormerLine | Where-Object { $_.kind -eq 'PodNetwork' -and $_.key -eq $Name -and -not $_.value.existed }).Count -gt 0
}

function Assert-SwitchableAdapter {
    # Stops the step where the adapter cannot carry a switch; returns nothing otherwise. HNS refuses the interface of a
    # Hyper-V switch (azure-container-networking, network_windows.go: "the hns calls fails if passed a vSwitch
    # interface"), and from Windows Server 2022 on Windows binds no switch to a team of the old kind (LBFO). The second
    # function of accelerated networking (SR-IOV) has no addresses, so the node's address is never on it.
    param([string]$Name)
    $kinds = @(Read-Adapter | Where-Object { $_.Name -eq $Name } | ForEach-Object { [string]$_.ComponentID })
    # The host's interface in a switch (azure-sdk-for-go, armazurestackhci, HciNicDetail).
    if ($kinds -contains 'vms_mp') {
        Stop-Step -Id 'AdapterRefused' -Message "the node's address is on $Name, an interface of a Hyper-V switch that is not of HNS"
    }
    if ($kinds -contains 'COMPOSITEBUS\MS_IMPLAT_MP' -and [Environment]::OSVersion.Version.Build -ge 20348) {
        Stop-Step -Id 'AdapterRefused' -Message "the node's address is on $Name, a team of the kind LBFO, which carries no switch on this Windows"
    }
}

function Get-UplinkName {
    # The adapter of an address, below a switch if there is one. Nothing where its interface is gone.
    param([object]$Address)
    Find-UplinkName -Index $Address.index
}

function Find-UplinkName {
    # The name of an interface, or of the adapter below its switch, which has its MAC address and is bound to a switch. People change
    # names, and Windows puts a number behind one that a hidden device has. Nothing where the interface is gone.
    param([int]$Index)
    $adapters = @(Read-Adapter)
    foreach ($own in $adapters | Where-Object { $_.ifIndex -eq $Index }) {
        foreach ($other in $adapters | Where-Object { $_.MacAddress -eq $own.MacAddress -and $_.ifIndex -ne $Index }) {
            if (Test-SwitchBinding -Name $other.Name) { return $other.Name }
        }
        return $own.Name
    }
}

function Test-SwitchBinding {
    # Whether an adapter is below a virtual switch: then the switch's protocol is bound to it (Microsoft's MSLab asks the same).
    param([string]$Name)
    $switched = Get-Fact -Fact 'Bindings' -Ask { Get-NetAdapterBinding -ComponentID 'vms_pp' -IncludeHidden -ErrorAction SilentlyContinue }
    @($switched | Where-Object { $_.Name -eq $Name -and $_.Enabled }).Count -gt 0
}

function Wait-RunningAgent {
    # Gives an agent that runs the time to correct its network by itself.
    param([hashtable]$Wanted, [int]$Seconds)
    $clear = {
        $script:Run.Cache = @{}
        (Get-ServiceState -Name $Wanted.agent) -ne 'Running' -or (Test-RestartNeed -Name $Wanted.agent) -or (Test-PodNetwork -Wanted $Wanted)
    }
    [void](Wait-Until -Test $clear -Seconds $Seconds -Pause 2000)
}

function Start-NetworkAgent {
    # Makes the first switch where there is one, on the adapter named, then lets the agent make its network with nothing to lose.
    param([hashtable]$Wanted, [int]$Seconds)
    Save-RestartNeed -Name 'kube-proxy'
    Disable-NetworkAgent -Name $Wanted.agent -Why 'a rewiring is under way'
    # The agent would keep one with the right subnet.
    if (Test-WrongNetwork -Wanted $Wanted) { Remove-PodNetwork -Name $Wanted.name }
    [void](Wait-NodeAddress)
    if ($Wanted.first) { New-PodNetwork -Wanted $Wanted.first -Seconds 120 }
    # Until this run has ended well the agent does not start by itself.
    Invoke-ServiceControl -Arguments @('config', $Wanted.agent, 'start=', 'demand')
    $from = Get-LogSize -Path $Wanted.log
    Start-CurrentService -Name $Wanted.agent
    Wait-PodNetwork -Wanted $Wanted -Seconds $Seconds -LogFrom $from
}

function Test-WrongNetwork {
    # Whether the HNS network itself is missing or wrong. While the API server is away, what it alone knows is not a fault.
    param([hashtable]$Wanted)
    @(Get-HnsNetworkDifference -Wanted $Wanted -Key 'network' | Where-Object { -not $_.unknown }).Count -gt 0
}

function Wait-NodeAddress {
    # Waits until the node's address is settled, or stops the step. HNS would take an unsettled address for good.
    $settled = {
        Restore-Uplink
        $address = Get-NodeAddress
        $script:Run['Settled'] = $address
        if ($null -eq $address -or $address.state -ne 'Preferred' -or $address.ip -like '169.254.*') { return $false }
        $name = Get-UplinkName -Address $address
        if ($name) { $script:Run['Carrier'] = $name }
        [bool]$name
    }
    if (Wait-Until -Test $settled -Seconds 60) { return $script:Run.Settled }
    Stop-Step -Id 'NoAddress' -Message ("this machine has no settled address after 60 seconds " + $script:Run['Trouble']).Trim()
}

function Restore-Uplink {
    # Puts back what the adapter lost while HNS works on it. Returns nothing. Put back at once, HNS still finds the
    # address.
    if ($script:Run.ContainsKey('Snapshot')) { [void](Invoke-NetworkRestore -Snapshot $script:Run.Snapshot) }
}

function Wait-PodNetwork {
    # Returns when the network is as wanted, or stops the step with what is missing, and what its agent said behind that byte of its log.
    param([hashtable]$Wanted, [int]$Seconds, [long]$LogFrom = 0)
    $stands = {
        Restore-Uplink
        $script:Run.Cache = @{}
        Assert-Carrier -Wanted $Wanted
        Test-PodNetwork -Wanted $Wanted
    }
    if (Wait-Until -Test $stands -Seconds $Seconds) { return }
    $left = @(Get-PodNetworkDifference -Wanted $Wanted | Where-Object { $_.disrupts } |
            ForEach-Object { "$($_.what) is $(if ($_.is) { $_.is } else { 'missing' })" })
    # It came about since the last try.
    if ($left.Count -eq 0) { return }
    $said = if ($Wanted.agent) { Get-LastWord -Name $Wanted.agent -Path $Wanted.log -From $LogFrom }
    Stop-Step -Id 'NoPodNetwork' -Message "not as wanted after $Seconds seconds: $($left -join '; ')$said"
}

function Assert-Carrier {
    # A network on another adapter than the node's has to go again at once: HNS picks one where an agent names none
    # (azure-container-networking, network_windows.go).
    param([hashtable]$Wanted)
    $carrier = Get-WantedCarrier
    foreach ($network in Get-HnsObject -Kind networks -Name $Wanted.name) {
        $is = Get-CarrierName -Network $network
        if ($is -ne $carrier) {
            Stop-Step -Id 'WrongAdapter' -Message "the HNS network $($Wanted.name) was made on $is, and the node's address is on $carrier"
        }
    }
}

function Remove-PodNetwork {
    # Removes an HNS network with the load balancers on it. Returns nothing. Load balancers go first: 17763.1554
    # requires it (AgentBaker, cleanupnetwork.ps1), and some builds hang the other way round.
    param([string]$Name)
    $networks = @(Get-HnsObject -Kind networks -Name $Name)
    if (-not $networks) { return }
    Assert-SwitchLeft -Networks $networks
    # kube-proxy writes its rules again only when it starts.
    Save-RestartNeed -Name 'kube-proxy'
    foreach ($list in Get-BalancerOn -Networks $networks) { Remove-HnsObject -Kind policylists -Id $list.ID }
    foreach ($network in $networks) { Remove-HnsObject -Kind networks -Id $network.ID }
}

function Get-BalancerOn {
    # The load balancers that name no endpoint of another network. Returns nothing if none exists.
    param([object[]]$Networks)
    $ids = @($Networks | ForEach-Object { $_.ID })
    $others = @(Get-HnsObject -Kind endpoints | Where-Object { $ids -notcontains $_.VirtualNetwork } | ForEach-Object { "/endpoints/$($_.ID)" })
    foreach ($list in Get-HnsObject -Kind policylists) {
        if (-not (Read-Item -Object $list -Name 'References' | Where-Object { $others -contains $_ })) { $list }
    }
}

function Assert-SwitchLeft {
    # Stops the step where these networks are the last on their adapter and it has no guard: with the last one the switch goes, and
    # with it the address. A guarded run has a snapshot.
    param([object[]]$Networks)
    if ($script:Run.ContainsKey('Snapshot')) { return }
    $ids = @($Networks | ForEach-Object { $_.ID })
    $carrier = Get-CarrierName -Network $Networks[0]
    # NAT and internal networks are on no adapter.
    if (-not $carrier) { return }
    foreach ($other in Get-HnsObject -Kind networks) {
        if ($ids -notcontains $other.ID -and (Get-CarrierName -Network $other) -eq $carrier) { return }
    }
    Stop-Step -Id 'LastNetwork' -Message "the HNS network $($Networks[0].Name) is the last one on ${carrier}: without it the address would go"
}

function Get-OwnNetwork {
    # The names of those networks of the step that are there and were not before winboot. Returns nothing if none exists.
    param([hashtable]$Wanted)
    $notes = @(Get-FormerLine | Where-Object { $_.kind -eq 'PodNetwork' -and -not $_.value.existed } | ForEach-Object { $_.key })
    foreach ($one in @($Wanted, $Wanted.first) | Where-Object { $_ }) {
        if ($notes -contains $one.name -and @(Get-HnsObject -Kind networks -Name $one.name).Count -gt 0) { $one.name }
    }
}

function Stop-PodNetwork {
    # The detached part of an undo: the agent would only make the network again.
    param([hashtable]$Wanted)
    # Disabled first: after a cut it would make the network again at the next start.
    Disable-NetworkAgent -Name $Wanted.agent -Why 'its network is being removed'
    foreach ($name in Get-OwnNetwork -Wanted $Wanted) { Remove-PodNetwork -Name $name }
}

function Restore-PodNetwork {
    # The network went with the detached run before; one that was there before winboot stays.
    param([object]$Former)
    if ($Former.existed) { return }
    if (-not (Get-HnsObject -Kind networks -Name $Former.name)) { return }
    Stop-Step -Id 'NetworkLeft' -Message "the HNS network $($Former.name) is still there"
}
