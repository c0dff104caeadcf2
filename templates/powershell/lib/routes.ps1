# SUMMARY Sets routes to the pods of other nodes, from their Node objects.
# A route needs pod network and address of each. They are as current as
# the last run; nodes that come later are known from the next one on.

function Read-OtherNode {
    # The other nodes of the cluster: name, pod networks and addresses. Returns nothing if none exists.
    if ($null -eq (Get-NodeObject)) { return }
    $columns = '{range .items[*]}{.metadata.name}{"\t"}{.spec.podCIDRs[*]}{"\t"}{.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}'
    # Its cache of API groups would stay in the user's profile. In a folder of its own, since others may write where SYSTEM's is.
    $cache = [IO.Path]::Combine([IO.Path]::GetTempPath(), "winboot-kubectl-$([Guid]::NewGuid().ToString('N'))")
    New-ClosedFolder -Path $cache
    try {
        $ended = Invoke-Kubectl -Seconds 60 -Arguments @('--request-timeout=30s', "--cache-dir=$cache", 'get', 'nodes',
            "--output=jsonpath=$columns")
    }
    finally { if ([IO.Directory]::Exists($cache)) { [IO.Directory]::Delete($cache, $true) } }
    if ($ended.ExitCode -ne 0) {
        Stop-Step -Id 'NodesForbidden' -Message "the nodes of the cluster cannot be listed: $($ended.ErrorOutput.Trim())"
    }
    foreach ($line in @($ended.Output -split '\r?\n')) {
        $name, $cidrs, $addresses = $line.Split("`t")
        if (-not $name -or $name -eq $script:Node.node -or -not $cidrs) { continue }
        @{ name = $name; cidrs = $cidrs.Split(' '); addresses = ([string]$addresses).Split(' ') }
    }
}

function Get-WantedRoute {
    # One route per pod network of another node: prefix, next hop, and whether that is a neighbour. Returns nothing if
    # none exists.
    $subnet = Expand-Known -Text '<<node_subnet>>'
    foreach ($node in Read-OtherNode) {
        foreach ($cidr in $node.cidrs) {
            $family = Get-AddressFamily -Address $cidr
            $hop = @($node.addresses | Where-Object { $_ -and (Get-AddressFamily -Address $_) -eq $family } | Select-Object -First 1)
            if ($hop.Count -eq 0) { continue }
            $near = $family -eq 'IPv6' -or ($null -ne $subnet -and (Test-CidrMember -Cidr $subnet -Address $hop[0]))
            @{ prefix = $cidr; hop = $hop[0]; near = $near; node = $node.name }
        }
    }
}

function Read-PodRoute {
    # The routes of this machine that lead to networks of pods. Returns nothing if none exists.
    foreach ($route in Read-Route) {
        if (@('0.0.0.0', '::') -notcontains $route.NextHop -and (Test-PodPrefix -Prefix $route.DestinationPrefix)) { $route }
    }
}

function Get-PodRouteDifference {
    # The routes that are missing or lead elsewhere.
    if ($null -eq (Get-NodeObject)) {
        New-Difference -Key 'routes' -What 'routes to the pods of other nodes' -Unknown
        return
    }
    $is = @{}
    foreach ($route in Read-PodRoute) { $is[$route.DestinationPrefix] = 'via ' + $route.NextHop }
    foreach ($route in Get-WantedRoute) {
        $what = "route to $($route.prefix)"
        $found = $is[$route.prefix]
        $is.Remove($route.prefix)
        if ($route.near) { Compare-Wanted -Key "route:$($route.prefix)" -What $what -Is $found -Want ('via ' + $route.hop) }
        elseif ($null -eq $found) {
            # A machine behind a router cannot be a next hop; that router has to know the way.
            $want = "by a router: $($route.node) is in another network"
            New-Difference -Key "route:$($route.prefix)" -What $what -Is $null -Want $want -Policy
        }
    }
    foreach ($prefix in $is.Keys | Sort-Object) {
        New-Difference -Key "route:$prefix" -What "route to $prefix" -Is $is[$prefix] -Want $null
    }
}

function Set-PodRoute {
    # Removes wrong routes and adds those that are missing. It first notes what another owner had set for a prefix.
    $wanted = @{}
    foreach ($route in Get-WantedRoute) { $wanted[$route.prefix] = $route }
    foreach ($route in Read-PodRoute) {
        $right = $wanted[$route.DestinationPrefix]
        if ($null -ne $right -and ($right.hop -eq $route.NextHop -or -not $right.near)) { $wanted.Remove($route.DestinationPrefix) }
        else {
            # A prefix with a note is winboot's, or was another owner's before: the first note holds.
            Save-FormerValue -Kind 'PodRoute' -Key $route.DestinationPrefix -Value @{
                prefix = $route.DestinationPrefix; hop = $route.NextHop; alias = $route.InterfaceAlias; metric = $route.RouteMetric
            }
            Remove-NetRoute -DestinationPrefix $route.DestinationPrefix -NextHop $route.NextHop -Confirm:$false
        }
    }
    $index = @(Find-Address -Ip (Assert-Known -Text '<<node_ip>>'))[0].InterfaceIndex
    foreach ($route in $wanted.Values | Where-Object { $_.near }) {
        Save-FormerValue -Kind 'PodRoute' -Key $route.prefix -Value @{ prefix = $route.prefix }
        [void](New-NetRoute -DestinationPrefix $route.prefix -InterfaceIndex $index -NextHop $route.hop)
    }
}

function Restore-PodRoute {
    # Takes winboot's route of a prefix away, and sets the one that was there before where there was one.
    param([object]$Former)
    foreach ($route in Get-NetRoute -DestinationPrefix $Former.prefix -ErrorAction SilentlyContinue) {
        if (@('0.0.0.0', '::') -contains $route.NextHop) { continue }
        Remove-NetRoute -DestinationPrefix $route.DestinationPrefix -NextHop $route.NextHop -Confirm:$false
    }
    $hop = Read-Member -Object $Former -Names 'hop'
    if (-not $hop) { return }
    # The adapter may have another name by now; then the route is on the one that has the node's address.
    $index = @(Find-Address -Ip (Assert-Known -Text '<<node_ip>>'))[0].InterfaceIndex
    foreach ($adapter in Get-NetAdapter -IncludeHidden | Where-Object { $_.Name -eq $Former.alias }) {
        $index = $adapter.ifIndex
    }
    [void](New-NetRoute -DestinationPrefix $Former.prefix -InterfaceIndex $index -NextHop $hop -RouteMetric $Former.metric)
}
