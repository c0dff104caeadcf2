# SUMMARY Records the state of a thing before winboot's first change, and restores it.

function Get-FormerPath {
    # The file with the notes of a step, the current one unless it is named.
    param([string]$Step = $script:Run.Step)
    Get-StatePath -Name "former\$Step.jsonl"
}

function Get-FormerLine {
    # The notes of a step, the current one unless it is named: kind, key and value each; with Key only lines in which it is
    # written. What has another shape is not winboot's. Nothing where there are no notes.
    param([string]$Step = $script:Run.Step, [string]$Key)
    $written = if ($Key) { ConvertTo-Json -InputObject $Key -Compress } else { '' }
    foreach ($line in "$(Read-FileText -Path (Get-FormerPath -Step $Step))".Split("`n")) {
        # Half a line: the machine went down, and the change was not made.
        if (-not $line.EndsWith('}', [StringComparison]::Ordinal)) { continue }
        if ($line.IndexOf($written, [StringComparison]::OrdinalIgnoreCase) -lt 0) { continue }
        try { $note = ConvertFrom-Json -InputObject $line } catch [ArgumentException] { continue }
        if ($null -ne (Read-Member -Object $note -Names 'kind') -and $note.PSObject.Properties['value']) { $note }
    }
}

function Test-FormerNote {
    # Whether a step, the current one unless it is named, has a note of this thing.
    param([string]$Kind, [string]$Key, [string]$Step = $script:Run.Step)
    foreach ($line in Get-FormerLine -Step $Step -Key $Key) { if ($line.kind -eq $Kind -and $line.key -eq $Key) { return $true } }
    $false
}

function Save-FormerValue {
    # Notes how a thing was, on the disk, before it is changed. Once: later ones would hold our own values.
    param([string]$Kind, [string]$Key, [object]$Value)
    if (Test-FormerNote -Kind $Kind -Key $Key) { return }
    $note = ConvertTo-Json -InputObject @{ kind = $Kind; key = $Key; value = $Value } -Depth 6 -Compress
    # On a line of its own, whatever became of the last one.
    Write-FileByte -Path (Get-FormerPath) -Bytes (ConvertTo-FileByte -Text "`n$note`n") -Mode 'Append'
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
    # Deletes the notes of the current step, whose things are back. Which things that were stays known for as long as the state
    # folder is there: they are another owner's again, whatever mark or place they have, until a note says otherwise. Returns nothing.
    $back = @(Get-FormerLine | ForEach-Object { "$($_.kind):$($_.key)" })
    if ($back) { Write-StateJson -Name 'restored.json' -Value @(@(Get-RestoredThing) + $back | Sort-Object -Unique) }
    Remove-File -Path (Get-FormerPath)
}

function Get-RestoredThing {
    # What undos have put back, kind and key in one text each. Nothing before the first undo.
    Read-StateJson -Name 'restored.json' | ForEach-Object { $_ }
}
