function Get-StoreFile {
    param([string]$Store)
    if (-not [IO.Directory]::Exists($Store)) { return }
    foreach ($path in [IO.Directory]::GetFiles($Store)) {
        # Colons of an IPv6 address are written as underscores.
        if ([IO.Path]::GetFileName($path) -match '^(\d+\.\d+\.\d+\.\d+|[0-9a-f]+_[0-9a-f_]+)$') { $path }
    }
}

function Get-StorePath {
    param([string]$Store, [string]$Address)
    "$Store\$($Address.Replace(':', '_'))"
}

function Read-StoreEntry {
    param([string]$Path)
    $lines = @("$(Read-FileText $Path)" -split '\r?\n') + @('', '')
    @{ path = $Path; address = [IO.Path]::GetFileName($Path).Replace('_', ':'); owner = $lines[0]; interface = $lines[1] }
}

function Get-StoreVip {
    # The one reserved before, while it is in the pod network; else the first that nobody has.
    param([string]$Place, $Known)
    if (-not $Known.ContainsKey('pod_cidr')) { return }
    $cidr = $Known.pod_cidr
    $taken = @{}
    foreach ($path in Get-StoreFile $Place) {
        $entry = Read-StoreEntry $path
        if ($entry.interface -eq 'source-vip' -and (Test-CidrMember $cidr $entry.address)) { return $entry.address }
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
    param([string]$Store, $Reservations)
    foreach ($reservation in $Reservations) {
        $holder = "$($reservation.holder) $($reservation.interface)"
        $address = Expand-Known $reservation.address
        $want = if ($address) { "${address}: $holder" }
        $is = $null
        if ($address -and [IO.File]::Exists((Get-StorePath $Store $address))) {
            $entry = Read-StoreEntry (Get-StorePath $Store $address)
            $is = "${address}: $($entry.owner) $($entry.interface)"
        }
        Compare-Wanted -Key "reserved:$holder" -What "reserved address for $holder" -Is $is -Want $want -Unknown:(-not $address)
    }
    $cidrs = @(Get-PodCidr)
    if (-not $cidrs) { return }
    foreach ($entry in Get-StaleEntry $Store $cidrs) {
        New-Difference -What "leaked address $($entry.address)" -Is "$($entry.owner) $($entry.interface)" -Want $null
    }
}

function Get-StaleEntry {
    # Reservations of pods that are gone: after a hard restart the plug-in is never asked to give addresses back.
    # containerd lists a sandbox seconds after its address is taken (sandbox_run.go: setupPodNetwork, StartSandbox,
    # sandboxStore.Add), so a reservation of the last ten minutes may be of a pod that is being created.
    param([string]$Store, [string[]]$Cidrs)
    $recent = [DateTime]::UtcNow.AddMinutes(-10)
    $sandboxes = $null
    foreach ($path in Get-StoreFile $Store) {
        $entry = Read-StoreEntry $path
        if (-not ($Cidrs | Where-Object { Test-CidrMember $_ $entry.address })) { $entry; continue }
        # A container id; anything else is somebody's reservation.
        if ($entry.owner -notmatch '^[0-9a-f]{64}$') { continue }
        if ([IO.File]::GetLastWriteTimeUtc($path) -gt $recent) { continue }
        # Without an answer nothing is known to be stale.
        if ($null -eq $sandboxes) { $sandboxes = @(Invoke-Crictl @('pods', '--quiet', '--no-trunc')) }
        if ($sandboxes.Count -gt 0 -and $sandboxes[0] -notmatch $entry.owner) { $entry }
    }
}

function Set-Reservation {
    param([string]$Store, $Reservations)
    [void](Assert-Known '<<pod_cidr>>')
    [void][IO.Directory]::CreateDirectory($Store)
    # Nobody would want it back, so it is not noted.
    foreach ($entry in Get-StaleEntry $Store @(Get-PodCidr)) { Remove-File $entry.path }
    foreach ($reservation in $Reservations) {
        $address = Assert-Known $reservation.address
        $path = Get-StorePath $Store $address
        if ([IO.File]::Exists($path) -and (Read-StoreEntry $path).owner -match '^[0-9a-f]{64}$') {
            Stop-Step 'AddressInUse' "a pod has the address $address, which is kept for $($reservation.holder) $($reservation.interface)"
        }
        Set-FileText $path "$($reservation.holder)`r`n$($reservation.interface)"
    }
}
