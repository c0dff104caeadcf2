# How a thing was before winboot first changed it.

function Get-FormerPath {
    Get-StatePath "former\$($script:Run.Step).jsonl"
}

function Get-FormerLine {
    $path = Get-FormerPath
    if (-not [IO.File]::Exists($path)) { return }
    foreach ($line in [IO.File]::ReadAllLines($path)) {
        # Half a line: the machine went down, and the change was not made.
        if ($line.EndsWith('}')) { try { ConvertFrom-Json -InputObject $line } catch [ArgumentException] { continue } }
    }
}

function Save-FormerValue {
    # Later ones would hold our own values.
    param([string]$Kind, [string]$Key, $Value)
    foreach ($line in Get-FormerLine) { if ($line.kind -eq $Kind -and $line.key -eq $Key) { return } }
    $note = ConvertTo-Json -InputObject @{ kind = $Kind; key = $Key; value = $Value } -Depth 6 -Compress
    # On a line of its own, whatever became of the last one.
    [IO.File]::AppendAllText((Get-FormerPath), "`n$note`n")
}

function Test-FormerValue {
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
    [IO.File]::Delete((Get-FormerPath))
}
