# The Node object, read with the kubelet's own credentials.

function Get-NodeObject {
    if (-not $script:Run.Cache.ContainsKey('Node')) { $script:Run.Cache['Node'] = Read-NodeObject }
    $script:Run.Cache['Node']
}

function Read-NodeObject {
    if (-not [IO.File]::Exists($script:Node.kubeconfig) -or -not [IO.File]::Exists($script:Node.kubectl)) { return }
    $arguments = @('--kubeconfig', $script:Node.kubeconfig, '--request-timeout=10s', 'get', 'node', $script:Node.node,
        '--ignore-not-found', '--output', 'json')
    $ended = Invoke-Program -Path $script:Node.kubectl -Arguments $arguments -TimeoutSeconds 30
    # Refused credentials mean the same as none: the kubelet has to bootstrap again, and the credentials step says so.
    if ($ended.ExitCode -ne 0 -or $ended.Output.Trim() -eq '') { return }
    ConvertFrom-Json -InputObject $ended.Output
}

function Read-Member {
    # A value deep inside an object from JSON; nothing when any part of the way is missing.
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
    foreach ($item in @($found)) { if ($null -ne $item) { $item } }
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
    $what = 'node {0}: ' -f $script:Node.node
    if ($null -eq $node) {
        New-Difference -What ($what + 'registered') -Is $null -Want 'yes'
    }
    else {
        $uuid = Read-Member $node 'status', 'nodeInfo', 'systemUUID'
        Compare-Wanted -What ($what + 'machine') -Is $uuid -Want (Get-MachineIdentity).Uuid -IgnoreCase
    }
    if ($NeedsPodCidr -and @(Get-PodCidr).Count -eq 0) {
        New-Difference -What ($what + 'pod CIDR') -Is $null -Want '(known after join)'
    }
    if ($ServingCertificate -ne '' -and -not (Test-CurrentCertificate -Path $ServingCertificate)) {
        New-Difference -What 'kubelet serving certificate' -Is $null -Want 'issued by the cluster'
    }
}

function Wait-Registration {
    # The controller approves meanwhile what has to be approved.
    param([string]$ClientCertificate, [string]$ServingCertificate, [switch]$NeedsPodCidr, [int]$TimeoutSeconds)
    $until = [DateTime]::UtcNow.AddSeconds($TimeoutSeconds)
    # A kubelet registers its Node and looks for its serving certificate only when it starts: one that has lost either
    # has to start anew.
    $restartAt = [DateTime]::UtcNow.AddSeconds(30)
    $restarted = $false
    while ($true) {
        $script:Run.Cache = @{}
        $left = @(Get-RegistrationDifference -ServingCertificate $ServingCertificate -NeedsPodCidr:$NeedsPodCidr)
        if ($left.Count -eq 0) { return }
        $waiting = [DateTime]::UtcNow
        $lost = $null -eq (Get-NodeObject) -or ($ServingCertificate -ne '' -and -not (Test-CurrentCertificate -Path $ServingCertificate))
        if (-not $restarted -and $lost -and $waiting -gt $restartAt -and (Test-CurrentCertificate -Path $ClientCertificate)) {
            Stop-RunningService -Name 'kubelet'
            Start-Service -Name 'kubelet'
            $restarted = $true
        }
        if ($waiting -gt $until) { Stop-Registration -Left $left -ClientCertificate $ClientCertificate -TimeoutSeconds $TimeoutSeconds }
        Start-Sleep -Milliseconds 2000
    }
}

function Stop-Registration {
    param([object[]]$Left, [string]$ClientCertificate, [int]$TimeoutSeconds)
    $names = @($Left | ForEach-Object { $_.what }) -join '; '
    $message = 'not there after {0} seconds: {1}' -f $TimeoutSeconds, $names
    if (-not (Test-CurrentCertificate -Path $ClientCertificate)) {
        Stop-Step -Id 'NoClientCertificate' -Message $message -Hint ('The kubelet has no client certificate. Is its CSR pending or denied ' +
            '(kubectl get csr)? Does the kubelet log say Unauthorized (token), x509 (CA, clock) or a connection error?')
    }
    if ($names -like '*serving certificate*' -and @($Left).Count -eq 1) {
        Stop-Step -Id 'ServingCsrPending' -Message $message -Hint ('No one approved the serving certificate: winboot does when its ' +
            'credentials may update certificatesigningrequests/approval for the signer kubernetes.io/kubelet-serving.')
    }
    if ($names -like '*pod CIDR*' -and @($Left).Count -eq 1) {
        Stop-Step -Id 'NoPodCidr' -Message $message -Hint 'kube-controller-manager needs --allocate-node-cidrs=true and a --cluster-cidr with room.'
    }
    Stop-Step -Id 'NotRegistered' -Message $message -Hint 'Read the kubelet log; a flag it does not know, or a cluster it cannot reach, ends it at once.'
}
