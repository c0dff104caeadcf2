# SUMMARY Creates, protects, empties and restores folders.
# Private folders are for SYSTEM and Administrators alone; everyone can read Readable ones, these two write them.
# Ours are emptied by an undo. In Watched ones a file is run, or heeded, because it is there: they are looked through each time, the
# others when they are taken over. Opaque: patterns of what pods and images fill.

function Get-FolderDifference {
    # How the folders, those above them and what is in them differ from what is wanted.
    param([string[]]$Private, [string[]]$Readable, [string[]]$Ours, [string[]]$Watched, [string[]]$Opaque)
    $wanted = $Private + $Readable
    $checked = @(Get-CheckedFolder)
    $aside = @()
    # A folder comes before those in it.
    foreach ($path in $wanted + @(Get-FolderAbove -Paths $wanted) | Sort-Object) {
        Assert-NoLink -Path $path
        $above = $wanted -notcontains $path
        if (-not [IO.Directory]::Exists($path) -or @(Get-ParentPath -Path $path | Where-Object { $aside -contains $_ })) {
            if (-not $above) { New-Difference -Key "folder:$path" -What "folder $path" -Is $null -Want 'present' }
            continue
        }
        $account = Get-FolderOther -Path $path -Above:$above
        if ($account) {
            $aside += $path
            New-Difference -Key "of-others:$path" -What "folder ${path}: of others" -Is $account -Want 'set aside, and made again'
            continue
        }
        if ($Private -contains $path) {
            Compare-Wanted -Key "rights:$path" -What "folder ${path}: others with rights" -Is (Get-UntrustedAccount -Path $path) -Want $null
        }
        elseif ($above) {
            $what = "folder ${path}: other accounts that may replace its contents"
            Compare-Wanted -Key "replacers:$path" -What $what -Is (Get-UntrustedReplacer -Path $path) -Want $null
        }
        else { Compare-Wanted -Key "writers:$path" -What "folder ${path}: other accounts that may write" -Is (Get-UntrustedWriter -Path $path) -Want $null }
        if ($above -or ($Watched -notcontains $path -and $checked -contains $path)) { continue }
        # What is open because the folder is, is closed with it.
        $open = Test-FolderOpen -Path $path -Private:($Private -contains $path)
        $strange = @(Get-UntrustedEntry -Path $path -But ($wanted + $Opaque) |
                Where-Object { $wanted -notcontains $_.path -and ($_.aside -or -not $open) } |
                ForEach-Object { "$($_.path) ($($_.who))" }) -join ', '
        if ($strange) { New-Difference -Key "strange-files:$path" -What "folder ${path}: files of others" -Is $strange -Want $null }
    }
}

function Get-FolderAbove {
    # The folders above these, outermost first, without those that are in the list themselves. Returns nothing if
    # none exist.
    param([string[]]$Paths)
    $above = @($Paths | ForEach-Object { Get-ParentPath -Path $_ } | Sort-Object -Unique)
    $above | Where-Object { $Paths -notcontains $_ }
}

function Get-FolderOther {
    # The accounts, besides administrators, that own this folder or may change its rules or owner: SIDs, or null. A folder that is to
    # be ours they may not rename either. They may have it open: Windows asks for rights only then.
    param([string]$Path, [switch]$Above)
    # It reports those of Windows itself otherwise: by the accounts that may replace what is in them.
    if (Test-WindowsFolder -Path $Path) { return }
    if ($Above) { return (Get-UntrustedWriter -Path $Path -Rights 0x100c0000 -Itself) }
    Get-UntrustedHolder -Path $Path
}

function Get-UntrustedReplacer {
    # The accounts, besides administrators, that own a folder or may delete, rename or open up what is in it: SIDs, or null. 40: delete
    # children, 10000: delete, 40000: rules, 80000: owner, 10000000: everything.
    param([string]$Path)
    Get-UntrustedWriter -Path $Path -Rights 0x100d0040 -Itself
}

function Get-UntrustedEntry {
    # What users own or may change below a path, with the links that they made or could have made: path, `who`, aside
    # (it has to go, with what is in it). Returns nothing if none exists. But: patterns of what is not looked into.
    param([string]$Path, [string[]]$But = @())
    if (-not [IO.Directory]::Exists($Path)) { return }
    foreach ($entry in [IO.Directory]::GetFileSystemEntries($Path)) {
        $link = Get-UserLink -Path $entry
        if ($link) { @{ path = $entry; who = $link; aside = $true }; continue }
        # An administrator's symbolic link.
        if (Test-Link -Path $entry) { continue }
        $account = Get-UntrustedWriter -Path $entry
        $aside = $account -and $null -ne (Get-UntrustedHolder -Path $entry)
        if ($account) { @{ path = $entry; who = $account; aside = $aside } }
        if ($aside -or -not [IO.Directory]::Exists($entry)) { continue }
        if (@($But | Where-Object { $entry -like $_ }).Count -eq 0) { Get-UntrustedEntry -Path $entry -But $But }
    }
}

function Set-Folder {
    # Makes what is missing, sets aside what belongs to other users, and takes rights from others that have too many.
    param([string[]]$Private, [string[]]$Readable, [string[]]$Ours, [string[]]$Watched, [string[]]$Opaque)
    $wanted = $Private + $Readable
    foreach ($path in $wanted) { Assert-NoLink -Path $path }
    $checked = @(Get-CheckedFolder)
    # A folder comes before those in it.
    $all = @($wanted + @(Get-FolderAbove -Paths $wanted) | Sort-Object)
    $through = @($wanted | Where-Object { $Watched -contains $_ -or $checked -notcontains $_ -or (Test-FolderOpen -Path $_ -Private:($Private -contains $_)) })
    Move-FolderOther -Folders $all -Wanted $wanted -Through $through -But ($wanted + $Opaque)
    foreach ($path in $all) {
        $closed = $Private -contains $path
        $above = $wanted -notcontains $path
        $open = $false
        $there = [IO.Directory]::Exists($path)
        if ($above) { Assert-WindowsFolder -Path $path }
        if ($there -and (Get-FolderOther -Path $path -Above:$above)) {
            Move-Aside -Path $path
            $there = $false
        }
        elseif ($there) { $open = Test-FolderOpen -Path $path -Private:$closed -Above:$above }
        if (-not $there) {
            Add-Folder -Path $path -Readable:(-not $closed) -Ours:($Ours -contains $path)
            # Another user may have been quicker.
            $account = Get-FolderOther -Path $path -Above:$above
            if ($account) { Stop-Step -Id 'FolderTaken' -Message "$path was made by $account a moment ago" }
        }
        elseif ($open) { Protect-Path -Path $path -Readable:(-not $closed) }
        if ($above) { continue }
        # Closed first: nothing can be added while it is looked through.
        if ($open -or $through -contains $path) {
            foreach ($entry in @(Get-UntrustedEntry -Path $path -But ($wanted + $Opaque))) {
                if ($entry.aside) { Move-Aside -Path $entry.path } else { Protect-Path -Path $entry.path -Readable:(-not $closed) }
            }
        }
    }
    Save-FormerValue -Kind 'CheckedFolder' -Key ($wanted -join ';') -Value @{ paths = $wanted }
}

function Move-FolderOther {
    # Sets aside which of these folders others may have open with the right to change its rules, and what they may have open
    # Through these. It comes before the first rule is changed: Windows hands the rules of a folder down to all that is in it
    # (learn.microsoft.com/windows/win32/secauthz/automatic-propagation-of-inheritable-aces), and once a folder is closed nothing
    # shows any more what others could open.
    param([string[]]$Folders, [string[]]$Wanted, [string[]]$Through, [string[]]$But)
    foreach ($path in $Folders) {
        if (-not [IO.Directory]::Exists($path)) { continue }
        if (Get-FolderOther -Path $path -Above:($Wanted -notcontains $path)) { Move-Aside -Path $path }
        elseif ($Through -contains $path) {
            foreach ($entry in @(Get-UntrustedEntry -Path $path -But $But)) { if ($entry.aside) { Move-Aside -Path $entry.path } }
        }
    }
}

function Test-WindowsFolder {
    # Whether a folder is Windows' own: every program and user of this machine has something there.
    param([string]$Path)
    @($env:ProgramFiles, $env:ProgramData) -contains $Path
}

function Assert-WindowsFolder {
    # Stops the step where others may replace what is in a folder of Windows' own: it is not set aside, and its rules are not
    # replaced by ours, which would shut out the users and programs of this machine.
    param([string]$Path)
    if (-not (Test-WindowsFolder -Path $Path)) { return }
    $account = Get-UntrustedReplacer -Path $Path
    if ($account) { Stop-Step -Id 'FolderOpen' -Message "$account may replace what is in $Path, where programs of SYSTEM are to be" }
}

function Get-CheckedFolder {
    # The folders that were ours with all in them when a change had ended. Nothing before the first one.
    foreach ($note in Get-FormerLine) { if ($note.kind -eq 'CheckedFolder') { $note.value.paths } }
}

function Test-FolderOpen {
    # Whether others have more rights on a folder than its kind allows; Above are those that only lead to ours.
    param([string]$Path, [switch]$Private, [switch]$Above)
    if (-not [IO.Directory]::Exists($Path)) { return $false }
    if ($Above) { return $null -ne (Get-UntrustedReplacer -Path $Path) }
    if ($Private) { return $null -ne (Get-UntrustedAccount -Path $Path) }
    $null -ne (Get-UntrustedWriter -Path $Path)
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

function Move-Aside {
    # Sets another user's file, folder or link aside on the same drive, for an undo. Windows renames no folder in which
    # something is open.
    param([string]$Path)
    $state = Get-StatePath -Name 'aside'
    if ([IO.Path]::GetPathRoot($Path) -ne [IO.Path]::GetPathRoot($state)) { $state = [IO.Path]::GetPathRoot($Path) + 'winboot-aside' }
    Set-PrivateFolder -Path $state
    $place = [IO.Path]::Combine($state, [Guid]::NewGuid().ToString('N'))
    Save-FormerValue -Kind 'Aside' -Key $place -Value @{ path = $Path; aside = $place }
    try { Move-Entry -From $Path -To $place }
    catch [IO.IOException], [UnauthorizedAccessException] {
        Stop-Step -Id 'FolderInUse' -Message "winboot cannot set $Path aside, which another account owns: $($_.Exception.GetBaseException().Message)"
    }
}

function Move-Entry {
    # Renames a file, or a folder with all that is in it; a link is renamed itself.
    param([string]$From, [string]$To)
    Invoke-WithRetry -File $From -Tries 4 -Work {
        if ([IO.Directory]::Exists($From)) { [IO.Directory]::Move($From, $To) } else { [IO.File]::Move($From, $To) }
    }
}

function Restore-Aside {
    # Puts back what was set aside; next to its place, with a report, where something else is there now.
    param([object]$Former)
    if (-not [IO.File]::Exists($Former.aside) -and -not [IO.Directory]::Exists($Former.aside)) { return }
    $to = $Former.path
    if ([IO.Directory]::Exists($to) -and [IO.Directory]::GetFileSystemEntries($to).Count -eq 0) {
        Invoke-WithRetry -File $to -Work { [IO.Directory]::Delete($to) }
    }
    if ([IO.File]::Exists($to) -or [IO.Directory]::Exists($to)) {
        $to = "$to.before-winboot"
        New-Difference -Key "aside:$($Former.path)" -What "what was at $($Former.path)" -Is "at $to" -Want 'in its place'
    }
    Move-Entry -From $Former.aside -To $to
}

function Restore-CheckedFolder {
    # A note about what was looked at: there is nothing to put back.
    param([object]$Former)
    Write-Debug -Message "looked through: $($Former.paths)"
}

function Restore-Folder {
    # A folder that winboot made goes when it is empty, or with all that its services wrote where no other account does.
    param([object]$Former)
    if ($Former.existed -or -not [IO.Directory]::Exists($Former.path)) { return }
    $empty = [IO.Directory]::GetFileSystemEntries($Former.path).Count -eq 0
    if (-not $empty -and -not $Former.ours) { return }
    # Links are removed here, not followed.
    try { Remove-Folder -Path $Former.path }
    catch { Stop-Step -Id 'FolderLeft' -Message "$($Former.path) cannot be removed: $($_.Exception.GetBaseException().Message)" }
}
