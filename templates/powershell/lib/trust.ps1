# SUMMARY Checks which accounts can change what winboot reads or starts.
# A look comes before anything is protected: an ordinary user may make C:\k, and what is in it.

function Get-PathDoubt {
    # Why a file is not read, or a program not started, in words: it or a folder above it is a link, or an account that is no
    # administrator owns it, may write it or may replace it by another. Nothing where none of this is so, or nothing is
    # there. In a Program's folder no such account may add anything: Windows looks for libraries there first.
    # Every file that is read and every program that is started passes here (tests/steps/test_trust.py).
    param([string]$Path, [switch]$Program)
    $memory = Get-PathMemory
    $key = "$Path|$Program"
    if (-not $memory.ContainsKey($key)) { $memory[$key] = Read-PathDoubt -Path $Path -Program:$Program }
    $memory[$key]
}

function Get-PathMemory {
    # What was found out about paths, until something is changed: twenty files in a folder ask about it once.
    # The small scripts next to the main one have no run.
    if ($null -eq $script:Run) { return @{} }
    if (-not $script:Run.Cache.ContainsKey('Paths')) { $script:Run.Cache.Paths = @{} }
    $script:Run.Cache.Paths
}

function Read-PathDoubt {
    # Asks Windows for what Get-PathDoubt returns; nothing where there is no doubt.
    param([string]$Path, [switch]$Program)
    $folder = [IO.Path]::GetDirectoryName($Path)
    $doubt = Get-FolderDoubt -Path $folder -Adding:$Program
    if ($doubt -or -not [IO.File]::Exists($Path)) { return $doubt }
    if (Test-Link -Path $Path) { return (Get-LinkDoubt -Path $Path -Program:$Program) }
    $account = Get-UntrustedWriter -Path $Path
    if ($account) { return "$Path belongs to $account, or can be written there" }
    # Its owner and rules are those of the other name, which any account that may add files here has chosen.
    if (-not $Program -and (Get-FolderDoubt -Path $folder -Adding) -and (Test-HardLink -Path $Path)) {
        "$Path is a second name of another file"
    }
}

function Get-LinkDoubt {
    # Why a link to a file is not followed; nothing where only administrators can have made it and its end is believed.
    # The kubelet keeps its current certificates as such links (client-go: util/certificate/certificate_store.go, updateSymlink).
    param([string]$Path, [switch]$Program)
    $folder = [IO.Path]::GetDirectoryName($Path)
    $target = Get-LinkTarget -Path $Path
    if ($Program -or -not $target -or (Get-FolderDoubt -Path $folder -Adding) -or (Get-UserLink -Path $Path)) {
        return "$Path is a link"
    }
    Get-PathDoubt -Path $target
}

function Get-LinkTarget {
    # The absolute path that a link leads to; nothing for what is not a link, or has no one target.
    param([string]$Path)
    if (-not (Test-Link -Path $Path)) { return }
    $target = @((Get-Item -LiteralPath $Path -Force).Target | Where-Object { $_ })
    if ($target.Count -eq 1) { [IO.Path]::GetFullPath([IO.Path]::Combine([IO.Path]::GetDirectoryName($Path), $target[0])) }
}

function Get-FolderDoubt {
    # Why what is in a folder is not believed: it or one above it is a link or another account's, or others may replace what is in
    # it, or with Adding add to it. Nothing where it is not there.
    param([string]$Path, [switch]$Adding)
    # Administrators alone rename or delete what others made in the root of a drive.
    if ("$Path".Length -le 3) { return }
    $memory = Get-PathMemory
    $key = "folder $Path|$Adding"
    if ($memory.ContainsKey($key)) { return $memory[$key] }
    $doubt = Get-FolderDoubt -Path ([IO.Path]::GetDirectoryName($Path))
    if (-not $doubt -and [IO.Directory]::Exists($Path)) {
        if (Test-Link -Path $Path) { $doubt = "$Path is a link" }
        else {
            $account = if ($Adding) { Get-UntrustedWriter -Path $Path -Itself } else { Get-UntrustedReplacer -Path $Path }
            if ($account) { $doubt = "$Path belongs to $account, or can be changed there" }
        }
    }
    $memory[$key] = $doubt
    $doubt
}

function Test-OwnPath {
    # Whether a file is there and is believed; why it is not is reported with the step.
    param([string]$Path, [switch]$Program)
    if (-not [IO.File]::Exists($Path)) { return $false }
    $doubt = Get-PathDoubt -Path $Path -Program:$Program
    if ($doubt) { Add-Doubt -Path $Path -Doubt $doubt }
    -not $doubt
}

function Add-Doubt {
    # Notes for the report of the step that a file was taken for absent, and why.
    param([string]$Path, [string]$Doubt)
    if ($null -eq $script:Run) { return }
    if (-not $script:Run.ContainsKey('Doubts')) { $script:Run.Doubts = @{} }
    $script:Run.Doubts[$Path] = $Doubt
}

function Get-DoubtNotice {
    # A notice for each file that was taken for absent since the last call; nothing where all were believed.
    if (-not $script:Run.ContainsKey('Doubts')) { return }
    foreach ($path in $script:Run.Doubts.Keys | Sort-Object) {
        New-Difference -Key "doubt:$path" -What "file ${path}: taken for absent" -Is $script:Run.Doubts[$path] -Want 'ours alone' -Policy
    }
    $script:Run.Doubts = @{}
}

function Assert-OwnProgram {
    # Stops the step where a program that is not Windows' own, or a file that it Reads, is not believed.
    param([string]$Path, [string[]]$Reads = @())
    $doubts = @(
        if ($Path -notlike "$([Environment]::SystemDirectory)\*") { Get-PathDoubt -Path $Path -Program }
        foreach ($one in $Reads) { Get-PathDoubt -Path $one }
    )
    if ($doubts) { Stop-Step -Id 'NotOurs' -Message "$Path is not started: $($doubts -join '; ')" }
}
