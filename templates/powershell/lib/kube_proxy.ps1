function Assert-Network {
    param([string]$Name)
    if (@(Get-HnsObject networks $Name).Count -eq 1) { return }
    Stop-Step 'NoHnsNetwork' "there is no HNS network $Name, which kube-proxy shall serve"
}

function Read-HttpStatus {
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
    if (Wait-Until { (Read-HttpStatus $Health) -eq 200 } -Seconds $Seconds) { return }
    Stop-RunningService $Name
    Start-CurrentService $Name
    if (Wait-Until { (Read-HttpStatus $Health) -eq 200 } -Seconds $Seconds) { return }
    Stop-Step 'KubeProxyUnwell' "kube-proxy runs but does not serve: $Health answers $(Read-HttpStatus $Health)"
}
