# Hashes of programs, remembered: reading hundreds of megabytes is most of what a look costs.

function Get-KnownHash {
    # SHA-256 of a file, or nothing when it is absent or not believed. It is the remembered one while size and both times are what they were:
    # only administrators can write there, and a program that is put in the place of another brings times of its own.
    param([string]$Path)
    if (-not (Test-OwnPath -Path $Path)) { return }
    $file = [IO.FileInfo]::new($Path)
    $mark = "$($file.Length) $($file.LastWriteTimeUtc.Ticks) $($file.CreationTimeUtc.Ticks)"
    $memory = Get-HashMemory
    if ($memory.ContainsKey($Path) -and $memory[$Path].mark -eq $mark) { return $memory[$Path].sha256 }
    $hash = Get-PathHash -Path $Path
    if ($null -eq $hash) { return }
    $memory[$Path] = @{ mark = $mark; sha256 = $hash }
    $script:Run.HashesDiffer = $true
    $hash
}

function Get-HashMemory {
    # The table of what is remembered: path to mark and sha256, read once a run.
    if (-not $script:Run.ContainsKey('Hashes')) {
        $script:Run.Hashes = @{}
        $script:Run.HashesDiffer = $false
        foreach ($one in Read-Item -Object (Read-StateJson -Name 'hashes.json') -Name 'files') {
            $script:Run.Hashes[$one.path] = @{ mark = $one.mark; sha256 = $one.sha256 }
        }
    }
    $script:Run.Hashes
}

function Save-HashMemory {
    # Writes what is remembered for the next run. A look writes nothing.
    if ($script:Run.Mode -ne 'Change' -or -not $script:Run.ContainsKey('Hashes') -or -not $script:Run.HashesDiffer) { return }
    $files = @(foreach ($path in $script:Run.Hashes.Keys | Sort-Object) {
            @{ path = $path; mark = $script:Run.Hashes[$path].mark; sha256 = $script:Run.Hashes[$path].sha256 }
        })
    Write-StateJson -Name 'hashes.json' -Value @{ files = $files }
    $script:Run.HashesDiffer = $false
}
