# SUMMARY Runs, starts and stops programs with bounded time and correct quoting.

function Join-Argument {
    # One command line of several arguments, quoted so that a program reads the same ones again. CommandLineToArgvW:
    # backslashes count only before a quotation mark, and are doubled there.
    param([string[]]$Arguments = @())
    $parts = foreach ($argument in $Arguments) {
        # An empty one is written as "", $null too: left out, it would give the option before it the next word as its value.
        if ($argument -and $argument -notmatch '[\s"]') { $argument; continue }
        '"' + ($argument -replace '(\\*)"', '$1$1\"' -replace '(\\+)$', '$1$1') + '"'
    }
    $parts -join ' '
}

function Invoke-Program {
    # Runs a program to its end: exit code, output and error output. It has Seconds, and so has what it started, while that
    # keeps its output open; then all of it is ended. Waited for in slices: a stop of this script has no effect within a
    # call into .NET. Reads: the files that it takes its settings from.
    param([string]$Path, [string[]]$Arguments = @(), [int]$Seconds = 60, [string[]]$Reads = @())
    $watch = [Diagnostics.Stopwatch]::StartNew()
    $process = Start-Program -Path $Path -Arguments $Arguments -Reads $Reads -Redirected
    $over = $false
    try {
        # Both at once: a program that fills one while we read the other would hang.
        $output = $process.StandardOutput.ReadToEndAsync()
        $errorOutput = $process.StandardError.ReadToEndAsync()
        $process.StandardInput.Close()
        while (-not $process.WaitForExit(500)) {
            if ($watch.Elapsed.TotalSeconds -gt $Seconds) {
                Stop-Step -Id 'ProgramHangs' -Message "$Path did not end within $Seconds seconds"
            }
        }
        $code = $process.ExitCode
        foreach ($reading in @($output, $errorOutput)) {
            while (-not $reading.Wait(500)) {
                if ($watch.Elapsed.TotalSeconds -gt $Seconds) {
                    Stop-Step -Id 'ProgramHangs' -Message "$Path ended, but what it started kept its output open for $Seconds seconds"
                }
            }
        }
        $over = $true
        [pscustomobject]@{ ExitCode = $code; Output = $output.Result; ErrorOutput = $errorOutput.Result }
    }
    finally {
        # Also when this script is stopped: what it started must not outlive it.
        if (-not $over) { Stop-StartedProcess -Process $process }
        $process.Dispose()
    }
}

function Start-Program {
    # Starts a program whose owner is known, and does not wait: the process. Redirected: what it writes is read by the caller.
    # One that another program holds open is tried again for 13 seconds, as in Invoke-WithRetry.
    param([string]$Path, [string[]]$Arguments = @(), [string[]]$Reads = @(), [switch]$Redirected)
    Assert-OwnProgram -Path $Path -Reads $Reads
    $start = [Diagnostics.ProcessStartInfo]@{
        FileName = $Path; Arguments = (Join-Argument -Arguments $Arguments); WorkingDirectory = [Environment]::SystemDirectory
        UseShellExecute = $false; CreateNoWindow = $true
    }
    if ($Redirected) {
        $start.RedirectStandardInput = $start.RedirectStandardOutput = $start.RedirectStandardError = $true
        $start.StandardOutputEncoding = $start.StandardErrorEncoding = Get-ProgramEncoding -Path $Path
    }
    $process = [Diagnostics.Process]::new()
    $process.StartInfo = $start
    $started = $false
    for ($try = 1; -not $started; $try++) {
        try {
            [void]$process.Start()
            $started = $true
        }
        catch [ComponentModel.Win32Exception] {
            # Its text names neither the program nor the process that holds it. 32, 33: another program has the file open; scanners do
            # so for a moment with each one that is new.
            $code = $_.Exception.GetBaseException().NativeErrorCode
            if (@(32, 33) -notcontains $code -or $try -ge 9) {
                $said = $_.Exception.GetBaseException().Message
                Stop-Step -Id 'ProgramNotStarted' -Message "$Path cannot be started: $said (Windows error $code)"
            }
            Start-Sleep -Milliseconds (50 * [Math]::Pow(2, $try - 1))
        }
    }
    $process
}

function Get-ProgramEncoding {
    # What a program writes: Windows' own the code page of its consoles, all others UTF-8.
    param([string]$Path)
    $page = "$(Read-Registry -Path 'SYSTEM\CurrentControlSet\Control\Nls\CodePage' -Name 'OEMCP')"
    if ($page -match '^\d+$' -and $Path -like "$([Environment]::SystemDirectory)\*") {
        return [Text.Encoding]::GetEncoding([int]$page)
    }
    [Text.UTF8Encoding]::new($false)
}

function Stop-StartedProcess {
    # Ends a process that we started, and what that started.
    param([Diagnostics.Process]$Process)
    $tree = @(Get-ProcessTree -Id $Process.Id)
    if (-not $Process.HasExited) { $Process.Kill() }
    Stop-ProcessTree -Tree $tree
}

function Read-Process {
    # All processes of this machine, with their parents and start times; nothing where WMI has no answer.
    $of = @{ ClassName = 'Win32_Process'; Property = @('Name', 'ProcessId', 'ParentProcessId', 'CreationDate') }
    Get-Fact -Fact 'Processes' -Ask { Get-CimInstance @of }
}

function Get-ProcessTree {
    # A process and all below it, as id and start time. The process itself is listed even when it has ended, so that its
    # children are found: this never returns nothing. A shim of containerd is left out: it holds a pod, and outlives
    # the process that started it.
    param([int]$Id)
    $all = @(Read-Process)
    $found = @($all | Where-Object { $_.ProcessId -eq $Id } | ForEach-Object { @{ Id = [int]$_.ProcessId; Started = $_.CreationDate } })
    if ($found.Count -eq 0) { $found = @(@{ Id = $Id; Started = [DateTime]::MinValue }) }
    for ($index = 0; $index -lt $found.Count; $index++) {
        $parent = $found[$index]
        # Windows gives ids again: a child is younger than its parent.
        $children = @($all | Where-Object {
                $_.ParentProcessId -eq $parent.Id -and $_.ProcessId -ne $parent.Id -and $_.CreationDate -ge $parent.Started -and
                $_.Name -notlike 'containerd-shim*'
            })
        foreach ($child in $children) { $found += @{ Id = [int]$child.ProcessId; Started = $child.CreationDate } }
    }
    $found
}

function Get-RunningProcess {
    # Those of a tree (see Get-ProcessTree) that still run. Nothing when all have ended.
    param([object[]]$Tree)
    foreach ($one in $Tree) {
        $now = Get-CimInstance -ClassName 'Win32_Process' -Filter "ProcessId=$($one.Id)" -Property 'ProcessId', 'CreationDate'
        if ($now -and $now.CreationDate -eq $one.Started) { $one }
    }
}

function Stop-ProcessTree {
    # Ends those of a tree that still run.
    param([object[]]$Tree)
    foreach ($one in @(Get-RunningProcess -Tree $Tree)) { Stop-Process -Id $one.Id -Force -ErrorAction SilentlyContinue }
}

function Assert-Program {
    # Runs a program and returns its output, or stops the step where it ends with another code than 0. The message has
    # 400 characters of what the program said at most: some print their whole help.
    param([string]$Path, [string[]]$Arguments = @(), [int]$Seconds = 60)
    $ended = Invoke-Program -Path $Path -Arguments $Arguments -Seconds $Seconds
    if ($ended.ExitCode -eq 0) { return $ended.Output }
    $said = "$($ended.ErrorOutput) $($ended.Output)".Trim()
    if ($said.Length -gt 400) { $said = $said.Substring(0, 400) }
    Stop-Step -Id 'ProgramFailed' -Message "$Path ended with code $($ended.ExitCode): $said"
}

function Get-SystemProgram {
    # The full path of one of Windows' own programs. Never by the search path of a session: another program of that name
    # could be found first.
    param([string]$Name)
    "$([Environment]::SystemDirectory)\$Name"
}
