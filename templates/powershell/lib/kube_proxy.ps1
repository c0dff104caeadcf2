# SUMMARY Checks the network kube-proxy needs, and waits until it is healthy.

function Assert-Network {
    # Stops the step where HNS does not have exactly one network of that name.
    param([string]$Name)
    if (@(Get-HnsObject -Kind networks -Name $Name).Count -eq 1) { return }
    Stop-Step -Id 'NoHnsNetwork' -Message "there is no HNS network $Name, which kube-proxy is to serve"
}

function Read-HttpStatus {
    # The status of an HTTP answer; nothing without an answer.
    param([string]$Url)
    $request = [Net.WebRequest]::Create($Url)
    $request.Timeout = 5000
    $request.Proxy = $null
    try { $response = $request.GetResponse() }
    catch [Net.WebException] {
        $response = $_.Exception.Response
        if ($null -eq $response) { return }
    }
    [int]$response.StatusCode
    $response.Close()
}

function Wait-KubeProxy {
    # A new start forgets an earlier network.
    param([string]$Name, [string]$Health, [int]$Seconds)
    if (Wait-Until -Test { (Read-HttpStatus -Url $Health) -eq 200 } -Seconds $Seconds) { return }
    Stop-RunningService -Name $Name
    Start-CurrentService -Name $Name
    if (Wait-Until -Test { (Read-HttpStatus -Url $Health) -eq 200 } -Seconds $Seconds) { return }
    Stop-Step -Id 'KubeProxyUnwell' -Message "kube-proxy runs but does not serve: $Health answers $(Read-HttpStatus -Url $Health)"
}
