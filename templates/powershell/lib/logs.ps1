# SUMMARY Rotates log files by a scheduled task, and reads their sizes and last lines.

function Invoke-LogRotation {
    # All that the task carries. Endless: logs whose writer never begins a new one. What another program holds open waits
    # for the next hour.
    param([string[]]$Logs, [string[]]$Endless, [long]$MaxBytes, [int]$MaxFiles)
    foreach ($path in $Logs) {
        $folder = [IO.Path]::GetDirectoryName($path)
        if (-not [IO.Directory]::Exists($folder)) { continue }
        # SYSTEM would cut off, or delete, what another user's link leads to.
        $doubt = @(Get-FolderDoubt -Path $folder -Adding; Get-PathDoubt -Path $path) | Where-Object { $_ } | Select-Object -First 1
        if ($doubt) { Write-Warning -Message $doubt; continue }
        $stem = [IO.Path]::GetFileNameWithoutExtension($path)
        if ($Endless -contains $path -and [IO.File]::Exists($path) -and [IO.FileInfo]::new($path).Length -gt $MaxBytes) {
            try {
                # The writer keeps the file open: its text is copied and cut off. What it writes in between is lost, as with
                # copytruncate of logrotate ("some logging data might be lost", logrotate(8)).
                $file = [IO.File]::Open($path, 'Open', 'ReadWrite', 'ReadWrite')
                try {
                    # A zero byte: cut off before, and its writer does not append.
                    if ($file.ReadByte() -ne 0) {
                        $file.Position = 0
                        $stamp = [DateTime]::UtcNow.ToString('yyyyMMddTHHmmss', [Globalization.CultureInfo]::InvariantCulture)
                        $kept = [IO.File]::Create([IO.Path]::Combine($folder, "$stem-$stamp.log"))
                        try { $file.CopyTo($kept) } finally { $kept.Dispose() }
                        $file.SetLength(0)
                    }
                }
                finally { $file.Dispose() }
            }
            catch [IO.IOException], [UnauthorizedAccessException] { Write-Warning -Message $_.Exception.Message }
        }
        # A program that begins a new log names the old one after its time: stem-20260102T030405.log, or with the time behind .log.
        $dated = "^$([regex]::Escape($stem))($([regex]::Escape([IO.Path]::GetExtension($path))))?[-.]\d{8}"
        $old = @([IO.Directory]::GetFiles($folder, "$stem*") | Where-Object { $_ -ne $path -and [IO.Path]::GetFileName($_) -match $dated } |
                Sort-Object -Property { [IO.File]::GetLastWriteTimeUtc($_) } -Descending | Select-Object -Skip $MaxFiles)
        foreach ($one in $old) {
            try { [IO.File]::Delete($one) }
            catch [IO.IOException], [UnauthorizedAccessException] { Write-Warning -Message $_.Exception.Message }
        }
    }
}

function Get-LogScript {
    # The text of the script that the log task runs: Functions, which are Invoke-LogRotation and what it uses, and one call of it.
    param([string[]]$Functions, [string[]]$Logs, [string[]]$Endless, [long]$MaxBytes, [int]$MaxFiles)
    $call = "Invoke-LogRotation -Logs $(ConvertTo-ListText -Texts $Logs) -Endless $(ConvertTo-ListText -Texts $Endless) -MaxBytes $MaxBytes -MaxFiles $MaxFiles"
    "$(Get-FunctionText -Names $Functions)$call`n"
}

function ConvertTo-ListText {
    # Texts as a literal of PowerShell: an apostrophe is doubled.
    param([string[]]$Texts)
    "@($(@($Texts | ForEach-Object { "'$("$_".Replace("'", "''"))'" }) -join ', '))"
}

function New-LogTask {
    # The hourly task that runs this script.
    param([string]$Text)
    $trigger = New-ScheduledTaskTrigger -Once -At ([DateTime]::new(2020, 1, 1)) -RepetitionInterval ([TimeSpan]::FromHours(1))
    New-SystemTask -Path (Get-StatePath -Name 'logs.ps1') -Text $Text -Seconds 1800 -Trigger $trigger `
        -Description 'winboot: keeps the logs of the services of this Kubernetes node from filling the disk.'
}

function Get-LogTaskDifference {
    # How script and task of the log rotation differ from what is wanted.
    param([string]$Text)
    Get-FileDifference -Path (Get-StatePath -Name 'logs.ps1') -Text (ConvertTo-ScriptFile -Text $Text)
    Get-TaskDifference -Name 'logs' -Task (New-LogTask -Text $Text)
}

function Set-LogTask {
    # Writes the script and registers the task.
    param([string]$Text)
    Save-FormerValue -Kind 'LogTask' -Key 'logs' -Value @{ name = 'logs' }
    Write-FileText -Path (Get-StatePath -Name 'logs.ps1') -Text (ConvertTo-ScriptFile -Text $Text) -Private
    Set-Task -Name 'logs' -Task (New-LogTask -Text $Text)
}

function Restore-LogTask {
    # Removes both.
    param([object]$Former)
    Remove-Task -Name $Former.name
    Remove-File -Path (Get-StatePath -Name 'logs.ps1')
}

function Get-LogSize {
    # How many bytes a program's log has now. 0 where it is missing, unreadable, or perhaps another's: it is not read then.
    param([string]$Path)
    if (-not [IO.File]::Exists($Path) -or (Get-PathDoubt -Path $Path)) { return [long]0 }
    try { $file = Open-SharedFile -Path $Path } catch [IO.IOException], [UnauthorizedAccessException] { return [long]0 }
    try { $file.Length } finally { $file.Dispose() }
}

function Read-LogEnd {
    # At most the last Most bytes of a program's log behind the byte From, as text; '' where Get-LogSize finds none.
    param([string]$Path, [long]$From, [long]$Most)
    $size = Get-LogSize -Path $Path
    # A new file was begun meanwhile.
    if ($size -lt $From) { $From = 0 }
    if ($size -le $From) { return '' }
    $content = [IO.MemoryStream]::new()
    try { $file = Open-SharedFile -Path $Path } catch [IO.IOException], [UnauthorizedAccessException] { return '' }
    try {
        $file.Position = [Math]::Max($From, $size - $Most)
        $file.CopyTo($content)
    }
    finally { $file.Dispose() }
    [Text.Encoding]::UTF8.GetString($content.ToArray())
}

function Get-LastWord {
    # What a program wrote last, as the end of a message. Of its log's lines behind the byte From it is the last error as klog (E or F
    # and the date) or Calico (projectcalico/cni-plugin#1001 has such a log) marks it, else the last line. A writer of that log decides
    # nothing by it. '' where the program wrote nothing.
    param([string]$Name, [string]$Path, [long]$From)
    $lines = @((Read-LogEnd -Path $Path -From $From -Most 16384) -split "`n" | ForEach-Object { ($_ -replace '[^ -~]', ' ').Trim() } | Where-Object { $_ -ne '' })
    $errors = @($lines | Where-Object { $_ -cmatch '^[EF]\d{4} |\[(WARNING|ERROR|FATAL)\]' })
    $said = @(if ($errors.Count -gt 0) { $errors } else { $lines })
    if ($said.Count -eq 0) { return '' }
    $line = $said[-1]
    "; $Name said last: $($line.Substring(0, [Math]::Min(400, $line.Length)))"
}
