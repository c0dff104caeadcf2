# SUMMARY Asks Docker Engine, keeps its network, and removes what came with it.

function Invoke-Docker {
    # The lines that docker.exe prints; nothing where the engine is not there yet, or where it ends with an error.
    param([string[]]$Arguments)
    if ((Get-ServiceState -Name 'docker') -ne 'Running' -or -not (Test-OwnPath -Path $script:Node.docker -Program)) { return }
    $ended = Invoke-Program -Path $script:Node.docker -Arguments $Arguments
    if ($ended.ExitCode -eq 0) { $ended.Output -split '\r?\n' | Where-Object { $_ } }
}

function Get-HostNetworkDifference {
    # A difference where Docker's network of pods with hostNetwork is missing. Nothing where it is there.
    if (@(Invoke-Docker -Arguments @('network', 'ls', '--format', '{{.Name}}')) -notcontains 'host') {
        New-Difference -Key 'docker-network' -What 'Docker network host' -Is $null -Want 'present'
    }
}

function Add-HostNetwork {
    # Makes that network where it is missing: NAT networks do not outlive a restart of Windows Server 2019
    # (MicrosoftDocs/Virtualization-Documentation#1087). Returns nothing.
    if (Get-HostNetworkDifference) { [void](Invoke-Docker -Arguments @('network', 'create', '-d', 'nat', 'host')) }
}

function Save-FormerDocker {
    # Notes the networks of HNS, and whether there were layers, before the engine came. Returns nothing.
    param([string]$Layers)
    $networks = @(Get-HnsObject -Kind networks | ForEach-Object { $_.Name })
    Save-FormerValue -Kind 'Docker' -Key $Layers -Value @{ layers = $Layers; existed = [IO.Directory]::Exists($Layers); networks = $networks }
}

function Restore-Docker {
    # Ends the engine with its containers, and deletes its own networks and layers that came with it. Returns nothing.
    param([object]$Former)
    Stop-RunningService -Name 'docker'
    # Docker lists every network of HNS (Get-DockerNetwork): which of them it made is unknown.
    foreach ($network in Get-DockerNetwork) {
        if (@($Former.networks) -notcontains $network.Name) { Remove-HnsObject -Kind networks -Id $network.ID }
    }
    if (-not $Former.existed) { Remove-LayerStore -Store $Former.layers }
}
