# SUMMARY Keeps this library on the machine, so that a later run sends only its SHA-256.

function Get-LibraryPath {
    # Where the library of this SHA-256 is kept.
    param([string]$Hash)
    Get-StatePath -Name "library-$Hash.ps1"
}

function Read-Library {
    # The kept library of this SHA-256 as Text, or as Doubt why it cannot be had. It is never run as a file, so that no
    # policy for script files judges it: what counts is the hash, which comes from the controller.
    param([string]$Hash)
    $path = Get-LibraryPath -Hash $Hash
    $doubt = Get-PathDoubt -Path $path
    if ($doubt) { return @{ Text = ''; Doubt = $doubt } }
    try { $text = Read-FileText -Path $path }
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] { return @{ Text = ''; Doubt = $_.Exception.Message } }
    if ($null -eq $text) { return @{ Text = ''; Doubt = "$path is not there" } }
    if ((Get-TextHash -Text $text) -ne $Hash) { return @{ Text = ''; Doubt = "$path holds another text" } }
    @{ Text = $text; Doubt = '' }
}

function Get-OwnLibrary {
    # The library that this script ends with; nothing where its text is another than the script itself says.
    # The library names the mark once, in its first line: the last one in the text is the right one.
    $at = $script:Run.Text.LastIndexOf("`n#region Library", [StringComparison]::Ordinal)
    $text = $script:Run.Text.Substring($at + 1)
    if ($at -ge 0 -and (Get-TextHash -Text $text) -eq $script:Run.Plan.Library) { $text }
}

function Get-LibraryDifference {
    # Whether the kept library is the one that this script ends with.
    $text = Get-OwnLibrary
    if ($text) { Get-FileDifference -Path (Get-LibraryPath -Hash $script:Run.Plan.Library) -Text $text }
}

function Save-Library {
    # Keeps the library that this script ends with, and only that one. Returns nothing.
    $text = Get-OwnLibrary
    if (-not $text) { return }
    $kept = Get-LibraryPath -Hash $script:Run.Plan.Library
    Write-FileText -Path $kept -Text $text -Private
    Remove-Library -But $kept
}

function Remove-Library {
    # Deletes kept libraries, all but one. Returns nothing.
    param([string]$But = '')
    foreach ($path in [IO.Directory]::GetFiles((Get-StatePath), 'library-*.ps1')) {
        if ($path -ne $But) { Remove-File -Path $path }
    }
}
