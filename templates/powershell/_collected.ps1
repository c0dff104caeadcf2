# Gives what a collecting task has written behind the byte From, in parts in Base64, for as long as more comes within two seconds.
param([string]$Id, [long]$From)
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
$path = [IO.Path]::Combine($env:ProgramData, "winboot\detached\collect-$Id.out")
ConvertTo-Json -Compress -InputObject @{ now = [DateTime]::UtcNow.ToString('o') }
$share = [IO.FileShare]'ReadWrite, Delete'
$file = [IO.FileStream]::new($path, [IO.FileMode]::Open, [IO.FileAccess]::Read, $share)
try {
    $file.Position = $From
    $buffer = [byte[]]::new(196608)
    $quiet = 0
    for ($parts = 0; $parts -lt 16 -and $quiet -lt 8;) {
        $count = $file.Read($buffer, 0, $buffer.Length)
        if ($count -gt 0) {
            ConvertTo-Json -Compress -InputObject @{ at = $From; part = [Convert]::ToBase64String($buffer, 0, $count) }
            $From += $count
            $parts++
            $quiet = 0
            continue
        }
        $quiet++
        Start-Sleep -Milliseconds 250
    }
}
finally { $file.Dispose() }
