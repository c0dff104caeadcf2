# Certificates in PEM files, as the kubelet keeps them: certificate and key in one file, behind a link.

function Read-PemCertificate {
    # The first certificate of a file; nothing when the file is absent or holds none.
    param([string]$Path)
    $text = Read-FileText $Path
    if ($null -eq $text) { return }
    $match = [regex]::Match($text, '-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----')
    if (-not $match.Success) { return }
    # Windows PowerShell cannot read a PEM file with a key in it, but it can read the bytes of the certificate.
    [Security.Cryptography.X509Certificates.X509Certificate2]::new([Convert]::FromBase64String($match.Groups[1].Value))
}

function Test-CurrentCertificate {
    # True when the file holds a certificate that has not run out.
    param([string]$Path)
    $certificate = Read-PemCertificate $Path
    $null -ne $certificate -and $certificate.NotAfter -gt [DateTime]::Now
}

function Get-CredentialFault {
    # Why the kubelet's credentials are of no use for this cluster and node; nothing when they are.
    param([hashtable]$Credential)
    $kubeconfig = Read-FileText $Credential.kubeconfig
    if ($null -eq $kubeconfig) { return 'no kubeconfig' }
    $server = [regex]::Match($kubeconfig, '(?m)^\s*server:\s*"?([^\s"]+)')
    if (-not $server.Success -or $server.Groups[1].Value -cne $Credential.server) { return 'kubeconfig of another cluster' }
    # Same server, other CA: the cluster was made anew, and its predecessor's certificates are worth nothing.
    $ca = Get-PathHash $Credential.ca_path
    if ($null -ne $ca -and $ca -ne $Credential.ca_sha256) { return 'issued below another CA' }
    $certificate = Read-PemCertificate $Credential.certificate
    if ($null -eq $certificate) { return 'no client certificate' }
    $name = $certificate.GetNameInfo([Security.Cryptography.X509Certificates.X509NameType]::SimpleName, $false)
    if ($name -cne ('system:node:' + $Credential.node)) { return 'client certificate of ' + $name }
    if ($certificate.NotAfter -le [DateTime]::Now) { return 'client certificate has expired' }
}

function Get-CredentialDifference {
    # Valid credentials need nothing; without them a bootstrap file of this very run is enough, because the kubelet
    # makes the rest of it.
    param([hashtable]$Credential)
    $fault = Get-CredentialFault -Credential $Credential
    if ($null -eq $fault) { return }
    if ($script:Run.ContainsKey('Bootstrapped') -and [IO.File]::Exists($Credential.bootstrap_path)) { return }
    New-Difference -What 'kubelet client certificate' -Is $fault -Want ('system:node:{0}, for {1}' -f $Credential.node, $Credential.server)
}

function Set-Credential {
    # Takes useless credentials away and gives the kubelet a token to ask for new ones.
    param([hashtable]$Credential)
    if ($null -eq (Get-CredentialFault -Credential $Credential)) { return }
    Stop-RunningService -Name 'kubelet'
    Remove-OldFile -Path $Credential.kubeconfig
    if ([IO.Directory]::Exists($Credential.pki)) {
        foreach ($path in [IO.Directory]::GetFiles($Credential.pki, 'kubelet-*')) { [IO.File]::Delete($path) }
    }
    $text = $Credential.bootstrap_text.Replace($Credential.token_place, (Read-Secret -Name $Credential.secret))
    Save-CreatedFile -Path $Credential.bootstrap_path
    Write-FileText -Path $Credential.bootstrap_path -Text $text -Private
    $script:Run['Bootstrapped'] = $true
}
