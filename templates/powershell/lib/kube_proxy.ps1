# kube-proxy: only its health tells that it works.

function Assert-Network {
    param([string]$Name)
    if (@(Get-HnsObject -Kind networks -Name $Name).Count -eq 1) { return }
    Stop-Step -Id 'NoHnsNetwork' -Message ('there is no HNS network {0}, which kube-proxy shall serve' -f $Name) `
        -Hint 'It comes with the network solution: look at the step before this one, or at the pods of its operator.'
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
    # It is started anew once: that takes away what an earlier network left in its memory.
    param([string]$Name, [string]$Health, [int]$TimeoutSeconds)
    if (Wait-Until -Seconds $TimeoutSeconds -Test { (Read-HttpStatus -Url $Health) -eq 200 }) { return }
    Stop-RunningService -Name $Name
    Start-Service -Name $Name
    if (Wait-Until -Seconds $TimeoutSeconds -Test { (Read-HttpStatus -Url $Health) -eq 200 }) { return }
    Stop-Step -Id 'KubeProxyUnwell' -Message ('kube-proxy runs but does not serve: {0} answers {1}' -f $Health, (Read-HttpStatus -Url $Health)) `
        -Hint 'Its log tells why. Often it may not list endpoint slices: `winboot manifests rbac` prints the binding.'
}
