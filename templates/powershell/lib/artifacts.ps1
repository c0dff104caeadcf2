# SUMMARY Downloads programs, checks their hashes and installs them.

function Get-ArtifactDifference {
    # A difference for each file of Artifacts that is missing or has another hash; nothing where all are right.
    # Where only the archive's hash is known, each file's own was noted when it was placed.
    param([hashtable[]]$Artifacts)
    foreach ($artifact in $Artifacts) {
        $noted = Read-PlacedHash -Artifact $artifact
        $moves = Test-OtherVersion -Artifact $artifact
        foreach ($member in $artifact.members) {
            $want = $member['sha256']
            if (-not $want) { $want = $noted[$member.to] }
            $is = Get-KnownHash -Path $member.to
            if ($want -and $is -eq $want) {
                if (Test-Unplaced -Path $member.to) {
                    New-Difference -Key "placed:$($member.to)" -What "file $($member.to): placed by" -Is 'somebody else' -Want 'winboot'
                }
                Get-VersionDifference -Artifact $artifact -Member $member
                continue
            }
            if (-not $want) { $want = "as in $($artifact.file) $($artifact.version)" }
            New-Difference -Key "file:$($member.to)" -What "file $($member.to): sha256" -Is $is -Want $want -Disturbs:($moves -or $null -ne $is)
        }
    }
    Save-HashMemory
}

function Test-Unplaced {
    # Whether winboot put nothing there, on a machine that is not a node yet. The user that put it there may have it open, and Windows
    # asks for rights when a file is opened: that handle must write only into what SYSTEM never starts. A node that runs is not disturbed for it.
    param([string]$Path)
    if (Read-Registry -Path 'SYSTEM\CurrentControlSet\Services\kubelet' -Name 'ImagePath') { return $false }
    @(Read-Placed | ForEach-Object { $_.files } | Where-Object { $_.destination -eq $Path }).Count -eq 0
}

function Get-VersionDifference {
    # A difference where a program with the right hash says that it is of another version: the hash was pinned for the
    # wrong one. A vendor's build of a version has a suffix, v1.34.2-eks-1; an early one is another version. One of the right
    # version that does not take what its service starts it with stops the step.
    param([hashtable]$Artifact, [hashtable]$Member)
    # One that others could have put there is not asked; the step of its service says so.
    if (-not $Member['asks'] -or (Get-PathDoubt -Path $Member.to -Program)) { return }
    $says = Get-KnownVersion -Path $Member.to -Arguments $Member.asks
    if ($says -match "^v?$([regex]::Escape($Artifact.version))($|\+|-(?!alpha|beta|rc))") {
        if ($Member['takes']) { Assert-ProgramFlag -Path $Member.to -Takes $Member.takes }
        return
    }
    New-Difference -Key "version:$($Member.to)" -What "file $($Member.to): version" -Is $says -Want $Artifact.version -Disturbs
}

function Assert-ArtifactVersion {
    # Stops the step where a program with the right hash is of another version: no download can correct that.
    param([object[]]$Differences)
    $wrong = @($Differences | Where-Object { $_.key -like 'version:*' })
    if (-not $wrong) { return }
    $said = @($wrong | ForEach-Object { "$($_.key.Substring(8)) says $($_.is), and $($_.want) is wanted" }) -join '; '
    Stop-Step -Id 'WrongVersion' -Message "the pinned hash is that of another version: $said"
}

function Read-PlacedHash {
    # The hashes that were noted when the files of an artifact were placed, as a table of path and sha256. It is empty
    # where they came from another archive, so that a new version is never taken for the old one.
    param([hashtable]$Artifact)
    $hashes = @{}
    foreach ($noted in @(Get-Placed)) {
        if ($noted.name -ne $Artifact.name -or $noted.archive -ne $Artifact['sha256']) { continue }
        foreach ($file in $noted.files) { $hashes[$file.destination] = $file.sha256 }
    }
    $hashes
}

function Install-Artifact {
    # Installs each artifact of which a file is missing or differs. Returns nothing.
    param([hashtable[]]$Artifacts)
    foreach ($artifact in $Artifacts) {
        $found = @(Get-ArtifactDifference -Artifacts $artifact)
        if ($found | Where-Object { $_.key -like 'placed:*' }) {
            Copy-UnplacedProgram -Artifact $artifact
            $found = @(Get-ArtifactDifference -Artifacts $artifact)
        }
        if ($found | Where-Object { $_.key -notlike 'version:*' }) {
            Install-OneArtifact -Artifact $artifact
            $found = @(Get-ArtifactDifference -Artifacts $artifact)
        }
        Assert-ArtifactVersion -Differences $found
    }
}

function Copy-UnplacedProgram {
    # Replaces each program that has the right hash but came from another installer by our copy, without a download. It is
    # the copy whose hash counts: one that was written meanwhile stays, and is downloaded.
    param([hashtable]$Artifact)
    $folder = Get-DownloadFolder
    $files = @(foreach ($member in $Artifact.members) {
            if (-not $member['sha256'] -or -not (Test-OwnPath -Path $member.to) -or -not (Test-Unplaced -Path $member.to)) { continue }
            $copy = "$folder\$([IO.Path]::GetFileName($member.to))"
            Copy-WholeFile -From $member.to -To $copy
            if ((Get-PathHash -Path $copy) -eq $member['sha256']) {
                Save-FormerFile -Path $member.to
                Move-FileOver -From $copy -To $member.to
                @{ destination = $member.to; sha256 = $member['sha256'] }
            }
            else { Remove-File -Path $copy }
        })
    if ($files) { Save-Placed -Artifact $Artifact -Files $files }
}

function Get-DownloadFolder {
    # The folder of downloads, private and ours.
    $folder = Get-StatePath -Name 'downloads'
    Set-PrivateFolder -Path $folder
    # An administrator may have made it, with the rules of the folder above: a user that holds a download open writes after its hash.
    Assert-OwnFolder -Path $folder
    $folder
}

function Install-OneArtifact {
    # Downloads an artifact, checks its hash, unpacks it and puts its files in their places. Returns nothing. An archive
    # that a cut run left behind is not downloaded again.
    param([hashtable]$Artifact)
    if (-not $Artifact['sha256']) { Stop-Step -Id 'HashMissing' -Message "no sha256 is known for $($Artifact.file)" }
    $folder = Get-DownloadFolder
    $archive = "$folder\$($Artifact.file)"
    if ((Get-PathHash -Path $archive) -ne $Artifact['sha256']) { Receive-Artifact -Artifact $Artifact -Path $archive }
    $unpacked = "$folder\$($Artifact.name)-unpacked"
    Remove-Folder -Path $unpacked
    [void][IO.Directory]::CreateDirectory($unpacked)
    $paths = @($Artifact.members | ForEach-Object { $_.path })
    if ($paths -contains $Artifact.file) { Copy-WholeFile -From $archive -To "$unpacked\$paths" }
    else {
        # A slow disk with a scanner on it unpacks a megabyte in a second.
        $seconds = 300 + [int]([IO.FileInfo]::new($archive).Length / 1MB)
        $arguments = @('-x', '-f', $archive, '-C', $unpacked) + $paths
        [void](Assert-Program -Path (Get-SystemProgram -Name 'tar.exe') -Arguments $arguments -Seconds $seconds)
    }
    Assert-UnpackedProgram -Artifact $Artifact -Folder $unpacked
    $files = @(foreach ($member in $Artifact.members) { Install-Member -Member $member -Folder $unpacked })
    Save-Placed -Artifact $Artifact -Files $files
    # All is in place: what a scanner still reads is deleted by a later run.
    try {
        Remove-Folder -Path $unpacked -Tries 4
        Remove-File -Path $archive -Tries 4
    }
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] { return }
}

function Assert-UnpackedProgram {
    # Stops the step before anything is replaced where an unpacked program with the right hash does not take what its service
    # starts it with. Returns nothing.
    param([hashtable]$Artifact, [string]$Folder)
    foreach ($member in $Artifact.members) {
        $path = Get-UnpackedPath -Member $member -Folder $Folder
        if (-not $member['takes'] -or ($member['sha256'] -and (Get-PathHash -Path $path) -ne $member['sha256'])) { continue }
        Assert-ProgramFlag -Path $path -Takes $member.takes
    }
}

function Get-UnpackedPath {
    # Where a file of an archive lies that was unpacked to a folder.
    param([hashtable]$Member, [string]$Folder)
    [IO.Path]::Combine($Folder, $Member.path.Replace('/', '\'))
}

function Remove-Folder {
    # Deletes a folder with all that is in it; an absent one is fine.
    param([string]$Path, [int]$Tries = 9)
    Invoke-WithRetry -File $Path -Tries $Tries -Work { if ([IO.Directory]::Exists($Path)) { [IO.Directory]::Delete($Path, $true) } }
}

function Install-Member {
    # Puts one unpacked file in its place, and notes first that the services running it have to restart. Returns its
    # path and hash as a table for the note.
    param([hashtable]$Member, [string]$Folder)
    $from = Get-UnpackedPath -Member $Member -Folder $Folder
    $hash = Get-PathHash -Path $from
    if ($Member['sha256'] -and $hash -ne $Member['sha256']) {
        Stop-Step -Id 'HashMismatch' -Message "$($Member.path) has sha256 $hash, expected $($Member['sha256'])"
    }
    if ((Get-PathHash -Path $Member.to) -ne $hash -or (Test-Unplaced -Path $Member.to)) {
        foreach ($service in $Member['services']) { Save-RestartNeed -Name $service }
        Save-FormerFile -Path $Member.to
        [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($Member.to))
        Save-FileToDisk -Path $from
        Move-FileOver -From $from -To $Member.to
    }
    @{ destination = $Member.to; sha256 = $hash }
}

function Receive-Artifact {
    # Downloads an artifact to Path, or stops the step: nothing is unpacked that does not have the expected sha256.
    # Returns nothing.
    param([hashtable]$Artifact, [string]$Path)
    $want = $Artifact['sha256']
    $part = "$Path.part"
    for ($attempt = 1; ($hash = Get-PathHash -Path $part) -ne $want; $attempt++) {
        # The first two attempts resume what is there, the last two start over.
        if ($attempt -gt 2) { Remove-File -Path $part }
        if ($attempt -gt 4) { Stop-Step -Id 'HashMismatch' -Message "$($Artifact.url) has sha256 $hash, expected $want" }
        Receive-Rest -Url $Artifact.url -Path $part -Proxy $Artifact['proxy'] -Last:($attempt -eq 4)
    }
    Move-FileOver -From $part -To $Path
}

function Receive-Rest {
    # Downloads what is still missing of a file, from a web address or from a path that Windows can open. Returns
    # nothing. An error is reported only at the Last attempt: until then the next one continues from here.
    param([string]$Url, [string]$Path, [string]$Proxy, [switch]$Last)
    if ($Url -notmatch '^https?://') { Copy-WholeFile -From $Url -To $Path; return }
    $request = New-WebRequest -Url $Url -Proxy $Proxy
    if ([IO.File]::Exists($Path)) { $request.AddRange([IO.FileInfo]::new($Path).Length) }
    try {
        $response = Wait-Task -Task $request.GetResponseAsync() -Seconds 60
        try {
            # 206: the server resumes where we asked it to.
            $mode = if ([int]$response.StatusCode -eq 206) { 'Append' } else { 'Create' }
            $file = [IO.File]::Open($Path, $mode, 'Write')
            try { Save-Body -Url $Url -Body $response.GetResponseStream() -Target $file } finally { $file.Dispose() }
        }
        finally {
            # To close it alone would wait for what is still to come.
            $request.Abort()
            $response.Close()
        }
    }
    catch {
        if ($Last) { Stop-Step -Id 'DownloadFailed' -Message "${Url}: $($_.Exception.GetBaseException().Message)" }
        Start-Sleep -Seconds 2
    }
}

function New-WebRequest {
    # A request that is not sent yet, by TLS 1.2 or later, through the Proxy where there is one.
    param([string]$Url, [string]$Proxy)
    # Where .NET names protocols itself it may leave out TLS 1.2. 0 lets Windows choose, TLS 1.3 included.
    $protocol = [Net.ServicePointManager]::SecurityProtocol
    if ([int]$protocol -ne 0) { [Net.ServicePointManager]::SecurityProtocol = $protocol -bor [Net.SecurityProtocolType]::Tls12 }
    $request = [Net.WebRequest]::Create($Url)
    if ($Proxy) { $request.Proxy = [Net.WebProxy]::new($Proxy) }
    $request
}

function Save-Body {
    # Writes what a server sends to a file. Less than 512 KB in a minute is not a download: another attempt continues where this
    # one ends. The journal has a sign of life every 10 seconds.
    param([string]$Url, [IO.Stream]$Body, [IO.Stream]$Target)
    $buffer = [byte[]]::new(81920)
    $minute = [Diagnostics.Stopwatch]::StartNew()
    $told = [Diagnostics.Stopwatch]::StartNew()
    $total = 0L
    $before = 0L
    while (($count = Wait-Task -Task $Body.ReadAsync($buffer, 0, $buffer.Length) -Seconds 60) -gt 0) {
        $Target.Write($buffer, 0, $count)
        $total += $count
        if ($told.Elapsed.TotalSeconds -ge 10) {
            [void](New-EventLine -Fields @{ event = 'download'; url = $Url; bytes = $total })
            $told.Restart()
        }
        if ($minute.Elapsed.TotalSeconds -lt 60) { continue }
        if ($total - $before -lt 512KB) { throw [TimeoutException]::new("$($total - $before) bytes came within a minute") }
        $before = $total
        $minute.Restart()
    }
}

function Wait-Task {
    # The result of a .NET task, or a TimeoutException.
    param([object]$Task, [int]$Seconds)
    if (-not (Test-TaskEnd -Task $Task -Seconds $Seconds)) { throw [TimeoutException]::new("no answer within $Seconds seconds") }
    $Task.Result
}

function Test-TaskEnd {
    # Whether a .NET task ends within Seconds; one that fails throws. It is waited for in slices: a stop of this script is
    # not possible within a call into .NET.
    param([object]$Task, [int]$Seconds)
    $watch = [Diagnostics.Stopwatch]::StartNew()
    while (-not $Task.Wait(500)) {
        if ($watch.Elapsed.TotalSeconds -ge $Seconds) { return $false }
    }
    $true
}
