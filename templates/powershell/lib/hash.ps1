# SUMMARY Remembers hashes and versions of programs between runs.
# Reading hundreds of megabytes is most of the cost of a look.

function Get-KnownHash {
    # SHA-256 of a file, or nothing when it is absent or not believed. It is the remembered one while size and both times are
    # what they were in this boot: only administrators can write there, and a program that replaces another
    # brings times of its own. A power cut may empty a file and keep both.
    param([string]$Path)
    if (-not (Test-OwnPath -Path $Path)) { return }
    $file = [IO.FileInfo]::new($Path)
    $mark = "$((Get-MachineIdentity).BootId) $($file.Length) $($file.LastWriteTimeUtc.Ticks) $($file.CreationTimeUtc.Ticks)"
    $memory = Get-HashMemory
    if ($memory.ContainsKey($Path) -and $memory[$Path].mark -eq $mark) { return $memory[$Path].sha256 }
    $hash = Get-PathHash -Path $Path
    if ($null -eq $hash) { return }
    # The same bytes say and take the same.
    $before = @{ says = $null; takes = $null }
    if ($memory.ContainsKey($Path) -and $memory[$Path].sha256 -eq $hash) { $before = $memory[$Path] }
    $memory[$Path] = @{ mark = $mark; sha256 = $hash; says = $before.says; takes = $before.takes }
    $script:Run.HashesDiffer = $true
    $hash
}

function Get-KnownVersion {
    # The version that a program says it has, as in v1.34.2-rc.1; what else became of the question, where it says none. It is
    # asked once while its hash stays. The caller has found its hash to be right.
    param([string]$Path, [string[]]$Arguments)
    $known = (Get-HashMemory)[$Path]
    if ($known.says) { return $known.says }
    $ended = Invoke-Program -Path $Path -Arguments $Arguments
    $said = "$($ended.Output) $($ended.ErrorOutput)"
    $found = [regex]::Match($said, 'v?[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*')
    if (-not $found.Success) { return "none (it ended with code $($ended.ExitCode))" }
    $known.says = $found.Value
    $script:Run.HashesDiffer = $true
    $found.Value
}

function Update-HashMemory {
    # At a start of the machine: reads again what was remembered before it, so that the next look finds it known.
    foreach ($path in @((Get-HashMemory).Keys)) { [void](Get-KnownHash -Path $path) }
    Save-HashMemory
}

function Get-HashMemory {
    # The table of what is remembered: path to mark and sha256, read once a run.
    if (-not $script:Run.ContainsKey('Hashes')) {
        $script:Run.Hashes = @{}
        $script:Run.HashesDiffer = $false
        foreach ($one in Read-Item -Object (Read-StateJson -Name 'hashes.json') -Name 'files') {
            $script:Run.Hashes[$one.path] = @{
                mark = $one.mark; sha256 = $one.sha256; says = (Read-Member -Object $one -Names 'says'); takes = (Read-Member -Object $one -Names 'takes')
            }
        }
    }
    $script:Run.Hashes
}

function Save-HashMemory {
    # Writes what is remembered for the next run. A look writes nothing.
    if (@('Change', 'Boot') -notcontains $script:Run.Mode -or -not $script:Run.ContainsKey('Hashes') -or -not $script:Run.HashesDiffer) { return }
    $files = @(foreach ($path in $script:Run.Hashes.Keys | Sort-Object) {
            $one = $script:Run.Hashes[$path]
            @{ path = $path; mark = $one.mark; sha256 = $one.sha256; says = $one.says; takes = $one.takes }
        })
    Write-StateJson -Name 'hashes.json' -Value @{ files = $files }
    $script:Run.HashesDiffer = $false
}
