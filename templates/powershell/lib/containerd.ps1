# SUMMARY Handles containerd's images, hosts files, pipe and leftover shims.

function Invoke-Crictl {
    # What crictl prints; nothing where it or what answers it is not there yet, or where it ends with an error. With dockershim the
    # kubelet answers.
    param([string[]]$Arguments, [int]$Seconds = 30)
    if ((Get-ServiceState -Name $script:Node.runtime) -ne 'Running') { return }
    $program = $script:Node.crictl
    if (-not (Test-OwnPath -Path $script:Node.crictl_config) -or -not (Test-OwnPath -Path $program -Program)) { return }
    $ended = Start-Crictl -Arguments $Arguments -Seconds $Seconds
    if ($ended.ExitCode -eq 0) { $ended.Output }
}

function Start-Crictl {
    # Runs crictl with our settings, and returns how it ended.
    param([string[]]$Arguments, [int]$Seconds)
    $config = $script:Node.crictl_config
    Invoke-Program -Path $script:Node.crictl -Arguments (@('--config', $config) + $Arguments) -Reads $config -Seconds $Seconds
}

function Get-MissingImage {
    # Those of the images that the runtime does not have; nothing where it has all. Names are compared as it lists them, with registry and tag or
    # digest.
    param([string[]]$Images)
    $names = if ($script:Node['docker']) { Invoke-Docker -Arguments @('image', 'ls', '--format', '{{.Repository}}:{{.Tag}}') }
    elseif ($listed = Invoke-Crictl -Arguments @('images', '--output', 'json')) {
        (ConvertFrom-Json -InputObject $listed).images | ForEach-Object { @($_.repoTags) + @($_.repoDigests) }
    }
    $Images | Where-Object { @($names) -notcontains $_ }
}

function Get-ImageDifference {
    # A difference for each image that the runtime does not have.
    param([string[]]$Images)
    foreach ($image in Get-MissingImage -Images $Images) {
        New-Difference -Key "image:$image" -What "image $image" -Is $null -Want 'present'
    }
}

function Install-Image {
    # Pulls an image, or stops the step with what the program printed. Returns nothing.
    param([string]$Image)
    $ended = Start-ImagePull -Image $Image
    if ($ended.ExitCode -ne 0) { Stop-Step -Id 'ImagePull' -Message "$Image cannot be pulled: $($ended.ErrorOutput.Trim())" }
}

function Start-ImagePull {
    # Pulls an image, and returns how the program ended. crictl's own limit is 600 seconds: it ends before Invoke-Program would end
    # it, and reports why. Docker pulls by itself: dockershim is there with the kubelet only.
    param([string]$Image)
    if ($script:Node['docker']) { Invoke-Program -Path $script:Node.docker -Arguments @('pull', $Image) -Seconds 620 }
    else { Start-Crictl -Arguments @('--timeout', '600s', 'pull', $Image) -Seconds 620 }
}

function Get-HostsFileDifference {
    # A difference where a registry's hosts.toml has another text, other logins or other readers; nothing where it is
    # right.
    # The text we know, then a header with the login, which is never compared: it is there, readable only by few.
    param([hashtable]$Registry)
    $is = Read-FileText -Path $Registry.path
    $what = "file $($Registry.path):"
    if ($null -eq $is -or -not $is.StartsWith($Registry.text, [StringComparison]::Ordinal)) {
        $shown = @{ Is = (ConvertTo-TextSummary -Text $is); Want = (ConvertTo-TextSummary -Text $Registry.text) }
        New-Difference -Key "file:$($Registry.path)" -What "$what content" @shown
        return
    }
    $rest = [regex]::Replace($is.Substring($Registry.text.Length), 'Basic [A-Za-z0-9+/=]+"', 'Basic "')
    if ($rest -cne (Get-LoginText -Registry $Registry -Login '')) {
        New-Difference -Key "logins:$($Registry.path)" -What "$what logins" -Is 'otherwise' -Want "for $($Registry.authorize -join ', ')"
    }
    $strangers = Get-UntrustedAccount -Path $Registry.path
    if ($null -ne $strangers) {
        New-Difference -Key "access:$($Registry.path)" -What "$what access" -Is "also $strangers" -Want 'SYSTEM and Administrators only'
    }
}

function Set-HostsFile {
    # Writes a registry's hosts.toml with the login that was sent as a secret, readable for SYSTEM and Administrators
    # only. Returns nothing.
    param([hashtable]$Registry)
    $login = [Text.UTF8Encoding]::new($false).GetBytes("$($Registry.user):$(Read-Secret -Name $Registry.secret)")
    $text = $Registry.text + (Get-LoginText -Registry $Registry -Login ([Convert]::ToBase64String($login)))
    Save-SecretFile -Path $Registry.path
    Write-FileText -Path $Registry.path -Text $text -Private
}

function Get-LoginText {
    # The end of hosts.toml: the login and other headers for each address that they are sent to, as text. containerd reads it at
    # every pull.
    param([hashtable]$Registry, [string]$Login)
    $further = -join @(foreach ($line in $Registry.headers) { "$line`n" })
    -join @(foreach ($url in $Registry.authorize) { "`n[host.`"$url`".header]`n  authorization = `"Basic $Login`"`n$further" })
}

function Select-LayerForm {
    # The files, as a table. Without the Line that discards layers where a live node has a config.toml without it: what is
    # there stays until a drain.
    param([hashtable]$Files, [string]$Path, [string]$Line)
    $facts = $script:Run.Facts
    if (-not $facts.NodeIsLive -or $facts.Drained -or $facts.Drains) { return $Files }
    $is = Read-FileText -Path $Path
    if ($null -eq $is -or $is.Contains($Line)) { return $Files }
    $kept = $Files.Clone()
    $kept[$Path] = $Files[$Path].Replace($Line, '')
    $kept
}

function Get-LayerFormNotice {
    # A notice where the line was left out of the files; nothing otherwise.
    param([hashtable]$Files, [string]$Path, [string]$Line)
    if ($Files[$Path].Contains($Line)) { return }
    New-Difference -Key 'layers:kept' -What 'containerd discard_unpacked_layers' -Is 'not set: each layer is on the disk twice' `
        -Want 'true, after a join with --drain' -Policy
}

function Get-NamedFileDifference {
    # A difference for each file that a hosts.toml names and that is not there: containerd then refuses every pull from that
    # registry (core/remotes/docker/config/hosts.go, tlsConfigFromHost). Files: path to registry.
    param([hashtable]$Files)
    foreach ($path in $Files.Keys | Sort-Object) {
        if ([IO.File]::Exists($path)) { continue }
        New-Difference -Key "named:$path" -What "file $path of the registry $($Files[$path])" -Is $null -Want 'present'
    }
}

function Assert-NamedFile {
    # Stops the step where such a file is missing: winboot does not bring it.
    param([hashtable]$Files)
    foreach ($path in $Files.Keys | Sort-Object) {
        if ([IO.File]::Exists($path)) { continue }
        Stop-Step -Id 'RegistryFile' -Message "the registry $($Files[$path]) names $path, and there is no such file"
    }
}

function Wait-Runtime {
    # Returns nothing when the runtime answers, or stops the step. A running service does not answer at once: containerd
    # first looks at what every pod left behind.
    param([scriptblock]$Test = { $null -ne (Invoke-Crictl -Arguments @('version')) })
    if (Wait-Until -Test $Test -Seconds 60) { return }
    Stop-Step -Id 'ContainerdSilent' -Message "$(if ($script:Node['docker']) { 'Docker' } else { 'containerd' }) does not answer after 60 seconds"
}

function Get-FormerShimPath {
    # Where the shims are of containerds of another major that winboot placed here; nothing if none exist.
    # containerd 1.x cannot speak to shims that 2.x started (containerd/containerd#11720), and a container that 2.x adds to a pod
    # of a 1.7 shim does not start (containerd/containerd#10888). Within a major they go together.
    foreach ($artifact in $script:Node['artifacts'] | Where-Object { $_.name -eq 'containerd' }) {
        $major = "$($artifact['version'])".Split('.')[0]
        foreach ($one in Get-Placed) {
            if ($one.name -ne 'containerd' -or $one.archive -eq $artifact['sha256'] -or "$($one.version)".Split('.')[0] -eq $major) { continue }
            $one.files | ForEach-Object { $_.destination } | Where-Object { $_ -like '*\containerd-shim-*' }
        }
    }
}

function Get-FormerShim {
    # The running shims of another major, each of which holds a pod, as id and start time. Returns nothing if none exist.
    $paths = @(Get-FormerShimPath)
    if ($paths.Count -eq 0) { return }
    Get-CimInstance -ClassName 'Win32_Process' -Filter "Name='containerd-shim-runhcs-v1.exe'" -Property 'ProcessId', 'CreationDate', 'ExecutablePath' |
        Where-Object { $paths -contains $_.ExecutablePath } | ForEach-Object { @{ Id = [int]$_.ProcessId; Started = $_.CreationDate } }
}

function Get-ShimDifference {
    # A difference where pods are held by shims of another major of containerd. Returns nothing if none exist.
    $count = @(Get-FormerShim).Count
    if ($count -gt 0) { New-Difference -Key 'containerd:shims' -What 'pods of another major of containerd' -Is "$count" -Want $null -Disturbs }
}

function Remove-FormerPod {
    # Removes all pods where another major of containerd holds some, by whichever containerd runs: after a drain only pods of
    # DaemonSets and of the machine itself are left, and the kubelet makes them again when its step starts it. Returns nothing.
    if (@(Get-FormerShim).Count -eq 0) { return }
    Stop-RunningService -Name 'kubelet'
    Remove-AllPod
    # Of one that containerd does not know, or cannot speak to, the container ends with its shim, which has the last handle to it
    # (ShouldTerminateOnLastHandleClosed, internal/hcsoci/create.go of microsoft/hcsshim).
    Stop-ProcessTree -Tree @(Get-FormerShim)
    if (Wait-Until -Test { @(Get-FormerShim).Count -eq 0 } -Seconds 30) { return }
    Stop-Step -Id 'PodLeft' -Message 'pods of another major of containerd do not end'
}

function Remove-AllPod {
    # Removes all pods by the runtime, where it answers. Returns nothing. crictl gives each request 2 seconds by default.
    [void](Invoke-Crictl -Arguments @('--timeout', '60s', 'rmp', '--all', '--force') -Seconds 300)
}

function Get-DropInDifference {
    # A difference for each of our settings that a file in containerd's folder of drop-ins changes: it is laid over our file. Nothing
    # without such a file. Their owner keeps them.
    param([string]$Folder, [hashtable]$Settings, [int]$Version)
    if (-not [IO.Directory]::Exists($Folder)) { return }
    foreach ($path in [IO.Directory]::GetFiles($Folder, '*.toml') | Sort-Object) {
        foreach ($one in Read-TomlSetting -Text "$(Read-FileText -Path $path)") {
            $key, $what = "drop-in:${path}:$($one.name)", "containerd $($one.name), from ${path}:"
            if ($one.name -eq 'version') {
                # containerd 2.3 does not start then (config.go, LoadConfigWithPlugins).
                if ($one.value -as [int] -gt $Version) { New-Difference -Key $key -What $what -Is $one.value -Want "at most $Version" -Policy }
                continue
            }
            $want = $Settings[$one.name]
            if ($null -ne $want -and $one.value -cne $want) { New-Difference -Key $key -What $what -Is $one.value -Want $want -Policy }
        }
    }
}

function Read-TomlSetting {
    # The settings of a TOML text, each as name and value. A setting of the CRI plug-ins is named without its plug-in, as their names changed
    # between versions. A list is its texts behind each other; of a value over several lines it is the first. Nothing
    # where it has none.
    param([string]$Text)
    $table = @()
    foreach ($line in $Text -split '\r?\n') {
        if ($line -match '^\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$') { $table = @(Split-TomlKey -Key $Matches[1]); continue }
        if ($line -notmatch '^\s*([^#=\[]+?)\s*=\s*(.+?)\s*$') { continue }
        $value = ConvertFrom-TomlValue -Text $Matches[2]
        $names = @($table) + @(Split-TomlKey -Key $Matches[1])
        if ($names.Count -gt 2 -and $names[0] -eq 'plugins') { $names = @($names[$(if ($names[1] -like '*.cri*') { 2 } else { 1 })..($names.Count - 1)]) }
        @{ name = $names -join '.'; value = $value }
    }
}

function Split-TomlKey {
    # The parts of a dotted key, which may be quoted, without their quotes.
    param([string]$Key)
    [regex]::Matches($Key, '"([^"]*)"|''([^'']*)''|([A-Za-z0-9_-]+)') | ForEach-Object { $_.Groups[1].Value + $_.Groups[2].Value + $_.Groups[3].Value }
}

function ConvertFrom-TomlValue {
    # A value as text: the texts in it, else the word.
    param([string]$Text)
    $texts = @([regex]::Matches($Text, '"((?:[^"\\]|\\.)*)"|''([^'']*)''') |
            ForEach-Object { $_.Groups[1].Value.Replace('\\', '\') + $_.Groups[2].Value })
    if ($texts.Count -gt 0) { $texts -join ', ' } else { ($Text -replace '\s*#.*$', '').Trim() }
}
