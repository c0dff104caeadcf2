# The network that Calico's agent makes, and the host's endpoint in it.

function Get-CalicoDifference {
    # Wanted is a table: name, type and vni of the HNS network, and the name of the endpoint.
    param($Wanted)
    $what = "HNS network $($Wanted.name)"
    $disrupts = Test-RestartDisruption 'calico-node'
    $networks = @(Get-HnsObject networks $Wanted.name)
    if (-not $networks) { New-Difference -What $what -Is $null -Want $Wanted.type -Disrupts:$disrupts }
    else {
        Compare-Wanted -What "${what}: type" -Is $networks[0].Type -Want $Wanted.type -IgnoreCase -Disrupts:$disrupts
        Compare-Wanted -What "${what}: VNI" -Is (Get-NetworkVni $networks[0]) -Want ([string]$Wanted.vni) -Disrupts:$disrupts
        Compare-Wanted -What "${what}: management address" -Is (Read-Member $networks[0] 'ManagementIP') `
            -Want (Complete-Text '<<node_ip>>') -Disrupts:$disrupts
    }
    $address = Get-CalicoAddress $Wanted
    $want = '(known after join)'
    if ($address) { $want = $address }
    $is = @(Get-HnsObject endpoints $Wanted.endpoint | ForEach-Object { [string]$_.IPAddress })
    Compare-Wanted -What "HNS endpoint $($Wanted.endpoint)" -Is ($is | Select-Object -First 1) -Want $want
}

function Get-CalicoAddress {
    # Calico takes a block of its own for the node, and keeps its first three addresses for Windows.
    param($Wanted)
    foreach ($network in Get-HnsObject networks $Wanted.name) {
        foreach ($subnet in Read-Item $network 'Subnets' | Select-Object -First 1) { return Get-CidrAddress $subnet.AddressPrefix 2 }
    }
}

function Start-Calico {
    # The first thing the service does is to make the network, or to make it anew where it is wrong.
    param($Wanted, [string]$Service, [int]$Seconds)
    $wrong = {
        $script:Run.Cache = @{}
        Get-CalicoDifference $Wanted | Where-Object { $_.what -like 'HNS network *' }
    }
    Save-FormerValue 'CalicoNetwork' $Wanted.name @{ name = $Wanted.name; existed = @(Get-HnsObject networks $Wanted.name).Count -gt 0 }
    if (@(& $wrong).Count -gt 0) { Stop-RunningService $Service }
    Start-CurrentService $Service
    if (-not (Wait-Until { @(& $wrong).Count -eq 0 } -Seconds $Seconds -Pause 2000)) {
        $left = @(& $wrong | ForEach-Object { "$($_.what) is $($_.is)" }) -join '; '
        Stop-Step 'NoPodNetwork' "not as wanted after $Seconds seconds: $left"
    }
    Set-CalicoEndpoint $Wanted
    $script:Run.Cache = @{}
}

function Set-CalicoEndpoint {
    # Calico's plug-in makes it with the first pod, and keeps one that is as it would make it. kube-proxy needs it before.
    param($Wanted)
    $address = Get-CalicoAddress $Wanted
    $network = @(Get-HnsObject networks $Wanted.name)[0]
    foreach ($found in Get-HnsObject endpoints $Wanted.endpoint) {
        if ($found.IPAddress -eq $address -and $found.VirtualNetwork -eq $network.ID) { return }
        Remove-HnsObject endpoints $found.ID
    }
    $endpoint = New-HnsObject endpoints @{
        Name = $Wanted.endpoint; VirtualNetwork = $network.ID; IPAddress = $address; GatewayAddress = '0.0.0.0'
        Policies = @(@{ Type = 'PA'; PA = $network.ManagementIP })
    }
    # Compartment 1 is the host's own.
    [void](Invoke-HnsRequest POST "/endpoints/$($endpoint.ID)/attach" -Request @{ SystemType = 'Host'; CompartmentId = 1 })
}

function Restore-CalicoNetwork {
    # The service is gone by now, and the switch below stays.
    param([object]$Former)
    if (-not $Former.existed) { Remove-PodNetwork $Former.name }
}
