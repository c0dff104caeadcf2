# SUMMARY Reads the Node object with the kubelet's credentials, and waits for registration.

function Get-NodeObject {
    # What is used of the Node: PodCidrs, SystemUuid, InternalIps, Ready, Unschedulable and Starting; nothing while there is no Node, or none that can be read.
    Get-Cached -Name 'Node' -Read { Read-NodeObject }
}

function Get-Kubectl {
    # The path of kubectl: of the wanted version; while that is not here yet, of one that was placed before and is believed.
    $wanted = $script:Node.kubectl
    if (Test-OwnPath -Path $wanted -Program) { return $wanted }
    foreach ($file in Get-Placed | ForEach-Object { $_.files }) {
        $path = $file.destination
        if ([IO.Path]::GetFileName($path) -eq 'kubectl.exe' -and (Test-OwnPath -Path $path -Program)) { return $path }
    }
    $wanted
}

function Invoke-Kubectl {
    # Runs kubectl with the kubelet's own credentials. A kubeconfig may name a program that kubectl starts.
    param([string[]]$Arguments, [int]$Seconds)
    $kubeconfig = $script:Node.kubeconfig
    Invoke-Program -Path (Get-Kubectl) -Arguments (@('--kubeconfig', $kubeconfig) + $Arguments) -Reads $kubeconfig -Seconds $Seconds
}

function Read-NodeObject {
    # What is used of the Node object: its pod networks, its addresses and the UUID of its machine; nothing where the API server
    # or the kubelet's credentials do not give it. By one raw request: `kubectl get node` asks for all API groups first and
    # writes a cache into the user's profile.
    if (-not (Test-OwnPath -Path $script:Node.kubeconfig) -or -not (Test-OwnPath -Path (Get-Kubectl) -Program)) { return }
    $ended = Invoke-Kubectl -Arguments @('--request-timeout=10s', 'get', '--raw', "/api/v1/nodes/$($script:Node.node)") -Seconds 30
    # Refused credentials mean the same as none.
    if ($ended.ExitCode -ne 0) { return }
    # ConvertFrom-Json of 5.1 refuses an object with two names that differ by case alone, as labels may. Inside a JSON text a
    # quotation mark is escaped, so that no label or annotation can look like these members.
    $member = '"podCIDRs"\s*:\s*\[([^\]]*)\]'
    # Another program than the controller manager gives the node its pod network.
    if ($script:Node.ContainsKey('subnet_annotation')) { $member = "`"$([regex]::Escape($script:Node.subnet_annotation))`"\s*:\s*(`"[^`"]*`")" }
    $cidrs = [regex]::Match($ended.Output, $member).Groups[1].Value
    [pscustomobject]@{
        PodCidrs   = @([regex]::Matches($cidrs, '"([0-9A-Fa-f.:/]+)"') | ForEach-Object { $_.Groups[1].Value })
        InternalIps = @([regex]::Matches($ended.Output, '"type"\s*:\s*"InternalIP"\s*,\s*"address"\s*:\s*"([0-9A-Fa-f.:]+)"') |
                ForEach-Object { $_.Groups[1].Value })
        SystemUuid = [regex]::Match($ended.Output, '"systemUUID"\s*:\s*"([^"\\]*)"').Groups[1].Value
        # The type of a condition stands before its status (k8s.io/api/core/v1/types.go, NodeCondition).
        Ready = [regex]::Match($ended.Output, '"type"\s*:\s*"Ready"\s*,\s*"status"\s*:\s*"(\w+)"').Groups[1].Value
        Unschedulable = [regex]::IsMatch($ended.Output, '"unschedulable"\s*:\s*true')
        Starting = [regex]::IsMatch($ended.Output, "`"key`"\s*:\s*`"$([regex]::Escape($script:Node.startup_taint))`"")
    }
}

function Read-Member {
    # A member of an object, or of the object in it, by names; nothing where one is missing. A list comes as one
    # object.
    param([object]$Object, [string[]]$Names)
    foreach ($name in $Names) {
        if ($null -eq $Object) { return }
        $member = $Object.PSObject.Properties[$name]
        if (-not $member) { return }
        $Object = $member.Value
    }
    if ($Object -is [array]) { return , $Object }
    $Object
}

function Read-Item {
    # The items of a list in an object, one by one, without nulls.
    param([object]$Object, [string]$Name)
    # In parentheses: without them the loop runs once, with the whole list (a list comes out of the function as one object).
    foreach ($item in (Read-Member -Object $Object -Names $Name)) { if ($null -ne $item) { $item } }
}

function Get-PodCidr {
    # The pod networks of this node, if the cluster has given it any. Nothing until then.
    foreach ($node in Get-NodeObject) { $node.PodCidrs }
}

function Get-RegistrationDifference {
    # What is missing until the node is registered: its Node with its address, its pod network, its serving certificate.
    param([string]$ServingCertificate, [switch]$NeedsPodCidr)
    $node = Get-NodeObject
    $what = "node $($script:Node.node):"
    if (-not $node) { New-Difference -Key 'node:registered' -What "$what registered" -Is $null -Want 'yes' }
    else {
        Compare-Wanted -Key 'node:machine' -What "$what machine" -Is $node.SystemUuid -Want (Get-MachineIdentity).Uuid -IgnoreCase
        $own = Get-NodeIp
        if ($own -and @($node.InternalIps) -notcontains $own) {
            New-Difference -Key 'node:address' -What "$what address" -Is (@($node.InternalIps) -join ', ') -Want $own
        }
    }
    if ($NeedsPodCidr -and -not (Get-PodCidr)) { New-Difference -Key 'node:pod-cidr' -What "$what pod CIDR" -Unknown }
    if ($ServingCertificate -and -not (Test-CurrentCertificate -Path $ServingCertificate)) {
        New-Difference -Key 'kubelet:serving-certificate' -What 'kubelet serving certificate' -Is $null -Want 'issued by the cluster'
    }
}

function Wait-Registration {
    # Returns when the node is registered; restarts the kubelet once where it lost its Node; then stops the step.
    param([string]$ClientCertificate, [string]$ServingCertificate, [switch]$NeedsPodCidr, [int]$Seconds)
    $wanted = @{ ServingCertificate = $ServingCertificate; NeedsPodCidr = $NeedsPodCidr }
    $registered = {
        $script:Run.Cache = @{}
        -not (Get-RegistrationDifference @wanted)
    }
    if (Wait-Until -Test $registered -Seconds 30 -Pause 2000) { return }
    # A kubelet cares for its Node and its serving certificate only when it starts.
    $lost = { $null -eq (Get-NodeObject) -or ($ServingCertificate -and -not (Test-CurrentCertificate -Path $ServingCertificate)) }
    $restart = { (Test-CurrentCertificate -Path $ClientCertificate) -and (& $lost) }
    if (Wait-Until -Test { (& $registered) -or (& $restart) } -Seconds ($Seconds - 30) -Pause 2000) {
        if (& $registered) { return }
        Stop-RunningService -Name 'kubelet'
        Start-CurrentService -Name 'kubelet'
        if (Wait-Until -Test $registered -Seconds ($Seconds - 30) -Pause 2000) { return }
    }
    Stop-Unregistered -Left @(Get-RegistrationDifference @wanted) -Seconds $Seconds -ClientCertificate $ClientCertificate
}

function Get-ReadinessDifference {
    # A difference until the Node is Ready, as the kubelet's own certificate reads it.
    $is = @(Get-NodeObject | ForEach-Object { $_.Ready }) -join ''
    Compare-Wanted -Key 'node:ready' -What "node $($script:Node.node): Ready" -Is $is -Want 'True'
}

function Wait-Readiness {
    # Returns when the Node is Ready; then stops the step.
    param([int]$Seconds)
    $ready = {
        $script:Run.Cache = @{}
        -not (Get-ReadinessDifference)
    }
    if (Wait-Until -Test $ready -Seconds $Seconds -Pause 2000) { return }
    Stop-Step -Id 'NodeNotReady' -Message "the Node $($script:Node.node) is not Ready after $Seconds seconds"
}

function Update-LiveFact {
    # Where the controller has no kubeconfig, this machine decides whether pods may run on it.
    # Once at the start of a run: a Node that becomes Ready in the middle of its own join must not hold the rest back.
    if ($script:Run.Facts.Alone) { $script:Run.Facts.NodeIsLive = Test-LiveNode }
}

function Test-LiveNode {
    # Whether the Node has no cordon and is Ready, or pods run on it. The controller has the same rule (look_for_life in
    # winboot/node/fleet/node.py): only a Node that has the startup taint, or runs no pod, is not live.
    $node = Get-NodeObject
    if ($node -and $node.Unschedulable) { return $false }
    if ($node -and $node.Ready -eq 'True') { return $true }
    (-not $node -or -not $node.Starting) -and (Test-RunningPod)
}

function Test-RunningPod {
    # Whether a pod runs here: a shim of containerd holds each, with Docker a container.
    $shims = @(Get-CimInstance -ClassName 'Win32_Process' -Filter "Name='containerd-shim-runhcs-v1.exe'" -Property 'ProcessId')
    $shims.Count -gt 0 -or ($script:Node['docker'] -and @(Invoke-Docker -Arguments @('ps', '--quiet')).Count -gt 0)
}

function Stop-Unregistered {
    # Stops the step with the id of the first cause: each of them keeps the ones after it from coming.
    param([object[]]$Left, [int]$Seconds, [string]$ClientCertificate)
    $keys = @($Left | ForEach-Object { $_.key })
    $message = "not there after $Seconds seconds: $(@($Left | ForEach-Object { $_.what }) -join '; ')"
    if (-not (Test-CurrentCertificate -Path $ClientCertificate)) {
        $off = Get-ClockText
        if ($off) { $message = "the machine's clock is $off; $message" }
        Stop-Step -Id 'NoClientCertificate' -Message $message
    }
    if ($keys -contains 'node:address') {
        $addresses = @(Get-NodeObject | ForEach-Object { $_.InternalIps }) -join ', '
        if ($addresses) { Stop-Step -Id 'OtherNodeAddress' -Message "the Node has the address $addresses, not $(Get-NodeIp); $message" }
        # The kubelet asks for a serving certificate for the addresses that its Node has.
        Stop-Step -Id 'NoNodeAddress' -Message "the Node has no address, so the kubelet requests no serving certificate; $message"
    }
    if ($keys.Count -eq 1 -and $keys[0] -eq 'kubelet:serving-certificate') { Stop-Step -Id 'ServingCsrPending' -Message $message }
    if ($keys.Count -eq 1 -and $keys[0] -eq 'node:pod-cidr') { Stop-Step -Id 'NoPodCidr' -Message $message }
    Stop-Step -Id 'NotRegistered' -Message $message
}
