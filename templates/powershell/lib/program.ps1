function Join-Argument {
    # CommandLineToArgvW: backslashes count only before a quotation mark, and are doubled there.
    param([string[]]$Arguments = @())
    $parts = foreach ($argument in $Arguments) {
        # An empty one is written as "", $null too: left out, it would give the option before it the next word as its value.
        if ($argument -and $argument -notmatch '[\s"]') { $argument; continue }
        '"' + ($argument -replace '(\\*)"', '$1$1\"' -replace '(\\+)$', '$1$1') + '"'
    }
    $parts -join ' '
}

function Invoke-Program {
    param([string]$Path, [string[]]$Arguments = @(), [int]$Seconds = 60)
    $start = [Diagnostics.ProcessStartInfo]@{
        FileName = $Path; Arguments = (Join-Argument $Arguments); WorkingDirectory = [Environment]::SystemDirectory
        RedirectStandardInput = $true; RedirectStandardOutput = $true; RedirectStandardError = $true
        UseShellExecute = $false; CreateNoWindow = $true
        # As kubectl and crictl write; texts of Windows' own programs are never read.
        StandardOutputEncoding = [Text.UTF8Encoding]::new($false)
    }
    $process = [Diagnostics.Process]::Start($start)
    try {
        # Both at once: a program that fills one while we read the other would hang.
        $output = $process.StandardOutput.ReadToEndAsync()
        $errorOutput = $process.StandardError.ReadToEndAsync()
        $process.StandardInput.Close()
        if (-not $process.WaitForExit($Seconds * 1000)) {
            $process.Kill()
            Stop-Step 'ProgramHangs' "$Path did not end within $Seconds seconds"
        }
        [pscustomobject]@{ ExitCode = $process.ExitCode; Output = $output.Result; ErrorOutput = $errorOutput.Result }
    }
    finally { $process.Dispose() }
}

function Assert-Program {
    param([string]$Path, [string[]]$Arguments = @(), [int]$Seconds = 60)
    $ended = Invoke-Program $Path $Arguments -Seconds $Seconds
    if ($ended.ExitCode -eq 0) { return $ended.Output }
    $said = "$($ended.ErrorOutput) $($ended.Output)".Trim()
    if ($said.Length -gt 400) { $said = $said.Substring(0, 400) }
    Stop-Step 'ProgramFailed' "$Path ended with code $($ended.ExitCode): $said"
}

function Get-SystemProgram {
    # Never by the search path of a session.
    param([string]$Name)
    "$([Environment]::SystemDirectory)\$Name"
}
