# SUMMARY Checks client certificates and writes the kubelet's kubeconfig files.

function Read-PemCertificate {
    # The first certificate of a PEM file; nothing where the file is missing, $null where it holds no certificate.
    param([string]$Path)
    $text = Read-FileText -Path $Path
    if ($null -ne $text) { ConvertFrom-Pem -Text $text }
}

function ConvertFrom-Pem {
    # The first certificate of a PEM text; $null when it has none, or one that is damaged.
    param([string]$Text)
    $match = [regex]::Match($Text, '-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----')
    if (-not $match.Success) { return $null }
    try {
        $bytes = [Convert]::FromBase64String($match.Groups[1].Value)
        # Of no bytes at all .NET makes an object without a certificate in it.
        if ($bytes.Length -eq 0) { return $null }
        [Security.Cryptography.X509Certificates.X509Certificate2]::new($bytes)
    }
    catch [FormatException], [Security.Cryptography.CryptographicException] { return $null }
}

function Test-CurrentCertificate {
    # Whether the file holds a certificate that has not expired. NotAfter is local time, and is compared with local
    # time.
    param([string]$Path)
    $certificate = Read-PemCertificate -Path $Path
    $null -ne $certificate -and $certificate.NotAfter -gt [DateTime]::Now
}

function Read-KubeconfigServer {
    # The API server that a kubeconfig names first, in YAML or JSON; an empty text where it names none.
    param([string]$Path)
    [regex]::Match("$(Read-FileText -Path $Path)", '(?m)^\s*"?server"?:\s*"?([^\s",]+)').Groups[1].Value
}

function Get-CredentialFault {
    # Why the kubelet cannot use the client certificate it has, in words; nothing where it can. The kubelet itself looks
    # at no more than the expiry before it leaves the bootstrap token alone (isClientConfigStillValid in its
    # certificate/bootstrap/bootstrap.go).
    param([hashtable]$Credential)
    $kubeconfig = Read-FileText -Path $Credential.kubeconfig
    if ($null -eq $kubeconfig) { return 'no kubeconfig' }
    if ((Read-KubeconfigServer -Path $Credential.kubeconfig) -cne $Credential.server) { return 'kubeconfig of another cluster' }
    # Same server, other CA: the cluster was created again.
    $ca = Get-PathHash -Path $Credential.ca_path
    if ($ca -and $ca -ne $Credential.ca_sha256) { return 'issued below another CA' }
    $certificate = Read-PemCertificate -Path $Credential.certificate
    if (-not $certificate) { return 'no client certificate' }
    $name = $certificate.GetNameInfo('SimpleName', $false)
    if ($name -cne "system:node:$($Credential.node)") { return "client certificate of $name" }
    if ($certificate.NotAfter -le [DateTime]::Now) { return 'client certificate has expired' }
}

function Get-CredentialDifference {
    # A difference where the kubelet's client certificate cannot be used; nothing where it can.
    # A bootstrap file of this very run is enough.
    param([hashtable]$Credential)
    $fault = Get-CredentialFault -Credential $Credential
    # The step before this one lets our kubelet continue with the certificate that is here.
    if (Test-KeptIdentity -Credential $Credential) { return }
    if (-not $fault -or ($script:Run.ContainsKey('Bootstrapped') -and [IO.File]::Exists($Credential.bootstrap_path))) { return }
    $shown = @{ Is = $fault; Want = "system:node:$($Credential.node), for $($Credential.server)" }
    # Other accounts may write kubeadm's folders: what is in them is believed when they are ours alone.
    if ([IO.File]::Exists((Get-KubeadmCredential)) -and -not (Test-Adopted)) {
        $shown = @{ Is = "by $(Get-KubeadmCredential)"; Want = 'kept if it is valid'; Unknown = $true }
    }
    New-Difference -Key 'kubelet:client-certificate' -What 'kubelet client certificate' @shown
}

function Set-Credential {
    # Replaces credentials that cannot be used by a bootstrap kubeconfig with the token that was sent; the kubelet asks
    # for its certificate with it. Returns nothing.
    param([hashtable]$Credential)
    if ($null -eq (Get-CredentialFault -Credential $Credential)) { return }
    Stop-RunningService -Name 'kubelet'
    # An undo restores the keys that were there before winboot; our kubelet's keys go with it. The note about ours comes after
    # theirs, so that an undo, which goes backwards, removes ours first.
    $ours = (Test-FormerNote -Kind 'KubeletKey' -Key $Credential.pki) -or (Test-FormerNote -Kind 'File' -Key $Credential.kubeconfig)
    if (-not $ours -and [IO.Directory]::Exists($Credential.pki)) {
        # Links first: an undo goes backwards, and makes a link only to a file that is there.
        $paths = [IO.Directory]::GetFiles($Credential.pki, 'kubelet-*') | Sort-Object -Property { -not (Test-Link -Path $_) }
        foreach ($path in $paths) { Save-SecretFile -Path $path }
    }
    Save-FormerValue -Kind 'KubeletKey' -Key $Credential.pki -Value @{ path = $Credential.pki }
    Save-SecretFile -Path $Credential.kubeconfig
    Remove-File -Path $Credential.kubeconfig
    if ([IO.Directory]::Exists($Credential.pki)) {
        foreach ($path in [IO.Directory]::GetFiles($Credential.pki, 'kubelet-*')) { Remove-File -Path $path }
    }
    $text = $Credential.bootstrap_text.Replace($Credential.token_place, (Read-Secret -Name $Credential.secret))
    Save-SecretFile -Path $Credential.bootstrap_path
    Write-FileText -Path $Credential.bootstrap_path -Text $text -Private
    $script:Run['Bootstrapped'] = $true
}

function Restore-KubeletKey {
    # Removes the keys and certificates that our kubelet made, also where their folder was there before it.
    param([object]$Former)
    if (-not [IO.Directory]::Exists($Former.path)) { return }
    foreach ($path in [IO.Directory]::GetFiles($Former.path, 'kubelet-*')) { Remove-File -Path $path }
}

function Get-KubeconfigDifference {
    # A kubeconfig with a credential in it. Wanted is a table: path, server, ca_path, secret. Everything but the
    # credential itself is compared: that it is there, which accounts may read it, for which cluster, and until when it holds.
    param([hashtable]$Wanted)
    $what = "file $($Wanted.path):"
    $text = Read-FileText -Path $Wanted.path
    if ($null -eq $text) { New-Difference -Key "credential:$($Wanted.path)" -What "$what credential" -Is $null -Want 'present'; return }
    $strangers = Get-UntrustedAccount -Path $Wanted.path
    if ($null -ne $strangers) {
        New-Difference -Key "access:$($Wanted.path)" -What "$what access" -Is "also $strangers" -Want 'SYSTEM and Administrators only'
    }
    # Another owner's YAML is a kubeconfig too, but not the one that winboot writes.
    $other = @{ What = "$what form"; Is = 'other text'; Want = 'JSON' }
    if ($text -notmatch '^\s*\{[\s\S]*\}\s*$') { New-Difference -Key "form:$($Wanted.path)" @other; return }
    $config = $null
    # Module logging writes down what a cmdlet is given: of the credential that is the claims of a token at most.
    $shown = $text -replace '("client-key-data"\s*:\s*")[^"]*', '$1' -replace '("token"\s*:\s*")(?:[^".]*(\.[^".]*\.))?[^"]*', '$1$2'
    try { $config = ConvertFrom-Json -InputObject $shown }
    catch [ArgumentException] { New-Difference -Key "form:$($Wanted.path)" @other; return }
    $cluster = Read-Member -Object (Read-Item -Object $config -Name 'clusters' | Select-Object -First 1) -Names 'cluster'
    $user = Read-Member -Object (Read-Item -Object $config -Name 'users' | Select-Object -First 1) -Names 'user'
    $server = Read-Member -Object $cluster -Names 'server'
    Compare-Wanted -Key "server:$($Wanted.path)" -What "$what server" -Is $server -Want $Wanted.server
    $ca = Read-Member -Object $cluster -Names 'certificate-authority'
    Compare-Wanted -Key "ca:$($Wanted.path)" -What "$what CA" -Is $ca -Want $Wanted.ca_path
    $end = Get-CredentialEnd -User $user
    if ($null -ne $end -and $end -lt [DateTime]::UtcNow) {
        # In the calendar of everybody: a machine set to Thai or Arabic would show another year.
        $ended = $end.ToString('yyyy-MM-dd HH:mm', [Globalization.CultureInfo]::InvariantCulture)
        New-Difference -Key "credential:$($Wanted.path)" -What "$what credential" -Is "ended ${ended}Z" -Want 'in force'
    }
}

function Get-CredentialEnd {
    # Until when a token or an inline certificate holds, in UTC; nothing when it has no end or does not show it.
    param([object]$User)
    $inline = "$(Read-Member -Object $User -Names 'client-certificate-data')"
    if ($inline) {
        try { $certificate = ConvertFrom-Pem -Text ([Text.Encoding]::ASCII.GetString([Convert]::FromBase64String($inline))) }
        # Not base64: this credential has no end that could be read.
        catch [FormatException] { return }
        if ($certificate) { $certificate.NotAfter.ToUniversalTime() }
        return
    }
    $parts = "$(Read-Member -Object $User -Names 'token')".Split('.')
    # The token of a service account is a JSON web token: three parts, of which the second holds the claims.
    if ($parts.Count -ne 3) { return }
    $claims = $parts[1].Replace('-', '+').Replace('_', '/')
    $claims = $claims.PadRight($claims.Length + (4 - $claims.Length % 4) % 4, '=')
    $seconds = 0.0
    # A token of another kind may have two dots as well: what does not read as claims has no end.
    try {
        $text = [Text.Encoding]::UTF8.GetString([Convert]::FromBase64String($claims))
        $end = Read-Member -Object (ConvertFrom-Json -InputObject $text) -Names 'exp'
        $seconds = [double]$end
    }
    catch [FormatException], [ArgumentException], [InvalidCastException] { return }
    # Up to the end of the year 9999, which is as far as a DateTime goes.
    if ($seconds -gt 0 -and $seconds -lt 253402300800) {
        [DateTime]::new(1970, 1, 1, 0, 0, 0, [DateTimeKind]::Utc).AddSeconds($seconds)
    }
}

function Set-Kubeconfig {
    # Writes the kubeconfig that was sent as a secret where it differs, readable for SYSTEM and Administrators only, and
    # notes that Service has to restart. Returns nothing.
    param([hashtable]$Wanted, [string]$Service)
    if (-not (Get-KubeconfigDifference -Wanted $Wanted)) { return }
    Save-RestartNeed -Name $Service
    Save-SecretFile -Path $Wanted.path
    Write-FileText -Path $Wanted.path -Text (Read-Secret -Name $Wanted.secret) -Private
}
