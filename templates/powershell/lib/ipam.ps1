# SUMMARY Reads and repairs the files in which an IPAM plug-in stores addresses.

function Get-StoreFile {
    # The files of an IPAM store that reserve an address. Returns nothing if none exists.
    param([string]$Store)
    if (-not [IO.Directory]::Exists($Store)) { return }
    foreach ($path in [IO.Directory]::GetFiles($Store)) {
        # Colons of an IPv6 address are written as underscores.
        if ([IO.Path]::GetFileName($path) -match '^(\d+\.\d+\.\d+\.\d+|[0-9a-f]+_[0-9a-f_]+)$') { $path }
    }
}

function Get-StorePath {
    # The file that reserves an address in an IPAM store.
    param([string]$Store, [string]$Address)
    "$Store\$($Address.Replace(':', '_'))"
}

function Read-StoreEntry {
    # One entry of an IPAM store: its address, and which pod holds it on which interface.
    param([string]$Path)
    $lines = @("$(Read-FileText -Path $Path)" -split '\r?\n') + @('', '')
    @{ path = $Path; address = [IO.Path]::GetFileName($Path).Replace('_', ':'); owner = $lines[0]; interface = $lines[1] }
}

function Get-StoreVip {
    # The one reserved before, while it is in the pod network; else the first free one. Nothing while the pod
    # network is not known, or where it has no address left.
    param([string]$Place, [hashtable]$Known)
    if (-not $Known.ContainsKey('pod_cidr')) { return }
    $cidr = $Known.pod_cidr
    $taken = @{}
    foreach ($path in Get-StoreFile -Store $Place) {
        $entry = Read-StoreEntry -Path $path
        if ($entry.interface -eq 'source-vip' -and (Test-CidrMember -Cidr $cidr -Address $entry.address)) {
            return $entry.address
        }
        $taken[$entry.address] = $true
    }
    for ($offset = 2; $true; $offset++) {
        # The last address of an IPv4 network is for broadcasts.
        if ($null -eq (Get-CidrAddress -Cidr $cidr -Offset ($offset + 1))) { break }
        $address = Get-CidrAddress -Cidr $cidr -Offset $offset
        if (-not $taken.ContainsKey($address)) { return $address }
    }
    Stop-Step -Id 'StoreFull' -Message "every address of $cidr is taken in ${Place}: none is left for kube-proxy"
}

function Get-ReservationDifference {
    # The reserved addresses that are missing, and those that pods left behind.
    param([string]$Store, [hashtable[]]$Reservations)
    foreach ($reservation in $Reservations) {
        $holder = "$($reservation.holder) $($reservation.interface)"
        $address = Expand-Known -Text $reservation.address
        $want = if ($address) { "${address}: $holder" }
        $is = $null
        if ($address -and [IO.File]::Exists((Get-StorePath -Store $Store -Address $address))) {
            $entry = Read-StoreEntry -Path (Get-StorePath -Store $Store -Address $address)
            $is = "${address}: $($entry.owner) $($entry.interface)"
        }
        Compare-Wanted -Key "reserved:$holder" -What "reserved address for $holder" -Is $is -Want $want -Unknown:(-not $address)
    }
    $cidrs = @(Get-PodCidr)
    if (-not $cidrs) { return }
    foreach ($entry in Get-StaleEntry -Store $Store -Cidrs $cidrs) {
        $holder = "$($entry.owner) $($entry.interface)"
        New-Difference -Key "leaked:$($entry.address)" -What "leaked address $($entry.address)" -Is $holder -Want $null
    }
}

function Get-StaleEntry {
    # Reservations of pods that are gone: after a hard restart no runtime asks the plug-in to give addresses back.
    # containerd lists a sandbox seconds after its address is taken (sandbox_run.go: setupPodNetwork, StartSandbox,
    # sandboxStore.Add), so a reservation of the last ten minutes may be of a pod that is being created. Returns nothing if
    # none exists.
    param([string]$Store, [string[]]$Cidrs)
    $recent = [DateTime]::UtcNow.AddMinutes(-10)
    $sandboxes = $null
    foreach ($path in Get-StoreFile -Store $Store) {
        $entry = Read-StoreEntry -Path $path
        if (-not ($Cidrs | Where-Object { Test-CidrMember -Cidr $_ -Address $entry.address })) { $entry; continue }
        # A container id; anything else is another tool's reservation.
        if ($entry.owner -notmatch '^[0-9a-f]{64}$') { continue }
        if ([IO.File]::GetLastWriteTimeUtc($path) -gt $recent) { continue }
        # Without an answer nothing is known to be stale.
        if ($null -eq $sandboxes) { $sandboxes = @(Invoke-Crictl -Arguments @('pods', '--quiet', '--no-trunc')) }
        if ($sandboxes.Count -gt 0 -and $sandboxes[0] -notmatch $entry.owner) { $entry }
    }
}

function Set-Reservation {
    # Removes entries that no pod holds any more, and reserves the wanted addresses.
    param([string]$Store, [hashtable[]]$Reservations)
    [void](Assert-Known -Text '<<pod_cidr>>')
    [void][IO.Directory]::CreateDirectory($Store)
    # An undo need not restore it, so it is not noted.
    foreach ($entry in Get-StaleEntry -Store $Store -Cidrs @(Get-PodCidr)) { Remove-File -Path $entry.path }
    foreach ($reservation in $Reservations) {
        $address = Assert-Known -Text $reservation.address
        $path = Get-StorePath -Store $Store -Address $address
        if ([IO.File]::Exists($path) -and (Read-StoreEntry -Path $path).owner -match '^[0-9a-f]{64}$') {
            Stop-Step -Id 'AddressInUse' -Message "a pod has the address $address, which is kept for $($reservation.holder) $($reservation.interface)"
        }
        Set-FileText -Path $path -Text "$($reservation.holder)`r`n$($reservation.interface)"
    }
}
