# SUMMARY Reads, writes and restores registry values below HKEY_LOCAL_MACHINE.

function Read-Registry {
    # A value as it is stored, with its %names% not expanded: what is put back has to be what was there. Nothing where
    # the key or the value is missing; a list comes as one object.
    param([string]$Path, [string]$Name)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if (-not $key) { return }
    try {
        $value = $key.GetValue($Name, $null, [Microsoft.Win32.RegistryValueOptions]::DoNotExpandEnvironmentNames)
        # An empty list must not look absent.
        if ($value -is [array]) { return , $value }
        $value
    }
    finally { $key.Dispose() }
}

function Test-RegistryKey {
    # Whether the key is there.
    param([string]$Path)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if ($key) { $key.Dispose() }
    $null -ne $key
}

function Get-KeyWriter {
    # The accounts, besides trusted ones, that own a key or may change what is in it: SIDs. Nothing where no such account exists, or no
    # key. 2: set values, 4: make subkeys (of a service's, Performance names a library that collectors of counters load:
    # learn.microsoft.com/windows/win32/perfctrs/creating-the-applications-performance-key), 20: links, 10000: delete, 40000:
    # rules, 80000: owner, 40000000 and 10000000: the generic ones
    # (learn.microsoft.com/windows/win32/sysinfo/registry-key-security-and-access-rights).
    param([string]$Path)
    # An owner that tightened the key so far that administrators do not read it has left nothing for others.
    try { $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path) } catch [Security.SecurityException] { return }
    if (-not $key) { return }
    try { $security = $key.GetAccessControl('Owner, Access') } finally { $key.Dispose() }
    $found = @(
        $security.GetOwner([Security.Principal.SecurityIdentifier]).Value
        foreach ($rule in $security.GetAccessRules($true, $true, [Security.Principal.SecurityIdentifier])) {
            # What is for subkeys alone is found at those. CREATOR OWNER is the account that creates something.
            $below = [int]$rule.PropagationFlags -band [int][Security.AccessControl.PropagationFlags]::InheritOnly
            if ($below -or $rule.AccessControlType -ne 'Allow' -or $rule.IdentityReference.Value -eq 'S-1-3-0') { continue }
            if ([int]$rule.RegistryRights -band 0x500d0026) { $rule.IdentityReference.Value }
        }
    )
    $found | Where-Object { -not (Test-Trusted -Sid $_) } | Sort-Object -Unique
}

function Read-RegistryKind {
    # The kind of a value (DWord, String and so on); nothing where the key or the value is missing.
    param([string]$Path, [string]$Name)
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path)
    if (-not $key) { return }
    # By the names: of some kinds .NET gives no value at all.
    try { if ($key.GetValueNames() -contains $Name) { $key.GetValueKind($Name).ToString() } }
    finally { $key.Dispose() }
}

function Read-RegistryNote {
    # A value as a note keeps it: path, name, value (bytes as numbers) and kind; value and kind are null when it is absent.
    param([string]$Path, [string]$Name)
    $value = Read-Registry -Path $Path -Name $Name
    if ($value -is [byte[]]) { $value = [int[]]$value }
    @{ path = $Path; name = $Name; value = $value; kind = (Read-RegistryKind -Path $Path -Name $Name) }
}

function Set-RegistryValue {
    # Writes a value below HKEY_LOCAL_MACHINE and notes what was there. The key made is the outermost one that was missing.
    param([string]$Path, [string]$Name, [object]$Value, [string]$Kind = 'DWord')
    $note = Read-RegistryNote -Path $Path -Name $Name
    if ($null -eq $note.value -and $note.kind) {
        Stop-Step -Id 'RegistryKind' -Message "registry HKLM\${Path}: $Name is of a kind that could not be put back"
    }
    $note.made = Get-MissingKey -Path $Path
    Save-FormerValue -Kind 'Registry' -Key "$Path\$Name" -Value $note
    Write-Registry -Path $Path -Name $Name -Value $Value -Kind $Kind
}

function Get-MissingKey {
    # The outermost key on the way to this one that is missing; nothing where the key is there.
    param([string]$Path)
    $missing = $null
    for ($key = $Path; $key -and -not (Test-RegistryKey -Path $key); $key = [IO.Path]::GetDirectoryName($key)) { $missing = $key }
    $missing
}

function Remove-EmptyKey {
    # Deletes a key and those above it up to the Outermost, as long as there is nothing in them. Returns nothing.
    param([string]$Path, [string]$Outermost)
    for ($name = $Path; $name.Length -ge $Outermost.Length; $name = [IO.Path]::GetDirectoryName($name)) {
        $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($name)
        if (-not $key) { continue }
        try { $count = $key.SubKeyCount + $key.ValueCount } finally { $key.Dispose() }
        if ($count -gt 0) { return }
        [Microsoft.Win32.Registry]::LocalMachine.DeleteSubKey($name, $false)
    }
}

function ConvertTo-SignedNumber {
    # A number of 32 bits as .NET reads and writes a DWord, which is signed: 0xFFFFFFFF is -1.
    param([object]$Value)
    if ([long]$Value -lt 0) { return [int]$Value }
    [BitConverter]::ToInt32([BitConverter]::GetBytes([uint32]$Value), 0)
}

function Write-Registry {
    # Writes a value and makes its key where it is missing; $null deletes the value. Returns nothing. The kind is always
    # given: left to itself .NET stores a long as a String, and never an ExpandString (RegistryKey.CalculateValueKind).
    param([string]$Path, [string]$Name, [object]$Value, [string]$Kind)
    if ($null -eq $Value) {
        $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Path, $true)
        if (-not $key) { return }
        try { $key.DeleteValue($Name, $false) } finally { $key.Dispose() }
        return
    }
    switch ($Kind) {
        'MultiString' { $typed = [string[]]@($Value) }
        { @('Binary', 'None', 'Unknown') -contains $_ } { $typed = [byte[]]@($Value) }
        'DWord' { $typed = ConvertTo-SignedNumber -Value $Value }
        'QWord' { $typed = [long]$Value }
        default { $typed = [string]$Value }
    }
    [Microsoft.Win32.Registry]::SetValue("HKEY_LOCAL_MACHINE\$Path", $Name, $typed, $Kind)
}

function Restore-Registry {
    # Puts a former value back, or deletes one that was not there, with the keys that came with it.
    param([object]$Former)
    $kind = "$($Former.kind)"
    # A number of another length than its kind has: .NET reads it as bytes and writes no such number.
    if (@('DWord', 'QWord') -contains $kind -and $Former.value -is [array]) {
        $kind = 'Binary'
        $where = "registry HKLM\$($Former.path): $($Former.name)"
        New-Difference -Key "registry:$($Former.path)\$($Former.name)" -What $where -Is 'the same bytes as Binary' -Want $Former.kind
    }
    Write-Registry -Path $Former.path -Name $Former.name -Value $Former.value -Kind $kind
    $made = Read-Member -Object $Former -Names 'made'
    if ($made) { Remove-EmptyKey -Path $Former.path -Outermost $made }
}

function Invoke-OwnerWork {
    # Does the work while administrators own a key and may write it and what is below; then owner and rules are as before. Returns nothing.
    # Work reads variables of its caller: those here have other names.
    param([string]$Key, [scriptblock]$Work)
    Enable-OwnerPrivilege
    $before = Read-KeyAccess -Key $Key
    # This process may end before `finally`.
    Save-FormerValue -Kind 'KeyAccess' -Key $Key -Value @{ key = $Key; access = $before }
    Set-KeyAccess -Key $Key -Rights 'TakeOwnership' -Sddl 'O:BA' -Sections 'Owner'
    try {
        $open = $before -creplace '^.*?(D:[^(]*)', '$1(A;CI;KA;;;BA)'
        Set-KeyAccess -Key $Key -Rights 'ChangePermissions' -Sddl $open -Sections 'Access'
        & $Work
    }
    finally { Set-KeyAccess -Key $Key -Rights 'ChangePermissions, TakeOwnership' -Sddl $before -Sections 'Owner, Access' }
}

function Enable-OwnerPrivilege {
    # Lets this process take a key and give it back. Returns nothing.
    if (-not ('Winboot.Privilege' -as [type])) { Add-Type -TypeDefinition (Get-PrivilegeDeclaration) -Language CSharp }
    [Winboot.Privilege]::Enable()
}

function Read-KeyAccess {
    # Owner and rules of a key as SDDL.
    param([string]$Key)
    $opened = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Key)
    try { $opened.GetAccessControl('Owner, Access').GetSecurityDescriptorSddlForm('Owner, Access') } finally { $opened.Dispose() }
}

function Get-OpenKey {
    # The notes of keys that a run which ended early left to administrators (Invoke-OwnerWork). Nothing if none exists.
    foreach ($note in Get-FormerLine) {
        if ($note.kind -ne 'KeyAccess' -or -not (Test-RegistryKey -Path $note.key)) { continue }
        $is = Read-KeyAccess -Key $note.key
        if ($is -cne $note.value.access -and $is -clike 'O:BA*') { $note.value }
    }
}

function Get-OpenKeyDifference {
    # A difference for each such key.
    foreach ($one in Get-OpenKey) {
        New-Difference -Key "key-access:$($one.key)" -What "registry HKLM\$($one.key): owner and rules" -Is 'of a run that ended early' -Want 'as before'
    }
}

function Restore-KeyAccess {
    # Gives a key back that a run left open; one that another program changed meanwhile stays. Returns nothing.
    param([object]$Former)
    if (-not (Get-OpenKey | Where-Object { $_.key -eq $Former.key })) { return }
    Enable-OwnerPrivilege
    Set-KeyAccess -Key $Former.key -Rights 'ChangePermissions, TakeOwnership' -Sddl $Former.access -Sections 'Owner, Access'
}

function Set-KeyAccess {
    # Writes sections of a key's descriptor through a handle with no more than these rights. Returns nothing.
    param([string]$Key, [string]$Rights, [string]$Sddl, [string]$Sections)
    $security = [Security.AccessControl.RegistrySecurity]::new()
    $security.SetSecurityDescriptorSddlForm($Sddl, $Sections)
    $opened = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($Key, 'ReadWriteSubTree', $Rights)
    try { $opened.SetAccessControl($security) } finally { $opened.Dispose() }
}

function Get-PrivilegeDeclaration {
    # The C# that enables the privileges of an administrator's process to take ownership (9) and to give it to another account (18):
    # wdm.h, SE_TAKE_OWNERSHIP_PRIVILEGE and SE_RESTORE_PRIVILEGE. An enabled privilege has 2, SE_PRIVILEGE_ENABLED of winnt.h.
    @'
    using System;
    using System.ComponentModel;
    using System.Runtime.InteropServices;

    namespace Winboot
    {
        public static class Privilege
        {
            [DllImport("kernel32.dll", ExactSpelling = true)]
            private static extern IntPtr GetCurrentProcess();

            [DllImport("kernel32.dll", ExactSpelling = true)]
            private static extern bool CloseHandle(IntPtr handle);

            [DllImport("advapi32.dll", ExactSpelling = true, SetLastError = true)]
            private static extern bool OpenProcessToken(IntPtr process, int access, out IntPtr token);

            [DllImport("advapi32.dll", ExactSpelling = true, SetLastError = true)]
            private static extern bool AdjustTokenPrivileges(IntPtr token, bool none, int[] wanted, int size, IntPtr before, IntPtr needed);

            // TOKEN_PRIVILEGES: how many, then low and high part of the number and the attributes of each. 20: TOKEN_ADJUST_PRIVILEGES.
            // A privilege that the token lacks shows only in the last error (1300).
            public static void Enable()
            {
                IntPtr token;
                if (!OpenProcessToken(GetCurrentProcess(), 0x20, out token)) { throw new Win32Exception(); }
                try
                {
                    bool done = AdjustTokenPrivileges(token, false, new int[] { 2, 9, 0, 2, 18, 0, 2 }, 0, IntPtr.Zero, IntPtr.Zero);
                    int error = Marshal.GetLastWin32Error();
                    if (!done || error != 0) { throw new Win32Exception(error); }
                }
                finally { CloseHandle(token); }
            }
        }
    }
'@
}
