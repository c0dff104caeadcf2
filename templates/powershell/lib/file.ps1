function Get-TextHash {
    param([string]$Text)
    $bytes = [Security.Cryptography.SHA256]::Create().ComputeHash([Text.Encoding]::UTF8.GetBytes($Text))
    [BitConverter]::ToString($bytes).Replace('-', '').ToLowerInvariant()
}

function Get-PathHash {
    param([string]$Path)
    if ([IO.File]::Exists($Path)) { (Get-FileHash -LiteralPath $Path -Algorithm SHA256).Hash.ToLowerInvariant() }
}

function Read-FileText {
    # The text of a file; $null when there is none: without output the caller's [regex]::Match would get no text at all.
    # ReadAllText would drop a byte order mark, which JSON and TOML parsers stumble over.
    param([string]$Path)
    if (-not [IO.File]::Exists($Path)) { return $null }
    [Text.Encoding]::UTF8.GetString([IO.File]::ReadAllBytes($Path))
}

function Get-FileDifference {
    # Text is null while it cannot be known. -ceq would pass over characters that have no width.
    param([string]$Path, $Text, [switch]$Disrupts)
    $is = Read-FileText $Path
    if ($null -ne $is -and $null -ne $Text -and $is.Equals($Text)) { return }
    $want = if ($null -eq $Text) { '(known after join)' } else { ConvertTo-TextSummary $Text }
    New-Difference -What "file ${Path}: content" -Is (ConvertTo-TextSummary $is) -Want $want -Disrupts:$Disrupts
}

function ConvertTo-TextSummary {
    param($Text)
    if ($null -ne $Text) { '{0} lines, sha256 {1}' -f $Text.Split("`n").Count, (Get-TextHash $Text).Substring(0, 12) }
}

function Set-FileText {
    param([string]$Path, [string]$Text)
    Save-FormerFile $Path
    Write-FileText $Path $Text
}

function Write-FileText {
    # Written beside and renamed: a power cut leaves the old file or the new one.
    param([string]$Path, [string]$Text, [switch]$Private)
    [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($Path))
    $beside = "$Path.winboot-new"
    [IO.File]::WriteAllText($beside, '')
    if ($Private) { Set-PrivateAccess $beside }
    [IO.File]::WriteAllText($beside, $Text)
    # Replace is one step, but keeps the access rules of the old file.
    if ($Private -or -not [IO.File]::Exists($Path)) { Move-FileOver -From $beside -To $Path }
    else { [IO.File]::Replace($beside, $Path, [NullString]::Value) }
}

function Move-FileOver {
    # A program that runs cannot be overwritten, but renamed.
    param([string]$From, [string]$To)
    $old = "$To.winboot-old"
    if ([IO.File]::Exists($To)) {
        Remove-OldFile $old
        [IO.File]::Move($To, $old)
    }
    [IO.File]::Move($From, $To)
    Remove-OldFile $old
}

function Remove-OldFile {
    # What still runs waits for Clear-OldFile.
    param([string]$Path)
    if (-not [IO.File]::Exists($Path)) { return }
    try { [IO.File]::Delete($Path) }
    catch [UnauthorizedAccessException] {
        $waiting = "$Path-$([Guid]::NewGuid().ToString('N'))"
        [IO.File]::AppendAllText((Get-StatePath 'old-files.txt'), "$waiting`n")
        [IO.File]::Move($Path, $waiting)
    }
}

function Clear-OldFile {
    $list = Get-StatePath 'old-files.txt'
    if (-not [IO.File]::Exists($list)) { return }
    $left = @(foreach ($path in [IO.File]::ReadAllLines($list)) {
            if (-not [IO.File]::Exists($path)) { continue }
            try { [IO.File]::Delete($path) } catch [UnauthorizedAccessException] { $path }
        })
    if (-not $left) { [IO.File]::Delete($list) } else { [IO.File]::WriteAllLines($list, [string[]]$left) }
}

function Save-FormerFile {
    param([string]$Path)
    $former = @{ path = $Path; bytes = $null; kept = $null }
    if ([IO.File]::Exists($Path)) {
        if ([IO.FileInfo]::new($Path).Length -le 64KB) { $former.bytes = [Convert]::ToBase64String([IO.File]::ReadAllBytes($Path)) }
        else { $former.kept = Get-StatePath "former\files\$(Get-TextHash $Path.ToLowerInvariant())" }
    }
    $before = @(Get-FormerLine).Count
    Save-FormerValue 'File' $Path $former
    # Only by the first note: a later call would copy our own file.
    if ($former.kept -and @(Get-FormerLine).Count -gt $before) {
        [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($former.kept))
        [IO.File]::Copy($Path, $former.kept, $true)
    }
}

function Set-PrivateAccess {
    param([string]$Path)
    $folder = [IO.Directory]::Exists($Path)
    $security = if ($folder) { [Security.AccessControl.DirectorySecurity]::new() } else { [Security.AccessControl.FileSecurity]::new() }
    $inherit = if ($folder) { 'ContainerInherit, ObjectInherit' } else { 'None' }
    $security.SetAccessRuleProtection($true, $false)
    foreach ($sid in @('S-1-5-18', 'S-1-5-32-544')) {
        $account = [Security.Principal.SecurityIdentifier]::new($sid)
        $security.AddAccessRule([Security.AccessControl.FileSystemAccessRule]::new($account, 'FullControl', $inherit, 'None', 'Allow'))
    }
    $security.SetOwner($account)
    Set-Acl -LiteralPath $Path -AclObject $security
}

function Restore-File {
    param([object]$Former)
    if ($null -ne $Former.bytes) {
        $beside = $Former.path + '.winboot-new'
        [IO.File]::WriteAllBytes($beside, [Convert]::FromBase64String($Former.bytes))
        Move-FileOver -From $beside -To $Former.path
    }
    elseif ($null -ne $Former.kept) { if ([IO.File]::Exists($Former.kept)) { Move-FileOver -From $Former.kept -To $Former.path } }
    else { Remove-OldFile $Former.path }
}

function Set-PrivateFolder {
    param([string]$Path)
    [void][IO.Directory]::CreateDirectory($Path)
    if (Get-Stranger $Path) { Set-PrivateAccess $Path }
}

function Get-Stranger {
    # All but SYSTEM and Administrators.
    param([string]$Path)
    $rules = (Get-Acl -LiteralPath $Path).GetAccessRules($true, $true, [Security.Principal.SecurityIdentifier])
    $found = @($rules | ForEach-Object { $_.IdentityReference.Value } | Where-Object { @('S-1-5-18', 'S-1-5-32-544') -notcontains $_ })
    if ($found) { @($found | Sort-Object -Unique) -join ', ' }
}
