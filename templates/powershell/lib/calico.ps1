# SUMMARY Checks and resets Calico's HNS network and the host's endpoint in it.

function Get-CalicoDifference {
    # How Calico's HNS network and its endpoint differ from what is wanted. Wanted is a table: name, type and vni of the
    # HNS network, and the name of the endpoint.
    param([hashtable]$Wanted)
    $what = "HNS network $($Wanted.name)"
    $disrupts = Test-RestartDisruption -Name 'calico-node'
    $networks = @(Get-HnsObject -Kind networks -Name $Wanted.name)
    if (-not $networks) { New-Difference -Key 'network:present' -What $what -Is $null -Want $Wanted.type -Disrupts:$disrupts }
    else {
        Compare-Wanted -Key 'network:type' -What "${what}: type" -Is $networks[0].Type -Want $Wanted.type -IgnoreCase -Disrupts:$disrupts
        $vni = Get-NetworkVni -Network $networks[0]
        Compare-Wanted -Key 'network:vni' -What "${what}: VNI" -Is $vni -Want ([string]$Wanted.vni) -Disrupts:$disrupts
        Compare-Wanted -Key 'network:management-address' -What "${what}: management address" `
            -Is (Read-Member -Object $networks[0] -Names 'ManagementIP') -Want (Complete-Text -Text '<<node_ip>>') `
            -Unknown:(-not (Test-KnownText -Text '<<node_ip>>')) -Disrupts:$disrupts
    }
    Get-CalicoEndpointDifference -Wanted $Wanted -Disrupts:$disrupts
}

function Get-CalicoEndpointDifference {
    # What is otherwise with the agent's endpoint: its address, and that it is a remote one (the node's own address
    # behind it), which kube-proxy answers from.
    param([hashtable]$Wanted, [switch]$Disrupts)
    $what = "HNS endpoint $($Wanted.endpoint)"
    $address = Get-CalicoAddress -Wanted $Wanted
    $endpoints = @(Get-HnsObject -Kind endpoints -Name $Wanted.endpoint)
    $is = $null
    if ($endpoints.Count -gt 0) { $is = Read-Member -Object $endpoints[0] -Names 'IPAddress' }
    Compare-Wanted -Key 'endpoint:address' -What $what -Is $is -Want $address -Unknown:(-not $address) -Disrupts:$Disrupts
    if ($endpoints.Count -gt 0 -and -not (Test-RemoteEndpoint -Endpoint $endpoints[0])) {
        New-Difference -Key 'endpoint:kind' -What "${what}: kind" -Is 'of this host' -Want 'remote' -Disrupts:$Disrupts
    }
}

function Test-RemoteEndpoint {
    # Whether an endpoint represents something behind another address; Windows leaves the member out where it does not.
    param([object]$Endpoint)
    [bool](Read-Member -Object $Endpoint -Names 'IsRemoteEndpoint')
}

function Get-CalicoAddress {
    # The third address of the block that Calico's IPAM took for this node: the agent gives it to its endpoint. Nothing
    # while it has none.
    param([hashtable]$Wanted)
    foreach ($network in Get-HnsObject -Kind networks -Name $Wanted.name) {
        foreach ($subnet in Read-Item -Object $network -Name 'Subnets' | Select-Object -First 1) {
            return Get-CidrAddress -Cidr $subnet.AddressPrefix -Offset 2
        }
    }
}

function Start-Calico {
    # Starts the service and waits for what it makes first: the network, then the endpoint. Where one of them is not as
    # wanted the service begins again, which makes both again.
    param([hashtable]$Wanted, [string]$Service, [int]$Seconds)
    $wrong = {
        $script:Run.Cache = @{}
        Get-CalicoDifference -Wanted $Wanted
    }
    if (@(& $wrong).Count -gt 0) { Stop-RunningService -Name $Service }
    Remove-HostEndpoint -Wanted $Wanted
    $from = Get-LogSize -Path $Wanted.log
    Start-CurrentService -Name $Service
    if (-not (Wait-Until -Test { @(& $wrong).Count -eq 0 } -Seconds $Seconds -Pause 2000)) {
        $left = @(& $wrong | ForEach-Object { "$($_.what) is $(if ($_.is) { $_.is } else { 'missing' })" })
        $said = Get-LastWord -Name $Service -Path $Wanted.log -From $from
        Stop-Step -Id 'NoPodNetwork' -Message "not as wanted after $Seconds seconds: $($left -join '; ')$said"
    }
    $script:Run.Cache = @{}
}

function Remove-HostEndpoint {
    # Takes away an endpoint of the agent's name that is not the agent's: it would keep one with its name and network.
    param([hashtable]$Wanted)
    foreach ($endpoint in Get-HnsObject -Kind endpoints -Name $Wanted.endpoint) {
        if (-not (Test-RemoteEndpoint -Endpoint $endpoint)) { Remove-HnsObject -Kind endpoints -Id $endpoint.ID }
    }
}

function Reset-CalicoNetwork {
    # At the start of the machine: the network goes and the agent makes it again, because HNS does not say what of it
    # came through the restart (Calico's node-service.ps1: "the HNS networks will be in unknown state"). Calico takes
    # every network away; here the first switch stays, so the adapter is not rewired unwatched.
    param([hashtable]$Wanted, [string]$Service)
    if (@(Get-HnsObject -Kind networks -Name $Wanted.name).Count -eq 0) { return }
    if (Test-LateWithPod -Network $Wanted.name -Own $Wanted.endpoint) { return }
    # No pod may start on a network that is about to go. Stopping the kubelet stops what depends on it as well.
    $running = @(@('kubelet', $Service, 'kube-proxy') | Where-Object { (Get-ServiceState -Name $_) -eq 'Running' })
    Stop-RunningService -Name 'kubelet'
    Remove-PodNetwork -Name $Wanted.name
    foreach ($name in $running) { Start-CurrentService -Name $name }
}

function Save-FormerCalicoNetwork {
    # Notes whether the network was there before winboot's service, which makes it.
    param([string]$Name)
    $existed = @(Get-HnsObject -Kind networks -Name $Name).Count -gt 0
    Save-FormerValue -Kind 'CalicoNetwork' -Key $Name -Value @{ name = $Name; existed = $existed }
}

function Restore-CalicoNetwork {
    # The service is gone by now, and the switch below stays.
    param([object]$Former)
    if (-not $Former.existed) { Remove-PodNetwork -Name $Former.name }
}
