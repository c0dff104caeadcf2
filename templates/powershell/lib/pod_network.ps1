# The network that pods are on: an HNS network, the host's own endpoint in it, and forwarding between the two.
# Wanted is a table: name, type, endpoint (or an empty text), subnet_env (or an empty text), agent (or an empty text).

function Get-PodNetworkDifference {
    # How the pod network differs from what the node's pod CIDR asks for.
    param([hashtable]$Wanted, [hashtable]$Source)
    $known = Get-Known -Source $Source
    $networks = @(Get-HnsObject -Kind networks -Name $Wanted.name)
    $what = 'HNS network {0}' -f $Wanted.name
    if ($networks.Count -ne 1) {
        $is = $null
        if ($networks.Count -gt 1) { $is = '{0} of that name' -f $networks.Count }
        New-Difference -What $what -Is $is -Want $Wanted.type -Disrupts
    }
    else { Get-NetworkFault -Network $networks[0] -Wanted $Wanted -Known $known -What $what }
    if ($Wanted.endpoint -ne '') { Get-HostEndpointDifference -Wanted $Wanted -Known $known }
    if ($Wanted.subnet_env -ne '') { Get-SubnetFileDifference -Path $Wanted.subnet_env -Known $known }
}

function Get-NetworkFault {
    # A network that exists but is not the one: pods on it lose their endpoints when it is made anew.
    param([object]$Network, [hashtable]$Wanted, [hashtable]$Known, [string]$What)
    $subnet = @($Network.Subnets)[0]
    $prefix = Read-Member $subnet 'AddressPrefix'
    Compare-Wanted -What ($What + ': type') -Is $Network.Type -Want $Wanted.type -Disrupts -Disturbs
    Compare-Known -What ($What + ': subnet') -Is $prefix -Known $Known -Name 'pod_cidr'
    Compare-Known -What ($What + ': gateway') -Is (Read-Member $subnet 'GatewayAddress') -Known $Known -Name 'pod_gateway'
    Compare-Known -What ($What + ': management address') -Is (Read-Member $Network 'ManagementIP') -Known $Known -Name 'node_ip'
    if ($Wanted.vni -ne 0) {
        $vni = @(Read-Member $Network 'Subnets' | ForEach-Object { Read-Member $_ 'Policies' } | ForEach-Object { $_ } |
                Where-Object { $_.Type -eq 'VSID' } | ForEach-Object { $_.VSID })
        Compare-Wanted -What ($What + ': VNI') -Is ($vni -join ', ') -Want ([string]$Wanted.vni) -Disrupts -Disturbs
    }
}

function Compare-Known {
    # Compares with a value of this machine, or says that it comes with the join.
    param([string]$What, [AllowNull()][object]$Is, [hashtable]$Known, [string]$Name)
    $want = '(known after join)'
    if ($Known.ContainsKey($Name)) { $want = $Known[$Name] }
    Compare-Wanted -What $What -Is $Is -Want $want -Disrupts -Disturbs
}

function Get-HostEndpointDifference {
    # The endpoint through which the host itself speaks to pods, its address on an interface, and forwarding.
    param([hashtable]$Wanted, [hashtable]$Known)
    $what = 'HNS endpoint {0}' -f $Wanted.endpoint
    $endpoints = @(Get-HnsObject -Kind endpoints -Name $Wanted.endpoint)
    $address = '(known after join)'
    if ($Known.ContainsKey('pod_endpoint')) { $address = $Known.pod_endpoint }
    $is = $null
    if ($endpoints.Count -gt 0) { $is = [string](Read-Member $endpoints[0] 'IPAddress') }
    Compare-Wanted -What $what -Is $is -Want $address -Disrupts
    if (-not $Known.ContainsKey('pod_endpoint') -or $null -eq $is) { return }
    $attached = @(Find-Address $address)
    if ($attached.Count -eq 0) { New-Difference -What ($what + ': attached to the host') -Is 'no' -Want 'yes' -Disrupts }
    foreach ($one in @($address, $Known.node_ip)) {
        $forwarding = Read-Forwarding -Address $one
        if ($null -eq $forwarding) { continue }
        Compare-Wanted -What ('forwarding on the interface of {0}' -f $one) -Is $forwarding -Want 'Enabled'
    }
}

function Read-Forwarding {
    # Enabled or Disabled on the interface that has an address; nothing when none has it.
    param([string]$Address)
    $found = @(Find-Address $Address)
    if ($found.Count -eq 0) { return }
    (Get-NetIPInterface -InterfaceIndex $found[0].InterfaceIndex -AddressFamily IPv4).Forwarding.ToString()
}

function Enable-Forwarding {
    # Turns forwarding on where it is off; nothing is interrupted by that.
    param([hashtable]$Source)
    $known = Get-Known -Source $Source
    foreach ($address in @($known.pod_endpoint, $known.node_ip)) {
        if ((Read-Forwarding -Address $address) -ne 'Disabled') { continue }
        $index = @(Get-NetIPAddress -IPAddress $address)[0].InterfaceIndex
        Save-FormerValue -Kind 'Forwarding' -Key ([string]$index) -Value @{ address = $address }
        Set-NetIPInterface -InterfaceIndex $index -AddressFamily IPv4 -Forwarding Enabled
    }
}

function Restore-Forwarding {
    param([object]$Former)
    $found = @(Find-Address $Former.address)
    if ($found.Count -gt 0) { Set-NetIPInterface -InterfaceIndex $found[0].InterfaceIndex -AddressFamily IPv4 -Forwarding Disabled }
}

function Get-SubnetFileDifference {
    # flanneld writes subnet.env when its network stands; its CNI plugin cannot work without.
    param([string]$Path, [hashtable]$Known)
    $is = $null
    $text = Read-FileText $Path
    if ($null -ne $text) {
        $match = [regex]::Match($text, '(?m)^FLANNEL_SUBNET=(\S+)')
        if ($match.Success) { $is = $match.Groups[1].Value }
    }
    $want = '(known after join)'
    if ($Known.ContainsKey('pod_cidr')) { $want = '{0}/{1}' -f $Known.pod_gateway, $Known.pod_cidr.Split('/')[1] }
    Compare-Wanted -What ('file {0}: subnet' -f $Path) -Is $is -Want $want -Disrupts
}

function Test-PodNetwork {
    # True when nothing is left that only a restart of the agent, or making the network anew, can mend.
    param([hashtable]$Wanted, [hashtable]$Source)
    @(Get-PodNetworkDifference -Wanted $Wanted -Source $Source | Where-Object { $_.disrupts }).Count -eq 0
}

function Start-NetworkAgent {
    # Starts the agent anew and waits until the network it makes is the wanted one. Runs detached: the adapter loses
    # its connections on the way.
    param([hashtable]$Wanted, [hashtable]$Source, [int]$TimeoutSeconds)
    Stop-RunningService -Name $Wanted.agent
    Start-CurrentService -Name $Wanted.agent
    Wait-PodNetwork -Wanted $Wanted -Source $Source -TimeoutSeconds $TimeoutSeconds
}

function Wait-PodNetwork {
    param([hashtable]$Wanted, [hashtable]$Source, [int]$TimeoutSeconds)
    $until = [DateTime]::UtcNow.AddSeconds($TimeoutSeconds)
    while ($true) {
        $script:Run.Cache = @{}
        $left = @(Get-PodNetworkDifference -Wanted $Wanted -Source $Source | Where-Object { $_.disrupts })
        if ($left.Count -eq 0) { return }
        if ([DateTime]::UtcNow -gt $until) {
            $names = @($left | ForEach-Object { '{0} is {1}' -f $_.what, $_.is }) -join '; '
            Stop-Step -Id 'NoPodNetwork' -Message ('after {0} seconds: {1}' -f $TimeoutSeconds, $names) `
                -Hint 'Read the log of the network agent. It needs the Node object with its pod CIDR, and a ready address on the adapter.'
        }
        Start-Sleep -Milliseconds 2000
    }
}
