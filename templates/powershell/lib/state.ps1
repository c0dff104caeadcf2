# SUMMARY Keeps journal, fence, mutex and notes of runs in winboot's state folder.

function Get-StatePath {
    # A path in the folder where winboot keeps its state.
    param([string]$Name = '')
    [IO.Path]::Combine($env:ProgramData, 'winboot', $Name)
}

function Initialize-StateFolder {
    # Makes the state folder, for SYSTEM and Administrators alone. Any user may make folders below ProgramData, and junctions:
    # a user that made this one before would stay its owner, and could have put former values there.
    Assert-StateFolder
    foreach ($name in @('', 'former', 'detached')) {
        $folder = (Get-StatePath -Name $name).TrimEnd('\')
        Set-PrivateFolder -Path $folder
        # Once more, now that no other account can add anything: until this moment one could.
        Assert-OwnFolder -Path $folder
    }
    $script:Run.Cache = @{}
}

function Assert-StateFolder {
    # Throws when the state folder, as far as it is there, is not ours with all that is in it.
    $path = (Get-StatePath).TrimEnd('\')
    # A user that may rename what is in a folder above can replace it by another one.
    $doubt = Get-FolderDoubt -Path ([IO.Path]::GetDirectoryName($path))
    if ($doubt) { throw "winboot keeps nothing in ${path}: $doubt. Take that from others, and run it again" }
    if (Test-Link -Path $path) { throw "$path is a link to another place: look at its owner, and delete it" }
    foreach ($name in @('', 'former', 'detached')) {
        $folder = (Get-StatePath -Name $name).TrimEnd('\')
        if ([IO.Directory]::Exists($folder)) { Assert-OwnFolder -Path $folder }
    }
}

function Assert-OwnFolder {
    # Throws when the folder, or something in it, is a link, or another account owns it or may change it.
    param([string]$Path)
    foreach ($one in @($Path) + [IO.Directory]::GetFileSystemEntries($Path)) {
        if (Test-Link -Path $one) { throw "$one is a link to another place: look at its owner, and delete it" }
        # Something may have gone since it was listed.
        try {
            $owner = Get-UntrustedOwner -Path $one
            $holder = Get-UntrustedHolder -Path $one
        }
        catch [IO.FileNotFoundException] { continue }
        if ($owner) { throw "$one belongs to $owner, which is not an administrator: look at it, and delete it" }
        if ($holder) { throw "$one can be changed by $holder, which is not an administrator: look at it, and delete it" }
        if ([IO.File]::Exists($one) -and (Test-HardLink -Path $one)) {
            throw "$one is a second name of another file: look at its owner, and delete it"
        }
    }
}

function Remove-StateFolder {
    # Deletes the state folder. What another program holds open goes with the next restart: no later run would do it.
    $folder = Get-StatePath
    if (-not [IO.Directory]::Exists($folder)) { return }
    $waiting = @(Get-OldFile | ForEach-Object { $_.Split('|')[0] })
    try { Invoke-WithRetry -File $folder -Work { [IO.Directory]::Delete($folder, $true) } }
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] {
        $left = [IO.Directory]::GetFileSystemEntries($folder, '*', 'AllDirectories')
        # What lies deeper goes first.
        $waiting += @($left | Sort-Object -Property Length -Descending) + $folder
    }
    if ($waiting) { Remove-AtRestart -Path $waiting }
}

function Remove-AtRestart {
    # Has files and folders deleted at the next start of the machine. Windows deletes these files and
    # empty folders before anything opens them, as MoveFileEx arranges it: pairs of a name and nothing
    # (learn.microsoft.com/windows/win32/api/winbase/nf-winbase-movefileexw).
    param([string[]]$Path)
    $pairs = @(Read-PendingRename)
    foreach ($one in $Path) { $pairs += @("\??\$one", '') }
    Write-PendingRename -Pairs $pairs
}

function Read-PendingRename {
    # What Windows does with files at the next start of the machine, text by text: a name, then where it goes to, or nothing
    # for a file that is deleted. Updates and installers wait there, too. Nothing where nothing is to be done.
    $list = Read-Registry -Path 'SYSTEM\CurrentControlSet\Control\Session Manager' -Name 'PendingFileRenameOperations'
    foreach ($text in $list) { $text }
}

function Write-PendingRename {
    # Keeps these pairs for the next start of the machine. Without any there is no value: Windows deletes it then, too.
    param([string[]]$Pairs)
    $list = $null
    if ($Pairs.Count -gt 0) { $list = $Pairs }
    Write-Registry -Path 'SYSTEM\CurrentControlSet\Control\Session Manager' -Name 'PendingFileRenameOperations' -Value $list -Kind 'MultiString'
}

function Clear-RemovalAtRestart {
    # Takes back what an undo left to the next start of the machine: a new run has made the same paths again. A program that was
    # set aside is on the list of old files instead. What others wait for stays as it is.
    $folder = (Get-StatePath).TrimEnd('\')
    $pairs = @(Read-PendingRename)
    $kept = @()
    for ($index = 0; $index -lt $pairs.Count; $index += 2) {
        $pair = @($pairs[$index..($index + 1)] | Where-Object { $null -ne $_ })
        $path = [regex]::Match($pair[0], '^\\\?\?\\(.+)$').Groups[1].Value
        $deletes = $pair.Count -eq 2 -and $pair[1] -eq ''
        $inside = $path -eq $folder -or $path.StartsWith("$folder\", [StringComparison]::OrdinalIgnoreCase)
        $aside = $path -match '\.winboot-old(-[0-9a-f]{32})?$'
        if ($deletes -and $aside -and -not $inside) { Add-OldFile -Line $path }
        if (-not $deletes -or -not ($inside -or $aside)) { $kept += $pair }
    }
    if ($kept.Count -ne $pairs.Count) { Write-PendingRename -Pairs $kept }
}

function Write-Journal {
    # Adds a line to the journal. While the file is held or the disk is full, lines wait in Waiting for the next one.
    param([string]$Line, [object]$Waiting = [Collections.Generic.List[string]]::new())
    $Waiting.Add(('{{"at":"{0}","event":{1}}}' -f [DateTime]::UtcNow.ToString('o', [Globalization.CultureInfo]::InvariantCulture), $Line))
    # Once it could not be written, no line waits for it again.
    Save-Journal -Waiting $Waiting -Tries $(if ($Waiting.Count -eq 1) { 4 } else { 1 })
}

function Save-Journal {
    # Writes the lines that wait for the journal. It never ends a run.
    param([object]$Waiting, [int]$Tries)
    if ($Waiting.Count -eq 0 -or -not [IO.Directory]::Exists((Get-StatePath))) { return }
    try {
        # The user that made the folder could lead these lines into another file.
        if (Get-FolderDoubt -Path (Get-StatePath).TrimEnd('\') -Adding) { return }
        $path = Get-StatePath -Name 'journal.jsonl'
        if ((Test-Link -Path $path) -or (Test-HardLink -Path $path)) { return }
        # A program that tails it may let others write and not rename: then it grows until that program lets go.
        try { Limit-Journal } catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] { $null = $_ }
        $text = ($Waiting -join "`n") + "`n"
        Invoke-WithRetry -File $path -Tries $Tries -Work { [IO.File]::AppendAllText($path, $text) }
        $Waiting.Clear()
    }
    catch [IO.IOException], [UnauthorizedAccessException], [InvalidOperationException] {
        if ($Waiting.Count -gt 500) { $Waiting.RemoveAt(0) }
    }
}

function Limit-Journal {
    # A journal that is full gives its name to the next.
    $path = Get-StatePath -Name 'journal.jsonl'
    if (-not [IO.File]::Exists($path) -or [IO.FileInfo]::new($path).Length -le 1MB) { return }
    $older = Get-StatePath -Name 'journal.1.jsonl'
    Remove-File -Path $older -Tries 1
    Invoke-WithRetry -File $path -Tries 1 -Work { [IO.File]::Move($path, $older) }
}

function Read-StateJson {
    # A JSON file of the state folder as an object; nothing when it is absent or was cut off in mid-write.
    param([string]$Name)
    $text = Read-FileText -Path (Get-StatePath -Name $Name)
    if (-not $text) { return }
    try { ConvertFrom-Json -InputObject $text }
    catch [ArgumentException] { return }
}

function ConvertTo-TimeText {
    # A time of a JSON file as the text in it, of which PowerShell 7 makes a date.
    param([object]$Time, [string]$Format = "yyyy-MM-dd'T'HH:mm:ss'Z'")
    if ($null -eq $Time -or $Time.GetType().FullName -ne 'System.DateTime') { return "$Time" }
    $Time.ToUniversalTime().ToString($Format, [Globalization.CultureInfo]::InvariantCulture)
}

function Write-StateJson {
    # Keeps a value as a JSON file of the state folder.
    param([string]$Name, [object]$Value, [int]$Tries = 9)
    Write-FileText -Path (Get-StatePath -Name $Name) -Text (ConvertTo-Json -InputObject $Value -Depth 8 -Compress) -Tries $Tries
}

function Get-Fence {
    # The number of the last run that changed this machine.
    $stored = Read-StateJson -Name 'fence.json'
    $fence = 0
    # Another version, or a hand, may have written a file of another shape.
    [void][int]::TryParse("$(Read-Member -Object $stored -Names 'fence')", [ref]$fence)
    $fence
}

function Test-Fence {
    # Whether this run is still the last one.
    (Get-Fence) -eq $script:Run.Fence
}

function Get-HolderText {
    # The run that holds this machine, in words.
    $stored = Read-StateJson -Name 'fence.json'
    if (-not $stored) { return 'another process holds the winboot mutex' }
    "$(Read-Member -Object $stored -Names 'holder'), run $(Read-Member -Object $stored -Names 'run'), since $(ConvertTo-TimeText -Time (Read-Member -Object $stored -Names 'since'))"
}

function Save-Fence {
    # Notes this run as the last one, under the mutex.
    param([string]$Holder)
    $script:Run.Fence = (Get-Fence) + 1
    $now = [DateTime]::UtcNow.ToString('s') + 'Z'
    Write-StateJson -Name 'fence.json' -Value @{ fence = $script:Run.Fence; run = $script:Run.Id; holder = $Holder; since = $now }
}

function Enter-Run {
    # Takes the mutex for this run; returns it, or nothing where another run keeps it.
    Initialize-StateFolder
    $facts = $script:Run.Facts
    # The older run sees that at its next step and lets go.
    if ($facts.TakeOver) { Save-Fence -Holder $facts.Holder }
    $lock = Wait-Mutex -Seconds $(if ($facts.TakeOver) { 300 } else { 20 })
    if (-not $lock) { return }
    try {
        Save-Fence -Holder $facts.Holder
        Clear-RemovalAtRestart
    }
    catch {
        Exit-Run -Lock $lock
        throw
    }
    $lock
}

function Wait-Mutex {
    # The mutex of winboot, taken; nothing where another process keeps it for so long.
    param([int]$Seconds)
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    do {
        try {
            $lock = Open-RunMutex
            try { if ($lock.WaitOne(1000)) { return $lock } }
            catch [Threading.AbandonedMutexException] { return $lock }
            $lock.Dispose()
        }
        # Another account's, while it is held.
        catch [UnauthorizedAccessException] { Start-Sleep -Milliseconds 1000 }
    } while ([DateTime]::UtcNow -lt $until)
}

function Wait-MutexIfPossible {
    # The mutex, or nothing where it is held or cannot even be opened: what puts a machine right continues without.
    param([int]$Seconds)
    try { Wait-Mutex -Seconds $Seconds }
    catch {
        $problem = ConvertTo-Problem -Caught $_ -OtherwiseId 'RunFailed'
        [void](New-EventLine -Fields @{ event = 'no-mutex'; problem = $problem })
    }
}

function Exit-Run {
    # Gives the mutex back.
    param([Threading.Mutex]$Lock)
    $Lock.ReleaseMutex()
    $Lock.Dispose()
}

function Save-RebootMark {
    # Notes that the pending restart is winboot's.
    param([string[]]$Steps)
    Write-StateJson -Name 'reboot.json' -Value @{ boot_id = (Get-MachineIdentity).BootId; steps = $Steps }
}

function Get-DetachedNote {
    # The names in the state folder of the notes of detached runs, of one step or of all. Returns nothing if none exist.
    param([string]$Step = '')
    $folder = Get-StatePath -Name 'detached'
    if (-not [IO.Directory]::Exists($folder)) { return }
    foreach ($path in [IO.Directory]::GetFiles($folder, "$Step*.json")) { 'detached\' + [IO.Path]::GetFileName($path) }
}

function Read-DetachedNote {
    # One such note; nothing where it is torn, or a hand wrote something else there.
    param([string]$Name)
    $status = Read-StateJson -Name $Name
    foreach ($member in @('id', 'step', 'state', 'boot_id', 'deadline', 'purpose', 'guard', 'told', 'message', 'hint', 'ended', 'fence')) {
        if ($status -isnot [Management.Automation.PSCustomObject] -or $null -eq $status.PSObject.Properties[$member]) { return }
    }
    $status
}

function Read-DetachedRun {
    # The notes of detached runs, of one step or of all. Returns nothing if none exist.
    param([string]$Step = '')
    foreach ($name in Get-DetachedNote -Step $Step) { Read-DetachedNote -Name $name }
}

function Get-RunningDetached {
    # The detached run that is under way in this boot; nothing without one.
    foreach ($status in Read-DetachedRun) {
        $inTime = [DateTime]::UtcNow.Ticks -lt $status.deadline
        if ($status.state -eq 'running' -and $inTime -and $status.boot_id -eq (Get-MachineIdentity).BootId) { return $status }
    }
}
