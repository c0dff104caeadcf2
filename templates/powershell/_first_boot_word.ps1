function Write-Word {
    # One line about its progress, where an administrator can see it without a login; the same line once.
    param([string]$Text)
    if ($Text -eq $script:Said) { return }
    $script:Said = $Text
    $now = [DateTime]::UtcNow.ToString('yyyy-MM-ddTHH:mm:ssZ')
    [IO.File]::WriteAllText("$script:Folder\result.json", (ConvertTo-Json -InputObject @{ time = $now; what = $Text } -Compress))
    try {
        if (-not [Diagnostics.EventLog]::SourceExists('winboot')) { New-EventLog -LogName 'Application' -Source 'winboot' }
        Write-EventLog -LogName 'Application' -Source 'winboot' -EventId 1 -Message $Text
    }
    catch [Exception] { $script:Doubt = "$_" }
    if ([IO.Ports.SerialPort]::GetPortNames() -notcontains 'COM1') { return }
    $port = [IO.Ports.SerialPort]::new('COM1', 115200)
    try { $port.Open(); $port.WriteLine("winboot: $now $Text") }
    catch [IO.IOException], [UnauthorizedAccessException] { $script:Doubt = "$_" }
    finally { $port.Dispose() }
}
