function Get-StatePath {
    param([string]$Name = '')
    [IO.Path]::Combine($env:ProgramData, 'winboot', $Name)
}

function Initialize-StateFolder {
    # Whoever made it stays its owner, and could have put former values there.
    $path = Get-StatePath
    $ours = "^O:(BA|SY|LA|$([Security.Principal.WindowsIdentity]::GetCurrent().User))G:"
    if ([IO.Directory]::Exists($path) -and (Get-Acl -LiteralPath $path).Sddl -notmatch $ours) { throw "$path is somebody else's: see whose, and delete it" }
    foreach ($name in @('', 'former', 'detached')) { Set-PrivateFolder (Get-StatePath $name) }
}

function Remove-StateFolder {
    $folder = Get-StatePath
    if ([IO.Directory]::Exists($folder)) { [IO.Directory]::Delete($folder, $true) }
}

function Write-Journal {
    param([string]$Line)
    $path = Get-StatePath 'journal.jsonl'
    if (-not [IO.Directory]::Exists((Get-StatePath))) { return }
    if ([IO.File]::Exists($path) -and [IO.FileInfo]::new($path).Length -gt 1MB) {
        $older = Get-StatePath 'journal.1.jsonl'
        [IO.File]::Delete($older)
        [IO.File]::Move($path, $older)
    }
    [IO.File]::AppendAllText($path, ('{{"at":"{0:o}","event":{1}}}' -f [DateTime]::UtcNow, $Line) + "`n")
}

function Read-StateJson {
    # Nothing when it is absent or was cut off in mid-write.
    param([string]$Name)
    $path = Get-StatePath $Name
    if (-not [IO.File]::Exists($path)) { return }
    try { ConvertFrom-Json -InputObject ([IO.File]::ReadAllText($path)) }
    catch [ArgumentException] { return }
}

function Write-StateJson {
    param([string]$Name, $Value)
    Write-FileText (Get-StatePath $Name) (ConvertTo-Json -InputObject $Value -Depth 8 -Compress)
}

function Get-Fence {
    $stored = Read-StateJson 'fence.json'
    if (-not $stored) { return 0 }
    [int]$stored.fence
}

function Test-Fence {
    (Get-Fence) -eq $script:Run.Fence
}

function Get-HolderText {
    $stored = Read-StateJson 'fence.json'
    if (-not $stored) { return 'another process holds the winboot mutex' }
    "$($stored.holder), run $($stored.run), since $($stored.since)"
}

function Save-Fence {
    param([string]$Holder)
    $script:Run.Fence = (Get-Fence) + 1
    $now = [DateTime]::UtcNow.ToString('s') + 'Z'
    Write-StateJson 'fence.json' @{ fence = $script:Run.Fence; run = $script:Run.Id; holder = $Holder; since = $now }
}

function Enter-Run {
    Initialize-StateFolder
    $facts = $script:Run.Facts
    # The older run sees that at its next step and lets go.
    if ($facts.TakeOver) { Save-Fence $facts.Holder }
    $lock = Wait-Mutex $(if ($facts.TakeOver) { 300 } else { 20 })
    if (-not $lock) { return }
    try { Save-Fence $facts.Holder }
    catch {
        Exit-Run $lock
        throw
    }
    $lock
}

function Wait-Mutex {
    param([int]$Seconds)
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    do {
        try {
            $lock = [Threading.Mutex]::new($false, 'Global\winboot')
            try { if ($lock.WaitOne(1000)) { return $lock } }
            catch [Threading.AbandonedMutexException] { return $lock }
            $lock.Dispose()
        }
        # Another account's, while it is held.
        catch [UnauthorizedAccessException] { Start-Sleep -Milliseconds 1000 }
    } while ([DateTime]::UtcNow -lt $until)
}

function Exit-Run {
    param([Threading.Mutex]$Lock)
    $Lock.ReleaseMutex()
    $Lock.Dispose()
}

function Save-RebootMark {
    param([string[]]$Steps)
    Write-StateJson 'reboot.json' @{ boot_id = (Get-MachineIdentity).BootId; steps = $Steps }
}

function Read-DetachedRun {
    param([string]$Step = '')
    $folder = Get-StatePath 'detached'
    if (-not [IO.Directory]::Exists($folder)) { return }
    foreach ($path in [IO.Directory]::GetFiles($folder, "$Step*.json")) {
        $status = Read-StateJson ('detached\' + [IO.Path]::GetFileName($path))
        if ($status) { $status }
    }
}

function Get-RunningDetached {
    foreach ($status in Read-DetachedRun) {
        $inTime = [DateTime]::UtcNow.Ticks -lt $status.deadline
        if ($status.state -eq 'running' -and $inTime -and $status.boot_id -eq (Get-MachineIdentity).BootId) { return $status }
    }
}
