# SUMMARY Prepares Windows for Antrea: an adapter of its own, test signing, no stale ports.

function Test-AloneAdapter {
    # Faults for what else works on the node's adapter: HNS networks but the one named, and services of another network. Antrea's agent
    # ends on an adapter that carries a switch ("uplink is not a physical adapter", agent_windows.go).
    param([string]$Network, [string[]]$Services)
    $carrier = Get-WantedCarrier
    foreach ($other in Get-HnsObject -Kind networks) {
        if ($other.Name -eq $Network -or (Get-CarrierName -Network $other) -ne $carrier) { continue }
        New-Fault -Id 'NetworkConflict' -Message "the HNS network $($other.Name) is on $carrier, which $Network needs for itself"
    }
    foreach ($name in $Services) {
        if (Get-ServiceState -Name $name) { New-Fault -Id 'NetworkConflict' -Message "the service $name belongs to another network than $Network" }
    }
}

function Test-TestSigning {
    # Whether Windows started with test signing on. SystemStartOptions holds the options that the boot loader gave this start.
    $options = "$(Read-Registry -Path 'SYSTEM\CurrentControlSet\Control' -Name 'SystemStartOptions')"
    $options.Split(' ') -contains 'TESTSIGNING'
}

function Get-TestSigningDifference {
    # A difference while Windows loads no test-signed driver.
    if (-not (Test-TestSigning)) { New-Difference -Key 'test-signing' -What 'boot option TESTSIGNING' -Is 'off' -Want 'on' -Reboot }
}

function Enable-TestSigning {
    # Turns test signing on for the next start (undone by Restore-TestSigning), and asks for the restart.
    if (Test-TestSigning) { return }
    # Test signing and Secure Boot exclude each other (learn.microsoft.com, "The TESTSIGNING Boot Configuration Option").
    if (1 -eq (Read-Registry -Path 'SYSTEM\CurrentControlSet\Control\SecureBoot\State' -Name 'UEFISecureBootEnabled')) {
        Stop-Step -Id 'SecureBoot' -Message 'Secure Boot is on, and with it Windows loads no test-signed driver'
    }
    Save-FormerValue -Kind 'TestSigning' -Key 'TESTSIGNING' -Value @{ existed = (Test-StoredSigning) }
    Invoke-BootEdit -Arguments @('/set', 'TESTSIGNING', 'ON')
    New-Reboot
}

function Test-StoredSigning {
    # Whether an entry of the boot store has test signing on: 16000049 is BcdLibraryBoolean_AllowPrereleaseSignatures
    # (learn.microsoft.com, BcdLibraryElementTypes). Which entry started Windows is not in the registry, so any counts.
    $path = 'BCD00000000\Objects'
    $objects = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($path)
    if (-not $objects) { return $false }
    try { $names = $objects.GetSubKeyNames() } finally { $objects.Dispose() }
    foreach ($name in $names) {
        $stored = Read-Registry -Path "$path\$name\Elements\16000049" -Name 'Element'
        if ($stored -and $stored[0] -eq 1) { return $true }
    }
    $false
}

function Restore-TestSigning {
    # Removes the boot option and asks for the restart; one that an entry had before stays, with a notice. OFF first: an option that is
    # not there cannot be removed.
    param([object]$Former)
    if ($Former.existed) {
        New-Difference -Key 'test-signing' -What 'boot option TESTSIGNING' -Is 'on, and was set before winboot' -Want 'kept' -Policy
        return
    }
    Invoke-BootEdit -Arguments @('/set', 'TESTSIGNING', 'OFF')
    Invoke-BootEdit -Arguments @('/deletevalue', 'TESTSIGNING')
    New-Reboot
}

function Invoke-BootEdit {
    # One command of bcdedit. Returns nothing.
    param([string[]]$Arguments)
    $path = Get-SystemProgram -Name 'bcdedit.exe'
    $ended = Invoke-Program -Path $path -Arguments $Arguments
    if ($ended.ExitCode -eq 0) { return }
    Stop-Step -Id 'ProgramFailed' -Message "$path ended with code $($ended.ExitCode): $("$($ended.ErrorOutput) $($ended.Output)".Trim())"
}

function Get-PortDatabase {
    # Where Open vSwitch keeps its ports (antrea-io/antrea, hack/windows/Clean-AntreaNetwork.ps1).
    'C:\openvswitch\etc\openvswitch\conf.db'
}

function Test-StalePort {
    # Whether Open vSwitch has ports of a network that HNS forgot. Docs of Antrea (windows.md, Known issues 1): "HNS Network is not
    # persistent on Windows", and the ports have to go before the agent starts.
    param([string]$Network)
    (Test-OwnPath -Path (Get-PortDatabase)) -and @(Get-HnsObject -Kind networks -Name $Network).Count -eq 0
}

function Get-StalePortDifference {
    # A difference where Open vSwitch has stale ports.
    param([string]$Network)
    if (Test-StalePort -Network $Network) {
        New-Difference -Key 'antrea:ports' -What 'ports of Open vSwitch' -Is 'of an earlier start' -Want $null -Disrupts
    }
}

function Clear-StalePort {
    # Removes the stale ports. Returns nothing. No pod of Antrea may work meanwhile, and the kubelet would start it again.
    param([string]$Network)
    if (-not (Test-StalePort -Network $Network)) { return }
    $daemon = (Get-ServiceState -Name 'ovsdb-server') -eq 'Running'
    if ($daemon) { Assert-OwnProgram -Path (Get-PortProgram) }
    $running = (Get-ServiceState -Name 'kubelet') -eq 'Running'
    try {
        Stop-RunningService -Name 'kubelet'
        Stop-AntreaPod
        # Without the daemon its pod makes the database again.
        if ($daemon) { Remove-OvsPort } else { Remove-File -Path (Get-PortDatabase) }
    }
    finally { if ($running) { Start-CurrentService -Name 'kubelet' } }
}

function Get-PortProgram {
    # The program that asks the daemon of Open vSwitch (antrea-io/antrea, hack/windows/Clean-AntreaNetwork.ps1).
    'C:\openvswitch\usr\bin\ovs-vsctl.exe'
}

function Stop-AntreaPod {
    # Ends the pods that Antrea's DaemonSet runs on this node (build/yamls/antrea-windows-with-ovs.yml).
    $answer = Invoke-Crictl -Arguments @('pods', '--quiet', '--name', 'antrea-agent-windows')
    $ids = @("$answer".Split("`n") | ForEach-Object { $_.Trim() } | Where-Object { $_ -ne '' })
    if ($ids) { [void](Invoke-Crictl -Arguments (@('stopp') + $ids) -Seconds 120) }
}

function Remove-OvsPort {
    # Removes the recorded ports by the daemon. Returns nothing.
    $program = Get-PortProgram
    $ended = Invoke-Program -Path $program -Arguments @('--no-wait', '--if-exists', 'del-br', 'br-int')
    if ($ended.ExitCode -ne 0) { Stop-Step -Id 'ProgramFailed' -Message "$program ended with code $($ended.ExitCode): $($ended.ErrorOutput)" }
}
