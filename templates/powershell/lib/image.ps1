# SUMMARY Prepares a template machine for its image: finds traces of a node, deletes those of runs.

function Get-NodeTrace {
    # What only a node has, of these files, folders with something in them, and services, as names; nothing on a template.
    param([string[]]$Files, [string[]]$Folders, [string[]]$Services)
    $Files | Where-Object { [IO.File]::Exists($_) }
    $Folders | Where-Object { [IO.Directory]::Exists($_) } | ForEach-Object { [IO.Directory]::GetFileSystemEntries($_) }
    $Services | Where-Object { Get-ServiceState -Name $_ } | ForEach-Object { "service $_" }
}

function Clear-MachineTrace {
    # Deletes what winboot noted of this machine alone: its boots, runs, journal and downloads. The former values stay, because
    # `remove` restores them on each clone. Logins of registries go: an image is copied to many places.
    param([string[]]$Logins)
    # What holds for every clone.
    $kept = @('former', 'placed.json', 'versions.json', 'features.json', 'logs.ps1', 'image.json')
    $entries = [IO.Directory]::GetFileSystemEntries((Get-StatePath)) | Where-Object { $kept -notcontains [IO.Path]::GetFileName($_) }
    foreach ($path in @($entries) + @($Logins)) {
        if ([IO.Directory]::Exists($path)) { Invoke-WithRetry -File $path -Work { [IO.Directory]::Delete($path, $true) } }
        elseif ([IO.File]::Exists($path)) { Remove-File -Path $path }
    }
}

function Read-ImageNote {
    # What the image of this machine held when it was baked; nothing on a machine of another image.
    Read-StateJson -Name 'image.json'
}
