# SUMMARY Checks a pod network that an operator installs, and waits for it.
# What differs from the profile is reported and left to its owner, as are settings of a Group Policy.

function Get-OperatorDifference {
    # How another owner's network differs from what the profile expects. Wanted is a table: name, type and
    # vni of the HNS network; endpoint, conf_folder (empty texts where they do not matter) and plugins, the files
    # without which no pod gets a network; which owner brings it.
    param([hashtable]$Wanted)
    $what = "HNS network $($Wanted.name)"
    $networks = @()
    if ($Wanted.name -ne '') { $networks = @(Get-HnsObject -Kind networks -Name $Wanted.name) }
    $want = 'present'
    if ($Wanted.type -ne '') { $want = $Wanted.type }
    if ($networks.Count -eq 0 -and $Wanted.name -ne '') { New-Difference -Key 'network:present' -What $what -Is $null -Want $want }
    elseif ($networks) {
        # Type, subnet and VNI are its owner's affair; that they differ is worth knowing.
        Get-ForeignFault -Network $networks[0] -Wanted $Wanted -What $what | ForEach-Object {
            $_.policy = $true
            $_
        }
    }
    if ($Wanted.endpoint -ne '' -and @(Get-HnsObject -Kind endpoints -Name $Wanted.endpoint).Count -eq 0) {
        New-Difference -Key 'endpoint' -What "HNS endpoint $($Wanted.endpoint)" -Is $null -Want 'present'
    }
    foreach ($path in $Wanted.plugins) {
        if (-not [IO.File]::Exists($path)) { New-Difference -Key "file:$path" -What "file $path" -Is $null -Want 'present' }
    }
    if ($Wanted.conf_folder -ne '' -and @(Get-ForeignFile -Folder $Wanted.conf_folder -Own @{}).Count -eq 0) {
        New-Difference -Key 'cni-configuration' -What "CNI configuration in $($Wanted.conf_folder)" -Is $null -Want 'present'
    }
}

function Get-ForeignFault {
    # What differs of another owner's network. Nothing where all is as expected.
    param([object]$Network, [hashtable]$Wanted, [string]$What)
    if ($Wanted.type -ne '') {
        Compare-Wanted -Key 'network:type' -What "${What}: type" -Is $Network.Type -Want $Wanted.type -IgnoreCase
    }
    Compare-Wanted -Key 'network:management-address' -What "${What}: management address" -Is ("$(Read-Member -Object $Network -Names 'ManagementIP')".Split('/')[0]) `
        -Want (Complete-Text -Text '<<node_ip>>') -Unknown:(-not (Test-KnownText -Text '<<node_ip>>'))
    if ($Wanted.vni -ne 0) {
        Compare-Wanted -Key 'network:vni' -What "${What}: VNI" -Is (Get-NetworkVni -Network $Network) -Want ([string]$Wanted.vni)
    }
}

function Wait-Operator {
    # Waits until everything is there that only its owner can bring.
    param([hashtable]$Wanted, [int]$Seconds)
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    while ($true) {
        $script:Run.Cache = @{}
        $left = @(Get-OperatorDifference -Wanted $Wanted | Where-Object { -not $_.policy })
        if (-not $left) { return }
        if ([DateTime]::UtcNow -gt $until) {
            $names = @($left | ForEach-Object { "$($_.what)" }) -join '; '
            Stop-Step -Id 'OperatorMissing' -Message "not there after $Seconds seconds: $names" -Hint $Wanted.who
        }
        Start-Sleep -Milliseconds 3000
    }
}
