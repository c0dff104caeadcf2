# SUMMARY Checks that this machine reaches the servers it must download from.
# It asks before the first change, and only if something must be downloaded.

function Test-Source {
    # Faults of sources that do not answer at any of their addresses. A machine that has all Programs asks no source: a
    # mirror that is down must not fail a node that is right.
    param([hashtable[]]$Sources, [string[]]$Programs)
    if (-not ($Programs | Where-Object { -not [IO.File]::Exists($_) })) { return }
    $proxies = @{}
    foreach ($source in $Sources) {
        $answered = $false
        $faults = @()
        foreach ($address in $source.addresses) {
            $proxy = $address['proxy']
            # A proxy that does not answer is reported once, for all that is behind it.
            if ($proxy -and $proxies.ContainsKey($proxy)) { $answered = $true; break }
            $fault = Get-SourceFault -Source $source -Url $address.url -Proxy $proxy
            if (-not $fault) { $answered = $true; break }
            if ($fault.id -eq 'proxy') { $proxies[$proxy] = $true }
            $faults += $fault
        }
        if (-not $answered) { $faults }
    }
}

function Get-SourceFault {
    # Why an address gives nothing, as one fault; nothing where it answers. A certificate that is not trusted is an answer, too: the
    # trust roots of the profile come later.
    param([hashtable]$Source, [string]$Url, [string]$Proxy)
    $what = $Source.title
    if ($Url -notmatch '^https?://') {
        if (-not [IO.File]::Exists($Url)) { New-Fault -Id 'artifact-source' -Message "${what}: $Url is not there" }
        return
    }
    $through = if ($Proxy) { " through the proxy $Proxy" }
    try {
        $request = New-WebRequest -Url $Url -Proxy $Proxy
        try { (Wait-Task -Task $request.GetResponseAsync() -Seconds 20).Close() } finally { $request.Abort() }
    }
    catch {
        $status = Get-WebStatus -Exception $_.Exception
        if ($status.untrusted -or ($Source.registry -and (Test-RegistryAnswer -Status $status -Url $Url))) { return }
        $said = $_.Exception.GetBaseException().Message
        if ($Proxy -and $status.proxy) { New-Fault -Id 'proxy' -Message "the proxy ${Proxy}: $said" }
        elseif ($Source.registry) { New-Fault -Id 'registry' -Message "$what does not answer at $Url${through}: $said" }
        else { New-Fault -Id 'artifact-source' -Message "$what does not give $Url${through}: $said" }
    }
}

function Test-RegistryAnswer {
    # Whether an error of HTTP is a registry's answer: below /v2/ a registry says 401 and how to log in (OCI distribution
    # specification, "Determining Support"; RFC 9110, 11.6.1). Elsewhere any answer will do.
    param([hashtable]$Status, [string]$Url)
    if ($Status.code -eq 0 -or $Status.code -eq 407) { return $false }
    -not $Url.EndsWith('/v2/') -or ($Status.code -eq 401 -and $Status.registry)
}

function Test-RegistryHeader {
    # Whether a response has a header that registries send.
    param([object]$Response)
    $Response.GetResponseHeader('WWW-Authenticate') -ne '' -or $Response.GetResponseHeader('Docker-Distribution-Api-Version') -ne ''
}

function Get-WebStatus {
    # What the error of a web request says: code (the HTTP status, 0 without one), registry (an answer as a registry gives it), proxy (its proxy is at fault where it
    # has one) and untrusted (the server's certificate). GetBaseException would pass over the WebException to the socket's
    # error below it.
    param([Exception]$Exception)
    while ($Exception -and $Exception -isnot [Net.WebException]) { $Exception = $Exception.InnerException }
    if (-not $Exception) { return @{ code = 0; registry = $false; proxy = $false; untrusted = $false } }
    $code = if ($Exception.Response) { [int]$Exception.Response.StatusCode } else { 0 }
    $status = "$($Exception.Status)"
    @{
        code      = $code
        registry  = $code -ne 0 -and (Test-RegistryHeader -Response $Exception.Response)
        # Through a proxy nothing else is connected to; 407 is its wish for a login.
        proxy     = $code -eq 407 -or $status -in 'ProxyNameResolutionFailure', 'ConnectFailure', 'RequestProhibitedByProxy'
        untrusted = $status -in 'TrustFailure', 'SecureChannelFailure'
    }
}
