# SUMMARY Reads and sets owner and access rules of files and folders.
# Only owner, group and access rules are read and written here, by .NET: Set-Acl writes every section of a descriptor,
# so it would remove audit entries that it has not read.

function Get-AccessText {
    # Owner, group and access rules of a file or folder, as SDDL.
    param([string]$Path)
    (Read-Access -Path $Path).GetSecurityDescriptorSddlForm('Owner, Group, Access')
}

function Read-Access {
    # The security object of a file or folder, without its audit entries.
    param([string]$Path)
    if ([IO.Directory]::Exists($Path)) { return [IO.Directory]::GetAccessControl($Path, 'Owner, Group, Access') }
    [IO.File]::GetAccessControl($Path, 'Owner, Group, Access')
}

function Set-AccessText {
    # Gives a file or folder this owner and these access rules, and nothing else.
    param([string]$Path, [string]$Sddl)
    if ([IO.Directory]::Exists($Path)) {
        $security = [Security.AccessControl.DirectorySecurity]::new()
        $security.SetSecurityDescriptorSddlForm($Sddl, 'Owner, Group, Access')
        [IO.Directory]::SetAccessControl($Path, $security)
        return
    }
    $security = [Security.AccessControl.FileSecurity]::new()
    $security.SetSecurityDescriptorSddlForm($Sddl, 'Owner, Group, Access')
    [IO.File]::SetAccessControl($Path, $security)
}

function Get-PrivateAccess {
    # The SDDL of what only SYSTEM and Administrators may write, and with -Readable everybody may read and run.
    param([switch]$Folder, [switch]$Readable)
    $inherit = if ($Folder) { 'OICI' } else { '' }
    $users = if ($Readable) { "(A;$inherit;0x1200a9;;;BU)" } else { '' }
    "O:BAG:SYD:P(A;$inherit;FA;;;SY)(A;$inherit;FA;;;BA)$users"
}

function Set-PrivateAccess {
    # Gives a file or folder these rules, and Administrators as the owner.
    param([string]$Path, [switch]$Readable)
    Set-AccessText -Path $Path -Sddl (Get-PrivateAccess -Folder:([IO.Directory]::Exists($Path)) -Readable:$Readable)
}

function Set-PrivateFolder {
    # Makes the folder, for SYSTEM and Administrators alone. It refuses one that an ordinary user made, or could open with the right
    # to change its rules: Windows asks for rights when something is opened, and what that user has open stays open
    # (devblogs.microsoft.com/oldnewthing/20200320-00/?p=103579).
    param([string]$Path)
    Assert-NoLink -Path $Path
    New-ClosedFolder -Path $Path
    $account = Get-UntrustedHolder -Path $Path
    if ($account) { throw "$Path belongs to $account, which is not an administrator: look at it, and delete it" }
    if (Get-UntrustedAccount -Path $Path) { Set-PrivateAccess -Path $Path }
}

function New-ClosedFolder {
    # Makes a folder with its owner and rules in one call, so that there is no moment with those of the folder above. One that
    # is there stays as it is: the caller looks at it afterwards.
    param([string]$Path, [switch]$Readable)
    $security = [Security.AccessControl.DirectorySecurity]::new()
    $security.SetSecurityDescriptorSddlForm((Get-PrivateAccess -Folder -Readable:$Readable), 'Owner, Group, Access')
    [void][IO.Directory]::CreateDirectory($Path, $security)
}

function Test-Trusted {
    # Whether an account may own or write what SYSTEM runs: SYSTEM, Administrators, Windows' own installer, the built-in
    # administrator, and the account that runs this, which is an administrator.
    param([string]$Sid)
    $installer = 'S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464'
    if (@('S-1-5-18', 'S-1-5-32-544', $installer) -contains $Sid -or $Sid -match '^S-1-5-21-[0-9-]+-500$') { return $true }
    $Sid -eq [Security.Principal.WindowsIdentity]::GetCurrent().User.Value
}

function Get-UntrustedAccount {
    # The accounts that have any right on a path besides SYSTEM and Administrators: SIDs, or null.
    param([string]$Path)
    $rules = (Read-Access -Path $Path).GetAccessRules($true, $true, [Security.Principal.SecurityIdentifier])
    $found = @($rules | ForEach-Object { $_.IdentityReference.Value } | Where-Object { @('S-1-5-18', 'S-1-5-32-544') -notcontains $_ })
    if ($found) { @($found | Sort-Object -Unique) -join ', ' } else { $null }
}

function Get-UntrustedOwner {
    # The SID of an owner that is not an administrator, or null. An owner may always change the rules.
    param([string]$Path)
    $owner = (Read-Access -Path $Path).GetOwner([Security.Principal.SecurityIdentifier]).Value
    if (Test-Trusted -Sid $owner) { $null } else { $owner }
}

function Get-UntrustedWriter {
    # The accounts, besides trusted ones, that own a path or have one of these rights on it: SIDs, or null. The usual rights are
    # all that change something: write and append data (2, 4), extended attributes (10), children (40), attributes (100),
    # delete (10000), rules (40000), owner (80000), and the generic ones. Rules for children count as well, but for -Itself.
    param([string]$Path, [int]$Rights = 0x500d0156, [switch]$Itself)
    $security = Read-Access -Path $Path
    $memory = Get-AccessMemory
    $key = "$Rights|$Itself|$($security.GetSecurityDescriptorSddlForm('Owner, Access'))"
    if (-not $memory.ContainsKey($key)) { $memory[$key] = Find-UntrustedWriter -Security $security -Rights $Rights -Itself:$Itself }
    $memory[$key]
}

function Get-AccessMemory {
    # What an owner and rules mean, by their text: most of a thousand files and folders have the same ones.
    # The small scripts next to the main one have no run.
    if ($null -eq $script:Run) { return @{} }
    if (-not $script:Run.ContainsKey('Accesses')) { $script:Run.Accesses = @{} }
    $script:Run.Accesses
}

function Find-UntrustedWriter {
    # What Get-UntrustedWriter returns, of a security object.
    param([Security.AccessControl.FileSystemSecurity]$Security, [int]$Rights, [switch]$Itself)
    $found = @(
        $Security.GetOwner([Security.Principal.SecurityIdentifier]).Value
        foreach ($rule in $Security.GetAccessRules($true, $true, [Security.Principal.SecurityIdentifier])) {
            # CREATOR OWNER is the account that creates something; no other account may.
            if ($rule.AccessControlType -ne 'Allow' -or $rule.IdentityReference.Value -eq 'S-1-3-0') { continue }
            if ($Itself -and ([int]$rule.PropagationFlags -band [int][Security.AccessControl.PropagationFlags]::InheritOnly)) {
                continue
            }
            if ([int]$rule.FileSystemRights -band $Rights) { $rule.IdentityReference.Value }
        }
    )
    $strange = @($found | Where-Object { -not (Test-Trusted -Sid $_) } | Sort-Object -Unique)
    if ($strange) { $strange -join ', ' } else { $null }
}

function Get-UntrustedHolder {
    # The accounts, besides administrators, that own a file or folder or may delete or rename it or change its rules or owner (10000,
    # 40000, 80000, 10000000). Such an account may have it open with that right, and keeps it whatever the rules become. SIDs, or null.
    param([string]$Path)
    Get-UntrustedWriter -Path $Path -Rights 0x100d0000 -Itself
}

function Test-Link {
    # Whether a path is a junction, a symbolic link or another reparse point.
    param([string]$Path)
    $there = [IO.Directory]::Exists($Path) -or [IO.File]::Exists($Path)
    $there -and ([int][IO.File]::GetAttributes($Path) -band [int][IO.FileAttributes]::ReparsePoint) -ne 0
}

function Assert-NoLink {
    # Ends the step when the path, or a folder above it, is a link: the link's owner decides where our files go.
    param([string]$Path)
    foreach ($part in @(Get-ParentPath -Path $Path) + $Path) {
        if (Test-Link -Path $part) {
            Stop-Step -Id 'FolderIsLink' -Message "$part is a link to another place, and winboot follows none"
        }
    }
}

function Get-ParentPath {
    # The folders above a path, without the root of the drive, outermost first. Nothing for the root.
    param([string]$Path)
    $parts = $Path.TrimEnd('\').Split('\')
    for ($count = 2; $count -lt $parts.Count; $count++) { $parts[0..($count - 1)] -join '\' }
}

function Save-FormerAccess {
    # Notes owner and access rules, before they are changed.
    param([string]$Path)
    Save-FormerValue -Kind 'Access' -Key $Path -Value @{ path = $Path; sddl = (Get-AccessText -Path $Path) }
}

function Save-SecretFile {
    # Notes a file that will hold one of our secrets: that it was absent, or its text and access rules. The note is kept where
    # only SYSTEM and Administrators can read it.
    param([string]$Path)
    if (Test-FormerNote -Kind 'File' -Key $Path) { return }
    if ([IO.File]::Exists($Path)) { Save-FormerAccess -Path $Path }
    Save-FormerFile -Path $Path
}

function Restore-Access {
    # Puts owner and access rules back on what is still there.
    param([object]$Former)
    if (-not [IO.Directory]::Exists($Former.path) -and -not [IO.File]::Exists($Former.path)) { return }
    if (Test-Link -Path $Former.path) { return }
    if ((Get-AccessText -Path $Former.path) -cne $Former.sddl) { Set-AccessText -Path $Former.path -Sddl $Former.sddl }
}
