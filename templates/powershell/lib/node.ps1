# The Node object, read with the kubelet's own credentials.

function Get-NodeObject {
    if (-not $script:Run.Cache.ContainsKey('Node')) { $script:Run.Cache['Node'] = Read-NodeObject }
    $script:Run.Cache['Node']
}

function Read-NodeObject {
    if (-not [IO.File]::Exists($script:Node.kubeconfig) -or -not [IO.File]::Exists($script:Node.kubectl)) { return }
    $arguments = @('--kubeconfig', $script:Node.kubeconfig, '--request-timeout=10s', 'get', 'node', $script:Node.node,
        '--ignore-not-found', '--output', 'json')
    $ended = Invoke-Program -Path $script:Node.kubectl -Arguments $arguments -Seconds 30
    # Refused credentials mean the same as none: the kubelet has to bootstrap again, and the credentials step says so.
    if ($ended.ExitCode -ne 0 -or $ended.Output.Trim() -eq '') { return }
    ConvertFrom-Json -InputObject $ended.Output
}

function Read-Member {
    # Nothing when any part of the way is missing.
    param($Object, [string[]]$Names)
    foreach ($name in $Names) {
        if ($null -eq $Object) { return }
        $member = $Object.PSObject.Properties[$name]
        if ($null -eq $member) { return }
        $Object = $member.Value
    }
    if ($Object -is [array]) { return , $Object }
    $Object
}

function Read-Items {
    param($Object, [string]$Name)
    $found = Read-Member $Object $Name
    foreach ($item in $found) { if ($null -ne $item) { $item } }
}

function Get-PodCidr {
    $node = Get-NodeObject
    $many = Read-Member $node 'spec', 'podCIDRs'
    if ($null -ne $many) { return @($many) }
    Read-Member $node 'spec', 'podCIDR'
}

function Get-RegistrationDifference {
    param([string]$ServingCertificate, [switch]$NeedsPodCidr)
    $node = Get-NodeObject
    $what = "node $($script:Node.node):"
    if ($null -eq $node) {
        New-Difference -What "$what registered" -Is $null -Want 'yes'
    }
    else {
        $uuid = Read-Member $node 'status', 'nodeInfo', 'systemUUID'
        Compare-Wanted -What "$what machine" -Is $uuid -Want (Get-MachineIdentity).Uuid -IgnoreCase
    }
    if ($NeedsPodCidr -and @(Get-PodCidr).Count -eq 0) {
        New-Difference -What "$what pod CIDR" -Is $null -Want '(known after join)'
    }
    if ($ServingCertificate -ne '' -and -not (Test-CurrentCertificate $ServingCertificate)) {
        New-Difference -What 'kubelet serving certificate' -Is $null -Want 'issued by the cluster'
    }
}

function Wait-Registration {
    # The controller approves meanwhile what has to be approved.
    param([string]$ClientCertificate, [string]$ServingCertificate, [switch]$NeedsPodCidr, [int]$Seconds)
    $wanted = @{ ServingCertificate = $ServingCertificate; NeedsPodCidr = $NeedsPodCidr }
    $registered = {
        $script:Run.Cache = @{}
        @(Get-RegistrationDifference @wanted).Count -eq 0
    }
    if (Wait-Until -Seconds 30 -Pause 2000 -Test $registered) { return }
    # A kubelet registers its Node and looks for its serving certificate only when it starts: one that lost either has to
    # start anew.
    $lost = { $null -eq (Get-NodeObject) -or ($ServingCertificate -ne '' -and -not (Test-CurrentCertificate $ServingCertificate)) }
    $restart = { (Test-CurrentCertificate $ClientCertificate) -and (& $lost) }
    if (Wait-Until -Seconds ($Seconds - 30) -Pause 2000 -Test { (& $registered) -or (& $restart) }) {
        if (& $registered) { return }
        Stop-RunningService 'kubelet'
        Start-CurrentService 'kubelet'
        if (Wait-Until -Seconds ($Seconds - 30) -Pause 2000 -Test $registered) { return }
    }
    $left = @(Get-RegistrationDifference @wanted | ForEach-Object { $_.what })
    Stop-Registration -Left $left -ClientCertificate $ClientCertificate -Seconds $Seconds
}

function Stop-Registration {
    param([string[]]$Left, [string]$ClientCertificate, [int]$Seconds)
    $names = $Left -join '; '
    $message = "not there after $Seconds seconds: $names"
    if (-not (Test-CurrentCertificate $ClientCertificate)) {
        Stop-Step 'NoClientCertificate' $message
    }
    if ($Left.Count -eq 1 -and $names -like '*serving certificate*') {
        Stop-Step 'ServingCsrPending' $message
    }
    if ($Left.Count -eq 1 -and $names -like '*pod CIDR*') {
        Stop-Step 'NoPodCidr' $message
    }
    Stop-Step 'NotRegistered' $message
}
