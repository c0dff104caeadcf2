function Get-FolderDifference {
    param([string[]]$Private, [string[]]$Ours, [string[]]$Open)
    foreach ($path in $Ours + $Private + $Open) {
        if (-not [IO.Directory]::Exists($path)) { New-Difference -What "folder $path" -Is $null -Want 'present' }
        elseif ($Private -contains $path) { Compare-Wanted -What "folder ${path}: others with rights" -Is (Get-Stranger $path) -Want $null }
    }
}

function Set-Folder {
    param([string[]]$Private, [string[]]$Ours, [string[]]$Open)
    foreach ($path in $Ours + $Private + $Open) {
        Save-FormerFolder $path ($Ours -contains $path)
        if ($Private -contains $path) { Set-PrivateFolder $path }
        else { [void][IO.Directory]::CreateDirectory($path) }
    }
}

function Save-FormerFolder {
    # Missing parents are noted before it: an undo comes to them after it.
    param([string]$Path, [bool]$Ours)
    $parent = [IO.Path]::GetDirectoryName($Path)
    if (-not [IO.Directory]::Exists($parent)) { Save-FormerFolder $parent $false }
    Save-FormerValue 'Folder' $Path @{ path = $Path; ours = $Ours; existed = [IO.Directory]::Exists($Path) }
}

function Restore-Folder {
    # A folder that winboot made goes when it is empty, or with all that its services wrote where nobody else does.
    param([object]$Former)
    if ($Former.existed -or -not [IO.Directory]::Exists($Former.path)) { return }
    $empty = [IO.Directory]::GetFileSystemEntries($Former.path).Count -eq 0
    if (-not $empty -and -not $Former.ours) { return }
    # Links are removed here, not followed.
    try { [IO.Directory]::Delete($Former.path, $true) }
    catch { Stop-Step 'FolderLeft' "$($Former.path) cannot be removed: $($_.Exception.GetBaseException().Message)" }
}
