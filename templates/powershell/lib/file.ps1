# Files and folders: UTF-8 without a byte order mark, access rules before the first byte.

function Get-TextHash {
    param([string]$Text)
    $algorithm = [Security.Cryptography.SHA256]::Create()
    try { $bytes = $algorithm.ComputeHash([Text.UTF8Encoding]::new($false).GetBytes($Text)) }
    finally { $algorithm.Dispose() }
    [BitConverter]::ToString($bytes).Replace('-', '').ToLowerInvariant()
}

function Get-PathHash {
    param([string]$Path)
    if ([IO.File]::Exists($Path)) { (Get-FileHash -LiteralPath $Path -Algorithm SHA256).Hash.ToLowerInvariant() }
}

function Read-FileText {
    # With its byte order mark: ReadAllText would drop what JSON and TOML parsers stumble over.
    param([string]$Path)
    if ([IO.File]::Exists($Path)) { [Text.UTF8Encoding]::new($false).GetString([IO.File]::ReadAllBytes($Path)) }
}

function Get-FileDifference {
    # Ordinal: -ceq passes over characters that have no width.
    param([string]$Path, [string]$Text, [switch]$Disrupts)
    $is = Read-FileText $Path
    if ($null -ne $is -and [string]::Equals($is, $Text, [StringComparison]::Ordinal)) { return }
    New-Difference -What "file ${Path}: content" -Is (ConvertTo-TextSummary $is) `
        -Want (ConvertTo-TextSummary $Text) -Disrupts:$Disrupts
}

function ConvertTo-TextSummary {
    param($Text)
    if ($null -eq $Text) { return $null }
    '{0} lines, sha256 {1}' -f ([string]$Text).Split("`n").Count, (Get-TextHash $Text).Substring(0, 12)
}

function Set-FileText {
    param([string]$Path, [string]$Text)
    Save-FormerFile $Path
    Write-FileText $Path $Text
}

function Write-FileText {
    # Written beside and renamed: a reader, or a power cut, sees the old file or the new one.
    param([string]$Path, [string]$Text, [switch]$Private)
    [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($Path))
    $beside = "$Path.winboot-new"
    [IO.File]::WriteAllText($beside, '')
    # The rules stand before the first byte of a secret does.
    if ($Private) { Set-Acl -LiteralPath $beside -AclObject (New-PrivateSecurity ([Security.AccessControl.FileSecurity]::new())) }
    [IO.File]::WriteAllText($beside, $Text)
    # Replace is one step for every reader, but it keeps the access rules of the old file.
    if ($Private -or -not [IO.File]::Exists($Path)) { Move-FileOver -From $beside -To $Path }
    else { [IO.File]::Replace($beside, $Path, [NullString]::Value) }
}

function Move-FileOver {
    param([string]$From, [string]$To)
    $old = "$To.winboot-old"
    if ([IO.File]::Exists($To)) {
        # A program that still runs cannot be overwritten or deleted, but it can be renamed.
        Remove-OldFile $old
        [IO.File]::Move($To, $old)
    }
    [IO.File]::Move($From, $To)
    Remove-OldFile $old
}

function Remove-OldFile {
    # A file that a process still runs from gets a name of its own and waits for Clear-OldFiles.
    param([string]$Path)
    if (-not [IO.File]::Exists($Path)) { return }
    try { [IO.File]::Delete($Path) }
    catch [UnauthorizedAccessException] {
        $waiting = "$Path-$([Guid]::NewGuid().ToString('N'))"
        [IO.File]::AppendAllText((Get-StatePath 'old-files.txt'), "$waiting`n")
        [IO.File]::Move($Path, $waiting)
    }
}

function Clear-OldFiles {
    # What nothing runs from any more goes; the rest waits for the next run, or the next boot.
    $list = Get-StatePath 'old-files.txt'
    if (-not [IO.File]::Exists($list)) { return }
    $left = @(foreach ($path in [IO.File]::ReadAllLines($list)) {
            if (-not [IO.File]::Exists($path)) { continue }
            try { [IO.File]::Delete($path) } catch [UnauthorizedAccessException] { $path }
        })
    if ($left.Count -eq 0) { [IO.File]::Delete($list) } else { [IO.File]::WriteAllLines($list, [string[]]$left) }
}

function Save-FormerFile {
    # A small file is noted by its bytes, a large one kept in the state folder.
    param([string]$Path)
    $former = @{ path = $Path; bytes = $null; kept = $null }
    if ([IO.File]::Exists($Path)) {
        if ([IO.FileInfo]::new($Path).Length -le 64KB) {
            $former.bytes = [Convert]::ToBase64String([IO.File]::ReadAllBytes($Path))
        }
        else { $former.kept = Get-StatePath ('former\files\' + (Get-TextHash $Path.ToLowerInvariant())) }
    }
    $before = @(Get-FormerLines).Count
    Save-FormerValue 'File' $Path $former
    # Copied only by the first note: a later call would copy our own file over the former one.
    if ($null -ne $former.kept -and @(Get-FormerLines).Count -gt $before) {
        [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($former.kept))
        [IO.File]::Copy($Path, $former.kept, $true)
    }
}

function Restore-File {
    param([object]$Former)
    if ($null -ne $Former.bytes) {
        $beside = $Former.path + '.winboot-new'
        [IO.File]::WriteAllBytes($beside, [Convert]::FromBase64String($Former.bytes))
        Move-FileOver -From $beside -To $Former.path
    }
    elseif ($null -ne $Former.kept) {
        if ([IO.File]::Exists($Former.kept)) { Move-FileOver -From $Former.kept -To $Former.path }
    }
    else { Remove-OldFile $Former.path }
}

function New-PrivateSecurity {
    param($Security)
    $Security.SetAccessRuleProtection($true, $false)
    $inherit = 'None'
    if ($Security -is [Security.AccessControl.DirectorySecurity]) { $inherit = 'ContainerInherit, ObjectInherit' }
    foreach ($sid in @('S-1-5-18', 'S-1-5-32-544')) {
        $Security.AddAccessRule([Security.AccessControl.FileSystemAccessRule]::new(
                [Security.Principal.SecurityIdentifier]::new($sid), 'FullControl', $inherit, 'None', 'Allow'))
    }
    $Security
}

function Set-PrivateFolder {
    param([string]$Path)
    [void][IO.Directory]::CreateDirectory($Path)
    if ($null -ne (Get-Strangers $Path)) {
        Set-Acl -LiteralPath $Path -AclObject (New-PrivateSecurity ([Security.AccessControl.DirectorySecurity]::new()))
    }
}

function Get-Strangers {
    param([string]$Path)
    $rules = (Get-Acl -LiteralPath $Path).GetAccessRules($true, $true, [Security.Principal.SecurityIdentifier])
    $known = @('S-1-5-18', 'S-1-5-32-544')
    $found = @($rules | ForEach-Object { $_.IdentityReference.Value } | Where-Object { $known -notcontains $_ } | Sort-Object -Unique)
    if ($found.Count -gt 0) { $found -join ', ' }
}
