# SUMMARY Creates and repairs the HNS networks that winboot makes itself, in a detached run.
# These are networks that no agent makes, and the first switch of Azure CNI.

function New-PodNetwork {
    # Makes the network and the host's endpoint in it, or corrects them, and waits until both are as wanted.
    param([hashtable]$Wanted, [int]$Seconds)
    [void](Wait-NodeAddress)
    if (Test-WrongNetwork -Wanted $Wanted) {
        Remove-PodNetwork -Name $Wanted.name
        [void](New-HnsObject -Kind networks -Request (New-NetworkRequest -Wanted $Wanted -Uplink $script:Run.Carrier))
    }
    if ($Wanted.endpoint -ne '') { Set-HostEndpoint -Wanted $Wanted }
    Wait-PodNetwork -Wanted $Wanted -Seconds $Seconds
}

function New-NetworkRequest {
    # The request by which HNS makes the wanted network on the adapter Uplink.
    param([hashtable]$Wanted, [string]$Uplink)
    $subnets = foreach ($subnet in $Wanted.subnets) {
        $one = @{
            AddressPrefix  = Assert-Known -Text $subnet.prefix
            GatewayAddress = Assert-Known -Text $subnet.gateway
        }
        if ($Wanted.vni -ne 0) { $one.Policies = @(@{ Type = 'VSID'; VSID = $Wanted.vni }) }
        $one
    }
    @{ Name = $Wanted.name; Type = $Wanted.type; NetworkAdapterName = $Uplink; Subnets = @($subnets) }
}

function Set-HostEndpoint {
    # The host's endpoint in the pod network. It gets no gateway: the host has its own way out.
    param([hashtable]$Wanted)
    Wait-ManagementAddress -Wanted $Wanted
    $network = @(Get-HnsObject -Kind networks -Name $Wanted.name)[0]
    $address = Assert-Known -Text '<<pod_endpoint>>'
    $endpoint = $null
    foreach ($found in Get-HnsObject -Kind endpoints -Name $Wanted.endpoint) {
        if ($found.IPAddress -eq $address -and $found.VirtualNetwork -eq $network.ID) { $endpoint = $found; continue }
        Remove-HnsObject -Kind endpoints -Id $found.ID
    }
    if ($null -eq $endpoint) {
        $request = @{ Name = $Wanted.endpoint; VirtualNetwork = $network.ID; IPAddress = $address; GatewayAddress = '0.0.0.0' }
        if ($Wanted.endpoint_v6 -ne '') {
            $request.IPv6Address = Assert-Known -Text $Wanted.endpoint_v6
            $request.GatewayAddressV6 = '::'
        }
        $endpoint = New-HnsObject -Kind endpoints -Request $request
    }
    Connect-HostEndpoint -Id $endpoint.ID -Address $address
}

function Connect-HostEndpoint {
    # Attaches an endpoint to the host. HNS refuses for some seconds after it made the network, or attaches and says that
    # it had been: flanneld tries again, too (flannel hostgw_windows.go; flannel-io/flannel#1112, #1391). Done is what
    # gives the host the address.
    param([string]$Id, [string]$Address)
    # Compartment 1 is the host's own.
    $hostSystem = @{ SystemType = 'Host'; CompartmentId = 1 }
    $attached = {
        if (Find-Address -Ip $Address) { return $true }
        try { [void](Invoke-HnsRequest -Method POST -Path "/endpoints/$Id/attach" -Request $hostSystem) }
        catch [InvalidOperationException] { return $false }
        $true
    }
    if (Wait-Until -Test $attached -Seconds 15) { return }
    # Once more, for its reason.
    [void](Invoke-HnsRequest -Method POST -Path "/endpoints/$Id/attach" -Request $hostSystem)
}

function Wait-ManagementAddress {
    # Waits until HNS has noted the machine's address in a new network: before that it refuses endpoints (flanneld waits,
    # too). Where it never does, the look after it says so.
    param([hashtable]$Wanted)
    $known = {
        Restore-Uplink
        $networks = @(Get-HnsObject -Kind networks -Name $Wanted.name)
        $networks.Count -gt 0 -and "$(Read-Member -Object $networks[0] -Names 'ManagementIP')" -ne ''
    }
    [void](Wait-Until -Test $known -Seconds 30)
}

function Restart-HnsService {
    # Restarts HNS, which reads the values below its State key when it starts. Returns nothing. Its process may serve
    # others too: it is not waited for.
    Restart-Service -Name 'hns' -Force
    Wait-ServiceState -Name 'hns' -State 'Running' -Seconds 60
}

function Repair-PodNetwork {
    # At the start of the machine: restores the network parts that the restart removed. No session is open yet.
    param([hashtable]$Wanted, [object]$Guard, [int]$Seconds)
    # One that this step never made is not the startup's business.
    if (-not (Test-FormerValue)) { return }
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    # What belongs to the network is known once the kubelet's credentials get an answer from the API server.
    while ($null -eq (Expand-Known -Text $Wanted.subnets[0].prefix)) {
        if ([DateTime]::UtcNow -gt $until) { return }
        Start-Sleep -Seconds 5
        $script:Run.Cache = @{}
    }
    while (-not (Test-PodNetwork -Wanted $Wanted)) {
        # A run that works on this machine now may be about to make the network itself: looked at again after each wait.
        $lock = Wait-Mutex -Seconds 10
        $script:Run.Cache = @{}
        if ($lock) {
            try {
                if (-not (Test-PodNetwork -Wanted $Wanted)) { Invoke-GuardedRepair -Wanted $Wanted -Guard $Guard }
                return
            }
            # HNS refuses at times what it does a moment later, right after a start above all.
            catch [InvalidOperationException], [Runtime.InteropServices.COMException] { if ([DateTime]::UtcNow -gt $until) { throw } }
            finally { Exit-Run -Lock $lock }
            Start-Sleep -Seconds 10
            continue
        }
        if ([DateTime]::UtcNow -gt $until) {
            Stop-Step -Id 'MachineHeld' -Message "the pod network is not as wanted, and $(Get-HolderText) has not let go for $Seconds seconds"
        }
    }
}

function Invoke-GuardedRepair {
    # Makes the network at the start of the machine. Returns nothing. As the detached run does it: what the machine
    # loses by it is put back, or the network goes again.
    param([hashtable]$Wanted, [object]$Guard)
    $snapshot = Get-CurrentSnapshot
    $snapshot.node = Get-NodeAddress
    $snapshot.reached = @()
    $snapshot.networks = @(Get-HnsObject -Kind networks | ForEach-Object { $_.ID })
    $script:Run['Snapshot'] = $snapshot
    try {
        New-PodNetwork -Wanted $Wanted -Seconds 120
        Enable-Forwarding -Wanted $Wanted
    }
    finally {
        if (Wait-Network -Snapshot $snapshot) {
            Undo-Rewiring -Guard $Guard -Snapshot $snapshot
            [void](Wait-Network -Snapshot $snapshot)
        }
        Save-NetworkRecord
    }
}
