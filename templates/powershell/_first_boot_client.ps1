# winboot: the part of first boot that the endpoint sends. It runs in the script that asked for it, with its functions.

function Invoke-Script {
    # Runs one script in a PowerShell of its own, which reads it from standard input, and reports its events.
    param([object]$Session, [string]$Job, [byte[]]$Payload)
    $said = @{ 'Winboot-Session' = $Session.session; 'Winboot-Job' = $Job; 'Winboot-Runner' = $script:Runner }
    # It begins: repeated until the endpoint receives it; else the endpoint counts the script as lost.
    if ((Send-Output -Said $said -Heard 0 -Text '') -lt 0) { return }
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
    # Sends text that a script wrote, in calls that the endpoint takes, however long a line is. Returns how many bytes the
    # endpoint has in all, -1 when it does not wait for them any more. The exit code goes with the last call.
    param([hashtable]$Said, [long]$Heard, [string]$Text)
    $bytes = [Text.Encoding]::ASCII.GetBytes($Text)
    $early = @{}
    foreach ($name in $Said.Keys) { if ($name -ne 'Winboot-Exit') { $early[$name] = $Said[$name] } }
    for ($start = 0; $bytes.Length - $start -gt 1000000; $start += 1000000) {
        $piece = [byte[]]::new(1000000)
        [Array]::Copy($bytes, $start, $piece, 0, $piece.Length)
        $Heard = Send-Piece -Said $early -Heard $Heard -Piece $piece
        if ($Heard -lt 0) { return -1 }
    }
    $piece = [byte[]]::new($bytes.Length - $start)
    [Array]::Copy($bytes, $start, $piece, 0, $piece.Length)
    Send-Piece -Said $Said -Heard $Heard -Piece $piece
}

function Send-Piece {
    # Sends bytes in one call, tried for two minutes. Returns as Send-Output does.
    param([hashtable]$Said, [long]$Heard, [byte[]]$Piece)
    $watch = [Diagnostics.Stopwatch]::StartNew()
    while ($true) {
        try {
            $answer = Send-Call -Path '/v1/said' -Headers ($Said + @{ 'Winboot-Start' = $Heard }) -Body $Piece
            if ($answer.Status -lt 500 -and $answer.Status -ne 200) { return -1 }
            # What the endpoint has no room for yet is sent again.
            $all = $Heard + $Piece.Length
            if ($answer.Status -eq 200 -and [long][Text.Encoding]::ASCII.GetString($answer.Body) -ge $all) { return $all }
        }
        catch [Exception] { Write-Word -Text "the endpoint does not answer: $($_.Exception.GetBaseException().Message)" }
        if ($watch.Elapsed.TotalSeconds -gt 120) { return -1 }
        Start-Sleep -Seconds 2
    }
}

function Read-MetadataText {
    # What the machine's own metadata service says; nothing where none answers. It takes no requests of a proxy.
    param([string]$Path, [string]$Method = 'GET', [hashtable]$Header = @{})
    $request = [Net.WebRequest]::Create("http://169.254.169.254/$Path")
    $request.Method = $Method
    $request.Timeout = 5000
    $request.Proxy = $null
    foreach ($name in $Header.Keys) { $request.Headers.Add($name, $Header[$name]) }
    try {
        $response = $request.GetResponse()
        try { [IO.StreamReader]::new($response.GetResponseStream()).ReadToEnd() } finally { $response.Close() }
    }
    catch [Net.WebException] { $script:Doubt = "the metadata service does not answer: $($_.Exception.Status)" }
}

function Get-Proof {
    # The cloud's signed word about this instance: EC2's identity document, asked for as IMDSv2 wants it.
    param([string[]]$Kinds)
    if ($Kinds -notcontains 'aws') { return '' }
    $token = Read-MetadataText -Path 'latest/api/token' -Method 'PUT' -Header @{ 'X-aws-ec2-metadata-token-ttl-seconds' = '60' }
    if (-not $token) { return '' }
    $document = Read-MetadataText -Path 'latest/dynamic/instance-identity/rsa2048' -Header @{ 'X-aws-ec2-metadata-token' = $token }
    "$document"
}

function Enter-Endpoint {
    # Reports which machine this is: its session, the result of one that is a node already, or nothing while it has to wait.
    param([object]$Told)
    $script:Doubt = ''
    $proof = ''
    if (-not $script:Machine.Voucher) { $proof = Get-Proof -Kinds @($Told.proofs) }
    $addresses = @(Get-NetIPAddress -AddressFamily IPv4 | ForEach-Object { $_.IPAddress })
    $hello = @{
        nonce = $Told.nonce; uuid = (Get-CimInstance -ClassName 'Win32_ComputerSystemProduct').UUID
        computer_name = $env:COMPUTERNAME; addresses = $addresses
        host = $script:Machine.Host; voucher = $script:Machine.Voucher; document = $proof
    }
    $answer = Send-Call -Path '/v1/hello' -Body ([Text.Encoding]::UTF8.GetBytes((ConvertTo-Json -InputObject $hello -Compress)))
    $session = ConvertFrom-Json -InputObject ([Text.Encoding]::UTF8.GetString($answer.Body))
    if ($answer.Status -eq 200) { return $session }
    $doubt = ''
    if ($script:Doubt) { $doubt = "; $script:Doubt" }
    Write-Word -Text "not let in ($($session.id)): $($session.why)$doubt"
}

function Invoke-FirstBoot {
    # Says hello, and works: Ready; again: say hello soon; wait: later.
    param([object]$Told)
    $session = Enter-Endpoint -Told $Told
    if ($null -eq $session) { return 'wait' }
    # The answer that said so was lost.
    if ($null -ne $session.result) { return Complete-FirstBoot -Result $session.result }
    # The endpoint let it in: from here on the client repeats a lost call soon.
    try { Invoke-Work -Session $session }
    catch [Exception] {
        Write-Word -Text "the endpoint does not answer: $($_.Exception.GetBaseException().Message)"
        'again'
    }
}

function Invoke-Work {
    # Asks for work until the endpoint has no more: Ready, or again.
    param([object]$Session)
    while ($true) {
        $answer = Send-Call -Path '/v1/work' -Headers @{ 'Winboot-Session' = $Session.session; 'Winboot-Runner' = $script:Runner }
        if ($answer.Headers.ContainsKey('Winboot-Result')) {
            return Complete-FirstBoot -Result (ConvertFrom-Json -InputObject ([Text.Encoding]::UTF8.GetString($answer.Body)))
        }
        if ($answer.Headers.ContainsKey('Winboot-Word')) { Write-Word -Text $answer.Headers['Winboot-Word'] }
        if ($answer.Status -eq 204) { continue }
        if (-not $answer.Headers.ContainsKey('Winboot-Job')) { return 'again' }
        Invoke-Script -Session $Session -Job $answer.Headers['Winboot-Job'] -Payload $answer.Body
    }
}

function Complete-FirstBoot {
    # Reports how it ended, and writes the file that another program waits for, as Cluster API's bootstrap-success.complete.
    param([object]$Result)
    Write-Word -Text $Result.word
    if ($Result.state -ne 'Ready') { return 'again' }
    if ($Result.ready_file) {
        [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($Result.ready_file))
        [IO.File]::WriteAllText($Result.ready_file, 'success')
    }
    'Ready'
}
