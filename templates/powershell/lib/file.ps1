# SUMMARY Reads, writes, replaces and restores files.

function Get-TextHash {
    # The sha256 of a text in UTF-8, in lower case.
    param([string]$Text)
    $bytes = [Security.Cryptography.SHA256]::Create().ComputeHash([Text.Encoding]::UTF8.GetBytes($Text))
    [BitConverter]::ToString($bytes).Replace('-', '').ToLowerInvariant()
}

function Get-PathHash {
    # SHA-256 of a file; nothing when it is absent or not believed (see Get-PathDoubt).
    param([string]$Path)
    if (-not (Test-OwnPath -Path $Path)) { return }
    $found = @{ Hash = $null }
    Invoke-WithRetry -File $Path -Work {
        $stream = Open-SharedFile -Path $Path
        try { $found.Hash = [Security.Cryptography.SHA256]::Create().ComputeHash($stream) } finally { $stream.Dispose() }
    }
    [BitConverter]::ToString($found.Hash).Replace('-', '').ToLowerInvariant()
}

function Invoke-WithRetry {
    # Does Work, which opens, replaces, renames or deletes File. While another program (a virus scanner, a backup, an
    # indexer) has it open, this is tried again, after 50 ms and then twice as long each time: with 9 tries for 13
    # seconds. Then the problem names the file; .NET's own messages about Move and Replace do not.
    param([string]$File, [scriptblock]$Work, [int]$Tries = 9)
    for ($try = 1; $true; $try++) {
        try { return (& $Work) }
        catch [IO.IOException], [UnauthorizedAccessException] {
            $code = $_.Exception.GetBaseException().HResult -band 0xFFFF
            if (@(39, 112) -contains $code) {
                Stop-Step -Id 'DiskFull' -Message "$File cannot be written: there is not enough space on the disk"
            }
            # Sharing and lock violation; ReplaceFile could not remove the old file, or rename the new one.
            $held = @(32, 33, 1175, 1176) -contains $code
            # Also what Windows says for a moment of a file that is being deleted (5) or replaced (2).
            $perhaps = @(2, 5) -contains $code
            if (-not $held -and -not ($perhaps -and $try -lt 3)) { throw }
            if ($try -ge $Tries) {
                if (-not $held) { throw }
                Stop-Step -Id 'FileInUse' -Message "$File is held open by another program: $($_.Exception.GetBaseException().Message)"
            }
        }
        Start-Sleep -Milliseconds (50 * [Math]::Pow(2, $try - 1))
    }
}

function Open-SharedFile {
    # A stream to read a file with. Another program may write, rename or delete it meanwhile.
    param([string]$Path)
    [IO.FileStream]::new($Path, [IO.FileMode]::Open, [IO.FileAccess]::Read, [IO.FileShare]'ReadWrite, Delete')
}

function Read-FileByte {
    # The content of a file as one byte[]; nothing when it is absent or not believed (see Get-PathDoubt).
    param([string]$Path)
    if ([IO.File]::Exists($Path) -and -not (Test-OwnPath -Path $Path)) { return }
    Read-AnyFileByte -Path $Path
}

function Read-AnyFileByte {
    # The content of a file as one byte[], whichever account wrote it: to be kept, never to be believed. Nothing when it is absent.
    param([string]$Path)
    # Between the two halves of a replacement a file is absent for a moment, with its successor next to it.
    for ($try = 1; -not [IO.File]::Exists($Path); $try++) {
        # Its successor may have taken its place between the two looks.
        if ($try -gt 10 -or -not ([IO.File]::Exists("$Path.winboot-new") -or [IO.File]::Exists($Path))) { return }
        Start-Sleep -Milliseconds 50
    }
    $content = [IO.MemoryStream]::new()
    Invoke-WithRetry -File $Path -Work {
        $content.SetLength(0)
        $stream = Open-SharedFile -Path $Path
        try { $stream.CopyTo($content) } finally { $stream.Dispose() }
    }
    , $content.ToArray()
}

function Read-FileText {
    # The text of a file; $null when it is absent: without output the caller's [regex]::Match would get no text at all.
    # ReadAllText would drop a byte order mark, which JSON and TOML parsers stumble over.
    param([string]$Path)
    $bytes = Read-FileByte -Path $Path
    if ($null -eq $bytes) { return $null }
    [Text.Encoding]::UTF8.GetString($bytes)
}

function Open-FlushedFile {
    # A stream to write a file with that keeps nothing back: what is on the disk survives a power cut. The enums are cast:
    # as texts they fit another constructor as well. A Private one has its rules from its first moment on.
    param([string]$Path, [string]$Mode, [switch]$Private)
    if ($Private) {
        $security = [Security.AccessControl.FileSecurity]::new()
        $security.SetSecurityDescriptorSddlForm((Get-PrivateAccess), 'Owner, Group, Access')
        return [IO.FileStream]::new($Path, [IO.FileMode]$Mode, [Security.AccessControl.FileSystemRights]::Write, [IO.FileShare]::Read, 65536,
            [IO.FileOptions]::WriteThrough, $security)
    }
    [IO.FileStream]::new($Path, [IO.FileMode]$Mode, [IO.FileAccess]::Write, [IO.FileShare]::Read, 65536, [IO.FileOptions]::WriteThrough)
}

function Write-FileByte {
    # Writes a file whole (Mode Create), adds to its end (Append), or replaces an existing one by a new one
    # (CreateNew), which may have other rules, or be open. It is on the disk when this returns: what is changed next must not
    # survive a power cut that this does not.
    param([string]$Path, [byte[]]$Bytes, [string]$Mode = 'Create', [int]$Tries = 9, [switch]$Private)
    Invoke-WithRetry -File $Path -Tries $Tries -Work {
        if ($Mode -eq 'CreateNew' -and [IO.File]::Exists($Path)) {
            Clear-ReadOnly -Path $Path
            [IO.File]::Delete($Path)
        }
        $stream = Open-FlushedFile -Path $Path -Mode $Mode -Private:$Private
        try {
            $stream.Write($Bytes, 0, $Bytes.Length)
            $stream.Flush($true)
        }
        finally { $stream.Dispose() }
    }
}

function Save-FileToDisk {
    # Has Windows write what it still keeps in memory of a file that another program made: a rename is on the disk before the
    # content is, and a power cut would leave the new name with nothing in it. Returns nothing.
    param([string]$Path)
    Invoke-WithRetry -File $Path -Work {
        $stream = [IO.FileStream]::new($Path, [IO.FileMode]::Open, [IO.FileAccess]::ReadWrite, [IO.FileShare]::ReadWrite)
        try { $stream.Flush($true) } finally { $stream.Dispose() }
    }
}

function Copy-WholeFile {
    # Copies a file; the copy is on the disk when this returns, under its name only when it is complete.
    param([string]$From, [string]$To)
    [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($To))
    $part = "$To.winboot-new"
    Invoke-WithRetry -File $From -Work {
        $source = Open-SharedFile -Path $From
        try {
            if ([IO.File]::Exists($part)) { [IO.File]::Delete($part) }
            $target = Open-FlushedFile -Path $part -Mode 'CreateNew'
            try {
                $source.CopyTo($target)
                $target.Flush($true)
            }
            finally { $target.Dispose() }
        }
        finally { $source.Dispose() }
    }
    Move-FileOver -From $part -To $To
}

function ConvertTo-FileByte {
    # A text as UTF-8 without a byte order mark, as one byte[].
    param([string]$Text)
    , [Text.UTF8Encoding]::new($false).GetBytes($Text)
}

function Get-FileDifference {
    # Text is null while it cannot be known. -ceq would pass over characters that have no width.
    param([string]$Path, [object]$Text, [switch]$Disrupts)
    $is = Read-FileText -Path $Path
    if ($null -ne $is -and $null -ne $Text -and $is.Equals($Text)) { return }
    New-Difference -Key "file:$Path" -What "file ${Path}: content" -Is (ConvertTo-TextSummary -Text $is) -Want (ConvertTo-TextSummary -Text $Text) `
        -Unknown:($null -eq $Text) -Disrupts:$Disrupts -Texts (Get-ShownText -Was $is -Will $Text)
}

function Get-ShownText {
    # Both texts of a file, for a reader of the plan, as a table; an empty one where they are long, or where what is there may
    # hold a secret: a file under this name may be another tool's.
    param([object]$Was, [object]$Will)
    if ($null -eq $Will -or "$Was".Length + $Will.Length -gt 40000) { return @{} }
    # A name and a value, a PEM key, an address with a password, a login as HTTP carries it.
    $names = '-data|password|passwd|pwd|secret|token|auth|(api|access|private|client|account|shared)[-_ ]?key|credential|bearer'
    $secret = "($names)" + '"?\s*[:=]\s*\S|PRIVATE KEY|://[^/\s:]+:[^@\s]+@|(basic|bearer)\s+[\w+/=.~-]{6,}'
    if ("$Was" -match $secret -or $Will -match $secret) { return @{} }
    @{ Was = $Was; Will = $Will }
}

function ConvertTo-TextSummary {
    # How a file's text is shown: its lines and the start of its hash; $null stays $null.
    param([object]$Text)
    if ($null -ne $Text) { '{0} lines, sha256 {1}' -f $Text.Split("`n").Count, (Get-TextHash -Text $Text).Substring(0, 12) }
}

function Set-FileText {
    # Writes a file after its former content was noted.
    param([string]$Path, [string]$Text)
    Save-FormerFile -Path $Path
    Write-FileText -Path $Path -Text $Text
}

function Write-FileText {
    # Writes a text file, with Private for SYSTEM and Administrators alone. Returns nothing. It writes a second file and
    # renames it: a power cut leaves the old file or the new one.
    param([string]$Path, [string]$Text, [switch]$Private, [int]$Tries = 9)
    [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($Path))
    $beside = "$Path.winboot-new"
    Write-FileByte -Path $beside -Bytes (ConvertTo-FileByte -Text $Text) -Mode 'CreateNew' -Private:$Private -Tries $Tries
    # Replace is one step, but keeps the access rules of the old file.
    if ($Private -or -not [IO.File]::Exists($Path) -or (Get-PathDoubt -Path $Path) -or (Test-Link -Path $Path)) { Move-FileOver -From $beside -To $Path -Tries $Tries }
    else {
        Invoke-WithRetry -File $Path -Tries $Tries -Work {
            # After error 1176 of ReplaceFile the old file is gone and the new one still has its own name.
            if ([IO.File]::Exists($Path)) {
                Clear-ReadOnly -Path $Path
                [IO.File]::Replace($beside, $Path, [NullString]::Value)
            }
            else { [IO.File]::Move($beside, $Path) }
        }
    }
}

function Clear-ReadOnly {
    # Takes the read-only mark off a file: Windows neither replaces nor deletes one that has it. Returns nothing.
    param([string]$Path)
    if ([IO.File]::GetAttributes($Path) -band [IO.FileAttributes]::ReadOnly) { [IO.File]::SetAttributes($Path, 'Normal') }
}

function Remove-File {
    # Deletes a file; an absent one is fine. One that runs as a program is renamed, and goes when it has ended.
    param([string]$Path, [int]$Tries = 9)
    if (-not [IO.File]::Exists($Path)) { return }
    try {
        Invoke-WithRetry -File $Path -Tries $Tries -Work {
            Clear-ReadOnly -Path $Path
            [IO.File]::Delete($Path)
        }
    }
    catch [UnauthorizedAccessException] {
        $waiting = "$Path.winboot-old-$([Guid]::NewGuid().ToString('N'))"
        Add-OldFile -Line $waiting
        Invoke-WithRetry -File $Path -Tries $Tries -Work { [IO.File]::Move($Path, $waiting) }
    }
}

function Move-FileOver {
    # Replaces the file To by the file From. A program that runs cannot be overwritten, but renamed. After any failure
    # the old file is in its place again; after a power cut Clear-OldFile puts it there.
    param([string]$From, [string]$To, [int]$Tries = 9)
    if (-not [IO.File]::Exists($From)) { throw [IO.FileNotFoundException]::new("there is no file $From", $From) }
    if (-not [IO.File]::Exists($To)) {
        Invoke-WithRetry -File $From -Tries $Tries -Work { [IO.File]::Move($From, $To) }
        return
    }
    $old = "$To.winboot-old"
    Remove-OldFile -Path $old
    if ([IO.File]::Exists($old)) { $old = "$old-$([Guid]::NewGuid().ToString('N'))" }
    # The mark goes with the success: with it, a file whose place is empty is put back there.
    Add-OldFile -Line "$old|$To"
    Invoke-WithRetry -File $To -Tries $Tries -Work { [IO.File]::Move($To, $old) }
    try { Invoke-WithRetry -File $From -Tries $Tries -Work { [IO.File]::Move($From, $To) } }
    catch {
        Invoke-WithRetry -File $old -Work { [IO.File]::Move($old, $To) }
        throw
    }
    Remove-OldFile -Path $old
    if ([IO.File]::Exists($old)) { Add-OldFile -Line $old }
}

function Remove-OldFile {
    # Deletes a file that was set aside. What still runs or is being read is on the list, and waits for Clear-OldFile.
    param([string]$Path)
    if (-not [IO.File]::Exists($Path)) { return }
    try {
        Clear-ReadOnly -Path $Path
        [IO.File]::Delete($Path)
    }
    catch [IO.IOException], [UnauthorizedAccessException] { return }
}

function Add-OldFile {
    # A line for the list of files set aside: the file, and behind a bar the place it goes back to when that is empty.
    param([string]$Line)
    Write-FileByte -Path (Get-StatePath -Name 'old-files.txt') -Bytes (ConvertTo-FileByte -Text "$Line`n") -Mode 'Append'
}

function Clear-OldFile {
    # Deletes what was set aside and puts back what a power cut left without a successor. Housekeeping: it never fails.
    $list = Get-StatePath -Name 'old-files.txt'
    try {
        $left = @(foreach ($line in Get-OldFile) { if (-not (Complete-OldFile -Line $line)) { $line } })
        if ($left) {
            Write-FileText -Path $list -Text (($left -join "`n") + "`n") -Tries 1
        }
        else {
            Remove-File -Path $list -Tries 1
        }
    }
    # The list itself is held, or the disk is full: what it names goes another time.
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] { return }
}

function Get-OldFile {
    # The lines of that list, the last one for each file.
    $lines = [ordered]@{}
    foreach ($line in "$(Read-FileText -Path (Get-StatePath -Name 'old-files.txt'))".Split("`n")) {
        if ($line) { $lines[$line.Split('|')[0]] = $line }
    }
    $lines.Values
}

function Complete-OldFile {
    # Whether the file of such a line is gone now. One whose place is empty is needed: it is waited for, and missed in the journal.
    param([string]$Line)
    $path, $place = $Line.Split('|')
    if ([IO.File]::Exists($path) -and $place -and -not [IO.File]::Exists($place)) {
        try { Invoke-WithRetry -File $path -Work { [IO.File]::Move($path, $place) } }
        catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] {
            $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'FileInUse'
            [void](New-EventLine -Fields @{ event = 'file-missing'; path = $place; problem = $problem })
            return $false
        }
    }
    Remove-OldFile -Path $path
    -not [IO.File]::Exists($path)
}

function Save-FormerFile {
    # The copy first, then the note: with the note there is always a copy. Only once: a later one would be our own file.
    param([string]$Path)
    if (Test-FormerNote -Kind 'File' -Key $Path) { return }
    $former = @{ path = $Path; bytes = $null; kept = $null; link = $null }
    if ([IO.File]::Exists($Path)) {
        $former.link = Get-LinkTarget -Path $Path
        if (-not $former.link -and [IO.FileInfo]::new($Path).Length -le 64KB) {
            # Nothing when it went away a moment ago: then there was no file.
            $content = Read-AnyFileByte -Path $Path
            if ($null -ne $content) { $former.bytes = [Convert]::ToBase64String($content) }
        }
        elseif (-not $former.link) {
            $former.kept = Get-StatePath -Name "former\files\$(Get-TextHash -Text $Path.ToLowerInvariant())"
            Copy-WholeFile -From $Path -To $former.kept
        }
    }
    # The folders that come with the file, outermost first: they go with it.
    foreach ($folder in @(Get-ParentPath -Path $Path | Where-Object { -not [IO.Directory]::Exists($_) })) {
        Save-FormerValue -Kind 'Folder' -Key $folder -Value @{ path = $folder; ours = $false; existed = $false }
    }
    Save-FormerValue -Kind 'File' -Key $Path -Value $former
}

function Restore-File {
    # Puts back a file as it was before winboot, or removes what was not there. The kept copy stays: a cut may come at any time.
    param([object]$Former)
    # Notes of older releases have no link.
    $link = Read-Member -Object $Former -Names 'link'
    if ($link) { Restore-SymbolicLink -Path $Former.path -Target $link }
    elseif ($null -ne $Former.bytes) {
        $beside = $Former.path + '.winboot-new'
        Write-FileByte -Path $beside -Bytes ([Convert]::FromBase64String($Former.bytes)) -Mode 'CreateNew'
        Move-FileOver -From $beside -To $Former.path
    }
    elseif ($null -eq $Former.kept) { Remove-File -Path $Former.path }
    elseif ([IO.File]::Exists($Former.kept)) { Copy-WholeFile -From $Former.kept -To $Former.path }
    else { Stop-Step -Id 'FormerLost' -Message "the copy of $($Former.path) as it was before winboot is missing: $($Former.kept)" }
    # A cut between the two halves of a replacement leaves it.
    Remove-File -Path "$($Former.path).winboot-new"
}

function Restore-SymbolicLink {
    # Replaces what is there by a symbolic link to a file. Windows PowerShell makes no link to a file that is absent (PowerShell 6
    # does: PowerShell/PowerShell pull request 804), so a link that leads nowhere is left out. Returns nothing.
    param([string]$Path, [string]$Target)
    Remove-File -Path $Path
    if (-not [IO.File]::Exists($Target)) { return }
    [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($Path))
    [void](New-Item -ItemType SymbolicLink -Path $Path -Value $Target)
}
