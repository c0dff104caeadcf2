# containerd, asked through crictl.

function Invoke-Crictl {
    # Nothing when containerd does not answer.
    param([string[]]$Arguments, [int]$TimeoutSeconds = 30)
    if (-not [IO.File]::Exists($script:Node.crictl) -or -not [IO.File]::Exists($script:Node.crictl_config)) { return }
    if ((Get-ServiceState 'containerd') -ne 'Running') { return }
    $ended = Invoke-Program -Path $script:Node.crictl -Arguments (@('--config', $script:Node.crictl_config) + $Arguments) -TimeoutSeconds $TimeoutSeconds
    if ($ended.ExitCode -eq 0) { $ended.Output }
}

function Get-ImageDifference {
    param([string]$Image)
    $listed = Invoke-Crictl -Arguments @('images', '--output', 'json')
    $tags = @()
    if ($null -ne $listed) {
        $tags = @((ConvertFrom-Json -InputObject $listed).images | ForEach-Object { $_.repoTags })
    }
    if ($tags -notcontains $Image) { New-Difference -What "image $Image" -Is $null -Want 'present' }
}

function Install-Image {
    param([string]$Image)
    $arguments = @('--config', $script:Node.crictl_config, '--timeout', '600s', 'pull', $Image)
    $ended = Invoke-Program -Path $script:Node.crictl -Arguments $arguments -TimeoutSeconds 620
    if ($ended.ExitCode -ne 0) {
        Stop-Step 'ImagePull' "$Image cannot be pulled: $($ended.ErrorOutput.Trim())"
    }
}

function Get-HostsFileDifference {
    # The text we know, then a header with the login, which is never compared: it is there, readable only by few.
    param($Registry)
    $is = Read-FileText $Registry.path
    $what = "file $($Registry.path):"
    if ($null -eq $is -or -not $is.StartsWith($Registry.text, [StringComparison]::Ordinal)) {
        New-Difference -What "$what content" -Is (ConvertTo-TextSummary $is) -Want (ConvertTo-TextSummary $Registry.text)
        return
    }
    $headers = [regex]::Matches($is, '(?m)^\s*authorization = "Basic [A-Za-z0-9+/=]+"').Count
    Compare-Wanted -What "$what logins" -Is $headers -Want @($Registry.authorize).Count
    $strangers = Get-Strangers $Registry.path
    if ($null -ne $strangers) {
        New-Difference -What "$what access" -Is "also $strangers" -Want 'SYSTEM and Administrators only'
    }
}

function Set-HostsFile {
    param($Registry)
    $login = [Text.UTF8Encoding]::new($false).GetBytes("$($Registry.user):$(Read-Secret $Registry.secret)")
    $text = $Registry.text
    foreach ($url in @($Registry.authorize)) {
        $text += "`n[host.`"{0}`".header]`n  authorization = `"Basic {1}`"`n" -f $url, [Convert]::ToBase64String($login)
    }
    Save-CreatedFile $Registry.path
    Write-FileText -Path $Registry.path -Text $text -Private
}

function Save-CreatedFile {
    # The former bytes of a file that holds a secret are kept nowhere.
    param([string]$Path)
    Save-FormerValue -Kind 'File' -Key $Path -Value @{ path = $Path; bytes = $null; kept = $null }
}

function Wait-Containerd {
    if (Wait-Until -Seconds 60 -Test { $null -ne (Invoke-Crictl -Arguments @('version')) }) { return }
    Stop-Step 'ContainerdSilent' 'containerd does not answer after 60 seconds'
}
