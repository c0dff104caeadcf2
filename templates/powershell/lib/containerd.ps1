function Invoke-Crictl {
    param([string[]]$Arguments, [int]$Seconds = 30)
    if (-not [IO.File]::Exists($script:Node.crictl) -or -not [IO.File]::Exists($script:Node.crictl_config)) { return }
    if ((Get-ServiceState -Name 'containerd') -ne 'Running') { return }
    $ended = Invoke-Program -Path $script:Node.crictl -Arguments (@('--config', $script:Node.crictl_config) + $Arguments) -Seconds $Seconds
    if ($ended.ExitCode -eq 0) { $ended.Output }
}

function Get-ImageDifference {
    param([string]$Image)
    $listed = Invoke-Crictl -Arguments @('images', '--output', 'json')
    $tags = if ($listed) { (ConvertFrom-Json -InputObject $listed).images | ForEach-Object { $_.repoTags } }
    if (@($tags) -notcontains $Image) { New-Difference -What "image $Image" -Is $null -Want 'present' }
}

function Install-Image {
    param([string]$Image)
    $arguments = @('--config', $script:Node.crictl_config, '--timeout', '600s', 'pull', $Image)
    $ended = Invoke-Program -Path $script:Node.crictl -Arguments $arguments -Seconds 620
    if ($ended.ExitCode -ne 0) { Stop-Step -Id 'ImagePull' -Message "$Image cannot be pulled: $($ended.ErrorOutput.Trim())" }
}

function Get-HostsFileDifference {
    # The text we know, then a header with the login, which is never compared: it is there, readable only by few.
    param($Registry)
    $is = Read-FileText -Path $Registry.path
    $what = "file $($Registry.path):"
    if ($null -eq $is -or -not $is.StartsWith($Registry.text, [StringComparison]::Ordinal)) {
        New-Difference -What "$what content" -Is (ConvertTo-TextSummary -Text $is) -Want (ConvertTo-TextSummary -Text $Registry.text)
        return
    }
    $rest = [regex]::Replace($is.Substring($Registry.text.Length), 'Basic [A-Za-z0-9+/=]+"', 'Basic "')
    if ($rest -cne (Get-LoginText -Registry $Registry -Login '')) {
        New-Difference -What "$what logins" -Is 'otherwise' -Want "for $($Registry.authorize -join ', ')"
    }
    $strangers = Get-Stranger -Path $Registry.path
    if ($null -ne $strangers) {
        New-Difference -What "$what access" -Is "also $strangers" -Want 'SYSTEM and Administrators only'
    }
}

function Set-HostsFile {
    param($Registry)
    $login = [Text.UTF8Encoding]::new($false).GetBytes("$($Registry.user):$(Read-Secret -Name $Registry.secret)")
    $text = $Registry.text + (Get-LoginText -Registry $Registry -Login ([Convert]::ToBase64String($login)))
    Save-SecretFile -Path $Registry.path
    Write-FileText -Path $Registry.path -Text $text -Private
}

function Get-LoginText {
    param($Registry, [string]$Login)
    -join @(foreach ($url in $Registry.authorize) { "`n[host.`"$url`".header]`n  authorization = `"Basic $Login`"`n" })
}

function Wait-Containerd {
    if (Wait-Until -Test { $null -ne (Invoke-Crictl -Arguments @('version')) } -Seconds 60) { return }
    Stop-Step -Id 'ContainerdSilent' -Message 'containerd does not answer after 60 seconds'
}
