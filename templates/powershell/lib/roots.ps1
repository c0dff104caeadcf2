# SUMMARY Adds and removes CA certificates in the machine's store of trusted roots.
# A certificate is a table: thumbprint, body (base64 of its bytes).

function Use-RootStore {
    # Runs Work with the machine's store of trusted roots, and closes it.
    param([ValidateSet('ReadOnly', 'ReadWrite')][string]$Access, [scriptblock]$Work)
    $store = [Security.Cryptography.X509Certificates.X509Store]::new('Root', 'LocalMachine')
    $store.Open($Access)
    try { & $Work $store } finally { $store.Close() }
}

function Get-RootDifference {
    # A difference for each CA that this machine does not trust.
    param([hashtable[]]$Roots)
    $known = @(Use-RootStore -Access ReadOnly -Work { param($Store) $Store.Certificates | ForEach-Object { $_.Thumbprint } })
    foreach ($root in $Roots) {
        if ($known -notcontains $root.thumbprint) {
            New-Difference -Key "root:$($root.thumbprint)" -What "trusted root $($root.thumbprint)" -Is $null -Want 'present'
        }
    }
}

function Add-Root {
    # Adds the CAs that are missing (undone by Restore-Root).
    param([hashtable[]]$Roots)
    foreach ($root in $Roots) {
        if (@(Get-RootDifference -Roots @($root)).Count -eq 0) { continue }
        Save-FormerValue -Kind 'Root' -Key $root.thumbprint -Value @{ thumbprint = $root.thumbprint }
        $certificate = [Security.Cryptography.X509Certificates.X509Certificate2]::new([Convert]::FromBase64String($root.body))
        Use-RootStore -Access ReadWrite -Work { param($Store) $Store.Add($certificate) }
    }
}

function Restore-Root {
    # Takes a CA out again that winboot added.
    param([object]$Former)
    Use-RootStore -Access ReadWrite -Work {
        param($Store)
        foreach ($found in $Store.Certificates | Where-Object { $_.Thumbprint -eq $Former.thumbprint }) {
            $Store.Remove($found)
        }
    }
}
