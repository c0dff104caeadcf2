# winboot: the part of first boot that the endpoint sends. It runs in the script that asked for it, with its functions.

function Invoke-Script {
    # Runs one script in a PowerShell of its own, which reads it from standard input, and tells what it says.
    param([object]$Session, [string]$Job, [byte[]]$Payload)
    $said = @{ 'Winboot-Session' = $Session.session; 'Winboot-Job' = $Job; 'Winboot-Runner' = $script:Runner }
    if ((Send-Call -Path '/v1/said' -Headers ($said + @{ 'Winboot-Start' = 0 })).Status -ne 200) { return }
    $start = [Diagnostics.ProcessStartInfo]@{
        FileName = "$([Environment]::SystemDirectory)\WindowsPowerShell\v1.0\powershell.exe"; Arguments = $Session.arguments
        UseShellExecute = $false; CreateNoWindow = $true; RedirectStandardInput = $true; RedirectStandardOutput = $true
    }
    $process = [Diagnostics.Process]::Start($start)
    try {
        $process.StandardInput.BaseStream.Write($Payload, 0, $Payload.Length)
        $process.StandardInput.Dispose()
        $heard = 0
        $waiting = ''
        $reading = $process.StandardOutput.ReadLineAsync()
        $watch = [Diagnostics.Stopwatch]::StartNew()
        while ($true) {
            $more = $reading.Wait(1000)
            if ($more -and $null -eq $reading.Result) { break }
            if ($more) { $waiting += $reading.Result + "`n"; $reading = $process.StandardOutput.ReadLineAsync() }
            if ($watch.Elapsed.TotalSeconds -lt 2 -and $waiting.Length -lt 100000) { continue }
            $heard = Send-Output -Said $said -Heard $heard -Text $waiting
            if ($heard -lt 0) { return }
            $waiting = ''
            $watch.Restart()
        }
        $process.WaitForExit()
        [void](Send-Output -Said ($said + @{ 'Winboot-Exit' = $process.ExitCode }) -Heard $heard -Text $waiting)
    }
    finally {
        if (-not $process.HasExited) { $process.Kill() }
        $process.Dispose()
    }
}

function Send-Output {
    # Tells text that a script wrote, tried for two minutes: how many bytes were heard in all, -1 when nobody listens any more.
    param([hashtable]$Said, [long]$Heard, [string]$Text)
    $bytes = [Text.Encoding]::ASCII.GetBytes($Text)
    $watch = [Diagnostics.Stopwatch]::StartNew()
    while ($true) {
        try {
            $answer = Send-Call -Path '/v1/said' -Headers ($Said + @{ 'Winboot-Start' = $Heard }) -Body $bytes
            if ($answer.Status -lt 500 -and $answer.Status -ne 200) { return -1 }
            # What the endpoint has no room for yet is sent again.
            $all = $Heard + $bytes.Length
            if ($answer.Status -eq 200 -and [long][Text.Encoding]::ASCII.GetString($answer.Body) -ge $all) { return $all }
        }
        catch [Exception] { Write-Word -Text "the endpoint does not answer: $($_.Exception.GetBaseException().Message)" }
        if ($watch.Elapsed.TotalSeconds -gt 120) { return -1 }
        Start-Sleep -Seconds 2
    }
}

function Invoke-FirstBoot {
    # Asks for work until there is none left: whether this machine is Ready. False: say hello again.
    param([object]$Session)
    while ($true) {
        $answer = Send-Call -Path '/v1/work' -Headers @{ 'Winboot-Session' = $Session.session; 'Winboot-Runner' = $script:Runner }
        if ($answer.Headers.ContainsKey('Winboot-Result')) {
            $result = ConvertFrom-Json -InputObject ([Text.Encoding]::UTF8.GetString($answer.Body))
            if ($result.state -eq 'Ready') { Write-Word -Text "is the Ready node $($Session.node)"; return $true }
            Write-Word -Text "is not the node $($Session.node): $($result.why)"
            return $false
        }
        if ($answer.Status -eq 204) { continue }
        if (-not $answer.Headers.ContainsKey('Winboot-Job')) { return $false }
        Write-Word -Text "becomes the node $($Session.node)"
        Invoke-Script -Session $Session -Job $answer.Headers['Winboot-Job'] -Payload $answer.Body
    }
}
