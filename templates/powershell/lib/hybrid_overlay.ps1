# SUMMARY Starts OVN-Kubernetes' agent and waits for its HNS network.

function Start-HybridOverlay {
    # Starts the service and waits for its network. One that fits it keeps; any other it makes again when it starts
    # (overlay_windows.go, EnsureExistingNetworkIsValid).
    param([hashtable]$Wanted, [string]$Service, [int]$Seconds)
    if (-not (Test-PodNetwork -Wanted $Wanted)) { Stop-RunningService -Name $Service }
    $from = Get-LogSize -Path $Wanted.log
    Start-CurrentService -Name $Service
    Wait-PodNetwork -Wanted $Wanted -Seconds $Seconds -LogFrom $from
}

function Save-FormerAgentNetwork {
    # Notes whether a network was there before winboot's service, which makes it.
    param([string]$Name)
    $existed = @(Get-HnsObject -Kind networks -Name $Name).Count -gt 0
    Save-FormerValue -Kind 'AgentNetwork' -Key $Name -Value @{ name = $Name; existed = $existed }
}

function Restore-AgentNetwork {
    # The service is gone by now, and the switch below stays.
    param([object]$Former)
    if (-not $Former.existed) { Remove-PodNetwork -Name $Former.name }
}
