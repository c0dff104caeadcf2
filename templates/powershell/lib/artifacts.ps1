# Downloads resume in a .part file, are hashed, unpacked, and put in place by a rename.

function Get-ArtifactDifference {
    # Where the profile knows only the archive's hash, each file's own was noted when it was placed.
    param([hashtable[]]$Artifacts)
    foreach ($artifact in $Artifacts) {
        $noted = Read-PlacedHashes $artifact
        foreach ($member in $artifact.members) {
            $want = $member['sha256']
            if ($null -eq $want) { $want = $noted[$member.destination] }
            $is = Get-PathHash $member.destination
            if ($null -ne $want -and $is -eq $want) { continue }
            $shown = $want
            if ($null -eq $want) { $shown = "as in $($artifact.file) $($artifact.version)" }
            New-Difference -What "file $($member.destination): sha256" -Is $is -Want $shown -Disturbs:($null -ne $is)
        }
    }
}

function Get-PlacedPath {
    param($Artifact)
    "placed-$($Artifact.name).json"
}

function Read-PlacedHashes {
    param($Artifact)
    $hashes = @{}
    $noted = Read-StateJson (Get-PlacedPath $Artifact)
    if ($null -eq $noted -or $noted.archive -ne $Artifact['sha256']) { return $hashes }
    foreach ($file in $noted.files) { $hashes[$file.destination] = $file.sha256 }
    $hashes
}

function Install-Artifacts {
    param([hashtable[]]$Artifacts)
    foreach ($artifact in $Artifacts) {
        if (@(Get-ArtifactDifference @($artifact)).Count -gt 0) { Install-Artifact $artifact }
    }
}

function Install-Artifact {
    param($Artifact)
    $folder = Get-StatePath 'downloads'
    Set-PrivateFolder $folder
    $archive = [IO.Path]::Combine($folder, $Artifact.file)
    if ((Get-PathHash $archive) -ne $Artifact['sha256']) { Receive-Artifact -Artifact $Artifact -Path $archive }
    $unpacked = [IO.Path]::Combine($folder, $Artifact.name + '-unpacked')
    if ([IO.Directory]::Exists($unpacked)) { [IO.Directory]::Delete($unpacked, $true) }
    [void][IO.Directory]::CreateDirectory($unpacked)
    if ($Artifact.kind -eq 'file') { [IO.File]::Copy($archive, [IO.Path]::Combine($unpacked, $Artifact.members[0].path)) }
    else { Expand-Members -Artifact $Artifact -Archive $archive -Folder $unpacked }
    $files = @(foreach ($member in $Artifact.members) { Install-Member -Member $member -Folder $unpacked })
    Write-StateJson (Get-PlacedPath $Artifact) @{ archive = $Artifact['sha256']; files = [object[]]$files }
    [IO.Directory]::Delete($unpacked, $true)
    [IO.File]::Delete($archive)
}

function Expand-Members {
    param($Artifact, [string]$Archive, [string]$Folder)
    $arguments = @('-x', '-f', $Archive, '-C', $Folder) + @($Artifact.members | ForEach-Object { $_.path })
    [void](Assert-Program -Path (Get-SystemProgram 'tar.exe') -Arguments $arguments -Seconds 300)
}

function Install-Member {
    param($Member, [string]$Folder)
    $from = [IO.Path]::Combine($Folder, $Member.path.Replace('/', '\'))
    $hash = Get-PathHash $from
    if ($null -ne $Member['sha256'] -and $hash -ne $Member['sha256']) {
        Stop-Step 'HashMismatch' "$($Member.path) has sha256 $hash, expected $($Member['sha256'])"
    }
    if ((Get-PathHash $Member.destination) -ne $hash) {
        foreach ($service in @($Member['services'] | Where-Object { $_ })) { Save-RestartNeed $service }
        Save-FormerFile $Member.destination
        [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($Member.destination))
        Move-FileOver -From $from -To $Member.destination
    }
    @{ destination = $Member.destination; sha256 = $hash }
}

function Receive-Artifact {
    param($Artifact, [string]$Path)
    if (-not $Artifact['sha256']) {
        Stop-Step 'HashMissing' "no sha256 is known for $($Artifact.file)"
    }
    $part = "$Path.part"
    for ($attempt = 1; (Get-PathHash $part) -ne $Artifact['sha256']; $attempt++) {
        if ($attempt -gt 4) {
            $hash = Get-PathHash $part
            [IO.File]::Delete($part)
            Stop-Step 'HashMismatch' "$($Artifact.url) has sha256 $hash, expected $($Artifact['sha256'])"
        }
        # The first attempts go on where an earlier one ended; the last ones start from nothing.
        if ($attempt -gt 2) { [IO.File]::Delete($part) }
        Receive-Rest -Url $Artifact.url -Path $part -Proxy $Artifact['proxy'] -Last:($attempt -eq 4)
    }
    [IO.File]::Delete($Path)
    [IO.File]::Move($part, $Path)
}

function Receive-Rest {
    # A connection that breaks in the middle leaves what came; the next attempt goes on there.
    param([string]$Url, [string]$Path, [string]$Proxy, [switch]$Last)
    # A bundle in a folder.
    if ($Url -notmatch '^https?://') { [IO.File]::Copy($Url, $Path, $true); return }
    # .NET on Windows Server 2019 does not offer TLS 1.2 by itself.
    [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
    $have = [long]0
    if ([IO.File]::Exists($Path)) { $have = [IO.FileInfo]::new($Path).Length }
    $request = [Net.WebRequest]::Create($Url)
    $request.Timeout = 60000
    $request.ReadWriteTimeout = 60000
    if ($Proxy) { $request.Proxy = [Net.WebProxy]::new($Proxy) }
    if ($have -gt 0) { $request.AddRange($have) }
    try {
        $response = $request.GetResponse()
        try {
            $mode = [IO.FileMode]::Append
            # 206 says that the server goes on where we ask; anything else is the whole file again.
            if ([int]$response.StatusCode -ne 206) { $mode = [IO.FileMode]::Create }
            $file = [IO.File]::Open($Path, $mode, [IO.FileAccess]::Write)
            try { $response.GetResponseStream().CopyTo($file) } finally { $file.Dispose() }
        }
        finally { $response.Close() }
    }
    catch {
        if ($Last) {
            Stop-Step 'DownloadFailed' "${Url}: $($_.Exception.GetBaseException().Message)"
        }
        # 416: what we have is not the beginning of that file.
        Start-Sleep -Seconds 2
    }
}
