# CA certificates in the machine's store of trusted roots: thumbprint, body (base64 of its bytes).

function Use-RootStore {
    param([ValidateSet('ReadOnly', 'ReadWrite')][string]$Access, $Work)
    $store = [Security.Cryptography.X509Certificates.X509Store]::new('Root', 'LocalMachine')
    $store.Open($Access)
    try { & $Work $store } finally { $store.Close() }
}

function Get-RootDifference {
    param($Roots)
    $known = @(Use-RootStore -Access ReadOnly -Work { param($Store) $Store.Certificates | ForEach-Object { $_.Thumbprint } })
    foreach ($root in $Roots) {
        if ($known -notcontains $root.thumbprint) { New-Difference -What ('trusted root ' + $root.thumbprint) -Is $null -Want 'present' }
    }
}

function Add-Root {
    param($Roots)
    foreach ($root in $Roots) {
        if (@(Get-RootDifference @($root)).Count -eq 0) { continue }
        Save-FormerValue 'Root' $root.thumbprint @{ thumbprint = $root.thumbprint }
        $certificate = [Security.Cryptography.X509Certificates.X509Certificate2]::new([Convert]::FromBase64String($root.body))
        Use-RootStore -Access ReadWrite -Work { param($Store) $Store.Add($certificate) }
    }
}

function Restore-Root {
    param([object]$Former)
    Use-RootStore -Access ReadWrite -Work {
        param($Store)
        foreach ($found in $Store.Certificates | Where-Object { $_.Thumbprint -eq $Former.thumbprint }) { $Store.Remove($found) }
    }
}
