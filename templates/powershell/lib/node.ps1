# The Node object, by the kubelet's own credentials.

function Get-NodeObject {
    Get-Cached 'Node' { Read-NodeObject }
}

function Read-NodeObject {
    if (-not [IO.File]::Exists($script:Node.kubeconfig) -or -not [IO.File]::Exists($script:Node.kubectl)) { return }
    $arguments = @('--kubeconfig', $script:Node.kubeconfig, '--request-timeout=10s', 'get', 'node', $script:Node.node,
        '--ignore-not-found', '--output', 'json')
    $ended = Invoke-Program $script:Node.kubectl $arguments -Seconds 30
    # Refused credentials mean the same as none.
    if ($ended.ExitCode -eq 0 -and $ended.Output.Trim()) { ConvertFrom-Json -InputObject $ended.Output }
}

function Read-Member {
    param($Object, [string[]]$Names)
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
    param($Object, [string]$Name)
    foreach ($item in Read-Member $Object $Name) { if ($null -ne $item) { $item } }
}

function Get-PodCidr {
    Read-Item (Read-Member (Get-NodeObject) 'spec') 'podCIDRs'
}

function Get-RegistrationDifference {
    param([string]$ServingCertificate, [switch]$NeedsPodCidr)
    $node = Get-NodeObject
    $what = "node $($script:Node.node):"
    if (-not $node) { New-Difference -Key 'node:registered' -What "$what registered" -Is $null -Want 'yes' }
    else { Compare-Wanted -Key 'node:machine' -What "$what machine" -Is (Read-Member $node 'status', 'nodeInfo', 'systemUUID') -Want (Get-MachineIdentity).Uuid -IgnoreCase }
    if ($NeedsPodCidr -and -not (Get-PodCidr)) { New-Difference -Key 'node:pod-cidr' -What "$what pod CIDR" -Unknown }
    if ($ServingCertificate -and -not (Test-CurrentCertificate $ServingCertificate)) {
        New-Difference -Key 'kubelet:serving-certificate' -What 'kubelet serving certificate' -Is $null -Want 'issued by the cluster'
    }
}

function Wait-Registration {
    param([string]$ClientCertificate, [string]$ServingCertificate, [switch]$NeedsPodCidr, [int]$Seconds)
    $wanted = @{ ServingCertificate = $ServingCertificate; NeedsPodCidr = $NeedsPodCidr }
    $registered = {
        $script:Run.Cache = @{}
        -not (Get-RegistrationDifference @wanted)
    }
    if (Wait-Until $registered -Seconds 30 -Pause 2000) { return }
    # A kubelet cares for its Node and its serving certificate only when it starts.
    $lost = { $null -eq (Get-NodeObject) -or ($ServingCertificate -and -not (Test-CurrentCertificate $ServingCertificate)) }
    $restart = { (Test-CurrentCertificate $ClientCertificate) -and (& $lost) }
    if (Wait-Until { (& $registered) -or (& $restart) } -Seconds ($Seconds - 30) -Pause 2000) {
        if (& $registered) { return }
        Stop-RunningService 'kubelet'
        Start-CurrentService 'kubelet'
        if (Wait-Until $registered -Seconds ($Seconds - 30) -Pause 2000) { return }
    }
    $left = @(Get-RegistrationDifference @wanted)
    $message = "not there after $Seconds seconds: $(@($left | ForEach-Object { $_.what }) -join '; ')"
    if (-not (Test-CurrentCertificate $ClientCertificate)) { Stop-Step 'NoClientCertificate' $message }
    if ($left.Count -eq 1 -and $left[0].key -eq 'kubelet:serving-certificate') { Stop-Step 'ServingCsrPending' $message }
    if ($left.Count -eq 1 -and $left[0].key -eq 'node:pod-cidr') { Stop-Step 'NoPodCidr' $message }
    Stop-Step 'NotRegistered' $message
}
