# How a thing was before winboot first changed it.

function Get-FormerPath {
    Get-StatePath "former\$($script:Run.Step).jsonl"
}

function Get-FormerLine {
    # The notes of the current step: kind, key and value each. What has another shape is none of ours.
    foreach ($line in "$(Read-FileText (Get-FormerPath))".Split("`n")) {
        # Half a line: the machine went down, and the change was not made.
        if (-not $line.EndsWith('}')) { continue }
        try { $note = ConvertFrom-Json -InputObject $line } catch [ArgumentException] { continue }
        if ($null -ne (Read-Member $note 'kind') -and $note.PSObject.Properties['value']) { $note }
    }
}

function Test-FormerNote {
    # Whether the current step has a note of this thing.
    param([string]$Kind, [string]$Key)
    foreach ($line in Get-FormerLine) { if ($line.kind -eq $Kind -and $line.key -eq $Key) { return $true } }
    $false
}

function Save-FormerValue {
    # Notes how a thing was, on the disk, before it is changed. Once: later ones would hold our own values.
    param([string]$Kind, [string]$Key, $Value)
    if (Test-FormerNote $Kind $Key) { return }
    $note = ConvertTo-Json -InputObject @{ kind = $Kind; key = $Key; value = $Value } -Depth 6 -Compress
    # On a line of its own, whatever became of the last one.
    Write-FileByte (Get-FormerPath) (ConvertTo-FileByte "`n$note`n") -Mode 'Append'
}

function Test-FormerValue {
    # Whether the current step has any note.
    [IO.File]::Exists((Get-FormerPath))
}

function Restore-FormerValue {
    # Puts back everything the current step has noted, last change first. Each kind has its function Restore-<Kind>;
    # the functions that save a kind name it, so that it is in this script whenever it is needed.
    $lines = @(Get-FormerLine)
    [array]::Reverse($lines)
    foreach ($line in $lines) {
        $restore = Get-Command -Name ('Restore-' + $line.kind) -CommandType Function
        & $restore -Former $line.value
    }
}

function Clear-FormerValue {
    Remove-File (Get-FormerPath)
}
