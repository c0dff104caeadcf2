# SUMMARY Adds and removes CA certificates in the stores Root and CA (intermediate CAs).
# The stores are those of this machine. A certificate is a table: store, thumbprint, body (base64 of its bytes).

function Use-CertificateStore {
    # Runs Work with a certificate store of the machine, and closes it.
    param([ValidateSet('Root', 'CA')][string]$Name, [ValidateSet('ReadOnly', 'ReadWrite')][string]$Access, [scriptblock]$Work)
    $store = [Security.Cryptography.X509Certificates.X509Store]::new($Name, 'LocalMachine')
    $store.Open($Access)
    try { & $Work $store } finally { $store.Close() }
}

function Test-StoredCertificate {
    # Whether a store has a certificate.
    param([string]$Store, [string]$Thumbprint)
    $known = @(Get-Fact -Fact "Store $Store" -Ask {
            Use-CertificateStore -Name $Store -Access ReadOnly -Work { param($Opened) $Opened.Certificates | ForEach-Object { $_.Thumbprint } }
        })
    $known -contains $Thumbprint
}

function Test-MisplacedRoot {
    # Whether an older winboot put this certificate of an intermediate CA into Root.
    param([hashtable]$Root)
    $Root.store -eq 'CA' -and (Test-FormerNote -Kind 'Root' -Key $Root.thumbprint) -and
    (Test-StoredCertificate -Store 'Root' -Thumbprint $Root.thumbprint)
}

function Get-RootDifference {
    # A difference for each certificate that is not in its store, or is in another where winboot put it.
    param([hashtable[]]$Roots)
    foreach ($root in $Roots) {
        $thumbprint = $root.thumbprint
        if (-not (Test-StoredCertificate -Store $root.store -Thumbprint $thumbprint)) {
            New-Difference -Key "root:$thumbprint" -What "certificate $thumbprint in the store $($root.store)" -Is $null -Want 'present'
        }
        if (Test-MisplacedRoot -Root $root) {
            New-Difference -Key "misplaced:$thumbprint" -What "certificate $thumbprint in the store Root" -Is 'present' -Want $null
        }
    }
}

function Add-Root {
    # Adds the certificates that are missing (undone by Restore-Root), and takes those that winboot misplaced out of Root.
    param([hashtable[]]$Roots)
    foreach ($root in $Roots) {
        if (Test-MisplacedRoot -Root $root) { Restore-Root -Former ([pscustomobject]@{ thumbprint = $root.thumbprint }) }
        if (Test-StoredCertificate -Store $root.store -Thumbprint $root.thumbprint) { continue }
        $key = if ($root.store -eq 'Root') { $root.thumbprint } else { "$($root.store)\$($root.thumbprint)" }
        Save-FormerValue -Kind 'Root' -Key $key -Value @{ thumbprint = $root.thumbprint; store = $root.store }
        $certificate = [Security.Cryptography.X509Certificates.X509Certificate2]::new([Convert]::FromBase64String($root.body))
        Use-CertificateStore -Name $root.store -Access ReadWrite -Work { param($Store) $Store.Add($certificate) }
    }
}

function Restore-Root {
    # Takes a certificate that winboot added out of its store. Notes without a store are of an older winboot: it knew Root only.
    param([object]$Former)
    $name = Read-Member -Object $Former -Names 'store'
    if (-not $name) { $name = 'Root' }
    Use-CertificateStore -Name $name -Access ReadWrite -Work {
        param($Store)
        foreach ($found in $Store.Certificates | Where-Object { $_.Thumbprint -eq $Former.thumbprint }) {
            $Store.Remove($found)
        }
    }
}
