# Folders: Private ones are for SYSTEM and Administrators alone, Readable ones can be read by everybody and written by these two.
# Ours are emptied by an undo. In Watched ones a file is run, or heeded, because it is there.

function Get-FolderDifference {
    # How the folders, those above them and what is in the watched ones differ from what is wanted.
    param([string[]]$Private, [string[]]$Readable, [string[]]$Ours, [string[]]$Watched)
    foreach ($path in $Private + $Readable) {
        Assert-NoLink -Path $path
        if (-not [IO.Directory]::Exists($path)) { New-Difference -Key "folder:$path" -What "folder $path" -Is $null -Want 'present' }
        elseif ($Private -contains $path) {
            Compare-Wanted -Key "rights:$path" -What "folder ${path}: others with rights" -Is (Get-Stranger -Path $path) -Want $null
            Compare-Wanted -Key "owner:$path" -What "folder ${path}: owner" -Is (Get-StrangeOwner -Path $path) -Want $null
        }
        else {
            $writers = Get-StrangeWriter -Path $path
            Compare-Wanted -Key "writers:$path" -What "folder ${path}: others who may write" -Is $writers -Want $null
        }
    }
    foreach ($path in Get-FolderAbove -Paths ($Private + $Readable)) {
        if (-not [IO.Directory]::Exists($path)) { continue }
        $what = "folder ${path}: others who may replace what is in it"
        Compare-Wanted -Key "replacers:$path" -What $what -Is (Get-StrangeReplacer -Path $path) -Want $null
    }
    foreach ($path in $Watched) {
        $strange = @(Get-StrangeEntry -Path $path | ForEach-Object { "$($_.path) ($($_.who))" }) -join ', '
        if ($strange) { New-Difference -Key "strange-files:$path" -What "folder ${path}: files of others" -Is $strange -Want $null }
    }
}

function Get-FolderAbove {
    # The folders above these, outermost first, without those that are in the list themselves. Nothing where there are
    # none.
    param([string[]]$Paths)
    $above = @($Paths | ForEach-Object { Get-ParentPath -Path $_ } | Sort-Object -Unique)
    $above | Where-Object { $Paths -notcontains $_ }
}

function Get-StrangeReplacer {
    # Who, besides administrators, owns a folder or may delete, rename or open up what is in it: SIDs, or null. 40: delete
    # children, 10000: delete, 40000: rules, 80000: owner, 10000000: everything.
    param([string]$Path)
    Get-StrangeWriter -Path $Path -Rights 0x100d0040 -Itself
}

function Get-StrangeEntry {
    # Files and folders below a path that somebody who is no administrator owns or may change: path, who, owned. None is
    # a link. Nothing where there is none.
    param([string]$Path)
    if (-not [IO.Directory]::Exists($Path)) { return }
    foreach ($entry in [IO.Directory]::GetFileSystemEntries($Path)) {
        if (Test-Link -Path $entry) {
            Stop-Step -Id 'FolderIsLink' -Message "$entry is a link to another place, and winboot follows none"
        }
        $who = Get-StrangeWriter -Path $entry
        if ($who) { @{ path = $entry; who = $who; owned = $null -ne (Get-StrangeOwner -Path $entry) } }
        if ([IO.Directory]::Exists($entry)) { Get-StrangeEntry -Path $entry }
    }
}

function Set-Folder {
    # Makes what is missing, and gives owner and access rules where others have too many rights.
    param([string[]]$Private, [string[]]$Readable, [string[]]$Ours, [string[]]$Watched)
    $wanted = $Private + $Readable
    foreach ($path in $wanted) { Assert-NoLink -Path $path }
    # A folder comes before those in it.
    foreach ($path in $wanted + @(Get-FolderAbove -Paths $wanted) | Sort-Object) {
        $closed = $Private -contains $path
        if (-not [IO.Directory]::Exists($path)) { Add-Folder -Path $path -Readable:(-not $closed) -Ours:($Ours -contains $path) }
        elseif (Test-FolderOpen -Path $path -Private:$closed -Above:($wanted -notcontains $path)) {
            Protect-Path -Path $path -Readable:(-not $closed)
        }
    }
    foreach ($path in $Watched) {
        foreach ($entry in Get-StrangeEntry -Path $path) {
            Remove-StrangeEntry -Entry $entry -Readable:($Private -notcontains $path)
        }
    }
}

function Test-FolderOpen {
    # Whether others have more rights on a folder than its kind allows; Above are those that only lead to ours.
    param([string]$Path, [switch]$Private, [switch]$Above)
    if ($Above) { return $null -ne (Get-StrangeReplacer -Path $Path) }
    if ($Private) { return $null -ne (Get-Stranger -Path $Path) -or $null -ne (Get-StrangeOwner -Path $Path) }
    $null -ne (Get-StrangeWriter -Path $Path)
}

function Add-Folder {
    # Makes a folder that has its access rules from the first moment on.
    param([string]$Path, [switch]$Readable, [switch]$Ours)
    Save-FormerValue -Kind 'Folder' -Key $Path -Value @{ path = $Path; ours = [bool]$Ours; existed = $false }
    New-ClosedFolder -Path $Path -Readable:$Readable
}

function Protect-Path {
    # Takes the rights of others away, and notes how it was.
    param([string]$Path, [switch]$Readable)
    Save-FormerAccess -Path $Path
    Set-PrivateAccess -Path $Path -Readable:$Readable
}

function Remove-StrangeEntry {
    # What somebody else wrote into a watched folder would be run by SYSTEM: a file of his goes, and is kept for an undo.
    # A folder, or a file that he may only write to, gets the rules of all others there.
    param([object]$Entry, [switch]$Readable)
    if (-not $Entry.owned -or [IO.Directory]::Exists($Entry.path)) {
        Protect-Path -Path $Entry.path -Readable:$Readable
        return
    }
    Save-FormerAccess -Path $Entry.path
    Save-FormerFile -Path $Entry.path
    Remove-OldFile -Path $Entry.path
}

function Restore-Folder {
    # A folder that winboot made goes when it is empty, or with all that its services wrote where nobody else does.
    param([object]$Former)
    if ($Former.existed -or -not [IO.Directory]::Exists($Former.path)) { return }
    $empty = [IO.Directory]::GetFileSystemEntries($Former.path).Count -eq 0
    if (-not $empty -and -not $Former.ours) { return }
    # Links are removed here, not followed.
    try { [IO.Directory]::Delete($Former.path, $true) }
    catch { Stop-Step -Id 'FolderLeft' -Message "$($Former.path) cannot be removed: $($_.Exception.GetBaseException().Message)" }
}
