# SUMMARY Keeps several versions of a program side by side, and switches between them.

function Get-Artifact {
    # The downloads of this node, each with the name of its file. Nothing where the profile wants none.
    foreach ($artifact in $script:Node['artifacts']) {
        $own = $artifact.Clone()
        $own.file = [IO.Path]::GetFileName($artifact.url)
        $own
    }
}

function Get-Placed {
    # What was noted of the programs that were placed here: name, version, archive (its sha256), and files with destination and
    # sha256 each. Returns nothing if none exist.
    Get-Cached -Name 'Placed' -Read { Read-Placed }
}

function Read-Placed {
    # Reads the notes that Get-Placed returns. Returns nothing if none exist.
    Read-Item -Object (Read-StateJson -Name 'placed.json') -Name 'artifacts'
}

function Save-Placed {
    # Notes the files of an artifact, each with its hash, and those of its files that lie elsewhere.
    param([hashtable]$Artifact, [object[]]$Files)
    $others = @()
    $places = @($Files | ForEach-Object { $_.destination })
    foreach ($one in Read-Item -Object (Read-StateJson -Name 'placed.json') -Name 'artifacts') {
        if ($one.name -ne $Artifact.name -or $one.archive -ne $Artifact['sha256']) { $others += $one }
        else { $Files = @($one.files | Where-Object { $places -notcontains $_.destination }) + $Files }
    }
    $own = @{ name = $Artifact.name; version = $Artifact['version']; archive = $Artifact['sha256']; files = $Files }
    Write-StateJson -Name 'placed.json' -Value @{ artifacts = $others + $own }
    $script:Run.Cache.Remove('Placed')
}

function Test-OtherVersion {
    # Whether another version of an artifact is here: the node runs with it, and a new one is more than a missing file.
    param([hashtable]$Artifact)
    foreach ($one in Get-Placed) {
        if ($one.name -ne $Artifact.name -or $one.archive -eq $Artifact['sha256']) { continue }
        foreach ($file in $one.files) { if ([IO.File]::Exists($file.destination)) { return $true } }
    }
    $false
}

function Test-VersionSwitch {
    # Whether two command lines run programs from different folders of versions: pods must not see that.
    param([string]$Is, [string]$Want)
    $folders = @(foreach ($text in @($Is, $Want)) {
            @([regex]::Matches($text, '\\versions\\[^\\"]+') | ForEach-Object { $_.Value } | Sort-Object -Unique) -join '|'
        })
    $folders[0] -ne $folders[1]
}

function Clear-OldVersion {
    # Deletes versions that are beyond those to keep and from which nothing runs, after a run in which every step succeeded.
    # Housekeeping: it never fails.
    if (-not $script:Node['keep_versions']) { return }
    try {
        $before = Read-VersionNote | ForEach-Object { $_.before } | Where-Object { $_ } | ForEach-Object { $_.artifacts } | ForEach-Object { $_.archive }
        $placed = @(Read-Placed)
        $kept = @(foreach ($artifact in Get-Artifact) { foreach ($member in $artifact.members) { [IO.Path]::GetDirectoryName($member.to) } })
        $over = @()
        foreach ($artifact in $script:Node.artifacts) {
            # As they were placed, the oldest first; last of all what a rollback would take.
            $others = @($placed | Where-Object { $_.name -eq $artifact.name -and $_.archive -ne $artifact['sha256'] } |
                    Sort-Object -Property { @($before) -contains $_.archive })
            $count = [Math]::Max(0, $others.Count - $script:Node.keep_versions + 1)
            $over += @($others | Select-Object -First $count)
            foreach ($one in @($others | Select-Object -Skip $count)) { $kept += @($one.files | ForEach-Object { [IO.Path]::GetDirectoryName($_.destination) }) }
        }
        foreach ($one in $over) { Remove-Version -Placed $one -Kept $kept }
    }
    # A program or a scanner holds one of them: another time.
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] { return }
}

function Remove-Version {
    # Deletes one version with its note, unless something runs from it. Kept: folders of other versions.
    param([object]$Placed, [string[]]$Kept)
    # A file that has one place for all its versions is the wanted one by now.
    $wanted = @(foreach ($artifact in Get-Artifact) { foreach ($member in $artifact.members) { $member.to } })
    $paths = @($Placed.files | ForEach-Object { $_.destination } | Where-Object { $wanted -notcontains $_ })
    $running = @(Get-CimInstance -ClassName 'Win32_Process' -Property 'ExecutablePath' | ForEach-Object { "$($_.ExecutablePath)" })
    $services = @(Get-OwnService | ForEach-Object { "$((Read-Service -Name $_).command_line)|$(Read-ServiceParameter -Service $_ -Name 'Application')" })
    foreach ($path in $paths) {
        if ($running -contains $path -or @($services | Where-Object { $_.Contains($path) }).Count -gt 0) { return }
    }
    foreach ($path in $paths) {
        if (Test-FormerNote -Kind 'Exclusion' -Key "process $path" -Step 'defender-exclusions') { Restore-Exclusion -Former @{ process = $path; path = $null } }
        $folder = [IO.Path]::GetDirectoryName($path)
        if ($Kept -contains $folder -and $folder -like '*\versions\*') { continue }
        if ($folder -like '*\versions\*') { Remove-Folder -Path $folder -Tries 1 } else { Remove-File -Path $path -Tries 1 }
    }
    $left = @(Read-Item -Object (Read-StateJson -Name 'placed.json') -Name 'artifacts' |
            Where-Object { $_.name -ne $Placed.name -or $_.archive -ne $Placed.archive })
    Write-StateJson -Name 'placed.json' -Value @{ artifacts = $left }
}

function Get-WantedVersion {
    # The set of versions that this script wants, as a table.
    $artifacts = foreach ($artifact in $script:Node['artifacts']) {
        @{ name = $artifact.name; version = $artifact['version']; archive = "$($artifact['sha256'])" }
    }
    @{ artifacts = @($artifacts); ready = $false; at = ''; by = '' }
}

function Read-VersionNote {
    # Which sets of versions this machine has had, as a table; nothing where none are noted. now: the last that a run completed; next:
    # what a run began to change to; before: what `rollback` goes back to; held: what a rollback brought, to stay. Each has
    # artifacts (name, version, and archive: its sha256), ready (whether its Node was seen Ready), at and by; or is null.
    $stored = Read-StateJson -Name 'versions.json'
    $note = @{}
    foreach ($name in @('now', 'next', 'before', 'held')) { $note[$name] = ConvertTo-VersionSet -Stored (Read-Member -Object $stored -Names $name) }
    if ($note.now -or $note.next) { $note }
}

function ConvertTo-VersionSet {
    # A stored set of versions as a table; nothing where it has another shape, or a hand left something else there.
    param([object]$Stored)
    $artifacts = @(foreach ($one in Read-Item -Object $Stored -Name 'artifacts') {
            @{ name = "$(Read-Member -Object $one -Names 'name')"; version = "$(Read-Member -Object $one -Names 'version')"; archive = "$(Read-Member -Object $one -Names 'archive')" }
        })
    if ($artifacts.Count -eq 0) { return }
    $ready = (Read-Member -Object $Stored -Names 'ready') -eq $true
    @{ artifacts = $artifacts; ready = $ready; at = (ConvertTo-TimeText -Time (Read-Member -Object $Stored -Names 'at')); by = "$(Read-Member -Object $Stored -Names 'by')" }
}

function Test-SameVersion {
    # Whether two sets have the same version of whatever is in both. None is like no other.
    param([object]$First, [object]$Second)
    if (-not $First -or -not $Second) { return $false }
    $versions = @{}
    foreach ($one in $First.artifacts) { $versions[$one.name] = $one.version }
    @($Second.artifacts | Where-Object { $versions.ContainsKey($_.name) -and $versions[$_.name] -ne $_.version }).Count -eq 0
}

function Start-VersionChange {
    # Notes, before the first step, to which versions this run changes, and whether they are to stay whatever the profile says
    # (Versions: hold, release). Throws where a rollback holds others and the controller does not know of it.
    $note = Read-VersionNote
    if (-not $note) { $note = @{ now = $null; next = $null; before = $null; held = $null } }
    $wanted = Get-WantedVersion
    if ($wanted.artifacts.Count -eq 0) { return }
    $facts = $script:Run.Facts
    if ($facts.Versions -eq 'release') { $note.held = $null }
    elseif ($facts.Versions -eq 'hold' -and -not (Test-SameVersion -First $note.held -Second $wanted)) {
        $note.held = Get-WantedVersion
        $note.held.at = [DateTime]::UtcNow.ToString('s') + 'Z'
        $note.held.by = $facts.Holder
    }
    elseif ($note.held -and -not (Test-SameVersion -First $note.held -Second $wanted)) {
        Stop-Step -Id 'RolledBack' -Message "a rollback at $($note.held.at) holds other versions on this machine than this script wants"
    }
    # Some steps alone may leave the programs as they are.
    if (-not $facts.Steps) {
        if ($facts.NodeIsReady -and $note.now -and -not $note.next) { $note.now.ready = $true }
        $note.next = if (Test-SameVersion -First $note.now -Second $wanted) { $null } else { $wanted }
    }
    Write-StateJson -Name 'versions.json' -Value $note
}

function Complete-VersionChange {
    # Notes, after a run in which every step succeeded, which versions the machine has. Those before it are a way back where the Node
    # was Ready with them; a rollback leaves no way back.
    if ($script:Run.Facts.Steps) { return }
    $note = Read-VersionNote
    $wanted = Get-WantedVersion
    if (-not $note -or $wanted.artifacts.Count -eq 0) { return }
    $same = Test-SameVersion -First $note.now -Second $wanted
    if ($same) { $wanted.ready = $note.now.ready }
    # Also where it went back from what an upgrade had only begun.
    if ($note.held) { $note.before = $null }
    elseif (-not $same -and $note.now -and $note.now.ready) { $note.before = $note.now }
    $note.now = $wanted
    $note.next = $null
    Write-StateJson -Name 'versions.json' -Value $note
}

function Get-HeldDifference {
    # A difference where a rollback holds versions that the profile wants again: they need not be held any more.
    if ($script:Run.Facts.Versions -eq 'hold') { return }
    $note = Read-VersionNote
    if ($note -and (Test-SameVersion -First $note.held -Second (Get-WantedVersion))) {
        New-Difference -Key 'versions:held' -What 'versions held by a rollback' -Is "since $($note.held.at)" -Want $null
    }
}

function Clear-HeldVersion {
    # Notes that no versions are held on this machine. Returns nothing.
    $note = Read-VersionNote
    if (-not $note -or -not $note.held) { return }
    $note.held = $null
    Write-StateJson -Name 'versions.json' -Value $note
}
