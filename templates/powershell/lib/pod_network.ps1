function Get-PodNetworkDifference {
    param($Wanted)
    $networks = @(Get-HnsObject networks $Wanted.name)
    $what = "HNS network $($Wanted.name)"
    if ($networks.Count -eq 1) { Get-NetworkFault -Network $networks[0] -Wanted $Wanted -What $what }
    else {
        $is = if ($networks.Count -gt 1) { "$($networks.Count) of that name" }
        New-Difference -Key 'network:present' -What $what -Is $is -Want $Wanted.type -Disrupts
    }
    if ($Wanted.endpoint -ne '') { Get-HostEndpointDifference $Wanted }
    if ($Wanted.subnet_env -ne '') { Get-SubnetFileDifference $Wanted.subnet_env }
}

function Get-NetworkFault {
    param($Network, $Wanted, [string]$What)
    $flags = @{ Disrupts = $true; Disturbs = $true }
    Compare-Wanted -Key 'network:type' -What "${What}: type" -Is $Network.Type -Want $Wanted.type -IgnoreCase @flags
    $is = @(Read-Item $Network 'Subnets' | ForEach-Object { "$(Read-Member $_ 'AddressPrefix') via $(Read-Member $_ 'GatewayAddress')" })
    $want = @($Wanted.subnets | ForEach-Object { Complete-Text "$($_.prefix) via $($_.gateway)" })
    $unknown = @($Wanted.subnets | Where-Object { -not (Test-KnownText -Text "$($_.prefix) $($_.gateway)") }).Count -gt 0
    Compare-Wanted -Key 'network:subnets' -What "${What}: subnets" -Is $is -Want $want -Unknown:$unknown -IgnoreCase @flags
    Compare-Wanted -Key 'network:management-address' -What "${What}: management address" -Is (Read-Member $Network 'ManagementIP') `
        -Want (Complete-Text '<<node_ip>>') -Unknown:(-not (Test-KnownText -Text '<<node_ip>>')) @flags
    if ($Wanted.vni -ne 0) { Compare-Wanted -Key 'network:vni' -What "${What}: VNI" -Is (Get-NetworkVni $Network) -Want $Wanted.vni @flags }
}

function Get-NetworkVni {
    param($Network)
    $policies = @(Read-Item $Network 'Subnets' | ForEach-Object { Read-Item $_ 'Policies' })
    @($policies | Where-Object { (Read-Member $_ 'Type') -eq 'VSID' } | ForEach-Object { $_.VSID }) -join ', '
}

function Get-HostEndpointDifference {
    param($Wanted)
    $what = "HNS endpoint $($Wanted.endpoint)"
    $endpoints = @(Get-HnsObject endpoints $Wanted.endpoint)
    $address = Complete-Text '<<pod_endpoint>>'
    $is = if ($endpoints) { "$(Read-Member $endpoints[0] 'IPAddress')" }
    Compare-Wanted -Key 'endpoint:address' -What $what -Is $is -Want $address -Unknown:(-not (Test-KnownText -Text '<<pod_endpoint>>')) -Disrupts
    if ($is -ne $address) { return }
    if (-not (Find-Address $address)) { New-Difference -Key 'endpoint:attached' -What "${what}: attached to the host" -Is 'no' -Want 'yes' -Disrupts }
    foreach ($one in Get-ForwardingAddress $Wanted) {
        foreach ($interface in Find-Interface $one) {
            Compare-Wanted -Key "forwarding:$one" -What "forwarding on the interface of $one" -Is $interface.Forwarding.ToString() -Want 'Enabled'
        }
    }
}

function Get-ForwardingAddress {
    param($Wanted)
    if ($Wanted.endpoint -eq '') { return }
    foreach ($text in @('<<pod_endpoint>>', '<<node_ip>>', $Wanted.endpoint_v6)) {
        $address = Expand-Known $text
        if ($address) { $address }
    }
}

function Find-Interface {
    param([string]$Address)
    $family = Get-AddressFamily $Address
    foreach ($found in Find-Address $Address) { Get-NetIPInterface -InterfaceIndex $found.InterfaceIndex -AddressFamily $family }
}

function Get-AddressFamily {
    param([string]$Address)
    if ($Address.Contains(':')) { 'IPv6' } else { 'IPv4' }
}

function Enable-Forwarding {
    param($Wanted)
    foreach ($address in Get-ForwardingAddress $Wanted) {
        foreach ($interface in Find-Interface $address) {
            if ($interface.Forwarding.ToString() -ne 'Disabled') { continue }
            Save-FormerValue 'Forwarding' $address @{ address = $address }
            Set-NetIPInterface -InterfaceIndex $interface.InterfaceIndex -AddressFamily $interface.AddressFamily -Forwarding Enabled
        }
    }
}

function Restore-Forwarding {
    param([object]$Former)
    foreach ($interface in Find-Interface $Former.address) {
        Set-NetIPInterface -InterfaceIndex $interface.InterfaceIndex -AddressFamily $interface.AddressFamily -Forwarding Disabled
    }
}

function Get-SubnetFileDifference {
    param([string]$Path)
    $match = [regex]::Match("$(Read-FileText $Path)", '(?m)^FLANNEL_SUBNET=(\S+)')
    $is = if ($match.Success) { $match.Groups[1].Value }
    $known = Get-Known
    $want = $null
    if ($known.ContainsKey('pod_cidr')) { $want = "$($known.pod_gateway)/$($known.pod_cidr.Split('/')[1])" }
    Compare-Wanted -Key 'subnet-file' -What "file ${Path}: subnet" -Is $is -Want $want -Unknown:($null -eq $want) -Disrupts
}

function Test-PodNetwork {
    # Nothing is left that only making it anew can mend.
    param($Wanted)
    -not (Get-PodNetworkDifference $Wanted | Where-Object { $_.disrupts })
}

function Start-Rewiring {
    param($Wanted, $Guard)
    Assert-Uplink $Wanted
    $existed = @(Get-HnsObject networks $Wanted.name).Count -gt 0
    Save-FormerValue 'PodNetwork' $Wanted.name @{ name = $Wanted.name; agent = $Wanted.agent; existed = $existed }
    Start-DetachedRun -Guard $Guard
}

function Assert-Uplink {
    # Networks of one adapter share its switch.
    param($Wanted)
    $address = Get-NodeAddress
    if (-not $address) { Stop-Step 'NoAddress' 'this machine has no address that a network can be made on' }
    $uplink = Get-UplinkName $address
    foreach ($other in Get-HnsObject networks) {
        if ($other.Name -eq $Wanted.name -or (Read-Member $other 'NetworkAdapterName') -ne $uplink -or $other.Type -ieq $Wanted.type) { continue }
        Stop-Step 'NetworkConflict' "the HNS network $($other.Name) on $uplink is of type $($other.Type); $($Wanted.name) beside it cannot be of type $($Wanted.type)"
    }
}

function Get-UplinkName {
    # A switch's interface is named after the adapter below it.
    param($Address)
    if ($Address.alias -match '^vEthernet \((.+)\)$' -and (Get-NetAdapter -Name $Matches[1] -IncludeHidden -ErrorAction SilentlyContinue)) { return $Matches[1] }
    $Address.alias
}

function Wait-RunningAgent {
    param($Wanted, [int]$Seconds)
    $clear = {
        $script:Run.Cache = @{}
        (Get-ServiceState $Wanted.agent) -ne 'Running' -or (Test-RestartNeed $Wanted.agent) -or (Test-PodNetwork $Wanted)
    }
    [void](Wait-Until $clear -Seconds $Seconds -Pause 2000)
}

function Start-NetworkAgent {
    param($Wanted, [int]$Seconds)
    Save-RestartNeed 'kube-proxy'
    Stop-RunningService $Wanted.agent
    # The agent would keep one with the right subnet.
    if (Get-PodNetworkDifference $Wanted | Where-Object { $_.key -like 'network:*' }) { Remove-PodNetwork $Wanted.name }
    [void](Wait-NodeAddress)
    Start-CurrentService $Wanted.agent
    Wait-PodNetwork $Wanted -Seconds $Seconds
}

function Wait-NodeAddress {
    # HNS would take an unsettled address for good.
    $settled = {
        Restore-Uplink
        $address = Get-NodeAddress
        $null -ne $address -and $address.state -eq 'Preferred' -and $address.ip -notlike '169.254.*'
    }
    if (Wait-Until $settled -Seconds 60) { return (Get-NodeAddress) }
    Stop-Step 'NoAddress' ("this machine has no settled address after 60 seconds " + $script:Run['Trouble']).Trim()
}

function Restore-Uplink {
    # Put back at once, HNS still finds the address.
    if ($script:Run.ContainsKey('Snapshot')) { Restore-NetworkSnapshot $script:Run.Snapshot }
}

function Wait-PodNetwork {
    param($Wanted, [int]$Seconds)
    $stands = {
        Restore-Uplink
        $script:Run.Cache = @{}
        Test-PodNetwork $Wanted
    }
    if (Wait-Until $stands -Seconds $Seconds) { return }
    $left = @(Get-PodNetworkDifference $Wanted | Where-Object { $_.disrupts } | ForEach-Object { "$($_.what) is $(if ($_.is) { $_.is } else { 'missing' })" })
    Stop-Step 'NoPodNetwork' "not as wanted after $Seconds seconds: $($left -join '; ')"
}

function Remove-PodNetwork {
    # Load balancers go first: some builds hang the other way round.
    param([string]$Name)
    $networks = @(Get-HnsObject networks $Name)
    if (-not $networks) { return }
    # kube-proxy writes its rules again only when it starts.
    Save-RestartNeed 'kube-proxy'
    foreach ($list in Get-HnsObject policylists) { Remove-HnsObject policylists $list.ID }
    foreach ($network in $networks) { Remove-HnsObject networks $network.ID }
}

function Test-OwnNetwork {
    param([string]$Name)
    $notes = @(Get-FormerLine | Where-Object { $_.kind -eq 'PodNetwork' -and $_.key -eq $Name -and -not $_.value.existed })
    $notes.Count -gt 0 -and @(Get-HnsObject networks $Name).Count -gt 0
}

function Stop-PodNetwork {
    # The detached part of an undo: the agent would only make the network again.
    param($Wanted)
    if ($Wanted.agent -ne '') { Stop-RunningService $Wanted.agent }
    Remove-PodNetwork $Wanted.name
}

function Restore-PodNetwork {
    # The network went with the detached run before; one that was there before winboot stays.
    param([object]$Former)
    if ($Former.existed) { return }
    if (-not (Get-HnsObject networks $Former.name)) { return }
    Stop-Step 'NetworkLeft' "the HNS network $($Former.name) is still there"
}
