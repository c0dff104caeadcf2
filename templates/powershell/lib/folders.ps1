# Folders that the node needs.

function Get-FolderDifference {
    param([hashtable[]]$Folders)
    foreach ($folder in $Folders) {
        if (-not [IO.Directory]::Exists($folder.path)) {
            New-Difference -What ('folder {0}' -f $folder.path) -Is $null -Want 'present'
        }
        if ($folder.private) {
            $strangers = $null
            if ([IO.Directory]::Exists($folder.path)) { $strangers = Get-Strangers -Path $folder.path }
            if ($null -ne $strangers) {
                New-Difference -What ('folder {0}: others with rights' -f $folder.path) -Is $strangers -Want $null
            }
        }
    }
}

function Set-Folders {
    # A private folder gets its rules before anything is in it.
    param([hashtable[]]$Folders)
    foreach ($folder in $Folders) {
        Save-FormerValue -Kind 'Folder' -Key $folder.path -Value @{ path = $folder.path; existed = [IO.Directory]::Exists($folder.path) }
        if ($folder.private) { Set-PrivateFolder -Path $folder.path }
        else { [void][IO.Directory]::CreateDirectory($folder.path) }
    }
}

function Restore-Folder {
    # Removes a folder that winboot made when nothing is left in it: what others put there is not ours.
    param([object]$Former)
    if ($Former.existed -or -not [IO.Directory]::Exists($Former.path)) { return }
    if ([IO.Directory]::GetFileSystemEntries($Former.path).Count -eq 0) { [IO.Directory]::Delete($Former.path) }
}
